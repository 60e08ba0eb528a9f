/*-------------------------------------------------------------------------
 *
 * hold.c
 *	  Functions that hold a latch or mutex for some time, and that use
 *	  processor time.
 *
 * Interrupts are held off while a latch or mutex is held, so the holder itself
 * checks for cancellation, and frees before it raises the error.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "lab/lab_private.h"

#include "fmgr.h"
#include "miscadmin.h"
#include "utils/builtins.h"

#define SLICE_US 1000

static int64
seconds_to_us(double seconds)
{
	if (!(seconds >= 0 && seconds <= 86400))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("seconds must be from 0 to 86400")));
	return (int64) (seconds * USECS_PER_SEC);
}

static void
hold(const AqLabTarget *target, int64 us)
{
	int64		end;

	aq_lab_get(target, AQ_LOC_LAB_HOLD);
	end = aq_clock_us() + us;
	/* idle: otherwise a sleep that is part of the experiment would count as DB time */
	aq_event_begin_timed(AQ_EVENT_LAB_HOLD, (uint64) (uintptr_t) (target->latch ? (void *) target->latch : (void *) target->mutex),
						 us, 0, us);
	for (;;)
	{
		int64		left = end - aq_clock_us();

		if (left <= 0 || QueryCancelPending || ProcDiePending)
			break;
		aq_experiment_sleep_holding(Min(left, SLICE_US));
	}
	aq_event_end();
	aq_lab_free(target);
	CHECK_FOR_INTERRUPTS();
}

PG_FUNCTION_INFO_V1(aq_hold_latch);
Datum
aq_hold_latch(PG_FUNCTION_ARGS)
{
	int64		us = seconds_to_us(PG_GETARG_FLOAT8(1));
	AqLabTarget target = aq_lab_latch(text_to_cstring(PG_GETARG_TEXT_PP(0)), PG_GETARG_INT32(3),
									  text_to_cstring(PG_GETARG_TEXT_PP(2)));

	hold(&target, us);
	PG_RETURN_VOID();
}

PG_FUNCTION_INFO_V1(aq_hold_mutex);
Datum
aq_hold_mutex(PG_FUNCTION_ARGS)
{
	int64		us = seconds_to_us(PG_GETARG_FLOAT8(1));
	AqLabTarget target = aq_lab_mutex(text_to_cstring(PG_GETARG_TEXT_PP(0)),
									  text_to_cstring(PG_GETARG_TEXT_PP(2)));

	hold(&target, us);
	PG_RETURN_VOID();
}

/*
 * The cost of a get and a free of a latch or mutex of the lab without
 * contention.
 */
AQ_ROWS(aq_hold_cost)
{
	AqLabTarget latch = aq_lab_latch("lab", 1, "exclusive");
	AqLabTarget mutex = aq_lab_mutex("lab 1", "exclusive");
	int			gets = PG_GETARG_INT32(0);

	if (gets < 1 || gets > 10000000)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("gets must be from 1 to 10000000")));
	aq_experiment_cost(row, latch.latch, mutex.mutex, gets);
}

/*
 * The shared memory of a latch and of a mutex, from one to the next in an
 * array, and of PostgreSQL's locks.
 */
AQ_ROWS(aq_hold_memory)
{
	const struct
	{
		const char *what;
		Size		bytes;
	}			locks[] = {
		{"latch", sizeof(AqLatch)},
		{"mutex", sizeof(AqMutex)},
		{"LWLock", sizeof(LWLockPadded)},
		{"spinlock", sizeof(slock_t)},
	};

	for (int i = 0; i < lengthof(locks); i++)
	{
		aq_rows_text(row, locks[i].what);
		aq_rows_put(row, Int32GetDatum((int32) locks[i].bytes));
		aq_rows_end(row);
	}
}

/* Keeps the processor busy; returns the elapsed time. */
PG_FUNCTION_INFO_V1(aq_hold_burn);
Datum
aq_hold_burn(PG_FUNCTION_ARGS)
{
	int64		iterations = PG_GETARG_INT64(0);
	volatile uint64 x = 1;
	int64		start = aq_clock_us();

	for (int64 i = 0; i < iterations; i++)
	{
		x = x * UINT64CONST(6364136223846793005) + 1;
		if ((i & 0xFFFF) == 0)
			CHECK_FOR_INTERRUPTS();
	}
	PG_RETURN_INT64(aq_clock_us() - start);
}

/*
 * Raises an error, or ends the session, while holding a latch, which code
 * outside the lab must not do.  It tests that the end of the (sub)transaction
 * or of the process frees the latch.
 */
PG_FUNCTION_INFO_V1(aq_hold_fail);
Datum
aq_hold_fail(PG_FUNCTION_ARGS)
{
	int			number = PG_GETARG_INT32(0);
	AqLabTarget latch = aq_lab_latch("lab", number, "exclusive");
	AqLabTarget mutex = aq_lab_mutex(psprintf("lab %d", number), "exclusive");

	aq_lab_get(&latch, AQ_LOC_LAB_HOLD);
	aq_lab_get(&mutex, AQ_LOC_LAB_HOLD);
	aq_lab_get(&mutex, AQ_LOC_LAB_HOLD);
	ereport(PG_GETARG_BOOL(1) ? FATAL : ERROR,
			(errcode(ERRCODE_INTERNAL_ERROR),
			 errmsg("failed while holding latch and mutex %d of the lab", number)));
	PG_RETURN_VOID();
}
