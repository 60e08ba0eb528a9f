/*-------------------------------------------------------------------------
 *
 * lease_calls.c
 *	  aq.acknowledge, aq.extend, aq.release, aq.reject and aq.end_leases: what
 *	  becomes of messages that were dequeued with a lease.
 *
 * They need the same right as the dequeue: the dequeue privilege, or the right on
 * the consumer.  aq.end_leases, which needs no receipt, is for the queue's owner.
 * A queue that is stopped for dequeue does not refuse them, so that what was
 * taken before can be finished.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "queue/calls/calls_private.h"

#include "catalog/pg_type.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/tuplestore.h"
#include "utils/uuid.h"

/* Can the queue's messages be leased? */
void
aq_lease_calls_check(AqQueue *queue)
{
	bool		grouping = queue->store->kind != AQ_STORE_SHARDED && queue->table.grouping;

	if (queue->store->kind != AQ_STORE_BOTH && !grouping)
		return;
	ereport(ERROR,
			aq_error(AQ_ERR_FEATURE_UNSUPPORTED, "messages of queue \"%s\" cannot be leased", queue->name),
			grouping ? errdetail("Its queue table groups messages by transaction.")
			: errdetail("The queue is being converted."));
}

static Datum
read_text(Oid type, char *text)
{
	Oid			input;
	Oid			io_param;

	getTypeInputInfo(type, &input, &io_param);
	return OidInputFunctionCall(input, text, io_param, -1);
}

/* The ids: an array, one id, or the text of either.  An id in braces reads as an array of it. */
static ArrayType *
ids_argument(FunctionCallInfo fcinfo, int arg)
{
	Oid			type = getBaseType(get_fn_expr_argtype(fcinfo->flinfo, arg));
	Datum		id = PG_GETARG_DATUM(arg);
	Oid			output;
	bool		is_varlena;
	char	   *text;

	if (type == UUIDARRAYOID)
		return PG_GETARG_ARRAYTYPE_P(arg);
	if (type != UUIDOID)
	{
		getTypeOutputInfo(type, &output, &is_varlena);
		text = OidOutputFunctionCall(output, id);
		if (strchr(text, '{') != NULL)
			return DatumGetArrayTypeP(read_text(UUIDARRAYOID, text));
		id = read_text(UUIDOID, text);
	}
	return construct_array(&id, 1, UUIDOID, UUID_LEN, false, TYPALIGN_CHAR);
}

/* name: of the argument */
static pg_uuid_t *
read_ids(FunctionCallInfo fcinfo, int arg, const char *name, int *n)
{
	Datum	   *values;
	bool	   *nulls;
	pg_uuid_t  *ids;

	if (PG_ARGISNULL(arg))
		ereport(ERROR, aq_error(AQ_ERR_ARGUMENT_NULL, "\"%s\" must not be null", name));
	deconstruct_array(ids_argument(fcinfo, arg), UUIDOID, UUID_LEN, false, TYPALIGN_CHAR, &values, &nulls, n);
	ids = palloc(Max(*n, 1) * sizeof(pg_uuid_t));
	for (int i = 0; i < *n; i++)
	{
		if (nulls[i])
			ereport(ERROR, aq_error(AQ_ERR_ARGUMENT_NULL, "\"%s\" must not contain nulls", name));
		ids[i] = *DatumGetUUIDP(values[i]);
	}
	return ids;
}

static int64
read_receipt(FunctionCallInfo fcinfo, int arg)
{
	if (PG_ARGISNULL(arg))
		ereport(ERROR, aq_error(AQ_ERR_ARGUMENT_NULL, "\"%s\" must not be null", "receipt"));
	return PG_GETARG_INT64(arg);
}

/*
 * Returns a result for each message; *queue becomes the current description, and
 * *ndone the number of messages that are done.
 */
static AqLeaseResult *
settle_ids(AqQueue **queue, const char *consumer, AqLeaseOptions *options, const pg_uuid_t *ids, int n, int *ndone)
{
	AqLeaseResult *results = palloc0(Max(n, 1) * sizeof(AqLeaseResult));
	uint32		stale = 0;
	bool		begins;

	*queue = aq_use_settle(*queue, &begins);
	options->position = aq_args_consumer_position(*queue, consumer);
	/* the queue's current description, which may be a later one, also has later grants and another owner */
	if (options->any_receipt)
		(void) aq_catalog_get_again((*queue)->id, (*queue)->name, AQ_RIGHT_OWNER);
	else if (!aq_privilege_consumes(*queue, consumer))
		aq_catalog_refuse_consumer(*queue, consumer);
	if (options->position >= 0 && (options->any_receipt || options->receipt > 0))
		(*queue)->store->settle_leases(*queue, options, ids, n, results);
	*ndone = 0;
	for (int i = 0; i < n; i++)
	{
		if (results[i] == AQ_LEASE_DONE)
			(*ndone)++;
		if (results[i] == AQ_LEASE_STALE)
			stale++;
	}
	aq_stat_add(AQ_STAT_LEASES_STALE, stale);
	if (begins && *ndone == 0)
		aq_use_undo(*queue);
	return results;
}

/* The same for a queue by its name, as the command does it; a result for each message. */
AqLeaseResult *
aq_lease_calls_settle(const char *command, const char *queue_name, const char *consumer, AqLeaseOptions *options,
					  const pg_uuid_t *ids, int n)
{
	AqQueue    *queue;
	int			ndone;

	aq_session_require_write(command);
	queue = aq_catalog_get_for(queue_name, consumer, 0);
	return settle_ids(&queue, consumer, options, ids, n, &ndone);
}

/* The argument "error"; NULL if it is empty. */
char *
aq_lease_calls_error(FunctionCallInfo fcinfo, int arg)
{
	char	   *error = aq_args_name_or_null(fcinfo, arg, "error");

	return error != NULL && *error != '\0' ? error : NULL;
}

static void
put_results(FunctionCallInfo fcinfo, const pg_uuid_t *ids, const AqLeaseResult *results, int n)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;

	InitMaterializedSRF(fcinfo, 0);
	for (int i = 0; i < n; i++)
	{
		Datum		values[2];
		bool		nulls[2] = {0};

		values[0] = UUIDPGetDatum(&ids[i]);
		values[1] = CStringGetTextDatum(results[i] == AQ_LEASE_DONE ? "done" :
										results[i] == AQ_LEASE_BUSY ? "busy" : "stale");
		tuplestore_putvalues(result->setResult, result->setDesc, values, nulls);
	}
}

/* A text that is passed for the error, or the delay, is taken for the consumer. */
static void
check_consumer(const AqQueue *queue, const char *consumer, const AqLeaseOptions *options)
{
	if (consumer == NULL || queue->multi || options->mode < AQ_MODE_RELEASE)
		return;
	ereport(ERROR,
			aq_error(AQ_ERR_CONSUMER_FORBIDDEN, "queue \"%s\" has a single consumer, which has no name", queue->name),
			options->mode == AQ_MODE_REJECT || options->any_receipt
			? errhint("The argument after the %s is the consumer. Name another one: error => %s.",
					  options->any_receipt ? "msgids" : "receipt", quote_literal_cstr(aq_error_clip(consumer)))
			: errhint("The argument after the receipt is the consumer. Name another one: delay => '10 s', error => '...'."));
}

/* The arguments queue_name, msgids and, without any_receipt, receipt are the first ones; options has the others. */
static Datum
settle(FunctionCallInfo fcinfo, AqLeaseOptions *options, int consumer, const char *command)
{
	const char *name = aq_args_name_or_null(fcinfo, consumer, "consumer");
	AqQueue    *queue;
	AqLeaseResult *results;
	pg_uuid_t  *ids;
	int			n,
				ndone;

	aq_session_require_write(command);
	queue = options->any_receipt ? aq_catalog_get(aq_args_name(fcinfo, 0, "queue_name"), AQ_RIGHT_OWNER)
		: aq_catalog_get_for(aq_args_name(fcinfo, 0, "queue_name"), name, 0);
	check_consumer(queue, name, options);
	ids = read_ids(fcinfo, 1, "msgids", &n);
	if (!options->any_receipt)
		options->receipt = read_receipt(fcinfo, 2);
	results = settle_ids(&queue, name, options, ids, n, &ndone);
	put_results(fcinfo, ids, results, n);
	return (Datum) 0;
}

/*
 * Acknowledges the messages that a dequeue names in its arguments "acknowledge",
 * which is number arg, and "receipt", the next one.  Returns the current
 * description; *acknowledged: at least one of them was still leased.
 */
AqQueue *
aq_lease_calls_with_dequeue(FunctionCallInfo fcinfo, int arg, AqQueue *queue, const char *consumer, bool *acknowledged)
{
	AqLeaseOptions options = {.mode = AQ_MODE_ACKNOWLEDGE};
	pg_uuid_t  *ids;
	int			n,
				ndone = 0;

	ids = read_ids(fcinfo, arg, "acknowledge", &n);
	if (n > 0)
	{
		options.receipt = read_receipt(fcinfo, arg + 1);
		(void) settle_ids(&queue, consumer, &options, ids, n, &ndone);
	}
	if (ndone < n)
		ereport(NOTICE,
				errmsg("could not acknowledge %d of %d messages", n - ndone, n),
				errdetail("Their leases have ended, or other transactions have acknowledged, extended, released or rejected them and have not ended."),
				errhint("aq.acknowledge returns a result for each message."));
	*acknowledged = ndone > 0;
	return queue;
}

PG_FUNCTION_INFO_V1(aq_lease_calls_acknowledge);
Datum
aq_lease_calls_acknowledge(PG_FUNCTION_ARGS)
{
	AqLeaseOptions options = {.mode = AQ_MODE_ACKNOWLEDGE};

	return settle(fcinfo, &options, 3, "aq.acknowledge()");
}

PG_FUNCTION_INFO_V1(aq_lease_calls_extend);
Datum
aq_lease_calls_extend(PG_FUNCTION_ARGS)
{
	AqLeaseOptions options = {.mode = AQ_MODE_EXTEND};

	if (PG_ARGISNULL(3))
		ereport(ERROR, aq_error(AQ_ERR_ARGUMENT_NULL, "\"%s\" must not be null", "lease"));
	options.time = aq_interval_option(PG_GETARG_DATUM(3), AQ_ERR_OPTION_INVALID, "lease");
	if (options.time <= 0)
		ereport(ERROR, aq_error(AQ_ERR_OPTION_INVALID, "\"lease\" must be positive"));
	return settle(fcinfo, &options, 4, "aq.extend()");
}

PG_FUNCTION_INFO_V1(aq_lease_calls_release);
Datum
aq_lease_calls_release(PG_FUNCTION_ARGS)
{
	bool		counts = PG_ARGISNULL(6) || PG_GETARG_BOOL(6);
	AqLeaseOptions options = {.mode = counts ? AQ_MODE_RELEASE : AQ_MODE_UNSEEN};

	if (!PG_ARGISNULL(4))
		options.time = Max(aq_interval_option(PG_GETARG_DATUM(4), AQ_ERR_OPTION_INVALID, "delay"), 0);
	else
		options.retry_delay = counts;
	options.error = aq_lease_calls_error(fcinfo, 5);
	return settle(fcinfo, &options, 3, "aq.release()");
}

PG_FUNCTION_INFO_V1(aq_lease_calls_reject);
Datum
aq_lease_calls_reject(PG_FUNCTION_ARGS)
{
	AqLeaseOptions options = {.mode = AQ_MODE_REJECT};

	options.error = aq_lease_calls_error(fcinfo, 4);
	return settle(fcinfo, &options, 3, "aq.reject()");
}

/* Without an error that is given, last_error says which role has ended the lease. */
PG_FUNCTION_INFO_V1(aq_lease_calls_end_leases);
Datum
aq_lease_calls_end_leases(PG_FUNCTION_ARGS)
{
	AqLeaseOptions options = {.mode = AQ_MODE_RELEASE, .any_receipt = true};

	options.error = aq_lease_calls_error(fcinfo, 3);
	if (options.error == NULL)
		options.error = psprintf("lease ended by role \"%s\"", GetUserNameFromId(GetUserId(), false));
	return settle(fcinfo, &options, 2, "aq.end_leases()");
}
