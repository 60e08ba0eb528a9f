/*-------------------------------------------------------------------------
 *
 * message_key.c
 *	  The key of a message: a text that says which messages belong together.
 *
 * Messages with the same key have an order, whichever sessions enqueue them,
 * because the key alone decides in which shard they are.  See KEYS.md.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "queue/calls/calls_private.h"

#include "access/detoast.h"
#include "common/hashfn.h"
#include "utils/builtins.h"
#include "utils/jsonb.h"

/* into which keys are hashed */
#define KEY_BUCKETS 1024

/* The key as it is stored, in memory of the caller; NULL: none. */
struct varlena *
aq_message_key_check(struct varlena *key)
{
	if (key == NULL)
		return NULL;
	if (!aq_version_has_keys())
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("version 0.1.0 of the extension \"pgaq\" has no keys of messages"),
				 errhint("Update it: ALTER EXTENSION pgaq UPDATE.")));
	key = pg_detoast_datum_packed(key);
	if (VARSIZE_ANY_EXHDR(key) > AQ_KEY_MAX_BYTES)
		ereport(ERROR,
				aq_error(AQ_ERR_OPTION_INVALID, "key is too long"),
				errdetail("It has %d bytes; the maximum is %d.", (int) VARSIZE_ANY_EXHDR(key), AQ_KEY_MAX_BYTES),
				errhint("Use a name or number of what the messages belong to, or a hash of it."));
	return key;
}

bool
aq_message_key_is(const struct varlena *key, const text *wanted)
{
	return key != NULL && VARSIZE_ANY_EXHDR(key) == VARSIZE_ANY_EXHDR(wanted) &&
		memcmp(VARDATA_ANY(key), VARDATA_ANY(wanted), VARSIZE_ANY_EXHDR(key)) == 0;
}

/*
 * The shard of the key's messages.  Keys are hashed into buckets, which do not
 * depend on the number of shards, and buckets are divided among the shards.
 * PostgreSQL never changes the function, because hash partitions depend on it.
 */
int
aq_message_key_shard(const struct varlena *key, int shards)
{
	uint64		hash = hash_bytes_extended((const unsigned char *) VARDATA_ANY(key), VARSIZE_ANY_EXHDR(key), 0);

	return (int) (hash % KEY_BUCKETS) % shards;
}

/* --- aq.jms_message ------------------------------------------------------------------- */

/* Its property JMSXGroupID and its key are the same, whichever a program gives. */

#define GROUP_ID "JMSXGroupID"

static JsonbValue *
group_of(Jsonb *properties)
{
	JsonbValue *value = NULL;

	if (JB_ROOT_IS_OBJECT(properties))
		value = getKeyJsonValueFromContainer(&properties->root, GROUP_ID, strlen(GROUP_ID), NULL);
	return value != NULL && value->type == jbvString ? value : NULL;
}

/* The group of the message; NULL: none. */
static struct varlena *
group_of_payload(Datum payload)
{
	Jsonb	   *properties = aq_properties_of_payload(payload);
	JsonbValue *group = properties != NULL ? group_of(properties) : NULL;

	return group == NULL ? NULL : (struct varlena *) cstring_to_text_with_len(group->val.string.val, group->val.string.len);
}

/* The properties with the key as the group; themselves, if they have it. */
Jsonb *
aq_message_key_into_properties(Jsonb *properties, const struct varlena *key)
{
	JsonbValue *group = properties != NULL ? group_of(properties) : NULL;
	const char *string = VARDATA_ANY(key);
	int			length = VARSIZE_ANY_EXHDR(key);

	if (group != NULL && group->val.string.len == length && memcmp(group->val.string.val, string, length) == 0)
		return properties;
	return aq_properties_set(properties, GROUP_ID, string, length);
}

/* The message with the key as its group. */
static Datum
with_group(Datum payload, const struct varlena *key)
{
	Jsonb	   *before = aq_properties_of_payload(payload);
	Jsonb	   *properties = aq_message_key_into_properties(before, key);

	return properties == before ? payload : aq_properties_into_payload(payload, properties);
}

/*
 * Makes keys and groups of n messages the same.  Returns the arguments of each message
 * if they now differ, otherwise those of the call, which may be NULL.
 */
const AqEnqueue *
aq_message_key_agree(const AqQueue *queue, const AqEnqueue *call, int n, Datum *payloads, const bool *nulls)
{
	AqEnqueue  *each = NULL;

	if (!queue->jms || call->enqueued_before)
		return call->each;
	for (int i = 0; i < n; i++)
	{
		const AqEnqueue *own = call->each != NULL ? &call->each[i] : call;
		struct varlena *group;

		if (nulls[i])
			continue;
		if (own->key != NULL)
		{
			payloads[i] = with_group(payloads[i], aq_message_key_check(own->key));
			continue;
		}
		group = group_of_payload(payloads[i]);
		if (group == NULL || !aq_version_has_keys())
			continue;
		if (each == NULL)
			each = aq_properties_each(call, n);
		each[i].key = aq_message_key_check(group);
		each[i].key_is_group = true;
	}
	return each != NULL ? each : call->each;
}
