/*-------------------------------------------------------------------------
 *
 * link_test.c
 *	  A kind of streams for tests, in builds with test points only: it sends what
 *	  a table says, and records the result.
 *
 * A test creates the tables, and grants them to role pgaq:
 *
 *		link_test.stream (key bigint, server oid, role oid)
 *		link_test.request (id bigserial, key bigint, sql text, outcome text)
 *		link_test.failure (key bigint, phase int, sqlstate text, message text)
 *
 * outcome is null until the answer has come.  aq.link_test_wake() and
 * aq.link_test_changed() in sql/test_points.sql announce new rows, after the
 * commit.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "link/link_private.h"

#ifdef AQ_TEST_POINTS

#include "catalog/namespace.h"
#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "fmgr.h"
#include "utils/builtins.h"
#include "utils/elog.h"

/* Runs a statement with up to three parameters: the key, and two texts. */
static void
execute(const char *sql, int nargs, int64 key, const char *first, const char *second)
{
	Oid			types[3] = {INT8OID, TEXTOID, TEXTOID};
	Datum		values[3] = {Int64GetDatum(key)};
	char		nulls[3] = {' ', ' ', ' '};

	values[1] = first != NULL ? CStringGetTextDatum(first) : (Datum) 0;
	values[2] = second != NULL ? CStringGetTextDatum(second) : (Datum) 0;
	nulls[1] = first != NULL ? ' ' : 'n';
	nulls[2] = second != NULL ? ' ' : 'n';
	if (SPI_execute_with_args(sql, nargs, types, values, nulls, false, 0) < 0)
		elog(ERROR, "a statement of the tests of links failed: %s", sql);
}

static bool
exist(void)
{
	bool		found;

	if (!OidIsValid(get_namespace_oid("link_test", true)))
		return false;
	SPI_connect();
	execute("SELECT FROM link_test.stream", 0, 0, NULL, NULL);
	found = SPI_processed > 0;
	SPI_finish();
	return found;
}

static void
test_list(void)
{
	if (!OidIsValid(get_namespace_oid("link_test", true)))
		return;
	SPI_connect();
	execute("SELECT key, server, role FROM link_test.stream", 0, 0, NULL, NULL);
	for (uint64 i = 0; i < SPI_processed; i++)
	{
		HeapTuple	tuple = SPI_tuptable->vals[i];
		TupleDesc	desc = SPI_tuptable->tupdesc;
		bool		isnull;

		(void) aq_link_add(DatumGetInt64(SPI_getbinval(tuple, desc, 1, &isnull)),
						   DatumGetObjectId(SPI_getbinval(tuple, desc, 2, &isnull)),
						   DatumGetObjectId(SPI_getbinval(tuple, desc, 3, &isnull)));
	}
	SPI_finish();
}

static bool
test_next(AqLinkStream *stream, AqLinkRequest *request, TimestampTz *again)
{
	MemoryContext context = CurrentMemoryContext;
	bool		found;

	SPI_connect();
	execute("SELECT sql FROM link_test.request WHERE key = $1 AND outcome IS NULL ORDER BY id LIMIT 1", 1, stream->key, NULL, NULL);
	found = SPI_processed > 0;
	if (found)
		request->sql = MemoryContextStrdup(context, SPI_getvalue(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1));
	SPI_finish();
	request->rows = 1;
	/* a text, or nothing at all */
	if (found && pg_strncasecmp(request->sql, "SELECT", 6) == 0)
		request->shape = (AqLinkShape) {.most_rows = 1, .ncolumns = 1, .columns = {{AQ_ANSWER_TEXT, .nullable = true, .most = AQ_LINK_MESSAGE}}};
	return found;
}

#define FINISH "UPDATE link_test.request SET outcome = $2 WHERE id = (SELECT min(id) FROM link_test.request WHERE key = $1 AND outcome IS NULL)"

static void
test_done(AqLinkStream *stream, const AqLinkAnswer *answer)
{
	SPI_connect();
	execute(FINISH, 2, stream->key, aq_link_answer_rows(answer) > 0 ? aq_link_answer_value(answer, 0, 0)->text : "done", NULL);
	SPI_finish();
}

static TimestampTz
test_failed(AqLinkStream *stream, const AqLinkFailure *failure)
{
	char	   *sqlstate = pstrdup(unpack_sql_state(failure->sqlstate));

	SPI_connect();
	execute(failure->phase == AQ_LINK_NOT_SENT ? "INSERT INTO link_test.failure VALUES ($1, 0, $2, $3)"
			: failure->phase == AQ_LINK_REFUSED ? "INSERT INTO link_test.failure VALUES ($1, 1, $2, $3)"
			: "INSERT INTO link_test.failure VALUES ($1, 2, $2, $3)", 3, stream->key, sqlstate, failure->message);
	if (failure->phase == AQ_LINK_REFUSED)
		execute(FINISH, 2, stream->key, sqlstate, NULL);
	SPI_finish();
	if (failure->phase == AQ_LINK_REFUSED)
		aq_link_wake_stream(stream);
	return 0;
}

const AqLinkKind aq_link_test_kind = {
	.name = "test",
	.exist = exist,
	.list = test_list,
	.next = test_next,
	.done = test_done,
	.failed = test_failed,
};

PG_FUNCTION_INFO_V1(aq_link_test_changed);
Datum
aq_link_test_changed(PG_FUNCTION_ARGS)
{
	aq_link_prepare();
	aq_link_changed();
	PG_RETURN_VOID();
}

PG_FUNCTION_INFO_V1(aq_link_test_wake);
Datum
aq_link_test_wake(PG_FUNCTION_ARGS)
{
	aq_link_prepare();
	aq_link_wake();
	PG_RETURN_VOID();
}

#endif
