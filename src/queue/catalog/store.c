/*-------------------------------------------------------------------------
 *
 * store.c
 *	  The list of stores, and a format that both use in their rows.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "queue/catalog/catalog_private.h"

static const AqStore *stores[3];

void
aq_store_register(const AqStore *store)
{
	for (int i = 0; i < lengthof(stores); i++)
		if (stores[i] == NULL)
		{
			stores[i] = store;
			return;
		}
	elog(FATAL, "too many stores of messages");
}

/* NULL: not registered. */
const AqStore *
aq_store_find(char kind)
{
	for (int i = 0; i < lengthof(stores); i++)
		if (stores[i] != NULL && stores[i]->kind == kind)
			return stores[i];
	return NULL;
}

const AqStore *
aq_store_of(char kind)
{
	const AqStore *store = aq_store_find(kind);

	if (store == NULL)
		elog(ERROR, "no store of kind '%c'", kind);
	return store;
}

/* A message's consumers as a column of its row. */
bytea *
aq_store_targets_to_bytes(const Bitmapset *targets)
{
	int			last = -1,
				position = -1;
	bytea	   *bytes;
	uint8	   *bits;

	while ((position = bms_next_member(targets, position)) >= 0)
		last = position;
	bytes = palloc0(VARHDRSZ + last / 8 + 1);
	SET_VARSIZE(bytes, VARHDRSZ + last / 8 + 1);
	bits = (uint8 *) VARDATA(bytes);
	position = -1;
	while ((position = bms_next_member(targets, position)) >= 0)
		bits[position / 8] |= 1 << (position % 8);
	return bytes;
}
