/*-------------------------------------------------------------------------
 *
 * notify.c
 *	  The AqPart of "notify".
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "notify/notify_private.h"

static void
notify_define_parameters(void)
{
	aq_notify_settings_define();
	aq_announcement_init();
	aq_registration_init();
	aq_posting_init();
	aq_notify_job_init();
	aq_client_init();
	aq_notifier_pool_register();
}

static Size
notify_shmem_size(void)
{
	return add_size(add_size(aq_announcement_shmem_size(), aq_notifier_pool_size()), aq_client_shmem_size());
}

static void
notify_shmem_init(void *area, bool found)
{
	aq_announcement_shmem_init(area, found);
	aq_notifier_pool_init((char *) area + aq_announcement_shmem_size(), found);
	aq_client_shmem_init((char *) area + aq_announcement_shmem_size() + aq_notifier_pool_size(), found);
}

const AqPart aq_notify_part = {
	.name = "notify",
	.define_parameters = notify_define_parameters,
	.shmem_size = notify_shmem_size,
	.shmem_init = notify_shmem_init,
	.session_exit = aq_client_session_exit,
};
