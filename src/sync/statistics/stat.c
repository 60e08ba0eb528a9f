/*-------------------------------------------------------------------------
 *
 * stat.c
 *	  Statistics: counters of the sessions' work.
 *
 * Each session counts in its own slot, without a lock or an atomic operation.
 * When it ends it adds its slot to the totals under the latch "wait
 * statistics", exclusively; a reader takes that latch shared and adds totals
 * and slots, so nothing is counted twice or missed.  Each number is exact, but
 * numbers are not read at the same moment.
 *
 * If a session is killed, shared memory is reinitialized and all counters
 * begin at 0.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "miscadmin.h"
#include "sync/latches/latch.h"
#include "sync/statistics/stat_int.h"

typedef struct StatShared
{
	AqStatSums	totals;			/* of ended sessions; protected by latch "wait statistics" */
} StatShared;

static StatShared *shared;
static char *slots;				/* AqStatSlot, each padded to cache lines */

/* dummy counters of sessions that are not attached; never read */
static uint64 nowhere[AQ_STAT_COUNT];

uint64	   *aq_stat_own = nowhere;
bool		aq_stat_touched = false;

static Size
slot_size(void)
{
	return CACHELINEALIGN(sizeof(AqStatSlot));
}

Size
aq_stat_shmem_size(void)
{
	return add_size(CACHELINEALIGN(sizeof(StatShared)),
					mul_size(slot_size(), aq_session_slots()));
}

void
aq_stat_shmem_init(void *area, bool found)
{
	shared = area;
	slots = (char *) area + CACHELINEALIGN(sizeof(StatShared));
	if (!found)
		memset(area, 0, aq_stat_shmem_size());
}

AqStatSlot *
aq_stat_slot(int session)
{
	return (AqStatSlot *) (slots + slot_size() * session);
}

void
aq_stat_session_start(void)
{
	AqStatSlot *own = aq_stat_slot(aq_session_own_number);

	own->background = (MyBackendType != B_BACKEND);
	aq_stat_own = own->counts;
	aq_stat_touched = false;
}

static void
add_counts(uint64 *sum, const uint64 *one, int n)
{
	for (int i = 0; i < n; i++)
		sum[i] += one[i];
}

static void
add_slot(AqStatSums *sums, const AqStatSlot *slot)
{
	AqTimes    *times = &sums->times[slot->background];

	add_counts(sums->counts, slot->counts, AQ_STAT_COUNT);
	times->db_time += slot->times.db_time;
	times->cpu += slot->times.cpu;
	add_counts(times->op_elapsed, slot->times.op_elapsed, AQ_TIME_COUNT);
	add_counts(times->op_cpu, slot->times.op_cpu, AQ_TIME_COUNT);
	add_counts(times->io, slot->times.io, AQ_IO_COUNT);
}

void
aq_stat_session_exit(void)
{
	AqStatSlot *own = aq_stat_slot(aq_session_own_number);

	aq_latch_get(aq_event_sums_latch(), AQ_EXCLUSIVE, AQ_LOC_STATISTICS);
	add_slot(&shared->totals, own);
	memset(own, 0, sizeof(AqStatSlot));
	aq_latch_free(aq_event_sums_latch());
	aq_stat_own = nowhere;
}

/*
 * Copies a session's slot, with its current CPU time.  The reader gets the CPU
 * time from the kernel's clock of the process, so that it costs the session
 * nothing.
 */
void
aq_stat_read(int session, AqStatSlot *copy)
{
	int			pid = aq_session_pid(session);
	int64		cpu;

	*copy = *aq_stat_slot(session);
	if (pid == 0 || copy->cpu_before == 0)
		return;					/* the session is just attaching or has ended */
	cpu = aq_clock_cpu_ns_of(pid);
	if (cpu >= 0 && pid == aq_session_pid(session))
		copy->times.cpu = Max((int64) copy->times.cpu, cpu - (int64) copy->cpu_before);
}

int
aq_stat_operation(int session, int32 *queue_id)
{
	AqStatSlot *slot = aq_stat_slot(session);

	*queue_id = 0;
	if (aq_session_pid(session) == 0 || slot->cpu_before == 0 || slot->op < 0)
		return -1;
	*queue_id = slot->queue;
	return slot->op;
}

/* Totals since server start. */
void
aq_stat_sum(AqStatSums *sums)
{
	int			n = aq_session_slots();

	aq_latch_get(aq_event_sums_latch(), AQ_SHARED, AQ_LOC_STATISTICS);
	*sums = shared->totals;
	for (int i = 0; i < n; i++)
		if (aq_session_pid(i) != 0)
		{
			AqStatSlot	copy;

			aq_stat_read(i, &copy);
			add_slot(sums, &copy);
		}
	aq_latch_free(aq_event_sums_latch());
}

/* Called at the end of each transaction of an attached session. */
void
aq_stat_xact_end(XactEvent event)
{
	if (!aq_stat_touched)
		return;
	aq_stat_touched = false;
	aq_stat_add(event == XACT_EVENT_COMMIT ? AQ_STAT_COMMITS :
				event == XACT_EVENT_PREPARE ? AQ_STAT_PREPARES : AQ_STAT_ROLLBACKS, 1);
}
