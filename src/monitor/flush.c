/*-------------------------------------------------------------------------
 *
 * flush.c
 *	  The worker's job that saves one sample in ten in a table of its database.
 *
 * The SQL function aq_internal.ash_flush() saves them; this file decides when
 * it runs: once a minute, or earlier before half of the ring is overwritten,
 * and only if the ring has rows to save.  So an idle database costs a check of
 * the ring's new rows, but no transaction.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "monitor/ash.h"

#include "executor/spi.h"
#include "miscadmin.h"
#include "utils/timestamp.h"

/* pause before the next try while the extension is being dropped */
#define LATER ((int64) 1000000)

#define FIRST_PURGE ((int64) 600000000)
#define PURGE_EVERY ((int64) INT64CONST(3600000000))

/* Is there a row to save after this one? */
static bool
has_rows(uint64 after, uint64 last)
{
	AqSample	row;

	for (uint64 number = Max(after, last - Min(last, aq_ring_rows())) + 1; number <= last; number++)
		if (aq_ring_read(number, &row) && aq_ring_is_kept(row.sample_id) && row.database == MyDatabaseId)
			return true;
	return false;
}

/* Returns false if it must be tried again. */
static bool
flush(bool purge)
{
	bool		locked;

	aq_job_begin();
	locked = aq_job_lock_extension();
	if (locked)
	{
		SPI_connect();
		if (SPI_execute("SELECT aq_internal.ash_flush_turn()", false, 1) != SPI_OK_SELECT)
			elog(ERROR, "could not save the history of active sessions");
		if (purge && SPI_execute("SELECT aq_internal.ash_purge()", false, 1) != SPI_OK_SELECT)
			elog(ERROR, "could not purge the history of active sessions");
		SPI_finish();
	}
	aq_job_commit(false);
	return locked;
}

static TimestampTz
keep_samples(void)
{
	static TimestampTz next;
	static uint64 looked;		/* last checked row of the ring */
	static TimestampTz purge_at;
	TimestampTz now = GetCurrentTimestamp();
	uint64		last = aq_ring_last();
	bool		leaving = aq_worker_is_leaving();
	bool		rows;
	bool		purge;

	if (aq_ring_size_kb == 0)
		return 0;
	if (now < next && !leaving)
		return next;
	if (purge_at == 0)
		purge_at = now + FIRST_PURGE;
	rows = has_rows(looked, last);
	/*
	 * a worker that runs only briefly now and then would otherwise never purge
	 */
	purge = now >= purge_at || (leaving && rows);

	/* the next time if an error ends this turn */
	next = now + AQ_KEEP_EVERY;
	if ((purge || rows) && !flush(purge))
	{
		next = now + LATER;
		return next;
	}
	if (purge)
		purge_at = now + PURGE_EVERY;
	looked = last;
	next = now + aq_sampler_keep_within();
	return leaving ? 0 : next;	/* further rows request a worker: see take_sample */
}

static const AqJob flush_job = {.name = "active sessions", .run = keep_samples};

void
aq_flush_init(void)
{
	aq_worker_register(&flush_job);
}
