/*-------------------------------------------------------------------------
 *
 * notified.c
 *	  The messages that registrations were notified of, and that are still in
 *	  their queues.
 *
 * A message is new for a registration unless it is here with the same number of
 * failed attempts.  Those of reliable registrations are also rows of
 * aq_internal.notified, written in the transaction of the call; a message that
 * the procedure has dequeued needs none.  A complete scan of a queue removes
 * those that it has not found.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "notify/notify_private.h"

#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "utils/array.h"
#include "utils/hsearch.h"

typedef struct Key
{
	int64		registration;
	pg_uuid_t	id;
} Key;

typedef struct Notified
{
	Key			key;
	int			attempts;
	bool		stored;			/* it has a row */
	uint32		scan;			/* the latest scan that has found it */
} Notified;

static HTAB *
table(AqNotified *set)
{
	if (set->messages == NULL)
	{
		HASHCTL		ctl = {.keysize = sizeof(Key), .entrysize = sizeof(Notified), .hcxt = set->context};

		set->messages = hash_create("pgaq notified messages", 256, &ctl,
									HASH_ELEM | HASH_BLOBS | (set->context != NULL ? HASH_CONTEXT : 0));
	}
	return set->messages;
}

static Notified *
look_up(AqNotified *set, const AqRegistration *registration, const pg_uuid_t *id, HASHACTION action)
{
	Key			key;

	memset(&key, 0, sizeof(key));
	key.registration = registration->id;
	key.id = *id;
	return hash_search(table(set), &key, action, NULL);
}

/* Reads what earlier notifiers have stored.  In a transaction. */
void
aq_notified_load(AqNotified *set, const AqRegistration *registration)
{
	for (int i = 0; i < set->nloaded; i++)
		if (set->loaded[i] == registration->id)
			return;
	/* one that is used for one call reads a registration once */
	if (set->context == NULL)
		set->loaded = aq_array_room(set->loaded, &set->loaded_size, set->nloaded + 1, sizeof(int64));
	aq_sql_run(psprintf("SELECT msgid, attempts FROM aq_internal.notified WHERE registration_id = " INT64_FORMAT, registration->id),
			   0, NULL, NULL, NULL, true);
	for (uint64 i = 0; i < SPI_processed; i++)
	{
		bool		isnull;
		Datum		id = SPI_getbinval(SPI_tuptable->vals[i], SPI_tuptable->tupdesc, 1, &isnull);
		Notified   *entry = look_up(set, registration, DatumGetUUIDP(id), HASH_ENTER);

		entry->attempts = DatumGetInt32(SPI_getbinval(SPI_tuptable->vals[i], SPI_tuptable->tupdesc, 2, &isnull));
		entry->stored = true;
		entry->scan = set->scan;
	}
	SPI_finish();
	if (set->context == NULL)
		set->loaded[set->nloaded++] = registration->id;
}

void
aq_notified_scan_begin(AqNotified *set)
{
	set->scan++;
}

/* Called for every message that a scan finds. */
bool
aq_notified_has(AqNotified *set, const AqRegistration *registration, const pg_uuid_t *id, int attempts)
{
	Notified   *entry = look_up(set, registration, id, HASH_FIND);

	if (entry == NULL)
		return false;
	entry->scan = set->scan;
	return entry->attempts == attempts;
}

/* The scan has found all messages.  In a transaction. */
void
aq_notified_scan_end(AqNotified *set, const AqRegistration *registration)
{
	HASH_SEQ_STATUS status;
	Notified   *entry;
	List	   *rows = NIL;
	ListCell   *lc;

	if (set->messages == NULL)
		return;
	hash_seq_init(&status, set->messages);
	while ((entry = hash_seq_search(&status)) != NULL)
	{
		if (entry->key.registration != registration->id || entry->scan == set->scan)
			continue;
		if (entry->stored)
		{
			pg_uuid_t  *id = palloc(sizeof(pg_uuid_t));

			*id = entry->key.id;
			rows = lappend(rows, id);
		}
		(void) hash_search(set->messages, &entry->key, HASH_REMOVE, NULL);
	}
	if (rows != NIL)
	{
		Datum	   *ids = palloc(list_length(rows) * sizeof(Datum));
		Oid			type = UUIDARRAYOID;
		Datum		array;
		int			n = 0;

		foreach(lc, rows)
			ids[n++] = UUIDPGetDatum((pg_uuid_t *) lfirst(lc));
		array = PointerGetDatum(construct_array(ids, n, UUIDOID, UUID_LEN, false, TYPALIGN_CHAR));
		aq_sql_change(psprintf("DELETE FROM aq_internal.notified WHERE registration_id = " INT64_FORMAT " AND msgid = ANY ($1)",
							   registration->id), 1, &type, &array, NULL);
	}
}

/* The message was notified; called when its transaction has committed. */
void
aq_notified_add(AqNotified *set, const AqRegistration *registration, const AqNews *news)
{
	Notified   *entry = look_up(set, registration, &news->id, HASH_ENTER);

	entry->attempts = news->attempts;
	entry->stored = registration->reliable;
	entry->scan = set->scan;
}

/* Stores it in the transaction of the call. */
void
aq_notified_store(const AqRegistration *registration, const AqNews *news)
{
	Oid			types[] = {INT8OID, UUIDOID, INT4OID};
	Datum		values[] = {Int64GetDatum(registration->id), UUIDPGetDatum(&news->id), Int32GetDatum(news->attempts)};

	/* the procedure may have ended the registration */
	aq_sql_change("INSERT INTO aq_internal.notified (registration_id, msgid, attempts) "
				  "SELECT registration_id, $2, $3 FROM aq_internal.registration WHERE registration_id = $1 "
				  "ON CONFLICT (registration_id, msgid) DO UPDATE SET attempts = excluded.attempts", 3, types, values, NULL);
}

/* Forgets those of registrations that have ended. */
void
aq_notified_keep_only(AqNotified *set, const List *registrations)
{
	HASH_SEQ_STATUS status;
	Notified   *entry;

	if (set->messages == NULL)
		return;
	hash_seq_init(&status, set->messages);
	while ((entry = hash_seq_search(&status)) != NULL)
	{
		const ListCell *lc;
		bool		keep = false;

		foreach(lc, registrations)
			keep |= ((const AqRegistration *) lfirst(lc))->id == entry->key.registration;
		if (!keep)
			(void) hash_search(set->messages, &entry->key, HASH_REMOVE, NULL);
	}
}

/* Is anything known that is not stored? */
bool
aq_notified_is_needed(AqNotified *set)
{
	HASH_SEQ_STATUS status;
	Notified   *entry;

	if (set->messages == NULL)
		return false;
	hash_seq_init(&status, set->messages);
	while ((entry = hash_seq_search(&status)) != NULL)
		if (!entry->stored)
		{
			hash_seq_term(&status);
			return true;
		}
	return false;
}
