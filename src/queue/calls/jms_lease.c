/*-------------------------------------------------------------------------
 *
 * jms_lease.c
 *	  aq.jms_acknowledge, aq.jms_extend, aq.jms_release: leased messages of
 *	  several queues, with their receipts, in one call.
 *
 * A session of the Jakarta Messaging provider has messages of several queues and
 * dequeues, and finishes them together.  Messages of the same queue, consumer and
 * receipt are passed to the store together, so that a partition has one log row.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "queue/calls/calls_private.h"

#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/builtins.h"
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
are_together(const AqJmsLease *one, const AqJmsLease *other)
{
	return one->receipt == other->receipt && strcmp(one->queue, other->queue) == 0 &&
		(one->consumer == NULL) == (other->consumer == NULL) &&
		(one->consumer == NULL || strcmp(one->consumer, other->consumer) == 0);
}

/* Those that belong together with the first of them; *results: how each ends. */
static void
settle_group(const char *command, AqLeaseOptions options, const AqJmsLease *leases, const int *members, int n,
			 AqLeaseResult *results)
{
	const AqJmsLease *first = &leases[members[0]];
	pg_uuid_t  *ids = palloc(n * sizeof(pg_uuid_t));
	AqLeaseResult *settled;
	AqQueue    *queue = aq_catalog_get_by_name(first->queue);

	/*
	 * the messages of a dropped queue are gone: the provider gets no error.  To a role
	 * without privileges every queue looks like that
	 */
	if (queue == NULL || !aq_privilege_allows(queue, AQ_RIGHT_SEE))
		return;
	for (int i = 0; i < n; i++)
		ids[i] = leases[members[i]].id;
	options.receipt = first->receipt;
	settled = aq_lease_calls_settle(command, first->queue, first->consumer, &options, ids, n);
	for (int i = 0; i < n; i++)
		results[members[i]] = settled[i];
}

/* Returns the number of those that are not done; their numbers, in ascending order, are in stale[]. */
int
aq_jms_lease_settle(const char *command, const AqLeaseOptions *options, const AqJmsLease *leases, int n, int *stale)
{
	AqLeaseResult *results = palloc(Max(n, 1) * sizeof(AqLeaseResult));
	int		   *members = palloc(Max(n, 1) * sizeof(int));
	bool	   *seen = palloc0(Max(n, 1) * sizeof(bool));
	int			nstale = 0;

	for (int i = 0; i < n; i++)
		results[i] = AQ_LEASE_STALE;
	for (int i = 0; i < n; i++)
	{
		int			nmembers = 0;

		CHECK_FOR_INTERRUPTS();
		for (int j = i; j < n && !seen[i]; j++)
			if (!seen[j] && are_together(&leases[i], &leases[j]))
				members[nmembers++] = j;
		for (int j = 0; j < nmembers; j++)
			seen[members[j]] = true;
		if (nmembers > 0)
			settle_group(command, *options, leases, members, nmembers, results);
	}
	for (int i = 0; i < n; i++)
		if (results[i] != AQ_LEASE_DONE)
			stale[nstale++] = i;
	return nstale;
}

/* The four arrays are the first arguments.  Returns the numbers of those that are not done, from 0 on. */
static Datum
settle(FunctionCallInfo fcinfo, const char *command, const AqLeaseOptions *options)
{
	int			n;
	AqJmsLease *leases = aq_jms_lease_read(fcinfo, 0, &n);
	int		   *stale = palloc(Max(n, 1) * sizeof(int));
	int			nstale = aq_jms_lease_settle(command, options, leases, n, stale);
	Datum	   *values = palloc(Max(nstale, 1) * sizeof(Datum));

	for (int i = 0; i < nstale; i++)
		values[i] = Int32GetDatum(stale[i]);
	PG_RETURN_ARRAYTYPE_P(construct_array(values, nstale, INT4OID, sizeof(int32), true, TYPALIGN_INT));
}

PG_FUNCTION_INFO_V1(aq_jms_lease_acknowledge);
Datum
aq_jms_lease_acknowledge(PG_FUNCTION_ARGS)
{
	AqLeaseOptions options = {.mode = AQ_MODE_ACKNOWLEDGE};

	return settle(fcinfo, "aq.jms_acknowledge()", &options);
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
	return settle(fcinfo, "aq.jms_extend()", &options);
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
	options.error = aq_args_name_or_null(fcinfo, LISTS + 1, "error");
	return settle(fcinfo, "aq.jms_release()", &options);
}
