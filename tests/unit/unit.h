/*-------------------------------------------------------------------------
 *
 * unit.h
 *	  The little that a unit test needs.
 *
 * A test is a function in the table of unit.c.  A seeded test runs once per
 * seed; a failure prints the command that repeats it.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AQ_UNIT_H
#define AQ_UNIT_H

#include "sync/common/held.h"
#include "sync/control/control.h"
#include "sync/latches/latch_int.h"
#include "sync/mutexes/mutex_int.h"
#include "sync/waits/event.h"
#include "sync/waits/wakeup.h"

typedef struct UnitTest
{
	const char *name;
	void		(*run) (void);
	bool		seeded;			/* once per seed, or once */
} UnitTest;

extern const UnitTest unit_tests[];

/* Reports a failure and leaves the test. */
extern void unit_fail(const char *file, int line, const char *fmt, ...)
			__attribute__((noreturn, format(printf, 3, 4)));

#define CHECK(cond) \
	do { if (!(cond)) unit_fail(__FILE__, __LINE__, "%s", #cond); } while (0)
#define CHECK_EQ(a, b) \
	do { \
		long long a_ = (long long) (a), b_ = (long long) (b); \
		if (a_ != b_) \
			unit_fail(__FILE__, __LINE__, "%s is %lld, %s is %lld", #a, a_, #b, b_); \
	} while (0)

/* Expects an assertion of the code under test to fail in the statement. */
extern bool unit_expect_assert;
extern bool unit_assert_seen;

extern uint64 unit_seed;

/* Fresh shared memory for n sessions. */
extern void unit_shared(int nsessions);
extern void unit_be(int session);

/* Calls of the functions of sync/common/os.c and event.c by the code under test. */
typedef struct UnitCounts
{
	int64		yields;
	int64		polls;
	int64		poll_ms;
	int64		sem_waits;
	int64		timed_waits;
	int64		posts;
	int64		pauses;
	int64		pauses_at_wait; /* when the latest wait began */
	int64		waits_begun;
	int64		waits_ended;
} UnitCounts;

extern AQ_LOCAL UnitCounts unit_counts;

#endif							/* AQ_UNIT_H */
