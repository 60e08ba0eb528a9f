/*-------------------------------------------------------------------------
 *
 * monitor.c
 *	  The AqPart of "monitor".
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "monitor/ash.h"

static void
monitor_define_parameters(void)
{
	aq_snapshots_init();
	aq_sampler_define();
	aq_flush_init();
}

static Size
monitor_shmem_size(void)
{
	return add_size(add_size(MAXALIGN(aq_snapshots_shmem_size()), MAXALIGN(aq_application_shmem_size())),
					aq_ring_shmem_size());
}

static void
monitor_shmem_init(void *area, bool found)
{
	char	   *place = area;

	aq_snapshots_shmem_init(place, found);
	place += MAXALIGN(aq_snapshots_shmem_size());
	aq_application_shmem_init(place, found);
	place += MAXALIGN(aq_application_shmem_size());
	aq_ring_shmem_init(place, found);
}

const AqPart aq_monitor_part = {
	.name = "monitor",
	.define_parameters = monitor_define_parameters,
	.shmem_size = monitor_shmem_size,
	.shmem_init = monitor_shmem_init,
	.session_start = aq_application_session_start,
};
