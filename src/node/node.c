/*-------------------------------------------------------------------------
 *
 * node.c
 *	  The part's record, and the end of transactions that have changed nodes.
 *
 * A trigger on the tables notes the change, so a restore is noticed, too.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "node/node_private.h"

#include "commands/trigger.h"
#include "fmgr.h"
#include "jobs/jobs.h"

static bool changed;			/* by this transaction */

static void
tell_worker(void)
{
	if (changed)
		aq_link_changed();
	changed = false;
}

static void
forget_change(void)
{
	changed = false;
}

/* Its end, in another session, could not tell the worker. */
static void
refuse_prepare(void)
{
	if (changed)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot PREPARE a transaction that has changed nodes")));
}

static const AqXactOps changes_end = {
	.pre_prepare = refuse_prepare,
	.commit = tell_worker,
	.prepare = forget_change,
	.abort = forget_change,
};

/* Trigger after changes of aq_internal.node and aq_internal.node_identity. */
PG_FUNCTION_INFO_V1(aq_node_changed);
Datum
aq_node_changed(PG_FUNCTION_ARGS)
{
	if (!CALLED_AS_TRIGGER(fcinfo))
		elog(ERROR, "aq_internal.nodes_changed is a trigger function");
	aq_session_require_preload();
	aq_link_prepare();
	changed = true;
	PG_RETURN_POINTER(NULL);
}

static void
define_parameters(void)
{
	aq_node_settings_define();
	aq_node_area_define();
	aq_node_stream_register();
	aq_xact_register(AQ_XACT_NODES, &changes_end);
	aq_jobs_on_database_dropped(aq_node_area_forget);
}

const AqPart aq_node_part = {
	.name = "node",
	.define_parameters = define_parameters,
	.shmem_size = aq_node_area_size,
	.shmem_init = aq_node_area_init,
};
