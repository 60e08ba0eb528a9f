/*-------------------------------------------------------------------------
 *
 * calls.h
 *	  The third public header of part "queue": what the functions for users do,
 *	  for parts with other functions for users.
 *
 * The calls check names, privileges and options, and raise the errors that users
 * get.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AQ_CALLS_H
#define AQ_CALLS_H

#include "queue/queue.h"

#include "utils/array.h"
#include "utils/timestamp.h"

/*
 * --- enqueue.c
 *
 * What aq.enqueue is given beside the payload.  NULL: null.
 */
typedef struct AqEnqueue
{
	const char *command;		/* the function, for errors */
	char	   *queue;
	Oid			payload_type;	/* of the queue, or one that its input function reads */
	int			priority;
	bool		default_priority;	/* the queue's, if it has one, instead of this */
	bool		default_delay;	/* the queue's, if delay and run_at are NULL */
	bool		default_expiration; /* the queue's, if expiration is NULL */
	const Interval *delay;
	const TimestampTz *run_at;	/* instead of a delay */
	const Interval *expiration;
	struct varlena *correlation;	/* text */
	struct varlena *key;		/* text */
	bool		key_is_group;	/* see AqPutOptions */
	List	   *recipients;		/* of names; NIL: the subscribers */
	struct varlena *sender;		/* text */
	struct varlena *exception_queue;	/* text */
	struct varlena *properties; /* jsonb */
	pg_uuid_t  *relative_msgid;
	const char *deviation;
	const char *delivery_mode;
	int64		producer;		/* see producer.c; 0: none */
	uint64		affinity;		/* a hash; 0: none */
	struct varlena *dead_letter;	/* jsonb: of a message that is put back into an exception queue */
	const pg_uuid_t *original_id;	/* of a message that comes from another queue */
	int			held;			/* see AqPutOptions */
	bool		on_commit;		/* Oracle's visibility, which a non-persistent queue does not have */
	bool		immediate;		/* committed when the call returns: set by aq_immediate_put_here */
	bool		unlimited;		/* also into a full queue: see AqQueue.max_depth */
	bool		enqueued_before;	/* the messages come from another queue; see trace_context.c, message_key.c */
	const struct AqEnqueue *each;	/* for aq_enqueue_messages: NULL, or the arguments of each message */
} AqEnqueue;

extern Jsonb *aq_message_key_into_properties(Jsonb *properties, const struct varlena *key);
extern pg_uuid_t *aq_enqueue_message(const AqEnqueue *call, Datum payload, bool isnull);
extern pg_uuid_t **aq_enqueue_messages(const AqEnqueue *call, int n, const Datum *payloads, const bool *isnull);
extern ArrayType *aq_enqueue_ids_to_array(pg_uuid_t *const *ids, int n);
extern Oid	aq_enqueue_reading_role(AqQueue *queue);

/* --- message_options.c: options (jsonb) of single messages */
extern AqEnqueue *aq_message_options_read(const AqEnqueue *call, const struct varlena *options, int n);

/*
 * --- dequeue.c
 *
 * A dequeue that does not wait; emit gets each message, which is good during the
 * callback only, and its delivery mode.  It can be one of several attempts of a
 * call, so the caller counts the call (AQ_STAT_DEQUEUE_CALLS).
 */
typedef struct AqDequeue
{
	const char *queue;
	Oid			payload_type;	/* must be the queue's */
	const char *consumer;		/* NULL: none */
	int			max;
	AqMode		mode;
	text	   *correlation;	/* NULL: any */
	text	   *key;			/* NULL: any */
	text	   *condition;		/* NULL: none */
	bool		(*filter) (void *arg, const AqMessage *message);	/* NULL: none */
	void	   *filter_arg;
	const pg_uuid_t *id;		/* NULL: any */
	const char *navigation;		/* NULL: none */
	int			delivery;
	const pg_uuid_t *after;		/* NULL: from the head; only to browse */
	int64		lease;			/* microseconds; 0: none */
	bool		ends;			/* see AqTakeOptions */
	bool		patient;		/* see AqTakeOptions */
	bool		ungated;		/* also while the queue is paused */
	AqSeen	   *seen;			/* the same for all attempts of a call that waits; NULL: none */
	int			unit;			/* see AqTakeOptions */
	AqImmediate *immediate;		/* the caller ends it by aq_immediate_settle(); NULL: the transaction's end does */
	void		(*emit) (void *arg, const AqMessage *message, int delivery);
	void	   *arg;
} AqDequeue;

extern bool aq_dequeue_now(const AqDequeue *call);

/* --- lease_calls.c */
extern char *aq_lease_calls_error(FunctionCallInfo fcinfo, int arg);
extern AqLeaseResult *aq_lease_calls_settle(const char *command, const char *queue_name, const char *consumer,
											AqLeaseOptions *options, const pg_uuid_t *ids, int n);

/* --- wait.c: what an attempt for several pairs has taken. */
typedef struct AqWaitTaken
{
	int			pair;			/* number of the pair; -1: nothing */
	int			messages;
} AqWaitTaken;

/*
 * For procedures: waits without a snapshot. attempt() takes messages, with its
 * own snapshot, and returns whether there were any.
 */
extern bool aq_wait_released(char *queue, char *consumer, int delivery, bool selective, uint32 key, int64 timeout_us,
							 bool (*attempt) (void *arg), void *arg);
extern bool aq_wait_released_any(int n, char **queues, char **consumers, const bool *selective, const int *most,
								 int64 timeout_us, bool (*attempt) (void *arg), void *arg, const AqWaitTaken *taken);
extern int	aq_wait_listen_released(int n, char **queues, char **consumers, int *delivery, int64 timeout_us);

/* --- immediate.c: by which process calls with immediate visibility are executed */
extern bool aq_immediate_is_alone(FunctionCallInfo fcinfo);
extern void aq_immediate_commit(void);
extern bool aq_immediate_put_here(AqEnqueue *call);
extern bool aq_immediate_take_here(const AqQueue *queue, int delivery);
extern void aq_immediate_settle(AqImmediate *immediate);
extern void aq_immediate_row(FunctionCallInfo fcinfo, const char *sql, int nargs, int ncolumns, Datum *values,
							 bool *nulls);

#endif							/* AQ_CALLS_H */
