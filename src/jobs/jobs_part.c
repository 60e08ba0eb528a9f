/*-------------------------------------------------------------------------
 *
 * jobs_part.c
 *	  The AqPart of "jobs".
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "jobs/jobs_private.h"

static void
define_parameters(void)
{
	aq_jobs_define_parameters();
	aq_fair_define_parameters();
	aq_utility_install();
	aq_launcher_register();
}

const AqPart aq_jobs_part = {
	.name = "jobs",
	.define_parameters = define_parameters,
	.shmem_size = aq_jobs_shmem_size,
	.shmem_init = aq_jobs_shmem_init,
};
