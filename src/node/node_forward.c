/*-------------------------------------------------------------------------
 *
 * node_forward.c
 *	  Messages of this node's units go to the nodes that hold them.
 *
 * A stream for each other node: it sends the messages of the units that the node
 * holds, in the order of dequeue, not more than WINDOW of a unit ahead of what
 * the node has reported.  A message that is sent is lent: a lease without an end,
 * durable before the other node has it.  A request has messages of several units of
 * a queue.  Each unit has its own answer, but an error is an error of the whole
 * request.  So after one, each unit is sent alone until messages of it have arrived.
 *
 * After a start, and after a request that failed, it is not known what has
 * arrived.  Then the stream first asks for that, with a new token: all that is
 * older is refused there from then on.  What has not arrived is ready again, at
 * its position, and is sent again.
 *
 * The worker writes payloads as text, which runs no users' code: a type's output
 * function belongs to a base type, and only superusers make those.  Messages
 * are read with the privileges of the role as which the node has asked for them.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "node/node_private.h"

#include "access/transam.h"
#include "access/xact.h"
#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/syscache.h"
#include "utils/timestamp.h"
#include "utils/uuid.h"

#define RESUME "SELECT unnest(aq.node_resume($1, $2, $3, $4))"
#define RECALL "SELECT aq.node_recall($1, $2)"

/* messages of a unit that the other node can have */
#define WINDOW 2000

/* units in a request, and parameters for all, and for each */
#define UNITS AQ_LINK_COLUMNS
#define COMMON_PARAMETERS 2
#define UNIT_PARAMETERS (5 + AQ_MOVED_KEY)	/* and the keys, if a message has one */

/* messages in a request, at most, and in the first one of a unit */
#define BATCH 500
#define FIRST_BATCH 8

/* bytes of payloads after which a request takes no further unit; also the limit for each unit, unless one message is larger */
#define BYTES ((int64) 4000000)

/* with fewer ready messages than in half a batch, the shortest time between two requests, microseconds */
#define GATHER ((int64) 2000)

/* a recalled unit is asked for again after this time, microseconds */
#define RECALL_AGAIN ((int64) 2000000)

/* the first and the longest pause of a unit after errors, and the pause while another transaction changes units; microseconds */
#define TROUBLE_PAUSE ((int64) 1000000)
#define LONGEST_PAUSE ((int64) 8000000)
#define LOCKED_PAUSE ((int64) 20000)

/* messages that cannot be taken now are looked for again after this time, microseconds */
#define LOOK_AGAIN ((int64) 100000)

typedef enum RequestKind
{
	NOTHING, RESUMING, DELIVERING, RECALLING
} RequestKind;

/* What is remembered of a unit, beside its row. */
typedef struct Unit
{
	AqNodeUnit	row;
	TimestampTz not_before;		/* after an error, or a recall */
	int			most;			/* messages in the next request: as many of the last one's size as fit */
	int			failures;		/* in a row; after one, the unit is sent alone */
} Unit;

/* One unit's messages in a request. */
typedef struct Parcel
{
	int64		epoch;			/* of the unit */
	uint32		n;				/* messages */
	bool		keyed;			/* keys are sent with them */
} Parcel;

/* A message that was lent to the other node. */
typedef struct Lent
{
	int64		epoch;			/* of its unit */
	pg_uuid_t	id;
} Lent;

typedef struct Forwarding
{
	MemoryContext context;		/* of the units */
	List	   *units;			/* of Unit; those the other node holds */
	uint32		version;		/* of aq_node_area_units() when they were read */
	uint32		news;			/* of AQ_PEERS_READY, when the stream was woken */
	TimestampTz gathers_until;	/* it sends again then */
	int			turn;			/* the unit from which on one with messages is looked for */
	int64		token;			/* 0: what has arrived is not known */
	TransactionId resumed;		/* what had not arrived is ready again if this is committed; invalid: all had */
	int64		asked;			/* the token of the question in flight */
	MemoryContext question;		/* of the next two: what was asked for */
	Lent	   *lent;
	int			nlent;
	RequestKind kind;			/* in flight */
	Parcel		parcels[UNITS]; /* of it; one if it is a recall */
	int			nparcels;
	TimestampTz sent;			/* the last request with messages */
	int32		trying;			/* queue whose messages are being taken; an error leaves it set */
} Forwarding;

static int32
node_of(const AqLinkStream *stream)
{
	return (int32) stream->key;
}

static Unit *
find_unit(const Forwarding *forwarding, int64 epoch)
{
	ListCell   *lc;

	foreach(lc, forwarding->units)
		if (((Unit *) lfirst(lc))->row.epoch == epoch)
			return lfirst(lc);
	return NULL;
}

/* Reads the units again if they have changed. */
static void
read_units(AqLinkStream *stream)
{
	Forwarding *forwarding = stream->data;
	uint32		version = aq_node_area_units();
	MemoryContext context;
	MemoryContext old;
	List	   *units = NIL;
	ListCell   *lc;

	if (forwarding->context == NULL)
	{
		forwarding->question = AllocSetContextCreate(stream->context, "pgaq question", ALLOCSET_SMALL_SIZES);
		forwarding->context = AllocSetContextCreate(stream->context, "pgaq units", ALLOCSET_SMALL_SIZES);
	}
	if (version == forwarding->version)
		return;
	context = AllocSetContextCreate(CurrentMemoryContext, "pgaq units", ALLOCSET_SMALL_SIZES);
	foreach(lc, aq_node_unit_list(node_of(stream), 0))
	{
		AqNodeUnit *row = lfirst(lc);
		Unit	   *before = find_unit(forwarding, row->epoch);
		AqQueue    *queue = aq_catalog_get_by_id(row->queue_id, true);
		Unit	   *unit;

		old = MemoryContextSwitchTo(context);
		unit = palloc0(sizeof(Unit));
		unit->row = *row;
		unit->most = before != NULL ? before->most : FIRST_BATCH;
		unit->failures = before != NULL ? before->failures : 0;
		if (before != NULL && before->row.recalled == row->recalled)
			unit->not_before = before->not_before;
		units = lappend(units, unit);
		MemoryContextSwitchTo(old);
		if (queue == NULL)
			continue;
		/* commits are news from now on */
		aq_pins_pin(queue);
		pg_atomic_write_u32(&queue->shm->forwarded, 1);
	}
	MemoryContextDelete(forwarding->context);
	MemoryContextSetParent(context, stream->context);
	forwarding->context = context;
	forwarding->units = units;
	forwarding->version = version;
}

/* --- requests ----------------------------------------------------------------------------- */

static void
add_number(AqLinkRequest *request, Oid type, int64 value)
{
	aq_link_text(request, type, psprintf(INT64_FORMAT, value));
}

/* Collects what the other node should have. */
static void
find_lent(Forwarding *forwarding)
{
	int			size = 0;
	ListCell   *lc;

	MemoryContextReset(forwarding->question);
	forwarding->lent = NULL;
	forwarding->nlent = 0;
	foreach(lc, forwarding->units)
	{
		const AqNodeUnit *row = &((Unit *) lfirst(lc))->row;
		AqQueue    *queue = aq_catalog_get_by_id(row->queue_id, true);
		int			position = queue != NULL ? aq_node_unit_position(queue, row->consumer) : -1;
		pg_uuid_t  *ids;
		uint32		n;

		if (position < 0)
			continue;
		aq_pins_pin(queue);
		n = queue->store->units->lent(queue, row->shard, position, &ids);
		if (forwarding->nlent + n > size)
		{
			size = 2 * (forwarding->nlent + n);
			forwarding->lent = forwarding->lent == NULL ? MemoryContextAlloc(forwarding->question, size * sizeof(Lent))
				: repalloc(forwarding->lent, size * sizeof(Lent));
		}
		for (uint32 i = 0; i < n; i++)
			forwarding->lent[forwarding->nlent++] = (Lent) {row->epoch, ids[i]};
	}
}

/* What of the units' messages has arrived? */
static void
resume(AqLinkStream *stream, AqLinkRequest *request, const AqNodeIdentity *own)
{
	Forwarding *forwarding = stream->data;
	Datum	   *epochs;
	Datum	   *ids;

	find_lent(forwarding);
	epochs = palloc(Max(forwarding->nlent, 1) * sizeof(Datum));
	ids = palloc(Max(forwarding->nlent, 1) * sizeof(Datum));
	for (int i = 0; i < forwarding->nlent; i++)
	{
		epochs[i] = Int64GetDatum(forwarding->lent[i].epoch);
		ids[i] = UUIDPGetDatum(&forwarding->lent[i].id);
	}
	forwarding->kind = RESUMING;
	forwarding->asked = aq_node_unit_number();
	request->sql = RESUME;
	/* numbers of messages that have not arrived */
	request->shape = (AqLinkShape) {.most_rows = forwarding->nlent, .ncolumns = 1, .columns = {{AQ_ANSWER_NUMBER, .least = 1, .most = forwarding->nlent}}};
	aq_node_identity_send(request, own);
	add_number(request, INT8OID, forwarding->asked);
	aq_link_array(request, INT8ARRAYOID, aq_node_rows_array(INT8OID, epochs, NULL, forwarding->nlent));
	aq_link_array(request, UUIDARRAYOID, aq_node_rows_array(UUIDOID, ids, NULL, forwarding->nlent));
	aq_link_flush();
}

/* Turns the expirations of the array, which are times, into the remaining intervals. */
static Datum
lifetimes(Datum array)
{
	Datum	   *times;
	bool	   *nulls;
	int			n;
	TimestampTz now = GetCurrentTimestamp();

	deconstruct_array(DatumGetArrayTypeP(array), TIMESTAMPTZOID, sizeof(TimestampTz), FLOAT8PASSBYVAL, TYPALIGN_DOUBLE, &times, &nulls, &n);
	for (int i = 0; i < n; i++)
		if (!nulls[i])
			times[i] = Int64GetDatum(Max(DatumGetTimestampTz(times[i]) - now, 1));
	return aq_node_rows_array(INT8OID, times, nulls, n);
}

static void
note_error(const AqLinkStream *stream, const char *message, const char *hint)
{
	aq_node_area_queue_failed(node_of(stream), false, message, hint);
}

/* The role as which the node asks for the unit, or has asked when it was granted. */
static Oid
role_of(const AqNodeUnit *row)
{
	Oid			role = aq_node_area_wish_role(row->holder, row->queue_id, row->consumer);

	return OidIsValid(role) ? role : row->role;
}

/* Can that role dequeue? */
static bool
is_allowed(AqQueue *queue, const AqNodeUnit *row)
{
	const AqConsumer *consumer = aq_description_consumer(queue, row->consumer);
	bool		allowed;
	Oid			user;
	int			context;

	if (!SearchSysCacheExists1(AUTHOID, ObjectIdGetDatum(role_of(row))))
		return false;
	GetUserIdAndSecContext(&user, &context);
	SetUserIdAndSecContext(role_of(row), context | SECURITY_LOCAL_USERID_CHANGE);
	allowed = aq_privilege_consumes(queue, consumer != NULL ? consumer->name : NULL);
	SetUserIdAndSecContext(user, context);
	return allowed;
}

/* Takes a batch of the unit, with the privileges of that role. */
static void
take_batch(const AqNodeUnit *row, const char *consumer, int max, AqMoved *moved)
{
	AqMove		move = {.source = row->queue_id, .consumer = consumer, .max = max, .unit = row->shard + 1};
	Oid			user;
	int			context;

	GetUserIdAndSecContext(&user, &context);
	SetUserIdAndSecContext(role_of(row), context | SECURITY_LOCAL_USERID_CHANGE);
	aq_move_away_take(&move, moved);
	SetUserIdAndSecContext(user, context);
}

static bool
is_lent(int64 epoch)
{
	static AqStatement find = {.command = "SELECT FROM aq_internal.node_unit WHERE epoch = $1 AND recalled IS NULL", .nargs = 1, .types = {INT8OID}};
	Datum		value = Int64GetDatum(epoch);
	bool		found = aq_sql_run_kept(&find, &value) > 0;

	SPI_finish();
	return found;
}

/* The statement for these units. */
static const char *
deliver_sql(const Parcel *parcels, int nparcels)
{
	StringInfoData sql;

	initStringInfo(&sql);
	for (int unit = 0, n = COMMON_PARAMETERS; unit < nparcels; unit++)
	{
		appendStringInfo(&sql, "%s aq.node_deliver($1, $2", unit == 0 ? "SELECT" : ",");
		for (int i = 0; i < UNIT_PARAMETERS + parcels[unit].keyed; i++)
			appendStringInfo(&sql, ", $%d", ++n);
		appendStringInfoChar(&sql, ')');
	}
	return sql.data;
}

/* Messages that are about to be sent. */
typedef struct Delivery
{
	AqLinkRequest *request;
	const AqNodeIdentity *own;
	int32		queue_id;		/* of all units */
	uint32		n;				/* messages, and bytes */
	int64		bytes;
} Delivery;

/* Can messages of the unit go with those of others? */
static bool
has_room(const Forwarding *forwarding, const Delivery *delivery, const Unit *unit)
{
	return forwarding->nparcels < UNITS && delivery->n < BATCH && delivery->bytes < BYTES &&
		delivery->queue_id == unit->row.queue_id && unit->failures == 0;
}

static void
add_unit(AqLinkStream *stream, Delivery *delivery, const AqNodeUnit *row, const char *queue_name, const char *consumer, const AqMoved *moved)
{
	Forwarding *forwarding = stream->data;
	AqLinkRequest *request = delivery->request;
	bool		keyed = moved->keyed && aq_link_sends_keys(stream, psprintf("distributed queues for node %d", node_of(stream)));

	if (forwarding->nparcels == 0)
	{
		aq_node_identity_send(request, delivery->own);
		add_number(request, INT8OID, forwarding->token);
	}
	add_number(request, INT8OID, row->epoch);
	aq_link_text(request, TEXTOID, queue_name);
	add_number(request, INT4OID, row->shard);
	aq_link_text(request, TEXTOID, consumer);
	aq_link_text(request, TEXTOID, moved->payload_type);
	for (int i = 0; i < AQ_MOVED_KEY + keyed; i++)
		aq_link_array(request, InvalidOid, i == AQ_MOVED_TIME ? lifetimes(moved->columns[i]) : moved->columns[i]);
	forwarding->parcels[forwarding->nparcels++] = (Parcel) {row->epoch, moved->n, keyed};
	delivery->queue_id = row->queue_id;
	delivery->n += moved->n;
	delivery->bytes += moved->bytes;
}

/* Takes up to *most messages of the unit for the request, unless the other node has enough; *most is then the next limit. */
static void
deliver(AqLinkStream *stream, Delivery *delivery, const AqNodeUnit *row, int *most, TimestampTz *again)
{
	Forwarding *forwarding = stream->data;
	AqQueue    *queue = aq_catalog_get_by_id(row->queue_id, true);
	int			position = queue != NULL ? aq_node_unit_position(queue, row->consumer) : -1;
	TimestampTz now = GetCurrentTimestamp();
	const AqConsumer *consumer;
	const char *queue_name;
	const char *consumer_name;
	uint32		ready;
	uint32		lent;
	AqMoved		moved;

	if (position < 0)
		return;
	if (!queue->dequeue_enabled)
	{
		*again = now + TROUBLE_PAUSE;
		return;
	}
	aq_pins_pin(queue);
	ready = queue->store->units->count_ready(queue, row->shard, position);
	if (ready == 0)
		return;
	if (forwarding->nparcels == 0 && ready < BATCH / 2 && now < forwarding->sent + GATHER)
	{
		*again = forwarding->gathers_until = forwarding->sent + GATHER;
		return;
	}
	lent = queue->store->units->count_lent(queue, row->shard, position);
	if (lent >= WINDOW)
		return;					/* until some are reported */
	if (!aq_node_unit_lock(queue->id, false))
	{
		*again = now + LOCKED_PAUSE;
		return;
	}
	/* under the lock, the unit is not taken away */
	if (!is_lent(row->epoch))
		return;
	if (!is_allowed(queue, row))
	{
		note_error(stream, psprintf("the role that has asked for messages of queue \"%s\" may no longer dequeue them", queue->name),
				   "Grant it the privilege to dequeue.");
		*again = now + TROUBLE_PAUSE;
		return;
	}
	/* the dequeue may read the queue's description again */
	consumer = aq_description_consumer(queue, row->consumer);
	consumer_name = consumer != NULL ? pstrdup(consumer->name) : NULL;
	queue_name = pstrdup(queue->name);
	take_batch(row, consumer_name, Min(Min(*most, WINDOW - lent), BATCH - delivery->n), &moved);
	if (moved.n == 0)
	{
		*again = now + LOOK_AGAIN;	/* a retry count is not written yet, for example */
		return;
	}
	/* larger ones may follow, so it grows slowly */
	*most = (int) Max(Min(Min(BYTES * moved.n / Max(moved.bytes, 1), 4 * (int64) *most), BATCH), 1);
	add_unit(stream, delivery, row, queue_name, consumer_name, &moved);
}

static void
pause_unit(Unit *unit, int most)
{
	unit->not_before = GetCurrentTimestamp() + Min(TROUBLE_PAUSE << Min(unit->failures, 8), LONGEST_PAUSE);
	unit->failures++;
	unit->most = most;
}

/* Like deliver().  After an error, the unit pauses, and is then sent alone, beginning with one message; others go on. */
static void
try_deliver(AqLinkStream *stream, Delivery *delivery, Unit *unit, TimestampTz *again)
{
	Forwarding *forwarding = stream->data;
	Unit		before = *unit;
	int			most = unit->most;

	pause_unit(unit, 1);
	forwarding->trying = unit->row.queue_id;
	deliver(stream, delivery, &unit->row, &most, again);
	forwarding->trying = 0;
	*unit = before;
	unit->most = most;
}

static void
recall(AqLinkStream *stream, Unit *unit, AqLinkRequest *request, const AqNodeIdentity *own)
{
	Forwarding *forwarding = stream->data;

	forwarding->kind = RECALLING;
	forwarding->parcels[0] = (Parcel) {.epoch = unit->row.epoch};
	forwarding->nparcels = 1;
	unit->not_before = GetCurrentTimestamp() + RECALL_AGAIN;
	request->sql = RECALL;
	request->shape = (AqLinkShape) {.least_rows = 1, .most_rows = 1, .ncolumns = 1, .columns = {{AQ_ANSWER_BOOL}}};
	aq_node_identity_send(request, own);
	add_number(request, INT8OID, unit->row.epoch);
}

/* Messages that come while some are gathered go with these. */
static bool
forward_woken(AqLinkStream *stream)
{
	Forwarding *forwarding = stream->data;
	uint32		news = aq_node_area_news(AQ_PEERS_READY);

	if (forwarding->context == NULL || forwarding->version != aq_node_area_units())
		return true;
	if (forwarding->units == NIL || forwarding->news == news || forwarding->gathers_until > GetCurrentTimestamp())
		return false;
	forwarding->news = news;
	return true;
}

/* Shows that the last call has ended with an error. */
static void
note_trouble(AqLinkStream *stream)
{
	Forwarding *forwarding = stream->data;
	int32		trying = forwarding->trying;
	AqQueue    *queue;

	forwarding->trying = 0;		/* before the next line, which can fail, too */
	queue = trying != 0 ? aq_catalog_get_by_id(trying, true) : NULL;
	if (queue != NULL)
		note_error(stream, psprintf("messages of queue \"%s\" could not be sent", queue->name), "See the server log for the cause.");
}

static bool
forward_next(AqLinkStream *stream, AqLinkRequest *request, TimestampTz *again)
{
	Forwarding *forwarding = stream->data;
	TimestampTz now = GetCurrentTimestamp();
	AqNodeIdentity own;
	Delivery	delivery = {.request = request, .own = &own};
	int			n,
				turn;

	(void) aq_chunks_set_impatient(true);
	forwarding->kind = NOTHING;
	forwarding->nparcels = 0;
	note_trouble(stream);
	read_units(stream);
	n = list_length(forwarding->units);
	if (n == 0 || aq_node_identity_own(&own) != AQ_NODE_OWN)
		return false;
	if (TransactionIdIsValid(forwarding->resumed) && !TransactionIdDidCommit(forwarding->resumed))
		forwarding->token = 0;
	forwarding->resumed = InvalidTransactionId;
	if (forwarding->token == 0)
	{
		resume(stream, request, &own);
		return true;
	}
	turn = forwarding->turn;
	for (int i = 0; i < n; i++)
	{
		Unit	   *unit = list_nth(forwarding->units, (turn + i) % n);
		bool		first = forwarding->nparcels == 0;
		TimestampTz later = 0;

		if (unit->not_before > now)
		{
			aq_clock_sooner(again, unit->not_before);
			continue;
		}
		if (!first && (unit->row.recalled || !has_room(forwarding, &delivery, unit)))
			continue;
		if (unit->row.recalled)
		{
			recall(stream, unit, request, &own);
			return true;
		}
		if (first)
			forwarding->turn = (turn + i + 1) % n;
		try_deliver(stream, &delivery, unit, &later);
		aq_clock_sooner(again, later);
		if (first && unit->failures > 0 && forwarding->nparcels > 0)
			break;
	}
	if (forwarding->nparcels == 0)
		return false;
	request->sql = deliver_sql(forwarding->parcels, forwarding->nparcels);
	request->shape = (AqLinkShape) {.least_rows = 1, .most_rows = 1, .ncolumns = forwarding->nparcels};
	for (int i = 0; i < forwarding->nparcels; i++)
		request->shape.columns[i].type = AQ_ANSWER_BOOL;
	request->rows = delivery.n;
	aq_link_flush();
	forwarding->kind = DELIVERING;
	forwarding->sent = now;
	aq_point("node-lent");
	return true;
}

/* --- answers ------------------------------------------------------------------------------ */

/*
 * Does the other node hold the unit with this epoch, and will until the end of the
 * transaction?  It may have given it back since it was asked about it, and another
 * one may have it.  Raises an error if that cannot be said now.
 */
static bool
still_holds(const AqNodeUnit *row)
{
	if (!aq_node_unit_lock(row->queue_id, false))
		ereport(ERROR,
				(errcode(ERRCODE_LOCK_NOT_AVAILABLE),
				 errmsg("another transaction is changing which nodes hold messages of the queue")));
	return aq_sql_finds(psprintf("SELECT FROM aq_internal.node_unit WHERE epoch = " INT64_FORMAT, row->epoch));
}

/* Those that have not arrived, by unit, are ready again.  Returns whether there are any. */
static bool
give_back_missing(Forwarding *forwarding, const AqLinkAnswer *answer)
{
	bool	   *missing = palloc0(Max(forwarding->nlent, 1) * sizeof(bool));
	pg_uuid_t  *ids = palloc(Max(forwarding->nlent, 1) * sizeof(pg_uuid_t));
	bool		found = false;
	ListCell   *lc;

	for (int64 i = 0; i < aq_link_answer_rows(answer); i++)
		missing[aq_link_answer_value(answer, i, 0)->number - 1] = true;
	foreach(lc, forwarding->units)
	{
		const AqNodeUnit *row = &((Unit *) lfirst(lc))->row;
		AqQueue    *queue;
		int			position;
		uint32		n = 0;

		for (int i = 0; i < forwarding->nlent; i++)
			if (missing[i] && forwarding->lent[i].epoch == row->epoch)
				ids[n++] = forwarding->lent[i].id;
		if (n == 0 || !still_holds(row))
			continue;
		queue = aq_catalog_get_by_id(row->queue_id, true);
		position = queue != NULL ? aq_node_unit_position(queue, row->consumer) : -1;
		if (position < 0)
			continue;
		aq_pins_pin(queue);
		aq_node_unit_give_back(queue, position, ids, n);
		found = true;
	}
	return found;
}

static void
note_arrived(AqLinkStream *stream, uint32 n)
{
	const Forwarding *forwarding = stream->data;
	AqNodeState *state;
	bool		trouble = false;
	ListCell   *lc;

	/* the error that is shown may be another unit's */
	foreach(lc, forwarding->units)
		trouble |= ((Unit *) lfirst(lc))->failures > 0;
	state = aq_node_area_get(node_of(stream));
	if (state != NULL)
	{
		state->forwarded += n;
		state->batches++;
	}
	aq_node_area_free();
	if (!trouble)
		aq_node_area_queue_works(node_of(stream), false);
}

/* The other node does not have the unit, so nothing of it can be consumed there. */
static void
take_back(const Forwarding *forwarding)
{
	Unit	   *unit = find_unit(forwarding, forwarding->parcels[0].epoch);

	if (unit != NULL && aq_node_unit_lock(unit->row.queue_id, false))
		(void) aq_node_unit_end(&unit->row);
}

/* The unit's messages were refused.  After RESUME they are ready again, and are sent later. */
static void
not_taken(Forwarding *forwarding, const Parcel *parcel)
{
	Unit	   *unit = find_unit(forwarding, parcel->epoch);

	forwarding->token = 0;
	if (unit != NULL)
		pause_unit(unit, Max((int) parcel->n / 8, 1));	/* perhaps it was too large */
}

/* Each unit has an answer: did its messages arrive? */
static void
delivered(AqLinkStream *stream, const AqLinkAnswer *answer)
{
	Forwarding *forwarding = stream->data;
	uint32		arrived = 0;

	for (int i = 0; i < forwarding->nparcels; i++)
	{
		const Parcel *parcel = &forwarding->parcels[i];
		Unit	   *unit = find_unit(forwarding, parcel->epoch);

		if (aq_link_answer_value(answer, 0, i)->number == 0)
		{
			not_taken(forwarding, parcel);
			continue;
		}
		arrived += parcel->n;
		if (unit != NULL)
			unit->failures = 0;
	}
	if (arrived > 0)
		note_arrived(stream, arrived);
	aq_point("node-delivered");
}

static void
forward_done(AqLinkStream *stream, const AqLinkAnswer *answer)
{
	Forwarding *forwarding = stream->data;

	switch (forwarding->kind)
	{
		case RESUMING:
			/* the commit can fail */
			forwarding->resumed = give_back_missing(forwarding, answer) ? GetTopTransactionId() : InvalidTransactionId;
			forwarding->token = forwarding->asked;
			aq_point("node-resumed");
			break;
		case DELIVERING:
			delivered(stream, answer);
			break;
		case RECALLING:
			if (aq_link_answer_value(answer, 0, 0)->number == 0)
				take_back(forwarding);
			break;
		case NOTHING:
			break;
	}
}

/* Whatever it was: ask first what has arrived. */
static TimestampTz
forward_failed(AqLinkStream *stream, const AqLinkFailure *failure)
{
	Forwarding *forwarding = stream->data;

	forwarding->token = 0;
	if (forwarding->kind == DELIVERING || failure->phase == AQ_LINK_REFUSED)
		for (int i = 0; i < forwarding->nparcels; i++)
			not_taken(forwarding, &forwarding->parcels[i]);
	forwarding->nparcels = 0;	/* this function is called again for each attempt to connect */
	if (failure->phase != AQ_LINK_REFUSED)
		return 0;
	note_error(stream, failure->message, failure->hint);
	return GetCurrentTimestamp() + (forwarding->kind == RESUMING ? TROUBLE_PAUSE : 0);
}

static const AqLinkKind forwards = {
	.name = "node forward",
	.size = sizeof(Forwarding),
	.exist = aq_node_stream_exist,
	.list = aq_node_stream_list,
	.woken = forward_woken,
	.next = forward_next,
	.done = forward_done,
	.failed = forward_failed,
};

void
aq_node_forward_register(void)
{
	aq_link_register(&forwards);
}
