/*-------------------------------------------------------------------------
 *
 * pending.c
 *	  The definitions that the transaction has changed.
 *
 * A change is listed here until the transaction, or the subtransaction that
 * made it, has ended. announce.c then carries out its effects.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "queue/catalog/catalog_private.h"

#include "access/xact.h"

/* in TopMemoryContext, grown as needed; emptied at the transaction's end */
static AqChange *changes;
static int	nchanges,
			nrevoked,			/* entries at the beginning that are left for the phase "released" */
			changes_size;
static bool ddl;				/* a definition was changed */

static void
remember_change(int32 id, int kind)
{
	changes = aq_array_room(changes, &changes_size, nchanges + 1, sizeof(*changes));
	changes[nchanges].id = id;
	changes[nchanges].kind = kind;
	changes[nchanges].subid = GetCurrentSubTransactionId();
	nchanges++;
}

void
aq_pending_created(int32 id)
{
	remember_change(id, AQ_CHANGE_CREATED);
}

void
aq_pending_dropped(int32 id)
{
	remember_change(id, AQ_CHANGE_DROPPED);
}

void
aq_pending_altered(int32 id)
{
	remember_change(id, AQ_CHANGE_ALTERED);
}

void
aq_pending_changed(int32 id)
{
	remember_change(id, AQ_CHANGE_CHANGED);
}

void
aq_pending_consumer_removed(int32 id, int position, int64 number)
{
	remember_change(id, AQ_CHANGE_UNSUBSCRIBED);
	changes[nchanges - 1].position = position;
	changes[nchanges - 1].number = number;
}

/*
 * A recipient was added: sessions that wait for an unknown name check again.
 */
void
aq_pending_recipient(int32 id)
{
	remember_change(id, AQ_CHANGE_RECIPIENT);
}

/* Positions of recipients, which are closing in shared memory, were freed. */
void
aq_pending_released(int32 id)
{
	remember_change(id, AQ_CHANGE_RELEASED);
}

void
aq_pending_converted(int32 id)
{
	remember_change(id, AQ_CHANGE_CONVERTED);
}

void
aq_pending_table_left(int32 id)
{
	remember_change(id, AQ_CHANGE_TABLE_LEFT);
}

/*
 * Until the end of the transaction, the session is counted as stopping the
 * queue: see stop.c.
 */
void
aq_pending_stopping(int32 id, int bits)
{
	remember_change(id, AQ_CHANGE_STOPPING);
	changes[nchanges - 1].position = bits;
}

/* A privilege on the queue was revoked: sessions that wait by it check again. */
void
aq_pending_revoked(int32 id)
{
	remember_change(id, AQ_CHANGE_REVOKED);
}

static bool
has_change(int32 id, int kind)
{
	for (int i = 0; i < nchanges; i++)
		if (changes[i].id == id && (int) changes[i].kind == kind)
			return true;
	return false;
}

/* Has the transaction changed anything of the queue? */
bool
aq_pending_has(int32 id)
{
	for (int i = 0; i < nchanges; i++)
		if (changes[i].id == id)
			return true;
	return false;
}

bool
aq_pending_is_dropped(int32 id)
{
	return has_change(id, AQ_CHANGE_DROPPED);
}

bool
aq_pending_is_created(int32 id)
{
	return has_change(id, AQ_CHANGE_CREATED);
}

bool
aq_pending_is_converted(int32 id)
{
	return has_change(id, AQ_CHANGE_CONVERTED);
}

void
aq_pending_set_ddl(void)
{
	ddl = true;
}

bool
aq_pending_has_ddl(void)
{
	return ddl;
}

/* Returns the list, which is valid until the next change. */
int
aq_pending_list(const AqChange **list)
{
	*list = changes;
	return nchanges;
}

/*
 * Called at the end of a subtransaction; calls undo for each change that is
 * rolled back.  Neither raises errors.
 */
void
aq_pending_subxact_end(bool commit, SubTransactionId subid, SubTransactionId parent,
					   void (*undo) (const AqChange *change))
{
	int			kept = 0;

	for (int i = 0; i < nchanges; i++)
	{
		if (changes[i].subid == subid)
		{
			if (!commit)
			{
				undo(&changes[i]);
				continue;
			}
			changes[i].subid = parent;
		}
		changes[kept++] = changes[i];
	}
	nchanges = kept;
}

/*
 * Called at the end of the transaction; returns whether it has changed a
 * definition.
 */
bool
aq_pending_end(bool commit)
{
	bool		had_ddl = ddl;

	nrevoked = 0;
	for (int i = 0; commit && i < nchanges; i++)
		if (changes[i].kind == AQ_CHANGE_REVOKED)
			changes[nrevoked++] = changes[i];
	nchanges = 0;
	ddl = false;
	return had_ddl;
}

/* The changes of kind AQ_CHANGE_REVOKED of the transaction that has just ended, once. */
int
aq_pending_take_revoked(const AqChange **list)
{
	int			n = nrevoked;

	nrevoked = 0;
	*list = changes;
	return n;
}
