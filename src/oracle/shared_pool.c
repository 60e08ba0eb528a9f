/*-------------------------------------------------------------------------
 *
 * shared_pool.c
 *	  Package dbms_shared_pool: marking an object as hot by its hash value.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "oracle/oracle_private.h"

#include "miscadmin.h"
#include "utils/builtins.h"

/* Release of a claim: unpins an object that was being read. */
static void
unpin(void *object, int64 unused)
{
	aq_object_unpin(object);
}

/*
 * Marks an object by its FULL_HASH_VALUE in sys."v$db_object_cache"; returns
 * false if this database has no such object.
 */
PG_FUNCTION_INFO_V1(aq_shared_pool_mark_hot_by_hash);
Datum
aq_shared_pool_mark_hot_by_hash(PG_FUNCTION_ARGS)
{
	AQ_TIMED(AQ_TIME_ADMIN);
	char	   *wanted = text_to_cstring(PG_GETARG_TEXT_PP(0));
	bool		found = false;

	aq_session_require_preload();
	for (int i = 1; i <= aq_handle_limit && !found; i++)
	{
		AqObject   *object = aq_handle_by_index(i);
		char		hash[AQ_FULL_HASH];

		aq_claim_reserve(1);
		if (!aq_object_pin_handle(object))
			continue;
		aq_claim_enter(unpin, object, 0);
		aq_cache_views_full_hash(object, hash);
		found = object->database == MyDatabaseId && pg_strcasecmp(hash, wanted) == 0;
		if (found && PG_GETARG_BOOL(1))
			aq_hot_mark(object);
		else if (found)
			aq_hot_unmark(object);
		aq_claim_end(unpin, object);
		aq_object_unpin(object);
	}
	PG_RETURN_BOOL(found);
}
