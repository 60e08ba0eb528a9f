/*-------------------------------------------------------------------------
 *
 * ash.h
 *	  The history of active sessions: a ring of samples in shared memory.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AQ_ASH_H
#define AQ_ASH_H

#include "monitor/monitor_private.h"

#include "datatype/timestamp.h"

/* One active session in one sample. */
typedef struct AqSample
{
	uint64		number;			/* of the row, from 1; 0: none */
	int64		sample_id;
	TimestampTz time;
	int32		session;		/* number of the PGPROC */
	int32		pid;
	Oid			database;
	Oid			user;
	uint64		query_id;
	uint32		wait_info;		/* wait of the server; 0: none */
	int16		event;			/* AqEvent, or -1 */
	int16		operation;		/* AqTimeKind, or -1 */
	int32		queue;
	bool		background;
	int32		blocker;		/* session's number, or -1 */
	int32		blocker_pid;
	uint64		sequence;		/* of the wait */
	uint64		p[3];
	int64		wait_us;		/* duration until the sample; -1: not known */
	int64		time_waited;	/* total duration of the wait; -1: not known (yet) */
	char		program[AQ_WORD];
	char		module[AQ_WORD];
	char		action[AQ_WORD];
} AqSample;

/* --- ring.c --- */
extern int	aq_ring_size_kb;	/* pgaq.ash_size */

extern Size aq_ring_shmem_size(void);
extern void aq_ring_shmem_init(void *area, bool found);
extern uint64 aq_ring_rows(void);	/* the capacity */
extern uint64 aq_ring_last(void);	/* number of the last row; 0: none */
extern bool aq_ring_is_kept(int64 sample_id);	/* its rows are saved in tables */
extern bool aq_ring_read(uint64 number, AqSample *row);

/* for the sampler only */
extern int64 aq_ring_begin_sample(void);
extern void aq_ring_add(AqSample *row);
extern void aq_ring_end_sample(int64 spent_us);
extern void aq_ring_end_round(int64 spent_us);	/* of the profile only */
extern void aq_ring_attach(void);
extern int64 aq_ring_closely_until(void);	/* aq_clock_us */
extern void aq_ring_set_time_waited(uint64 number, int64 time_waited);

/*
 * profile since server start: samples of the server's wait events and of time
 * on CPU
 */
extern void aq_ring_profile_add(uint32 wait_info, bool background, bool in_db_time, int64 interval_us);

/* --- sampler.c --- */
extern int	aq_sampler_interval_ms; /* pgaq.ash_interval */
extern void aq_sampler_define(void);
extern int64 aq_sampler_keep_within(void);	/* microseconds within which the ring's rows must be saved in tables */

#define AQ_KEEP_EVERY ((int64) 60000000)	/* at the latest */
#define AQ_CLOSELY_FOR ((int64) 60000000)	/* how long the profile is sampled closely */

/* --- flush.c --- */
extern void aq_flush_init(void);

#endif							/* AQ_ASH_H */
