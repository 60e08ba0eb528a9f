/*-------------------------------------------------------------------------
 *
 * node.c
 *	  The part's record.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "node/node_private.h"

#include "jobs/jobs.h"

static void
node_define_parameters(void)
{
	aq_node_settings_define();
	aq_node_area_define();
	aq_node_stream_register();
	aq_node_job_register();
	aq_node_want_register();
	aq_node_forward_register();
	aq_node_report_register();
	aq_peers_on_news(aq_link_prepare, aq_node_area_note_news);
	aq_node_change_register();
	aq_node_queue_register();
	aq_jobs_on_database_dropped(aq_node_area_forget);
}

const AqPart aq_node_part = {
	.name = "node",
	.define_parameters = node_define_parameters,
	.shmem_size = aq_node_area_size,
	.shmem_init = aq_node_area_init,
};
