/*-------------------------------------------------------------------------
 *
 * link_stream.c
 *	  Kinds of streams, the streams in the link worker's memory, and the calls of
 *	  their callbacks, each in a transaction.
 *
 * A callback's transaction begins with a lock of the extension, for which DROP
 * EXTENSION waits, and it is over before the worker waits for the network again.
 * An error in it is logged as that of a job: once for each cause.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "link/link_private.h"

#include "common/hashfn.h"
#include "pgstat.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

/* pause while the extension is being dropped, microseconds */
#define DROP_PAUSE ((int64) 1000000)

typedef struct StreamKey
{
	const AqLinkKind *kind;
	int64		key;
} StreamKey;

typedef struct StreamEntry
{
	StreamKey	key;
	AqLinkStreamState *stream;
} StreamEntry;

static const AqLinkKind *kinds[AQ_LINK_KINDS];
static int	nkinds;
static HTAB *streams;
static const AqLinkKind *listing;	/* its callback list is running */
static bool flush;				/* this transaction's commit */

void
aq_link_stream_register(const AqLinkKind *kind)
{
	Assert(nkinds < AQ_LINK_KINDS);
	kinds[nkinds++] = kind;
}

/* In the database's worker, in a transaction: is there any stream? */
bool
aq_link_stream_exist(void)
{
	for (int i = 0; i < nkinds; i++)
		if (kinds[i]->exist())
			return true;
	return false;
}

static HTAB *
all_streams(void)
{
	if (streams == NULL)
	{
		HASHCTL		control = {.keysize = sizeof(StreamKey), .entrysize = sizeof(StreamEntry), .hcxt = TopMemoryContext};

		streams = hash_create("pgaq streams of links", 64, &control, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	}
	return streams;
}

static StreamKey
key_of(const AqLinkKind *kind, int64 key)
{
	StreamKey	whole;

	memset(&whole, 0, sizeof(whole));
	whole.kind = kind;
	whole.key = key;
	return whole;
}

AqLinkStreamState *
aq_link_stream_find(const AqLinkKind *kind, int64 key)
{
	StreamKey	whole = key_of(kind, key);
	StreamEntry *entry = hash_search(all_streams(), &whole, HASH_FIND, NULL);

	return entry != NULL ? entry->stream : NULL;
}

/* Called by a kind's list: the stream is new, or the one with this key. */
AqLinkStreamState *
aq_link_stream_add(int64 key, Oid server, Oid role)
{
	StreamKey	whole = key_of(listing, key);
	StreamEntry *entry;
	MemoryContext context;
	AqLinkStreamState *stream;
	bool		found;

	if (listing == NULL)
		elog(ERROR, "a stream of a link was added outside of the callback for it");
	stream = aq_link_stream_find(listing, key);
	if (stream != NULL && (stream->public.server != server || stream->public.role != role))
	{
		/* it goes elsewhere: aq_link_stream_list() removes it, and lists again */
		stream->listed = false;
		stream->public.server = InvalidOid;
		return stream;
	}
	if (stream == NULL)
	{
		context = AllocSetContextCreate(TopMemoryContext, "pgaq stream of a link", ALLOCSET_SMALL_SIZES);
		stream = MemoryContextAllocZero(context, sizeof(AqLinkStreamState));
		stream->public = (AqLinkStream) {.kind = listing, .key = key, .server = server, .role = role, .context = context};
		stream->public.data = MemoryContextAllocZero(context, listing->size);
		stream->request_context = AllocSetContextCreate(context, "pgaq request of a link", ALLOCSET_DEFAULT_SIZES);
		entry = hash_search(all_streams(), &whole, HASH_ENTER, &found);
		entry->stream = stream;
	}
	stream->listed = true;
	return stream;
}

/* All streams, in the current memory context. */
List *
aq_link_stream_all(void)
{
	List	   *all = NIL;
	HASH_SEQ_STATUS scan;
	StreamEntry *entry;

	hash_seq_init(&scan, all_streams());
	while ((entry = hash_seq_search(&scan)) != NULL)
		all = lappend(all, entry->stream);
	return all;
}

/* The stream is in no list, and has no request in flight. */
void
aq_link_stream_remove(AqLinkStreamState *stream)
{
	StreamKey	whole = key_of(stream->public.kind, stream->public.key);

	(void) hash_search(all_streams(), &whole, HASH_REMOVE, NULL);
	MemoryContextDelete(stream->public.context);
}

/* Puts the stream into the list of its route, unless it is there, or in flight. */
void
aq_link_stream_wake(AqLinkStreamState *stream)
{
	stream->again = 0;
	if (stream->woken)
		return;
	stream->woken = true;
	if (stream->route != NULL && !stream->in_flight)
		dlist_push_tail(&stream->route->woken, &stream->node);
}

/* --- calls --------------------------------------------------------------------------- */

void
aq_link_stream_flush(void)
{
	flush = true;
}

/*
 * Runs the work in a transaction.  Returns false, with the transaction rolled
 * back, after an error, or if the extension is being dropped; then *trouble says
 * when to try again.
 */
bool
aq_link_stream_in_transaction(void (*work) (void *), void *argument, AqTrouble *trouble)
{
	MemoryContext context = CurrentMemoryContext;
	bool		fine = true;

	flush = false;
	PG_TRY();
	{
		aq_job_cancellable(true);
		aq_job_begin();
		if (aq_job_lock_extension())
			work(argument);
		else
		{
			fine = false;
			trouble->not_before = GetCurrentTimestamp() + DROP_PAUSE;
		}
		if (flush)
			aq_process_commit_safely();
		aq_job_commit(flush);
		aq_job_cancellable(false);
		if (fine)
			aq_trouble_succeeded(trouble, "link");
	}
	PG_CATCH();
	{
		aq_job_cancellable(false);
		aq_trouble_failed(trouble, context);
		fine = false;
	}
	PG_END_TRY();
	MemoryContextSwitchTo(context);
	return fine;
}

static void
list_streams(void *unused)
{
	for (int i = 0; i < nkinds; i++)
	{
		listing = kinds[i];
		kinds[i]->list();
	}
	listing = NULL;
}

/*
 * Asks the kinds for their streams: sets listed.  Returns false after an error;
 * then all streams remain.
 */
bool
aq_link_stream_list(void)
{
	static AqTrouble trouble;
	HASH_SEQ_STATUS scan;
	StreamEntry *entry;
	bool		fine;

	if (trouble.not_before > GetCurrentTimestamp())
		return false;
	hash_seq_init(&scan, all_streams());
	while ((entry = hash_seq_search(&scan)) != NULL)
		entry->stream->listed = false;
	fine = aq_link_stream_in_transaction(list_streams, NULL, &trouble);
	listing = NULL;
	return fine;
}

/* Sessions have announced that there is something to send. */
void
aq_link_stream_woken(void)
{
	HASH_SEQ_STATUS scan;
	StreamEntry *entry;

	hash_seq_init(&scan, all_streams());
	while ((entry = hash_seq_search(&scan)) != NULL)
		if (entry->key.kind->woken == NULL || entry->key.kind->woken(&entry->stream->public))
			aq_link_stream_wake(entry->stream);
}

typedef struct Call
{
	AqLinkStreamState *stream;
	AqLinkRequest *request;
	const AqLinkAnswer *answer;
	const AqLinkFailure *failure;
	TimestampTz again;
	bool		has;
} Call;

static void
do_next(void *argument)
{
	Call	   *call = argument;
	MemoryContext old = MemoryContextSwitchTo(call->stream->request_context);

	call->has = call->stream->public.kind->next(&call->stream->public, call->request, &call->again);
	MemoryContextSwitchTo(old);
}

static void
do_done(void *argument)
{
	Call	   *call = argument;

	call->stream->public.kind->done(&call->stream->public, call->answer);
}

static void
do_failed(void *argument)
{
	Call	   *call = argument;

	call->again = call->stream->public.kind->failed(&call->stream->public, call->failure);
}

static AqCallResult
run_call(Call *call, void (*work) (void *), const char *what)
{
	AqCallResult result;

	pgstat_report_activity(STATE_RUNNING, what);
	result = aq_link_stream_in_transaction(work, call, &call->stream->trouble) ? AQ_CALL_DONE : AQ_CALL_FAILED;
	pgstat_report_activity(STATE_IDLE, NULL);
	if (result == AQ_CALL_FAILED)
		call->stream->again = call->stream->trouble.not_before;
	return result;
}

/* The stream's next request; it is valid until the end of its answer's call. */
AqCallResult
aq_link_stream_next(AqLinkStreamState *stream, AqLinkRequest *request)
{
	Call		call = {.stream = stream, .request = request};
	AqCallResult result;

	MemoryContextReset(stream->request_context);
	memset(request, 0, sizeof(*request));
	result = run_call(&call, do_next, "link: next request");
	if (result != AQ_CALL_DONE || call.has)
		return result;
	stream->again = call.again;
	return AQ_CALL_NOTHING;
}

AqCallResult
aq_link_stream_done(AqLinkStreamState *stream, const AqLinkAnswer *answer)
{
	Call		call = {.stream = stream, .answer = answer};

	return run_call(&call, do_done, "link: answer");
}

AqCallResult
aq_link_stream_failed(AqLinkStreamState *stream, AqLinkPhase phase, const AqLinkError *error)
{
	AqLinkFailure failure = {
		.phase = phase,
		.sqlstate = error->sqlstate,
		.message = error->message,
		.detail = error->detail[0] != '\0' ? error->detail : NULL,
		.hint = error->hint[0] != '\0' ? error->hint : NULL
	};
	Call		call = {.stream = stream, .failure = &failure};
	AqCallResult result = run_call(&call, do_failed, "link: failure");

	if (result == AQ_CALL_DONE && phase == AQ_LINK_REFUSED)
		stream->again = call.again;
	return result;
}
