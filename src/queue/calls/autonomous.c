/*-------------------------------------------------------------------------
 *
 * autonomous.c
 *	  Immediate visibility: one statement in a transaction of its own.
 *
 * A session that asks for it gets a helper, a background worker that it keeps
 * until its end.  A request is a statement of ours with its parameters; the
 * helper executes it, commits, and answers with the row.  Both travel through
 * message queues in a piece of dynamic shared memory.
 *
 * The helper has the session's authenticated user and executes each request as
 * the session's current user, in a way that SET ROLE cannot leave; when the current
 * user changes the session gets another helper.  It has no part
 * in the session's transaction: it sees what is committed, and would wait for the
 * session's locks for ever, were it not for its lock_timeout.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "queue/calls/calls_private.h"

#include "access/htup_details.h"
#include "access/xact.h"
#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "postmaster/bgworker.h"
#include "storage/dsm.h"
#include "storage/ipc.h"
#include "storage/proc.h"
#include "storage/shm_mq.h"
#include "storage/shm_toc.h"
#include "utils/builtins.h"
#include "utils/datum.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

#define MAGIC 0x61710001
#define RING_BYTES 65536
#define MAX_PARAMETERS 8

/* what the helper takes over from the session: the caller's search_path, what else expressions depend on, and the session's limits */
static const char *const settings[] = {
	"search_path",
#define X(id, name, value, has_it, of_text) name,
#include "queue/catalog/setting_list.h"
#undef X
	"pgaq.buffered_message_limit", "pgaq.flow_control_timeout"
};

/* a lock that the session itself holds would never be given */
#define LOCK_TIMEOUT "5s"

enum
{
	KEY_HEADER, KEY_REQUESTS, KEY_ANSWERS
};

typedef struct Header
{
	Oid			database;
	Oid			user;			/* authenticated */
} Header;

/* first byte of an answer */
#define ANSWER_ROW 'R'
#define ANSWER_ERROR 'E'

PGDLLEXPORT void aq_autonomous_main(Datum arg);

/* the session's helper; segment is NULL: it has none */
static struct
{
	dsm_segment *segment;
	Oid			user;			/* whom it works for */
	BackgroundWorkerHandle *worker;
	bool		asked;			/* and has not answered */
	shm_mq_handle *requests;
	shm_mq_handle *answers;
}			helper;

/* --- what travels ------------------------------------------------------------------ */

static void
put_string(StringInfo buffer, const char *string)
{
	appendBinaryStringInfo(buffer, string, strlen(string) + 1);
}

static void
put_oid(StringInfo buffer, Oid oid)
{
	appendBinaryStringInfo(buffer, (char *) &oid, sizeof(Oid));
}

/* A value whole, without references to TOAST tables. */
static void
put_value(StringInfo buffer, Datum value, bool isnull, Oid type)
{
	int16		length;
	bool		byval;
	Size		size;
	char	   *place;

	get_typlenbyval(type, &length, &byval);
	if (!isnull && length == -1)
		value = PointerGetDatum(PG_DETOAST_DATUM(value));
	size = datumEstimateSpace(value, isnull, byval, length);
	enlargeStringInfo(buffer, size);
	place = buffer->data + buffer->len;
	datumSerialize(value, isnull, byval, length, &place);
	buffer->len += size;
}

static const char *
get_string(char **place)
{
	const char *string = *place;

	*place += strlen(string) + 1;
	return string;
}

static Oid
get_oid(char **place)
{
	Oid			oid;

	memcpy(&oid, *place, sizeof(Oid));
	*place += sizeof(Oid);
	return oid;
}

/* --- the session's side --------------------------------------------------------------- */

static void
end_helper(void)
{
	if (helper.segment == NULL)
		return;
	if (helper.worker != NULL)
	{
		TerminateBackgroundWorker(helper.worker);
		pfree(helper.worker);
	}
	if (helper.requests != NULL)
		shm_mq_detach(helper.requests);
	if (helper.answers != NULL)
		shm_mq_detach(helper.answers);
	dsm_detach(helper.segment);
	memset(&helper, 0, sizeof(helper));
}

static shm_mq *
make_ring(shm_toc *toc, int key)
{
	shm_mq	   *ring = shm_mq_create(shm_toc_allocate(toc, RING_BYTES), RING_BYTES);

	shm_toc_insert(toc, key, ring);
	return ring;
}

static void
start_helper(void)
{
	shm_toc_estimator estimator;
	Size		size;
	shm_toc    *toc;
	Header	   *header;
	shm_mq	   *ring;
	BackgroundWorker worker;

	shm_toc_initialize_estimator(&estimator);
	shm_toc_estimate_chunk(&estimator, sizeof(Header));
	shm_toc_estimate_chunk(&estimator, RING_BYTES);
	shm_toc_estimate_chunk(&estimator, RING_BYTES);
	shm_toc_estimate_keys(&estimator, 3);
	size = shm_toc_estimate(&estimator);

	helper.segment = dsm_create(size, 0);
	helper.user = GetUserId();
	dsm_pin_mapping(helper.segment);	/* longer than this transaction */
	toc = shm_toc_create(MAGIC, dsm_segment_address(helper.segment), size);
	header = shm_toc_allocate(toc, sizeof(Header));
	header->database = MyDatabaseId;
	header->user = GetAuthenticatedUserId();
	shm_toc_insert(toc, KEY_HEADER, header);

	ring = make_ring(toc, KEY_REQUESTS);
	shm_mq_set_sender(ring, MyProc);
	helper.requests = shm_mq_attach(ring, helper.segment, NULL);
	ring = make_ring(toc, KEY_ANSWERS);
	shm_mq_set_receiver(ring, MyProc);
	helper.answers = shm_mq_attach(ring, helper.segment, NULL);

	aq_process_init(&worker, "aq_autonomous_main", "pgaq helper");
	snprintf(worker.bgw_name, BGW_MAXLEN, "pgaq helper of process %d", MyProcPid);
	worker.bgw_main_arg = UInt32GetDatum(dsm_segment_handle(helper.segment));
	worker.bgw_notify_pid = MyProcPid;
	if (!RegisterDynamicBackgroundWorker(&worker, &helper.worker))
		ereport(ERROR,
				aq_error(AQ_ERR_WORKER_MISSING, "could not start a background worker for immediate visibility"),
				errhint("Each session that uses it needs one: increase max_worker_processes."));
	/* so that a helper that never comes up is noticed */
	shm_mq_set_handle(helper.requests, helper.worker);
	shm_mq_set_handle(helper.answers, helper.worker);
}

static void
raise_error(char *place)
{
	int			sqlstate;
	const char *message,
			   *detail,
			   *hint;

	memcpy(&sqlstate, place, sizeof(int));
	place += sizeof(int);
	message = get_string(&place);
	detail = get_string(&place);
	hint = get_string(&place);
	ereport(ERROR,
			(errcode(sqlstate),
			 errmsg_internal("%s", message),
			 detail[0] ? errdetail_internal("%s", detail) : 0,
			 hint[0] ? errhint("%s", hint) : 0,
			 errcontext("statement with immediate visibility")));
}

/* Send the request and wait for the answer, which is good until the next call. */
static char *
ask_helper(StringInfo request)
{
	Size		size;
	void	   *answer;

	helper.asked = true;
	if (shm_mq_send(helper.requests, request->len, request->data, false, true) != SHM_MQ_SUCCESS ||
		shm_mq_receive(helper.answers, &size, &answer, false) != SHM_MQ_SUCCESS)
		ereport(ERROR,
				aq_error(AQ_ERR_WORKER_MISSING, "the background worker for immediate visibility has ended"),
				errhint("The server's log says why; max_worker_processes may be too small."));
	helper.asked = false;
	return answer;
}

/* The session ends: what it has asked for ends too. */
void
aq_autonomous_session_exit(void)
{
	if (helper.asked)
		TerminateBackgroundWorker(helper.worker);
}

/*
 * Execute a statement that returns one row, in a transaction of its own, and
 * return its first ncolumns columns in the current memory context.  When the
 * session is interrupted meanwhile the helper is ended; like after a lost
 * connection it is not known then whether it has committed.
 */
void
aq_autonomous_call(const char *sql, int nargs, const Oid *types, const Datum *values,
				   const char *nulls, int ncolumns, Datum *results, bool *isnull)
{
	MemoryContext context = CurrentMemoryContext;
	StringInfoData request;
	char	   *answer = NULL;

	PreventCommandIfReadOnly("a call with immediate visibility");
	PreventCommandIfParallelMode("a call with immediate visibility");
	PreventCommandDuringRecovery("a call with immediate visibility");
	if (InSecurityRestrictedOperation())
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("cannot use immediate visibility within a security-restricted operation")));

	initStringInfo(&request);
	put_oid(&request, GetUserId());
	for (int i = 0; i < lengthof(settings); i++)
		put_string(&request, i == 0 ? aq_caller_path() : GetConfigOption(settings[i], false, false));
	put_string(&request, sql);
	put_oid(&request, (Oid) nargs);
	for (int i = 0; i < nargs; i++)
	{
		put_oid(&request, types[i]);
		put_value(&request, values[i], nulls[i] == 'n', types[i]);
	}

	PG_TRY();
	{
		/* what one user leaves behind in a process is not for another */
		if (helper.segment != NULL && helper.user != GetUserId())
			end_helper();
		if (helper.segment == NULL)
		{
			MemoryContextSwitchTo(TopMemoryContext);
			start_helper();
			MemoryContextSwitchTo(context);
		}
		aq_stat_add(AQ_STAT_IMMEDIATE, 1);
		answer = ask_helper(&request);
	}
	PG_CATCH();
	{
		end_helper();
		PG_RE_THROW();
	}
	PG_END_TRY();

	pfree(request.data);
	if (*answer++ == ANSWER_ERROR)
		raise_error(answer);
	for (int i = 0; i < ncolumns; i++)
		results[i] = datumRestore(&answer, &isnull[i]);
}

/* --- the helper -------------------------------------------------------------------------- */

static void
set_option(const char *name, const char *value)
{
	/* the session was allowed to */
	(void) set_config_option(name, value, PGC_SUSET, PGC_S_SESSION, GUC_ACTION_LOCAL, true, 0, false);
}

/* Execute the request, commit, and put the row into the answer. */
static void
execute(char *request, StringInfo answer, MemoryContext context)
{
	Oid			user = get_oid(&request);
	const char *given[lengthof(settings)];
	const char *sql;
	int			nargs;
	Oid			types[MAX_PARAMETERS];
	Datum		values[MAX_PARAMETERS];
	char		nulls[MAX_PARAMETERS];

	for (int i = 0; i < lengthof(settings); i++)
		given[i] = get_string(&request);
	sql = get_string(&request);
	nargs = (int) get_oid(&request);
	if (nargs > MAX_PARAMETERS)
		elog(ERROR, "too many parameters");
	SetCurrentStatementStartTimestamp();
	StartTransactionCommand();
	/* in force until the commit, where deferred triggers run */
	SetUserIdAndSecContext(user, SECURITY_LOCAL_USERID_CHANGE);
	for (int i = 0; i < lengthof(settings); i++)
		set_option(settings[i], given[i]);
	set_option("lock_timeout", LOCK_TIMEOUT);
	pgstat_report_activity(STATE_RUNNING, sql);
	for (int i = 0; i < nargs; i++)
	{
		bool		isnull;

		types[i] = get_oid(&request);
		values[i] = datumRestore(&request, &isnull);
		nulls[i] = isnull ? 'n' : ' ';
	}
	PushActiveSnapshot(GetTransactionSnapshot());
	SPI_connect();
	if (SPI_execute_with_args(sql, nargs, types, values, nulls, false, 1) != SPI_OK_SELECT || SPI_processed != 1)
		elog(ERROR, "a statement with immediate visibility did not return a row");

	/* the answer outlives the transaction */
	appendStringInfoChar(answer, ANSWER_ROW);
	for (int i = 0; i < SPI_tuptable->tupdesc->natts; i++)
	{
		bool		isnull;
		Datum		value = SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, i + 1, &isnull);

		put_value(answer, value, isnull, SPI_gettypeid(SPI_tuptable->tupdesc, i + 1));
	}
	SPI_finish();
	PopActiveSnapshot();
	CommitTransactionCommand();
	SetUserIdAndSecContext(GetSessionUserId(), 0);
	pgstat_report_stat(false);
	MemoryContextSwitchTo(context);
}

static void
put_error(StringInfo answer, const ErrorData *error)
{
	resetStringInfo(answer);
	appendStringInfoChar(answer, ANSWER_ERROR);
	appendBinaryStringInfo(answer, (const char *) &error->sqlerrcode, sizeof(int));
	put_string(answer, error->message ? error->message : "");
	put_string(answer, error->detail ? error->detail : "");
	put_string(answer, error->hint ? error->hint : "");
}

/* One request after the other, until the session is gone. */
static void
serve(shm_mq_handle *requests, shm_mq_handle *answers)
{
	MemoryContext context = AllocSetContextCreate(TopMemoryContext, "pgaq helper", ALLOCSET_DEFAULT_SIZES);

	for (;;)
	{
		Size		size;
		void	   *request;
		StringInfoData answer;

		MemoryContextReset(context);
		MemoryContextSwitchTo(context);
		pgstat_report_activity(STATE_IDLE, NULL);
		if (shm_mq_receive(requests, &size, &request, false) != SHM_MQ_SUCCESS)
			return;
		initStringInfo(&answer);
		PG_TRY();
		{
			execute(request, &answer, context);
		}
		PG_CATCH();
		{
			ErrorData  *error;

			MemoryContextSwitchTo(context);
			error = CopyErrorData();
			FlushErrorState();
			AbortCurrentTransaction();
			MemoryContextSwitchTo(context);
			put_error(&answer, error);
		}
		PG_END_TRY();
		if (shm_mq_send(answers, answer.len, answer.data, false, true) != SHM_MQ_SUCCESS)
			return;
	}
}

void
aq_autonomous_main(Datum arg)
{
	dsm_segment *segment;
	shm_toc    *toc;
	Header	   *header;
	shm_mq	   *ring;
	shm_mq_handle *requests,
			   *answers;

	segment = aq_process_attach(arg, "pgaq helper");
	toc = shm_toc_attach(MAGIC, dsm_segment_address(segment));
	if (toc == NULL)
		elog(ERROR, "a helper was given something else than a session's rings");
	header = shm_toc_lookup(toc, KEY_HEADER, false);
	ring = shm_toc_lookup(toc, KEY_REQUESTS, false);
	shm_mq_set_receiver(ring, MyProc);
	requests = shm_mq_attach(ring, segment, NULL);
	ring = shm_toc_lookup(toc, KEY_ANSWERS, false);
	shm_mq_set_sender(ring, MyProc);
	answers = shm_mq_attach(ring, segment, NULL);

	BackgroundWorkerInitializeConnectionByOid(header->database, header->user, 0);
	SetConfigOption("default_transaction_isolation", "read committed", PGC_SUSET, PGC_S_OVERRIDE);
	SetConfigOption("default_transaction_read_only", "off", PGC_SUSET, PGC_S_OVERRIDE);
	SetConfigOption("application_name", "pgaq helper", PGC_SUSET, PGC_S_OVERRIDE);
	serve(requests, answers);
	dsm_detach(segment);
	proc_exit(0);
}

/* --- for the packages ---------------------------------------------------------------------- */

/* Call a function of the packages with our own arguments, in a transaction of its own. */
static Datum
call_immediately(FunctionCallInfo fcinfo, const char *function)
{
	AQ_TIMED(AQ_TIME_ENQUEUE);
	Oid			types[MAX_PARAMETERS];
	Datum		values[MAX_PARAMETERS];
	char		nulls[MAX_PARAMETERS];
	StringInfoData sql;
	Datum		result;
	bool		isnull;

	aq_session_require_preload();
	Assert(PG_NARGS() <= MAX_PARAMETERS);
	initStringInfo(&sql);
	appendStringInfo(&sql, "SELECT %s(", function);
	for (int i = 0; i < PG_NARGS(); i++)
	{
		types[i] = get_fn_expr_argtype(fcinfo->flinfo, i);
		values[i] = PG_GETARG_DATUM(i);
		nulls[i] = PG_ARGISNULL(i) ? 'n' : ' ';
		appendStringInfo(&sql, "%s$%d", i > 0 ? ", " : "", i + 1);
	}
	appendStringInfoChar(&sql, ')');
	aq_autonomous_call(sql.data, PG_NARGS(), types, values, nulls, 1, &result, &isnull);
	if (isnull)
		PG_RETURN_NULL();
	PG_RETURN_DATUM(result);
}

PG_FUNCTION_INFO_V1(aq_autonomous_put);
Datum
aq_autonomous_put(PG_FUNCTION_ARGS)
{
	return call_immediately(fcinfo, "sys._put_message");
}

PG_FUNCTION_INFO_V1(aq_autonomous_put_array);
Datum
aq_autonomous_put_array(PG_FUNCTION_ARGS)
{
	return call_immediately(fcinfo, "dbms_aq._enqueue_array");
}
