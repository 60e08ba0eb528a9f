/*-------------------------------------------------------------------------
 *
 * cursor.c
 *	  Cursors over a dequeue that was rolled back to a savepoint.
 *
 * A cursor can be opened before a savepoint, and first fetched from after it: then it
 * has dequeued in the subtransaction.  ROLLBACK TO the savepoint makes the messages
 * ready again for other sessions, but PostgreSQL keeps the cursor, with the rows that
 * were not fetched yet.  So pgaq makes it fail.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "queue/memory/memory_private.h"

#include "tcop/pquery.h"
#include "utils/memutils.h"
#include "utils/portal.h"

typedef struct Cursor
{
	char	   *name;
	SubTransactionId created;
	SubTransactionId used;		/* in which it has dequeued; a younger one than created */
} Cursor;

/* of the current transaction, in its memory */
static List *cursors;

/* The statement that runs has dequeued. */
void
aq_cursor_note(void)
{
	Portal		portal = ActivePortal;
	MemoryContext old;
	Cursor	   *cursor;

	if (portal == NULL || portal->createSubid == portal->activeSubid)
		return;
	old = MemoryContextSwitchTo(TopTransactionContext);
	cursor = palloc(sizeof(Cursor));
	*cursor = (Cursor) {pstrdup(portal->name), portal->createSubid, portal->activeSubid};
	cursors = lappend(cursors, cursor);
	MemoryContextSwitchTo(old);
}

void
aq_cursor_subcommit(SubTransactionId subid, SubTransactionId parent)
{
	ListCell   *lc;

	foreach(lc, cursors)
	{
		Cursor	   *cursor = lfirst(lc);

		if (cursor->created == subid)
			cursor->created = parent;
		if (cursor->used == subid)
			cursor->used = parent;
	}
}

/* Those that were opened in it are gone. */
void
aq_cursor_subabort(SubTransactionId subid)
{
	ListCell   *lc;

	foreach(lc, cursors)
	{
		Cursor	   *cursor = lfirst(lc);
		Portal		portal = cursor->used == subid ? GetPortalByName(cursor->name) : NULL;

		if (PortalIsValid(portal) && portal->createSubid == cursor->created && portal->status == PORTAL_READY)
			MarkPortalFailed(portal);
	}
}

/* The transaction has ended, and with it the memory of the list. */
void
aq_cursor_forget(void)
{
	cursors = NIL;
}
