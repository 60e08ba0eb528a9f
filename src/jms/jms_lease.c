/*-------------------------------------------------------------------------
 *
 * jms_lease.c
 *	  aq_jms.acknowledge, aq_jms.extend, aq_jms.release: leased messages of
 *	  several queues, with their receipts, in one call.
 *
 * A session of the Jakarta Messaging provider has messages of several queues and
 * dequeues, and finishes them together.  Messages of the same queue, consumer and
 * receipt are passed to the store together, so that a partition has one log row.
 * Each message has its own result, which does not depend on the others' queues.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "jms/jms_private.h"

#include "access/xact.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/resowner.h"
#include "utils/uuid.h"

/* the arrays, in their order */
enum
{
	LIST_QUEUES, LIST_CONSUMERS, LIST_IDS, LIST_RECEIPTS, LISTS
};

static const char *const list_names[LISTS] = {"queue_names", "consumers", "msgids", "receipts"};

static void
refuse_null(int list)
{
	ereport(ERROR, aq_error(AQ_ERR_ARGUMENT_NULL, "\"%s\" must not contain nulls", list_names[list]));
}

/* Reads the leases of four arrays, from argument "first" on; none if all of them are null. */
AqJmsLease *
aq_jms_lease_read(FunctionCallInfo fcinfo, int first, int *n)
{
	Datum	   *values[LISTS];
	bool	   *nulls[LISTS];
	AqJmsLease *leases;

	*n = 0;
	for (int list = 0; list < LISTS; list++)
	{
		int			length = 0;

		if (!PG_ARGISNULL(first + list))
			aq_args_elements(PG_GETARG_ARRAYTYPE_P(first + list), &values[list], &nulls[list], &length);
		if (list == 0)
			*n = length;
		if (length != *n)
			ereport(ERROR,
					aq_error(AQ_ERR_OPTION_INVALID, "\"%s\" has %d elements, but \"%s\" has %d", list_names[list], length,
							 list_names[0], *n));
	}
	leases = palloc(Max(*n, 1) * sizeof(AqJmsLease));
	for (int i = 0; i < *n; i++)
	{
		for (int list = 0; list < LISTS; list++)
			if (nulls[list][i] && list != LIST_CONSUMERS)
				refuse_null(list);
		leases[i].queue = TextDatumGetCString(values[LIST_QUEUES][i]);
		leases[i].consumer = nulls[LIST_CONSUMERS][i] ? NULL : TextDatumGetCString(values[LIST_CONSUMERS][i]);
		leases[i].id = *DatumGetUUIDP(values[LIST_IDS][i]);
		leases[i].receipt = DatumGetInt64(values[LIST_RECEIPTS][i]);
	}
	return leases;
}

static bool
are_of_one_queue(const AqJmsLease *one, const AqJmsLease *other)
{
	return strcmp(one->queue, other->queue) == 0 && (one->consumer == NULL) == (other->consumer == NULL) &&
		(one->consumer == NULL || strcmp(one->consumer, other->consumer) == 0);
}

/*
 * Can the role end leases of the consumer now?  Not of a queue that was dropped, or
 * made again with other consumers, and not without the privilege: the message is
 * out of its reach, as if the lease were over, and its other messages are not
 * concerned.
 */
static bool
is_reachable(const AqJmsLease *lease, int32 *id)
{
	AqQueue    *queue = aq_catalog_get_by_name(lease->queue);

	if (queue == NULL || queue->multi != (lease->consumer != NULL) || !aq_privilege_consumes(queue, lease->consumer))
		return false;
	if (*id == 0)
		*id = queue->id;
	return queue->id == *id;
}

/* The first of these leases that the role cannot end, whatever their state is; NULL: none. */
const AqJmsLease *
aq_jms_lease_find_unreachable(const AqJmsLease *leases, int n)
{
	for (int i = 0; i < n; i++)
	{
		int32		id = 0;

		if (!is_reachable(&leases[i], &id))
			return &leases[i];
	}
	return NULL;
}

/* How one call ends leases.  Those of a group have the same queue, consumer and receipt. */
typedef struct Ending
{
	const char *command;
	AqLeaseOptions options;
	const AqJmsLease *leases;
	int			n;
	AqLeaseResult *results;
	const AqJmsLease *current;	/* the first one of the group that is being ended */
	int32		id;				/* of its queue */
} Ending;

static void
end_group(Ending *ending, const int *members, int n)
{
	const AqJmsLease *first = &ending->leases[members[0]];
	AqLeaseOptions options = ending->options;
	pg_uuid_t  *ids;
	AqLeaseResult *settled;

	ending->current = first;
	ending->id = 0;
	if (!is_reachable(first, &ending->id))
		return;
	ids = palloc(n * sizeof(pg_uuid_t));
	for (int i = 0; i < n; i++)
		ids[i] = ending->leases[members[i]].id;
	options.receipt = first->receipt;
	aq_point("lease-found");
	settled = aq_lease_calls_settle(ending->command, first->queue, first->consumer, &options, ids, n);
	for (int i = 0; i < n; i++)
		ending->results[members[i]] = settled[i];
	pfree(settled);
	pfree(ids);
}

/* The leases of a group have the same queue, consumer and receipt. */
static int
compare_groups(const AqJmsLease *one, const AqJmsLease *other)
{
	int			order = one->receipt < other->receipt ? -1 : one->receipt > other->receipt;

	if (order == 0)
		order = strcmp(one->queue, other->queue);
	if (order == 0 && (one->consumer == NULL || other->consumer == NULL))
		order = (one->consumer != NULL) - (other->consumer != NULL);
	else if (order == 0)
		order = strcmp(one->consumer, other->consumer);
	return order;
}

/* Groups one after the other, with their members in the order of the call. */
static int
compare_leases(const void *a, const void *b, void *leases)
{
	int			one = *(const int *) a;
	int			other = *(const int *) b;
	int			order = compare_groups((AqJmsLease *) leases + one, (AqJmsLease *) leases + other);

	return order != 0 ? order : one - other;
}

/* A group: some elements of the sorted numbers. */
typedef struct Group
{
	const int  *members;
	int			n;
} Group;

static int
compare_first(const void *a, const void *b)
{
	return ((const Group *) a)->members[0] - ((const Group *) b)->members[0];
}

/* Finds the groups, in the order of their first members; returns their number. */
static int
find_groups(const Ending *ending, int *members, Group *groups)
{
	const AqJmsLease *leases = ending->leases;
	int			ngroups = 0;

	for (int i = 0; i < ending->n; i++)
		members[i] = i;
	qsort_arg(members, ending->n, sizeof(int), compare_leases, (void *) leases);
	for (int i = 0; i < ending->n; i++)
		if (i == 0 || compare_groups(&leases[members[i - 1]], &leases[members[i]]) != 0)
			groups[ngroups++] = (Group) {.members = &members[i], .n = 1};
		else
			groups[ngroups - 1].n++;
	qsort(groups, ngroups, sizeof(Group), compare_first);
	return ngroups;
}

static void
end_groups(Ending *ending)
{
	int			n = ending->n;
	int		   *members = palloc(Max(n, 1) * sizeof(int));
	Group	   *groups = palloc(Max(n, 1) * sizeof(Group));
	int			ngroups = find_groups(ending, members, groups);

	for (int i = 0; i < n; i++)
		ending->results[i] = AQ_LEASE_STALE;
	for (int i = 0; i < ngroups; i++)
	{
		CHECK_FOR_INTERRUPTS();
		end_group(ending, groups[i].members, groups[i].n);
	}
	pfree(members);
	pfree(groups);
}

/*
 * The same, in a subtransaction.  Returns false, with nothing done, if a queue is
 * dropped, or the privilege on it revoked, just now: the next time it is out of
 * reach from the start, and the leases of other queues end.
 */
static bool
try_groups(Ending *ending)
{
	MemoryContext context = CurrentMemoryContext;
	ResourceOwner owner = CurrentResourceOwner;
	bool		ended = true;

	BeginInternalSubTransaction(NULL);
	MemoryContextSwitchTo(context);
	PG_TRY();
	{
		end_groups(ending);
		ReleaseCurrentSubTransaction();
	}
	PG_CATCH();
	{
		ErrorData  *error;

		MemoryContextSwitchTo(context);
		error = CopyErrorData();
		FlushErrorState();
		RollbackAndReleaseCurrentSubTransaction();
		MemoryContextSwitchTo(context);
		CurrentResourceOwner = owner;
		if (!aq_error_is_of_user(error->sqlerrcode) || ending->id == 0 ||
			is_reachable(ending->current, &ending->id))
			ReThrowError(error);
		FreeErrorData(error);
		ended = false;
	}
	PG_END_TRY();
	MemoryContextSwitchTo(context);
	CurrentResourceOwner = owner;
	return ended;
}

/* If all have the same queue and consumer, an error is the answer for each of them. */
static bool
are_all_of_one_queue(const Ending *ending)
{
	for (int i = 1; i < ending->n; i++)
		if (!are_of_one_queue(&ending->leases[0], &ending->leases[i]))
			return false;
	return true;
}

/*
 * Returns the number of those that are not done.  undone[] gets their numbers, in
 * ascending order: that of a busy one as AQ_JMS_BUSY().  A session acknowledges many
 * groups in a call, often of one message each, so a subtransaction is for all of them.
 */
int
aq_jms_lease_settle(const char *command, const AqLeaseOptions *options, const AqJmsLease *leases, int n, int *undone)
{
	Ending		ending = {.command = command, .options = *options, .leases = leases, .n = n};
	int			nundone = 0;

	ending.results = palloc(Max(n, 1) * sizeof(AqLeaseResult));
	if (are_all_of_one_queue(&ending))
		end_groups(&ending);
	else
		while (!try_groups(&ending))
			CHECK_FOR_INTERRUPTS();
	for (int i = 0; i < n; i++)
		if (ending.results[i] != AQ_LEASE_DONE)
			undone[nundone++] = ending.results[i] == AQ_LEASE_BUSY ? AQ_JMS_BUSY(i) : i;
	return nundone;
}

/* The four arrays are the first arguments.  Returns the numbers of those that are not done. */
static Datum
settle(FunctionCallInfo fcinfo, const char *command, const AqLeaseOptions *options)
{
	int			n;
	AqJmsLease *leases = aq_jms_lease_read(fcinfo, 0, &n);
	int		   *undone = palloc(Max(n, 1) * sizeof(int));
	int			nundone = aq_jms_lease_settle(command, options, leases, n, undone);
	Datum	   *values = palloc(Max(nundone, 1) * sizeof(Datum));

	for (int i = 0; i < nundone; i++)
		values[i] = Int32GetDatum(undone[i]);
	PG_RETURN_ARRAYTYPE_P(construct_array(values, nundone, INT4OID, sizeof(int32), true, TYPALIGN_INT));
}

PG_FUNCTION_INFO_V1(aq_jms_lease_acknowledge);
Datum
aq_jms_lease_acknowledge(PG_FUNCTION_ARGS)
{
	AqLeaseOptions options = {.mode = AQ_MODE_ACKNOWLEDGE};

	return settle(fcinfo, "aq_jms.acknowledge()", &options);
}

PG_FUNCTION_INFO_V1(aq_jms_lease_extend);
Datum
aq_jms_lease_extend(PG_FUNCTION_ARGS)
{
	AqLeaseOptions options = {.mode = AQ_MODE_EXTEND};

	aq_args_require(fcinfo, LISTS, "lease");
	options.time = aq_interval_option(PG_GETARG_DATUM(LISTS), AQ_ERR_OPTION_INVALID, "lease");
	if (options.time <= 0)
		ereport(ERROR, aq_error(AQ_ERR_OPTION_INVALID, "\"lease\" must be positive"));
	return settle(fcinfo, "aq_jms.extend()", &options);
}

/* delay, error, count: as in aq.release */
PG_FUNCTION_INFO_V1(aq_jms_lease_release);
Datum
aq_jms_lease_release(PG_FUNCTION_ARGS)
{
	bool		counts = PG_ARGISNULL(LISTS + 2) || PG_GETARG_BOOL(LISTS + 2);
	AqLeaseOptions options = {.mode = counts ? AQ_MODE_RELEASE : AQ_MODE_UNSEEN};

	if (!PG_ARGISNULL(LISTS))
		options.time = Max(aq_interval_option(PG_GETARG_DATUM(LISTS), AQ_ERR_OPTION_INVALID, "delay"), 0);
	else
		options.retry_delay = counts;
	options.error = aq_lease_calls_error(fcinfo, LISTS + 1);
	return settle(fcinfo, "aq_jms.release()", &options);
}
