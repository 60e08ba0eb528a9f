/*-------------------------------------------------------------------------
 *
 * share.c
 *	  The share of a role in what all queues of the server have in common.
 *
 * The limits of shared memory, such as pgaq.max_streams, apply to the whole
 * server.  A role that may create queues, even temporary ones, must not use
 * them up for the others: the queues of a role that is not a superuser get
 * pgaq.role_share percent of each, and the call that would need more fails.
 * The last eighth is only for roles that have little, so that several roles
 * together do not use it up either.
 *
 * The owner of a queue answers for what the queue needs, whoever uses it: the
 * owner has granted that.  The queues of superusers have no limit, but what
 * transactions of other roles keep of the message cache for them has.  Nothing is counted in advance: what a role has is
 * the sum over what exists in shared memory, by the owner in the queue's entry.
 * So no end of a session or transaction, no change of owner and no dropped
 * queue can leave a number behind.  The check takes no latch: sessions
 * that check at the same time can exceed the limit by what each of them gets.
 *
 * Only calls that need something new check.  Messages that exist can always be
 * loaded and dequeued.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "queue/memory/memory_private.h"

#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "utils/hsearch.h"

/* one in so many is only for roles that have less than one in LITTLE */
#define RESERVED 8
#define LITTLE 64

typedef struct Resource
{
	const char *name;
	const char *parameter;
	const char *too_much;
	const char *advice;
	const int  *total;
	AqShareCount count;
} Resource;

static Resource resources[AQ_SHARES] = {
#define X(id, name, parameter, too_much, advice) {name, parameter, too_much, advice},
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

/* The queue with this index uses n more. */
void
aq_share_add(AqShareUse *use, uint32 queue, int64 n)
{
	Oid			owner = aq_shm_by_index(queue)->owner;

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

/* If all roles together use so much, can one be above its share, or is only the reserved part left? */
bool
aq_share_is_scarce(AqShare share, int64 used)
{
	const Resource *resource = &resources[share];

	return used > Min(limit_of(resource), *resource->total - *resource->total / RESERVED);
}

/*
 * May the owner of the queue have n more?  Called
 * in a transaction, without latches.
 */
bool
aq_share_allows(AqShare share, const AqQueueShm *shm, int64 n)
{
	const Resource *resource = &resources[share];
	int64		total = *resource->total;
	AqShareUse	use = {.owner = shm->owner};

	resource->count(&use);
	if (use.own == 0)
		return true;			/* the first one, however small the share is */
	if (use.own + n <= limit_of(resource) && (use.all + n <= total - total / RESERVED || use.own + n <= total / LITTLE))
		return true;
	/* what a transaction keeps is its own doing: a role that may enqueue must not use up what a superuser may */
	return superuser_arg(shm->owner) && (share != AQ_SHARE_MESSAGE_CACHE || superuser() || aq_job_in_worker());
}

/* The same, but raises an error if not. */
void
aq_share_check(AqShare share, const AqQueueShm *shm, int64 n)
{
	const Resource *resource = &resources[share];
	AqShareUse	use = {.owner = shm->owner};
	char	   *role;

	if (aq_share_allows(share, shm, n))
		return;
	resource->count(&use);
	role = GetUserNameFromId(shm->owner, true);
	ereport(ERROR,
			aq_error(AQ_ERR_ROLE_LIMIT, "queues of role \"%s\" use %s", role != NULL ? role : "", resource->too_much),
			errdetail("They use " INT64_FORMAT " of %d, all queues together " INT64_FORMAT "; the share of a role is " INT64_FORMAT ".",
					  use.own, *resource->total, use.all, limit_of(resource)),
			errhint("%s; or raise pgaq.role_share (now %d percent), or raise %s and restart the server.",
					resource->advice, aq_parameters_role_share, resource->parameter));
}

static void
put_rows(AqRow *row, const Resource *resource)
{
	HASHCTL		control = {.keysize = sizeof(Oid),.entrysize = sizeof(OwnerUse),.hcxt = CurrentMemoryContext};
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
