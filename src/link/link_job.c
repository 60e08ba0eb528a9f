/*-------------------------------------------------------------------------
 *
 * link_job.c
 *	  The job of the database's worker that starts the link worker when there are
 *	  streams, or a session checks a link.
 *
 * The kinds are asked for streams only when something has changed, because that
 * takes a transaction.  A session that changes something while they are asked may
 * be too late to be seen: so changes are counted, and the count is read before.
 * A flag that is cleared afterwards would lose that change.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "link/link_private.h"

#include "miscadmin.h"
#include "utils/timestamp.h"

/* pause while the extension is being dropped, microseconds */
#define DROP_PAUSE ((int64) 1000000)

static bool
needed(void)
{
	bool		exist;

	aq_job_begin();
	exist = aq_job_lock_extension() && aq_link_stream_exist();
	aq_job_commit(false);
	return exist;
}

static TimestampTz
link_job_run(void)
{
	static bool asked;			/* at the last change that was seen */
	static uint32 seen;
	static bool exist;
	AqLinkDatabase *db = aq_link_area_own();
	uint32		changes = pg_atomic_read_u32(&db->changes);

	if (!asked || changes != seen)
	{
		bool		locked;

		asked = false;			/* also after an error */
		/* the snapshot is later than the read above */
		pg_memory_barrier();
		aq_job_begin();
		locked = aq_job_lock_extension();
		exist = locked && aq_link_stream_exist();
		aq_job_commit(false);
		if (!locked)
			return GetCurrentTimestamp() + DROP_PAUSE;
		aq_point("link-job-asked");
		seen = changes;
		asked = true;
	}
	if (!exist && !aq_link_area_has_checks(MyDatabaseId))
		return 0;
	return aq_link_area_start_worker(db);
}

static const AqJob job = {
	.name = "links",
	.needed = needed,
	.run = link_job_run,
};

void
aq_link_job_register(void)
{
	aq_worker_register(&job);
}
