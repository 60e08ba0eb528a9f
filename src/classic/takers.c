/*-------------------------------------------------------------------------
 *
 * takers.c
 *	  Which sessions announce what they give back.
 *
 * A session that takes rows promises to announce them if its transaction is
 * rolled back: see ranges.c.  Its entry is the transaction, while it runs.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "classic/classic_private.h"

static bool announces;			/* this session's entry is set */

/* From now on a rollback announces the rows that the transaction has taken: see ranges.c. */
void
aq_takers_promise(void)
{
	if (announces || aq_job_in_worker())
		return;
	pg_atomic_write_u32(&aq_classic_area_takers[aq_session_number()], GetTopTransactionId());
	announces = true;
}

void
aq_takers_end(void)
{
	if (announces)
		pg_atomic_write_u32(&aq_classic_area_takers[aq_session_number()], InvalidTransactionId);
	announces = false;
}

/* Is xid, which is in progress, of a session that announces what it gives back? */
bool
aq_takers_announce(TransactionId xid)
{
	TransactionId top = aq_classic_doubts_top(xid);

	for (int i = 0; i < aq_session_slots(); i++)
		if (pg_atomic_read_u32(&aq_classic_area_takers[i]) == top)
			return true;
	return false;
}
