/*
 * session.c
 *		Connections, and the transactions that run over them step by step.
 *
 * A transaction is a list of steps; a step is one statement sent and all its
 * results received.  Nothing here waits: the loop in main.c calls
 * session_ready when the socket has something.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "load.h"

#define TEXT_OID 25

static char *array_buffer;

static void
add(uint64_t *counter, uint64_t n)
{
	__atomic_fetch_add(counter, n, __ATOMIC_RELAXED);
}

static bool
chance(int percent)
{
	return percent > 0 && (int) (rand_r(&opt.seed) % 100) < percent;
}

/* The slowest statement since the last look at it. */
static void
note_slowest(uint64_t us)
{
	uint64_t   *slowest = producer ? &control->slowest_producing : &control->slowest_consuming;
	uint64_t	old = __atomic_load_n(slowest, __ATOMIC_RELAXED);

	while (us > old && !__atomic_compare_exchange_n(slowest, &old, us, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
}

/* Buckets: single microseconds up to 63, then 32 per power of two. */
static void
hist_add(uint64_t *hist, uint64_t us, uint64_t n)
{
	int			exponent,
				index;

	if (us < 64)
		index = (int) us;
	else
	{
		exponent = 63 - __builtin_clzll(us);
		index = 64 + (exponent - 6) * 32 + (int) ((us >> (exponent - 5)) & 31);
		if (index >= HIST_BUCKETS)
			index = HIST_BUCKETS - 1;
	}
	hist[index] += n;
}

static int
parameters_of(const char *sql)
{
	int			most = 0;

	for (const char *p = sql; (p = strchr(p, '$')) != NULL; p++)
		if (p[1] > '0' && p[1] <= '9' && p[1] - '0' > most)
			most = p[1] - '0';
	return most;
}

void
session_init(void)
{
	opt.leases = opt.finish || (opt.dequeue && parameters_of(opt.dequeue) >= 3);
	array_buffer = malloc((size_t) (opt.payload + 4) * (size_t) opt.batch + 32);
	if (!array_buffer)
		die("out of memory");
}

/* ------------------------------------------------------------ connection */

static bool
prepare(PGconn *conn, const char *name, const char *sql)
{
	PGresult   *res;
	bool		ok;

	if (!sql)
		return true;
	res = PQprepare(conn, name, sql, 0, NULL);
	ok = PQresultStatus(res) == PGRES_COMMAND_OK;
	if (!ok && !opt.reconnect)
		die("could not prepare %s: %s", name, PQerrorMessage(conn));
	PQclear(res);
	return ok;
}

bool
session_connect(struct session *s)
{
	struct epoll_event ev = {.events = EPOLLIN, .data.ptr = s};
	PGresult   *res;
	bool		ok;

	s->conn = PQconnectdb(opt.conninfo);
	if (PQstatus(s->conn) != CONNECTION_OK)
	{
		if (!opt.reconnect)
			die("%s", PQerrorMessage(s->conn));
		PQfinish(s->conn);
		s->conn = NULL;
		return false;
	}
	ok = true;
	if (opt.setup)
	{
		res = PQexec(s->conn, opt.setup);
		ok = PQresultStatus(res) == PGRES_COMMAND_OK || PQresultStatus(res) == PGRES_TUPLES_OK;
		if (!ok && !opt.reconnect)
			die("%s: %s", opt.setup, PQerrorMessage(s->conn));
		PQclear(res);
	}
	ok = ok && prepare(s->conn, "enqueue", opt.enqueue) && prepare(s->conn, "dequeue", opt.dequeue) &&
		prepare(s->conn, "open", opt.open) && prepare(s->conn, "close", opt.close) &&
		prepare(s->conn, "finish", opt.finish) && prepare(s->conn, "wait", opt.wait);
	if (!ok || PQsetnonblocking(s->conn, 1) != 0)
	{
		PQfinish(s->conn);
		s->conn = NULL;
		return false;
	}
	if (epoll_ctl(epfd, EPOLL_CTL_ADD, PQsocket(s->conn), &ev) != 0)
		die("epoll_ctl: %s", strerror(errno));
	s->waiting_write = false;
	s->busy = false;
	s->nsteps = s->step = 0;
	s->wake = 0;
	s->held_length = 0;
	/* A new connection is a new session: order is promised within one only. */
	s->id = (uint32_t) s->number << 12 | (s->generation & 4095);
	s->generation++;
	s->next_seq = 1;
	if (!s->counted_ready)
	{
		s->counted_ready = true;
		add(&control->ready, 1);
	}
	return true;
}

static void
session_flush(struct session *s)
{
	int			n = PQflush(s->conn);
	struct epoll_event ev = {.data.ptr = s};

	if (n < 0)
		return;					/* found at the next read */
	if ((n == 1) != s->waiting_write)
	{
		s->waiting_write = n == 1;
		ev.events = EPOLLIN | (n == 1 ? (uint32_t) EPOLLOUT : 0);
		epoll_ctl(epfd, EPOLL_CTL_MOD, PQsocket(s->conn), &ev);
	}
}

/* ----------------------------------------------------------- transaction */

static void
plan(struct session *s, enum op op, int count)
{
	if (s->nsteps == MAX_OPS)
		die("too many steps in a transaction");
	s->steps[s->nsteps++] = (struct step) {op, count};
}

/* The same frame for producers and consumers; op does the work in it. */
static void
plan_transaction(struct session *s, enum op op)
{
	bool		block = opt.explicit || opt.single;
	bool		use_prepare = chance(opt.prepare);

	s->nsteps = s->step = 0;
	s->failed = s->wrong_commit = false;
	s->will_commit = !chance(opt.rollback);
	s->count = 0;
	s->last_rows = 0;
	s->in_block = block;
	s->priority = opt.priorities ? (int) (rand_r(&opt.seed) % 10) : 1;
	if (block)
		plan(s, OP_BEGIN, 0);
	if (block && chance(opt.savepoint))
	{
		bool		back = chance(50);

		plan(s, OP_SAVEPOINT, 0);
		plan(s, op, opt.single ? 1 : 1 + (int) (rand_r(&opt.seed) % (unsigned) opt.batch));
		plan(s, back ? OP_BACK : OP_RELEASE, 0);
	}
	if (opt.single)
		for (int i = 0; i < opt.batch; i++)
			plan(s, op, 1);
	else
		plan(s, op, opt.batch);
	if (!block && op == OP_DEQUEUE && opt.finish)
		plan(s, OP_FINISH, 0);
	if (!block)
		return;
	if (!s->will_commit)
		plan(s, OP_ROLLBACK, 0);
	else if (use_prepare)
	{
		static uint64_t counter;

		snprintf(s->gid, sizeof(s->gid), "load-%d-%d-%" PRIu64, (int) getpid(), s->number, ++counter);
		plan(s, OP_PREPARE, 0);
		plan(s, OP_COMMIT_PREPARED, 0);
	}
	else
		plan(s, OP_COMMIT, 0);
}

static char *
put_int32(char *to, uint32_t value)
{
	value = htonl(value);
	memcpy(to, &value, sizeof(value));
	return to + sizeof(value);
}

/*
 * The payloads as one array parameter; its length.  In binary form the server
 * copies the elements; of the text form it looks at every byte, twice.
 */
static int
put_array(char *to, struct session *s, int count, uint64_t stamp)
{
	char	   *p = to;

	if (opt.binary)
	{
		p = put_int32(p, 1);	/* dimensions */
		p = put_int32(p, 0);	/* no nulls */
		p = put_int32(p, TEXT_OID);
		p = put_int32(p, (uint32_t) count);
		p = put_int32(p, 1);	/* lower bound */
	}
	for (int i = 0; i < count; i++)
	{
		if (opt.binary)
			p = put_int32(p, (uint32_t) opt.payload);
		else
			*p++ = i == 0 ? '{' : ',';
		p = payload_put(p, s->id, s->next_seq + (uint64_t) i, stamp);
	}
	if (!opt.binary)
		*p++ = '}';
	*p = '\0';
	return (int) (p - to);
}

static void
send_enqueue(struct session *s, int count)
{
	const char *values[4] = {opt.queue, array_buffer};
	int			lengths[4] = {0};
	int			formats[4] = {0};
	char		priority[8];
	char		delay[32];
	uint64_t	now = now_us();
	uint64_t	stamp = s->started < now ? s->started : now;
	int			shown = opt.delay_ms > 0 ? UNORDERED : s->priority;

	ledger_note(s, 'I', shown, s->id, s->next_seq, count);
	ledger_before(s);
	if (opt.single || opt.batch == 1)
		*payload_put(array_buffer, s->id, s->next_seq, stamp) = '\0';
	else
	{
		lengths[1] = put_array(array_buffer, s, count, stamp);
		formats[1] = opt.binary;
	}
	s->next_seq += (uint64_t) count;
	s->count += count;
	snprintf(priority, sizeof(priority), "%d", s->priority);
	values[2] = priority;
	snprintf(delay, sizeof(delay), "%d milliseconds", opt.delay_ms > 0 ? (int) (rand_r(&opt.seed) % (unsigned) opt.delay_ms) : 0);
	values[3] = delay;
	PQsendQueryPrepared(s->conn, "enqueue", parameters_of(opt.enqueue), values, lengths, formats, opt.binary);
}

/* Messages ids and the receipt of what was dequeued, for the next parameters. */
static void
hold(struct session *s, PGresult *res)
{
	int			rows = PQntuples(res);
	int			ids = PQfnumber(res, "msgid");
	int			receipt = PQfnumber(res, "receipt");
	size_t		needed = 20;
	char	   *p;

	s->held_length = 0;
	s->held_receipt[0] = '\0';
	if (rows == 0)
		return;
	if (ids < 0)
		die("the dequeue statement returns no column msgid");
	for (int i = 0; i < rows; i++)
		needed += 4 + (size_t) PQgetlength(res, i, ids);
	if (needed > s->held_size)
	{
		s->held_size = needed * 2;
		s->held = realloc(s->held, s->held_size);
		if (!s->held)
			die("out of memory");
	}
	p = put_int32(s->held, 1);	/* dimensions */
	p = put_int32(p, 0);		/* no nulls */
	p = put_int32(p, PQftype(res, ids));
	p = put_int32(p, (uint32_t) rows);
	p = put_int32(p, 1);		/* lower bound */
	for (int i = 0; i < rows; i++)
	{
		int			length = PQgetlength(res, i, ids);

		p = put_int32(p, (uint32_t) length);
		memcpy(p, PQgetvalue(res, i, ids), (size_t) length);
		p += length;
	}
	s->held_length = (int) (p - s->held);
	if (receipt >= 0)
	{
		uint64_t	value = 0;

		for (int i = 0; i < 8; i++)
			value = value << 8 | (unsigned char) PQgetvalue(res, 0, receipt)[i];
		snprintf(s->held_receipt, sizeof(s->held_receipt), "%" PRIu64, value);
	}
}

static void
send_prepared(struct session *s, const char *name, const char *sql, bool with_batch)
{
	const char *values[4] = {opt.queue, s->consumer, NULL, NULL};
	int			lengths[4] = {0};
	int			formats[4] = {0, 0, 1, 0};

	if (with_batch)
		values[0] = s->batch;
	if (s->held_length > 0)
	{
		values[2] = s->held;
		lengths[2] = s->held_length;
		values[3] = s->held_receipt[0] ? s->held_receipt : NULL;
	}
	PQsendQueryPrepared(s->conn, name, parameters_of(sql), values, lengths, formats,
						strcmp(name, "dequeue") == 0 ? opt.binary || opt.leases : 0);
}

static void
send_simple(struct session *s, const char *sql)
{
	/* the extended protocol, as every driver's */
	PQsendQueryParams(s->conn, sql, 0, NULL, NULL, NULL, NULL, 0);
}

static void
send_step(struct session *s)
{
	struct step *step = &s->steps[s->step];
	char		sql[128];

	s->busy = true;
	s->sent = now_us();
	switch (step->op)
	{
		case OP_BEGIN:
			send_simple(s, "BEGIN");
			break;
		case OP_ENQUEUE:
			send_enqueue(s, step->count);
			break;
		case OP_DEQUEUE:
			send_prepared(s, "dequeue", opt.dequeue, opt.open != NULL);
			break;
		case OP_OPEN:
			send_prepared(s, "open", opt.open, false);
			break;
		case OP_CLOSE:
			ledger_before(s);
			send_prepared(s, "close", opt.close, true);
			break;
		case OP_FINISH:
			ledger_before(s);
			send_prepared(s, "finish", opt.finish, false);
			break;
		case OP_SAVEPOINT:
			ledger_note(s, 'S', 0, 0, 0, 0);
			s->count_at_savepoint = s->count;
			send_simple(s, "SAVEPOINT s");
			break;
		case OP_BACK:
			send_simple(s, "ROLLBACK TO SAVEPOINT s");
			break;
		case OP_RELEASE:
			send_simple(s, "RELEASE SAVEPOINT s");
			break;
		case OP_COMMIT:
			ledger_before(s);
			send_simple(s, "COMMIT");
			break;
		case OP_ROLLBACK:
			send_simple(s, "ROLLBACK");
			break;
		case OP_PREPARE:
			ledger_before(s);
			snprintf(sql, sizeof(sql), "PREPARE TRANSACTION '%s'", s->gid);
			send_simple(s, sql);
			break;
		case OP_COMMIT_PREPARED:
			snprintf(sql, sizeof(sql), "COMMIT PREPARED '%s'", s->gid);
			send_simple(s, sql);
			break;
		case OP_WAIT:
			totals.waits++;
			send_prepared(s, "wait", opt.wait, false);
			break;
		case OP_TICK:
			send_prepared(s, "wait", opt.wait, false);
			break;
	}
	session_flush(s);
}

/* One transaction is over with outcome 'C', 'R' or 'U'. */
static void
finish_transaction(struct session *s, char outcome)
{
	bool		now_measuring = phase() == PHASE_MEASURE;

	if (s->count > 0 || s->npending > 0)
	{
		ledger_note(s, outcome, 0, 0, opt.times && outcome != 'U' ? now_us() : 0, 0);
		ledger_before(s);
	}
	if (outcome == 'U')
		add(&control->unknown, 1);
	if (outcome == 'R')
		add(&control->rollbacks, 1);
	if (outcome == 'C' && s->count > 0)
	{
		uint64_t	count = (uint64_t) s->count;

		totals.messages += count;
		totals.transactions++;
		add(producer ? &control->produced : &control->delivered, count);
		if (now_measuring)
		{
			totals.measured_messages += count;
			totals.measured_transactions++;
			add(producer ? &control->produced_measured : &control->delivered_measured, count);
			hist_add(totals.duration, now_us() - s->started, 1);
		}
	}
	s->nsteps = s->step = 0;
	s->busy = false;
	s->count = 0;
}

static void
connection_lost(struct session *s)
{
	enum op		op = s->busy && s->step < s->nsteps ? s->steps[s->step].op : OP_WAIT;
	bool		in_doubt = op == OP_COMMIT || op == OP_PREPARE || op == OP_COMMIT_PREPARED || op == OP_CLOSE ||
		op == OP_FINISH ||
		(!s->in_block && (op == OP_ENQUEUE || op == OP_DEQUEUE));

	if (!opt.reconnect)
		die("session %d lost its connection: %s", s->number, PQerrorMessage(s->conn));
	epoll_ctl(epfd, EPOLL_CTL_DEL, PQsocket(s->conn), NULL);
	PQfinish(s->conn);
	s->conn = NULL;
	add(&control->reconnects, 1);
	if (op == OP_DEQUEUE)
		ledger_note(s, 'X', 0, 0, 0, opt.batch);
	if (op != OP_WAIT && op != OP_TICK)
		ledger_note(s, 'N', 0, 0, 0, 0);
	if (s->nsteps > 0 && op != OP_WAIT && op != OP_TICK)
		finish_transaction(s, in_doubt ? 'U' : 'R');
	s->nsteps = s->step = 0;
	s->busy = false;
	s->reconnect = now_us() + 20000;
	if (s->counted_idle)
	{
		s->counted_idle = false;
		__atomic_fetch_sub(&control->idle, 1, __ATOMIC_RELAXED);
	}
}

/* Idle: the last dequeue that was answered found nothing. */
static void
set_idle(struct session *s, bool idle)
{
	if (producer || ticker || s->counted_idle == idle)
		return;
	s->counted_idle = idle;
	if (idle)
		add(&control->idle, 1);
	else
		__atomic_fetch_sub(&control->idle, 1, __ATOMIC_RELAXED);
}

static void
take_rows(struct session *s, PGresult *res)
{
	static int	column = -1,
				priority_column = -1;
	int			rows = PQntuples(res);
	uint64_t	now = now_us();
	bool		measuring = phase() == PHASE_MEASURE;

	if (column < 0)
	{
		column = PQfnumber(res, "payload");
		if (column < 0)
			column = PQfnumber(res, "ev_data");
		if (column < 0)
			die("the dequeue statement returns no column payload");
		priority_column = PQfnumber(res, "priority");
	}
	if (opt.times && rows > 0)
	{
		ledger_note(s, 'T', 0, 0, s->sent, 0);
		ledger_note(s, 'T', 0, 0, now, 0);
	}
	for (int i = 0; i < rows; i++)
	{
		const char *p = PQgetvalue(res, i, column);
		uint32_t	session = 0;
		uint64_t	seq = 0,
					stamp = 0;
		int			priority = 1;

		if (!payload_check(p, PQgetlength(res, i, column), &session, &seq, &stamp))
		{
			add(&control->bad_payloads, 1);
			ledger_note(s, 'E', 0, session, seq, 1);
			continue;
		}
		if (opt.priorities && priority_column >= 0)
		{
			p = PQgetvalue(res, i, priority_column);
			priority = PQfformat(res, priority_column) == 1 ? p[3] : atoi(p);
		}
		ledger_note(s, 'D', priority, session, seq, 1);
		if (measuring)
			hist_add(totals.latency, now > stamp ? now - stamp : 0, 1);
	}
	if (rows > 0)
		set_idle(s, false);
	if (opt.leases)
		hold(s, res);
	s->last_rows = rows;
	s->count += rows;
}

static void
report_error(struct session *s, PGresult *res)
{
	const char *state = PQresultErrorField(res, PG_DIAG_SQLSTATE);

	s->failed = true;
	/* what a dying server says is not news */
	if (state && strncmp(state, "57P0", 4) == 0)
		return;
	add(&control->errors, 1);
	if (totals.reported_errors++ < 20)
		fprintf(stderr, "load: %s: %s", opt.role, PQresultErrorMessage(res));
}

static void
handle_result(struct session *s, PGresult *res)
{
	ExecStatusType status = PQresultStatus(res);

	if (status == PGRES_FATAL_ERROR)
	{
		report_error(s, res);
		return;
	}
	switch (s->steps[s->step].op)
	{
		case OP_DEQUEUE:
			if (status == PGRES_TUPLES_OK)
				take_rows(s, res);
			break;
		case OP_OPEN:
			s->batch_empty = PQntuples(res) == 0 || PQgetisnull(res, 0, 0);
			if (!s->batch_empty)
				snprintf(s->batch, sizeof(s->batch), "%s", PQgetvalue(res, 0, 0));
			break;
		case OP_COMMIT:
			if (strcmp(PQcmdStatus(res), "COMMIT") != 0)
				s->wrong_commit = true;
			break;
		default:
			break;
	}
}

/* The consumer found nothing: wait with the engine's own means, or poll. */
static void
consumer_idle(struct session *s)
{
	totals.empty_dequeues++;
	set_idle(s, true);
	s->nsteps = s->step = 0;
	s->busy = false;
	if (opt.wait)
	{
		plan(s, OP_WAIT, 0);
		s->failed = false;
		s->in_block = false;
		send_step(s);
	}
	else
		s->wake = now_us() + (uint64_t) opt.poll_us;
}

/* All results of a step have arrived. */
static void
step_done(struct session *s)
{
	enum op		op = s->steps[s->step].op;

	s->busy = false;
	if (op == OP_WAIT || op == OP_TICK)
	{
		s->nsteps = s->step = 0;
		if (s->failed)
			s->wake = now_us() + 100000;
		else if (op == OP_TICK)
			s->wake = now_us() + (uint64_t) opt.tick_us;
		return;
	}
	note_slowest(now_us() - s->sent);
	if (s->failed)
	{
		/* messages that a failed dequeue had taken were delivered late to others */
		if (op == OP_DEQUEUE)
			ledger_note(s, 'X', 0, 0, 0, opt.batch);
		if (s->in_block && op != OP_COMMIT && op != OP_ROLLBACK && op != OP_PREPARE && op != OP_COMMIT_PREPARED)
		{
			s->step = 0;
			s->nsteps = 0;
			plan(s, OP_ROLLBACK, 0);
			s->failed = false;
			s->will_commit = false;
			send_step(s);
			return;
		}
		/* COMMIT PREPARED that fails leaves the transaction prepared: in doubt */
		finish_transaction(s, op == OP_COMMIT_PREPARED ? 'U' : 'R');
		s->wake = now_us() + 10000;
		return;
	}
	if (op == OP_BACK)
	{
		ledger_note(s, 'B', 0, 0, 0, 0);
		s->count = s->count_at_savepoint;
	}
	else if (op == OP_RELEASE)
		ledger_note(s, 'L', 0, 0, 0, 0);
	else if (op == OP_OPEN && s->batch_empty)
	{
		consumer_idle(s);
		return;
	}
	s->step++;
	/* single calls: nothing more to be had, so end the transaction now */
	if (op == OP_DEQUEUE && opt.single && s->last_rows == 0)
		while (s->step < s->nsteps && s->steps[s->step].op == OP_DEQUEUE)
			s->step++;
	if (op == OP_FINISH)
		s->held_length = 0;
	if (s->step < s->nsteps && s->steps[s->step].op == OP_FINISH && s->held_length == 0)
		s->step++;
	if (s->step < s->nsteps)
	{
		send_step(s);
		return;
	}
	if (!producer && s->count == 0 && s->will_commit && s->npending == 0)
	{
		consumer_idle(s);
		return;
	}
	if (!producer && s->count == 0 && s->will_commit)
	{
		finish_transaction(s, 'C');
		consumer_idle(s);
		return;
	}
	finish_transaction(s, !s->will_commit || s->wrong_commit ? 'R' : 'C');
}

static bool
backlog_full(void)
{
	uint64_t	produced = __atomic_load_n(&control->produced, __ATOMIC_RELAXED);
	uint64_t	delivered = __atomic_load_n(&control->delivered, __ATOMIC_RELAXED) +
		__atomic_load_n(&control->acknowledged, __ATOMIC_RELAXED);

	if (control->subscribers > 1)
		delivered /= control->subscribers;
	return opt.backlog > 0 && produced > delivered + opt.backlog;
}

/* Give an idle session its next transaction, if it is time for one. */
void
session_start_next(struct session *s, uint64_t now)
{
	uint64_t	ph = phase();

	if (s->busy || is_leaving() || ph == PHASE_CONNECT || ph == PHASE_STOP)
		return;
	if (ticker)
	{
		if (s->wake <= now)
		{
			s->nsteps = s->step = 0;
			s->failed = false;
			plan(s, OP_TICK, 0);
			send_step(s);
		}
		return;
	}
	if (s->wake > now)
		return;
	if (!producer && opt.messages > 0 && totals.messages >= opt.messages)
	{
		set_idle(s, true);
		s->wake = now + 20000;
		return;
	}
	if (!producer)
	{
		s->started = now;
		plan_transaction(s, OP_DEQUEUE);
		if (opt.open)
		{
			s->nsteps = 0;
			s->in_block = false;
			plan(s, OP_OPEN, 0);
			plan(s, OP_DEQUEUE, 0);
			plan(s, OP_CLOSE, 0);
		}
		send_step(s);
		return;
	}
	if (ph >= PHASE_DRAIN || (opt.messages > 0 && totals.messages >= opt.messages))
	{
		if (!s->counted_quiet)
		{
			s->counted_quiet = true;
			add(&control->quiet, 1);
		}
		s->wake = now + 20000;
		return;
	}
	if (backlog_full())
	{
		s->wake = now + 1000;
		return;
	}
	s->started = now;
	if (opt.rate > 0)
	{
		double		each = 1e6 * opt.batch * opt.sessions / opt.rate;

		if (s->due == 0)
			s->due = now + (uint64_t) (each * (s->number - opt.first_session) / opt.sessions);
		if (s->due > now)
		{
			s->wake = s->due;
			return;
		}
		/* a call that could not be sent in time counts from when it was due */
		if (now - s->due > 200)
			s->started = s->due;
		s->due += (uint64_t) each;
	}
	plan_transaction(s, OP_ENQUEUE);
	send_step(s);
}

void
session_ready(struct session *s, uint32_t events)
{
	PGresult   *res;

	if (events & EPOLLOUT)
		session_flush(s);
	if (!PQconsumeInput(s->conn))
	{
		connection_lost(s);
		return;
	}
	while (s->busy && !PQisBusy(s->conn))
	{
		res = PQgetResult(s->conn);
		if (res)
		{
			handle_result(s, res);
			PQclear(res);
			continue;
		}
		if (PQstatus(s->conn) == CONNECTION_BAD)
			break;
		step_done(s);
	}
	if (PQstatus(s->conn) == CONNECTION_BAD)
		connection_lost(s);
}
