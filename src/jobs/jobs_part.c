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
jobs_define_parameters(void)
{
	aq_jobs_define_parameters();
	aq_fair_define_parameters();
	aq_stuck_register();
	aq_utility_install();
	aq_launcher_register();
}

static Size
jobs_shmem_size(void)
{
	return add_size(MAXALIGN(aq_jobs_shmem_size()), aq_stuck_shmem_size());
}

static void
jobs_shmem_init(void *area, bool found)
{
	aq_jobs_shmem_init(area, found);
	aq_stuck_shmem_init((char *) area + MAXALIGN(aq_jobs_shmem_size()), found);
}

const AqPart aq_jobs_part = {
	.name = "jobs",
	.define_parameters = jobs_define_parameters,
	.shmem_size = jobs_shmem_size,
	.shmem_init = jobs_shmem_init,
};
