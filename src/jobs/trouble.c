/*-------------------------------------------------------------------------
 *
 * trouble.c
 *	  Failing jobs: when they run again, and when the failure is logged.
 *
 * A cause such as a full disk may last, while sessions post the job again and
 * again.  So the worker decides when to retry: each failure doubles the pause.
 * Each cause is logged once and then once in a while; a run without an error
 * after failures is logged, too.
 *
 * A role can cause failures again and again, with a new object or cause each time.
 * So the lines of each role, and those of each cause, are limited: a few at once, and
 * then one a minute.  The views show every error.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "jobs/jobs_private.h"

#include "access/xact.h"
#include "common/hashfn.h"
#include "miscadmin.h"
#include "postmaster/interrupt.h"
#include "utils/timestamp.h"

/* the pause after the first failure, and the longest one, in microseconds */
#define FIRST_PAUSE ((int64) 1000000)
#define LONGEST_PAUSE ((int64) 5000000)

/* interval at which the same cause is logged again, in microseconds */
#define LOG_AGAIN ((int64) 600000000)

/* lines at once, and the interval from then on, in microseconds of aq_clock_us */
#define LINES_AT_ONCE 10
#define LINES_INTERVAL ((int64) 60000000)

/*
 * May a line about a failure of this role, or by this cause, be logged?  Each line
 * moves the bucket's time one interval ahead.  Roles with the same bucket share it.
 */
bool
aq_trouble_may_log(uint32 who)
{
	pg_atomic_uint64 *paid = &aq_jobs_area->logged[murmurhash32(who) % LOG_BUCKETS];
	int64		now = aq_clock_us();
	uint64		before = pg_atomic_read_u64(paid);

	for (;;)
	{
		int64		after = Max((int64) before, now) + LINES_INTERVAL;

		if (after > now + LINES_AT_ONCE * LINES_INTERVAL)
			return false;
		if (pg_atomic_compare_exchange_u64(paid, &before, after))
			return true;
	}
}

/*
 * Identifies the cause: where and why the error was raised, without the names
 * and numbers in the message.
 */
static uint32
cause_of(const ErrorData *error)
{
	uint32		hash = hash_combine(murmurhash32(error->sqlerrcode), murmurhash32(error->lineno));

	if (error->message_id != NULL)
		hash = hash_combine(hash, string_hash(error->message_id, strlen(error->message_id) + 1));
	return hash;
}

void
aq_trouble_failed(AqTrouble *trouble, MemoryContext context)
{
	TimestampTz now = GetCurrentTimestamp();
	ErrorData  *error;
	uint32		cause;

	MemoryContextSwitchTo(context);
	error = CopyErrorData();
	cause = cause_of(error);
	if (error->sqlerrcode == ERRCODE_LOCK_NOT_AVAILABLE)
		aq_job_lose_patience();
	/* not a failure if the worker has cancelled the job because it must end */
	if (trouble != NULL && (!ShutdownRequestPending || error->sqlerrcode != ERRCODE_QUERY_CANCELED))
	{
		if ((cause != trouble->cause || now - trouble->logged >= LOG_AGAIN) && aq_trouble_may_log(cause))
		{
			EmitErrorReport();
			trouble->logged = now;
		}
		if (error->message != NULL)
			aq_jobs_note_error(error->message);
		trouble->cause = cause;
		trouble->not_before = now + Min(FIRST_PAUSE << Min(trouble->failures, 10), LONGEST_PAUSE);
		trouble->failures++;
	}
	FlushErrorState();
	FreeErrorData(error);
	AbortCurrentTransaction();
	aq_locks_release_all();
	aq_claim_release();
	MemoryContextSwitchTo(context);
}

/*
 * Keeps the cause, because it may persist even if the job had no work this
 * time: then it is not logged again at once.
 */
void
aq_trouble_succeeded(AqTrouble *trouble, const char *name)
{
	if (trouble->failures > 1 && aq_trouble_may_log(string_hash(name, strlen(name) + 1)))
		ereport(LOG,
				(errmsg("job \"%s\" of pgaq has run without an error after %u failures", name, trouble->failures)));
	trouble->failures = 0;
	trouble->not_before = 0;
}
