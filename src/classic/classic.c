/*-------------------------------------------------------------------------
 *
 * classic.c
 *	  The AqPart and the AqStore of part "classic".
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "classic/classic_private.h"

static bool
owns(AqQueue *queue, const pg_uuid_t *id)
{
	int64		step;

	return aq_step_of_id(id, queue->key, &step);
}

static const AqStoreJob classic_jobs[] = {
	{AQ_WORK_TABLES, aq_classic_tables_keys_job},
	{AQ_WORK_RETRY, aq_classic_retry_job},
	{AQ_WORK_DOUBT, aq_classic_doubts_job},
	{AQ_WORK_COUNT, aq_classic_count_job},
};

static const AqStoreBodies classic_bodies = {
	.write = aq_classic_body_write,
	.read = aq_classic_body_read,
};

static const AqStoreTables classic_tables = {
	.make = aq_classic_tables_make,
	.drop = aq_classic_tables_drop,
	.hold = aq_classic_tables_hold,
	.leave = aq_classic_tables_leave,
	.were_emptied = aq_unlogged_was_emptied,
};

static const AqStoreChecks classic_checks = {
	.queue = aq_classic_check,
	.pool = aq_classic_check_pool,
	.chunks = aq_classic_check_chunks,
};

static bool
worker_may_put(AqQueue *queue, bool keyed)
{
	return (!keyed || aq_classic_tables_take_keys(queue)) && aq_commit_order_may_put(queue);
}

static const AqStore classic_store = {
	.kind = AQ_STORE_CLASSIC,
	.xact = &aq_classic_notes_xact,
	.load = aq_classic_queue_load,
	.lost_table = aq_classic_tables_lost,
	.unload = aq_classic_queue_unload,
	.idle = aq_classic_queue_idle,
	.drop = aq_classic_tables_drop_queue,
	.lock = aq_classic_tables_lock,
	.put = aq_classic_put,
	.take = aq_classic_take,
	.settle_leases = aq_classic_lease_settle,
	.worker_may_put = worker_may_put,
	.owns = owns,
	.ready = aq_classic_take_ready,
	.in_doubt = aq_classic_doubts_any,
	.free_position = aq_removed_consumer_free,
	.counts_all = aq_classic_queue_counts_all,
	.without_messages = aq_classic_queue_without_messages,
	.jobs = classic_jobs,
	.njobs = lengthof(classic_jobs),
	.time_job = {0, aq_classic_time_job},
	.enqueued_here = aq_classic_notes_enqueued,
	.finished_here = aq_classic_notes_finished,
	.measure = aq_classic_count_measure,
	.bodies = &classic_bodies,
	.tables = &classic_tables,
	.checks = &classic_checks,
};

/* --- the part -------------------------------------------------------------------------------- */

static void
classic_define_parameters(void)
{
	aq_store_register(&classic_store);
}

static void
classic_shmem_init(void *area, bool found)
{
	aq_classic_area_init(area, found);
	aq_retry_list_init();
}

const AqPart aq_classic_part = {
	.name = "classic",
	.define_parameters = classic_define_parameters,
	.shmem_size = aq_classic_area_size,
	.shmem_init = classic_shmem_init,
};
