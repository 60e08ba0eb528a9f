/*-------------------------------------------------------------------------
 *
 * queue_private.h
 *	  What the files of part "queue" share.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AQ_QUEUE_PRIVATE_H
#define AQ_QUEUE_PRIVATE_H

#include "queue/queue.h"

#include "nodes/params.h"
#include "utils/timestamp.h"

#define AQ_KEY_MASK ((UINT64CONST(1) << 60) - 1)

/* catalog.c */
extern void aq_catalog_init(void);
extern void aq_catalog_stale(void);
extern bool aq_catalog_has_queue(int32 id);

/* shm.c */
extern Size aq_queue_shmem_size(void);
extern void aq_queue_shmem_init(void *area, bool found);

/* pins.c: what a transaction holds of queues */
extern void aq_pins_session_exit(void);
extern bool aq_xact_created(int32 id);
extern void aq_xact_ddl(void);

/* wait.c */
extern Size aq_wait_shmem_size(void);
extern void aq_wait_shmem_init(void *area, bool found);
extern void aq_wait_session_exit(void);
extern void aq_set_latches(const int32 *sessions, int n);
extern int	aq_fetch_patience_ms;	/* pgaq.fetch_patience */
extern bool aq_wait_until(AqQueue *queue, int position, bool selective, int64 timeout_us,
						  bool (*attempt) (void *arg), void *arg);

/*
 * For procedures: wait without a snapshot.  attempt looks, and takes one of its
 * own for that; the number of the pair that has something, or -1.
 */
extern bool aq_wait_released(char *queue, char *consumer, bool selective, int64 timeout_us,
							 bool (*attempt) (void *arg), void *arg);
extern int	aq_listen_released(int n, char **queues, char **consumers, int64 timeout_us);

/* channel.c: how listen is woken */
typedef enum AqListenWakeup
{
	AQ_LISTEN_TARGETED,
	AQ_LISTEN_BROADCAST
} AqListenWakeup;

extern int	aq_listen_wakeup;	/* pgaq.listen_wakeup */
extern Size aq_channel_shmem_size(void);
extern void aq_channel_shmem_init(void *area, bool found);
extern void aq_channel_join(void);
extern void aq_channel_leave(void);
extern bool aq_channel_has_listeners(void);
extern bool aq_channel_woken(void);
extern void aq_channel_wake(void);

/* autonomous.c: a statement in a transaction of its own */
extern void aq_autonomous_call(const char *sql, int nargs, const Oid *types, const Datum *values,
							   const char *nulls, int ncolumns, Datum *results, bool *isnull);

/* rule.c: conditions over messages */
extern AqRule *aq_rule_compile(AqQueue *queue, const char *text, bool as_owner,
							   MemoryContext context);
extern bool aq_rule_matches(AqRule *rule, const AqMessage *message);

/* admin.c */
extern AqQueue *aq_queue_for_change(const char *name, LOCKMODE mode);
extern void aq_run_change(const char *command, int nargs, Oid *types, Datum *values,
						  const char *nulls);
extern int	aq_default_shards;	/* pgaq.default_shards */

extern void aq_begin_ddl(const char *command);
extern void aq_check_payload_type(Oid type);

typedef struct AqQueueDefinition
{
	const char *name;
	Oid			owner;
	Oid			payload_type;
	bool		multi;
	int			shards;
	int			max_retries;	/* negative: no limit */
	Interval   *retry_delay;	/* NULL: none */
	Interval   *retention;		/* NULL: none */
	int32		exception_queue_id; /* 0: none */
	text	   *comment;		/* or NULL */
	int32		queue_table_id; /* 0: sharded */
	bool		exception;
} AqQueueDefinition;

extern void aq_queue_create(const AqQueueDefinition *definition);
extern void aq_queue_drop(const char *name, bool force);

/* queue_table.c */
typedef struct AqQueueTableRow
{
	int32		id;
	Oid			payload_type;
	bool		multi;
	int32		exception_queue_id; /* of its own exception queue */
} AqQueueTableRow;

extern AqQueueTableRow aq_queue_table_get(const char *name, bool must_own);

/* position.c */
typedef struct AqPosition AqPosition;

typedef struct AqNavigation
{
	bool		given;
	bool		first;			/* from the head */
	bool		transaction;	/* to the next group */
	bool		groups;			/* over the ends of groups */
	AqPosition *position;		/* NULL: none is kept */
} AqNavigation;

extern AqNavigation aq_navigation_begin(AqQueue *queue, AqTakeOptions *take, const char *name,
										const char *consumer, const char *correlation);
extern void aq_navigation_moved(const AqNavigation *navigation, const AqMessage *message,
								const char *consumer, const char *correlation);
extern bool aq_navigation_rewind(AqQueue *queue, const AqNavigation *navigation, AqTakeOptions *take);
extern void aq_navigation_none(const AqNavigation *navigation);

/* upkeep.c */
extern void aq_upkeep_init(void);

/* subscriber.c */
extern void aq_add_recipient(AqQueue *queue, const char *name);

/* args.c: checking what the user gave */
extern char *aq_arg_name(FunctionCallInfo fcinfo, int arg, const char *what);
extern char *aq_arg_name_or_null(FunctionCallInfo fcinfo, int arg, const char *what);
extern void aq_check_name(const char *name, const char *what);
extern int64 aq_interval_to_us(Datum interval);
extern int64 aq_interval_option(Datum interval, AqErrorId error, const char *what);
extern int	aq_dequeue_position(AqQueue *queue, const char *consumer);

#endif							/* AQ_QUEUE_PRIVATE_H */
