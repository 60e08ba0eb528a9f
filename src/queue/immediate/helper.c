/*-------------------------------------------------------------------------
 *
 * helper.c
 *	  The process of a helper, which executes calls of other sessions, each in
 *	  a separate transaction.
 *
 * A helper has the login and session users of its key, and their privileges.
 * It executes each call as the caller's current user, with SET ROLE and SET
 * SESSION AUTHORIZATION disallowed.  It is not part of the caller's
 * transaction: it sees committed data, and waits for the caller's locks like
 * any other session.
 *
 * After each call, the session state that it may have left is removed:
 * settings, temporary objects, prepared statements, cursors, advisory locks,
 * values of sequences, positions in queues.  Plans and the data of procedural
 * languages are kept, because later callers are the same users.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "queue/immediate/immediate_private.h"

#include "access/xact.h"
#include "catalog/namespace.h"
#include "commands/prepare.h"
#include "commands/sequence.h"
#include "executor/spi.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "storage/ipc.h"
#include "storage/lock.h"
#include "storage/proc.h"
#include "tcop/tcopprot.h"
#include "utils/guc.h"
#include "utils/memutils.h"
#include "utils/portal.h"
#include "utils/snapmgr.h"

/*
 * While a helper waits for a lock, other sessions cannot use it.  If the lock
 * is the caller's, the caller detects that earlier.
 */
#define LOCK_TIMEOUT "5s"

PGDLLEXPORT void aq_helper_main(Datum arg);

/*
 * Most sessions have the settings of their role and database, as the helper has,
 * and setting some of them is slow.
 */
static void
set_option(const char *name, const char *value)
{
	const char *now = GetConfigOption(name, false, false);

	if (now != NULL && strcmp(now, value) == 0)
		return;
	/* PGC_SUSET, because the caller was allowed to set it */
	(void) set_config_option(name, value, PGC_SUSET, PGC_S_SESSION, GUC_ACTION_LOCAL, true, 0, false);
}

/* --- saved plans ---------------------------------------------------------------------- */

/* The statements are few; their arguments' types depend on the payload. */
#define PLANS 64

typedef struct SavedPlan
{
	char	   *sql;
	int			nargs;
	Oid			types[AQ_CALL_ARGUMENTS];
	SPIPlanPtr	plan;
} SavedPlan;

static SavedPlan plans[PLANS];
static int	nplans;

/* SPI is connected. */
static SPIPlanPtr
plan_for(const char *sql, int nargs, Oid *types)
{
	SPIPlanPtr	plan;

	for (int i = 0; i < nplans; i++)
		if (plans[i].nargs == nargs && memcmp(plans[i].types, types, nargs * sizeof(Oid)) == 0 &&
			strcmp(plans[i].sql, sql) == 0)
			return plans[i].plan;
	plan = SPI_prepare(sql, nargs, types);
	if (plan == NULL)
		elog(ERROR, "could not plan \"%s\": %s", sql, SPI_result_code_string(SPI_result));
	if (nplans == PLANS || SPI_keepplan(plan) != 0)
		return plan;
	plans[nplans].sql = MemoryContextStrdup(TopMemoryContext, sql);
	plans[nplans].nargs = nargs;
	memcpy(plans[nplans].types, types, nargs * sizeof(Oid));
	plans[nplans++].plan = plan;
	return plan;
}

/* --- a call -------------------------------------------------------------------------- */

static void
put_rows(StringInfo answer)
{
	TupleDesc	desc = SPI_tuptable->tupdesc;

	aq_wire_put_int(answer, (int) SPI_processed);
	aq_wire_put_int(answer, desc->natts);
	for (uint64 row = 0; row < SPI_processed; row++)
		for (int i = 1; i <= desc->natts; i++)
		{
			bool		isnull;
			Datum		value = SPI_getbinval(SPI_tuptable->vals[row], desc, i, &isnull);

			aq_wire_put_datum(answer, value, isnull, SPI_gettypeid(desc, i));
		}
}

/*
 * Executes the statement and writes its rows to the answer.  SPI is connected.
 */
static void
execute_statement(const char **request, StringInfo answer)
{
	const char *sql = aq_wire_get_string(request);
	int			nargs = aq_wire_get_int(request);
	Oid			types[AQ_CALL_ARGUMENTS];
	Datum		values[AQ_CALL_ARGUMENTS];
	char		nulls[AQ_CALL_ARGUMENTS];

	if (nargs > AQ_CALL_ARGUMENTS)
		elog(ERROR, "too many arguments for a helper: %d", nargs);
	pgstat_report_activity(STATE_RUNNING, sql);
	for (int i = 0; i < nargs; i++)
	{
		bool		isnull;

		types[i] = aq_wire_get_oid(request);
		values[i] = aq_wire_get_datum(request, &isnull);
		nulls[i] = isnull ? 'n' : ' ';
	}
	if (SPI_execute_plan(plan_for(sql, nargs, types), values, nulls, false, 0) != SPI_OK_SELECT)
		elog(ERROR, "a statement with immediate visibility did not return rows");
	put_rows(answer);
}

/* Takes over the caller's session state, in the transaction for the call. */
static void
take_over_session(const char **request)
{
	Oid			user = aq_wire_get_oid(request);
	int64		identity;
	int			number;

	aq_wire_get(request, &identity, sizeof(identity));
	number = aq_wire_get_int(request);
	aq_schema_act_for(identity, number);
	/* in force until after the commit's deferred triggers */
	SetUserIdAndSecContext(user, SECURITY_LOCAL_USERID_CHANGE);
	for (int i = 0; i < aq_autonomous_nsettings; i++)
		set_option(aq_autonomous_settings[i], aq_wire_get_string(request));
	aq_autonomous_carried->read(request);
}

/* Adds a copy of the answer to the request, before the commit, because it may fail. */
static void
share_answer(AqRequest *request, const StringInfoData *answer)
{
	dsa_area   *memory = aq_helper_area_memory();

	if (DsaPointerIsValid(request->answer))
		dsa_free(memory, request->answer);
	request->answer = InvalidDsaPointer;
	request->answer = dsa_allocate(memory, answer->len);
	memcpy(dsa_get_address(memory, request->answer), answer->data, answer->len);
}

/* Executes the request and commits. */
static void
execute(AqRequest *request, StringInfo answer)
{
	const char *data = request->data;

	aq_point("helper-began");
	SetCurrentStatementStartTimestamp();
	StartTransactionCommand();
	take_over_session(&data);
	PushActiveSnapshot(GetTransactionSnapshot());
	SPI_connect();
	execute_statement(&data, answer);
	SPI_finish();
	PopActiveSnapshot();
	aq_autonomous_carried->write(answer);
	share_answer(request, answer);
	aq_point("helper-executed");
	CommitTransactionCommand();
	/*
	 * no interrupt was served after the commit record was written, so the
	 * commit is always recorded
	 */
	HOLD_INTERRUPTS();
	request->commit_end = XactLastCommitEnd;
	pg_write_barrier();
	pg_atomic_write_u32(&request->phase, AQ_CALL_COMMITTED);
	aq_point_held("helper-committed");
	RESUME_INTERRUPTS();
}

/*
 * Adds the consumer that has no room to the answer, so that the caller can
 * wait for it.
 */
static void
put_refusal(StringInfo answer, int sqlstate)
{
	int32		queue_id;
	int			position;

	aq_flow_refused(&queue_id, &position);
	if (!aq_error_is(sqlstate, AQ_ERR_FLOW_CONTROL) && !aq_error_is(sqlstate, AQ_ERR_QUEUE_FULL))
		queue_id = 0;
	aq_wire_put_int(answer, queue_id);
	aq_wire_put_int(answer, position);
}

static void
put_error(StringInfo answer, const ErrorData *error)
{
	resetStringInfo(answer);
	appendStringInfoChar(answer, AQ_ANSWER_ERROR);
	aq_wire_put_int(answer, error->sqlerrcode);
	aq_wire_put_string(answer, error->message);
	aq_wire_put_string(answer, error->detail);
	aq_wire_put_string(answer, error->hint);
	put_refusal(answer, error->sqlerrcode);
}

/* Executes the request; the answer is the rows or an error. */
static void
answer_request(AqRequest *request, MemoryContext context)
{
	StringInfoData answer;

	initStringInfo(&answer);
	appendStringInfoChar(&answer, AQ_ANSWER_ROWS);
	PG_TRY();
	{
		pg_atomic_write_u32(&request->phase, AQ_CALL_BEGUN);
		execute(request, &answer);
	}
	PG_CATCH();
	{
		ErrorData  *error;

		MemoryContextSwitchTo(context);
		error = CopyErrorData();
		FlushErrorState();
		AbortCurrentTransaction();
		put_error(&answer, error);
		aq_autonomous_carried->write(&answer);
		share_answer(request, &answer);
	}
	PG_END_TRY();
	MemoryContextSwitchTo(context);
	SetUserIdAndSecContext(GetSessionUserId(), 0);
}

/* --- between two calls --------------------------------------------------------------------- */

/*
 * Does the same as DISCARD ALL, except that plans are kept.  An error ends the
 * process.
 */
void
aq_helper_forget_call(void)
{
	MemoryContext context = CurrentMemoryContext;

	QueryCancelPending = false;
	HOLD_CANCEL_INTERRUPTS();
	StartTransactionCommand();
	PushActiveSnapshot(GetTransactionSnapshot());
	PortalHashTableDeleteAll();
	DropAllPreparedStatements();
	ResetTempTableNamespace();
	ResetSequenceCaches();
	LockReleaseAll(USER_LOCKMETHOD, true);
	ResetAllOptions();
	PopActiveSnapshot();
	CommitTransactionCommand();
	RESUME_CANCEL_INTERRUPTS();
	QueryCancelPending = false;
	aq_schema_act_for(0, 0);
	aq_autonomous_carried->forget();
	MemoryContextSwitchTo(context);
	pgstat_report_stat(false);
	pgstat_report_activity(STATE_IDLE, NULL);
}

static void
serve(void)
{
	MemoryContext context = AllocSetContextCreate(TopMemoryContext, "pgaq helper", ALLOCSET_DEFAULT_SIZES);
	dsa_pointer request;

	pgstat_report_activity(STATE_IDLE, NULL);
	aq_point_held("helper-next");
	while (aq_helper_pool_next(&request))
	{
		/*
		 * a helper that must end does so before it begins, so that the caller
		 * can use another one
		 */
		if (ProcDiePending)
			CHECK_FOR_INTERRUPTS();
		MemoryContextReset(context);
		MemoryContextSwitchTo(context);
		answer_request(dsa_get_address(aq_helper_area_memory(), request), context);
		aq_helper_pool_answers();
		aq_point_held("helper-answered");
		aq_helper_forget_call();
		aq_point_held("helper-next");
	}
}

/* --- the process ------------------------------------------------------------------------------ */

static void
helper_exit(int code, Datum arg)
{
	aq_helper_pool_exit();
}

/* Sets another session user than the login user, as a superuser can. */
static void
set_session_user(const AqHelperKey *key)
{
	if (key->session == key->login)
		return;
	StartTransactionCommand();
	SetSessionAuthorization(key->session, superuser_arg(key->session));
	CommitTransactionCommand();
}

void
aq_helper_main(Datum arg)
{
	AqHelperKey key;
	uint32		serial;

	/* connecting may wait for a lock, so SIGTERM ends the process at once */
	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	pqsignal(SIGTERM, die);
	BackgroundWorkerUnblockSignals();
	aq_session_attach();

	memcpy(&serial, MyBgworkerEntry->bgw_extra, sizeof(serial));
	if (!aq_helper_pool_enter(DatumGetInt32(arg), serial, &key))
		proc_exit(0);
	before_shmem_exit(helper_exit, (Datum) 0);
	BackgroundWorkerInitializeConnectionByOid(key.database, key.login, 0);
	set_session_user(&key);
	aq_process_set_parameters("pgaq helper");
	aq_process_set_parameter("lock_timeout", LOCK_TIMEOUT);
	/* the caller waits for the flush, and for room */
	aq_process_set_parameter("synchronous_commit", "off");
	aq_flow_help();
	aq_helper_pool_connected();
	serve();
	proc_exit(0);
}
