/*-------------------------------------------------------------------------
 *
 * schedule.c
 *	  The part's record.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "schedule/schedule_private.h"

#include "utils/guc.h"

static void
schedule_define_parameters(void)
{
	DefineCustomBoolVariable("pgaq.run_schedules",
							 "Enqueues the messages of schedules when they are due.",
							 "off: no schedule of the server runs, for example on a copy of a production server. "
							 "What is missed meanwhile is made up for as each schedule's catch_up says.",
							 &aq_schedule_job_enabled,
							 true,
							 PGC_SIGHUP, 0,
							 NULL, NULL, NULL);
	aq_schedule_job_init();
	aq_schedule_row_init();
}

const AqPart aq_schedule_part = {
	.name = "schedule",
	.define_parameters = schedule_define_parameters,
	.shmem_size = aq_schedule_job_shmem_size,
	.shmem_init = aq_schedule_job_shmem_init,
};
