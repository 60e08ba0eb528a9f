/*-------------------------------------------------------------------------
 *
 * module.c
 *	  The library's entry: the parts, in the order of their dependencies.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "fmgr.h"

#include "base/base.h"
#include "cache/cache.h"
#include "classic/classic.h"
#include "jms/jms.h"
#include "jobs/jobs.h"
#include "lab/lab.h"
#include "link/link.h"
#include "monitor/monitor.h"
#include "node/node.h"
#include "notify/notify.h"
#include "oracle/oracle.h"
#include "propagate/propagate.h"
#include "queue/queue.h"
#include "schedule/schedule.h"
#include "shard/shard.h"
#include "sync/sync.h"

PG_MODULE_MAGIC;

void		_PG_init(void);

static const AqPart *const parts[] = {
	&aq_sync_part,
	&aq_cache_part,
	&aq_jobs_part,
	&aq_queue_part,
	&aq_shard_part,
	&aq_classic_part,
	&aq_jms_part,
	&aq_oracle_part,
	&aq_notify_part,
	&aq_schedule_part,
	&aq_link_part,
	&aq_propagate_part,
	&aq_node_part,
	&aq_monitor_part,
	&aq_lab_part,
};

void
_PG_init(void)
{
	aq_part_init(parts, lengthof(parts));
}
