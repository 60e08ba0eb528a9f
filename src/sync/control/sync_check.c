/*-------------------------------------------------------------------------
 *
 * sync_check.c
 *	  For aq.check(): does each holder of a latch or mutex exist, and is the
 *	  lock in its list?
 *
 * Shared memory is read without a latch, while sessions change it; so the
 * caller checks differences a second time.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "sync/common/held.h"
#include "sync/common/lock_names.h"
#include "sync/control/control.h"
#include "sync/latches/latch.h"

static void
check_session(AqFindings *findings, int session)
{
	AqSyncSelf *self = &aq_sync_shared->selves[session];
	uint32		nheld = pg_atomic_read_u32(&self->nheld);

	if (nheld == 0 || aq_session_pid(session) != 0)
		return;
	aq_finding_add(findings, psprintf("session %d", session + 1), "latches and mutexes of a session that has ended",
				   nheld, 0, NULL);
}

static void
check_latch(AqFindings *findings, int id, const AqLatch *latch)
{
	const char *place = psprintf("latch \"%s\" %d", aq_lock_names_latches[id], latch->child);
	int			holder = aq_latch_holder(latch);
	uint32		sharers = aq_latch_sharers(latch);
	uint32		known = 0;

	if (holder >= 0 && aq_held_by(holder, latch) == NULL)
		aq_finding_add(findings, place, "held by a session that does not know of it", holder + 1, AQ_NO_NUMBER,
					   psprintf("process %d", aq_session_pid(holder)));
	if (sharers == 0)
		return;
	for (int i = 0; i < aq_sync_shared->nsleepers; i++)
		if (aq_held_by(i, latch) != NULL)
			known++;
	aq_finding_compare(findings, place, "sessions that share it", sharers, known);
}

void
aq_sync_check(AqFindings *findings)
{
	for (int i = 0; i < aq_sync_shared->nsleepers; i++)
		check_session(findings, i);
	for (int id = 0; id < AQ_LATCH_COUNT; id++)
	{
		const AqLatch *latch = (AqLatch *) (uintptr_t) pg_atomic_read_u64(&aq_sync_shared->latches[id]);

		for (; latch != NULL; latch = latch->next)
			if (aq_latch_holder(latch) >= 0 || aq_latch_sharers(latch) > 0)
				check_latch(findings, id, latch);
		CHECK_FOR_INTERRUPTS();
	}
}

#ifdef AQ_TEST_POINTS
/*
 * For tests of aq.check(): makes a session that does not exist a latch's
 * holder (by = 1), or undoes that (by = -1).
 */
PG_FUNCTION_INFO_V1(aq_sync_check_damage);
Datum
aq_sync_check_damage(PG_FUNCTION_ARGS)
{
	pg_atomic_fetch_add_u32(&aq_sync_shared->selves[aq_sync_shared->nsleepers - 1].nheld, PG_GETARG_INT32(0));
	PG_RETURN_VOID();
}
#endif
