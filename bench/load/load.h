/*
 * load.h
 *		What the parts of the load client share; main.c tells what it is.
 */
#ifndef LOAD_H
#define LOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

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

/* Mapped by every process of a run; pgaq/load/workload.py writes phase, the rest is added to. */
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
	uint64_t	slowest_producing;	/* us of one statement, waits apart; pgaq/load/workload.py sets it back */
	uint64_t	slowest_consuming;
	uint64_t	acknowledged;	/* deliveries to clients with leases: pgaq/load/leasers.py writes it */
	uint64_t	spare[14];
};

/* Kinds: I intent, D delivered, X dequeue lost with the connection, S savepoint,
 * B back to savepoint, L savepoint released, E wrong payload, N connection lost,
 * C R U outcomes, Z orderly end of the file, T time; pgaq/load/ledger.py knows more. */
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
	OP_COMMIT, OP_ROLLBACK, OP_PREPARE, OP_COMMIT_PREPARED, OP_WAIT, OP_TICK, OP_FINISH
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
	uint64_t	sent;			/* when the statement under way was sent */
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

	/* leased messages that are to be acknowledged: an array in binary form */
	char	   *held;
	int			held_length;	/* 0: none */
	size_t		held_size;
	char		held_receipt[24];

	int			ledger;
	struct record *pending;
	size_t		npending;
	size_t		maxpending;
};

enum fsync_mode
{
	FSYNC_NONE, FSYNC_END, FSYNC_EACH
};

struct options
{
	const char *conninfo;
	const char *control;
	const char *role;
	const char *queue;
	const char *enqueue;
	const char *dequeue;
	const char *open;
	const char *close;
	const char *finish;
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
	bool		leases;			/* dequeue or finish needs what was dequeued before */
	int			single;			/* one call per message in a transaction */
	int			explicit;		/* BEGIN ... COMMIT */
	int			reconnect;
	int			rollback;		/* per cent of transactions */
	int			savepoint;
	int			prepare;
	int			priorities;
	int			delay_ms;
	int			binary;
	int			times;			/* notes when messages were received, for the rules of leases */
	int			poll_us;
	int			tick_us;
	double		rate;
	uint64_t	backlog;
	uint64_t	messages;		/* stop after this number, or a few more, per process; 0: no limit */
	enum fsync_mode fsync;
	unsigned	seed;
};

struct totals
{
	uint64_t	messages;		/* committed, with their transactions */
	uint64_t	transactions;
	uint64_t	measured_messages;	/* the same within the measured period */
	uint64_t	measured_transactions;
	uint64_t	empty_dequeues;
	uint64_t	waits;
	uint64_t	reported_errors;
	uint64_t	latency[HIST_BUCKETS];	/* us from the enqueue call to the receipt */
	uint64_t	duration[HIST_BUCKETS]; /* us of a transaction */
};

/* main.c */
extern struct options opt;
extern struct control *control;
extern struct session *sessions;
extern struct totals totals;
extern bool producer;
extern bool ticker;
extern int	epfd;
extern bool is_leaving(void);
extern void die(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));

/* book.c: the ledger and the payloads */
extern void ledger_open(struct session *s);
extern void ledger_note(struct session *s, char kind, int priority, uint32_t session, uint64_t first, int count);
extern void ledger_before(struct session *s);
extern void ledger_flush(struct session *s, bool durable);
extern void payload_init(void);
extern char *payload_put(char *to, uint32_t session, uint64_t seq, uint64_t stamp);
extern bool payload_check(const char *p, int length, uint32_t *session, uint64_t *seq, uint64_t *stamp);

/* session.c: connections and transactions */
extern void session_init(void);
extern bool session_connect(struct session *s);
extern void session_start_next(struct session *s, uint64_t now);
extern void session_ready(struct session *s, uint32_t events);

static inline uint64_t
now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t) ts.tv_sec * 1000000 + (uint64_t) ts.tv_nsec / 1000;
}

static inline uint64_t
phase(void)
{
	return __atomic_load_n(&control->phase, __ATOMIC_ACQUIRE);
}

#endif							/* LOAD_H */
