/*-------------------------------------------------------------------------
 *
 * base.h
 *	  The public header of part "base": shared memory areas, session slots,
 *	  clock, errors, test points, and everything that differs between server
 *	  versions.
 *
 * Of the headers of base, other parts may include only this one.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AQ_BASE_H
#define AQ_BASE_H

#include "postgres.h"

#include "base/compat.h"
#include "base/finding.h"
#include "base/rows.h"
#include "base/xact.h"
#include "port/atomics.h"

/*
 * A part of the extension.  module.c lists the parts in order; base walks
 * the list.  Any member but the name may be NULL.
 */
typedef struct AqPart
{
	const char *name;
	void		(*define_parameters) (void);	/* in _PG_init: GUCs, callbacks */
	Size		(*shmem_size) (void);	/* of the part's one area */
	void		(*shmem_init) (void *area, bool found); /* under AddinShmemInitLock */
	void		(*session_start) (void);	/* called when the session has attached */
	void		(*session_exit) (void); /* called at process exit, after the end of its transaction */
} AqPart;

extern void aq_part_init(const AqPart *const *parts, int nparts);

/* Allocates from a part's area; with area NULL, it only adds up the size. */
extern void *aq_part_carve(void *area, Size *at, Size size);

/*
 * Raises an error unless the library was loaded by shared_preload_libraries.
 */
extern void aq_session_require_preload(void);

/*
 * Raises an error for that reason, in a read-only or parallel transaction, and
 * on a standby.  command: the function's name, for the message.
 */
extern void aq_session_require_write(const char *command);

/* Raises an error if the extension in the database is newer than the library. */
extern void aq_version_check(void);
extern bool aq_version_has_keys(void);
extern bool aq_version_is_own(void);
extern bool aq_version_knows_keys(const char *version);
extern bool aq_version_is_older(const char *version);

/* --- Citus: see citus.c --------------------------------------------------- */

extern void aq_citus_find(void);
extern void aq_citus_keep_local(void);
extern void aq_citus_two_phase(void);

/* --- session slots ------------------------------------------------------
 *
 * Each backend or background worker has one slot.  Its index, 0 ..
 * aq_session_slots() - 1, is the number of the process's PGPROC, and so does
 * not change while the process lives.  (It is not MyBackendId of PostgreSQL 15
 * and 16.)
 */
typedef struct AqSession AqSession;

extern bool aq_session_is_attached;
extern int	aq_session_own_number;
extern void aq_session_attach_slow(void);

extern int	aq_session_slots(void); /* known from shmem_size() on */
extern struct PGPROC *aq_session_proc(int number);	/* NULL when not in use */
extern int	aq_session_pid(int number); /* 0 when not in use */
extern uint32 aq_session_serial(int number);	/* changes when another process uses the slot */
extern bool aq_session_in_transaction(int number);	/* false when not in use */
extern int	aq_session_count_in_transactions(void);
extern const int32 *aq_session_blockers(int pid, int *n);	/* pg_blocking_pids() */
extern int	aq_session_of_pid(int pid, Oid *role);	/* also if it has not attached; -1: no such process */

/*
 * Every SQL function calls it first.  Only a process's first call can raise an
 * error.
 */
static inline void
aq_session_attach(void)
{
	if (unlikely(!aq_session_is_attached))
		aq_session_attach_slow();
}

/* The slot of this process, which is attached if necessary. */
static inline int
aq_session_number(void)
{
	aq_session_attach();
	return aq_session_own_number;
}

extern uint32 aq_session_claims(int number);	/* how many claims the session has */

/* --- arrays ---------------------------------------------------------------
 *
 * Makes room for the needed number of elements in an array in
 * TopMemoryContext, which is initially NULL.  Returns the array, which may
 * have moved.  May raise an error.
 */
extern void *aq_array_grow(void *array, int *size, int needed, Size element);

static inline void *
aq_array_room(void *array, int *size, int needed, Size element)
{
	return likely(needed <= *size) ? array : aq_array_grow(array, size, needed, element);
}

/* --- claims ---------------------------------------------------------------
 *
 * States of shared memory that the session has claimed.  They are released
 * when the (sub)transaction rolls back or the session ends, even by FATAL,
 * which runs no PG_CATCH; see claim.c.
 *
 *		aq_claim_reserve(1);			may raise
 *		aq_latch_get(...);
 *		thing->loading = true;
 *		aq_claim_enter(end_loading, thing, 0);
 *		aq_latch_free(...);
 *		...								may raise, may be terminated
 *		aq_latch_get(...);
 *		thing->loading = false;
 *		aq_claim_end(end_loading, thing);
 *		aq_latch_free(...);
 *
 * A release neither raises nor allocates; it may take latches.
 */
typedef void (*AqClaimRelease) (void *object, int64 argument);

extern void aq_claim_reserve(int n);
extern void aq_claim_enter(AqClaimRelease release, void *object, int64 argument);
extern void aq_claim_end(AqClaimRelease release, const void *object);
extern void aq_claim_release(void);
extern void aq_claim_before_release(void (*callback) (void));

/* The most common claim: the session is counted in a counter. */
extern void aq_claim_count(pg_atomic_uint32 *counter);	/* may raise */
extern void aq_claim_uncount(pg_atomic_uint32 *counter);

/* --- clock --------------------------------------------------------------- */
extern int64 aq_clock_us(void); /* monotonic, microseconds */
extern bool aq_clock_was_set_back(void);	/* the time of day, since the first call in this process */

/* *next becomes the earlier of the two times; 0: never. */
static inline void
aq_clock_sooner(int64 *next, int64 time)
{
	if (time != 0 && (*next == 0 || time < *next))
		*next = time;
}
extern int64 aq_clock_ns(void); /* monotonic, nanoseconds */
extern int64 aq_clock_cpu_ns(void); /* CPU time of this process */
extern int64 aq_clock_cpu_ns_of(int pid);	/* of another process; -1: not known */

/* --- background workers --------------------------------------------------- */
struct BackgroundWorker;
struct dsm_segment;

extern void aq_process_init(struct BackgroundWorker *worker, const char *function, const char *type);
extern struct dsm_segment *aq_process_attach(Datum handle, const char *name);
extern void aq_process_set_parameter(const char *name, const char *value);
extern void aq_process_pin_parameter(const char *name, const char *value);
extern void aq_process_set_parameters(const char *application);
extern void aq_process_commit_safely(void);
extern void aq_process_register(const char *name, const char *function, bool on_standby);

/* --- clip.c: cutting texts, never inside a character --- */
extern int	aq_clip_length(const char *text, int length, int limit);
extern void aq_clip_copy(char *to, const char *text, size_t size);

/* --- errors ---------------------------------------------------------------
 *
 * Use inside ereport:
 *		ereport(ERROR, aq_error(AQ_ERR_QUEUE_UNDEFINED, "queue \"%s\" does not exist", name));
 * sets SQLSTATE and message.  In Oracle's form " (ORA-nnnnn)" is appended where
 * Oracle has a number; a hint that names functions or options is given in both
 * forms, with aq_error_hint().
 * The message is clipped; other texts with an argument of any length are passed
 * through aq_error_clip().
 */
typedef enum AqErrorId
{
#define X(id, code, sqlstate, ora, text) AQ_ERR_##id,
#include "base/errors_list.h"
#undef X
	AQ_ERR_COUNT
} AqErrorId;

extern bool aq_error_oracle;	/* pgaq.oracle_errors: errors have Oracle's form now */

extern int	aq_error(AqErrorId id, const char *fmt, ...) pg_attribute_printf(2, 3);
extern int	aq_error_limit(const char *message, const char *parameter);
extern const char *aq_error_clip(const char *text);
extern int	aq_error_hint(const char *native, const char *oracle);
extern bool aq_error_is(int sqlstate, AqErrorId id);
extern bool aq_error_is_of_user(int sqlstate);
extern bool aq_error_is_of_timed_user(int sqlstate);
extern int	aq_error_begin_oracle(void);
extern void aq_error_end_oracle(int nest);
extern int	aq_error_ora(AqErrorId id);
extern const char *aq_error_code(AqErrorId id);
extern const char *aq_error_sqlstate(AqErrorId id);
extern const char *aq_error_meaning(AqErrorId id);

/* --- test points ------------------------------------------------------------
 *
 * A named place in the code where a test can stop a session; compiled in with
 * TEST_POINTS=1 only.  A table in shared memory says what a session does there,
 * so a test can control any process, with the functions of sql/test_points.sql:
 *
 *		aq.point_hold(name)		every session that arrives from now on waits ...
 *		aq.point_release(name)	... until this is called; those that wait also go
 *								on when the point is held again
 *		aq.point_arm(name, action, skip)
 *								action, after skip arrivals: wait; or, once only,
 *								error, cancel, terminate or crash (SIGKILL)
 *		aq.point_reached(name)	arrivals since a test first used the name, or last
 *								held or armed the point
 *		aq.point_await(name, arrivals, seconds)
 *								waits until it has been reached that often
 *		aq.point_reset()		disarms all points and resets their counts
 *
 * The parameter pgaq.test_point = 'name:action[,name:action...]' arms points
 * for one session, which then acts each time it arrives.
 *
 * aq_point() is for places where an error may be raised.  aq_point_held() is
 * for places where it may not, such as under a latch or in a commit callback.
 * There, the action error does nothing, and cancel and terminate are served at
 * the next check for interrupts.
 */
#ifdef AQ_TEST_POINTS
extern void aq_point(const char *name);
extern void aq_point_held(const char *name);
#else
#define aq_point(name) ((void) 0)
#define aq_point_held(name) ((void) 0)
#endif

#endif							/* AQ_BASE_H */
