/*-------------------------------------------------------------------------
 *
 * server_stat.c
 *	  Statistics of all sessions: transactions, calls, blocks read, WAL.
 *
 * PostgreSQL's own statistics get a session's counts when the session becomes
 * idle, at the earliest.  A loop inside the server that commits a thousand
 * times counts as one transaction when it has ended, and until then as none.
 * So each process counts here, at the end of each transaction and of each
 * statement, also inside functions.
 *
 * Blocks and WAL are the process's own totals, which the server keeps for
 * EXPLAIN; publishing them is a few stores.  A parallel worker publishes
 * nothing, because its leader's totals include its work.
 *
 * A process that does not use queues is not attached, so nothing may depend on
 * its exit: the counters belong to the slot of the process, as those of mutexes
 * do, and the next process continues to count.  Only the process in the slot
 * writes them, without a lock; the sum of all slots is exact.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/parallel.h"
#include "access/xact.h"
#include "executor/instrument.h"
#include "miscadmin.h"
#include "storage/proc.h"
#include "sync/statistics/stat_int.h"

static char *slots;				/* AqServerStatSlot, each padded to cache lines */

static AqServerStatSlot *own;	/* NULL: not known yet, or the process does not count */
static bool excluded;			/* it does not count */
static bool client;				/* the process serves a client */

/* --- statements in statements --- */
static int	depth;				/* running statements; too many after an error, until the next message */
static TimestampTz message;		/* of the client, to which depth belongs */

static Size
slot_size(void)
{
	return CACHELINEALIGN(sizeof(AqServerStatSlot));
}

Size
aq_server_stat_shmem_size(void)
{
	return mul_size(slot_size(), aq_session_slots());
}

void
aq_server_stat_shmem_init(void *area, bool found)
{
	slots = area;
	if (!found)
		memset(area, 0, aq_server_stat_shmem_size());
}

static AqServerStatSlot *
slot_of(int session)
{
	return (AqServerStatSlot *) (slots + slot_size() * session);
}

/* The server's totals of this process; they never become smaller. */
static inline void
read_totals(uint64 *totals)
{
	int64		reads = pgBufferUsage.shared_blks_read + pgBufferUsage.local_blks_read;

	totals[AQ_SERVER_STAT_LOGICAL_READS] = pgBufferUsage.shared_blks_hit + pgBufferUsage.local_blks_hit + reads;
	totals[AQ_SERVER_STAT_PHYSICAL_READS] = reads;
	totals[AQ_SERVER_STAT_READ_REQUESTS] = reads;
	totals[AQ_SERVER_STAT_REDO_SIZE] = pgWalUsage.wal_bytes;
	totals[AQ_SERVER_STAT_REDO_ENTRIES] = pgWalUsage.wal_records;
}

/* Finds the process's slot; false: it has none, or does not count. */
static bool
begin_to_count(void)
{
	AqServerStatSlot *slot;

	if (excluded || slots == NULL || MyProc == NULL)
		return false;
	slot = slot_of(aq_proc_number());
	/*
	 * the totals began at 0 with the process, so what it did until now is
	 * counted, too; a process that does not count shows zeros
	 */
	memcpy(slot->before, slot->counts, sizeof(slot->before));
	excluded = IsParallelWorker() || !AQ_ACCOUNTING;
	if (excluded)
		return false;
	client = MyBackendType == B_BACKEND;
	own = slot;
	return true;
}

static inline bool
counting(void)
{
	return likely(own != NULL) || begin_to_count();
}

static inline void
publish(void)
{
	uint64		totals[AQ_SERVER_STAT_COUNT];

	read_totals(totals);
	for (int stat = AQ_SERVER_STAT_LOGICAL_READS; stat < AQ_SERVER_STAT_COUNT; stat++)
		own->counts[stat] = own->before[stat] + totals[stat];
}

int
aq_server_stat_enter(bool by_client, bool counts)
{
	int			outer;

	if (!counting())
		return 0;
	/* an error leaves statements open; the next message of the client cannot be inside them */
	if (message != GetCurrentStatementStartTimestamp())
	{
		message = GetCurrentStatementStartTimestamp();
		depth = 0;
	}
	outer = depth++;
	if (client && by_client && outer == 0)
		own->counts[AQ_SERVER_STAT_USER_CALLS]++;
	if (counts)
		own->counts[AQ_SERVER_STAT_EXECUTIONS]++;
	return outer;
}

void
aq_server_stat_leave(int outer)
{
	if (own == NULL)
		return;
	depth = outer;
	publish();
}

/* Called at the end of each transaction of each process. */
void
aq_server_stat_xact_end(XactEvent event)
{
	/* a process also begins with a transaction */
	if (!IsNormalProcessingMode() || !counting())
		return;
	publish();
	/* a prepared transaction counts with the command that finishes it */
	if (event == XACT_EVENT_COMMIT)
		own->counts[client ? AQ_SERVER_STAT_USER_COMMITS : AQ_SERVER_STAT_BACKGROUND]++;
	else if (event == XACT_EVENT_ABORT)
		own->counts[client ? AQ_SERVER_STAT_USER_ROLLBACKS : AQ_SERVER_STAT_BACKGROUND]++;
}

void
aq_server_stat_sum(uint64 *sums)
{
	memset(sums, 0, AQ_SERVER_STAT_COUNT * sizeof(uint64));
	for (int session = 0; session < aq_session_slots(); session++)
		for (int stat = 0; stat < AQ_SERVER_STAT_COUNT; stat++)
			sums[stat] += slot_of(session)->counts[stat];
}

/* What the process in this slot has counted. */
void
aq_server_stat_read(int session, uint64 *counts)
{
	const AqServerStatSlot *slot = slot_of(session);

	for (int stat = 0; stat < AQ_SERVER_STAT_COUNT; stat++)
		counts[stat] = slot->counts[stat] - slot->before[stat];
}
