/*-------------------------------------------------------------------------
 *
 * schedule_row.c
 *	  The rows of aq_internal.schedule, read and written as the owner of the
 *	  extension.
 *
 * A row is the only truth about a schedule.  It says which time is next, and
 * the transaction that enqueues the message of that time changes it.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "schedule/schedule_private.h"

#include "access/htup_details.h"
#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "utils/builtins.h"
#include "utils/datum.h"
#include "utils/timestamp.h"

#define DUE_TIME "GREATEST(s.next_run, s.retry_at)"
#define DUE "NOT s.paused AND NOT s.disabled AND s.next_run IS NOT NULL AND " DUE_TIME " <= clock_timestamp()"

/* as many of each role as the scheduler reads at once */
#define MAX_DUE 100

#define COLUMNS "s.schedule_name, s.queue_id, q.queue_name, s.owner, s.payload, s.options, s.cron, s.every, " \
	"s.time_zone, s.catch_up, s.start_at, s.until, s.next_run, s.failures, s.schedule_id " \
	"FROM aq_internal.schedule s JOIN aq_internal.queue q USING (queue_id) "

/* --- reading ------------------------------------------------------------------------ */

/* Column n of the row that SPI has read; copied into the context. */
static Datum
column(int n, MemoryContext context, bool *isnull)
{
	HeapTuple	tuple = SPI_tuptable->vals[0];
	TupleDesc	desc = SPI_tuptable->tupdesc;
	Datum		value = SPI_getbinval(tuple, desc, n, isnull);
	Form_pg_attribute attribute = TupleDescAttr(desc, n - 1);
	MemoryContext old;

	if (*isnull)
		return (Datum) 0;
	old = MemoryContextSwitchTo(context);
	if (attribute->attlen == -1)
		value = PointerGetDatum(PG_DETOAST_DATUM_COPY(value));
	else
		value = datumCopy(value, attribute->attbyval, attribute->attlen);
	MemoryContextSwitchTo(old);
	return value;
}

static void *
pointer_column(int n, MemoryContext context)
{
	bool		isnull;
	Datum		value = column(n, context, &isnull);

	return isnull ? NULL : DatumGetPointer(value);
}

static char *
text_column(int n, MemoryContext context)
{
	char	   *text = SPI_getvalue(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, n);

	return text == NULL ? NULL : MemoryContextStrdup(context, text);
}

static TimestampTz
time_column(int n, MemoryContext context)
{
	bool		isnull;
	Datum		value = column(n, context, &isnull);

	return isnull ? DT_NOEND : DatumGetTimestampTz(value);
}

static AqSchedule *
make_schedule(MemoryContext context)
{
	AqSchedule *s = MemoryContextAllocZero(context, sizeof(AqSchedule));
	bool		isnull;

	s->name = text_column(1, context);
	s->queue_id = DatumGetInt32(column(2, context, &isnull));
	s->queue = text_column(3, context);
	s->owner = DatumGetObjectId(column(4, context, &isnull));
	s->payload = pointer_column(5, context);
	s->options = pointer_column(6, context);
	s->timing.cron = text_column(7, context);
	s->timing.every = pointer_column(8, context);
	s->timing.zone_name = text_column(9, context);
	s->catch_up = text_column(10, context);
	s->timing.start = time_column(11, context);
	s->timing.until = time_column(12, context);
	s->next_run = time_column(13, context);
	s->failures = DatumGetInt32(column(14, context, &isnull));
	s->id = DatumGetInt64(column(15, context, &isnull));
	return s;
}

/* which: the condition, with one parameter.  NULL: there is no such row. */
static AqSchedule *
read_one(const char *which, Oid type, Datum value)
{
	MemoryContext context = CurrentMemoryContext;
	AqSchedule *schedule = NULL;

	if (aq_sql_run(psprintf("SELECT " COLUMNS "WHERE %s", which), 1, &type, &value, NULL, true) > 0)
		schedule = make_schedule(context);
	SPI_finish();
	return schedule;
}

/* Reads the row.  A lock is held until the transaction ends.  NULL: there is no such row. */
AqSchedule *
aq_schedule_row_read(const char *name, AqScheduleLock lock)
{
	static const char *const conditions[] = {
		[AQ_SCHEDULE_NO_LOCK] = "s.schedule_name = $1",
		[AQ_SCHEDULE_WAIT] = "s.schedule_name = $1 FOR UPDATE OF s",
		[AQ_SCHEDULE_IF_DUE] = "s.schedule_name = $1 AND " DUE " FOR UPDATE OF s SKIP LOCKED"
	};

	return read_one(conditions[lock], TEXTOID, CStringGetTextDatum(name));
}

/* The schedule with this number; NULL: none. */
AqSchedule *
aq_schedule_row_find(int64 id)
{
	return read_one("s.schedule_id = $1", INT8OID, Int64GetDatum(id));
}

static Datum
names_array(List *names)
{
	Datum	   *values = palloc((list_length(names) + 1) * sizeof(Datum));
	int			n = 0;
	ListCell   *lc;

	foreach(lc, names)
		values[n++] = CStringGetTextDatum(lfirst(lc));
	return PointerGetDatum(construct_array(values, n, TEXTOID, -1, false, TYPALIGN_INT));
}

/* Schedules that are due, in the order of their times, but for those that are passed over; NIL: there are no more. */
List *
aq_schedule_row_due(List *passed_over)
{
	Oid			type = TEXTARRAYOID;
	Datum		value = names_array(passed_over);
	MemoryContext context = CurrentMemoryContext;
	List	   *due = NIL;

	aq_sql_run(psprintf("SELECT schedule_name, owner, id FROM (SELECT s.schedule_name, s.owner::oid, s.schedule_id, " DUE_TIME ", "
						"row_number() OVER (PARTITION BY s.owner::oid ORDER BY " DUE_TIME ", s.schedule_name) "
						"FROM aq_internal.schedule s WHERE " DUE " AND s.schedule_name <> ALL ($1)) d(schedule_name, owner, id, time, n) "
						"WHERE n <= %d ORDER BY time, schedule_name", MAX_DUE),
			   1, &type, &value, NULL, true);
	for (uint64 i = 0; i < SPI_processed; i++)
	{
		AqScheduleDue *one = MemoryContextAlloc(context, sizeof(AqScheduleDue));
		HeapTuple	row = SPI_tuptable->vals[i];
		MemoryContext spi = MemoryContextSwitchTo(context);
		bool		isnull;

		one->name = TextDatumGetCString(SPI_getbinval(row, SPI_tuptable->tupdesc, 1, &isnull));
		one->owner = DatumGetObjectId(SPI_getbinval(row, SPI_tuptable->tupdesc, 2, &isnull));
		one->id = DatumGetInt64(SPI_getbinval(row, SPI_tuptable->tupdesc, 3, &isnull));
		one->number = (int) i;
		due = lappend(due, one);
		MemoryContextSwitchTo(spi);
	}
	SPI_finish();
	return due;
}

/* --- writing ------------------------------------------------------------------------- */

/* The messages were enqueued by this transaction. */
void
aq_schedule_row_ran(const AqSchedule *schedule, int messages, TimestampTz next_run)
{
	Oid			types[] = {TEXTOID, TIMESTAMPTZOID, INT4OID};
	Datum		values[] = {CStringGetTextDatum(schedule->name), TimestampTzGetDatum(next_run), Int32GetDatum(messages)};
	char		nulls[] = {' ', next_run == DT_NOEND ? 'n' : ' ', ' ', '\0'};

	aq_sql_run("UPDATE aq_internal.schedule SET next_run = $2, retry_at = NULL, failures = 0, runs = runs + $3, "
			   "last_run = CASE WHEN $3 > 0 THEN clock_timestamp() ELSE last_run END WHERE schedule_name = $1",
			   lengthof(types), types, values, nulls, false);
}

/*
 * Records a failure, unless the schedule has been changed since it was read, or
 * is locked.  Returns false if it has been, or is.
 */
bool
aq_schedule_row_failed(const AqSchedule *schedule, const char *error, int64 pause, bool disable)
{
	Oid			types[] = {TEXTOID, TEXTOID, TIMESTAMPTZOID, BOOLOID, TIMESTAMPTZOID, INT4OID};
	Datum		values[] = {CStringGetTextDatum(schedule->name), CStringGetTextDatum(error),
		TimestampTzGetDatum(GetCurrentTimestamp() + pause), BoolGetDatum(disable),
		TimestampTzGetDatum(schedule->next_run), Int32GetDatum(schedule->failures)};
	bool		found;

	aq_sql_run("UPDATE aq_internal.schedule SET failures = failures + 1, last_error = $2, error_time = clock_timestamp(), "
			   "retry_at = $3, disabled = $4 "
			   "WHERE schedule_name = (SELECT schedule_name FROM aq_internal.schedule WHERE schedule_name = $1 FOR UPDATE SKIP LOCKED) "
			   "AND next_run = $5 AND failures = $6 RETURNING 1",
			   lengthof(types), types, values, NULL, true);
	found = SPI_processed > 0;
	SPI_finish();
	return found;
}

/* --- of queues that are dropped, and of roles ------------------------------------------ */

void
aq_schedule_row_init(void)
{
	static const AqQueueRows rows = {.table = "schedule", .role = "owner"};

	aq_definition_add_rows(&rows);
}
