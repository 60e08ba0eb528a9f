/*-------------------------------------------------------------------------
 *
 * link_private.h
 *	  Declarations shared by the files of part "link".
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AQ_LINK_PRIVATE_H
#define AQ_LINK_PRIVATE_H

#include "link/link.h"

#include "jobs/jobs.h"
#include "libpq-fe.h"
#include "lib/ilist.h"
#include "nodes/pg_list.h"

/* times are from aq_clock_us(), except those of type TimestampTz */

/* bytes of the texts that are kept */
#define AQ_LINK_MESSAGE 512
#define AQ_LINK_TEXT 256
#define AQ_LINK_HOST 128

#define AQ_LINK_KINDS 8
#define AQ_LINK_CHECKS 8
#define AQ_LINK_BUCKETS 32

/* An error of a link; empty while at is 0. */
typedef struct AqLinkError
{
	TimestampTz at;
	int			sqlstate;
	int			encoding;
	char		message[AQ_LINK_MESSAGE];
	char		detail[AQ_LINK_TEXT];
	char		hint[AQ_LINK_TEXT];
} AqLinkError;

typedef enum AqLinkCondition
{
	AQ_LINK_IDLE,				/* nothing to send, so no connection */
	AQ_LINK_CONNECTING,
	AQ_LINK_CONNECTED,
	AQ_LINK_BACKING_OFF,		/* the other side cannot be reached now */
	AQ_LINK_FAILED,				/* something must be changed, here or there */
	AQ_LINK_DISABLED			/* by the server's option */
} AqLinkCondition;

typedef enum AqLinkSecurity
{
	AQ_LINK_NO_TLS,
	AQ_LINK_TLS_ANY,			/* encrypted, with whoever has answered */
	AQ_LINK_TLS_VERIFIED,		/* encrypted, and the other side has proved who it is */
	AQ_LINK_LOCAL				/* no TLS, on this machine */
} AqLinkSecurity;

/*
 * A link in shared memory, for aq.links.  Written by the link worker of its
 * database; protected by the latch.
 */
typedef struct AqLinkState
{
	Oid			database;		/* InvalidOid: the entry is free */
	Oid			server;
	Oid			role;
	bool		used;			/* the worker has the link now; otherwise the entry may be taken for another one */
	AqLinkCondition condition;
	TimestampTz since;
	TimestampTz next_attempt;	/* 0: none is planned */
	int			connections;
	int			failures;		/* in a row */
	AqLinkError error;			/* the latest, also if the link is connected again */
	AqLinkRemote remote;		/* version empty: it was never connected */
	AqLinkSecurity security;	/* of the latest connection */
	char		host[AQ_LINK_HOST];
	int64		requests;		/* that were answered */
	int64		refused;		/* among them: with an error */
	int64		lost;			/* requests without an answer */
	int64		rows;
	int64		bytes_sent;
	int64		bytes_received;
	int64		latency_us;		/* of all answers */
	int64		histogram[AQ_LINK_BUCKETS]; /* of their latencies; bucket n ends before 2^n microseconds */
} AqLinkState;

/* What a link worker was told; bits of AqLinkDatabase.work. */
#define AQ_LINK_WAKE 1			/* streams have something to send */
#define AQ_LINK_STREAMS 2		/* there are other streams */
#define AQ_LINK_DEFINITIONS 4	/* servers, user mappings, roles or privileges were changed */
#define AQ_LINK_CHECK 8			/* a session has asked for a check */

/* A database that has, or had, a link worker. */
typedef struct AqLinkDatabase
{
	/* protected by the latch */
	Oid			oid;			/* InvalidOid: the entry is free */
	int			pid;			/* of its link worker; 0: none */
	int64		asked_at;		/* when a worker was registered that has not started yet; 0: none */
	int64		wanted_since;	/* since when it waits for a free worker slot; 0: does not wait */
	int			failures;		/* workers that have ended with an error, in a row */
	int64		backoff_until;	/* no other worker is started before */

	struct PGPROC *volatile proc;	/* NULL when it cannot be posted */
	pg_atomic_uint32 work;
	pg_atomic_uint32 changes;	/* grows when the database's worker must ask the kinds whether there are streams */
} AqLinkDatabase;

typedef enum AqLinkCheckState
{
	AQ_CHECK_FREE,
	AQ_CHECK_ASKED,
	AQ_CHECK_RUNNING,
	AQ_CHECK_ABANDONED,			/* it runs, and its session has left */
	AQ_CHECK_DONE
} AqLinkCheckState;

/* A call of aq.check_link(); protected by the latch. */
typedef struct AqLinkCheck
{
	AqLinkCheckState state;
	Oid			database;
	Oid			server;
	Oid			role;
	int			session;
	/* the answer */
	bool		connected;
	int64		latency_us;
	AqLinkError error;
	AqLinkRemote remote;
	AqLinkSecurity security;
	char		host[AQ_LINK_HOST];
} AqLinkCheck;

typedef struct AqLinkArea
{
	AqLatch		latch;
	AqLinkCheck checks[AQ_LINK_CHECKS];
	AqLinkDatabase *databases;	/* aq_link_area_ndatabases */
	AqLinkState *states;		/* aq_link_area_limit */
} AqLinkArea;

/* --- link_area.c: shared memory ------------------------------------------------ */

extern AqLinkArea *aq_link_area;
extern int	aq_link_area_limit;

extern void aq_link_area_define(void);
extern Size aq_link_area_size(void);
extern void aq_link_area_init(void *area, bool found);
extern void aq_link_area_get(AqLatchMode mode);
extern void aq_link_area_free(void);
extern AqLinkDatabase *aq_link_area_own(void);
extern AqLinkDatabase *aq_link_area_known(Oid database);
extern void aq_link_area_post(AqLinkDatabase *db, uint32 bits);
extern AqLinkDatabase *aq_link_area_claim(Oid database);
extern void aq_link_area_ended(AqLinkDatabase *db, bool failed, bool worked);
extern TimestampTz aq_link_area_start_worker(AqLinkDatabase *db);
extern bool aq_link_area_has_checks(Oid database);
extern void aq_link_area_stop(Oid database);
extern void aq_link_area_forget(Oid database);
extern AqLinkState *aq_link_area_take_state(Oid server, Oid role);
extern void aq_link_area_release_state(AqLinkState *state);
extern void aq_link_area_release_check(AqLinkCheck *check);

/* --- link_options.c: the wrapper's options ------------------------------------- */

/* A link as its server and user mapping define it. */
typedef struct AqLinkTarget
{
	Oid			server;
	Oid			role;
	char	   *name;			/* of the server */
	bool		enabled;
	bool		needs_password; /* the other side must have asked for the password */
	bool		local;			/* the other side is on this machine */
	int			connections;
	int			connect_timeout;	/* seconds; also the next two */
	int			request_timeout;
	int			idle_timeout;
	int			n;
	const char **keywords;		/* of libpq, ended by NULL; also the next one */
	const char **values;
} AqLinkTarget;

extern AqLinkTarget *aq_link_options_read(Oid server, Oid role);
extern bool aq_link_options_same(const AqLinkTarget *a, const AqLinkTarget *b);
extern AqLinkTarget *aq_link_options_try(Oid server, Oid role, AqLinkError *error);
extern bool aq_link_options_may_use(Oid server, Oid role);
extern Oid	aq_link_options_server(const char *name, Oid role);

/* --- link_answer.c: what the other server answers -------------------------------- */

struct AqLinkAnswer
{
	MemoryContext context;		/* of the values; NULL: there was no answer yet */
	AqLinkShape shape;
	int64		nrows;
	int64		room;			/* rows that values has room for */
	AqLinkValue *values;		/* row by row */
	int64		bytes;
};

extern void aq_link_answer_begin(AqLinkAnswer *answer, const AqLinkShape *shape);
extern const char *aq_link_answer_add(AqLinkAnswer *answer, const PGresult *result);
extern void aq_link_answer_end(AqLinkAnswer *answer);

/* --- link_views.c ----------------------------------------------------------------- */

extern const char *aq_link_views_security(AqLinkSecurity security);

/* --- link_login.c: connecting in a thread --------------------------------------- */

typedef struct AqLogin AqLogin;

extern void aq_link_login_prepare(void);
extern AqLogin *aq_link_login_begin(const AqLinkTarget *target, int64 deadline, AqLinkError *error);
extern bool aq_link_login_ended(AqLogin *login, PGconn **conn);
extern void aq_link_login_give_up(AqLogin *login);
extern void aq_link_login_free_descriptor(Oid role);

/* --- link_peer.c: a connection ------------------------------------------------- */

typedef enum AqPeerState
{
	AQ_PEER_CONNECTING,
	AQ_PEER_GREETING,			/* sets parameters, asks for version and encoding */
	AQ_PEER_AGREEING,			/* calls aq.link_hello() */
	AQ_PEER_READY,
	AQ_PEER_BUSY,				/* a request is in flight */
	AQ_PEER_ANSWERED,			/* its answer is complete */
	AQ_PEER_BROKEN				/* see error */
} AqPeerState;

typedef struct AqPeer
{
	AqPeerState state;
	PGconn	   *conn;
	bool		counted;		/* among the server's file descriptors */
	AqLogin    *login;			/* while libpq connects, instead of conn; else NULL */
	bool		flushing;		/* not everything was sent */
	int64		began;			/* the connection, or the request */
	int64		deadline;
	int64		ready_since;
	const AqLinkTarget *target; /* lives longer than the peer */
	AqLinkRemote remote;
	AqLinkSecurity security;
	char		host[AQ_LINK_HOST];
	AqLinkAnswer answer;
	bool		answered;		/* all of it has arrived, or the error instead of it */
	bool		refused;		/* it is the error */
	int64		sent;			/* bytes of the request */
	AqLinkError error;			/* BROKEN, or refused */
} AqPeer;

extern AqPeer *aq_link_peer_start(const AqLinkTarget *target);
extern void aq_link_peer_send(AqPeer *peer, const AqLinkRequest *request);
extern void aq_link_peer_advance(AqPeer *peer, int64 now, bool ready);
extern bool aq_link_peer_wants(AqPeer *peer, AqSocket *socket);
extern void aq_link_peer_ready(const AqSocket *sockets, int n, int64 now);
extern void aq_link_peer_answered(AqPeer *peer);
extern void aq_link_peer_close(AqPeer *peer);

/* --- link_error.c: errors of links ---------------------------------------------- */

extern void aq_link_error_set(AqLinkError *error, int sqlstate, const char *message, const char *detail, const char *hint);
extern void aq_link_error_of_connection(AqLinkError *error, const PGconn *conn);
extern bool aq_link_error_of_result(AqLinkError *error, const PGresult *result);
extern void aq_link_error_of_server(AqLinkError *error);
extern bool aq_link_error_is_transient(int sqlstate);
extern int	aq_link_error_remote(void);

/* --- link_stream.c: kinds and streams --------------------------------------------- */

struct AqLinkRoute;

/* A stream; the parts above see its first member. */
typedef struct AqLinkStreamState
{
	AqLinkStream public;
	struct AqLinkRoute *route;
	bool		listed;			/* by the last round of list callbacks */
	bool		woken;			/* in the list of its route */
	bool		in_flight;
	dlist_node	node;			/* in that list */
	MemoryContext request_context;
	AqTrouble	trouble;		/* errors of its callbacks */
	TimestampTz again;			/* it is woken then; 0: not */
	bool		without_keys;	/* the log says that the other side is too old for keys */
} AqLinkStreamState;

typedef enum AqCallResult
{
	AQ_CALL_DONE,
	AQ_CALL_NOTHING,			/* next has no request */
	AQ_CALL_FAILED				/* by an error; the stream waits for trouble.not_before */
} AqCallResult;

extern void aq_link_stream_register(const AqLinkKind *kind);
extern bool aq_link_stream_exist(void);
extern AqLinkStreamState *aq_link_stream_add(int64 key, Oid server, Oid role);
extern AqLinkStreamState *aq_link_stream_find(const AqLinkKind *kind, int64 key);
extern void aq_link_stream_wake(AqLinkStreamState *stream);
extern List *aq_link_stream_all(void);
extern bool aq_link_stream_list(void);
extern void aq_link_stream_remove(AqLinkStreamState *stream);
extern void aq_link_stream_woken(void);
extern AqCallResult aq_link_stream_next(AqLinkStreamState *stream, AqLinkRequest *request);
extern AqCallResult aq_link_stream_done(AqLinkStreamState *stream, const AqLinkAnswer *answer);
extern AqCallResult aq_link_stream_failed(AqLinkStreamState *stream, AqLinkPhase phase, const AqLinkError *error);
extern void aq_link_stream_flush(void);
extern bool aq_link_stream_in_transaction(void (*work) (void *), void *argument, AqTrouble *trouble);

/* --- link_route.c: links in the worker ---------------------------------------------- */

typedef struct AqLinkRoute
{
	Oid			server;
	Oid			role;
	AqLinkTarget *target;		/* NULL: it cannot be used, see error */
	MemoryContext target_context;
	AqLinkState *state;
	bool		shown;			/* state is in shared memory */
	int			nstreams;
	dlist_head	woken;			/* streams that have been woken */
	List	   *connections;	/* of Connection */
	AqLinkError error;			/* why target is NULL */
	AqLinkRemote remote;		/* of the latest connection */
	int			failures;		/* in a row */
	bool		doubtful;		/* the latest request was lost: being connected is not enough to forget that */
	int64		next_attempt;	/* while failures is not 0 */
} AqLinkRoute;

extern void aq_link_route_attach(void);
extern void aq_link_route_refresh(void);
extern void aq_link_route_work(int64 now);
extern int	aq_link_route_sockets(AqSocket *sockets, int room, int *in_flight, int *connecting, int64 *next);
extern int	aq_link_route_count(void);
extern bool aq_link_route_has_worked(void);
extern void aq_link_route_retry(Oid server, Oid role);
extern void aq_link_route_close(void);

/* --- link_check.c: aq.check_link() -------------------------------------------------- */

extern void aq_link_check_work(int64 now);
extern int	aq_link_check_sockets(AqSocket *sockets, int room, int *connecting, int64 *next);

/* --- link_ddl.c: changed definitions ------------------------------------------------ */

extern void aq_link_ddl_register(void);

/* --- link_job.c: starting the link worker -------------------------------------------- */

extern void aq_link_job_register(void);

#ifdef AQ_TEST_POINTS
/* --- link_test.c: a kind of streams for tests ----------------------------------------- */

extern const AqLinkKind aq_link_test_kind;
#endif

#endif							/* AQ_LINK_PRIVATE_H */
