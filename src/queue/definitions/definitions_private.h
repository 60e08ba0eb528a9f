/*-------------------------------------------------------------------------
 *
 * definitions_private.h
 *	  Declarations shared by the files of folder "definitions" and of those that may use it.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AQ_DEFINITIONS_PRIVATE_H
#define AQ_DEFINITIONS_PRIVATE_H

#include "queue/memory/memory_private.h"

extern AqQueue *aq_ddl_queue(const char *name, LOCKMODE mode);
extern AqQueue *aq_ddl_queue_for(const char *name, AqRight right, LOCKMODE mode);
extern bool aq_ddl_possible_here(AqQueue *queue);
extern void aq_ddl_by_worker(AqQueue *queue, AqRight right,
							 bool (*done) (AqQueue *queue, const char *arg),
							 void (*ask) (AqQueueShm *shm, const char *arg), const char *arg);

/* --- admin.c */
extern void aq_admin_drop(const char *name, bool force);

/* --- buffered.c */
extern AqQueue *aq_buffered_ensure(AqQueue *queue, int delivery);
extern void aq_buffered_job(int32 id, AqQueueShm *shm);
extern void aq_buffered_drop(const char *name, bool force);

/* --- unique.c */
typedef struct AqUniqueRow
{
	int64		generation;
	pg_uuid_t	msgid;
	TimestampTz until;			/* infinity: until the message is done */
	TimestampTz created;
	ItemPointerData tid;
	TransactionId xid;			/* that inserted it */
} AqUniqueRow;

extern void aq_unique_lock(int32 id, const char *key);
extern bool aq_unique_find(const AqQueue *queue, const char *key, AqUniqueRow *row);
extern void aq_unique_put(int32 id, const char *key, const AqUniqueRow *before, const pg_uuid_t *msgid, TimestampTz until);
extern void aq_unique_note(AqQueueShm *shm);
extern void aq_unique_job(int32 id, AqQueueShm *shm);

/* --- queue_row.c */
typedef struct AqQueueRow
{
	bool		set[AQ_QUEUE_COLUMNS];	/* columns that are given here */
	bool		nulls[AQ_QUEUE_COLUMNS];
	Datum		values[AQ_QUEUE_COLUMNS];
} AqQueueRow;

/* Has the call given this column a value? */
static inline bool
aq_queue_row_has(const AqQueueRow *row, AqQueueColumn column)
{
	return row->set[column] && !row->nulls[column];
}

extern void aq_queue_row_set(AqQueueRow *row, AqQueueColumn column, Datum value, bool isnull);
extern void aq_queue_row_check_limit(const char *name, bool sharded, bool distributed);
extern void aq_queue_row_check_limits(const AqQueueRow *row, bool sharded, bool distributed);
extern void aq_queue_row_refuse_depth(const AqQueueRow *row);
extern bool aq_queue_row_read(AqQueueRow *row, FunctionCallInfo fcinfo, bool alters, bool sharded);
extern void aq_queue_row_insert(const AqQueueRow *row);
extern void aq_queue_row_update(const AqQueueRow *row, int32 id);

/* --- definition.c */
typedef struct AqQueueDefinition
{
	const char *name;
	Oid			owner;
	Oid			payload_type;
	bool		multi;
	int			shards;
	int32		exception_queue_id; /* 0: none */
	int32		queue_table_id; /* 0: sharded */
	bool		exception;
	bool		non_persistent;
	bool		default_exception;	/* make a default exception queue for it */
	bool		temporary;		/* it belongs to the session, and PUBLIC may enqueue */
	AqQueueRow	row;			/* its properties and its comment; of those not set, the default of the column */
} AqQueueDefinition;

extern void aq_definition_init(void);
extern bool aq_definition_reserve_name(const char *name);
pg_noreturn extern void aq_definition_refuse_name(const char *name);
extern void aq_definition_create(const AqQueueDefinition *definition);
extern void aq_definition_drop(List *names, bool force);
extern char *aq_definition_exceptions_name(const char *name);
extern char *aq_definition_default_exceptions(int32 id);
extern void aq_definition_refuse_rights(const AqQueue *queue);

/* --- queue_table.c */
typedef struct AqQueueTableRow
{
	int32		id;
	Oid			payload_type;
	bool		multi;
	int32		exception_queue_id; /* id of its own exception queue */
} AqQueueTableRow;

extern void aq_queue_table_check_schema(const char *name);
extern AqQueueTableRow aq_queue_table_get(const char *name, bool must_own);

/* --- temporary.c */
extern void aq_temporary_enter_queue(int32 queue_id);
extern void aq_temporary_enter_consumer(int32 queue_id, const char *consumer);
extern void aq_temporary_forget_queue(int32 queue_id);
extern void aq_temporary_forget_consumer(int32 queue_id, int64 consumer);
extern bool aq_temporary_forget_session(int32 queue_id, int64 consumer, int64 session);
extern bool aq_temporary_is_consumer(int32 queue_id, int64 consumer);
extern bool aq_temporary_is_queue(int32 queue_id);
extern void aq_temporary_check_limit(void);
extern char *aq_temporary_new_name(void);

/* --- rights.c */
extern void aq_rights_subscribed(AqQueue *queue, const char *consumer);
extern void aq_rights_unsubscribed(AqQueue *queue, const char *consumer);

/* --- subscriber.c */
extern void aq_subscriber_take_away(AqQueue *queue, AqConsumer consumer);
extern void aq_subscriber_pause(FunctionCallInfo fcinfo, const char *command, const char *by, Datum reason, bool no_reason);
extern bool aq_subscriber_insert_recipient(AqQueue *queue, const char *name);
extern bool aq_subscriber_positions_free(int32 id, AqQueueShm *shm);
extern void aq_subscriber_positions_job(int32 id, AqQueueShm *shm);

/* --- recipient.c */
extern void aq_recipient_add(AqQueue *queue, const char *name);
extern AqQueue *aq_recipient_settle(AqQueue *queue, const char *name, AqRight right);
extern void aq_recipient_job(int32 id, AqQueueShm *shm);
extern void aq_recipient_idle_job(int32 id, AqQueueShm *shm);

/* --- stop.c */
extern void aq_stop_wait_for_users(AqQueue *queue, bool enqueue, bool dequeue);

/* --- convert.c */
extern const AqStore aq_convert_store;
extern void aq_convert_job(int32 id, AqQueueShm *shm);

/* --- guard.c */
extern void aq_guard_init(void);

/* --- view_guard.c */
extern void aq_view_guard_init(void);

/* --- message_qual.c */
extern void aq_message_qual_init(void);

/* --- restored.c */
extern int64 aq_restored_pause(void);
extern List *aq_restored_complete(List *ids, bool *all);

/* --- temporary_end.c */
extern void aq_temporary_end_init(void);

/* --- upkeep.c */
extern void aq_upkeep_init(void);

#endif							/* AQ_DEFINITIONS_PRIVATE_H */
