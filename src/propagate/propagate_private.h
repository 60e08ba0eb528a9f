/*-------------------------------------------------------------------------
 *
 * propagate_private.h
 *	  Declarations shared by the files of part "propagate".
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AQ_PROPAGATE_PRIVATE_H
#define AQ_PROPAGATE_PRIVATE_H

#include "propagate/propagate.h"

#include "link/link.h"
#include "move/move.h"

#include "datatype/timestamp.h"
#include "nodes/pg_list.h"

/* A schedule is disabled after this number of failures in a row. */
#define AQ_PROPAGATION_FAILURES 16

/* messages that are moved together, at most */
#define AQ_PROPAGATION_BATCH 500

/* the same of the first batch for another database: the next ones depend on its size */
#define AQ_PROPAGATION_FIRST 20

/* What a schedule has done since its row was last written. */
typedef struct AqPropagated
{
	int64		messages;
	int64		bytes;
	int64		batches;
	int64		elapsed;		/* microseconds, of the batches */
	int64		most_messages;	/* in a batch */
	int64		most_bytes;
} AqPropagated;

/* A schedule in the process's memory: a row of aq_internal.propagation that is enabled. */
typedef struct AqPropagation
{
	int64		id;
	int32		queue_id;
	char	   *destination;	/* NULL: every address of this database without a schedule of its own */
	bool		remote;			/* queue@server, or @server: every address there without a schedule of its own */
	Oid			role;			/* InvalidOid: dropped */
	TimestampTz start;
	int64		duration;		/* of a window, microseconds; 0: without end */
	int64		every;			/* between the starts of windows; 0: there is one */
	int64		latency;		/* 0: messages are waited for */
	int			failures;		/* in a row */
	TimestampTz not_before;		/* the pause after a failure, or the latency */
	AqPropagated unsaved;
	int			most;			/* messages in the next batch */
	/* if it is remote */
	bool		busy;			/* enough batches are on their way, when the number of arrivals was ... */
	uint32		arrivals;
} AqPropagation;

/* A consumer whose messages a schedule moves. */
typedef struct AqRoute
{
	AqPropagation *schedule;
	char	   *consumer;		/* NULL: the queue has a single one */
	char	   *destination;
	char	   *recipient;		/* NULL: the subscribers there */
	int64		used;			/* microseconds of the process's time that the schedule's role has used recently */
	uint32		random;			/* the order of a role's routes in a round */
} AqRoute;

/* --- propagation.c: rows, times and routes; in a transaction of the process, unless noted */
extern void aq_propagation_reload(void);
extern List *aq_propagation_all(void);	/* of AqPropagation; no transaction needed */
extern bool aq_propagation_is_open(const AqPropagation *schedule, TimestampTz now, TimestampTz *change);	/* no transaction needed */
extern bool aq_propagation_is_orphan(void); /* after aq_propagation_routes(); no transaction needed */
extern List *aq_propagation_routes(void);	/* of AqRoute, those of a queue together; in the current memory context */
extern bool aq_propagation_failed(AqPropagation *schedule, const char *error, bool may_disable);	/* true: it is disabled
																									 * now */
extern void aq_propagation_recovered(AqPropagation *schedule);
extern bool aq_propagation_is_unsaved(const AqPropagation *schedule);
extern void aq_propagation_save(AqPropagation *schedule);

extern const char *aq_propagation_server(const char *address);
extern int64 aq_propagation_pause(int failures);

/* --- propagation_batch.c: in a transaction of the process */
extern uint32 aq_propagation_batch_take(const AqRoute *route, void (*become) (Oid role));

/* --- propagation_stream.c */
extern void aq_propagation_stream_register(void);

/* --- propagator.c */
extern void aq_propagator_register(void);

/* --- propagator_area.c: which database has a process */
extern Size aq_propagator_area_size(void);
extern void aq_propagator_area_init(void *area, bool found);
extern bool aq_propagator_area_enter(Oid database);
extern bool aq_propagator_area_disturbed(void);
extern bool aq_propagator_area_heed(void);
extern uint32 aq_propagator_area_changes(void);
extern TimestampTz aq_propagator_area_start(void);
extern void aq_propagator_area_notify(void);
extern uint32 aq_propagator_area_arrivals(void);
extern void aq_propagator_area_arrived(void);
extern void aq_propagator_area_stop(Oid database);

/* --- propagation_calls.c: what the end of the transaction announces */
extern void aq_propagation_calls_note_change(bool remote);
extern void aq_propagation_calls_note_arrival(void);
extern void aq_propagation_calls_note_batch(void);
extern void aq_propagation_calls_init(void);
extern void aq_propagation_drop_init(void);

#endif							/* AQ_PROPAGATE_PRIVATE_H */
