/*-------------------------------------------------------------------------
 *
 * wakeup.c
 *	  First come, first served lists of waiting sessions; see wakeup.h.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "sync/waits/wakeup.h"

void
aq_wakeup_pool_init(AqWaitPool *pool, AqWaitEntry *entries, uint32 nentries)
{
	pool->entries = entries;
	pool->nentries = nentries;
	pool->free = (nentries > 0) ? 0 : AQ_WAKEUP_NONE;
	for (uint32 i = 0; i < nentries; i++)
	{
		entries[i].next = (i + 1 < nentries) ? i + 1 : AQ_WAKEUP_NONE;
		entries[i].prev = AQ_WAKEUP_NONE;
		entries[i].session = -1;
		entries[i].list = AQ_WAKEUP_NONE;
		entries[i].state = AQ_WAKEUP_FREE;
	}
}

void
aq_wakeup_list_init(AqWaitList *list)
{
	list->head = AQ_WAKEUP_NONE;
	list->tail = AQ_WAKEUP_NONE;
	list->waiting = 0;
}

static void
unlink_entry(AqWaitPool *pool, AqWaitList *list, AqWaitEntry *entry)
{
	if (entry->prev != AQ_WAKEUP_NONE)
		pool->entries[entry->prev].next = entry->next;
	else
		list->head = entry->next;
	if (entry->next != AQ_WAKEUP_NONE)
		pool->entries[entry->next].prev = entry->prev;
	else
		list->tail = entry->prev;
	Assert(list->waiting > 0);
	list->waiting--;
}

uint32
aq_wakeup_add(AqWaitPool *pool, AqWaitList *list, uint32 list_number, int32 session, uint32 items)
{
	uint32		index = pool->free;
	AqWaitEntry *entry;

	if (index == AQ_WAKEUP_NONE)
		return AQ_WAKEUP_NONE;
	entry = &pool->entries[index];
	Assert(entry->state == AQ_WAKEUP_FREE);
	pool->free = entry->next;

	entry->session = session;
	entry->list = list_number;
	entry->items = items;
	entry->key = AQ_WAKEUP_ANY_KEY;
	entry->state = AQ_WAKEUP_WAITING;
	entry->next = AQ_WAKEUP_NONE;
	entry->prev = list->tail;
	if (list->tail != AQ_WAKEUP_NONE)
		pool->entries[list->tail].next = index;
	else
		list->head = index;
	list->tail = index;
	list->waiting++;
	return index;
}

uint32
aq_wakeup_remove(AqWaitPool *pool, AqWaitList *list, uint32 index)
{
	AqWaitEntry *entry;
	uint32		woken;

	Assert(index < pool->nentries);
	entry = &pool->entries[index];
	Assert(entry->state != AQ_WAKEUP_FREE);
	woken = entry->state == AQ_WAKEUP_WOKEN ? entry->items : 0;
	if (entry->state == AQ_WAKEUP_WAITING)
		unlink_entry(pool, list, entry);

	entry->state = AQ_WAKEUP_FREE;
	entry->session = -1;
	entry->list = AQ_WAKEUP_NONE;
	entry->prev = AQ_WAKEUP_NONE;
	entry->next = pool->free;
	pool->free = index;
	return woken;
}

int
aq_wakeup_pop(AqWaitPool *pool, AqWaitList *list, int n, uint32 *items, int32 *sessions)
{
	int			popped = 0;

	while (popped < n && list->head != AQ_WAKEUP_NONE && (items == NULL || *items > 0))
	{
		AqWaitEntry *entry = &pool->entries[list->head];

		Assert(entry->state == AQ_WAKEUP_WAITING);
		unlink_entry(pool, list, entry);
		entry->state = AQ_WAKEUP_WOKEN;
		entry->items = items != NULL ? Min(entry->items, *items) : 1;
		if (items != NULL)
			*items -= entry->items;
		sessions[popped++] = entry->session;
	}
	return popped;
}

int
aq_wakeup_pop_key(AqWaitPool *pool, AqWaitList *list, int n, uint32 key, int32 *sessions)
{
	int			popped = 0;
	uint32		next;

	for (uint32 i = list->head; i != AQ_WAKEUP_NONE && popped < n; i = next)
	{
		AqWaitEntry *entry = &pool->entries[i];

		next = entry->next;
		if (key != entry->key && key != AQ_WAKEUP_ANY_KEY && entry->key != AQ_WAKEUP_ANY_KEY)
			continue;
		Assert(entry->state == AQ_WAKEUP_WAITING);
		unlink_entry(pool, list, entry);
		entry->state = AQ_WAKEUP_WOKEN;
		entry->items = 1;
		sessions[popped++] = entry->session;
	}
	return popped;
}
