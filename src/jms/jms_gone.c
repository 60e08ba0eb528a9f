/*-------------------------------------------------------------------------
 *
 * jms_gone.c
 *	  Temporary destinations of the Jakarta Messaging provider that have ended.
 *
 * The temporary destinations of a connection share a queue of the server; the header
 * "destination" of a message tells which one it is for.  The connection claims each
 * of them by a lock of its session: so the claim ends with the connection, and costs
 * no row.  The lock is an advisory lock of a class that SQL cannot name, and only the
 * session that the queue belongs to gets it: no other session can make a destination
 * look alive.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "jms/jms_private.h"

#include "catalog/pg_collation.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "storage/lock.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"

/* the class of the locks; those of pg_advisory_lock have 1 and 2 */
#define CLAIM_CLASS 0x6171

/* what stands between the queue and the number of a destination that is claimed; others have no 0 */
#define CLAIMED "/0"

/* the most claims of a call */
#define CLAIMS_MOST 100

/* how names of temporary queues of the server and addresses of temporary destinations begin */
#define TEMPORARY_QUEUE "temporary_"
#define TEMPORARY_ADDRESS "temporary-"

static LOCKTAG
claim_tag(Datum name)
{
	uint64		key = DatumGetUInt64(DirectFunctionCall2Coll(hashtextextended, C_COLLATION_OID,
															 name, Int64GetDatum(0)));
	LOCKTAG		tag;

	SET_LOCKTAG_ADVISORY(tag, MyDatabaseId, (uint32) (key >> 32), (uint32) key, CLAIM_CLASS);
	return tag;
}

static bool
is_claimed(const char *name)
{
	LOCKTAG		tag = claim_tag(CStringGetTextDatum(name));

	if (aq_compat_holds_lock(&tag, ExclusiveLock))
		return true;
	if (LockAcquire(&tag, ShareLock, false, true) == LOCKACQUIRE_NOT_AVAIL)
		return true;
	LockRelease(&tag, ShareLock, false);
	return false;
}

/* The name of the temporary destination in the headers; NULL: the message has no destination, or one that is not temporary. */
static const char *
temporary_name(const Jsonb *headers)
{
	JsonbValue	found;
	char	   *address;
	char	   *name;

	if (getKeyJsonValueFromContainer(unconstify(JsonbContainer *, &headers->root), "destination", strlen("destination"), &found) == NULL ||
		found.type != jbvString)
		return NULL;
	address = pnstrdup(found.val.string.val, found.val.string.len);
	name = strchr(address, ':');
	return name == NULL || strncmp(address, TEMPORARY_ADDRESS, strlen(TEMPORARY_ADDRESS)) != 0 ? NULL : name + 1;
}

/*
 * Is the message for a temporary destination that has ended?  One that is not claimed
 * ends with its queue.
 */
bool
aq_jms_gone(const char *queue, const Jsonb *headers)
{
	const char *name;

	if (headers == NULL || strncmp(queue, TEMPORARY_QUEUE, strlen(TEMPORARY_QUEUE)) != 0)
		return false;
	name = temporary_name(headers);
	if (name == NULL)
		return false;
	return aq_catalog_get_by_name(queue) == NULL || (strstr(name, CLAIMED) != NULL && !is_claimed(name));
}

/*
 * The locks of the transaction first: if the server's table of locks is full, or the
 * call is canceled, they go with it.  Those of the session then find room.
 */
static void
claim_all(const Datum *names, int count)
{
	for (int i = 0; i < count; i++)
	{
		LOCKTAG		tag = claim_tag(names[i]);

		CHECK_FOR_INTERRUPTS();
		(void) LockAcquire(&tag, ExclusiveLock, false, false);
	}
	for (int i = 0; i < count; i++)
	{
		LOCKTAG		tag = claim_tag(names[i]);

		(void) LockAcquire(&tag, ExclusiveLock, true, false);
		LockRelease(&tag, ExclusiveLock, false);
	}
}

/* aq_jms.claim(queue_name, first, count) */
PG_FUNCTION_INFO_V1(aq_jms_gone_claim);
Datum
aq_jms_gone_claim(PG_FUNCTION_ARGS)
{
	char	   *name = aq_args_name(fcinfo, 0, "queue_name");
	AqQueue    *queue = aq_catalog_get_by_name(name);
	int			count;
	Datum	   *names;

	aq_args_require(fcinfo, 1, "first");
	aq_args_require(fcinfo, 2, "count");
	count = PG_GETARG_INT32(2);
	if (count < 0 || count > CLAIMS_MOST)
		ereport(ERROR,
				aq_error(AQ_ERR_OPTION_INVALID, "\"count\" must be between 0 and %d", CLAIMS_MOST));
	if (queue == NULL || !aq_temporary_is_own(queue->id))
		ereport(ERROR,
				aq_error(AQ_ERR_QUEUE_UNDEFINED, "temporary queue \"%s\" does not exist in this session", name));
	names = palloc(count * sizeof(Datum) + 1);
	for (int i = 0; i < count; i++)
		names[i] = CStringGetTextDatum(psprintf("%s" CLAIMED INT64_FORMAT, name, PG_GETARG_INT64(1) + i));
	claim_all(names, count);
	PG_RETURN_ARRAYTYPE_P(construct_array(names, count, TEXTOID, -1, false, TYPALIGN_INT));
}

/* aq_jms.unclaim(name) */
PG_FUNCTION_INFO_V1(aq_jms_gone_unclaim);
Datum
aq_jms_gone_unclaim(PG_FUNCTION_ARGS)
{
	LOCKTAG		tag;

	aq_args_require(fcinfo, 0, "name");
	tag = claim_tag(PG_GETARG_DATUM(0));
	if (aq_compat_holds_lock(&tag, ExclusiveLock))
		LockRelease(&tag, ExclusiveLock, true);
	PG_RETURN_VOID();
}
