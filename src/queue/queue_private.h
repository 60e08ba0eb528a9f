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
#include "utils/relcache.h"
#include "utils/timestamp.h"

#define AQ_KEY_MASK ((UINT64CONST(1) << 60) - 1)
#define AQ_SHARD_KEY UINT64CONST(1) /* what a converted queue's two keys differ by */
#define AQ_BUFFERED_KEY UINT64CONST(2)	/* ... and a buffered queue's from its queue's */

/* === room catalog ============================================================== */

/* --- parameters.c */
extern int	aq_parameters_default_shards;	/* pgaq.default_shards */
extern bool aq_parameters_session_pins;	/* pgaq.session_pins */
extern int	aq_parameters_fetch_patience_ms;	/* pgaq.fetch_patience */
extern int	aq_parameters_buffered_message_limit;
extern int	aq_parameters_flow_control_timeout_ms;

/* how listen is woken */
typedef enum AqListenWakeup
{
	AQ_LISTEN_TARGETED,
	AQ_LISTEN_BROADCAST
} AqListenWakeup;

extern int	aq_parameters_listen_wakeup;	/* pgaq.listen_wakeup */
extern void aq_parameters_define(void);

/* --- store.c */
extern const AqStore *aq_store_find(char kind);

/* --- interval.c */
extern int64 aq_interval_to_us(Datum interval);
extern int64 aq_interval_option(Datum interval, AqErrorId error, const char *what);

/* --- sql.c */
extern void aq_sql_change(const char *command, int nargs, Oid *types, Datum *values,
						  const char *nulls);

/* --- pending.c: what the transaction has changed of definitions */
typedef struct AqChange
{
	int32		id;
	enum
	{
		AQ_CHANGE_CREATED,
		AQ_CHANGE_ALTERED,		/* those who wait have to check again */
		AQ_CHANGE_CHANGED,		/* they need not */
		AQ_CHANGE_DROPPED,
		AQ_CHANGE_UNSUBSCRIBED,
		AQ_CHANGE_CONVERTED,
		AQ_CHANGE_TABLE_LEFT,
		AQ_CHANGE_STOPPING
	}			kind;
	int			position;		/* UNSUBSCRIBED: of the consumer; STOPPING: bits, 1 enqueue, 2 dequeue */
	int64		number;
	SubTransactionId subid;
} AqChange;

extern void aq_pending_created(int32 id);
extern void aq_pending_dropped(int32 id);
extern void aq_pending_altered(int32 id);
extern void aq_pending_changed(int32 id);	/* those who wait need not check again */
extern void aq_pending_converted(int32 id);
extern void aq_pending_table_left(int32 id);
extern void aq_pending_consumer_removed(int32 id, int position, int64 number);
extern void aq_pending_stopping(int32 id, int bits);
extern bool aq_pending_is_created(int32 id);
extern bool aq_pending_is_converted(int32 id);
extern void aq_pending_set_ddl(void);
extern bool aq_pending_has_ddl(void);
extern int	aq_pending_list(const AqChange **list);
extern void aq_pending_subxact_end(bool commit, SubTransactionId subid, SubTransactionId parent,
								   void (*undo) (const AqChange *change));
extern bool aq_pending_end(void);

/* --- definition_clock.c */
extern Size aq_definition_clock_size(void);
extern void aq_definition_clock_init(void *area, bool found);
extern uint64 aq_definition_clock_now(void);
extern uint64 aq_definition_clock_tick(void);

/* --- description.c */
extern AqQueue *aq_description_read(Relation rel, const char *name, int32 id);

/* --- privilege.c */
extern bool aq_privilege_manages_any(void);

/* --- catalog.c */
extern void aq_catalog_init(void);
extern void aq_catalog_stale(void);
extern AqQueue *aq_catalog_get_again(int32 id, const char *name, AqRight right);
extern AqQueue *aq_catalog_get_by_name(const char *name); /* NULL: none; no rights asked */
extern AqConsumer *aq_catalog_consumer(AqQueue *queue, const char *name);
extern AqQueue *aq_catalog_for_delivery(AqQueue *queue, int delivery);
extern void aq_catalog_changed(void);	/* tell every session, at commit */
extern AqQueue *aq_catalog_read(int32 id);
extern bool aq_catalog_is_current(const AqQueue *queue);

/*
 * Around what may run users' code while the caller, or one further out, goes on
 * with a description afterwards: lookups in between leave it where it is.
 */
extern void aq_catalog_retain(void);
extern void aq_catalog_release(void);

/* --- caller_path.c: search_path of the packages' callers */
extern const char *aq_caller_path(void);
extern List *aq_caller_path_schemas(bool implicit);
extern void aq_caller_path_on_call(Oid function);
extern int	aq_caller_path_use(void);
extern void aq_caller_path_leave(int nest);

/* --- args.c: checking what the user gave */
extern char *aq_args_name(FunctionCallInfo fcinfo, int arg, const char *what);
extern char *aq_args_name_or_null(FunctionCallInfo fcinfo, int arg, const char *what);
extern void aq_args_check_name(const char *name, const char *what);
extern int	aq_args_consumer_position(AqQueue *queue, const char *consumer);
extern int	aq_args_delivery(FunctionCallInfo fcinfo, int arg);

/* --- payload.c: payload types */
extern void aq_payload_check_type(Oid type);
extern Oid	aq_payload_type_owner(Oid type);

/* --- context.c */
extern void aq_context_init(void);

/* --- property.c */
extern void aq_property_init(void);

/* --- run_as.c: users' code in the sessions of others */
extern void aq_run_as_init(void);
extern void aq_run_as(Oid role, void (*call) (void *arg), void *arg);
extern void aq_run_as_reading(Oid role, void (*call) (void *arg), void *arg);
extern int	aq_run_as_begin(void);
extern void aq_run_as_end(int nest);
extern bool aq_run_as_is_active(void);
extern uint64 aq_run_as_code_changes(void);
extern void aq_run_as_check_type(Oid type);

/* --- rule.c: conditions over messages */
extern AqRule *aq_rule_compile(AqQueue *queue, const char *text, Oid role, MemoryContext context);
extern Oid	aq_rule_role(Oid writer);
extern bool aq_rule_runs_user_code(const AqRule *rule);
extern bool aq_rule_matches(AqRule *rule, const AqMessage *message);

/* === room memory =============================================================== */

/* --- shm.c */
extern Size aq_shm_size(void);
extern void aq_shm_init(void *area, bool found);
extern AqConsumerShm *aq_shm_consumer_make(AqQueueShm *shm, int position);

/* --- lag.c */
extern int64 aq_lag_of(AqQueueShm *shm, int position);
extern void aq_lag_recheck(AqQueueShm *shm);

/* --- channel.c */
extern Size aq_channel_shmem_size(void);
extern void aq_channel_shmem_init(void *area, bool found);
extern void aq_channel_join(void);
extern int	aq_channel_leave(void);
extern bool aq_channel_has_listeners(void);
extern bool aq_channel_has(int session);
extern bool aq_channel_woken(void);
extern void aq_channel_wake(void);
extern void aq_channel_set_latches(const int32 *sessions, int n);

/* --- waiters.c */

/* (queue, consumer) pairs that one session can wait for at a time */
#define AQ_WAITERS_PER_SESSION 256

/* answer of a check: the targets have changed, enter again */
#define AQ_WAITERS_AGAIN (-2)

typedef struct AqWaitTarget
{
	AqQueueShm *shm;
	int			position;
	bool		selective;
	uint32		entry;
} AqWaitTarget;

extern Size aq_waiters_shmem_size(void);
extern void aq_waiters_shmem_init(void *area, bool found);
extern int	aq_waiters_sleep(AqWaitTarget *targets, int n, bool listens, bool channel, AqEvent event,
							 int64 deadline, int (*check) (void *arg), void *arg);
extern void aq_waiters_check_later(AqQueueShm *shm);
extern void aq_waiters_job(int32 id, AqQueueShm *shm);
extern void aq_waiters_check(AqFindings *findings);
extern void aq_waiters_check_queue(AqQueueShm *shm, AqFindings *findings);

/* --- traffic.c */
extern void aq_traffic_begin(AqQueueShm *shm, AqConsumerShm *place, uint64 number);
extern bool aq_traffic_is_time(AqTraffic item);

/* --- users.c */
extern void aq_users_add(AqQueueShm *shm);
extern void aq_users_remove(AqQueueShm *shm);
extern bool aq_users_are_stopped(AqQueueShm *shm, bool enqueue);
extern void aq_users_count_stops(AqQueueShm *shm, int bits, int32 by);

/* --- pins.c: what a session holds of queues */
extern void aq_pins_sweep(void);
extern AqQueue *aq_pins_pin_current(AqQueue *queue, bool put);
extern void aq_pins_book_time(int32 id, AqTimeKind kind, uint64 elapsed, uint64 cpu);
extern bool aq_pins_give_back(void);
extern void aq_pins_session_exit(void);
extern void aq_pins_end_use(bool commit);
extern AqQueueShm *aq_pins_shm_of(int32 id);
extern bool aq_pins_keep(AqObject *object);
extern void aq_pins_release(void);
extern bool aq_pins_use(const AqQueueShm *shm);
extern void aq_pins_note_put(const AqQueueShm *shm);
extern void aq_pins_begin_dequeue(const AqQueueShm *shm, int position);
extern void aq_pins_note_taken(const AqQueueShm *shm, int position);
extern void aq_pins_unuse(const AqQueueShm *shm);

/* --- announce.c: definitions, at the ends of transactions; never raise, but for the first */
extern void aq_announce_pre_commit(void);
extern void aq_announce_subxact_end(bool commit, SubTransactionId subid, SubTransactionId parent);
extern void aq_announce_xact_end(bool commit);

/* --- store_xact.c */
extern void aq_store_xact_init(void);

/* --- flow.c */
extern bool aq_flow_admits(AqQueue *buffered, Bitmapset *const *targets, uint32 n, int64 *deadline);

/* === room definitions ========================================================== */

/* --- ddl.c */
extern void aq_ddl_begin(const char *command);
extern AqQueue *aq_ddl_queue(const char *name, LOCKMODE mode);
extern bool aq_ddl_possible_here(AqQueue *queue);
extern void aq_ddl_by_worker(AqQueue *queue, AqRight right,
								  bool (*done) (AqQueue *queue, const char *arg),
								  void (*ask) (AqQueueShm *shm, const char *arg), const char *arg);

/* --- buffered.c */
extern AqQueue *aq_buffered_ensure(AqQueue *queue, int delivery);
extern void aq_buffered_job(int32 id, AqQueueShm *shm);
extern void aq_buffered_drop(const char *name, bool force);

/* --- definition.c */
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

extern void aq_definition_create(const AqQueueDefinition *definition);
extern void aq_definition_drop(const char *name, bool force);

/* --- queue_table.c */
typedef struct AqQueueTableRow
{
	int32		id;
	Oid			payload_type;
	bool		multi;
	int32		exception_queue_id; /* of its own exception queue */
} AqQueueTableRow;

extern void aq_queue_table_check_schema(const char *name);
extern AqQueueTableRow aq_queue_table_get(const char *name, bool must_own);

/* --- subscriber.c */
extern void aq_subscriber_add_recipient(AqQueue *queue, const char *name);
extern void aq_subscriber_recipients_job(int32 id, AqQueueShm *shm);
extern void aq_subscriber_positions_job(int32 id, AqQueueShm *shm);

/* --- stop.c */
extern void aq_stop_wait_for_users(AqQueue *queue, bool enqueue, bool dequeue);

/* --- convert.c */
extern const AqStore aq_convert_store;
extern void aq_convert_job(int32 id, AqQueueShm *shm);

/* --- guard.c */
extern void aq_guard_init(void);

/* --- upkeep.c */
extern void aq_upkeep_init(void);

/* === room calls ================================================================= */

/* --- use.c */
extern void aq_use_check_started(AqQueue *queue, bool enqueue);
extern AqQueue *aq_use_begin(AqQueue *queue, bool enqueue, bool *begins);
extern void aq_use_undo(AqQueue *queue);

/* --- wait.c */
extern bool aq_wait_until(AqQueue *const *queues, int n, int position, bool selective, int64 timeout_us,
						  bool (*attempt) (void *arg), void *arg);

/*
 * For procedures: wait without a snapshot.  attempt checks, and takes one of its
 * own for that; the number of the pair that has something, or -1.
 */
extern bool aq_wait_released(char *queue, char *consumer, int delivery, bool selective, int64 timeout_us,
							 bool (*attempt) (void *arg), void *arg);
extern int	aq_wait_listen_released(int n, char **queues, char **consumers, int *delivery, int64 timeout_us);

/* --- autonomous.c: a statement in a transaction of its own */
extern void aq_autonomous_session_exit(void);
extern void aq_autonomous_call(const char *sql, int nargs, const Oid *types, const Datum *values,
							   const char *nulls, int ncolumns, Datum *results, bool *isnull);

/* --- position.c: navigation */
typedef struct AqPosition AqPosition;

typedef struct AqNavigation
{
	bool		given;
	bool		first;			/* from the head */
	bool		transaction;	/* to the next group */
	bool		groups;			/* over the ends of groups */
	AqPosition *position;		/* NULL: none is kept */
} AqNavigation;

extern AqNavigation aq_position_begin(AqQueue *queue, AqTakeOptions *take, const char *name,
										const char *consumer, const char *correlation);
extern void aq_position_moved(const AqNavigation *navigation, const AqMessage *message,
								const char *consumer, const char *correlation);
extern bool aq_position_rewind(AqQueue *queue, const AqNavigation *navigation, AqTakeOptions *take);
extern void aq_position_none(const AqNavigation *navigation);

#endif							/* AQ_QUEUE_PRIVATE_H */
