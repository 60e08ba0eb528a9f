/*-------------------------------------------------------------------------
 *
 * convert.c
 *	  Converting a queue in a queue table to a sharded queue, while it is in
 *	  use.
 *
 * Nothing is copied.  From the commit of aq.convert_queue() on, new messages
 * go into the sharded store; those in the queue table stay there, with their
 * ids, attempts, delays and consumers, and are dequeued first.  When the last
 * one is consumed, the worker removes the queue from the queue table.  In
 * between the queue has both stores, under the same id: each store has its own
 * data in shared memory; both use the queue's wait lists and counters of
 * consumers.
 *
 * The conversion does not wait for sessions, so a transaction may have
 * enqueued into the queue table before the conversion and commit after it.
 * These flags in shared memory control the transition:
 *
 *	converted	is set when the conversion commits.  A session that is about to enqueue
 *				with an older description gets a transaction id, then checks the
 *				flag, and reads the definition again.  So when all transactions
 *				have ended that began before the worker saw the flag,
 *	settled		is set: no more messages will come into the queue table.  Until
 *				then a dequeue that has found the queue table empty checks again
 *				before it takes from the sharded store; otherwise a message could
 *				overtake an earlier one of the same session.
 *	table_done	is set when the queue has left the queue table, and when it is
 *				loaded after that.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "queue/definitions/definitions_private.h"

#include "access/transam.h"
#include "storage/procarray.h"

/* interval between the worker's checks of the queue table, in microseconds */
#define CHECK_AGAIN ((int64) 500000)

/* ... or this multiple of the time that the check took, if longer */
#define CHECK_COST 50

static const AqStore *
sharded(void)
{
	return aq_store_of(AQ_STORE_SHARDED);
}

static const AqStore *
classic(void)
{
	return aq_store_of(AQ_STORE_CLASSIC);
}

/* --- a queue with both stores ------------------------------------------------------ */

static void
both_load(AqQueue *queue, AqQueueShm *shm)
{
	classic()->load(queue, shm);
	sharded()->load(queue, shm);
}

static uint32
both_chunks(AqQueueShm *shm)
{
	return classic()->checks->chunks(shm) + sharded()->checks->chunks(shm);
}

static char *
both_lost_table(const AqQueue *queue)
{
	char	   *lost = queue->table.id != 0 ? classic()->lost_table(queue) : NULL;

	return lost != NULL ? lost : sharded()->lost_table(queue);
}

static void
both_unload(AqQueueShm *shm)
{
	classic()->unload(shm);
	sharded()->unload(shm);
}

static void
both_drop(AqQueue *queue, bool force)
{
	classic()->drop(queue, force);
	sharded()->drop(queue, force);
}

static void
both_lock(AqQueue *queue)
{
	classic()->lock(queue);
	sharded()->lock(queue);
}

static void
both_put(AqQueue *queue, const AqPutOptions *options, uint32 n, const Datum *payloads,
		 const bool *nulls, Bitmapset *const *targets, pg_uuid_t *ids)
{
	sharded()->put(queue, options, n, payloads, nulls, targets, ids);
}

/*
 * A take from the sharded store, while the queue table may still get messages.
 */
typedef struct Recheck
{
	const AqTakeOptions *options;
	pg_atomic_uint64 *puts;
	uint64		before;			/* *puts when the queue table was empty */
	bool		again;			/* the queue table may have messages now */
} Recheck;

static bool
recheck(void *arg, const AqMessage *message)
{
	Recheck    *check = arg;

	if (pg_atomic_read_u64(check->puts) != check->before)
		check->again = true;
	if (check->again)
		return false;
	return check->options->filter == NULL || check->options->filter(check->options->filter_arg, message);
}

/*
 * Takes from the sharded store, unless messages have come into the queue table
 * meanwhile.
 */
static uint32
take_sharded(AqQueue *queue, const AqTakeOptions *options, uint64 puts, bool *again)
{
	AqTakeOptions checked = *options;
	Recheck		check = {.options = options, .puts = &queue->shm->table_puts, .before = puts};
	uint32		taken;

	*again = false;
	if (queue->shm->settled || options->mode == AQ_MODE_BROWSE)
		return sharded()->take(queue, options);
	checked.filter = recheck;
	checked.filter_arg = &check;
	taken = sharded()->take(queue, &checked);
	*again = check.again;
	return taken;
}

static void
note_priority(void *arg, const AqMessage *message)
{
	*(int *) arg = message->priority;
}

/*
 * The priority of the next message in the queue table; returns false if it has no
 * message.
 */
static bool
table_head(AqQueue *queue, const AqTakeOptions *options, int *priority)
{
	AqTakeOptions probe = *options;

	probe.mode = AQ_MODE_BROWSE;
	probe.max = 1;
	probe.emit = note_priority;
	probe.emit_arg = priority;
	return classic()->take(queue, &probe) > 0;
}

/*
 * Takes some of the requested messages from one of the stores; returns 0 if
 * both are empty.  If messages are sorted by priority, more urgent messages of
 * the sharded store come before those of the queue table, from which therefore
 * one message at a time is taken.
 */
static uint32
take_some(AqQueue *queue, const AqTakeOptions *options)
{
	bool		by_priority = queue->table.sort[0] == AQ_SORT_PRIORITY &&
		options->mode != AQ_MODE_PURGE;
	AqTakeOptions from_table = *options;
	AqTakeOptions from_shards = *options;
	uint32		taken;
	bool		again;

	from_table.max = by_priority ? 1 : options->max;
	from_shards.after = NULL;
	from_shards.place = NULL;
	do
	{
		uint64		puts = pg_atomic_read_u64(&queue->shm->table_puts);
		int			priority;

		pg_memory_barrier();
		taken = 0;
		again = false;
		if (!by_priority || table_head(queue, options, &priority))
		{
			from_shards.below = by_priority ? Min(priority, AQ_PRIORITIES) : 0;
			if (from_shards.below > 0)
				taken = take_sharded(queue, &from_shards, puts, &again);
			if (taken == 0 && !again)
				taken = classic()->take(queue, &from_table);
		}
		from_shards.below = 0;
		if (taken == 0 && !again)
			taken = take_sharded(queue, &from_shards, puts, &again);
	} while (taken == 0 && again);
	return taken;
}

/* Shows the queue table's messages, in its order, then the sharded store's. */
static uint32
browse(AqQueue *queue, AqTakeOptions *options)
{
	uint32		seen = classic()->take(queue, options);

	if (seen == options->max)
		return seen;
	options->max -= seen;
	options->after = NULL;
	options->place = NULL;
	return seen + sharded()->take(queue, options);
}

/*
 * Takes the queue table's messages first.  A position matters in the sharded
 * store only for a browse: a dequeue there always begins at the head.
 */
static uint32
both_take(AqQueue *queue, const AqTakeOptions *given)
{
	AqTakeOptions options = *given;
	const pg_uuid_t *named = options.id != NULL ? options.id
		: options.mode == AQ_MODE_BROWSE ? options.after : NULL;
	uint32		taken = 0;
	uint32		n;

	if (queue->shm->table_done || (named != NULL && sharded()->owns(queue, named)))
		return sharded()->take(queue, given);
	if (options.id != NULL)
		return classic()->take(queue, given);
	if (options.mode == AQ_MODE_BROWSE)
		return browse(queue, &options);
	if (options.after != NULL && sharded()->owns(queue, options.after))
	{
		options.after = NULL;
		options.place = NULL;
	}
	do
	{
		options.max = given->max - taken;
		n = take_some(queue, &options);
		taken += n;
	} while (n > 0 && taken < given->max);
	return taken;
}

/* Those of the queue table are not the store's: see aq_admin_purge_processed(). */
static uint64
both_purge_retained(AqQueue *queue, int position, const pg_uuid_t *ids, uint32 n)
{
	return sharded()->purge_retained(queue, position, ids, n);
}

/* Messages that were leased before the conversion; there are no new leases meanwhile. */
static void
both_settle_leases(AqQueue *queue, const AqLeaseOptions *options, const pg_uuid_t *ids, uint32 n, AqLeaseResult *results)
{
	classic()->settle_leases(queue, options, ids, n, results);
}

static bool
both_owns(AqQueue *queue, const pg_uuid_t *id)
{
	return classic()->owns(queue, id) || sharded()->owns(queue, id);
}

static AqBodyWrite
both_write_body(AqQueue *queue, const pg_uuid_t *id, int32 number, bytea *data)
{
	return (sharded()->owns(queue, id) ? sharded() : classic())->bodies->write(queue, id, number, data);
}

static bytea *
both_read_body(AqQueue *queue, const pg_uuid_t *id, int32 number, int position)
{
	return (sharded()->owns(queue, id) ? sharded() : classic())->bodies->read(queue, id, number, position);
}

static bool
both_ready(AqQueue *queue, int position, int64 until)
{
	return (!queue->shm->table_done && classic()->ready(queue, position, until)) ||
		sharded()->ready(queue, position, until);
}

static bool
both_free_position(AqQueue *queue, AqRemoved *removed)
{
	return classic()->free_position(queue, removed) && sharded()->free_position(queue, removed);
}

/*
 * The counters are those of both stores, so recipients keep their positions
 * until the conversion has ended.
 */
static bool
both_count_all(AqQueueShm *shm)
{
	return false;
}

static bool
both_in_doubt(AqQueueShm *shm)
{
	return classic()->in_doubt(shm) || sharded()->in_doubt(shm);
}

static bool
both_worker_may_put(AqQueue *queue, bool keyed)
{
	return sharded()->worker_may_put(queue, keyed);
}

/*
 * Not during the conversion; when it is loaded again afterwards, it is a
 * sharded queue.
 */
static bool
both_idle(AqQueueShm *shm)
{
	return shm->table_done && classic()->idle(shm) && sharded()->idle(shm);
}

static const AqStoreBodies both_bodies = {.write = both_write_body, .read = both_read_body};
static const AqStoreChecks both_checks = {.chunks = both_chunks};

/* Its jobs are those of both stores: see upkeep.c. */
const AqStore aq_convert_store = {
	.kind = AQ_STORE_BOTH,
	.load = both_load,
	.lost_table = both_lost_table,
	.unload = both_unload,
	.idle = both_idle,
	.drop = both_drop,
	.lock = both_lock,
	.put = both_put,
	.take = both_take,
	.purge_retained = both_purge_retained,
	.settle_leases = both_settle_leases,
	.owns = both_owns,
	.ready = both_ready,
	.in_doubt = both_in_doubt,
	.free_position = both_free_position,
	.counts_all = both_count_all,
	.worker_may_put = both_worker_may_put,
	.bodies = &both_bodies,
	.checks = &both_checks,
};

/* --- aq.convert_queue ------------------------------------------------------------------ */

/* Are there priorities that the sharded store does not support? */
static bool
has_other_priorities(const AqQueue *queue)
{
	return aq_sql_finds(psprintf("SELECT FROM aq_data.t%d WHERE queue_id = %d AND state <> 2 "
								 "AND priority NOT BETWEEN 0 AND %d LIMIT 1", queue->table.id, queue->id, AQ_PRIORITIES - 1));
}

typedef struct Obstacle
{
	const char *what;
	const char *hint;
} Obstacle;

#define MAX_OBSTACLES 6

/*
 * Finds features of the queue that sharded queues lack; returns their number.
 */
static int
find_obstacles(const AqQueue *queue, Obstacle *obstacles)
{
	int			n = 0;

	if (queue->exception)
		obstacles[n++] = (Obstacle) {"it is an exception queue",
			"Leave it where it is: it still takes the failed messages of converted queues."};
	if (queue->table.grouping)
		obstacles[n++] = (Obstacle) {"its messages are grouped by transactions",
			"Sharded queues have no groups: leave it where it is, or enqueue what belongs together as one message."};
	if (strchr(queue->table.sort, AQ_SORT_COMMIT_TIME) != NULL)
		obstacles[n++] = (Obstacle) {"its queue table is sorted by commit time",
			"Sharded queues have the order of the enqueue calls of each session: leave it where it is."};
	if (has_other_priorities(queue))
		obstacles[n++] = (Obstacle) {"it holds messages with a priority outside 0 to 9",
			"Dequeue or purge them, and give priorities from 0 to 9."};
	if (queue->default_priority >= AQ_PRIORITIES)
		obstacles[n++] = (Obstacle) {"its default_priority is above 9",
			"Lower it with aq.alter_queue."};
	if (queue->max_retries > AQ_MAX_ATTEMPTS)
		obstacles[n++] = (Obstacle) {"its max_retries is above 255",
			"Set it to 255 at most, or to no limit, with aq.alter_queue."};
	return n;
}

/*
 * The queue to convert, which must be in a queue table and belong to the
 * caller.
 */
static AqQueue *
queue_to_convert(FunctionCallInfo fcinfo, LOCKMODE lock)
{
	AqQueue    *queue = aq_ddl_queue(aq_args_name(fcinfo, 0, "queue_name"), lock);

	if (queue->store->kind != AQ_STORE_CLASSIC || aq_pending_is_converted(queue->id))
		ereport(ERROR,
				aq_error(AQ_ERR_OPTION_INVALID, "queue \"%s\" is already a sharded queue", queue->name),
				aq_error_hint("The column \"converting\" of aq.queues shows whether it still has messages in its queue table.",
							  "dbms_aqmigtool.check_status shows whether it still has messages in its queue table."));
	return queue;
}

AQ_ROWS(aq_convert_obstacles)
{
	Obstacle	obstacles[MAX_OBSTACLES];
	int			n = find_obstacles(queue_to_convert(fcinfo, AccessShareLock), obstacles);

	for (int i = 0; i < n; i++)
	{
		aq_rows_text(row, obstacles[i].what);
		aq_rows_text(row, obstacles[i].hint);
		aq_rows_end(row);
	}
}

PG_FUNCTION_INFO_V1(aq_convert_queue);
Datum
aq_convert_queue(PG_FUNCTION_ARGS)
{
	AQ_TIMED(AQ_TIME_ADMIN);
	AqQueue    *queue;
	int			shards = PG_ARGISNULL(1) ? aq_parameters_default_shards : PG_GETARG_INT32(1);
	Obstacle	obstacles[MAX_OBSTACLES];
	int32		id;

	aq_session_require_write("aq.convert_queue()");
	if (shards < 1 || shards > AQ_MAX_SHARDS)
		ereport(ERROR,
				aq_error(AQ_ERR_OPTION_INVALID, "a queue has 1 to %d shards, not %d", AQ_MAX_SHARDS, shards));
	queue = queue_to_convert(fcinfo, ShareUpdateExclusiveLock);
	id = queue->id;
	if (find_obstacles(queue, obstacles) > 0)
		ereport(ERROR,
				aq_error(AQ_ERR_CONVERSION_BLOCKED, "queue \"%s\" cannot be converted: %s", queue->name,
						 obstacles[0].what),
				errhint("%s", obstacles[0].hint));
	aq_pins_pin(queue);

	/* it is empty, and unused if this transaction rolls back */
	sharded()->load(queue, queue->shm);
	queue->shm->store = AQ_STORE_BOTH;
	aq_sql_change(psprintf("UPDATE aq_internal.queue SET store = '%c', shards = %d, converted = now() WHERE queue_id = %d",
						   AQ_STORE_BOTH, shards, id), 0, NULL, NULL, NULL);
	aq_pending_converted(id);
	aq_catalog_changed();
	aq_point("conversion-written");
	PG_RETURN_VOID();
}

/* --- the worker ---------------------------------------------------------------------------- */

/* Can no transaction enqueue into the queue table now? */
static bool
is_settled(AqQueueShm *shm)
{
	if (!TransactionIdIsValid(shm->horizon))
		shm->horizon = ReadNextTransactionId();
	if (!shm->settled && !TransactionIdPrecedes(aq_oldest_running_xid(), shm->horizon))
		shm->settled = true;
	return shm->settled;
}

/*
 * Removes the queue from its queue table; returns false if another session is
 * changing it.
 */
static bool
leave_table(int32 id)
{
	AqQueue    *queue;

	if (!aq_queue_lock(id, ShareUpdateExclusiveLock, false))
		return false;
	queue = aq_catalog_get_by_id(id, true);
	if (queue == NULL || queue->store->kind != AQ_STORE_BOTH)
		return true;
	classic()->tables->leave(queue);
	aq_sql_change(psprintf("UPDATE aq_internal.queue SET store = '%c', queue_table_id = NULL WHERE queue_id = %d",
						   AQ_STORE_SHARDED, id), 0, NULL, NULL, NULL);
	aq_pending_table_left(id);
	aq_catalog_changed();
	aq_point("conversion-ended");
	return true;
}

void
aq_convert_job(int32 id, AqQueueShm *shm)
{
	AqQueue    *queue;
	bool		done = false;
	int64		began = aq_clock_us();

	aq_job_begin();
	if (is_settled(shm))
	{
		queue = aq_catalog_get_by_id(id, true);
		if (queue == NULL || queue->store->kind != AQ_STORE_BOTH)
			done = queue == NULL || queue->store->kind == AQ_STORE_SHARDED;
		else if (aq_queue_lock_tables(queue, RowExclusiveLock))
		{
			aq_pins_pin(queue);
			done = !classic()->tables->hold(queue) && leave_table(id);
		}
	}
	aq_job_commit(false);
	if (!done)
		aq_work_later(shm, AQ_WORK_CONVERT, Max(CHECK_AGAIN, CHECK_COST * (aq_clock_us() - began)));
}
