/*-------------------------------------------------------------------------
 *
 * body_places.c
 *	  Where the chunks of large messages are: what a session remembers of its
 *	  scans of message tables.
 *
 * A scan remembers the chunks of all messages of the table, so that n messages are
 * read with one scan.  The chunks of a message are committed together, and none is
 * added later.  So if one snapshot shows the message, it shows all of its chunks:
 * after a scan of the whole table with this snapshot the message is "whole", and a
 * chunk that was not found does not exist.
 *
 * For a message that is not known yet, the scan continues where the previous one
 * ended, as far as that is enough.  It need not be: rows are also inserted into
 * earlier blocks, and what was not committed yet was passed by.
 *
 * What is remembered is checked against the row when it is read.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "shard/tables/tables_private.h"

#include "access/heapam.h"
#include "access/tableam.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"

/* tables that a session remembers: a queue has some streams, and messages come from them in turn */
#define MAPS 8

/* rows of a table that are remembered, beside those of the message that is read */
#define MAX_PLACES 32768

/* instead of a chunk's number: the message itself, which sorts before its chunks */
#define MESSAGE (-1)

typedef struct Place
{
	uint16		slot;			/* of the message in its partition */
	bool		whole;			/* MESSAGE: all its chunks are known */
	int32		number;			/* of the chunk, or MESSAGE */
	ItemPointerData tid;
} Place;

/* What is remembered of a partition's table. */
typedef struct Map
{
	Oid			table;			/* InvalidOid: unused */
	uint32		file;
	int64		partition;		/* its number: tables are used again */
	uint64		used;			/* when, in calls */
	uint64		completions;	/* transactions that had ended before the last whole scan; 0: unknown */
	BlockNumber blocks;			/* scans have read these */
	int			n;
	int			size;
	Place	   *places;			/* in the order of slots and numbers */
} Map;

static Map	maps[MAPS];
static uint64 calls;

/* --- the places ------------------------------------------------------------------------------ */

static int
compare(const void *a, const void *b)
{
	const Place *one = a;
	const Place *other = b;

	if (one->slot != other->slot)
		return one->slot < other->slot ? -1 : 1;
	return one->number < other->number ? -1 : one->number > other->number;
}

/* Among the first n places, which are sorted; NULL: it is not there. */
static Place *
find(const Map *map, int n, int64 ordinal, int32 number)
{
	Place		key = {.slot = ordinal % PARTITION_SLOTS, .number = number};

	return n == 0 ? NULL : bsearch(&key, map->places, n, sizeof(Place), compare);
}

static void
add(Map *map, int64 ordinal, int32 number, const ItemPointerData *tid)
{
	if (map->n == map->size)
	{
		int			size = Max(map->size * 2, 64);

		map->places = map->places == NULL ? MemoryContextAlloc(TopMemoryContext, size * sizeof(Place))
			: repalloc(map->places, size * sizeof(Place));
		map->size = size;
	}
	map->places[map->n++] = (Place) {.slot = ordinal % PARTITION_SLOTS, .number = number, .tid = *tid};
}

/* The map of the table, or else the one that was used least recently, made empty. */
static Map *
get_map(Relation rel, int64 partition)
{
	Map		   *map = &maps[0];

	for (int i = 0; i < MAPS; i++)
	{
		if (maps[i].table == RelationGetRelid(rel) && maps[i].file == aq_relation_file(rel) &&
			maps[i].partition == partition)
		{
			maps[i].used = ++calls;
			return &maps[i];
		}
		if (maps[i].table == InvalidOid ? map->table != InvalidOid : map->table != InvalidOid && maps[i].used < map->used)
			map = &maps[i];
	}
	map->table = RelationGetRelid(rel);
	map->file = aq_relation_file(rel);
	map->partition = partition;
	map->used = ++calls;
	map->completions = 0;
	map->blocks = 0;
	map->n = 0;
	return map;
}

/* --- scans ------------------------------------------------------------------------------------ */

/* Reads the table's blocks from this one on.  Returns false if there were too many rows of other messages than this one. */
static bool
read_blocks(Map *map, Relation rel, Snapshot snapshot, BlockNumber from, BlockNumber blocks, int64 ordinal)
{
	TableScanDesc scan;
	HeapTuple	tuple;
	int			known = map->n;
	bool		all = true;

	/* in the order of the blocks */
	scan = table_beginscan_strat(rel, snapshot, 0, NULL, true, false);
	heap_setscanlimits(scan, from, blocks - from);
	while ((tuple = heap_getnext(scan, ForwardScanDirection)) != NULL)
	{
		TupleDesc	desc = RelationGetDescr(rel);
		bool		isnull;
		int64		row = DatumGetInt64(heap_getattr(tuple, MSG_ORDINAL + 1, desc, &isnull));
		int64		of = row < 0 ? ~row : row;
		int32		number = row < 0 ? DatumGetInt64(heap_getattr(tuple, MSG_SESSION + 1, desc, &isnull)) : MESSAGE;

		CHECK_FOR_INTERRUPTS();
		if (of / PARTITION_SLOTS != map->partition || find(map, known, of, number) != NULL)
			continue;
		if (of == ordinal || map->n < MAX_PLACES)
			add(map, of, number, &tuple->t_self);
		else
			all = false;
	}
	table_endscan(scan);
	qsort(map->places, map->n, sizeof(Place), compare);
	return all;
}

/*
 * Rows of this transaction are all visible, also those of the current command.
 * *completions: the number of transactions that had ended.
 */
static Snapshot
latest_snapshot(uint64 *completions)
{
	Snapshot	latest,
				snapshot;

	/* the first one can be that of the whole transaction, which is not to be changed */
	if (!FirstSnapshotSet)
		(void) GetTransactionSnapshot();
	latest = GetLatestSnapshot();
	/* a copy does not have it */
	*completions = latest->snapXactCompletionCount;
	snapshot = RegisterSnapshot(latest);
	snapshot->curcid = InvalidCommandId;
	return snapshot;
}

/* Reads what was added to the table since it was read. */
static void
read_more(Map *map, Relation rel, Snapshot snapshot, int64 ordinal)
{
	BlockNumber blocks = RelationGetNumberOfBlocks(rel);
	Oid			table = map->table;

	if (map->blocks == 0 || blocks < map->blocks)
		return;
	map->table = InvalidOid;	/* in case of an error */
	(void) read_blocks(map, rel, snapshot, map->blocks - 1, blocks, ordinal);
	map->blocks = blocks;
	map->table = table;
}

static void
read_whole(Map *map, Relation rel, Snapshot snapshot, uint64 completions, int64 ordinal)
{
	BlockNumber blocks = RelationGetNumberOfBlocks(rel);
	Oid			table = map->table;
	bool		all;

	map->table = InvalidOid;	/* in case of an error */
	map->n = 0;
	all = blocks == 0 || read_blocks(map, rel, snapshot, 0, blocks, ordinal);
	for (int i = 0; i < map->n; i++)
		map->places[i].whole = map->places[i].number == MESSAGE &&
			(all || map->places[i].slot == ordinal % PARTITION_SLOTS);
	map->completions = completions;
	map->blocks = blocks;
	map->table = table;
}

/* --- reading -------------------------------------------------------------------------------- */

/* A copy of column "targets" of the row at the place; NULL: it is null, or there is no such row (now). */
static bytea *
fetch(Relation rel, const Place *place, int64 ordinal)
{
	HeapTupleData tuple;
	Buffer		buffer;
	bytea	   *data = NULL;
	bool		isnull;
	TupleDesc	desc = RelationGetDescr(rel);
	bool		chunk = place->number != MESSAGE;

	/* the table may have been truncated */
	if (ItemPointerGetBlockNumber(&place->tid) >= RelationGetNumberOfBlocks(rel))
		return NULL;
	tuple.t_self = place->tid;
	if (!heap_fetch(rel, SnapshotSelf, &tuple, &buffer, false))
		return NULL;
	if (DatumGetInt64(heap_getattr(&tuple, MSG_ORDINAL + 1, desc, &isnull)) == (chunk ? ~ordinal : ordinal) &&
		(!chunk || DatumGetInt64(heap_getattr(&tuple, MSG_SESSION + 1, desc, &isnull)) == place->number))
	{
		Datum		value = heap_getattr(&tuple, MSG_TARGETS + 1, desc, &isnull);

		if (!isnull)
			data = DatumGetByteaPCopy(value);
	}
	ReleaseBuffer(buffer);
	return data;
}

/*
 * Returns the chunk, or NULL; sets *known if that is certain.  The message must be
 * known, too: its row says for which consumers it is.
 */
static bytea *
look_up(const Map *map, Relation rel, int64 ordinal, int32 number, bool *known)
{
	const Place *message = find(map, map->n, ordinal, MESSAGE);
	const Place *place = find(map, map->n, ordinal, number);
	bytea	   *data = message == NULL || place == NULL ? NULL : fetch(rel, place, ordinal);

	*known = data != NULL || (message != NULL && message->whole && place == NULL);
	return data;
}

/*
 * Returns a chunk of the message, or NULL if there is none.  The rows are read as
 * they are now: a message that was dequeued is often not in the transaction's
 * snapshot.
 */
bytea *
aq_body_places_read(Relation rel, int64 ordinal, int32 number)
{
	Map		   *map = get_map(rel, ordinal / PARTITION_SLOTS);
	bool		known;
	bytea	   *data = look_up(map, rel, ordinal, number, &known);
	uint64		completions;
	Snapshot	snapshot;

	if (known)
		return data;
	snapshot = latest_snapshot(&completions);
	/* otherwise nothing was committed since the whole table was read */
	if (map->completions == 0 || map->completions != completions)
	{
		read_more(map, rel, snapshot, ordinal);
		data = look_up(map, rel, ordinal, number, &known);
		if (!known)
		{
			const Place *place;

			read_whole(map, rel, snapshot, completions, ordinal);
			place = find(map, map->n, ordinal, number);
			data = place == NULL ? NULL : fetch(rel, place, ordinal);
		}
	}
	UnregisterSnapshot(snapshot);
	return data;
}

/* The consumers of a message whose chunk was just read; NULL: none is known. */
bytea *
aq_body_places_targets(Relation rel, int64 ordinal)
{
	Map		   *map = get_map(rel, ordinal / PARTITION_SLOTS);
	const Place *message = find(map, map->n, ordinal, MESSAGE);

	return message == NULL ? NULL : fetch(rel, message, ordinal);
}

/* This transaction adds a chunk to the message. */
void
aq_body_places_written(Oid table, int64 ordinal)
{
	for (int i = 0; i < MAPS; i++)
		if (maps[i].table == table && maps[i].partition == ordinal / PARTITION_SLOTS)
		{
			Place	   *message = find(&maps[i], maps[i].n, ordinal, MESSAGE);

			maps[i].completions = 0;
			if (message != NULL)
				message->whole = false;
		}
}
