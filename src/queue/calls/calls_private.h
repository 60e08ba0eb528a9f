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

#include "queue/calls.h"
#include "queue/definitions/definitions_private.h"

#include "lib/stringinfo.h"
#include "access/xlogdefs.h"
#include "utils/dsa.h"

/* --- use.c */
extern void aq_use_check_started(AqQueue *queue, bool enqueue);
extern AqQueue *aq_use_begin(AqQueue *queue, bool enqueue, bool *begins);
extern AqQueue *aq_use_settle(AqQueue *queue, bool *begins);
extern void aq_use_undo(AqQueue *queue);

/* --- unknown.c */
extern void aq_unknown_consumer(AqQueue *queue, const char *consumer);

/* --- lease_calls.c */
extern void aq_lease_calls_check(AqQueue *queue);
extern AqQueue *aq_lease_calls_with_dequeue(FunctionCallInfo fcinfo, int arg, AqQueue *queue, const char *consumer,
											bool *acknowledged);

/* --- message_options.c: options (jsonb) of single messages */
extern AqEnqueue *aq_message_options_read(const AqEnqueue *call, const struct varlena *options, int n);

/* --- move.c: common to all that moves messages */
extern struct varlena *aq_move_copy(const struct varlena *value);
extern struct varlena *aq_move_properties(const AqMessage *m);
extern struct varlena *aq_move_sender(struct varlena *last, const struct varlena *sender);
extern struct varlena *aq_move_exception_queue(const char *name, int32 target, Oid payload_type);
extern void aq_move_bodies(const char *source, int32 target, Oid payload_type, int n, const Datum *payloads,
						   const bool *nulls, const pg_uuid_t *from, pg_uuid_t *const *to);

/* --- match.c: subscribers by their rules */
extern void aq_match_subscribers(AqQueue *queue, const AqPutOptions *options, uint32 n, const Datum *payloads,
								 const bool *nulls, Bitmapset **targets);

/* --- wait.c */
extern bool aq_wait_until(AqQueue *const *queues, int n, const int *position, bool selective, uint32 key, int64 timeout_us,
						  bool (*attempt) (void *arg), void *arg);

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

typedef enum AqCallState
{
	AQ_CALL_NONE,
	AQ_CALL_IN_LINE,
	AQ_CALL_GRANTED,			/* has a helper */
	AQ_CALL_ANSWERED,
	AQ_CALL_LOST				/* its helper has ended */
} AqCallState;

extern Size aq_helper_area_size(void);
extern void aq_helper_area_init(void *place, bool found);
extern dsa_area *aq_helper_area_memory(void);
extern void aq_helper_pool_register(void);

/*
 * for a caller, in this order; after join, an error or the end of the session
 * leaves the pool
 */
extern void aq_helper_pool_join(const AqHelperKey *key, dsa_pointer request);
extern bool aq_helper_pool_wait(int *number, uint32 *serial);
extern void aq_helper_pool_registered(void);
extern int	aq_helper_pool_not_registered(void);
extern AqCallState aq_helper_pool_state(bool *connected, int *pid);
extern void aq_helper_pool_never_came(void);
extern void aq_helper_pool_cancel(void);
extern void aq_helper_pool_leave(void);

/* for a helper, in this order */
extern bool aq_helper_pool_is_helper(void);
extern bool aq_helper_pool_enter(int number, uint32 serial, AqHelperKey *key);
extern void aq_helper_pool_connected(void);
extern bool aq_helper_pool_next(dsa_pointer *request);
extern void aq_helper_pool_answers(void);
extern void aq_helper_pool_exit(void);

/* for others */
extern void aq_helper_pool_check(AqFindings *findings);

/* --- autonomous.c: a statement in a separate transaction */
#define AQ_CALL_ARGUMENTS 16

/* The helper's progress with a call. */
typedef enum AqCallPhase
{
	AQ_CALL_ASKED,
	AQ_CALL_BEGUN,
	AQ_CALL_COMMITTED
} AqCallPhase;

/* A request, in the memory of helper_area.c. */
typedef struct AqRequest
{
	/* written by the helper */
	pg_atomic_uint32 phase;
	XLogRecPtr	commit_end;		/* from AQ_CALL_COMMITTED on: where the WAL of the call ends */
	dsa_pointer answer;			/* invalid: none yet */
	/* by the caller */
	char		data[FLEXIBLE_ARRAY_MEMBER];
} AqRequest;

/* first byte of an answer */
#define AQ_ANSWER_ROWS 'R'
#define AQ_ANSWER_ERROR 'E'

extern const char *const aq_autonomous_settings[];
extern const int aq_autonomous_nsettings;
extern void aq_autonomous_init(void);
extern void aq_autonomous_check(void);

/* gets a row, in the memory context of the call */
typedef void (*AqEmitColumns) (void *arg, Datum *values, bool *nulls);

extern void aq_autonomous_rows(const char *sql, int nargs, const Oid *types, const Datum *values, const char *nulls,
							   int ncolumns, AqEmitColumns emit, void *arg);

/* --- immediate.c: by which process calls with immediate visibility are executed */
extern bool aq_immediate_argument(FunctionCallInfo fcinfo, int arg);
extern void aq_immediate_check_put(const AqQueue *queue);
extern void aq_immediate_taken(AqImmediate *immediate, const AqQueue *queue, int position, bool begins);
extern void aq_immediate_rows(FunctionCallInfo fcinfo, const char *sql, int nargs, int ncolumns, AqEmitColumns emit,
							  void *arg);
extern Datum aq_immediate_value(FunctionCallInfo fcinfo, const char *function, int nargs);

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
