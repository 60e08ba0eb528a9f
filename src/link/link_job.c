/*-------------------------------------------------------------------------
 *
 * link_job.c
 *	  The job of the database's worker that starts the link worker when there are
 *	  streams, or a session checks a link.
 *
 * The kinds are asked for streams only when something has changed, because that
 * takes a transaction.
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
run(void)
{
	static bool exist;
	AqLinkDatabase *db = aq_link_area_own();

	if (pg_atomic_exchange_u32(&db->look, 0) != 0)
	{
		bool		locked;

		/* if this raises an error, the job runs again, and asks again */
		pg_atomic_write_u32(&db->look, 1);
		aq_job_begin();
		locked = aq_job_lock_extension();
		exist = locked && aq_link_stream_exist();
		aq_job_commit(false);
		if (!locked)
			return GetCurrentTimestamp() + DROP_PAUSE;
		pg_atomic_write_u32(&db->look, 0);
	}
	if (!exist && !aq_link_area_has_checks(MyDatabaseId))
		return 0;
	return aq_link_area_start_worker(db);
}

static const AqJob job = {
	.name = "links",
	.needed = needed,
	.run = run,
};

void
aq_link_job_register(void)
{
	aq_worker_register(&job);
}
