/*-------------------------------------------------------------------------
 *
 * node_area.c
 *	  Shared memory of nodes: what aq.nodes shows beside the tables, what other
 *	  nodes wish for, and the fence of what they send.
 *
 * A fence that is lost, by a restart or because the entry is, refuses what is
 * sent until the sender sets it again.  Nothing else depends on this memory but
 * the view, how soon another server can take over a node's identity, and which
 * node gets a unit; so it does not matter where the process ends that writes it.
 * Its times grow old by themselves: a node is unreachable also if the link worker
 * does not run.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "node/node_private.h"

#include "miscadmin.h"
#include "utils/guc.h"
#include "utils/timestamp.h"

/* A node's sessions dequeue from a queue of this one, for a consumer. */
typedef struct Wish
{
	Oid			database;		/* InvalidOid: the entry is free */
	int32		number;			/* of the node */
	int32		queue_id;
	int64		consumer;		/* its number */
	Oid			role;			/* as which it has said so */
	TimestampTz at;				/* when it said so last */
} Wish;

/* wishes that are remembered, for each of max_nodes */
#define WISHES 16

typedef struct NodeArea
{
	AqLatch		latch;			/* protects all but the next three, each of which grows */
	pg_atomic_uint32 nodes;		/* with each change of nodes, or of this node's identity */
	pg_atomic_uint32 units;		/* with each change of units */
	pg_atomic_uint32 news[AQ_PEERS_KINDS];
	AqNodeState states[FLEXIBLE_ARRAY_MEMBER];	/* max_nodes */
} NodeArea;

static NodeArea *area;
static Wish *wishes;			/* max_nodes * WISHES */
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
	return add_size(MAXALIGN(add_size(offsetof(NodeArea, states), mul_size(max_nodes, sizeof(AqNodeState)))),
					mul_size(max_nodes, WISHES * sizeof(Wish)));
}

void
aq_node_area_init(void *place, bool found)
{
	area = place;
	wishes = (Wish *) ((char *) place + MAXALIGN(offsetof(NodeArea, states) + max_nodes * sizeof(AqNodeState)));
	if (found)
		return;
	memset(area, 0, aq_node_area_size());
	aq_latch_init(&area->latch, AQ_LATCH_NODES, 0);
	pg_atomic_init_u32(&area->nodes, 1);
	pg_atomic_init_u32(&area->units, 1);
	for (int i = 0; i < AQ_PEERS_KINDS; i++)
		pg_atomic_init_u32(&area->news[i], 1);
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

/* A queue has an error with the node: of its messages there that are wanted here, or of messages that are sent. */
void
aq_node_area_queue_failed(int32 number, bool of_wish, const char *message, const char *hint)
{
	char	   *error = psprintf("%s%s%s", message, hint != NULL ? "; " : "", hint != NULL ? hint : "");
	AqNodeState *state = aq_node_area_get(number);

	if (state != NULL)
	{
		state->queue_error_time = GetCurrentTimestamp();
		state->queue_error_of_wish = of_wish;
		aq_clip_copy(state->queue_error, error, sizeof(state->queue_error));
	}
	aq_node_area_free();
	pfree(error);
}

/* The error that is shown, if it is of this kind, is over. */
void
aq_node_area_queue_works(int32 number, bool of_wish)
{
	AqNodeState *state = aq_node_area_get(number);

	if (state != NULL && state->queue_error_of_wish == of_wish)
		state->queue_error_time = 0;
	aq_node_area_free();
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
	for (int i = 0; i < max_nodes * WISHES; i++)
		if (wishes[i].database == database)
			wishes[i].database = InvalidOid;
	aq_latch_free(&area->latch);
}

/* --- wishes ---------------------------------------------------------------------- */

static bool
is_fresh(const Wish *wish, TimestampTz now)
{
	return OidIsValid(wish->database) && wish->at + AQ_NODE_WISH_TIME > now;
}

static bool
is_of(const Wish *wish, int32 number, int32 queue_id, int64 consumer)
{
	return wish->database == MyDatabaseId && wish->number == number && wish->queue_id == queue_id && wish->consumer == consumer;
}

/* The node's sessions dequeue for the consumer.  Without room it is forgotten: the node says so again soon. */
void
aq_node_area_wish(int32 number, int32 queue_id, int64 consumer, Oid role)
{
	TimestampTz now = GetCurrentTimestamp();
	Wish	   *place = NULL;

	aq_session_attach();
	aq_latch_get(&area->latch, AQ_EXCLUSIVE, AQ_LOC_NODE);
	for (int i = 0; i < max_nodes * WISHES; i++)
	{
		if (is_of(&wishes[i], number, queue_id, consumer))
		{
			place = &wishes[i];
			break;
		}
		if (place == NULL && !is_fresh(&wishes[i], now))
			place = &wishes[i];
	}
	if (place != NULL)
		*place = (Wish) {MyDatabaseId, number, queue_id, consumer, role, now};
	aq_latch_free(&area->latch);
}

/* The role as which it has said so a short time ago; InvalidOid: it has not. */
Oid
aq_node_area_wish_role(int32 number, int32 queue_id, int64 consumer)
{
	TimestampTz now = GetCurrentTimestamp();
	Oid			role = InvalidOid;

	aq_session_attach();
	aq_latch_get(&area->latch, AQ_SHARED, AQ_LOC_NODE);
	for (int i = 0; i < max_nodes * WISHES; i++)
		if (is_of(&wishes[i], number, queue_id, consumer) && is_fresh(&wishes[i], now))
			role = wishes[i].role;
	aq_latch_free(&area->latch);
	return role;
}

/* --- changes --------------------------------------------------------------------- */

/* The number differs from before if there was a change.  What is read afterwards is at least so new. */
static uint32
number_of(pg_atomic_uint32 *changes)
{
	uint32		n = pg_atomic_read_u32(changes);

	pg_memory_barrier();
	return n;
}

/* Rows of nodes, or the identity, were changed, committed.  Never raises. */
void
aq_node_area_nodes_changed(void)
{
	pg_atomic_fetch_add_u32(&area->nodes, 1);
}

uint32
aq_node_area_nodes(void)
{
	return number_of(&area->nodes);
}

/* Rows of units were changed, committed.  Never raises. */
void
aq_node_area_units_changed(void)
{
	pg_atomic_fetch_add_u32(&area->units, 1);
}

uint32
aq_node_area_units(void)
{
	return number_of(&area->units);
}

/* Tells the link workers.  Never raises. */
void
aq_node_area_note_news(AqPeerNews news)
{
	pg_atomic_fetch_add_u32(&area->news[news], 1);
	aq_link_wake();
}

uint32
aq_node_area_news(AqPeerNews news)
{
	return number_of(&area->news[news]);
}
