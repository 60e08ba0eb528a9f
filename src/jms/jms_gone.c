/*-------------------------------------------------------------------------
 *
 * jms_gone.c
 *	  Temporary destinations of the Jakarta Messaging provider that have ended.
 *
 * The temporary destinations of a connection share a queue of the server; the header
 * "destination" of a message tells which one it is for.  The connection claims each
 * of them, as it does client ids, by an advisory lock: so it ends with the
 * connection, and costs no row.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "jms/jms_private.h"

#include "catalog/pg_collation.h"
#include "miscadmin.h"
#include "storage/lock.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"

/* the claims of the provider, see KEY in jms/.../sql/Names.java */
#define CLAIM "pgaq.jms:temporary:"

/* how the number of a destination begins that is claimed, see jms/.../session/Temporaries.java */
#define CLAIMED "/0"

/* how names of temporary queues of the server and addresses of temporary destinations begin */
#define TEMPORARY_QUEUE "temporary_"
#define TEMPORARY_ADDRESS "temporary-"

static bool
is_claimed(const char *name)
{
	text	   *claim = cstring_to_text(psprintf(CLAIM "%s", name));
	uint64		key = DatumGetUInt64(DirectFunctionCall2Coll(hashtextextended, C_COLLATION_OID,
															 PointerGetDatum(claim), Int64GetDatum(0)));
	LOCKTAG		tag;

	SET_LOCKTAG_ADVISORY(tag, MyDatabaseId, (uint32) (key >> 32), (uint32) key, 1);
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
	return strstr(name, CLAIMED) != NULL ? !is_claimed(name) : aq_catalog_get_by_name(queue) == NULL;
}
