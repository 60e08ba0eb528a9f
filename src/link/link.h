/*-------------------------------------------------------------------------
 *
 * link.h
 *	  The public header of part "link": connections of a database to others,
 *	  and the background worker that holds them.
 *
 * A link is a foreign server of the wrapper pgaq_link with the user mapping of
 * one role.  Each database that needs one has a background worker "pgaq link",
 * which connects, sends requests and receives answers without blocking, so it
 * serves all links of the database at once.  No session waits for it.
 *
 * The parts above say what is sent.  A part registers a kind of stream; for
 * each stream, the worker calls
 *
 *		next		in a transaction, which commits before the request is sent
 *		done		in another one, with the answer
 *		failed		in another one, if there is no answer
 *
 * so no transaction, snapshot or lock lasts while the worker waits for the
 * network.  A stream has one request in flight at most.  Streams of one link
 * share a few connections, and a stream may use another one each time: nothing
 * that a request leaves in a session of the other side can be relied on.
 *
 * A callback runs in the worker, with the privileges of a superuser and
 * synchronous_commit off: it calls only functions of pgaq, never those of
 * users, waits for no lock of users, and is short, because the other streams
 * wait for it.  An error in it rolls its transaction back; the stream is called
 * again after a pause, which grows.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AQ_LINK_H
#define AQ_LINK_H

#include "sync/sync.h"

#include "datatype/timestamp.h"

/* what the two sides speak; they agree on the highest version that both know */
#define AQ_LINK_PROTOCOL 1
#define AQ_LINK_PROTOCOL_OLDEST 1

#define AQ_LINK_PARAMETERS 128
#define AQ_LINK_COLUMNS 8

extern const AqPart aq_link_part;

/* The other side, as it was when the connection was made. */
typedef struct AqLinkRemote
{
	char		version[32];	/* of the extension */
	int			protocol;		/* agreed on */
	uint64		system_identifier;	/* of its server: survives a restart, a failover and a restore */
	uint32		timeline;		/* grows when a standby is promoted or a backup is restored */
	Oid			database;		/* its OID there */
	int			server_version; /* as server_version_num */
} AqLinkRemote;

/* --- answers: what the other server may say; it can be hostile ------------------ */

typedef enum AqLinkType
{
	AQ_ANSWER_TEXT,				/* at most .most bytes */
	AQ_ANSWER_NUMBER,			/* from .least to .most */
	AQ_ANSWER_BOOL,				/* its number is 0 or 1 */
	AQ_ANSWER_UUID,
	AQ_ANSWER_VOID				/* the result of a function without one */
} AqLinkType;

typedef struct AqLinkColumn
{
	AqLinkType	type;
	bool		nullable;
	int64		least;
	int64		most;
} AqLinkColumn;

/* What the answer to a request must look like.  One that does not is never seen by done: the request is lost. */
typedef struct AqLinkShape
{
	int64		least_rows;
	int64		most_rows;
	int			ncolumns;
	AqLinkColumn columns[AQ_LINK_COLUMNS];
} AqLinkShape;

typedef struct AqLinkValue
{
	bool		isnull;
	int64		number;			/* of a number or a boolean */
	const char *text;
} AqLinkValue;

typedef struct AqLinkAnswer AqLinkAnswer;

extern int64 aq_link_answer_rows(const AqLinkAnswer *answer);
extern const AqLinkValue *aq_link_answer_value(const AqLinkAnswer *answer, int64 row, int column);

/* A request: one statement, which is one transaction of the other side. */
typedef struct AqLinkRequest
{
	const char *sql;			/* resolves in pg_catalog: qualify all names */
	int			nparameters;
	Oid			types[AQ_LINK_PARAMETERS];	/* 0: as the statement has it; otherwise a built-in type's OID */
	const char *values[AQ_LINK_PARAMETERS]; /* NULL: null */
	int			lengths[AQ_LINK_PARAMETERS];	/* of binary values */
	int			formats[AQ_LINK_PARAMETERS];	/* 0: text, 1: binary */
	AqLinkShape shape;			/* of the answer */
	int64		rows;			/* messages in it, for statistics only */
	int			timeout_ms;		/* 0: the link's option request_timeout */
} AqLinkRequest;

typedef enum AqLinkPhase
{
	AQ_LINK_NOT_SENT,			/* the link could not connect: nothing was executed */
	AQ_LINK_REFUSED,			/* the other side answered with an error: it rolled back */
	AQ_LINK_LOST				/* no answer that makes sense: the request was executed, or not, or will be */
} AqLinkPhase;

typedef struct AqLinkFailure
{
	AqLinkPhase phase;
	int			sqlstate;		/* MAKE_SQLSTATE's form */
	const char *message;
	const char *detail;			/* NULL: none */
	const char *hint;			/* NULL: none */
} AqLinkFailure;

/* A stream in the worker's memory. */
typedef struct AqLinkStream
{
	const struct AqLinkKind *kind;
	int64		key;			/* unique in its kind */
	Oid			server;			/* the foreign server */
	Oid			role;			/* whose user mapping is used, and who needs USAGE on the server */
	void	   *data;			/* the kind's own, of its size; zero at first */
	MemoryContext context;		/* lives as long as the stream */
} AqLinkStream;

typedef struct AqLinkKind
{
	const char *name;
	Size		size;			/* of what a stream of the kind remembers */

	/*
	 * Are there streams in this database?  Called in its worker (part jobs), in
	 * a transaction, after aq_link_changed() and when the worker starts.
	 */
	bool		(*exist) (void);

	/*
	 * Calls aq_link_add() for each stream that there should be; called in a
	 * transaction, when the link worker starts and after aq_link_changed().
	 * Streams that are no longer added are closed; a request in flight is
	 * abandoned.
	 */
	void		(*list) (void);

	/*
	 * After aq_link_wake(): may the stream have something to send that it did not
	 * have before?  Not in a transaction, must not raise.  NULL: it may.
	 */
	bool		(*woken) (AqLinkStream *stream);

	/*
	 * Fills in the next request and returns true; or returns false: nothing to
	 * send until the stream is woken, or until *again, unless that is left 0.
	 * The request is zero at first; what it points to is allocated in the
	 * current memory context, which lives until done or failed has returned.
	 * Called only while the link is connected; see aq_link_remote().
	 */
	bool		(*next) (AqLinkStream *stream, AqLinkRequest *request, TimestampTz *again);

	/* The answer, which has the request's shape.  Then next is called. */
	void		(*done) (AqLinkStream *stream, const AqLinkAnswer *answer);

	/*
	 * There is no answer.  Called also for streams that are woken while the link
	 * cannot connect, once for each try.  After AQ_LINK_REFUSED, next is called
	 * at the returned time; 0: when the stream is woken.  After the other
	 * phases, when the link is connected again.
	 */
	TimestampTz (*failed) (AqLinkStream *stream, const AqLinkFailure *failure);

	/* A link with such a stream tries again after this many microseconds, if it would wait longer.  May be NULL. */
	int64		(*longest_pause) (void);
} AqLinkKind;

/* Called once, when the part's parameters are defined. */
extern void aq_link_register(const AqLinkKind *kind);

/* --- in sessions and workers of the database ---------------------------------- */

/*
 * Call it before the transaction ends whose end calls the functions below.
 * May raise an error.
 */
extern void aq_link_prepare(void);

/* There are other streams than before, committed: starts or ends the link worker.  Never raises. */
extern void aq_link_changed(void);

/* A stream has something to send, committed.  Never raises; cheap: a flag and the worker's latch. */
extern void aq_link_wake(void);

/*
 * The foreign server with this name.  Raises an error unless it exists, is of
 * the wrapper pgaq_link, and the role has USAGE on it and a user mapping.
 */
extern Oid	aq_link_server(const char *name, Oid role);

/* --- in callbacks ------------------------------------------------------------- */

extern AqLinkStream *aq_link_add(int64 key, Oid server, Oid role);	/* in list */
extern void aq_link_wake_stream(AqLinkStream *stream);
extern const AqLinkRemote *aq_link_remote(const AqLinkStream *stream);
extern bool aq_link_sends_keys(AqLinkStream *stream, const char *what);
extern void aq_link_flush(void);	/* the commit of this callback's transaction is flushed */

/* They set the next parameter of the request; the value is not copied.  NULL: null. */
extern void aq_link_text(AqLinkRequest *request, Oid type, const char *value);
extern void aq_link_array(AqLinkRequest *request, Oid type, Datum array);	/* binary; of a built-in type */

#endif							/* AQ_LINK_H */
