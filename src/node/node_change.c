/*-------------------------------------------------------------------------
 *
 * node_change.c
 *	  The end of transactions that have changed nodes, or units.
 *
 * Triggers on the tables note the change, so a restore is noticed, too.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "node/node_private.h"

#include "commands/trigger.h"
#include "fmgr.h"

static bool changed;			/* by this transaction */
static bool units_changed;
static bool room;				/* for more messages of a unit */
static bool called;				/* by another node */

static void
tell_worker(void)
{
	if (changed)
	{
		aq_node_area_nodes_changed();
		aq_link_changed();
	}
	if (units_changed)
	{
		aq_node_area_units_changed();
		aq_jobs_post();			/* units that have come back */
		aq_point_held("node-told");
	}
	if (room)
		aq_node_area_note_news(AQ_PEERS_READY);
	else if (units_changed)
		aq_link_wake();
	changed = units_changed = room = called = false;
}

static void
forget_change(void)
{
	changed = units_changed = room = called = false;
}

/* A holder has reported messages, so more can be sent when this is committed. */
void
aq_node_change_note_room(void)
{
	aq_link_prepare();
	room = true;
}

/* The transaction is a request of another node. */
void
aq_node_change_note_call(void)
{
	called = true;
}

/* Has this transaction changed nodes? */
bool
aq_node_change_is_open(void)
{
	return changed;
}

/* Another session would finish the transaction.  It could not tell the worker, and would release the locks before the messages are settled. */
static void
refuse_prepare(void)
{
	if (changed || units_changed || called)
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
PG_FUNCTION_INFO_V1(aq_node_change_nodes);
Datum
aq_node_change_nodes(PG_FUNCTION_ARGS)
{
	if (!CALLED_AS_TRIGGER(fcinfo))
		elog(ERROR, "aq_internal.nodes_changed is a trigger function");
	aq_session_require_preload();
	aq_link_prepare();
	changed = true;
	PG_RETURN_POINTER(NULL);
}

/* Trigger after changes of aq_internal.node_unit and aq_internal.node_held. */
PG_FUNCTION_INFO_V1(aq_node_change_units);
Datum
aq_node_change_units(PG_FUNCTION_ARGS)
{
	if (!CALLED_AS_TRIGGER(fcinfo))
		elog(ERROR, "aq_internal.units_changed is a trigger function");
	aq_session_require_preload();
	aq_link_prepare();
	units_changed = true;
	PG_RETURN_POINTER(NULL);
}

void
aq_node_change_register(void)
{
	aq_xact_register(AQ_XACT_NODES, &changes_end);
}
