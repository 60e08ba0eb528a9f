/*-------------------------------------------------------------------------
 *
 * test_lease_protocol.c
 *	  The protocol by which a node consumes messages of another node: every
 *	  reachable state of a model of it, and variants of it that are known to be
 *	  wrong, each of which must be found.
 *
 * src/link/NODES.md describes the protocol and maps the steps below to code.
 *
 * The origin S has a unit: messages of one queue, shard and consumer.  Nodes D
 * acquire it, fetch its messages, let sessions consume them (a row of the log in
 * the session's transaction), acknowledge the log, and release the unit.
 *
 * The network is as bad as it gets: a request, once sent, is executed at any
 * time, as often as one likes, or never.  Requests that change nothing are
 * executed only if their answer is awaited.  An answer can get lost.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include <stdlib.h>
#include <string.h>

#include "tests.h"
#include "unit.h"

#define NODES 2
#define EPOCHS 3

#define HOLDER "one holder"
#define TWICE "no consumed message comes back"
#define LOST "no message is lost"
#define STUCK "no message without a holder for ever"

/*
 * What a variant does wrong: the smallest model that shows it, and the invariant
 * that it violates.  The epoch of an acknowledgement is not among them: marking
 * messages as done that an old holder has consumed violates nothing.
 */
#define VARIANTS(X) \
	X(GRANT_HELD, two_nodes, HOLDER, "the unit is granted while another node holds it") \
	X(GRANT_WHILE_TAKEN, one_node, HOLDER, "the unit is granted while a dequeue of the origin runs") \
	X(GRANT_SAME_EPOCH, one_node, HOLDER, "a grant does not raise the epoch") \
	X(GRANT_ONCE, one_node, TWICE, "the holder that asks again, because an answer was lost, gets nothing") \
	X(GRANT_RESUMED, one_node, HOLDER, "a node goes on with a lease that it had before it restarted, and may have given back") \
	X(GRANT_FORGOTTEN, one_node, STUCK, "a node without consumers never asks what it holds") \
	X(GRANT_NOT_DURABLE, one_node, HOLDER, "the origin forgets the holder when it restarts") \
	X(RELEASE_ANY_EPOCH, one_node, HOLDER, "a release with an old epoch is executed") \
	X(RELEASE_WITH_TAKES, one_node, TWICE, "a node releases the unit while a dequeue runs") \
	X(RELEASE_WITH_LOG, one_node, TWICE, "a node releases the unit before everything is acknowledged") \
	X(RELEASE_UNDONE, one_node, HOLDER, "a node that has sent a release goes on when a consumer comes") \
	X(FETCH_ANY_EPOCH, one_node, TWICE, "a fetch with an old epoch gets messages") \
	X(FETCH_ALL, one_node, TWICE, "fetched messages that are in the log are consumed again") \
	X(FETCH_BY_ORDINAL, one_node, STUCK, "messages that commit late, with smaller ordinals, are not fetched") \
	X(ACKNOWLEDGE_EARLY, one_node, LOST, "a message is acknowledged before its dequeue has committed") \
	X(LOG_REMOVED_EARLY, one_node, TWICE, "the log is removed when the acknowledgement is sent") \
	X(ANSWER_LATE, one_node, TWICE, "the answer to a request that was given up is used") \
	X(BREAK_BLIND, one_node, STUCK, "nothing tells a node that its lease was broken: it keeps what it has fetched")

typedef enum Variant
{
	RIGHT,
#define X(id, limits, invariant, text) id,
	VARIANTS(X)
#undef X
} Variant;

/* --- a state ------------------------------------------------------------------------------ */

/* Sets of messages are bits, and epochs 1 .. EPOCHS; 0: none. */
typedef uint8 Set;

typedef enum Request {NOTHING, ASK, ACQUIRE, FETCH, ACKNOWLEDGE, RELEASE} Request;
typedef enum Answer {NO_ANSWER, NOT_YOURS, GRANTED, FETCHED, DONE} Answer;

typedef struct Node
{
	uint8		up;				/* it runs */
	uint8		wants;			/* it has a consumer */
	Set			log;			/* durable; the rest of what it knows is lost by a crash */
	uint8		held;			/* the epoch */
	uint8		releasing;
	uint8		horizon;		/* messages below it were fetched */
	Set			cache;			/* fetched, to be consumed */
	Set			taken;			/* by running transactions */
	uint8		request;		/* in flight, with the epoch held, and the messages acknowledged */
	Set			sent;
	uint8		answer;			/* on its way */
	uint8		answer_epoch;
	uint8		answer_new;		/* of a grant: the unit was not this node's before */
	Set			answer_set;
	uint8		answer_horizon;
	/* the network: what was sent once, and can be executed at any time */
	uint8		net_acquire;
	Set			net_acknowledge[EPOCHS];
	uint8		net_release;	/* epochs */
} Node;

typedef struct State
{
	Node		nodes[NODES];
	/* the origin: durable, except for what running transactions have taken */
	uint8		epoch;
	uint8		holder;			/* 1 + index; 0: itself */
	Set			done;
	Set			committed;		/* enqueued; the others may still commit */
	Set			taken;
	/* what only the model knows */
	Set			consumed;
	Set			excused;		/* may be consumed twice, because a lease was broken */
	uint8		broken;			/* epochs */
	uint8		crashes;		/* that may still happen */
	uint8		breaks;
} State;

/* --- the explorer --------------------------------------------------------------------------- */

typedef struct Limits
{
	int			nodes;
	int			messages;
	int			epochs;
	int			crashes;
	int			breaks;
} Limits;

static Variant variant;
static Limits limits;
static const char *violation;	/* of an invariant; NULL: none so far */

static State *states;
static uint32 nstates,
			max_states;
static uint32 *table;			/* hash table: index + 1 */
static uint32 table_size;
static uint8 *good;				/* everything can still get consumed */

static bool checking;			/* second phase: look only for progress */
static bool progress_found;

#define ALL ((Set) ((1 << limits.messages) - 1))
#define FOR_EACH_MESSAGE(m) for (Set m = 1; m <= ALL; m <<= 1)

static uint32
slot_of(const State *s)
{
	const uint8 *bytes = (const uint8 *) s;
	uint64		hash = UINT64_C(14695981039346656037);

	for (size_t i = 0; i < sizeof(State); i++)
		hash = (hash ^ bytes[i]) * UINT64_C(1099511628211);
	return (uint32) (hash ^ hash >> 32) & (table_size - 1);
}

static void
grow(void)
{
	max_states = max_states == 0 ? 1 << 16 : max_states * 2;
	states = realloc(states, max_states * sizeof(State));
	free(table);
	table_size = max_states * 2;
	table = calloc(table_size, sizeof(uint32));
	for (uint32 i = 0; i < nstates; i++)
	{
		uint32		slot = slot_of(&states[i]);

		while (table[slot] != 0)
			slot = (slot + 1) & (table_size - 1);
		table[slot] = i + 1;
	}
}

/* The number of a state, which is entered if it is new. */
static uint32
enter(const State *s)
{
	uint32		slot = slot_of(s);

	for (; table[slot] != 0; slot = (slot + 1) & (table_size - 1))
		if (memcmp(&states[table[slot] - 1], s, sizeof(State)) == 0)
			return table[slot] - 1;
	if (nstates == max_states)
	{
		State		copy = *s;

		grow();
		return enter(&copy);
	}
	states[nstates] = *s;
	table[slot] = ++nstates;
	return nstates - 1;
}

static void
violate(const char *invariant)
{
	if (violation == NULL)
		violation = invariant;
}

/* At most one party takes messages; a node whose lease was broken may not know it yet. */
static void
check_holder(const State *s)
{
	for (int i = 0; i < limits.nodes; i++)
	{
		const Node *n = &s->nodes[i];

		if (n->held != 0 && !n->releasing && !(s->broken >> n->held & 1) &&
			(s->holder != i + 1 || s->epoch != n->held || s->taken != 0))
			violate(HOLDER);
	}
	if (s->done & ~s->consumed)
		violate(LOST);
}

typedef enum Kind {FAULT, PROGRESS} Kind;	/* FAULT: also what users and administrators do */

/* A step has led to this state. */
static void
reach(const State *s, Kind kind)
{
	if (violation != NULL)
		return;
	if (checking)
	{
		if (kind == PROGRESS && good[enter(s)])
			progress_found = true;
		return;
	}
	check_holder(s);
	(void) enter(s);
}

static void
forget_answer(Node *n)
{
	n->answer = n->answer_epoch = n->answer_new = n->answer_set = n->answer_horizon = 0;
}

/* --- the origin ----------------------------------------------------------------------------- */

static void
consume(State *s, Set m)
{
	if (s->consumed & m & ~s->excused)
		violate(TWICE);
	s->consumed |= m;
}

static void
origin_steps(const State *s)
{
	FOR_EACH_MESSAGE(m)
	{
		State		n = *s;

		if (!(s->committed & m))	/* an enqueue commits, in any order */
		{
			n.committed |= m;
			reach(&n, PROGRESS);
		}
		else if (s->taken & m)
		{
			n.taken &= ~m;		/* rollback */
			reach(&n, FAULT);
			n.done |= m;		/* commit */
			consume(&n, m);
			reach(&n, PROGRESS);
		}
		else if (s->holder == 0 && !(s->done & m))
		{
			n.taken |= m;
			reach(&n, PROGRESS);
		}
	}
	if (s->crashes > 0)
	{
		State		n = *s;

		n.crashes--;
		n.taken = 0;
		if (variant == GRANT_NOT_DURABLE)
			n.holder = 0;
		for (int i = 0; i < NODES; i++)
		{
			n.nodes[i].request = n.nodes[i].sent = 0;
			forget_answer(&n.nodes[i]);
		}
		reach(&n, FAULT);
	}
	if (s->breaks > 0 && s->holder != 0)
	{
		State		n = *s;
		Node	   *old = &n.nodes[s->holder - 1];

		n.breaks--;
		n.excused |= old->log | old->cache | old->taken | old->answer_set;
		n.broken |= 1 << s->epoch;
		n.holder = 0;
		reach(&n, FAULT);
	}
}

static bool
is_holder(const State *s, int i, int epoch, Variant careless)
{
	if (variant == careless)
		return true;
	return s->holder == i + 1 && s->epoch == epoch;
}

static void
execute_acquire(State *s, int i)
{
	if (s->holder == i + 1)
		return;					/* asked again */
	if (s->holder != 0 && variant != GRANT_HELD)
		return;
	if (s->taken != 0 && variant != GRANT_WHILE_TAKEN)
		return;
	if (s->epoch == limits.epochs)
		return;					/* the model ends here, the protocol does not */
	s->holder = i + 1;
	if (variant != GRANT_SAME_EPOCH || s->epoch == 0)
		s->epoch++;
}

static bool
execute_acknowledge(State *s, int i, int epoch, Set set)
{
	if (!is_holder(s, i, epoch, RIGHT))
		return false;
	s->done |= set;
	return true;
}

static bool
execute_release(State *s, int i, int epoch)
{
	if (!is_holder(s, i, epoch, RELEASE_ANY_EPOCH))
		return false;
	s->holder = 0;
	return true;
}

/* The oldest running enqueue: from there on the next fetch looks for more. */
static int
horizon_of(const State *s)
{
	int			horizon = 0;

	if (variant == FETCH_BY_ORDINAL)
	{
		for (int m = 0; m < limits.messages; m++)
			if (s->committed >> m & 1)
				horizon = m + 1;
		return horizon;
	}
	while (horizon < limits.messages && s->committed >> horizon & 1)
		horizon++;
	return horizon;
}

/* The origin executes a request whose answer is awaited. */
static void
execute_awaited(const State *before, int i)
{
	State		s = *before;
	Node	   *n = &s.nodes[i];
	bool		was_holder = s.holder == i + 1;
	bool		yes = false;

	n->answer = DONE;
	switch ((Request) n->request)
	{
		case ACQUIRE:
			execute_acquire(&s, i);
			yes = s.holder == i + 1 && !(variant == GRANT_ONCE && was_holder);
			n->answer = GRANTED;
			break;
		case ASK:
			yes = was_holder && variant != GRANT_ONCE;
			n->answer = GRANTED;
			break;
		case FETCH:
			yes = is_holder(&s, i, n->held, FETCH_ANY_EPOCH);
			n->answer = FETCHED;
			break;
		case ACKNOWLEDGE:
			yes = execute_acknowledge(&s, i, n->held, n->sent);
			break;
		case RELEASE:
			yes = execute_release(&s, i, n->held);
			break;
		case NOTHING:
			break;
	}
	if (!yes)
		n->answer = NOT_YOURS;
	else if (n->answer == GRANTED)
	{
		n->answer_epoch = s.epoch;
		n->answer_new = !was_holder;
	}
	else if (n->answer == FETCHED)
	{
		n->answer_set = s.committed & ~s.done & ~((1 << n->horizon) - 1);
		n->answer_horizon = horizon_of(&s);
	}
	reach(&s, PROGRESS);
}

/* Requests that were sent at some time arrive, again or late. */
static void
execute_late(const State *s, int i)
{
	const Node *n = &s->nodes[i];
	State		after = *s;

	if (n->net_acquire)
	{
		execute_acquire(&after, i);
		reach(&after, FAULT);
	}
	for (int epoch = 1; epoch <= limits.epochs; epoch++)
	{
		FOR_EACH_MESSAGE(m)
			if (n->net_acknowledge[epoch - 1] & m)
			{
				after = *s;
				(void) execute_acknowledge(&after, i, epoch, m);
				reach(&after, FAULT);
			}
		if (n->net_release >> epoch & 1)
		{
			after = *s;
			(void) execute_release(&after, i, epoch);
			reach(&after, FAULT);
		}
	}
}

/* --- a node ----------------------------------------------------------------------------------- */

static void
forget_unit(Node *n)
{
	n->held = n->releasing = n->horizon = n->cache = 0;
}

static void
send(const State *s, int i, Request request)
{
	State		after = *s;
	Node	   *n = &after.nodes[i];

	n->request = request;
	if (request == ACQUIRE)
		n->net_acquire = true;
	if (request == RELEASE)
		n->net_release |= 1 << n->held;
	if (request == ACKNOWLEDGE)
	{
		n->sent = n->log | (variant == ACKNOWLEDGE_EARLY ? n->taken : 0);
		n->net_acknowledge[n->held - 1] |= n->sent;
		if (variant == LOG_REMOVED_EARLY)
			n->log = 0;
	}
	reach(&after, PROGRESS);
}

static void
receive_answer(const State *s, int i)
{
	State		after = *s;
	Node	   *n = &after.nodes[i];

	switch ((Answer) n->answer)
	{
		case NOT_YOURS:			/* never held, or broken: its log is of no use any more */
			if (variant == BREAK_BLIND && n->held != 0)
				break;
			forget_unit(n);
			n->log = 0;
			break;
		case GRANTED:
			forget_unit(n);
			n->held = n->answer_epoch;
			n->releasing = !n->wants || !(n->answer_new || variant == GRANT_RESUMED);
			break;
		case FETCHED:
			n->cache |= n->answer_set & ~n->taken & ~(variant == FETCH_ALL ? 0 : n->log);
			n->horizon = n->answer_horizon;
			break;
		case DONE:
			if (n->request == ACKNOWLEDGE)
				n->log &= ~n->sent;
			else if (n->request == RELEASE)
				forget_unit(n);
			break;
		case NO_ANSWER:
			break;
	}
	n->request = n->sent = 0;
	forget_answer(n);
	reach(&after, PROGRESS);
}

static void
request_steps(const State *s, int i)
{
	const Node *n = &s->nodes[i];
	bool		settled = (n->taken == 0 || variant == RELEASE_WITH_TAKES) && (n->log == 0 || variant == RELEASE_WITH_LOG);

	if (n->held == 0 && n->wants)
		send(s, i, ACQUIRE);
	else if (n->held == 0 && (n->log != 0 || variant != GRANT_FORGOTTEN))
		send(s, i, ASK);
	if (n->held != 0 && !n->releasing)
		send(s, i, FETCH);
	if (n->held != 0 && (n->log != 0 || (variant == ACKNOWLEDGE_EARLY && n->taken != 0)))
		send(s, i, ACKNOWLEDGE);
	if (n->held != 0 && n->releasing && settled)
		send(s, i, RELEASE);
}

static void
session_steps(const State *s, int i)
{
	FOR_EACH_MESSAGE(m)
	{
		State		after = *s;
		Node	   *n = &after.nodes[i];

		if (n->taken & m)
		{
			n->taken &= ~m;		/* rollback */
			if (n->held != 0)
				n->cache |= m;
			reach(&after, FAULT);
			n->cache &= ~m;		/* commit */
			n->log |= m;
			consume(&after, m);
			reach(&after, PROGRESS);
		}
		else if (n->held != 0 && !n->releasing && n->cache & m)
		{
			n->cache &= ~m;
			n->taken |= m;
			reach(&after, PROGRESS);
		}
	}
}

static void
change_wish(const State *s, int i)
{
	State		after = *s;
	Node	   *n = &after.nodes[i];

	n->wants = !n->wants;
	if (n->wants && variant == RELEASE_UNDONE)
		n->releasing = false;
	if (!n->wants && n->held != 0)
		n->releasing = true;
	reach(&after, FAULT);
}

static void
crash(const State *s, int i)
{
	State		after = *s;
	Node	   *n = &after.nodes[i];

	after.crashes--;
	forget_unit(n);
	forget_answer(n);
	n->up = n->taken = n->request = n->sent = 0;
	reach(&after, FAULT);
}

static void
node_steps(const State *s, int i)
{
	const Node *n = &s->nodes[i];
	State		after = *s;

	execute_late(s, i);
	if (!n->up)
	{
		after.nodes[i].up = true;
		reach(&after, PROGRESS);
		return;
	}
	if (n->request == NOTHING)
		request_steps(s, i);
	else if (n->answer == NO_ANSWER)
		execute_awaited(s, i);
	if (n->answer != NO_ANSWER)
		receive_answer(s, i);
	if (n->request != NOTHING)	/* given up: the connection is closed */
	{
		after.nodes[i].request = after.nodes[i].sent = 0;
		if (variant != ANSWER_LATE)
			forget_answer(&after.nodes[i]);
		reach(&after, FAULT);
	}
	session_steps(s, i);
	change_wish(s, i);
	if (s->crashes > 0)
		crash(s, i);
}

static void
steps(const State *s)
{
	State		copy = *s;		/* the array can move */

	origin_steps(&copy);
	for (int i = 0; i < limits.nodes; i++)
		node_steps(&copy, i);
}

/* --- exploring ---------------------------------------------------------------------------------- */

static bool
is_finished(const State *s)
{
	for (int i = 0; i < limits.nodes; i++)
		if (s->nodes[i].log != 0)
			return false;
	return s->done == ALL;
}

/*
 * From each state, can everything get consumed without a fault, a user's rollback,
 * a consumer that comes or goes, or an administrator?
 */
static void
check_progress(void)
{
	bool		changed = true;

	good = calloc(nstates, 1);
	for (uint32 i = 0; i < nstates; i++)
		good[i] = is_finished(&states[i]);
	checking = true;
	while (changed)
	{
		changed = false;
		for (uint32 i = nstates; i-- > 0;)
			if (!good[i])
			{
				progress_found = false;
				steps(&states[i]);
				good[i] = progress_found;
				changed |= progress_found;
			}
	}
	checking = false;
	if (memchr(good, 0, nstates) != NULL)
		violate(STUCK);
	free(good);
}

/* Explores everything; returns the violated invariant, or NULL. */
static const char *
explore(Variant v, Limits l)
{
	State		first;

	variant = v;
	limits = l;
	violation = NULL;
	nstates = max_states = 0;
	grow();
	memset(&first, 0, sizeof(first));
	for (int i = 0; i < limits.nodes; i++)
		first.nodes[i].up = true;
	first.crashes = limits.crashes;
	first.breaks = limits.breaks;
	reach(&first, PROGRESS);
	for (uint32 i = 0; i < nstates && violation == NULL; i++)
		steps(&states[i]);
	if (violation == NULL)
		check_progress();
	free(states);
	free(table);
	states = NULL;
	table = NULL;
	return violation;
}

/* --- tests ---------------------------------------------------------------------------------------- */

static const Limits one_node = {.nodes = 1,.messages = 2,.epochs = 2,.crashes = 1,.breaks = 1};
static const Limits two_nodes = {.nodes = 2,.messages = 1,.epochs = 2,.crashes = 1,.breaks = 1};
static const Limits more_epochs = {.nodes = 1,.messages = 2,.epochs = EPOCHS,.crashes = 2,.breaks = 1};

static void
check_right(Limits l, uint32 least)
{
	const char *violated = explore(RIGHT, l);

	if (violated != NULL)
		unit_fail(__FILE__, __LINE__, "%s", violated);
	CHECK(nstates > least);
}

void
test_lease_protocol(void)
{
	check_right(one_node, 100000);
	check_right(two_nodes, 500000);
	check_right(more_epochs, 500000);
}

static void
check_variant(Variant v, const char *name, Limits l, const char *invariant)
{
	const char *violated = explore(v, l);

	if (violated == NULL || strcmp(violated, invariant) != 0)
		unit_fail(__FILE__, __LINE__, "variant %s violates \"%s\" instead of \"%s\"", name,
				  violated == NULL ? "nothing" : violated, invariant);
}

void
test_lease_variants(void)
{
#define X(id, limits, invariant, text) check_variant(id, #id, limits, invariant);
	VARIANTS(X)
#undef X
}
