/*-------------------------------------------------------------------------
 *
 * takers.c
 *	  Sessions that announce their rows after a rollback.
 *
 * A session that takes rows announces them if its transaction rolls back: see
 * ranges.c.  Its entry is the xid of its transaction, while that runs.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "classic/classic_private.h"

static bool announces;			/* the entry of this session is set */

/*
 * From now on, a rollback announces the rows that the transaction has taken:
 * see ranges.c.
 */
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

/*
 * Does xid, which is in progress, belong to a session that announces its rows
 * after a rollback?
 */
bool
aq_takers_announce(TransactionId xid)
{
	TransactionId top = aq_classic_doubts_top(xid);

	for (int i = 0; i < aq_session_slots(); i++)
		if (pg_atomic_read_u32(&aq_classic_area_takers[i]) == top)
			return true;
	return false;
}
