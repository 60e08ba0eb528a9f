/*-------------------------------------------------------------------------
 *
 * test_lease_protocol.c
 *	  The protocol by which a node consumes messages of another node: every
 *	  reachable state of a model of it, and variants of it that are known to be
 *	  wrong, each of which must be found.
 *
 * src/node/NODES.md describes the protocol and maps the steps below to code.
 *
 * The origin S has a unit: messages of one queue, shard and consumer.  It grants
 * the unit to a node D, leases messages to D and delivers copies of them.
 * Sessions of D consume the copies, D reports what they have finished, and
 * returns the unit after S has recalled it.
 *
 * The network is as bad as it gets: a request that was given up is executed at
 * any later time, or never, also when the node that sent it has crashed since.
 * A crash of the node that should execute it ends it.  An answer can get lost.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include <string.h>

#include "explorer.h"
#include "lease_variants.h"
#include "tests.h"
#include "unit.h"

#define NODES 2
#define EPOCHS 3

typedef enum Variant
{
	RIGHT,
#define X(id, limits, invariant, text) id,
	LEASE_VARIANTS(X)
#undef X
} Variant;

/* --- a state ------------------------------------------------------------------------------ */

/* Sets of messages are bits.  Epochs are 1 .. EPOCHS, tokens 1, 2, ...; 0: none. */
typedef uint8 Set;

#define OTHER_TOKEN 99			/* no delivery has it */

typedef enum Request
{
	NOTHING, RESUME, DELIVER, RECALL, FINISH, RETURN
} Request;
typedef enum Answer
{
	NO_ANSWER, DONE, REFUSED, NO_ROW, NOT_YOURS
} Answer;

/* The request in flight on a stream, and its answer on the way. */
typedef struct Stream
{
	uint8		request;
	uint8		epoch;
	Set			set;			/* leased, delivered or finished messages */
	uint8		answer;
	Set			missing;		/* of RESUME */
} Stream;

typedef struct Node
{
	uint8		wants;			/* it has consumers */
	/* durable */
	uint8		row;			/* epoch */
	uint8		draining;
	Set			unfinished;		/* copies */
	Set			finished;
	/* volatile */
	uint8		fence;
	Set			taken;			/* by running transactions */
	Set			told;			/* finished, and the origin knows it */
	Stream		report;			/* to the origin */
	/* volatile, at the origin */
	uint8		token;
	Stream		forward;		/* to this node */
	/* requests that were given up, and can still be executed */
	uint8		late_token;		/* a delivery */
	uint8		late_epoch;
	Set			late_set;
	uint8		late_recall;	/* epochs */
	uint8		late_return;
	Set			late_finish[EPOCHS];
	Set			late_missing;	/* for ORIGIN_ANSWER_LATE */
} Node;

typedef struct State
{
	Node		nodes[NODES];
	/* the origin: durable, except for what running transactions have taken */
	uint8		holder;			/* 1 + index; 0: itself */
	uint8		epoch;			/* the latest */
	uint8		recalled;
	Set			leased;			/* to the holder */
	Set			done;			/* the others are ready */
	Set			taken;
	/* what only the model knows */
	Set			consumed;
	Set			excused;		/* may come once more, because a lease was broken */
	uint8		broken;			/* epochs */
	uint8		crashes;		/* that may still happen */
	uint8		breaks;
} State;

typedef struct Limits
{
	int			nodes;
	int			messages;
	int			epochs;
	int			crashes;
	int			breaks;
	bool		origin;			/* it has consumers, too */
} Limits;

static Variant variant;
static Limits limits;

#define ALL ((Set) ((1 << limits.messages) - 1))
#define FOR_EACH_MESSAGE(m) for (Set m = 1; m <= ALL; m <<= 1)

/* --- states that are as good as others -------------------------------------------------------- */

/* Late requests that can have no effect any more. */
static void
forget_late(const State *s, int i, Node *n)
{
	bool		dead_tokens = variant != DELIVER_UNFENCED && variant != TOKEN_REUSED;

	if (dead_tokens && n->late_token != n->fence)
		n->late_token = n->late_epoch = n->late_set = 0;
	for (int epoch = 1; epoch <= limits.epochs; epoch++)
	{
		n->late_finish[epoch - 1] &= ~s->done;
		if (s->holder == i + 1 && s->epoch == epoch)
			continue;
		n->late_finish[epoch - 1] = 0;
		if (variant != RETURN_ANY_EPOCH && variant != EPOCH_REUSED)
			n->late_return &= ~(1 << epoch);
		if (variant != EPOCH_REUSED && n->row != epoch && n->late_epoch != epoch && n->forward.epoch != epoch)
			n->late_recall &= ~(1 << epoch);
	}
	if (n->draining)
		n->late_recall &= ~(1 << n->row);
}

/* Tokens are only compared. */
static void
rename_tokens(Node *n)
{
	if (variant == DELIVER_UNFENCED || variant == TOKEN_REUSED)
		return;
	if (n->fence != n->token && n->late_token == 0)
		n->fence = 0;
	if (n->token != 0)
		n->token = n->fence == 0 || n->fence == n->token ? 1 : 2;
	if (n->late_token != 0)
		n->late_token = 1;
	if (n->fence != 0)
		n->fence = 1;
}

static void
swap_nodes(State *s)
{
	Node		node = s->nodes[0];

	s->nodes[0] = s->nodes[1];
	s->nodes[1] = node;
	if (s->holder != 0)
		s->holder = 3 - s->holder;
}

#define SWAP(set) ((set) = (set) >> 1 | ((set) & 1) << 1)

static void
swap_messages(State *s)
{
	SWAP(s->leased);
	SWAP(s->done);
	SWAP(s->taken);
	SWAP(s->consumed);
	SWAP(s->excused);
	for (int i = 0; i < limits.nodes; i++)
	{
		Node	   *n = &s->nodes[i];

		SWAP(n->unfinished);
		SWAP(n->finished);
		SWAP(n->taken);
		SWAP(n->told);
		SWAP(n->report.set);
		SWAP(n->forward.set);
		SWAP(n->forward.missing);
		SWAP(n->late_set);
		SWAP(n->late_missing);
		for (int epoch = 0; epoch < EPOCHS; epoch++)
			SWAP(n->late_finish[epoch]);
	}
}

/* Of the states that differ only in names, and in what has no effect, one is explored. */
static void
normalize(State *s)
{
	State		twin;

	for (int i = 0; i < limits.nodes; i++)
	{
		forget_late(s, i, &s->nodes[i]);
		rename_tokens(&s->nodes[i]);
	}
	twin = *s;
	if (limits.messages == 2)
		swap_messages(&twin);
	else if (limits.nodes == 2)
		swap_nodes(&twin);
	if (memcmp(&twin, s, sizeof(State)) < 0)
		*s = twin;
}

/* --- invariants ---------------------------------------------------------------------------------- */

/* Its sessions begin to consume; a node whose lease was broken may not know it yet. */
static bool
believes_to_hold(const State *s, int i)
{
	const Node *n = &s->nodes[i];

	return n->row != 0 && !n->draining && !(s->broken >> n->row & 1);
}

static void
check_state(const State *s)
{
	for (int i = 0; i < limits.nodes; i++)
		if (believes_to_hold(s, i) && (s->holder != i + 1 || s->epoch != s->nodes[i].row))
			explorer_violate(HOLDER);
	if (s->done & ~s->consumed)
		explorer_violate(LOST);
}

/* A step has led to this state. */
static void
reach(const State *s, ExplorerKind kind, const char *name)
{
	State		normal = *s;

	check_state(s);
	normalize(&normal);
	explorer_reach(&normal, kind, name);
}

/* --- the origin ----------------------------------------------------------------------------- */

static void
consume(State *s, Set m)
{
	if (s->consumed & m & ~s->excused)
		explorer_violate(TWICE);
	if (s->consumed & m)
		s->excused &= ~m;
	s->consumed |= m;
}

static void
origin_sessions(const State *s)
{
	FOR_EACH_MESSAGE(m)
	{
		State		after = *s;

		if (s->taken & m)
		{
			after.taken &= ~m;
			reach(&after, FAULT, "origin: rollback");
			after.done |= m;
			consume(&after, m);
			reach(&after, PROGRESS, "origin: commit");
		}
		else if (limits.origin && !((s->leased | s->done) & m) && (s->holder == 0 || variant == GRANT_TAKING))
		{
			after.taken |= m;
			for (int i = 0; i < limits.nodes; i++)
				if (believes_to_hold(s, i))
					explorer_violate(HOLDER);
			reach(&after, PROGRESS, "origin: take");
		}
	}
}

static bool
is_current(const State *s, int i, int epoch)
{
	return s->holder == i + 1 && s->epoch == epoch;
}

/* The unit comes back; what was leased is ready. */
static void
end_grant(State *s)
{
	s->holder = s->recalled = s->leased = 0;
}

static void
end_request(Stream *stream)
{
	memset(stream, 0, sizeof(*stream));
}

/* The request in flight was not executed yet, if there is no answer: that can still happen. */
static void
lose_forward(Node *n)
{
	Stream	   *f = &n->forward;

	if (f->answer == NO_ANSWER && f->request == DELIVER)
	{
		n->late_token = n->token;
		n->late_epoch = f->epoch;
		n->late_set = f->set;
	}
	if (f->answer == NO_ANSWER && f->request == RECALL)
		n->late_recall |= 1 << f->epoch;
	if (variant == ORIGIN_ANSWER_LATE && n->late_missing == 0)
		n->late_missing = f->missing;
	end_request(f);
	if (variant != RESUME_NEVER)
		n->token = 0;
}

static void
lose_report(Node *n)
{
	Stream	   *r = &n->report;

	if (r->answer == NO_ANSWER && r->request == FINISH)
		n->late_finish[r->epoch - 1] |= r->set;
	if (r->answer == NO_ANSWER && r->request == RETURN)
		n->late_return |= 1 << r->epoch;
	if (variant == HOLDER_ANSWER_LATE && r->answer != NO_ANSWER)
		r->request = NOTHING;
	else
		end_request(r);
}

static void
crash_origin(const State *s)
{
	State		after = *s;

	after.crashes--;
	if (variant == LEASE_NOT_DURABLE)
		after.leased = 0;
	if (variant == GRANT_NOT_DURABLE)
		end_grant(&after);
	if (variant == RECALL_NOT_DURABLE)
		after.recalled = 0;
	if (variant == FINISH_NOT_DURABLE)
		after.done &= ~after.leased;
	for (int i = 0; i < limits.nodes; i++)
	{
		Node	   *n = &after.nodes[i];

		lose_forward(n);
		n->token = 0;
		if (n->report.answer == NO_ANSWER)
			end_request(&n->report);
		n->late_return = 0;
		memset(n->late_finish, 0, sizeof(n->late_finish));
	}
	reach(&after, FAULT, "origin: crash, what was taken is prepared");
	after.taken = 0;
	reach(&after, FAULT, "origin: crash");
}

static void
origin_steps(const State *s)
{
	State		after = *s;

	origin_sessions(s);
	for (int i = 0; i < limits.nodes; i++)
		if (s->holder == 0 && s->nodes[i].wants && s->epoch < limits.epochs)
		{
			after.holder = i + 1;
			after.epoch = variant == EPOCH_REUSED ? 1 : s->epoch + 1;
			reach(&after, PROGRESS, "origin: GRANT");
		}
	if (s->holder != 0 && !s->recalled)
	{
		after = *s;
		after.recalled = true;
		reach(&after, s->nodes[s->holder - 1].wants ? FAULT : PROGRESS, "origin: the unit is recalled");
	}
	if (s->holder != 0 && s->breaks > 0)
	{
		after = *s;
		after.breaks--;
		after.excused |= s->leased;
		after.broken |= 1 << s->epoch;
		end_grant(&after);
		reach(&after, FAULT, "origin: BREAK");
	}
	if (s->crashes > 0)
		crash_origin(s);
}

/* --- from the origin to the other node: at the origin ------------------------------------------ */

static int
fresh_token(const Node *n)
{
	int			token = 1;

	while (variant != TOKEN_REUSED && (token == n->fence || token == n->late_token))
		token++;
	return token;
}

static void
forward(const State *s, int i, Request request, Set set)
{
	State		after = *s;
	Node	   *n = &after.nodes[i];
	const char *name = "origin: sends RECALL";

	n->forward.request = request;
	n->forward.epoch = s->epoch;
	n->forward.set = set;
	if (request == RESUME)
	{
		name = "origin: sends RESUME";
		n->token = fresh_token(n);
	}
	if (request == DELIVER)
	{
		name = "origin: leases messages, sends DELIVER";
		after.leased |= set;
	}
	reach(&after, PROGRESS, name);
}

static void
forward_requests(const State *s, int i)
{
	const Node *n = &s->nodes[i];
	Set			ready = ALL & ~s->leased & ~s->done & ~(variant == LEASE_TAKEN ? 0 : s->taken);

	if (s->holder != i + 1)
		return;
	if (n->token == 0)
		forward(s, i, RESUME, s->leased);
	if (n->token != 0 && (!s->recalled || variant == DELIVER_RECALLED))
		for (Set batch = 1; batch <= ALL; batch++)
			if ((batch & ~ready) == 0)
				forward(s, i, DELIVER, batch);
	if (s->recalled && (n->token != 0 || variant == RECALL_UNRESUMED))
		forward(s, i, RECALL, 0);
}

static void
receive_forward_answer(const State *s, int i, Answer answer, Set missing)
{
	State		after = *s;
	Node	   *n = &after.nodes[i];
	const Stream *f = &s->nodes[i].forward;

	if (answer == REFUSED)
		n->token = 0;
	if (f->request == RESUME && (is_current(s, i, f->epoch) || variant == RESUME_ANY_EPOCH))
		after.leased &= ~missing;
	if (f->request == RESUME && variant == RESUME_FINISHED)
		after.done &= ~missing;
	if (answer == NO_ROW && (is_current(s, i, f->epoch) || variant == RECALL_ANY_EPOCH))
		end_grant(&after);
	end_request(&n->forward);
	reach(&after, PROGRESS, "origin: gets the answer");
}

static void
forward_steps(const State *s, int i)
{
	const Node *n = &s->nodes[i];
	const Stream *f = &n->forward;
	State		after = *s;

	if (f->request == NOTHING)
		forward_requests(s, i);
	else if (f->answer != NO_ANSWER)
		receive_forward_answer(s, i, f->answer, f->missing);
	if (f->request == RESUME && n->late_missing != 0)
		receive_forward_answer(s, i, DONE, n->late_missing);
	if (n->token != 0 || f->request != NOTHING)
	{
		lose_forward(&after.nodes[i]);
		reach(&after, FAULT, "origin: loses the connection");
	}
}

/* --- from the origin to the other node: at the other node ---------------------------------------- */

static Set
execute_resume(Node *n, int token, int epoch, Set set)
{
	n->fence = token;
	if (n->row == epoch || variant == RESUME_ANY_COPY)
		set &= ~(n->unfinished | n->finished);
	return set;
}

static Answer
execute_deliver(Node *n, int token, int epoch, Set set)
{
	if (token != n->fence && variant != DELIVER_UNFENCED)
		return REFUSED;
	if (n->row != 0 && n->row != epoch && variant != DELIVER_BUSY)
	{
		if (variant != OLD_ROW_KEPT)
			n->draining = true; /* as there is a newer grant, this one is over */
		return REFUSED;
	}
	if (n->row == epoch && n->draining)
		return REFUSED;
	n->row = epoch;
	n->draining = false;
	n->unfinished |= set;
	return DONE;
}

static Answer
execute_recall(Node *n, int epoch)
{
	if (n->row != epoch)
		return NO_ROW;
	n->draining = true;
	return DONE;
}

static void
execute_forward(const State *s, int i)
{
	State		after = *s;
	Node	   *n = &after.nodes[i];
	Stream	   *f = &n->forward;

	f->answer = DONE;
	if (f->request == RESUME)
		f->missing = execute_resume(n, n->token, f->epoch, f->set);
	else if (f->request == DELIVER)
		f->answer = execute_deliver(n, n->token, f->epoch, f->set);
	else
		f->answer = execute_recall(n, f->epoch);
	reach(&after, PROGRESS, f->answer == DONE ? "node: executes the request" : "node: refuses the request");
}

static void
execute_late_forward(const State *s, int i)
{
	State		after = *s;
	Node	   *n = &after.nodes[i];

	(void) execute_resume(n, variant == TOKEN_REUSED ? 1 : OTHER_TOKEN, 0, 0);
	reach(&after, FAULT, "node: late RESUME");
	if (n->late_token != 0)
	{
		after = *s;
		(void) execute_deliver(n, n->late_token, n->late_epoch, n->late_set);
		n->late_token = n->late_epoch = n->late_set = 0;
		reach(&after, FAULT, "node: late DELIVER");
	}
	for (int epoch = 1; epoch <= limits.epochs; epoch++)
		if (s->nodes[i].late_recall >> epoch & 1)
		{
			after = *s;
			(void) execute_recall(n, epoch);
			reach(&after, FAULT, "node: late RECALL");
		}
}

/* --- from the other node to the origin: at the other node ---------------------------------------- */

static void
report(const State *s, int i, Request request, Set set)
{
	State		after = *s;
	Node	   *n = &after.nodes[i];

	n->report.request = request;
	n->report.epoch = n->row;
	n->report.set = set;
	if (variant == FINISH_UNANSWERED)
		n->finished &= ~set;
	reach(&after, PROGRESS, request == FINISH ? "node: sends FINISH" : "node: sends RETURN");
}

static void
report_requests(const State *s, int i)
{
	const Node *n = &s->nodes[i];
	Set			untold = n->finished & ~n->told;

	if (n->row == 0)
		return;
	if ((n->draining || variant == RETURN_HELD) && (n->taken == 0 || variant == RETURN_TAKEN) &&
		(untold == 0 || variant == RETURN_UNREPORTED))
		report(s, i, RETURN, 0);
	if (variant == FINISH_EARLY)
		untold |= n->taken;
	if (untold != 0 || (!n->draining && variant != OLD_ROW_KEPT))
		report(s, i, FINISH, untold);	/* also of nothing: is the epoch current? */
}

static void
receive_report_answer(const State *s, int i)
{
	State		after = *s;
	Node	   *n = &after.nodes[i];
	const Stream *r = &s->nodes[i].report;

	if (r->request == FINISH)
	{
		n->told |= r->set & n->finished;
		if (r->answer == NOT_YOURS && variant != BREAK_BLIND)
			n->draining = true;
	}
	else if (r->answer == DONE || variant != BREAK_BLIND)
		n->row = n->draining = n->unfinished = n->finished = n->told = 0;
	end_request(&n->report);
	reach(&after, PROGRESS, "node: gets the answer");
}

static void
report_steps(const State *s, int i)
{
	const Stream *r = &s->nodes[i].report;
	State		after = *s;

	if (r->request == NOTHING)
		report_requests(s, i);
	else
	{
		if (r->answer != NO_ANSWER)
			receive_report_answer(s, i);
		lose_report(&after.nodes[i]);
		reach(&after, FAULT, "node: loses the connection");
	}
}

/* --- from the other node to the origin: at the origin -------------------------------------------- */

static Answer
execute_finish(State *s, int i, int epoch, Set set)
{
	if (!is_current(s, i, epoch))
		return NOT_YOURS;
	s->done |= set & s->leased;
	if (variant != FINISH_NOT_DURABLE)
		s->leased &= ~set;
	return DONE;
}

static Answer
execute_return(State *s, int i, int epoch)
{
	if (!is_current(s, i, epoch) && variant != RETURN_ANY_EPOCH)
		return NOT_YOURS;
	end_grant(s);
	return DONE;
}

static void
execute_report(const State *s, int i)
{
	State		after = *s;
	Stream	   *r = &after.nodes[i].report;

	if (r->request == FINISH)
		r->answer = execute_finish(&after, i, r->epoch, r->set);
	else
		r->answer = execute_return(&after, i, r->epoch);
	reach(&after, PROGRESS, r->answer == DONE ? "origin: executes the request" : "origin: NOT_YOURS");
}

static void
execute_late_report(const State *s, int i)
{
	const Node *n = &s->nodes[i];

	for (int epoch = 1; epoch <= limits.epochs; epoch++)
	{
		State		after = *s;

		if (n->late_return >> epoch & 1)
		{
			(void) execute_return(&after, i, epoch);
			reach(&after, FAULT, "origin: late RETURN");
		}
		FOR_EACH_MESSAGE(m)
			if (n->late_finish[epoch - 1] & m)
			{
				after = *s;
				(void) execute_finish(&after, i, epoch, m);
				reach(&after, FAULT, "origin: late FINISH");
			}
	}
}

/* --- the other node ------------------------------------------------------------------------------ */

static void
node_sessions(const State *s, int i)
{
	FOR_EACH_MESSAGE(m)
	{
		State		after = *s;
		Node	   *n = &after.nodes[i];

		if (n->taken & m)
		{
			n->taken &= ~m;
			reach(&after, FAULT, "node: rollback");
			if (n->unfinished & m)	/* else a careless variant has dropped it */
				n->finished |= m;
			n->unfinished &= ~m;
			consume(&after, m);
			reach(&after, PROGRESS, "node: commit");
		}
		else if (n->unfinished & m && n->wants && !n->draining)
		{
			n->taken |= m;
			reach(&after, PROGRESS, "node: take");
		}
		else if (n->told & m)
		{
			n->finished &= ~m;
			n->told &= ~m;
			reach(&after, PROGRESS, "node: truncates");
		}
	}
}

static void
change_wish(const State *s, int i)
{
	State		after = *s;
	Node	   *n = &after.nodes[i];

	n->wants = !n->wants;
	if (n->wants && variant == DRAINING_UNDONE)
		n->draining = false;
	reach(&after, FAULT, n->wants ? "node: consumers come" : "node: consumers go");
}

static void
crash_node(const State *s, int i)
{
	State		after = *s;
	Node	   *n = &after.nodes[i];

	after.crashes--;
	n->fence = n->told = 0;
	if (variant == DRAINING_NOT_DURABLE)
		n->draining = false;
	lose_report(n);
	if (n->forward.request != NOTHING && n->forward.answer == NO_ANSWER)
		lose_forward(n);
	n->late_token = n->late_epoch = n->late_set = n->late_recall = 0;
	reach(&after, FAULT, "node: crash, what was taken is prepared");
	n->taken = 0;
	reach(&after, FAULT, "node: crash");
}

static void
node_steps(const State *s, int i)
{
	const Node *n = &s->nodes[i];

	forward_steps(s, i);
	if (n->forward.request != NOTHING && n->forward.answer == NO_ANSWER)
		execute_forward(s, i);
	execute_late_forward(s, i);
	report_steps(s, i);
	if (n->report.request != NOTHING && n->report.answer == NO_ANSWER)
		execute_report(s, i);
	execute_late_report(s, i);
	node_sessions(s, i);
	change_wish(s, i);
	if (s->crashes > 0)
		crash_node(s, i);
}

static void
make_steps(const void *state)
{
	origin_steps(state);
	for (int i = 0; i < limits.nodes; i++)
		node_steps(state, i);
}

/* --- exploring ---------------------------------------------------------------------------------- */

/*
 * From each state, everything can get consumed without a fault, a user's rollback,
 * a consumer that comes or goes, or an administrator; unless there is no consumer,
 * or the model has no epoch left for a grant.
 */
static bool
is_finished(const void *state)
{
	const State *s = state;
	bool		consumers = limits.origin;

	for (int i = 0; i < limits.nodes; i++)
		consumers |= s->nodes[i].wants;
	return s->done == ALL || !consumers || (!limits.origin && s->holder == 0 && s->epoch == limits.epochs);
}

/* Returns the violated invariant, or NULL. */
static const char *
explore(Variant v, Limits l)
{
	ExplorerModel model = {.size = sizeof(State), .make_steps = make_steps, .is_finished = is_finished, .progress = STUCK, .trace = v == RIGHT};
	State		first;

	variant = v;
	limits = l;
	memset(&first, 0, sizeof(first));
	first.crashes = limits.crashes;
	first.breaks = limits.breaks;
	return explorer_run(&model, &first);
}

/* --- tests ---------------------------------------------------------------------------------------- */

static const Limits one_message = {.nodes = 1, .messages = 1, .epochs = 2, .crashes = 1, .breaks = 1, .origin = true};
static const Limits one_node = {.nodes = 1, .messages = 2, .epochs = 2, .crashes = 1, .breaks = 1, .origin = true};
static const Limits two_nodes = {.nodes = 2, .messages = 1, .epochs = 2, .crashes = 1, .origin = true};
static const Limits no_origin = {.nodes = 1, .messages = 2, .epochs = 2, .breaks = 1};
static const Limits more_epochs = {.nodes = 1, .messages = 1, .epochs = EPOCHS, .crashes = 2, .breaks = 1, .origin = true};

static void
check_right(Limits l, uint32 least)
{
	const char *violated = explore(RIGHT, l);

	if (violated != NULL)
		unit_fail(__FILE__, __LINE__, "%s", violated);
	CHECK(explorer_states > least);
}

void
test_lease_protocol(void)
{
	check_right(no_origin, 200000);
	check_right(more_epochs, 300000);
	check_right(one_node, 900000);
	check_right(two_nodes, 600000);
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
	LEASE_VARIANTS(X)
#undef X
}
