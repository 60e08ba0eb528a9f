/*-------------------------------------------------------------------------
 *
 * table_index.c
 *	  The indexes of a queue table: lookup, and insertion of entries.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "classic/classic_private.h"

#include "catalog/index.h"
#include "executor/executor.h"

TableIndexKind
aq_table_index_kind(Relation index)
{
	const int2vector *columns = &index->rd_index->indkey;

	if (columns->values[0] == COL_ID + 1 && columns->dim1 == 1)
		return INDEX_ID;
	if (columns->values[0] == COL_QUEUE + 1 && columns->dim1 == 5)
		return INDEX_ORDER;
	if (columns->values[0] == COL_QUEUE + 1 && columns->dim1 == 2)
		return INDEX_TIME;
	return INDEX_OTHER;
}

/* Opens the table's index that begins with these columns. */
Relation
aq_table_index_open(Relation rel, TableIndexKind kind, LOCKMODE mode)
{
	ListCell   *lc;

	foreach(lc, RelationGetIndexList(rel))
	{
		Relation	index = index_open(lfirst_oid(lc), mode);

		if (aq_table_index_kind(index) == kind)
			return index;
		index_close(index, mode);
	}
	elog(ERROR, "an index of table \"%s\" is missing", RelationGetRelationName(rel));
}

Relation
aq_table_index_open_time(Relation rel)
{
	return aq_table_index_open(rel, INDEX_TIME, AccessShareLock);
}

/*
 * Does the row belong in the index?  Evaluates the predicates that
 * make_indexes() has defined.
 */
static bool
belongs(TableIndexKind kind, TupleTableSlot *slot)
{
	switch (kind)
	{
		case INDEX_ORDER:
			return DatumGetInt16(slot->tts_values[COL_STATE]) != STATE_PROCESSED;
		case INDEX_ID:
			return DatumGetBool(slot->tts_values[COL_ODD]);
		case INDEX_TIME:
			return !slot->tts_isnull[COL_NEXT_AT];
		case INDEX_OTHER:
			break;
	}
	return false;
}

/* For an index that a user has added, use the executor's functions. */
static void
insert_into_other(Relation rel, Relation index, TupleTableSlot *slot)
{
	IndexInfo  *info = BuildIndexInfo(index);
	EState	   *estate = CreateExecutorState();
	ExprContext *context = GetPerTupleExprContext(estate);
	Datum		values[INDEX_MAX_KEYS];
	bool		nulls[INDEX_MAX_KEYS];

	context->ecxt_scantuple = slot;
	if (info->ii_Predicate == NIL || ExecQual(ExecPrepareQual(info->ii_Predicate, estate), context))
	{
		FormIndexDatum(info, slot, estate, values, nulls);
		index_insert(index, values, nulls, &slot->tts_tid, rel,
					 info->ii_Unique ? UNIQUE_CHECK_YES : UNIQUE_CHECK_NO, false, info);
	}
	FreeExecutorState(estate);
}

static void
insert_into_index(Relation rel, Relation index, TupleTableSlot *slot, IndexInfo *info)
{
	TableIndexKind kind = aq_table_index_kind(index);
	const int2vector *columns = &index->rd_index->indkey;
	Datum		values[5];
	bool		nulls[5];

	if (kind == INDEX_OTHER)
	{
		insert_into_other(rel, index, slot);
		return;
	}
	if (!belongs(kind, slot))
		return;
	for (int i = 0; i < columns->dim1; i++)
	{
		values[i] = slot->tts_values[columns->values[i] - 1];
		nulls[i] = slot->tts_isnull[columns->values[i] - 1];
	}
	index_insert(index, values, nulls, &slot->tts_tid, rel,
				 kind == INDEX_ID ? UNIQUE_CHECK_YES : UNIQUE_CHECK_NO, false, info);
}

void
aq_table_index_insert(Relation rel, TupleTableSlot **slots, int n)
{
	IndexInfo  *info = makeNode(IndexInfo);
	ListCell   *lc;

	foreach(lc, RelationGetIndexList(rel))
	{
		Relation	index = index_open(lfirst_oid(lc), RowExclusiveLock);

		for (int i = 0; i < n; i++)
		{
			slot_getsomeattrs(slots[i], Min(RelationGetDescr(rel)->natts, COL_ID + 1));
			insert_into_index(rel, index, slots[i], info);
		}
		index_close(index, NoLock);
	}
	pfree(info);
}
