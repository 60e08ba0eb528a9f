/*-------------------------------------------------------------------------
 *
 * point.c
 *	  Test points: named places where a test can stop a session; in builds with
 *	  TEST_POINTS=1 only.
 *
 * The table of names is in shared memory, so that a test can arm a point for
 * another process, such as a background worker or a session in a commit
 * callback.  A name is added to the table when a test first uses it.  While
 * the table is empty, a point costs one read of shared memory; arrivals at
 * points that are not in it are not counted.
 *
 * A waiting session checks every millisecond whether it was released.  The
 * extension itself does not poll anywhere, but here polling works at every
 * place where a point may be: in a commit callback or under a latch, without
 * an allocation, an error or a lock.  Interrupts are served where the caller
 * allows them.
 *
 * In a release build this file is empty.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "base/base_int.h"

#ifndef AQ_TEST_POINTS

Size
aq_point_shmem_size(void)
{
	return 0;
}

void
aq_point_shmem_init(void *area, bool found)
{
}

void
aq_point_define_parameters(void)
{
}

#else

#include <signal.h>
#include <unistd.h>

#include "fmgr.h"
#include "storage/spin.h"
#include "utils/builtins.h"
#include "utils/guc.h"

#define MAX_POINTS	64

typedef enum PointAction
{
	POINT_NONE,
	POINT_WAIT,
	POINT_ERROR,
	POINT_CANCEL,
	POINT_TERMINATE,
	POINT_CRASH
} PointAction;

typedef struct Point
{
	char		name[NAMEDATALEN];
	PointAction action;
	int			sqlstate;		/* of the action error */
	int			skip;			/* arrivals to ignore before the action */
	int64		reached;		/* arrivals since the last hold, arm or reset */
	int64		waiting;		/* sessions that wait here */
	uint64		released;		/* incremented by each release; a waiting session compares it */
} Point;

typedef struct PointTable
{
	pg_atomic_uint32 count;		/* number of entries; read without the lock */
	slock_t		lock;			/* protects the following members */
	Point		points[MAX_POINTS];
} PointTable;

static PointTable *table = NULL;
static char *session_points = NULL;

Size
aq_point_shmem_size(void)
{
	return sizeof(PointTable);
}

void
aq_point_shmem_init(void *area, bool found)
{
	table = area;
	if (found)
		return;
	memset(table, 0, sizeof(PointTable));
	pg_atomic_init_u32(&table->count, 0);
	SpinLockInit(&table->lock);
}

void
aq_point_define_parameters(void)
{
	DefineCustomStringVariable("pgaq.test_point",
							   "Test points armed for this session, as name:action, separated by commas.",
							   NULL,
							   &session_points, "",
							   PGC_SUSET, GUC_NOT_IN_SAMPLE,
							   NULL, NULL, NULL);
}

/* Caller holds the lock. */
static Point *
find(const char *name, bool create)
{
	uint32		n = pg_atomic_read_u32(&table->count);

	for (uint32 i = 0; i < n; i++)
	{
		if (strcmp(table->points[i].name, name) == 0)
			return &table->points[i];
	}
	if (!create || n == MAX_POINTS)
		return NULL;
	memset(&table->points[n], 0, sizeof(Point));
	strlcpy(table->points[n].name, name, NAMEDATALEN);
	pg_atomic_write_u32(&table->count, n + 1);
	return &table->points[n];
}

/* An error can have a SQLSTATE: "error=53200". */
static PointAction
parse_action(const char *text, size_t len, int *sqlstate)
{
	static const char *const words[] = {
		[POINT_WAIT] = "wait",
		[POINT_ERROR] = "error",
		[POINT_CANCEL] = "cancel",
		[POINT_TERMINATE] = "terminate",
		[POINT_CRASH] = "crash",
	};

	*sqlstate = ERRCODE_INTERNAL_ERROR;
	if (len == strlen("error=XX000") && strncmp(text, "error=", 6) == 0)
	{
		*sqlstate = MAKE_SQLSTATE(text[6], text[7], text[8], text[9], text[10]);
		return POINT_ERROR;
	}
	for (int action = POINT_WAIT; action < lengthof(words); action++)
		if (strlen(words[action]) == len && strncmp(text, words[action], len) == 0)
			return action;
	return POINT_NONE;
}

/*
 * The action that pgaq.test_point gives for this point.  Malformed values are
 * ignored.
 */
static PointAction
session_action(const char *name, int *sqlstate)
{
	const char *p = session_points;
	size_t		len = strlen(name);

	while (p != NULL && *p != '\0')
	{
		size_t		item = strcspn(p, ",");

		while (*p == ' ')
		{
			p++;
			item--;
		}
		if (item > len + 1 && strncmp(p, name, len) == 0 && p[len] == ':')
			return parse_action(p + len + 1, item - len - 1, sqlstate);
		p += item;
		if (*p == ',')
			p++;
	}
	return POINT_NONE;
}

static void
wait_for_release(Point *point, uint64 released)
{
	for (;;)
	{
		bool		over;

		SpinLockAcquire(&table->lock);
		over = (point->released != released);
		if (over)
			point->waiting--;
		SpinLockRelease(&table->lock);
		if (over)
			return;
		if (InterruptPending && InterruptHoldoffCount == 0 && CritSectionCount == 0)
		{
			SpinLockAcquire(&table->lock);
			point->waiting--;
			SpinLockRelease(&table->lock);
			CHECK_FOR_INTERRUPTS();
			SpinLockAcquire(&table->lock);
			point->waiting++;
			SpinLockRelease(&table->lock);
		}
		pg_usleep(1000L);
	}
}

/*
 * Has the effect of a signal, in every kind of process, whatever its SIGTERM
 * handler does.
 */
static void
interrupt(bool terminate, bool held)
{
	if (terminate)
		ProcDiePending = true;
	else
		QueryCancelPending = true;
	InterruptPending = true;
	if (!held)
		CHECK_FOR_INTERRUPTS();
}

static void
pass(const char *name, bool held)
{
	PointAction action = POINT_NONE;
	PointAction own = POINT_NONE;
	int			sqlstate = ERRCODE_INTERNAL_ERROR;
	Point	   *point;
	uint64		released = 0;

	if (table == NULL)
		return;
	if (session_points != NULL && session_points[0] != '\0')
		own = session_action(name, &sqlstate);
	if (own == POINT_NONE && pg_atomic_read_u32(&table->count) == 0)
		return;

	SpinLockAcquire(&table->lock);
	point = find(name, own != POINT_NONE);
	if (point != NULL)
	{
		point->reached++;
		if (point->action != POINT_NONE && point->skip > 0)
			point->skip--;
		else
		{
			action = point->action;
			sqlstate = action == POINT_NONE ? sqlstate : point->sqlstate;
		}
		if (action != POINT_NONE && action != POINT_WAIT)
			point->action = POINT_NONE;
		if (action == POINT_NONE)
			action = own;
		if (action == POINT_WAIT)
		{
			released = point->released;
			point->waiting++;
		}
	}
	SpinLockRelease(&table->lock);

	switch (action)
	{
		case POINT_NONE:
			break;
		case POINT_WAIT:
			wait_for_release(point, released);
			break;
		case POINT_ERROR:
			if (!held)
				ereport(ERROR,
						(errcode(sqlstate),
						 errmsg("test point \"%s\"", name)));
			break;
		case POINT_CANCEL:
		case POINT_TERMINATE:
			interrupt(action == POINT_TERMINATE, held);
			break;
		case POINT_CRASH:
			kill(getpid(), SIGKILL);
			pause();
			break;
	}
}

void
aq_point(const char *name)
{
	pass(name, false);
}

void
aq_point_held(const char *name)
{
	pass(name, true);
}

/* --- the SQL functions of sql/test_points.sql ------------------------------ */

/* Returns with the lock held. */
static Point *
lock_named(FunctionCallInfo fcinfo)
{
	char	   *name = text_to_cstring(PG_GETARG_TEXT_PP(0));
	Point	   *point;

	aq_session_require_preload();
	SpinLockAcquire(&table->lock);
	point = find(name, true);
	if (point == NULL)
	{
		SpinLockRelease(&table->lock);
		elog(ERROR, "there are more than %d test points", MAX_POINTS);
	}
	return point;
}

/*
 * Hold and arm restart the count, so that a test does not take an earlier arrival for
 * the one that it waits for.
 */
PG_FUNCTION_INFO_V1(aq_point_hold);
Datum
aq_point_hold(PG_FUNCTION_ARGS)
{
	Point	   *point = lock_named(fcinfo);

	point->action = POINT_WAIT;
	point->skip = 0;
	point->reached = 0;
	point->released++;
	SpinLockRelease(&table->lock);
	PG_RETURN_VOID();
}

PG_FUNCTION_INFO_V1(aq_point_release);
Datum
aq_point_release(PG_FUNCTION_ARGS)
{
	Point	   *point = lock_named(fcinfo);

	point->action = POINT_NONE;
	point->released++;
	SpinLockRelease(&table->lock);
	PG_RETURN_VOID();
}

PG_FUNCTION_INFO_V1(aq_point_arm);
Datum
aq_point_arm(PG_FUNCTION_ARGS)
{
	char	   *word = text_to_cstring(PG_GETARG_TEXT_PP(1));
	int32		skip = PG_GETARG_INT32(2);
	int			sqlstate;
	PointAction action = parse_action(word, strlen(word), &sqlstate);
	Point	   *point;

	if (action == POINT_NONE)
		elog(ERROR, "the action of a test point is wait, error, cancel, terminate or crash, not \"%s\"", word);
	point = lock_named(fcinfo);
	point->action = action;
	point->sqlstate = sqlstate;
	point->skip = skip;
	point->reached = 0;
	SpinLockRelease(&table->lock);
	PG_RETURN_VOID();
}

PG_FUNCTION_INFO_V1(aq_point_reached);
Datum
aq_point_reached(PG_FUNCTION_ARGS)
{
	Point	   *point = lock_named(fcinfo);
	int64		reached = point->reached;

	SpinLockRelease(&table->lock);
	PG_RETURN_INT64(reached);
}

PG_FUNCTION_INFO_V1(aq_point_waiting);
Datum
aq_point_waiting(PG_FUNCTION_ARGS)
{
	Point	   *point = lock_named(fcinfo);
	int64		waiting = point->waiting;

	SpinLockRelease(&table->lock);
	PG_RETURN_INT64(waiting);
}

/* Returns true when that many sessions have arrived, false on timeout. */
PG_FUNCTION_INFO_V1(aq_point_await);
Datum
aq_point_await(PG_FUNCTION_ARGS)
{
	int64		arrivals = PG_GETARG_INT64(1);
	int64		end = aq_clock_us() + (int64) PG_GETARG_INT32(2) * USECS_PER_SEC;

	for (;;)
	{
		Point	   *point = lock_named(fcinfo);
		bool		enough = (point->reached >= arrivals);

		SpinLockRelease(&table->lock);
		if (enough || aq_clock_us() >= end)
			PG_RETURN_BOOL(enough);
		CHECK_FOR_INTERRUPTS();
		pg_usleep(1000L);
	}
}

/* Waits at the point as a function does that never looks at interrupts. */
PG_FUNCTION_INFO_V1(aq_point_uninterrupted);
Datum
aq_point_uninterrupted(PG_FUNCTION_ARGS)
{
	HOLD_INTERRUPTS();
	aq_point_held(text_to_cstring(PG_GETARG_TEXT_PP(0)));
	RESUME_INTERRUPTS();
	PG_RETURN_BOOL(true);
}

/* Names stay in the table, because waiting sessions point to their entries. */
PG_FUNCTION_INFO_V1(aq_point_reset);
Datum
aq_point_reset(PG_FUNCTION_ARGS)
{
	aq_session_require_preload();
	SpinLockAcquire(&table->lock);
	for (uint32 i = 0; i < pg_atomic_read_u32(&table->count); i++)
	{
		table->points[i].action = POINT_NONE;
		table->points[i].reached = 0;
		table->points[i].released++;
	}
	SpinLockRelease(&table->lock);
	PG_RETURN_VOID();
}

#endif							/* AQ_TEST_POINTS */
