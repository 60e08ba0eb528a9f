/*-------------------------------------------------------------------------
 *
 * immediate_private.h
 *	  Declarations shared by the files of the folders "immediate" and "calls".
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AQ_IMMEDIATE_PRIVATE_H
#define AQ_IMMEDIATE_PRIVATE_H

#include "queue/calls.h"
#include "queue/memory/memory_private.h"

#include "access/xlogdefs.h"
#include "lib/stringinfo.h"
#include "utils/dsa.h"

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
#define AQ_CALL_ARGUMENTS 20

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

/*
 * State of the session that goes with each call to the helper, and back with the
 * answer.  Set by calls/position.c.
 */
typedef struct AqCarried
{
	void		(*write) (StringInfo buffer);
	void		(*read) (const char **cursor);	/* instead of what is there */
	void		(*forget) (void);
} AqCarried;

extern const AqCarried *aq_autonomous_carried;

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

#endif							/* AQ_IMMEDIATE_PRIVATE_H */
