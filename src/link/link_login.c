/*-------------------------------------------------------------------------
 *
 * link_login.c
 *	  Connecting and logging in, in a thread, because two steps of libpq cannot be
 *	  interrupted: it resolves names, and computes as many iterations of SCRAM as
 *	  the other server asks for (2^31 take an hour).
 *
 * The thread calls only libpq, on a connection that nothing else uses meanwhile, and
 * receives no signals.  At its end it sets the latch of the process.
 *
 * A login that is given up continues until libpq returns.  Until then its link begins
 * no other login, nor does its role if it has MOST_GIVEN_UP of them.  A process that
 * ends does not wait for such a login: it calls _exit(), because the thread would not
 * survive exit().
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "link/link_private.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include "miscadmin.h"
#include "storage/fd.h"
#include "storage/ipc.h"
#include "utils/memutils.h"

/* logins of a role that were given up and go on */
#define MOST_GIVEN_UP 2

/* how often a thread checks whether its login was given up, in milliseconds */
#define LOOK_AGAIN 50

/* file descriptors that connections leave to the process itself */
#define SPARE 4

/* connections that a role can always have, see most_together() */
#define FEW 4

struct AqLogin
{
	MemoryContext context;		/* of the login; the thread allocates nothing in it */
	Oid			server;
	Oid			role;
	volatile bool given_up;
	pthread_t	thread;
	Latch	   *latch;
	int64		deadline;
	char	  **keywords;		/* ended by NULL, as the next one */
	char	  **values;
	/* written by the thread before it sets "done" */
	PGconn	   *conn;			/* NULL: out of memory */
	pg_atomic_uint32 done;
};

static List *logins;			/* of AqLogin, in TopMemoryContext */
static List *descriptors;		/* the role of each that is counted for a connection, likewise */

static void
no_notice(void *unused, const PGresult *result)
{
}

/* --- the thread ---------------------------------------------------------------------- */

/* Waits for the socket; false: it is too late, or no process waits for the login. */
static bool
wait_for(const AqLogin *login, PostgresPollingStatusType what)
{
	struct pollfd socket = {.fd = PQsocket(login->conn), .events = what == PGRES_POLLING_READING ? POLLIN : POLLOUT};

	while (!login->given_up && aq_clock_us() < login->deadline)
	{
		int			ready = poll(&socket, 1, LOOK_AGAIN);

		if (ready != 0)
			return ready > 0;
	}
	return false;
}

static void *
login_thread(void *arg)
{
	AqLogin    *login = arg;
	PostgresPollingStatusType next = PGRES_POLLING_WRITING;

	login->conn = PQconnectStartParams((const char **) login->keywords, (const char **) login->values, false);
	if (login->conn != NULL && PQstatus(login->conn) != CONNECTION_BAD)
	{
		/* so that the message of a refused connection has its SQLSTATE */
		(void) PQsetErrorVerbosity(login->conn, PQERRORS_VERBOSE);
		(void) PQsetNoticeReceiver(login->conn, no_notice, NULL);
		while (next != PGRES_POLLING_FAILED && next != PGRES_POLLING_OK && wait_for(login, next))
			next = PQconnectPoll(login->conn);
	}
	pg_write_barrier();			/* the connection before "done" */
	pg_atomic_write_u32(&login->done, 1);
	pg_memory_barrier();
	SetLatch(login->latch);
	return NULL;
}

/* --- file descriptors ------------------------------------------------------------------ */

/* Counts one for the connection; false: fewer than SPARE would be left. */
static bool
take_descriptor(Oid role)
{
	MemoryContext old;
	int			n = 0;

	while (n < SPARE && AcquireExternalFD())
		n++;
	for (int i = 0; i < (n < SPARE ? n : SPARE - 1); i++)
		ReleaseExternalFD();
	if (n < SPARE)
		return false;
	old = MemoryContextSwitchTo(TopMemoryContext);
	descriptors = lappend_oid(descriptors, role);
	MemoryContextSwitchTo(old);
	return true;
}

void
aq_link_login_free_descriptor(Oid role)
{
	descriptors = list_delete_oid(descriptors, role);
	ReleaseExternalFD();
}

/*
 * From this number of connections on, a role with FEW of them gets no other one.  It is
 * three quarters of what the server gives to one process, see AcquireExternalFD().
 */
static int
most_together(void)
{
	return max_safe_fds / 3 * 3 / 4;
}

static bool
has_enough(Oid role)
{
	int			own = 0;
	ListCell   *lc;

	foreach(lc, descriptors)
		if (lfirst_oid(lc) == role)
			own++;
	return list_length(descriptors) >= most_together() && own >= FEW;
}

/* --- the process ---------------------------------------------------------------------- */

static AqLogin *
make_login(const AqLinkTarget *target, int64 deadline)
{
	MemoryContext context = AllocSetContextCreate(TopMemoryContext, "pgaq login", ALLOCSET_SMALL_SIZES);
	MemoryContext old = MemoryContextSwitchTo(context);
	AqLogin    *login = palloc0(sizeof(AqLogin));

	login->context = context;
	login->server = target->server;
	login->role = target->role;
	login->latch = MyLatch;
	login->deadline = deadline;
	login->keywords = palloc0((target->n + 1) * sizeof(char *));
	login->values = palloc0((target->n + 1) * sizeof(char *));
	for (int i = 0; i < target->n; i++)
	{
		login->keywords[i] = pstrdup(target->keywords[i]);
		login->values[i] = pstrdup(target->values[i]);
	}
	pg_atomic_init_u32(&login->done, 0);
	MemoryContextSwitchTo(TopMemoryContext);
	logins = lappend(logins, login);
	MemoryContextSwitchTo(old);
	return login;
}

/* The login has no thread. */
static void
free_login(AqLogin *login)
{
	logins = list_delete_ptr(logins, login);
	MemoryContextDelete(login->context);
}

/* Frees a login whose thread has ended, except its connection. */
static void
end_login(AqLogin *login)
{
	(void) pthread_join(login->thread, NULL);
	free_login(login);
}

static void
close_login(AqLogin *login)
{
	if (login->conn != NULL)
		PQfinish(login->conn);
	aq_link_login_free_descriptor(login->role);
	end_login(login);
}

/* Frees logins that were given up and have ended. */
static void
reap(void)
{
	List	   *all = list_copy(logins);
	ListCell   *lc;

	foreach(lc, all)
	{
		AqLogin    *login = lfirst(lc);

		if (login->given_up && pg_atomic_read_u32(&login->done) != 0)
			close_login(login);
	}
	list_free(all);
}

/* The link may not begin another login now. */
static bool
is_refused(Oid server, Oid role)
{
	int			of_role = 0;
	ListCell   *lc;

	foreach(lc, logins)
	{
		AqLogin    *login = lfirst(lc);

		if (!login->given_up || login->role != role)
			continue;
		of_role++;
		if (login->server == server)
			return true;
	}
	return of_role >= MOST_GIVEN_UP;
}

/* The last callback of all: the threads that still run end with the process. */
static void
leave_threads(int code, Datum unused)
{
	ListCell   *lc;

	foreach(lc, logins)
		if (pg_atomic_read_u32(&((AqLogin *) lfirst(lc))->done) == 0)
			_exit(code);
}

/* Called by a link worker before it registers other callbacks. */
void
aq_link_login_prepare(void)
{
	on_proc_exit(leave_threads, (Datum) 0);
}

/* Counts a file descriptor for a login that can begin now; false: see *error. */
static bool
admit(const AqLinkTarget *target, AqLinkError *error)
{
	if (is_refused(target->server, target->role))
		aq_link_error_set(error, ERRCODE_SQLCLIENT_UNABLE_TO_ESTABLISH_SQLCONNECTION, _("an earlier attempt to connect has not ended"), NULL,
						  _("The name service does not respond, or the other server demands too many iterations of SCRAM authentication."));
	else if (has_enough(target->role))
		aq_link_error_set(error, ERRCODE_CONFIGURATION_LIMIT_EXCEEDED, _("the links have too many connections"),
						  psprintf(_("The links of this database have %d connections or more; now only a role with fewer than %d can open another one."), most_together(), FEW),
						  _("Lower the option \"connections\", or raise max_files_per_process and restart the server."));
	else if (!take_descriptor(target->role))
		aq_link_error_set(error, ERRCODE_INSUFFICIENT_RESOURCES, _("too many open files for another connection of a link"), NULL,
						  _("Raise max_files_per_process and restart the server."));
	else
		return true;
	return false;
}

/* NULL: the link cannot begin one now, see *error. */
AqLogin *
aq_link_login_begin(const AqLinkTarget *target, int64 deadline, AqLinkError *error)
{
	AqLogin    *login;
	sigset_t	all,
				before;
	int			failed;

	reap();
	if (!admit(target, error))
		return NULL;
	login = make_login(target, deadline);
	sigfillset(&all);
	(void) pthread_sigmask(SIG_SETMASK, &all, &before);
	failed = pthread_create(&login->thread, NULL, login_thread, login);
	(void) pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (failed == 0)
		return login;
	errno = failed;
	aq_link_error_set(error, ERRCODE_INSUFFICIENT_RESOURCES, psprintf(_("could not start a thread: %m")), NULL, NULL);
	aq_link_login_free_descriptor(target->role);
	free_login(login);
	return NULL;
}

/*
 * Has the login ended?  Then it is freed, and the caller has its connection, good or
 * bad, and the file descriptor that is counted for it.
 */
bool
aq_link_login_ended(AqLogin *login, PGconn **conn)
{
	if (pg_atomic_read_u32(&login->done) == 0)
		return false;
	pg_memory_barrier();
	*conn = login->conn;
	end_login(login);
	return true;
}

/* No process waits for it now. */
void
aq_link_login_give_up(AqLogin *login)
{
	login->given_up = true;
	reap();
}
