/*-------------------------------------------------------------------------
 *
 * shard.c
 *	  The AqPart of "shard", its parameters, and the AqStore.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "shard/checks/checks_private.h"
#include "shard/messages/messages_private.h"
#include "shard/shard.h"
#include "shard/worker/worker_private.h"

#include "utils/guc.h"

static const AqStore shard_store;

static void
shard_define_parameters(void)
{
	DefineCustomIntVariable("pgaq.max_partitions",
							"Number of partitions, of all queues, that can exist at a time.",
							"A partition holds up to 16384 messages in its own table.",
							&aq_area_max_partitions,
							16384, 64, 10000000,
							PGC_POSTMASTER, 0,
							NULL, NULL, NULL);
	DefineCustomIntVariable("pgaq.max_streams",
							"Number of streams, of all queues in use, that can exist at a time.",
							"A queue has a stream per shard and priority used, and another for delayed messages.",
							&aq_area_max_streams,
							8192, 64, 1000000,
							PGC_POSTMASTER, 0,
							NULL, NULL, NULL);
	DefineCustomIntVariable("pgaq.reuse_grace",
							"Time that a consumed partition waits for snapshots older than its last dequeue.",
							"A partition is truncated and reused when no snapshot can see its messages "
							"as not consumed, or after this time.",
							&aq_reclaim_grace_ms,
							30000, 0, INT_MAX,
							PGC_SIGHUP, GUC_UNIT_MS,
							NULL, NULL, NULL);
	DefineCustomIntVariable("pgaq.idle_grace",
							"Time without use after which a consumed partition is closed although it is not full.",
							"It is then truncated, so an empty queue gives its space back. A partition to which "
							"less than 256 kB were written is left as it is.",
							&aq_reclaim_idle_ms,
							10000, 0, INT_MAX,
							PGC_SIGHUP, GUC_UNIT_MS,
							NULL, NULL, NULL);
	DefineCustomIntVariable("pgaq.partition_size",
							"Size from which a partition of a sharded queue takes no more messages.",
							"A partition is truncated when all its messages are consumed, so consumed messages, "
							"and bodies of large ones, occupy up to this size of each stream.",
							&aq_body_partition_kb,
							256 * 1024, 64, INT_MAX,
							PGC_SIGHUP, GUC_UNIT_KB,
							NULL, NULL, NULL);
	aq_chunks_on_pressure(aq_evict_one);
	aq_keep_register();
	aq_utility_on_prepared_end(aq_doubt_sweep_ended);
	aq_lease_session_register();
	aq_age_register();
	aq_store_register(&shard_store);
}

const AqPart aq_shard_part = {
	.name = "shard",
	.define_parameters = shard_define_parameters,
	.shmem_size = aq_area_size,
	.shmem_init = aq_area_init,
	.session_exit = aq_lease_session_exit,
};

/* --- the store ---------------------------------------------------------------------------------- */

/*
 * Can the partition be unloaded?  Not if it has transactions, unwritten retry
 * counts or failed messages, or a timer is pending.
 */
static bool
partition_is_idle(const Partition *partition)
{
	return (partition->state == PARTITION_CLOSED || partition->state == PARTITION_OPEN) &&
		partition->pending == 0 && partition->inflight == 0 && partition->nretry == 0 &&
		partition->nfailed == 0 && partition->ndoubt == 0 && partition->next_timer == 0 &&
		!partition->loading && partition->own_subid == InvalidSubTransactionId &&
		(partition->frame == 0 || frame_of(partition)->timers_reserved == 0);
}

static bool
idle(AqQueueShm *shm)
{
	ShardQueue *queue = shard_queue(shm);
	bool		idle = !queue->worker_wants && pg_atomic_read_u32(&queue->wanting) == 0 && pg_atomic_read_u32(&queue->wanting_keyed) == 0;

	for (Stream *stream = stream_at(queue->streams); stream != NULL && idle;
		 stream = stream_at(stream->next))
	{
		aq_latch_get(&stream->latch, AQ_EXCLUSIVE, AQ_LOC_QUEUE_UNLOAD);
		for (uint32 i = stream->head; i != 0 && idle; i = partition_at(i)->next)
			idle = partition_is_idle(partition_at(i));
		aq_latch_free(&stream->latch);
	}
	return idle;
}

static bool
holds_messages(AqQueue *queue)
{
	for (Stream *stream = stream_at(shard_queue(queue->shm)->streams); stream != NULL;
		 stream = stream_at(stream->next))
	{
		bool		found = false;
		uint32		index;

		aq_latch_get(&stream->latch, AQ_EXCLUSIVE, AQ_LOC_QUEUE_DROP);
		for (index = stream->head; index != 0 && !found; index = partition_at(index)->next)
			found = partition_at(index)->open > 0;
		aq_latch_free(&stream->latch);
		if (found)
			return true;
	}
	return false;
}

/*
 * Finishes messages of removed consumers, which the worker may not have
 * processed yet.
 */
static void
forget_removed(AqQueue *queue)
{
	for (int i = 0; i < queue->nconsumers; i++)
	{
		if (queue->consumers[i].name == NULL)
		{
			aq_reclaim_removed_job(queue->id, queue->shm);
			return;
		}
	}
}

static void
drop(AqQueue *queue, bool force)
{
	if (!force)
	{
		forget_removed(queue);
		aq_reclaim_count(queue->shm);
	}
	aq_tables_lock(queue);
	if (!force)
	{
		/* a prepared transaction may have just ended */
		(void) aq_doubt_resolve(queue->shm, true);
		if (holds_messages(queue))
			ereport(ERROR,
					aq_error(AQ_ERR_QUEUE_NOT_EMPTY, "queue \"%s\" holds messages", queue->name),
					errhint("Dequeue or purge them, or drop the queue with force => true."));
	}
	aq_tables_drop(queue);
}

static bool
has_doubts(const Partition *partition)
{
	return partition->ndoubt > 0;
}

static bool
in_doubt(AqQueueShm *shm)
{
	for (Stream *stream = stream_at(shard_queue(shm)->streams); stream != NULL;
		 stream = stream_at(stream->next))
		if (aq_stream_partition_from(stream, 0, has_doubts) != NULL)
			return true;
	return false;
}

/*
 * Is the partition not read since a restart, or has it unsettled messages of a
 * prepared transaction?
 */
static bool
is_not_counted(const Partition *partition)
{
	return !partition->in_lag || partition->ndoubt > 0;
}

static bool
counts_all(AqQueueShm *shm)
{
	for (Stream *stream = stream_at(shard_queue(shm)->streams); stream != NULL;
		 stream = stream_at(stream->next))
		if (aq_stream_partition_from(stream, 0, is_not_counted) != NULL)
			return false;
	return true;
}

static bool
is_counted(AqQueueShm *shm)
{
	return shard_queue(shm)->recovered;
}

static const AqStoreJob shard_jobs[] = {
	{AQ_WORK_RETRY, aq_retry_job},
	{AQ_WORK_TABLES, aq_tables_job},
	{AQ_WORK_DOUBT, aq_doubt_sweep_job},
	{AQ_WORK_REMOVED, aq_reclaim_removed_job},
	{AQ_WORK_RECOUNT, aq_reclaim_recount_job},
	{AQ_WORK_FAILED, aq_retry_failed_job},
	{AQ_WORK_AGE, aq_age_queue_job},
	{AQ_WORK_RECLAIM, aq_reclaim_job},
	{AQ_WORK_SURPLUS, aq_tables_surplus_job},
	{AQ_WORK_SESSION_LEASES, aq_lease_session_job},
};

static const AqStoreBodies shard_bodies = {
	.write = aq_body_write,
	.read = aq_body_read,
};

static const AqStoreChecks shard_checks = {
	.queue = aq_compare_queue,
	.pool = aq_shard_check_pool,
	.chunks = aq_shard_check_chunks,
};

static const AqStore shard_store = {
	.kind = AQ_STORE_SHARDED,
	.xact = &aq_shard_xact,
	.load = aq_first_use_load,
	.lost_table = aq_first_use_lost_table,
	.unload = aq_first_use_unload,
	.idle = idle,
	.drop = drop,
	.lock = aq_tables_lock,
	.put = aq_put,
	.take = aq_take,
	.settle_taken = aq_frozen_settle_taken,
	.purge_retained = aq_retained_purge,
	.settle_leases = aq_lease_settle,
	.owns = aq_message_id_owned,
	.unfinished = aq_unfinished,
	.ready = aq_take_is_ready,
	.in_doubt = in_doubt,
	.free_position = aq_positions_free,
	.counts_all = counts_all,
	.jobs = shard_jobs,
	.njobs = lengthof(shard_jobs),
	.time_job = {0, aq_timers_job},
	.enqueued_here = aq_notes_enqueued,
	.finished_here = aq_settle_finished_here,
	.is_counted = is_counted,
	.worker_may_put = aq_tables_ready_for_worker,
	.measure = aq_measure,
	.bodies = &shard_bodies,
	.units = &aq_foreign_units,
	.checks = &shard_checks,
};
