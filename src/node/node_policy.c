/*-------------------------------------------------------------------------
 *
 * node_policy.c
 *	  Which node gets which of this node's units.
 *
 * Consumers on this node and on others that have dequeued within the last seconds
 * take part.  The shards of a queue are spread over the nodes with such consumers,
 * for each consumer apart.  A unit stays where it is as long as its node takes part,
 * unless another node has at least two fewer; so consumers on one node leave
 * everything there, and two nodes do not pass a unit to and fro.
 *
 * A unit of this node is granted at once.  One of another node is asked back, and
 * granted again when it has come back; one at a time for each consumer, and from a
 * node that takes part not before HOLD_TIME.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "node/node_private.h"

#include "utils/timestamp.h"

/* shortest time for which a node that takes part keeps a unit, seconds */
#define HOLD_TIME 5

/* A node in the distribution of one consumer's units. */
typedef struct Part
{
	int32		number;			/* of the node; 0: this one */
	bool		takes_part;
	int			n;				/* units that it holds, and keeps */
} Part;

typedef struct Plan
{
	AqQueue    *queue;
	int64		consumer;
	int			nparts;
	Part	   *parts;
	AqNodeUnit *units[AQ_MAX_SHARDS];	/* held by others; NULL: by this node */
	bool		in_transit;		/* a unit is on its way back */
} Plan;

/* Has a session of this node dequeued for the consumer, a short time ago? */
bool
aq_node_policy_wished(AqQueue *queue, int position)
{
	return aq_peers_wish(queue->shm, position) + AQ_NODE_WISH_TIME > GetCurrentTimestamp();
}

static Part *
part_of(Plan *plan, int32 number)
{
	for (int i = 0; i < plan->nparts; i++)
		if (plan->parts[i].number == number)
			return &plan->parts[i];
	return NULL;
}

/* The node with the fewest units of those that take part. */
static Part *
poorest(Plan *plan)
{
	Part	   *found = NULL;

	for (int i = 0; i < plan->nparts; i++)
		if (plan->parts[i].takes_part && (found == NULL || plan->parts[i].n < found->n))
			found = &plan->parts[i];
	return found;
}

/* With the role as which the node has asked.  False: it was removed, or no longer asks. */
static bool
grant(Plan *plan, int shard, const Part *to)
{
	char	   *holder = aq_sql_text(psprintf("SELECT node_id FROM aq_internal.node WHERE node_number = %d", to->number));
	Oid			role = aq_node_area_wish_role(to->number, plan->queue->id, plan->consumer);
	AqNodeState *state;

	if (holder == NULL || !OidIsValid(role) || !aq_node_unit_grant(plan->queue->id, shard, plan->consumer, holder, role))
		return false;
	state = aq_node_area_get(to->number);
	if (state != NULL)
		state->granted++;
	aq_node_area_free();
	return true;
}

/* Gives the unit to another node, or asks it back, if the distribution gains by that. */
static void
move_unit(Plan *plan, int shard)
{
	AqNodeUnit *unit = plan->units[shard];
	Part	   *from = part_of(plan, unit != NULL ? unit->holder : 0);
	Part	   *to = poorest(plan);

	if (to == NULL || to == from || (unit != NULL && (unit->recalled || unit->is_back || plan->in_transit)))
		return;
	if (from != NULL && from->takes_part &&
		(to->n + 1 >= from->n || (unit != NULL && unit->age < HOLD_TIME)))
		return;
	if (unit != NULL)
	{
		aq_node_unit_recall(unit);
		plan->in_transit = true;
	}
	else if (!grant(plan, shard, to))
		return;
	to->n++;
	if (from != NULL)
		from->n--;
}

/* The nodes, and the units of the consumer. */
static void
run_consumer(AqQueue *queue, int64 consumer, int position, const List *nodes, const List *units)
{
	Plan		plan = {.queue = queue, .consumer = consumer, .parts = palloc0((list_length(nodes) + 1) * sizeof(Part))};
	const ListCell *lc;
	Part	   *own = &plan.parts[plan.nparts++];

	own->takes_part = aq_node_policy_wished(queue, position);
	own->n = queue->shards;
	foreach(lc, nodes)
		plan.parts[plan.nparts++] = (Part) {lfirst_int(lc), OidIsValid(aq_node_area_wish_role(lfirst_int(lc), queue->id, consumer)), 0};
	foreach(lc, units)
	{
		AqNodeUnit *unit = lfirst(lc);
		Part	   *part;

		if (unit->consumer != consumer || unit->shard >= queue->shards)
			continue;
		plan.units[unit->shard] = unit;
		plan.in_transit |= unit->recalled || unit->is_back;
		own->n--;
		part = part_of(&plan, unit->holder);
		if (part != NULL && !unit->recalled && !unit->is_back)
			part->n++;
	}
	for (int shard = 0; shard < queue->shards; shard++)
		move_unit(&plan, shard);
}

/* Of all consumers of the queue, which is pinned; nothing if another transaction is about to change its units. */
void
aq_node_policy_run(AqQueue *queue)
{
	List	   *nodes;
	List	   *units;

	if (!queue->distributed || !aq_node_unit_lock(queue->id, false))
		return;
	aq_catalog_retain();
	PG_TRY();
	{
		aq_node_unit_forget_removed(queue->id);
		nodes = aq_catalog_numbers("node", 1, NULL);
		units = aq_node_unit_list(0, queue->id);
		if (!queue->multi)
			run_consumer(queue, 0, 0, nodes, units);
		for (int i = 0; i < queue->nconsumers; i++)
			if (queue->consumers[i].name != NULL)
				run_consumer(queue, queue->consumers[i].number, queue->consumers[i].position, nodes, units);
	}
	PG_FINALLY();
	{
		aq_catalog_release();
	}
	PG_END_TRY();
}
