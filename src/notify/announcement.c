/*-------------------------------------------------------------------------
 *
 * announcement.c
 *	  The end of transactions that have changed what is to be notified.
 *
 * A transaction that has made registrations, or posted notifications, has the
 * worker look at all registrations of its database after its commit.  One that has
 * made or ended registrations also wakes the programs that wait for notifications.
 * COMMIT PREPARED and ROLLBACK PREPARED do both, whatever the transaction was.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "notify/notify_private.h"

/* Number of announcements, in all databases. */
static pg_atomic_uint32 *announcements;

/* by this transaction */
static bool announces;
static bool registrations;		/* were made or ended */

/* Has the worker look at all registrations after the commit. */
void
aq_announcement_make(bool of_registrations)
{
	announces = true;
	registrations |= of_registrations;
}

uint32
aq_announcement_count(void)
{
	return pg_atomic_read_u32(announcements);
}

/* Has the worker look at all registrations now.  Does not raise an error. */
void
aq_announcement_make_now(void)
{
	pg_atomic_fetch_add_u32(announcements, 1);
	aq_jobs_post();
}

static void
committed(void)
{
	if (announces)
		aq_announcement_make_now();
	if (registrations)
		aq_client_wake_all();
	announces = registrations = false;
}

static void
forget(void)
{
	announces = registrations = false;
}

static void
prepared_ended(void)
{
	aq_announcement_make_now();
	aq_client_wake_all();
}

static const AqXactOps ends = {
	.commit = committed,
	.prepare = forget,
	.abort = forget,
};

Size
aq_announcement_shmem_size(void)
{
	return MAXALIGN(sizeof(pg_atomic_uint32));
}

void
aq_announcement_shmem_init(void *area, bool found)
{
	announcements = area;
	if (!found)
		pg_atomic_init_u32(announcements, 0);
}

void
aq_announcement_init(void)
{
	aq_xact_register(AQ_XACT_NOTIFY, &ends);
	aq_utility_on_prepared_end(prepared_ended);
}
