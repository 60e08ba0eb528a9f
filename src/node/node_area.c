/*-------------------------------------------------------------------------
 *
 * node_area.c
 *	  Shared memory of nodes: what aq.nodes shows beside the tables.
 *
 * Nothing depends on it but the view, and how soon another server can take over
 * a node's identity; so it does not matter where the process ends that writes
 * it.  Its times grow old by themselves: a node is unreachable also if the link
 * worker does not run.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "node/node_private.h"

#include "miscadmin.h"
#include "utils/guc.h"
#include "utils/timestamp.h"

typedef struct NodeArea
{
	AqLatch		latch;
	AqNodeState states[FLEXIBLE_ARRAY_MEMBER];	/* max_nodes */
} NodeArea;

static NodeArea *area;
static int	max_nodes = 64;

void
aq_node_area_define(void)
{
	DefineCustomIntVariable("pgaq.max_nodes",
							"Number of other nodes that aq.nodes can show, in all databases of the server.",
							"Others work, but their state is unknown.",
							&max_nodes,
							64, 1, 10000,
							PGC_POSTMASTER, 0,
							NULL, NULL, NULL);
}

Size
aq_node_area_size(void)
{
	return add_size(offsetof(NodeArea, states), mul_size(max_nodes, sizeof(AqNodeState)));
}

void
aq_node_area_init(void *place, bool found)
{
	area = place;
	if (found)
		return;
	memset(area, 0, aq_node_area_size());
	aq_latch_init(&area->latch, AQ_LATCH_NODES, 0);
}

/* The caller holds the latch. */
static AqNodeState *
find(Oid database, int32 number)
{
	for (int i = 0; i < max_nodes; i++)
		if (area->states[i].database == database && (!OidIsValid(database) || area->states[i].number == number))
			return &area->states[i];
	return NULL;
}

/*
 * Takes the latch, and returns the entry of a node of this database, which is
 * made if necessary; NULL: there is no room.  Call aq_node_area_free() then.
 */
AqNodeState *
aq_node_area_get(int32 number)
{
	AqNodeState *state;

	aq_session_attach();
	aq_latch_get(&area->latch, AQ_EXCLUSIVE, AQ_LOC_NODE);
	state = find(MyDatabaseId, number);
	if (state != NULL)
		return state;
	state = find(InvalidOid, 0);
	if (state != NULL)
	{
		memset(state, 0, sizeof(*state));
		state->database = MyDatabaseId;
		state->number = number;
		state->since = GetCurrentTimestamp();
	}
	return state;
}

void
aq_node_area_free(void)
{
	aq_latch_free(&area->latch);
}

/* A copy of the entry; false: there is none. */
bool
aq_node_area_copy(int32 number, AqNodeState *copy)
{
	AqNodeState *state;

	aq_session_attach();
	aq_latch_get(&area->latch, AQ_SHARED, AQ_LOC_NODE);
	state = find(MyDatabaseId, number);
	if (state != NULL)
		*copy = *state;
	aq_latch_free(&area->latch);
	return state != NULL;
}

static bool
is_among(int32 number, const int32 *numbers, int n)
{
	for (int i = 0; i < n; i++)
		if (numbers[i] == number)
			return true;
	return false;
}

/* Frees the entries of other nodes of this database: they were removed. */
void
aq_node_area_keep(const int32 *numbers, int n)
{
	aq_session_attach();
	aq_latch_get(&area->latch, AQ_EXCLUSIVE, AQ_LOC_NODE);
	for (int i = 0; i < max_nodes; i++)
		if (area->states[i].database == MyDatabaseId && !is_among(area->states[i].number, numbers, n))
			area->states[i].database = InvalidOid;
	aq_latch_free(&area->latch);
}

/* The database, or its extension, is gone. */
void
aq_node_area_forget(Oid database)
{
	aq_session_attach();
	aq_latch_get(&area->latch, AQ_EXCLUSIVE, AQ_LOC_NODE);
	for (int i = 0; i < max_nodes; i++)
		if (area->states[i].database == database)
			area->states[i].database = InvalidOid;
	aq_latch_free(&area->latch);
}
