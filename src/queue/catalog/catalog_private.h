/*-------------------------------------------------------------------------
 *
 * catalog_private.h
 *	  Declarations shared by the files of folder "catalog" and of those that may use it.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AQ_CATALOG_PRIVATE_H
#define AQ_CATALOG_PRIVATE_H

#include "queue/queue.h"

#include "nodes/params.h"
#include "utils/array.h"
#include "utils/relcache.h"
#include "utils/timestamp.h"

#define AQ_KEY_MASK ((UINT64CONST(1) << 60) - 1)
#define AQ_SHARD_KEY UINT64CONST(1) /* difference between a converted queue's two keys */
#define AQ_BUFFERED_KEY UINT64CONST(2)	/* difference between the keys of a buffered queue and its queue */

/* --- description.c: the columns of aq_internal.queue */
typedef enum AqQueueColumn
{
#define X(id, name, type) AQ_QUEUE_##id,
#include "queue/catalog/queue_column_list.h"
	AQ_QUEUE_COLUMNS
} AqQueueColumn;

/* --- parameters.c */
extern int	aq_parameters_default_shards;	/* pgaq.default_shards */
extern bool aq_parameters_session_pins; /* pgaq.session_pins */
extern int	aq_parameters_fetch_patience_ms;	/* pgaq.fetch_patience */
extern int	aq_parameters_buffered_message_limit;
extern int	aq_parameters_flow_control_timeout_ms;
extern int	aq_parameters_immediate_helpers;
extern int	aq_parameters_immediate_idle_timeout_ms;
extern int	aq_parameters_recipient_grace_ms;
extern int	aq_parameters_max_temporary_queues;
extern int	aq_parameters_role_share;
extern int	aq_parameters_role_schedules;

/* how sessions in listen are woken */
typedef enum AqListenWakeup
{
	AQ_LISTEN_TARGETED,
	AQ_LISTEN_BROADCAST
} AqListenWakeup;

extern int	aq_parameters_listen_wakeup;	/* pgaq.listen_wakeup */
extern void aq_parameters_define(void);

/* --- schema.c */
extern void aq_schema_act_for(int64 identity, int number);

/* --- store.c */
extern const AqStore *aq_store_find(char kind);

/* --- non_persistent.c: errors for what a non-persistent queue cannot do, and its messages */
extern void aq_non_persistent_refuse_dequeue(const AqQueue *queue);
extern void aq_non_persistent_refuse_listen(const AqQueue *queue);
extern void aq_non_persistent_refuse_consumer(const AqQueue *queue, const char *consumer);
extern void aq_non_persistent_refuse_on_commit(const AqQueue *queue);
extern void aq_non_persistent_refuse_deviation(const AqQueue *queue);
extern void aq_non_persistent_check_options(const AqQueue *queue, const AqPutOptions *options);
extern void aq_non_persistent_put(AqQueue *queue, const AqPutOptions *options, uint32 n, const Datum *payloads,
								  const bool *nulls, Bitmapset *const *targets, pg_uuid_t *ids);

/*
 * --- interval.c
 *
 * Now plus a delay plus an expiration must still be a valid timestamp.
 */
#define AQ_INTERVAL_LONGEST_YEARS 100000
#define AQ_INTERVAL_LONGEST (AQ_INTERVAL_LONGEST_YEARS * INT64CONST(360) * USECS_PER_DAY)

extern int64 aq_interval_until(TimestampTz when, TimestampTz now, AqErrorId error, const char *what);

/* --- retry_delay.c */
extern void aq_retry_delay_check_factor(double factor);
extern void aq_retry_delay_check_jitter(double jitter);
extern void aq_retry_delay_check_max(Datum max);

/* --- rate_text.c */
extern AqRate aq_rate_text_read(const char *text);

/* --- pending.c: changes of definitions by the transaction */
typedef struct AqChange
{
	int32		id;
	enum
	{
		AQ_CHANGE_CREATED,
		AQ_CHANGE_ALTERED,		/* waiters must check again */
		AQ_CHANGE_CHANGED,		/* waiters need not check again */
		AQ_CHANGE_DROPPED,
		AQ_CHANGE_UNSUBSCRIBED,
		AQ_CHANGE_RECIPIENT,	/* a recipient was added */
		AQ_CHANGE_RELEASED,		/* positions of recipients were freed */
		AQ_CHANGE_CONVERTED,
		AQ_CHANGE_TABLE_LEFT,
		AQ_CHANGE_STOPPING,
		AQ_CHANGE_REVOKED		/* no definition: waiters must check their rights, when the caches are invalidated */
	}			kind;
	int			position;		/* UNSUBSCRIBED: of the consumer; STOPPING: bits, 1 enqueue, 2 dequeue */
	int64		number;
	SubTransactionId subid;
} AqChange;

extern void aq_pending_created(int32 id);
extern void aq_pending_dropped(int32 id);
extern void aq_pending_altered(int32 id);
extern void aq_pending_changed(int32 id);	/* waiters need not check again */
extern void aq_pending_recipient(int32 id);
extern void aq_pending_released(int32 id);
extern void aq_pending_converted(int32 id);
extern void aq_pending_table_left(int32 id);
extern void aq_catalog_forget(int32 id);
extern void aq_catalog_tidy(void);
extern const char *aq_catalog_known_name(int32 id);
extern void aq_pending_consumer_removed(int32 id, int position, int64 number);
extern void aq_pending_stopping(int32 id, int bits);
extern void aq_pending_revoked(int32 id);
extern bool aq_payload_type_is_uncommitted(Oid type);
extern bool aq_pending_has(int32 id);
extern bool aq_pending_is_created(int32 id);
extern bool aq_pending_is_converted(int32 id);
extern void aq_pending_set_ddl(void);
extern bool aq_pending_has_ddl(void);
extern int	aq_pending_list(const AqChange **list);
extern void aq_pending_subxact_end(bool commit, SubTransactionId subid, SubTransactionId parent,
								   void (*undo) (const AqChange *change));
extern bool aq_pending_end(bool commit);
extern int	aq_pending_take_revoked(const AqChange **list);

/* --- definition_clock.c */
extern Size aq_definition_clock_size(void);
extern void aq_definition_clock_init(void *area, bool found);
extern uint64 aq_definition_clock_now(void);
extern uint64 aq_definition_clock_tick(void);

/* --- description.c */
extern AqQueue *aq_description_read(Relation rel, const char *name, int32 id);
extern void aq_description_adopt_rules(AqQueue *queue, AqQueue *from);

/* --- grants.c: rights on single consumers */
extern bool aq_grants_allow(AqQueue *queue, const char *consumer);
extern bool aq_grants_exist(AqQueue *queue, const char *consumer);

/* --- notice.c */
extern void aq_notice_unknown_consumer(AqQueue *queue, const char *consumer);
extern void aq_notice_no_subscriber(const AqQueue *queue);
extern void aq_notice_long_wait(int64 wait_us);

/* --- privilege.c */
extern bool aq_privilege_manages_any(void);
extern bool aq_privilege_takes_part(void);

/* --- catalog.c */
extern void aq_catalog_init(void);
extern void aq_catalog_stale(void);
pg_noreturn extern void aq_catalog_refuse_consumer(AqQueue *queue, const char *consumer);
extern AqQueue *aq_catalog_get_again(int32 id, const char *name, AqRight right);
extern AqQueue *aq_catalog_for_delivery(AqQueue *queue, int delivery);
extern void aq_catalog_changed(void);	/* notifies every session at commit */
extern AqQueue *aq_catalog_read(int32 id);
extern bool aq_catalog_is_current(AqQueue *queue);

/* --- args.c: checks of users' arguments */
extern int	aq_args_delivery(FunctionCallInfo fcinfo, int arg);
extern int	aq_args_delivery_named(const char *name);

/* --- payload.c: payload types */
extern void aq_payload_check_type(Oid type);
extern Oid	aq_payload_type_owner(Oid type);

/* --- context.c */
extern void aq_context_init(void);

/* --- property.c */
extern void aq_property_init(void);

/* --- run_as.c: users' code in other roles' sessions */
extern void aq_run_as_init(void);
extern void aq_run_as_caller(void (*call) (void *arg), void *arg);
extern const char *aq_run_as_caller_path(void);
extern void aq_run_as_reading(Oid role, void (*call) (void *arg), void *arg);
extern bool aq_run_as_is_active(void);

/* --- rule.c: conditions over messages */
typedef enum AqRuleVariable
{
	AQ_RULE_PRIORITY = 1,
	AQ_RULE_CORRELATION,
	AQ_RULE_PROPERTIES,
	AQ_RULE_PAYLOAD,
	AQ_RULE_ENQUEUE_TIME,
	AQ_RULE_ATTEMPTS,
	AQ_RULE_SENDER,
	AQ_RULE_MSGID,
	AQ_RULE_PROPERTY_LAST = AQ_RULE_MSGID,	/* a field of the payload can hide the others */
	AQ_RULE_STATE,
	AQ_RULE_DELAY,
	AQ_RULE_EXPIRATION,
	AQ_RULE_EXCEPTION_QUEUE,
	AQ_RULE_ORIGINAL_MSGID,
	AQ_RULE_DEAD_LETTER,
	AQ_RULE_KEY,
	AQ_RULE_LAST = AQ_RULE_KEY
} AqRuleVariable;

extern AqRule *aq_rule_compile(AqQueue *queue, const char *text, Oid role, MemoryContext context);
extern Oid	aq_rule_role(Oid writer);
extern Oid	aq_rule_role_if_any(Oid writer);
extern AqRuleVariable aq_rule_variable(Oid payload_type, const char *name, Oid *type);
extern bool aq_rule_runs_user_code(const AqRule *rule);
extern bool aq_rule_may_raise(const AqRule *rule);
extern bool aq_rule_matches(AqRule *rule, const AqMessage *message);

/* --- rule_index.c: rules that compare with a constant */
extern void aq_rule_index_make(AqQueue *queue);
extern int	aq_rule_index_others(const AqQueue *queue, AqConsumer *const **others);
extern Bitmapset *aq_rule_index_find(const AqQueue *queue, const AqMessage *message, Bitmapset *positions);

/* --- sql.c */
extern List *aq_sql_texts(const char *query, int nargs, Oid *types, Datum *values, const char *nulls);

#endif							/* AQ_CATALOG_PRIVATE_H */
