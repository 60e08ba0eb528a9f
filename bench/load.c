/*
 * load.c
 *		A light client that puts load on a queue and keeps a ledger of what it saw.
 *
 * One process drives many sessions from one event loop, because on a small
 * machine a thread or an interpreter for each session costs more CPU than the
 * server.  What it executes comes as SQL text from its caller, so that every
 * contestant of a benchmark is served by the same code:
 *
 *	enqueue	$1 queue, $2 payload (or array of payloads), $3 priority, $4 delay
 *	dequeue	$1 queue, $2 consumer; a column "payload" or "ev_data" is needed,
 *			columns "priority" and "attempts" are understood
 *	open, close		for queues that deliver in batches: open returns a batch number
 *			or null, dequeue then gets it as $1, and so does close
 *	wait	$1 queue, $2 consumer; run when a dequeue found nothing
 *
 * A payload is text: session, sequence number, time of the call, all in hex,
 * and a filler computed from session and number; the consumer compares every
 * byte of it.
 *
 * The caller steers all processes of a run through a small mapped file (struct
 * control): connect, run, measure, drain, stop.  The result is one JSON object
 * on standard output.
 *
 * The ledger (--ledger DIR) is one file per session, a line of JSON and then
 * records of 16 bytes (struct record).  It is written before a transaction is
 * sent its COMMIT and after the answer, so that a transaction without a
 * recorded outcome is known to be in doubt.  python/pgaq/lab/ledger.py reads it.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <libpq-fe.h>

#define MAX_SESSIONS	1024
#define MAX_CONSUMERS	1024
#define MAX_OPS			256
#define HEADER_LENGTH	39		/* ssssssss.nnnnnnnnnnnn.tttttttttttttttt. */
#define PATTERN_LENGTH	4096
#define HIST_BUCKETS	(64 + 36 * 32)
#define CONTROL_MAGIC	UINT64_C(0x31716167705f6c64)
#define UNORDERED		255

enum phase
{
	PHASE_CONNECT = 0, PHASE_RUN = 1, PHASE_MEASURE = 2, PHASE_DRAIN = 3, PHASE_STOP = 4
};

/* Mapped by every process of a run; lab/load.py writes phase, the rest is added to. */
struct control
{
	uint64_t	magic;
	uint64_t	phase;
	uint64_t	subscribers;	/* deliveries wanted per message, for the backlog */
	uint64_t	ready;			/* sessions connected for the first time */
	uint64_t	produced;		/* messages whose commit was confirmed */
	uint64_t	produced_measured;
	uint64_t	delivered;		/* deliveries whose commit was confirmed */
	uint64_t	delivered_measured;
	uint64_t	idle;			/* consumer sessions whose last dequeue was empty */
	uint64_t	quiet;			/* producer sessions without an open transaction in drain */
	uint64_t	errors;
	uint64_t	reconnects;
	uint64_t	unknown;		/* transactions whose outcome is unknown */
	uint64_t	bad_payloads;
	uint64_t	rollbacks;
	uint64_t	spare[17];
};

/* Kinds: I intent, D delivered, X dequeue lost with the connection, S savepoint,
 * B back to savepoint, L savepoint released, E wrong payload, N connection lost,
 * C R U outcomes, Z orderly end of the file. */
struct record
{
	uint8_t		kind;
	uint8_t		priority;
	uint16_t	count;			/* messages first .. first + count - 1 */
	uint32_t	session;
	uint64_t	first;
};

enum op
{
	OP_BEGIN, OP_ENQUEUE, OP_DEQUEUE, OP_OPEN, OP_CLOSE, OP_SAVEPOINT, OP_BACK, OP_RELEASE,
	OP_COMMIT, OP_ROLLBACK, OP_PREPARE, OP_COMMIT_PREPARED, OP_WAIT, OP_TICK
};

struct step
{
	enum op		op;
	int			count;			/* messages */
};

struct session
{
	int			number;
	PGconn	   *conn;
	bool		waiting_write;
	bool		busy;			/* a step is under way */
	bool		counted_ready;
	bool		counted_idle;
	bool		counted_quiet;
	uint64_t	wake;			/* when idle: not before this time, us */
	uint64_t	reconnect;		/* when without connection: try then */
	uint32_t	generation;
	uint32_t	id;				/* session number in payloads: durable identity */
	uint64_t	next_seq;
	uint64_t	due;			/* next send of a session with a rate */
	const char *consumer;

	struct step steps[MAX_OPS];
	int			nsteps;
	int			step;
	uint64_t	started;
	bool		measured;		/* transaction began while measuring */
	bool		failed;			/* an error was reported in it */
	bool		in_block;
	bool		will_commit;
	bool		wrong_commit;	/* COMMIT answered ROLLBACK */
	int			priority;
	int			count;			/* messages of the transaction, savepoints apart */
	int			count_at_savepoint;
	int			last_rows;
	bool		batch_empty;
	char		batch[32];
	char		gid[64];

	int			ledger;
	struct record *pending;
	size_t		npending;
	size_t		maxpending;
};

enum fsync_mode
{
	FSYNC_NONE, FSYNC_END, FSYNC_EACH
};

static struct
{
	const char *conninfo;
	const char *control;
	const char *role;
	const char *queue;
	const char *enqueue;
	const char *dequeue;
	const char *open;
	const char *close;
	const char *wait;
	const char *setup;
	const char *ledger;
	const char *label;
	const char *consumers[MAX_CONSUMERS];
	int			nconsumers;
	int			sessions;
	int			first_session;
	int			batch;
	int			payload;
	int			single;			/* one call per message in a transaction */
	int			explicit;		/* BEGIN ... COMMIT */
	int			reconnect;
	int			rollback;		/* per cent of transactions */
	int			savepoint;
	int			prepare;
	int			priorities;
	int			delay_ms;
	int			binary;
	int			poll_us;
	int			tick_us;
	double		rate;
	uint64_t	backlog;
	uint64_t	messages;		/* stop after so many per process; 0 = none */
	enum fsync_mode fsync;
	unsigned	seed;
} opt = {
	.role = "producer", .queue = "q", .sessions = 1, .batch = 10, .payload = 512,
	.poll_us = 5000, .fsync = FSYNC_END, .label = "",
};

static struct control *control;
static struct session *sessions;
static bool producer;
static bool ticker;
static int	epfd;
static char pattern[PATTERN_LENGTH * 2];
static char *array_buffer;
static uint64_t latency[HIST_BUCKETS];
static uint64_t duration[HIST_BUCKETS];
static uint64_t total_messages, total_transactions, measured_messages, measured_transactions;
static uint64_t empty_dequeues, waits, reported_errors;
static struct rusage usage_start, usage_end;
static bool usage_started, usage_ended;

static void
die(const char *format,...)
{
	va_list		args;

	va_start(args, format);
	fprintf(stderr, "load: ");
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
	va_end(args);
	exit(2);
}

static uint64_t
now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t) ts.tv_sec * 1000000 + (uint64_t) ts.tv_nsec / 1000;
}

static uint64_t
phase(void)
{
	return __atomic_load_n(&control->phase, __ATOMIC_ACQUIRE);
}

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

/* ---------------------------------------------------------------- ledger */

static void
ledger_flush(struct session *s, bool durable)
{
	const char *p = (const char *) s->pending;
	size_t		left = s->npending * sizeof(struct record);

	if (s->ledger < 0)
		return;
	while (left > 0)
	{
		ssize_t		n = write(s->ledger, p, left);

		if (n < 0)
		{
			if (errno == EINTR)
				continue;
			die("could not write the ledger: %s", strerror(errno));
		}
		p += n;
		left -= (size_t) n;
	}
	s->npending = 0;
	if (durable && fdatasync(s->ledger) != 0)
		die("could not sync the ledger: %s", strerror(errno));
}

static void
ledger_note(struct session *s, char kind, int priority, uint32_t session, uint64_t first, int count)
{
	struct record *last;

	if (s->ledger < 0)
		return;
	if (s->npending > 0 && kind == 'D')
	{
		last = &s->pending[s->npending - 1];
		if (last->kind == 'D' && last->session == session && last->priority == priority &&
			last->first + last->count == first && last->count + count <= UINT16_MAX)
		{
			last->count = (uint16_t) (last->count + count);
			return;
		}
	}
	if (s->npending == s->maxpending)
	{
		s->maxpending = s->maxpending ? s->maxpending * 2 : 256;
		s->pending = realloc(s->pending, s->maxpending * sizeof(struct record));
		if (!s->pending)
			die("out of memory");
	}
	s->pending[s->npending++] = (struct record) {
		.kind = (uint8_t) kind, .priority = (uint8_t) priority, .count = (uint16_t) count,
		.session = session, .first = first
	};
}

/* What was noted is known outside the database before the next step is sent. */
static void
ledger_before(struct session *s)
{
	if (s->npending >= 4096 || opt.fsync == FSYNC_EACH)
		ledger_flush(s, opt.fsync == FSYNC_EACH);
}

static void
ledger_open(struct session *s)
{
	char		path[PATH_MAX];
	char		head[512];
	int			n;

	s->ledger = -1;
	if (!opt.ledger)
		return;
	snprintf(path, sizeof(path), "%s/%s%s-%04d.led", opt.ledger, opt.label, opt.role, s->number);
	s->ledger = open(path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0644);
	if (s->ledger < 0)
		die("could not create %s: %s", path, strerror(errno));
	n = snprintf(head, sizeof(head),
				 "{\"role\": \"%s\", \"client\": %d, \"queue\": \"%s\", \"consumer\": \"%s\", \"batch\": %d}\n",
				 opt.role, s->number, opt.queue, s->consumer ? s->consumer : "", opt.batch);
	if (write(s->ledger, head, (size_t) n) != n)
		die("could not write %s: %s", path, strerror(errno));
}

/* --------------------------------------------------------------- payload */

static void
pattern_init(void)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";
	uint32_t	x = 12345;

	for (int i = 0; i < PATTERN_LENGTH; i++)
	{
		x = x * 1664525 + 1013904223;
		pattern[i] = pattern[i + PATTERN_LENGTH] = letters[(x >> 20) % 64];
	}
}

static size_t
filler_offset(uint32_t session, uint64_t seq)
{
	return (session * UINT64_C(977) + seq * 131) % PATTERN_LENGTH;
}

/* Fillers longer than the pattern repeat it. */
static void
fill(char *to, size_t offset, size_t length)
{
	while (length > 0)
	{
		size_t		n = length < PATTERN_LENGTH ? length : PATTERN_LENGTH;

		memcpy(to, pattern + offset, n);
		to += n;
		length -= n;
	}
}

static void
put_hex(char *to, uint64_t value, int digits)
{
	static const char hex[] = "0123456789abcdef";

	for (int i = digits - 1; i >= 0; i--, value >>= 4)
		to[i] = hex[value & 15];
}

static bool
get_hex(const char *from, int digits, uint64_t *value)
{
	uint64_t	v = 0;

	for (int i = 0; i < digits; i++)
	{
		char		c = from[i];

		if (c >= '0' && c <= '9')
			v = v << 4 | (uint64_t) (c - '0');
		else if (c >= 'a' && c <= 'f')
			v = v << 4 | (uint64_t) (c - 'a' + 10);
		else
			return false;
	}
	*value = v;
	return true;
}

static char *
put_payload(char *to, uint32_t session, uint64_t seq, uint64_t stamp)
{
	put_hex(to, session, 8);
	to[8] = '.';
	put_hex(to + 9, seq, 12);
	to[21] = '.';
	put_hex(to + 22, stamp, 16);
	to[38] = '.';
	fill(to + HEADER_LENGTH, filler_offset(session, seq), (size_t) (opt.payload - HEADER_LENGTH));
	return to + opt.payload;
}

static bool
check_payload(const char *p, int length, uint32_t *session, uint64_t *seq, uint64_t *stamp)
{
	uint64_t	s;
	size_t		offset,
				left;

	if (length < HEADER_LENGTH || !get_hex(p, 8, &s) || !get_hex(p + 9, 12, seq) || !get_hex(p + 22, 16, stamp))
		return false;
	*session = (uint32_t) s;
	if (length != opt.payload || p[8] != '.' || p[21] != '.' || p[38] != '.')
		return false;
	offset = filler_offset(*session, *seq);
	left = (size_t) (length - HEADER_LENGTH);
	for (p += HEADER_LENGTH; left > 0;)
	{
		size_t		n = left < PATTERN_LENGTH ? left : PATTERN_LENGTH;

		if (memcmp(p, pattern + offset, n) != 0)
			return false;
		p += n;
		left -= n;
	}
	return true;
}

/* ------------------------------------------------------------ connection */

static int
parameters_of(const char *sql)
{
	int			most = 0;

	for (const char *p = sql; (p = strchr(p, '$')) != NULL; p++)
		if (p[1] > '0' && p[1] <= '9' && p[1] - '0' > most)
			most = p[1] - '0';
	return most;
}

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

static bool
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
		prepare(s->conn, "wait", opt.wait);
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

static void
send_enqueue(struct session *s, int count)
{
	const char *values[4];
	char		priority[8];
	char		delay[32];
	char	   *p = array_buffer;
	uint64_t	now = now_us();
	uint64_t	stamp = s->started < now ? s->started : now;
	int			nparams = parameters_of(opt.enqueue);
	int			shown = opt.delay_ms > 0 ? UNORDERED : s->priority;

	ledger_note(s, 'I', shown, s->id, s->next_seq, count);
	ledger_before(s);
	if (opt.single || opt.batch == 1)
		p = put_payload(p, s->id, s->next_seq, stamp);
	else
	{
		*p++ = '{';
		for (int i = 0; i < count; i++)
		{
			if (i > 0)
				*p++ = ',';
			p = put_payload(p, s->id, s->next_seq + (uint64_t) i, stamp);
		}
		*p++ = '}';
	}
	*p = '\0';
	s->next_seq += (uint64_t) count;
	s->count += count;
	values[0] = opt.queue;
	values[1] = array_buffer;
	snprintf(priority, sizeof(priority), "%d", s->priority);
	values[2] = priority;
	snprintf(delay, sizeof(delay), "%d milliseconds", opt.delay_ms > 0 ? (int) (rand_r(&opt.seed) % (unsigned) opt.delay_ms) : 0);
	values[3] = delay;
	PQsendQueryPrepared(s->conn, "enqueue", nparams, values, NULL, NULL, opt.binary);
}

static void
send_prepared(struct session *s, const char *name, const char *sql, bool with_batch)
{
	const char *values[2] = {opt.queue, s->consumer};

	if (with_batch)
		values[0] = s->batch;
	PQsendQueryPrepared(s->conn, name, parameters_of(sql), values, NULL, NULL,
						strcmp(name, "dequeue") == 0 ? opt.binary : 0);
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
			waits++;
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
		ledger_note(s, outcome, 0, 0, 0, 0);
		ledger_before(s);
	}
	if (outcome == 'U')
		add(&control->unknown, 1);
	if (outcome == 'R')
		add(&control->rollbacks, 1);
	if (outcome == 'C' && s->count > 0)
	{
		uint64_t	count = (uint64_t) s->count;

		total_messages += count;
		total_transactions++;
		add(producer ? &control->produced : &control->delivered, count);
		if (now_measuring)
		{
			measured_messages += count;
			measured_transactions++;
			add(producer ? &control->produced_measured : &control->delivered_measured, count);
			hist_add(duration, now_us() - s->started, 1);
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
	for (int i = 0; i < rows; i++)
	{
		const char *p = PQgetvalue(res, i, column);
		uint32_t	session = 0;
		uint64_t	seq = 0,
					stamp = 0;
		int			priority = 1;

		if (!check_payload(p, PQgetlength(res, i, column), &session, &seq, &stamp))
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
			hist_add(latency, now > stamp ? now - stamp : 0, 1);
	}
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
	if (reported_errors++ < 20)
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

/* The consumer found nothing: wait with the engine's own means, or poll. */
static void
consumer_idle(struct session *s)
{
	empty_dequeues++;
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
	if (s->failed)
	{
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
	uint64_t	delivered = __atomic_load_n(&control->delivered, __ATOMIC_RELAXED);

	if (control->subscribers > 1)
		delivered /= control->subscribers;
	return opt.backlog > 0 && produced > delivered + opt.backlog;
}

/* Give an idle session its next transaction, if it is time for one. */
static void
start_next(struct session *s, uint64_t now)
{
	uint64_t	ph = phase();

	if (s->busy || ph == PHASE_CONNECT || ph == PHASE_STOP)
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
	if (!producer)
	{
		if (s->counted_idle)
			set_idle(s, false);
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
	if (ph >= PHASE_DRAIN || (opt.messages > 0 && total_messages >= opt.messages))
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

static void
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

/* ------------------------------------------------------------------ loop */

static void
watch_usage(void)
{
	if (!usage_started && phase() >= PHASE_MEASURE)
	{
		getrusage(RUSAGE_SELF, &usage_start);
		usage_started = true;
	}
	if (!usage_ended && phase() > PHASE_MEASURE)
	{
		getrusage(RUSAGE_SELF, &usage_end);
		usage_ended = true;
	}
}

static void
loop(void)
{
	struct epoll_event events[256];

	while (phase() != PHASE_STOP)
	{
		uint64_t	now = now_us();
		uint64_t	next = now + 20000;
		struct timespec timeout;
		int			n;

		watch_usage();
		for (int i = 0; i < opt.sessions; i++)
		{
			struct session *s = &sessions[i];

			if (!s->conn)
			{
				if (s->reconnect <= now && !session_connect(s))
					s->reconnect = now_us() + 50000;
				if (!s->conn)
				{
					if (s->reconnect < next)
						next = s->reconnect;
					continue;
				}
			}
			start_next(s, now);
			if (!s->busy && s->wake > now && s->wake < next)
				next = s->wake;
			else if (!s->busy && phase() != PHASE_CONNECT && s->wake <= now)
				next = now;
		}
		now = now_us();
		next = next > now ? next - now : 0;
		timeout.tv_sec = (time_t) (next / 1000000);
		timeout.tv_nsec = (long) (next % 1000000) * 1000;
		n = epoll_pwait2(epfd, events, 256, &timeout, NULL);
		if (n < 0 && errno != EINTR)
			die("epoll: %s", strerror(errno));
		for (int i = 0; i < n; i++)
		{
			struct session *s = events[i].data.ptr;

			if (!s->conn)
				continue;
			session_ready(s, events[i].events);
			if (s->conn && !s->busy && phase() != PHASE_STOP)
				start_next(s, now_us());
		}
	}
	watch_usage();
}

static void
stop_sessions(void)
{
	for (int i = 0; i < opt.sessions; i++)
	{
		struct session *s = &sessions[i];

		if (s->conn && s->busy)
		{
			PGcancel   *cancel = PQgetCancel(s->conn);
			char		message[256];

			if (cancel)
				PQcancel(cancel, message, sizeof(message));
			PQfreeCancel(cancel);
		}
	}
	for (int i = 0; i < opt.sessions; i++)
	{
		if (!sessions[i].busy || sessions[i].steps[sessions[i].step].op == OP_WAIT)
			ledger_note(&sessions[i], 'Z', 0, 0, 0, 0);
		if (sessions[i].conn)
			PQfinish(sessions[i].conn);
		ledger_flush(&sessions[i], opt.fsync != FSYNC_NONE);
	}
}

static double
seconds(struct timeval a, struct timeval b)
{
	return (double) (b.tv_sec - a.tv_sec) + (double) (b.tv_usec - a.tv_usec) / 1e6;
}

static void
print_hist(const char *name, const uint64_t *hist)
{
	const char *comma = "";

	printf(", \"%s\": {", name);
	for (int i = 0; i < HIST_BUCKETS; i++)
		if (hist[i] > 0)
		{
			printf("%s\"%d\": %" PRIu64, comma, i, hist[i]);
			comma = ", ";
		}
	printf("}");
}

static void
print_result(void)
{
	printf("{\"role\": \"%s\", \"sessions\": %d, \"messages\": %" PRIu64 ", \"transactions\": %" PRIu64
		   ", \"measured_messages\": %" PRIu64 ", \"measured_transactions\": %" PRIu64
		   ", \"empty_dequeues\": %" PRIu64 ", \"waits\": %" PRIu64
		   ", \"cpu_user\": %.3f, \"cpu_system\": %.3f",
		   opt.role, opt.sessions, total_messages, total_transactions, measured_messages,
		   measured_transactions, empty_dequeues, waits,
		   usage_started ? seconds(usage_start.ru_utime, usage_end.ru_utime) : 0.0,
		   usage_started ? seconds(usage_start.ru_stime, usage_end.ru_stime) : 0.0);
	print_hist("latency", latency);
	print_hist("duration", duration);
	printf("}\n");
}

/* --------------------------------------------------------------- options */

enum option_id
{
	OPT_CONNINFO = 1000, OPT_CONTROL, OPT_ROLE, OPT_QUEUE, OPT_ENQUEUE, OPT_DEQUEUE, OPT_OPEN, OPT_CLOSE, OPT_WAIT, OPT_SETUP,
	OPT_LEDGER, OPT_LABEL, OPT_CONSUMER, OPT_SESSIONS, OPT_FIRST, OPT_BATCH, OPT_PAYLOAD, OPT_ROLLBACK, OPT_SAVEPOINT, OPT_PREPARE,
	OPT_DELAY, OPT_POLL, OPT_TICK, OPT_RATE, OPT_BACKLOG, OPT_MESSAGES, OPT_FSYNC, OPT_SEED
};

static void
parse_options(int argc, char **argv)
{
	static const struct option options[] = {
		{"conninfo", required_argument, NULL, OPT_CONNINFO}, {"control", required_argument, NULL, OPT_CONTROL},
		{"role", required_argument, NULL, OPT_ROLE}, {"queue", required_argument, NULL, OPT_QUEUE},
		{"enqueue", required_argument, NULL, OPT_ENQUEUE}, {"dequeue", required_argument, NULL, OPT_DEQUEUE},
		{"open", required_argument, NULL, OPT_OPEN}, {"close", required_argument, NULL, OPT_CLOSE},
		{"wait", required_argument, NULL, OPT_WAIT}, {"setup", required_argument, NULL, OPT_SETUP},
		{"ledger", required_argument, NULL, OPT_LEDGER}, {"label", required_argument, NULL, OPT_LABEL},
		{"consumer", required_argument, NULL, OPT_CONSUMER}, {"sessions", required_argument, NULL, OPT_SESSIONS},
		{"first-session", required_argument, NULL, OPT_FIRST}, {"batch", required_argument, NULL, OPT_BATCH},
		{"payload", required_argument, NULL, OPT_PAYLOAD}, {"rollback", required_argument, NULL, OPT_ROLLBACK},
		{"savepoint", required_argument, NULL, OPT_SAVEPOINT}, {"prepare", required_argument, NULL, OPT_PREPARE},
		{"delay-ms", required_argument, NULL, OPT_DELAY}, {"poll-us", required_argument, NULL, OPT_POLL},
		{"tick-us", required_argument, NULL, OPT_TICK}, {"rate", required_argument, NULL, OPT_RATE},
		{"backlog", required_argument, NULL, OPT_BACKLOG}, {"messages", required_argument, NULL, OPT_MESSAGES},
		{"fsync", required_argument, NULL, OPT_FSYNC}, {"seed", required_argument, NULL, OPT_SEED},
		{"single", no_argument, &opt.single, 1}, {"explicit", no_argument, &opt.explicit, 1},
		{"reconnect", no_argument, &opt.reconnect, 1}, {"priorities", no_argument, &opt.priorities, 1},
		{"binary", no_argument, &opt.binary, 1}, {NULL, 0, NULL, 0}
	};
	int			c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1)
	{
		switch (c)
		{
			case 0: break;
			case OPT_CONNINFO: opt.conninfo = optarg; break;
			case OPT_CONTROL: opt.control = optarg; break;
			case OPT_ROLE: opt.role = optarg; break;
			case OPT_QUEUE: opt.queue = optarg; break;
			case OPT_ENQUEUE: opt.enqueue = optarg; break;
			case OPT_DEQUEUE: opt.dequeue = optarg; break;
			case OPT_OPEN: opt.open = optarg; break;
			case OPT_CLOSE: opt.close = optarg; break;
			case OPT_WAIT: opt.wait = optarg; break;
			case OPT_SETUP: opt.setup = optarg; break;
			case OPT_LEDGER: opt.ledger = optarg; break;
			case OPT_LABEL: opt.label = optarg; break;
			case OPT_CONSUMER:
				if (opt.nconsumers == MAX_CONSUMERS)
					die("too many consumers");
				opt.consumers[opt.nconsumers++] = optarg;
				break;
			case OPT_SESSIONS: opt.sessions = atoi(optarg); break;
			case OPT_FIRST: opt.first_session = atoi(optarg); break;
			case OPT_BATCH: opt.batch = atoi(optarg); break;
			case OPT_PAYLOAD: opt.payload = atoi(optarg); break;
			case OPT_ROLLBACK: opt.rollback = atoi(optarg); break;
			case OPT_SAVEPOINT: opt.savepoint = atoi(optarg); break;
			case OPT_PREPARE: opt.prepare = atoi(optarg); break;
			case OPT_DELAY: opt.delay_ms = atoi(optarg); break;
			case OPT_POLL: opt.poll_us = atoi(optarg); break;
			case OPT_TICK: opt.tick_us = atoi(optarg); break;
			case OPT_RATE: opt.rate = atof(optarg); break;
			case OPT_BACKLOG: opt.backlog = strtoull(optarg, NULL, 10); break;
			case OPT_MESSAGES: opt.messages = strtoull(optarg, NULL, 10); break;
			case OPT_FSYNC:
				opt.fsync = strcmp(optarg, "each") == 0 ? FSYNC_EACH : strcmp(optarg, "end") == 0 ? FSYNC_END : FSYNC_NONE;
				break;
			case OPT_SEED: opt.seed = (unsigned) strtoul(optarg, NULL, 10); break;
			default: die("see the head of load.c for what can be said");
		}
	}
	producer = strcmp(opt.role, "producer") == 0;
	ticker = strcmp(opt.role, "ticker") == 0;
	if (!opt.conninfo || !opt.control)
		die("--conninfo and --control are needed");
	if (opt.sessions < 1 || opt.sessions > MAX_SESSIONS || opt.batch < 1 || opt.batch > 10000)
		die("--sessions or --batch is out of range");
	if (opt.payload < HEADER_LENGTH)
		die("--payload must be at least %d", HEADER_LENGTH);
	if (producer ? !opt.enqueue : ticker ? !opt.wait : !opt.dequeue)
		die("the statement for role %s is missing", opt.role);
	if ((opt.reconnect || opt.rollback || opt.savepoint || opt.prepare) && !opt.single)
		opt.explicit = 1;
}

int
main(int argc, char **argv)
{
	int			fd;

	parse_options(argc, argv);
	/* the default slack of 50 us would show in latencies */
	prctl(PR_SET_TIMERSLACK, 1);
	pattern_init();
	array_buffer = malloc((size_t) (opt.payload + 1) * (size_t) opt.batch + 16);
	sessions = calloc((size_t) opt.sessions, sizeof(struct session));
	if (!array_buffer || !sessions)
		die("out of memory");
	fd = open(opt.control, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		die("could not open %s: %s", opt.control, strerror(errno));
	control = mmap(NULL, sizeof(struct control), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (control == MAP_FAILED || control->magic != CONTROL_MAGIC)
		die("%s is no control file", opt.control);
	close(fd);
	epfd = epoll_create1(EPOLL_CLOEXEC);
	for (int i = 0; i < opt.sessions; i++)
	{
		struct session *s = &sessions[i];

		s->number = opt.first_session + i;
		s->consumer = opt.nconsumers > 0 ? opt.consumers[i % opt.nconsumers] : NULL;
		ledger_open(s);
		session_connect(s);
	}
	loop();
	stop_sessions();
	print_result();
	return 0;
}
