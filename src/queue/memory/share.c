/*-------------------------------------------------------------------------
 *
 * share.c
 *	  The share of a role in resources that all queues of the server use.
 *
 * The limits of shared memory, such as pgaq.max_streams, apply to the whole server.
 * A role that may create queues, even only temporary ones, must not use them up.
 * So the queues of a role that is not a superuser can use pgaq.role_share percent of
 * each resource; a call that needs more fails.  The last eighth is reserved for roles
 * that use little, so that several roles together do not use up everything either.
 *
 * What a queue uses is charged to its owner, who has granted its use to others; what
 * only transactions use, such as the entries for dequeues from queue tables, to their
 * role, or in a transaction of a superuser to the role as which code runs.  The queues
 * of superusers have no limit, except for the part of the message cache that
 * transactions of other roles keep for them.
 *
 * There are no counters that could be left behind by the end of a session, a change of
 * owner or a dropped queue: the use of a role is computed from what exists in shared
 * memory, by the owner in the queue's entry.  The check takes no latch, so sessions
 * that check at the same time can together exceed the limit a little.
 *
 * Only calls that need something new check, as a queue is that no session uses.
 * Messages of queues in use can always be loaded and dequeued.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "queue/memory/memory_private.h"

#include "miscadmin.h"
#include "utils/hsearch.h"

/* 1 / RESERVED of a resource is for roles that use less than 1 / LITTLE of it */
#define RESERVED 8
#define LITTLE 64

typedef struct Resource
{
	const char *name;
	const char *parameter;
	const char *users;
	const char *too_much;
	const char *advice;
	const int  *total;
	AqShareCount count;
} Resource;

static Resource resources[AQ_SHARES] = {
#define X(id, name, parameter, users, too_much, advice) {name, parameter, users, too_much, advice},
#include "queue/memory/share_list.h"
#undef X
};

struct AqShareUse
{
	Oid			owner;
	int64		own;			/* of the owner's queues */
	int64		all;
	HTAB	   *by_owner;		/* NULL: not wanted */
};

typedef struct OwnerUse
{
	Oid			owner;			/* key */
	int64		n;
} OwnerUse;

/* The role uses n more. */
void
aq_share_add_role(AqShareUse *use, Oid owner, int64 n)
{
	use->all += n;
	if (owner == use->owner)
		use->own += n;
	if (use->by_owner != NULL && OidIsValid(owner))
	{
		bool		found;
		OwnerUse   *entry = hash_search(use->by_owner, &owner, HASH_ENTER, &found);

		entry->n = found ? entry->n + n : n;
	}
}

/* The queue with this index uses n more. */
void
aq_share_add(AqShareUse *use, uint32 queue, int64 n)
{
	aq_share_add_role(use, aq_shm_by_index(queue)->owner, n);
}

static void
count_queues(AqShareUse *use)
{
	for (int i = 1; i <= aq_handle_limit; i++)
		if (aq_handle_by_index(i)->pins > 0)
			aq_share_add(use, i, 1);
}

void
aq_share_register(AqShare share, const int *total, AqShareCount count)
{
	resources[share].total = total;
	resources[share].count = count;
}

void
aq_share_init(void)
{
	aq_share_register(AQ_SHARE_QUEUES, &aq_handle_limit, count_queues);
}

static int64
limit_of(const Resource *resource)
{
	return (int64) *resource->total * aq_parameters_role_share / 100;
}

/* All roles together use this much.  Can one be above its share, or is only the reserved part left? */
bool
aq_share_is_scarce(AqShare share, int64 used)
{
	const Resource *resource = &resources[share];

	return used > Min(limit_of(resource), *resource->total - *resource->total / RESERVED);
}

/* May the role have n more?  *use: what it and all others have. */
static bool
allows(AqShare share, Oid owner, int64 n, AqShareUse *use)
{
	const Resource *resource = &resources[share];
	int64		total = *resource->total;

	*use = (AqShareUse) {.owner = owner};
	resource->count(use);
	if (use->own == 0 || use->own + n <= 1)
		return true;			/* the first one, however small the share is */
	if (use->own + n <= limit_of(resource) && (use->all + n <= total - total / RESERVED || use->own + n <= total / LITTLE))
		return true;
	/* what a transaction keeps is its own doing: a role that may enqueue must not use up what a superuser may */
	return superuser_arg(owner) && (share != AQ_SHARE_MESSAGE_CACHE || superuser() || aq_job_in_worker());
}

/* Called in a transaction, without latches; also the next one. */
bool
aq_share_allows(AqShare share, const AqQueueShm *shm, int64 n)
{
	AqShareUse	use;

	return allows(share, shm->owner, n, &use);
}

/* Raises an error if the role may not have n more. */
void
aq_share_check_role(AqShare share, Oid owner, int64 n)
{
	const Resource *resource = &resources[share];
	AqShareUse	use;
	char	   *role;

	if (allows(share, owner, n, &use))
		return;
	role = GetUserNameFromId(owner, true);
	ereport(ERROR,
			aq_error(AQ_ERR_ROLE_LIMIT, "%s of role \"%s\" use %s", resource->users, role != NULL ? role : "", resource->too_much),
			errdetail("They use " INT64_FORMAT " of %d, all %s together " INT64_FORMAT "; the share of a role is " INT64_FORMAT ".",
					  use.own, *resource->total, resource->users, use.all, limit_of(resource)),
			errhint("%s; or raise pgaq.role_share (now %d percent), or raise %s and restart the server.",
					resource->advice, aq_parameters_role_share, resource->parameter));
}

void
aq_share_check(AqShare share, const AqQueueShm *shm, int64 n)
{
	aq_share_check_role(share, shm->owner, n);
}

static void
put_rows(AqRow *row, const Resource *resource)
{
	HASHCTL		control = {.keysize = sizeof(Oid), .entrysize = sizeof(OwnerUse), .hcxt = CurrentMemoryContext};
	AqShareUse	use = {0};
	HASH_SEQ_STATUS scan;
	OwnerUse   *entry;

	use.by_owner = hash_create("pgaq use by role", 64, &control, HASH_ELEM | HASH_BLOBS | HASH_CONTEXT);
	resource->count(&use);
	hash_seq_init(&scan, use.by_owner);
	while ((entry = hash_seq_search(&scan)) != NULL)
	{
		aq_rows_put(row, ObjectIdGetDatum(entry->owner));
		aq_rows_text(row, resource->name);
		aq_rows_number(row, entry->n);
		aq_rows_number(row, superuser_arg(entry->owner) ? *resource->total : limit_of(resource));
		aq_rows_number(row, use.all);
		aq_rows_number(row, *resource->total);
		aq_rows_text(row, resource->parameter);
		aq_rows_end(row);
	}
	hash_destroy(use.by_owner);
}

AQ_ROWS(aq_share_view)
{
	for (int i = 0; i < AQ_SHARES; i++)
		put_rows(row, &resources[i]);
}
