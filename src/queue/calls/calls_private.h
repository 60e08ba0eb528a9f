/*-------------------------------------------------------------------------
 *
 * calls_private.h
 *	  Declarations shared by the files of room "calls" and the rooms above.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AQ_CALLS_PRIVATE_H
#define AQ_CALLS_PRIVATE_H

#include "queue/definitions/definitions_private.h"

#include "lib/stringinfo.h"
#include "storage/dsm_impl.h"

/* --- use.c */
extern void aq_use_check_started(AqQueue *queue, bool enqueue);
extern AqQueue *aq_use_begin(AqQueue *queue, bool enqueue, bool *begins);
extern AqQueue *aq_use_settle(AqQueue *queue, bool *begins);
extern void aq_use_undo(AqQueue *queue);

/* --- unknown.c */
extern void aq_unknown_consumer(AqQueue *queue, const char *consumer);

/* --- lease_calls.c */
extern void aq_lease_calls_check(AqQueue *queue);

/* --- enqueue.c */
extern Oid	aq_enqueue_reading_role(AqQueue *queue);

/* --- match.c: subscribers by their rules */
extern void aq_match_subscribers(AqQueue *queue, const AqPutOptions *options, uint32 n, const Datum *payloads,
								 const bool *nulls, Bitmapset **targets);

/* --- wait.c */
extern bool aq_wait_until(AqQueue *const *queues, int n, const int *position, bool selective, int64 timeout_us,
						  bool (*attempt) (void *arg), void *arg);

/*
 * For procedures: waits without a snapshot. attempt() checks, with its own
 * snapshot; returns the number of the pair that has a message, or -1.
 */
extern bool aq_wait_released(char *queue, char *consumer, int delivery, bool selective, int64 timeout_us,
							 bool (*attempt) (void *arg), void *arg);
extern void aq_wait_call_ahead(void (*call) (void *arg), void *arg);
extern int	aq_wait_listen_released(int n, char **queues, char **consumers, int *delivery, int64 timeout_us);

/* --- wire.c: values passed to another process; reading moves the cursor */
extern void aq_wire_put(StringInfo buffer, const void *data, Size size);
extern void aq_wire_put_string(StringInfo buffer, const char *string);
extern void aq_wire_put_int(StringInfo buffer, int value);
extern void aq_wire_put_oid(StringInfo buffer, Oid oid);
extern void aq_wire_put_datum(StringInfo buffer, Datum value, bool isnull, Oid type);
extern void aq_wire_get(const char **cursor, void *data, Size size);
extern const char *aq_wire_get_string(const char **cursor);
extern int	aq_wire_get_int(const char **cursor);
extern Oid	aq_wire_get_oid(const char **cursor);
extern Datum aq_wire_get_datum(const char **cursor, bool *isnull);

/* --- helper_pool.c: background workers that execute calls with immediate visibility */
typedef struct AqHelperKey
{
	Oid			database;
	Oid			login;			/* authenticated user */
	Oid			session;		/* session_user */
	Oid			current;		/* current_user */
} AqHelperKey;

extern Size aq_helper_area_size(void);
extern void aq_helper_area_init(void *place, bool found);
extern void aq_helper_pool_register(void);

/*
 * for a caller, in this order; after join, an error or the end of the session
 * leaves the pool
 */
extern void aq_helper_pool_join(const AqHelperKey *key);
extern bool aq_helper_pool_wait(int *number, uint32 *serial);
extern void aq_helper_pool_registered(void);
extern int	aq_helper_pool_not_registered(void);
extern bool aq_helper_pool_hand_over(dsm_handle request);
extern bool aq_helper_pool_lost(bool *connected);
extern int	aq_helper_pool_pid(void);
extern void aq_helper_pool_never_came(void);
extern void aq_helper_pool_cancel(void);
extern void aq_helper_pool_leave(void);

/* for a helper, in this order */
extern bool aq_helper_pool_enter(int number, uint32 serial, AqHelperKey *key);
extern void aq_helper_pool_connected(void);
extern bool aq_helper_pool_next(dsm_handle *request);
extern void aq_helper_pool_answers(void);
extern void aq_helper_pool_done(void);
extern void aq_helper_pool_exit(void);

/* for others */
extern void aq_helper_pool_check(AqFindings *findings);

/* --- autonomous.c: a statement in a separate transaction */
#define AQ_CALL_ARGUMENTS 8

/* The helper's progress with a call. */
typedef enum AqCallPhase
{
	AQ_CALL_ASKED,
	AQ_CALL_BEGUN,
	AQ_CALL_COMMITTED
} AqCallPhase;

/* At the beginning of the shared memory of a call. */
typedef struct AqCallHeader
{
	pg_atomic_uint32 phase;		/* written by the helper */
	Size		ring;			/* offset of the message queue for the answer */
	char		request[FLEXIBLE_ARRAY_MEMBER];
} AqCallHeader;

static inline struct shm_mq *
aq_call_ring(AqCallHeader *header)
{
	return (struct shm_mq *) ((char *) header + header->ring);
}

/* first byte of an answer */
#define AQ_ANSWER_ROW 'R'
#define AQ_ANSWER_ERROR 'E'

extern const char *const aq_autonomous_settings[];
extern const int aq_autonomous_nsettings;
extern void aq_autonomous_call(const char *sql, int nargs, const Oid *types, const Datum *values,
							   const char *nulls, int ncolumns, Datum *results, bool *isnull);

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

/* all positions of the session, to its helper and back */
extern void aq_position_export(StringInfo buffer);
extern void aq_position_import(const char **cursor);
extern void aq_position_forget(void);

#endif							/* AQ_CALLS_PRIVATE_H */
