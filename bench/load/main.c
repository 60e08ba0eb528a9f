/*
 * main.c
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
 *	finish	$1 queue, $2 consumer, $3 message ids, $4 receipt: acknowledges leased
 *			messages after each dequeue.  A dequeue with $3 and $4 acknowledges those
 *			of the session's dequeue before.  The columns are msgid and receipt.
 *	wait	$1 queue, $2 consumer; run when a dequeue found nothing
 *
 * A payload is text: session, sequence number, time of the call, all in hex,
 * and a filler computed from session and number; the consumer compares every
 * byte of it.
 *
 * The caller steers all processes of a run through a small mapped file (struct
 * control in load.h): connect, run, measure, drain, stop.  SIGTERM ends one process
 * when its transactions have ended.  The result is one JSON object on standard output.
 *
 * The ledger (--ledger DIR) is one file per session, a line of JSON and then
 * records of 16 bytes (struct record).  It is written before a transaction is
 * sent its COMMIT and after the answer, so that a transaction without a
 * recorded outcome is known to be in doubt.  python/pgaq/load/ledger.py reads it.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "load.h"

struct options opt = {
	.role = "producer", .queue = "q", .sessions = 1, .batch = 10, .payload = 512,
	.poll_us = 5000, .fsync = FSYNC_END, .label = "",
};

struct control *control;
struct session *sessions;
struct totals totals;
bool		producer;
bool		ticker;
int			epfd;
static struct rusage usage_start,
			usage_end;
static bool usage_started,
			usage_ended;
static volatile sig_atomic_t leaving;

void
die(const char *format, ...)
{
	va_list		args;

	va_start(args, format);
	fprintf(stderr, "load: ");
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
	va_end(args);
	exit(2);
}

/* ------------------------------------------------------------------ loop */

static void
leave(int signal)
{
	(void) signal;
	leaving = 1;
}

/* Does no session begin anything? */
bool
is_leaving(void)
{
	return leaving != 0;
}

/* Has no session a transaction? */
static bool
has_left(void)
{
	if (!leaving)
		return false;
	for (int i = 0; i < opt.sessions; i++)
		if (sessions[i].conn && sessions[i].busy && sessions[i].steps[sessions[i].step].op != OP_WAIT)
			return false;
	return true;
}

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

	while (phase() != PHASE_STOP && !has_left())
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
			session_start_next(s, now);
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
				session_start_next(s, now_us());
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
		if (sessions[i].counted_idle)
			__atomic_fetch_sub(&control->idle, 1, __ATOMIC_RELAXED);
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
		   opt.role, opt.sessions, totals.messages, totals.transactions, totals.measured_messages,
		   totals.measured_transactions, totals.empty_dequeues, totals.waits,
		   usage_started ? seconds(usage_start.ru_utime, usage_end.ru_utime) : 0.0,
		   usage_started ? seconds(usage_start.ru_stime, usage_end.ru_stime) : 0.0);
	print_hist("latency", totals.latency);
	print_hist("duration", totals.duration);
	printf("}\n");
}

/* --------------------------------------------------------------- options */

enum option_id
{
	OPT_CONNINFO = 1000, OPT_CONTROL, OPT_ROLE, OPT_QUEUE, OPT_ENQUEUE, OPT_DEQUEUE, OPT_OPEN, OPT_CLOSE, OPT_FINISH, OPT_WAIT, OPT_SETUP,
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
		{"finish", required_argument, NULL, OPT_FINISH},
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
		{"binary", no_argument, &opt.binary, 1}, {"times", no_argument, &opt.times, 1}, {NULL, 0, NULL, 0}
	};
	int			c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1)
	{
		switch (c)
		{
			case 0:
				break;
			case OPT_CONNINFO:
				opt.conninfo = optarg;
				break;
			case OPT_CONTROL:
				opt.control = optarg;
				break;
			case OPT_ROLE:
				opt.role = optarg;
				break;
			case OPT_QUEUE:
				opt.queue = optarg;
				break;
			case OPT_ENQUEUE:
				opt.enqueue = optarg;
				break;
			case OPT_DEQUEUE:
				opt.dequeue = optarg;
				break;
			case OPT_OPEN:
				opt.open = optarg;
				break;
			case OPT_CLOSE:
				opt.close = optarg;
				break;
			case OPT_FINISH:
				opt.finish = optarg;
				break;
			case OPT_WAIT:
				opt.wait = optarg;
				break;
			case OPT_SETUP:
				opt.setup = optarg;
				break;
			case OPT_LEDGER:
				opt.ledger = optarg;
				break;
			case OPT_LABEL:
				opt.label = optarg;
				break;
			case OPT_CONSUMER:
				if (opt.nconsumers == MAX_CONSUMERS)
					die("too many consumers");
				opt.consumers[opt.nconsumers++] = optarg;
				break;
			case OPT_SESSIONS:
				opt.sessions = atoi(optarg);
				break;
			case OPT_FIRST:
				opt.first_session = atoi(optarg);
				break;
			case OPT_BATCH:
				opt.batch = atoi(optarg);
				break;
			case OPT_PAYLOAD:
				opt.payload = atoi(optarg);
				break;
			case OPT_ROLLBACK:
				opt.rollback = atoi(optarg);
				break;
			case OPT_SAVEPOINT:
				opt.savepoint = atoi(optarg);
				break;
			case OPT_PREPARE:
				opt.prepare = atoi(optarg);
				break;
			case OPT_DELAY:
				opt.delay_ms = atoi(optarg);
				break;
			case OPT_POLL:
				opt.poll_us = atoi(optarg);
				break;
			case OPT_TICK:
				opt.tick_us = atoi(optarg);
				break;
			case OPT_RATE:
				opt.rate = atof(optarg);
				break;
			case OPT_BACKLOG:
				opt.backlog = strtoull(optarg, NULL, 10);
				break;
			case OPT_MESSAGES:
				opt.messages = strtoull(optarg, NULL, 10);
				break;
			case OPT_FSYNC:
				opt.fsync = strcmp(optarg, "each") == 0 ? FSYNC_EACH : strcmp(optarg, "end") == 0 ? FSYNC_END : FSYNC_NONE;
				break;
			case OPT_SEED:
				opt.seed = (unsigned) strtoul(optarg, NULL, 10);
				break;
			default:
				die("see the head of main.c for what can be said");
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
	/* no process controls this one after its caller has ended */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	/* the default slack of 50 us would show in latencies */
	prctl(PR_SET_TIMERSLACK, 1);
	signal(SIGTERM, leave);
	payload_init();
	session_init();
	sessions = calloc((size_t) opt.sessions, sizeof(struct session));
	if (!sessions)
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
