/*-------------------------------------------------------------------------
 *
 * stat_int.h
 *	  Data of the statistics, which views show.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AQ_STAT_INT_H
#define AQ_STAT_INT_H

#include "access/xact.h"
#include "sync/common/latch_types.h"
#include "sync/statistics/server_stat.h"
#include "sync/statistics/stat.h"
#include "sync/waits/event_int.h"

/* In nanoseconds; they only grow. */
typedef struct AqTimes
{
	uint64		db_time;
	uint64		cpu;			/* of the process; for a running one see aq_stat_read */
	uint64		op_elapsed[AQ_TIME_COUNT];
	uint64		op_cpu[AQ_TIME_COUNT];
	uint64		io[AQ_IO_COUNT];	/* part of db_time, where PostgreSQL times it */
} AqTimes;

/* One per session, on separate cache lines; only its owner writes it. */
typedef struct AqStatSlot
{
	uint64		counts[AQ_STAT_COUNT];
	AqTimes		times;
	uint64		cpu_before;		/* CPU time of the process when it attached */
	int32		op;				/* AqTimeKind of the current operation, or -1 */
	int32		queue;			/* its queue id; 0: not known yet */
	bool		background;
} AqStatSlot;

typedef struct AqStatSums
{
	uint64		counts[AQ_STAT_COUNT];
	AqTimes		times[2];		/* foreground, background */
} AqStatSums;

/* server_stat.c: statistics of all sessions, numbered from AQ_SERVER_STAT_FIRST on */
#define AQ_SERVER_STAT_FIRST 1000

typedef enum AqServerStat
{
#define X(id, name, class, text) AQ_SERVER_STAT_##id,
#include "sync/statistics/server_stat_list.h"
#undef X
	AQ_SERVER_STAT_COUNT
} AqServerStat;

/* One per process, on separate cache lines; only its process writes it. */
typedef struct AqServerStatSlot
{
	uint64		counts[AQ_SERVER_STAT_COUNT];	/* of all processes that have had it */
	uint64		before[AQ_SERVER_STAT_COUNT];	/* when the process began */
} AqServerStatSlot;

extern Size aq_server_stat_shmem_size(void);
extern void aq_server_stat_shmem_init(void *area, bool found);
extern void aq_server_stat_xact_end(XactEvent event);
extern void aq_server_stat_sum(uint64 *sums);
extern void aq_server_stat_read(int session, uint64 *counts);

/* event_sums.c */
extern Size aq_event_sums_shmem_size(void);
extern void aq_event_sums_shmem_init(void *area, bool found);
extern void aq_event_sums_session_exit(void);
extern AqLatch *aq_event_sums_latch(void);
extern void aq_event_sums_read(AqEventCounters sums[2][AQ_EVENT_COUNT]);

/* stat.c */
extern Size aq_stat_shmem_size(void);
extern void aq_stat_shmem_init(void *area, bool found);
extern void aq_stat_session_start(void);
extern void aq_stat_session_exit(void);
extern AqStatSlot *aq_stat_slot(int session);
extern void aq_stat_read(int session, AqStatSlot *copy);
extern void aq_stat_sum(AqStatSums *sums);
extern void aq_stat_xact_end(XactEvent event);

/* time.c */
extern void aq_time_define_parameters(void);
extern void aq_time_session_start(void);
extern void aq_time_session_exit(void);
extern void aq_time_xact_end(bool abort);
extern void aq_time_subxact_abort(void);

#endif							/* AQ_STAT_INT_H */
