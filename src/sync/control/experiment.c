/*-------------------------------------------------------------------------
 *
 * experiment.c
 *	  For the lab: measures a get and a free of a latch or mutex without
 *	  contention, compared with the server's own locks; pins and unpins, with a
 *	  reference count under either of them; sleeps while holding a lock.
 *
 * All costs are measured in one call, in short rounds, so that a disturbance
 * of the machine affects all of them; costs are compared within a round.  The
 * results are medians over the rounds.  The SQL function belongs to the
 * extension pgaq_lab.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <time.h>

#include "miscadmin.h"
#include "storage/lwlock.h"
#include "storage/spin.h"
#include "sync/control/control.h"
#include "sync/latches/latch.h"
#include "sync/mutexes/mutex.h"

#define ROUNDS	101

static AqLatch *latch;
static AqMutex *mutex;

/*
 * Locks of the server; only this process uses them, so they need no shared
 * memory.
 */
static struct
{
	char		before[PG_CACHE_LINE_SIZE];
	LWLock		lwlock;
	char		between[PG_CACHE_LINE_SIZE];
	slock_t		spinlock;
	char		behind[PG_CACHE_LINE_SIZE];
}			locks;

#define LOOP(name, get, free) \
	static void name(int n) { for (int i = 0; i < n; i++) { get; free; } }

LOOP(latch_exclusive, aq_latch_get(latch, AQ_EXCLUSIVE, AQ_LOC_LAB_HAMMER), aq_latch_free(latch))
LOOP(latch_shared, aq_latch_get(latch, AQ_SHARED, AQ_LOC_LAB_HAMMER), aq_latch_free(latch))
LOOP(latch_nowait, (void) aq_latch_get_nowait(latch, AQ_EXCLUSIVE, AQ_LOC_LAB_HAMMER), aq_latch_free(latch))
LOOP(mutex_exclusive, aq_mutex_get(mutex, AQ_EXCLUSIVE, AQ_LOC_LAB_HAMMER), aq_mutex_free(mutex))
LOOP(mutex_shared, aq_mutex_get(mutex, AQ_SHARED, AQ_LOC_LAB_HAMMER), aq_mutex_free(mutex))
LOOP(mutex_examine, aq_mutex_get(mutex, AQ_EXAMINE, AQ_LOC_LAB_HAMMER), aq_mutex_free(mutex))
LOOP(lwlock_exclusive, LWLockAcquire(&locks.lwlock, LW_EXCLUSIVE), LWLockRelease(&locks.lwlock))
LOOP(lwlock_shared, LWLockAcquire(&locks.lwlock, LW_SHARED), LWLockRelease(&locks.lwlock))
LOOP(spinlock, SpinLockAcquire(&locks.spinlock), SpinLockRelease(&locks.spinlock))

/*
 * A pin adds to a reference count, and the unpin subtracts; each needs a get and
 * a free of what protects the count.
 */
static volatile uint32 pins;

#define PIN_LOOP(name, get, free) \
	LOOP(name, get; pins++; free; get; pins--, free)

PIN_LOOP(pin_by_latch, aq_latch_get(latch, AQ_EXCLUSIVE, AQ_LOC_LAB_HAMMER), aq_latch_free(latch))
PIN_LOOP(pin_by_mutex, aq_mutex_get(mutex, AQ_EXCLUSIVE, AQ_LOC_LAB_HAMMER), aq_mutex_free(mutex))

static const struct
{
	const char *what;
	const char *mode;
	void		(*loop) (int n);
}			measured[] = {
	{"latch", "exclusive", latch_exclusive},
	{"latch", "shared", latch_shared},
	{"latch without waiting", "exclusive", latch_nowait},
	{"mutex", "exclusive", mutex_exclusive},
	{"mutex", "shared", mutex_shared},
	{"mutex", "examine", mutex_examine},
	{"pin under a latch", "exclusive", pin_by_latch},
	{"pin under a mutex", "exclusive", pin_by_mutex},
	{"spinlock", "exclusive", spinlock},
	{"LWLock", "shared", lwlock_shared},
	{"LWLock", "exclusive", lwlock_exclusive}
};

#define LWLOCK_SHARED		(lengthof(measured) - 2)
#define LWLOCK_EXCLUSIVE	(lengthof(measured) - 1)

static int
compare(const void *a, const void *b)
{
	double		x = *(const double *) a;
	double		y = *(const double *) b;

	return (x > y) - (x < y);
}

static double
median(const double *numbers)
{
	double		sorted[ROUNDS];

	memcpy(sorted, numbers, sizeof(sorted));
	qsort(sorted, ROUNDS, sizeof(double), compare);
	return sorted[ROUNDS / 2];
}

/*
 * Returns rows: lock, mode, nanoseconds of a get and a free or of a pin and its
 * unpin, and the ratio to a get and a free of an LWLock in the same mode. n is
 * the number of gets or pins in each round.
 */
void
aq_experiment_cost(AqRow *row, AqLatch *free_latch, AqMutex *free_mutex, int n)
{
	double		ns[lengthof(measured)][ROUNDS];

	latch = free_latch;
	mutex = free_mutex;
	LWLockInitialize(&locks.lwlock, LWTRANCHE_FIRST_USER_DEFINED - 1);
	SpinLockInit(&locks.spinlock);

	for (int round = 0; round < ROUNDS; round++)
	{
		for (int k = 0; k < lengthof(measured); k++)
		{
			int64		start = aq_clock_ns();

			measured[k].loop(n);
			ns[k][round] = (double) (aq_clock_ns() - start) / n;
			CHECK_FOR_INTERRUPTS();
		}
	}
	for (int k = 0; k < lengthof(measured); k++)
	{
		int			lwlock = strcmp(measured[k].mode, "shared") == 0 ? LWLOCK_SHARED : LWLOCK_EXCLUSIVE;
		double		ratios[ROUNDS];

		for (int round = 0; round < ROUNDS; round++)
			ratios[round] = ns[k][round] / ns[lwlock][round];
		aq_rows_text(row, measured[k].what);
		aq_rows_text(row, measured[k].mode);
		aq_rows_put(row, Float8GetDatum(median(ns[k])));
		aq_rows_put(row, Float8GetDatum(median(ratios)));
		aq_rows_end(row);
	}
}

void
aq_experiment_sleep_holding(int64 us)
{
	struct timespec time = {.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000};

	(void) nanosleep(&time, NULL);
}
