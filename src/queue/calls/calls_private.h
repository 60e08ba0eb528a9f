/*-------------------------------------------------------------------------
 *
 * calls_private.h
 *	  Declarations shared by the files of folder "calls" and of those that may use it.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AQ_CALLS_PRIVATE_H
#define AQ_CALLS_PRIVATE_H

#include "queue/definitions/definitions_private.h"
#include "queue/immediate/immediate_private.h"

/* --- use.c */
extern void aq_use_check_started(AqQueue *queue, bool enqueue);
extern AqQueue *aq_use_begin(AqQueue *queue, bool enqueue, bool *begins);
extern AqQueue *aq_use_settle(AqQueue *queue, bool *begins);
extern void aq_use_undo(AqQueue *queue);

/* --- lease_calls.c */
extern void aq_lease_calls_check(AqQueue *queue);
extern AqQueue *aq_lease_calls_with_dequeue(FunctionCallInfo fcinfo, int arg, AqQueue *queue, const char *consumer,
											bool *acknowledged);

/* --- properties.c: strings among the properties of a message */
extern Jsonb *aq_properties_set(Jsonb *properties, const char *name, const char *string, int length);
extern Jsonb *aq_properties_of_payload(Datum payload);
extern Datum aq_properties_into_payload(Datum payload, const Jsonb *properties);
extern AqEnqueue *aq_properties_each(const AqEnqueue *call, int n);

/* --- message_key.c: keys of messages */
/* keys and unique keys are shown in views, and typed by operators */
#define AQ_KEY_MAX_BYTES 512

extern struct varlena *aq_message_key_check(struct varlena *key);
extern bool aq_message_key_is(const struct varlena *key, const text *wanted);
extern const AqEnqueue *aq_message_key_agree(const AqQueue *queue, const AqEnqueue *call, int n, Datum *payloads, const bool *nulls);

/* --- match.c: subscribers by their rules */
extern void aq_match_subscribers(AqQueue *queue, const AqPutOptions *options, uint32 n, const Datum *payloads,
								 const bool *nulls, Bitmapset **targets);

/* --- trace_context.c */
extern void aq_trace_context_define(void);
extern bool aq_trace_context_differs(const AqEnqueue *call, const AqQueue *queue, int n, const bool *nulls);
extern void aq_trace_context_add(const AqEnqueue *call, const AqQueue *queue, AqPutOptions *options, int noptions,
								 int n, Datum *values, const bool *nulls);

/* --- metrics.c */
extern AqMeasure *aq_metrics_measures(AqQueue *queue, bool all, int *n);
extern void aq_metrics_ask_stores(AqQueue *queue, AqMeasure *measures, int n, bool quick);
extern int64 aq_metrics_in_flight(AqQueueShm *shm, AqConsumerShm *consumer, const AqMeasure *measure);

/* --- history.c */
extern void aq_history_init(void);

/* --- wait.c */
extern bool aq_wait_until(AqQueue *const *queues, int n, const int *position, const AqEvent *event,
						  bool selective, uint32 key, bool channel, int64 timeout_us,
						  bool (*attempt) (void *arg), void *arg);

/* --- position.c: navigation */
typedef struct AqPosition AqPosition;

typedef struct AqNavigation
{
	bool		given;
	bool		first;			/* start at the head */
	bool		transaction;	/* go to the next group */
	bool		groups;			/* continue over the ends of groups */
	AqPosition *position;		/* NULL: no position is kept */
} AqNavigation;

extern AqNavigation aq_position_begin(AqQueue *queue, AqTakeOptions *take, const char *name,
									  const char *consumer, const char *correlation);
extern void aq_position_moved(const AqNavigation *navigation, const AqMessage *message,
							  const char *consumer, const char *correlation);
extern bool aq_position_rewind(AqQueue *queue, const AqNavigation *navigation, AqTakeOptions *take);
extern void aq_position_none(const AqNavigation *navigation);

extern void aq_position_init(void);

/* --- cancel.c */
extern bool aq_cancel_message(AqQueue *queue, const pg_uuid_t *id, uint32 unfinished);

/* --- enqueue_unique.c */
typedef struct AqUniqueOptions
{
	char	   *key;
	int64		span;			/* microseconds for which the key is in force; -1: until the message is done */
	char	   *on_conflict;	/* ignore, error or replace */
} AqUniqueOptions;

extern pg_uuid_t *aq_enqueue_unique(const AqEnqueue *call, Datum payload, bool isnull, const AqUniqueOptions *options, bool *is_new);

#endif							/* AQ_CALLS_PRIVATE_H */
