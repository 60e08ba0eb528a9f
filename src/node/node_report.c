/*-------------------------------------------------------------------------
 *
 * node_report.c
 *	  Units of other nodes that this one holds: what was consumed is reported to
 *	  the origin, and units go back.
 *
 * A stream for each other node.  What is to be reported is in the tables of the
 * queue: see shard/messages/foreign.c.  A report is repeated until it is answered, and after a
 * crash all is reported again that is still there; the origin takes it once.  A
 * unit that is being recalled returns when all is reported, and no session has
 * one of its messages.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "node/node_private.h"

#include "catalog/pg_type.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"

#define FINISH "SELECT unnest(aq.node_finish($1, $2, $3))"
#define RETURN "SELECT aq.node_return($1, $2)"

/* messages in a report, at most */
#define REPORT 2000

/* with fewer than this to report, the shortest time between two reports, microseconds */
#define ENOUGH 200
#define GATHER ((int64) 5000)

/* the time between two checks of a unit that returns, while sessions have its messages; microseconds */
#define LOOK_AGAIN ((int64) 100000)

/* without a report, the time after which the origin is asked about the units again, microseconds */
#define ASK_AGAIN ((int64) 5000000)

/* pause after an error, or while a user has locked a table, microseconds */
#define TROUBLE_PAUSE ((int64) 1000000)
#define LOCKED_PAUSE ((int64) 100000)

/* The messages of one unit in a report. */
typedef struct Reported
{
	AqNodeHeld	held;
	uint32		first;			/* of Reporting.list */
	uint32		n;
} Reported;

typedef struct Reporting
{
	MemoryContext context;		/* of the units */
	char		origin[AQ_NODE_ID]; /* "": not known yet */
	List	   *units;			/* of AqNodeHeld */
	uint32		version;		/* of aq_node_area_units() when they were read */
	uint32		news;			/* of AQ_PEERS_FINISHED, when the stream was woken */
	TimestampTz gathers_until;	/* it reports again then */
	TimestampTz sent;			/* the last report */
	TimestampTz asked;			/* when the origin was asked about all units */
	TimestampTz not_before;
	/* in flight */
	List	   *reported;		/* of Reported, in the stream's context */
	AqFinished *list;			/* REPORT */
	AqNodeHeld	returning;		/* epoch 0: it is a report */
} Reporting;

/* Reads the units again if they have changed. */
static void
read_units(AqLinkStream *stream)
{
	Reporting  *reporting = stream->data;
	uint32		version = aq_node_area_units();
	char	   *origin;
	MemoryContext old;

	if (reporting->context == NULL)
	{
		reporting->list = MemoryContextAlloc(stream->context, REPORT * sizeof(AqFinished));
		reporting->context = AllocSetContextCreate(stream->context, "pgaq held units", ALLOCSET_SMALL_SIZES);
	}
	if (version == reporting->version)
		return;
	origin = aq_sql_text(psprintf("SELECT node_id FROM aq_internal.node WHERE node_number = %d", (int32) stream->key));
	MemoryContextReset(reporting->context);
	reporting->units = NIL;
	strlcpy(reporting->origin, origin != NULL ? origin : "", sizeof(reporting->origin));
	if (origin != NULL)
	{
		old = MemoryContextSwitchTo(reporting->context);
		reporting->units = aq_node_held_list(origin);
		MemoryContextSwitchTo(old);
		reporting->version = version;
	}
}

static AqQueue *
queue_of(const AqNodeHeld *held)
{
	AqQueue    *queue = aq_catalog_get_by_id(held->queue_id, true);

	if (queue != NULL)
		aq_pins_pin(queue);
	return queue;
}

/* Units of consumers that were removed here go back; returns whether there are some. */
static bool
return_of_removed(const Reporting *reporting)
{
	bool		found = false;
	ListCell   *lc;

	foreach(lc, reporting->units)
	{
		const AqNodeHeld *held = lfirst(lc);
		AqQueue    *queue = held->returns ? NULL : queue_of(held);

		if (queue == NULL || aq_node_unit_position(queue, held->consumer) >= 0)
			continue;
		(void) aq_node_held_return(reporting->origin, held->epoch, false);
		found = true;
	}
	return found;
}

/* --- requests ------------------------------------------------------------------------ */

/*
 * Collects what is to be reported; returns the number of messages.  all: also
 * units without any, to ask whether they are still held.
 */
static uint32
collect(AqLinkStream *stream, bool all)
{
	Reporting  *reporting = stream->data;
	uint32		n = 0;
	ListCell   *lc;

	list_free_deep(reporting->reported);
	reporting->reported = NIL;
	foreach(lc, reporting->units)
	{
		AqNodeHeld *held = lfirst(lc);
		AqQueue    *queue = n < REPORT ? queue_of(held) : NULL;
		uint32		count = queue != NULL ? queue->store->units->finished(queue, held->shard, &reporting->list[n], REPORT - n) : 0;

		if (count > 0 || all)
		{
			MemoryContext old = MemoryContextSwitchTo(stream->context);
			Reported   *reported = palloc(sizeof(Reported));

			*reported = (Reported) {*held, n, count};
			reporting->reported = lappend(reporting->reported, reported);
			MemoryContextSwitchTo(old);
		}
		n += count;
	}
	return n;
}

static void
report(const Reporting *reporting, AqLinkRequest *request, const AqNodeIdentity *own)
{
	int			most = REPORT + list_length(reporting->reported);
	Datum	   *epochs = palloc(most * sizeof(Datum));
	Datum	   *ids = palloc(most * sizeof(Datum));
	bool	   *nulls = palloc(most * sizeof(bool));
	int			n = 0;
	ListCell   *lc;

	foreach(lc, reporting->reported)
	{
		const Reported *reported = lfirst(lc);

		for (uint32 i = 0; i < Max(reported->n, 1); i++)
		{
			epochs[n] = Int64GetDatum(reported->held.epoch);
			ids[n] = UUIDPGetDatum(&reporting->list[reported->first + i].origin_id);
			nulls[n++] = reported->n == 0;
		}
		request->rows += reported->n;
	}
	request->sql = FINISH;
	/* epochs that are not ours */
	request->shape = (AqLinkShape) {.most_rows = n, .ncolumns = 1, .columns = {{AQ_ANSWER_NUMBER, .least = PG_INT64_MIN, .most = PG_INT64_MAX}}};
	aq_node_identity_send(request, own);
	aq_link_array(request, INT8ARRAYOID, aq_node_rows_array(INT8OID, epochs, NULL, n));
	aq_link_array(request, UUIDARRAYOID, aq_node_rows_array(UUIDOID, ids, nulls, n));
}

/* Nothing is to be reported: can a unit go back?  One that is about to, *again: later. */
static const AqNodeHeld *
find_returning(const Reporting *reporting, TimestampTz *again)
{
	ListCell   *lc;

	foreach(lc, reporting->units)
	{
		const AqNodeHeld *held = lfirst(lc);
		AqQueue    *queue = held->returns ? queue_of(held) : NULL;
		AqFinished	one;

		if (!held->returns)
			continue;
		/* with the lock: all sessions know that it goes back; what was finished with in between is reported first */
		if (queue == NULL || (aq_node_unit_lock(queue->id, false) && queue->store->units->is_quiet(queue, held->shard) &&
							  queue->store->units->finished(queue, held->shard, &one, 1) == 0))
			return held;
		*again = GetCurrentTimestamp() + LOOK_AGAIN;
	}
	return NULL;
}

/* Messages that are finished with while some are gathered are in the same report. */
static bool
report_woken(AqLinkStream *stream)
{
	Reporting  *reporting = stream->data;
	uint32		news = aq_node_area_news(AQ_PEERS_FINISHED);

	if (reporting->context == NULL || reporting->version != aq_node_area_units())
		return true;
	if (reporting->units == NIL || reporting->news == news || reporting->gathers_until > GetCurrentTimestamp())
		return false;
	reporting->news = news;
	return true;
}

static bool
report_next(AqLinkStream *stream, AqLinkRequest *request, TimestampTz *again)
{
	Reporting  *reporting = stream->data;
	TimestampTz now = GetCurrentTimestamp();
	bool		asks = reporting->asked + ASK_AGAIN <= now;
	const AqNodeHeld *returning;
	AqNodeIdentity own;
	uint32		n;

	(void) aq_chunks_set_impatient(true);
	if (now < reporting->not_before)
	{
		*again = reporting->not_before;
		return false;
	}
	reporting->returning.epoch = 0;
	read_units(stream);
	if (reporting->units == NIL || aq_node_identity_own(&own) != AQ_NODE_OWN)
		return false;
	if (now < reporting->sent + GATHER)
	{
		*again = reporting->gathers_until = reporting->sent + GATHER;
		return false;
	}
	*again = reporting->asked + ASK_AGAIN;
	if (asks && return_of_removed(reporting))
	{
		*again = now + LOOK_AGAIN;
		return false;
	}
	n = collect(stream, asks);
	if (n > 0 || asks)
	{
		report(reporting, request, &own);
		/* with many, the next one follows at once */
		reporting->sent = n >= ENOUGH ? 0 : now;
		if (asks)
			reporting->asked = now;
		aq_point("node-reporting");
		return true;
	}
	returning = find_returning(reporting, again);
	if (returning == NULL)
		return false;
	reporting->returning = *returning;
	request->sql = RETURN;
	request->shape = (AqLinkShape) {.least_rows = 1, .most_rows = 1, .ncolumns = 1, .columns = {{AQ_ANSWER_BOOL}}};
	aq_node_identity_send(request, &own);
	aq_link_text(request, INT8OID, psprintf(INT64_FORMAT, returning->epoch));
	aq_point("node-returning");
	return true;
}

/* --- answers --------------------------------------------------------------------------- */

static bool
is_among(const AqLinkAnswer *answer, int64 epoch)
{
	for (int64 i = 0; i < aq_link_answer_rows(answer); i++)
		if (aq_link_answer_value(answer, i, 0)->number == epoch)
			return true;
	return false;
}

/* A user has locked a table: the same again, a little later. */
static void
pause_stream(Reporting *reporting)
{
	reporting->not_before = GetCurrentTimestamp() + LOCKED_PAUSE;
}

static void
report_done(AqLinkStream *stream, const AqLinkAnswer *answer)
{
	Reporting  *reporting = stream->data;
	ListCell   *lc;

	if (reporting->returning.epoch != 0)
	{
		/* whether it was the answer's doing or not: the unit is the origin's */
		if (!aq_node_held_end(&reporting->returning, reporting->origin))
			pause_stream(reporting);
		aq_point("node-ended");
		return;
	}
	foreach(lc, reporting->reported)
	{
		const Reported *reported = lfirst(lc);
		AqQueue    *queue = queue_of(&reported->held);

		if (reported->n > 0 && queue != NULL &&
			!queue->store->units->reported(queue, reported->held.shard, &reporting->list[reported->first], reported->n))
			pause_stream(reporting);
		/* it was taken away; what sessions have here ends first */
		if (is_among(answer, reported->held.epoch))
			(void) aq_node_held_return(reporting->origin, reported->held.epoch, false);
	}
	aq_point("node-reported");
}

static TimestampTz
report_failed(AqLinkStream *stream, const AqLinkFailure *failure)
{
	return GetCurrentTimestamp() + TROUBLE_PAUSE;
}

static const AqLinkKind reports = {
	.name = "node report",
	.size = sizeof(Reporting),
	.exist = aq_node_stream_exist,
	.list = aq_node_stream_list,
	.woken = report_woken,
	.next = report_next,
	.done = report_done,
	.failed = report_failed,
};

void
aq_node_report_register(void)
{
	aq_link_register(&reports);
}
