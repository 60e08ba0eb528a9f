/*-------------------------------------------------------------------------
 *
 * immediate.c
 *	  Calls with immediate visibility: by which process they are executed.
 *
 * aq.enqueue, aq.enqueue_array, aq.dequeue and the procedures of dbms_aq ask
 * here.
 *
 *	- A CALL that is all that its transaction does is executed by the session
 *	  itself, which commits before the procedure returns.  No other work is
 *	  committed with it, and what its client gets is committed.
 *	- All others are executed by a helper (autonomous.c), as a statement with the
 *	  call's own arguments.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "queue/calls/calls_private.h"

#include "access/xact.h"
#include "executor/spi.h"
#include "lib/stringinfo.h"
#include "nodes/parsenodes.h"

/* Argument "visibility" of a function of schema aq: is it immediate? */
bool
aq_immediate_argument(FunctionCallInfo fcinfo, int arg)
{
	char	   *visibility = aq_args_name_or_null(fcinfo, arg, "visibility");

	if (visibility == NULL || strcmp(visibility, "on_commit") == 0)
		return false;
	if (strcmp(visibility, "immediate") == 0)
		return true;
	ereport(ERROR,
			aq_error(AQ_ERR_OPTION_INVALID, "visibility \"%s\" does not exist", visibility),
			errhint("The visibilities are on_commit and immediate."));
}

/*
 * Executes a statement in a helper.  Its parameters are the first nargs
 * arguments of the call.  emit gets ncolumns columns of each row.
 */
void
aq_immediate_rows(FunctionCallInfo fcinfo, const char *sql, int nargs, int ncolumns, AqEmitColumns emit, void *arg)
{
	Oid			types[AQ_CALL_ARGUMENTS];
	Datum		values[AQ_CALL_ARGUMENTS];
	char		nulls[AQ_CALL_ARGUMENTS];

	Assert(nargs <= AQ_CALL_ARGUMENTS);
	for (int i = 0; i < nargs; i++)
	{
		types[i] = get_fn_expr_argtype(fcinfo->flinfo, i);
		values[i] = PG_GETARG_DATUM(i);
		nulls[i] = PG_ARGISNULL(i) ? 'n' : ' ';
	}
	aq_autonomous_rows(sql, nargs, types, values, nulls, ncolumns, emit, arg);
}

/*
 * Is the CALL all that its transaction does, so that the procedure may commit it?
 *
 * A procedure's context is atomic inside a transaction block, which the
 * statements of one query string are, too; in a function, a DO block of which or
 * a procedure with SET or SECURITY DEFINER; and in whatever a server process
 * executes together.  IsInTransactionBlock() also finds an earlier statement of
 * a pipeline.  A CALL of a procedural language, which may have done something
 * before, is inside a non-atomic connection of SPI.  What remains before the
 * procedure is the evaluation of its arguments: if that has written, it must not
 * be committed here.
 */
bool
aq_immediate_is_alone(FunctionCallInfo fcinfo)
{
	return fcinfo->context != NULL && IsA(fcinfo->context, CallContext) &&
		!castNode(CallContext, fcinfo->context)->atomic &&
		!SPI_inside_nonatomic_context() &&
		!IsInTransactionBlock(true) &&
		!TransactionIdIsValid(GetTopTransactionIdIfAny());
}

/*
 * Commits the call, which is alone; what it returns must not need a snapshot.
 * Not for the client's sake, whose statement ends with a commit anyway: it may
 * fetch the row first, and continue its pipeline.
 */
void
aq_immediate_commit(void)
{
	aq_stat_add(AQ_STAT_IMMEDIATE, 1);
	SPI_connect_ext(SPI_OPT_NONATOMIC);
	SPI_commit();
	SPI_finish();
}

typedef struct Row
{
	int			ncolumns;
	Datum	   *values;
	bool	   *nulls;
	int			n;
} Row;

static void
keep_row(void *arg, Datum *values, bool *nulls)
{
	Row		   *row = arg;

	memcpy(row->values, values, row->ncolumns * sizeof(Datum));
	memcpy(row->nulls, nulls, row->ncolumns * sizeof(bool));
	row->n++;
}

/* The same for a statement that returns one row. */
void
aq_immediate_row(FunctionCallInfo fcinfo, const char *sql, int nargs, int ncolumns, Datum *values, bool *nulls)
{
	Row			row = {.ncolumns = ncolumns,.values = values,.nulls = nulls};

	aq_immediate_rows(fcinfo, sql, nargs, ncolumns, keep_row, &row);
	if (row.n != 1)
		elog(ERROR, "a statement with immediate visibility returned %d rows", row.n);
}

/* The result of a function of the call's first nargs arguments. */
Datum
aq_immediate_value(FunctionCallInfo fcinfo, const char *function, int nargs)
{
	StringInfoData sql;
	Datum		value;

	initStringInfo(&sql);
	appendStringInfo(&sql, "SELECT %s(", function);
	for (int i = 1; i <= nargs; i++)
		appendStringInfo(&sql, "%s$%d", i == 1 ? "" : ", ", i);
	appendStringInfoChar(&sql, ')');
	aq_immediate_row(fcinfo, sql.data, nargs, 1, &value, &fcinfo->isnull);
	return value;
}
