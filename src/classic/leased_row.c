/*-------------------------------------------------------------------------
 *
 * leased_row.c
 *	  Rows of a queue table that are leased.
 *
 * A lease is a committed row in STATE_LEASED: its receipt, its end (the time of
 * the next action), its holder.  It is taken by an update instead of a deletion,
 * and everything else that happens to it is an update or the deletion of that
 * row.  So rollback, restart and prepared transactions need nothing more, and the
 * row's lock keeps the worker from ending the lease while a transaction that has
 * acknowledged it is open or in doubt.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "classic/classic_private.h"

#include "access/xlog.h"
#include "utils/builtins.h"
#include "utils/guc.h"

/* as in the log of a sharded queue */
#define DETAIL_SIZE 600

/*
 * A receipt from the lowest bit up: AQ_RECEIPT_ALONE, some of the timeline, a number
 * that follows the clock in units of 16 microseconds.  It stays below 2^53, as a
 * sharded queue's, until the year 2071.
 */
#define TIMELINE_BITS 5
#define NUMBER_SHIFT (1 + TIMELINE_BITS)
#define CLOCK_SHIFT 4

/* --- receipts ---------------------------------------------------------------------------- */

/*
 * A receipt for the messages of one call, greater than this one, without
 * AQ_RECEIPT_ALONE.  The timeline is for a standby that takes over with another
 * clock, and has not replayed all receipts.
 */
int64
aq_leased_row_receipt(AqQueueShm *shm, int64 after)
{
	pg_atomic_uint64 *latest = &classic_queue(shm)->receipt;
	uint64		timeline = GetWALInsertionTimeLine() & ((1 << TIMELINE_BITS) - 1);
	uint64		lowest = Max((uint64) GetCurrentTimestamp() >> CLOCK_SHIFT, ((uint64) after >> NUMBER_SHIFT) + 1);
	uint64		last = pg_atomic_read_u64(latest);
	uint64		number;

	do
		number = Max(last + 1, lowest);
	while (!pg_atomic_compare_exchange_u64(latest, &last, number));
	return (int64) (number << NUMBER_SHIFT | timeline << 1);
}

/* The latest receipt that was given for the row, whose lease may have ended; 0: none. */
int64
aq_leased_row_latest_receipt(TupleTableSlot *slot)
{
	slot_getsomeattrs(slot, COL_RECEIPT + 1);
	return slot->tts_isnull[COL_RECEIPT] ? 0 : DatumGetInt64(slot->tts_values[COL_RECEIPT]);
}

/*
 * Have there been too many attempts, of which the latest is this lease, without
 * other messages?
 */
bool
aq_leased_row_over_limit(const AqQueue *queue, TupleTableSlot *slot)
{
	return ((aq_leased_row_latest_receipt(slot) & AQ_RECEIPT_ALONE) != 0 || queue->table.grouping) &&
		aq_failure_over_limit(queue, aq_failure_attempts(queue, slot));
}

/* --- changes ----------------------------------------------------------------------------- */

static Datum
clipped(const char *value)
{
	return PointerGetDatum(cstring_to_text_with_len(value, aq_clip_length(value, strlen(value), DETAIL_SIZE)));
}

static bool
is_first_attempt(TupleTableSlot *slot)
{
	slot_getsomeattrs(slot, COL_FIRST_ATTEMPT + 1);
	return slot->tts_isnull[COL_FIRST_ATTEMPT];
}

TM_Result
aq_leased_row_take(const AqQueue *queue, RowScan *rows, int64 lease, int64 receipt)
{
	const int	columns[] = {COL_STATE, COL_NEXT_AT, COL_ATTEMPTS, COL_RECEIPT, COL_LEASED_AT, COL_HOLDER,
		COL_LAST_ATTEMPT, COL_FIRST_ATTEMPT};
	TimestampTz now = GetCurrentTimestamp();
	bool		named = application_name != NULL && *application_name != '\0';
	Datum		values[] = {Int16GetDatum(STATE_LEASED), TimestampTzGetDatum(now + lease),
		Int32GetDatum(DatumGetInt32(rows->slot->tts_values[COL_ATTEMPTS]) + 1), Int64GetDatum(receipt),
		TimestampTzGetDatum(now), named ? clipped(application_name) : (Datum) 0, TimestampTzGetDatum(now),
		TimestampTzGetDatum(now)};
	const bool	nulls[] = {false, false, false, false, false, !named, false, false};
	TM_Result	result = aq_table_row_update(rows->rel, rows->slot, columns, values, nulls,
											 lengthof(columns) - !is_first_attempt(rows->slot));

	if (result == TM_Ok)
		aq_due_time_announce(queue->shm, now + lease);
	return result;
}

/* The lease ends at this time at the earliest. */
TM_Result
aq_leased_row_extend(const AqQueue *queue, RowScan *rows, TimestampTz until)
{
	const int	columns[] = {COL_NEXT_AT};
	TimestampTz before = DatumGetTimestampTz(rows->slot->tts_values[COL_NEXT_AT]);
	Datum		values[] = {TimestampTzGetDatum(Max(before, until))};
	TM_Result	result = aq_table_row_update(rows->rel, rows->slot, columns, values, NULL, lengthof(columns));

	if (result != TM_Ok)
		return result;
	/* before the commit: see classic_lease.c */
	pg_atomic_fetch_add_u64(&classic_queue(queue->shm)->extensions, 1);
	aq_due_time_announce(queue->shm, Max(before, until));
	return TM_Ok;
}

/* kind: AQ_DEATH_*, if the state is STATE_FAILED. */
static TM_Result
end_lease(RowScan *rows, int state, TimestampTz next_at, int attempts, char kind, const char *error)
{
	const int	columns[] = {COL_STATE, COL_NEXT_AT, COL_ATTEMPTS, COL_LEASED_AT, COL_HOLDER, COL_DIED, COL_DEATH, COL_LAST_ERROR};
	Datum		values[] = {Int16GetDatum(state), TimestampTzGetDatum(next_at), Int32GetDatum(attempts), 0, 0,
		TimestampTzGetDatum(next_at), CharGetDatum(kind), error != NULL ? clipped(error) : (Datum) 0};
	const bool	alive = state != STATE_FAILED;
	const bool	nulls[] = {false, next_at == 0, false, true, true, alive, alive, false};

	return aq_table_row_update(rows->rel, rows->slot, columns, values, nulls,
							   error != NULL ? lengthof(columns) : lengthof(columns) - 1);
}

/* The worker moves it to the exception queue, or drops it. */
TM_Result
aq_leased_row_fail(const AqQueue *queue, RowScan *rows, char kind, int attempts, TimestampTz now, const char *error)
{
	TM_Result	result = end_lease(rows, STATE_FAILED, now, attempts, kind, error);

	if (result == TM_Ok)
		aq_due_time_announce(queue->shm, now);
	return result;
}

static TimestampTz
time_of(TupleTableSlot *message, int column)
{
	slot_getsomeattrs(message, column + 1);
	return message->tts_isnull[column] ? 0 : DatumGetTimestampTz(message->tts_values[column]);
}

/* The state of the row when it is ready; *expires: when it expires then, 0: never. */
int
aq_leased_row_ready(const AqQueue *queue, TupleTableSlot *message, TimestampTz *expires)
{
	*expires = time_of(message, COL_EXPIRES_AT);
	return queue->exception ? STATE_EXPIRED : STATE_READY;
}

/*
 * Ends a lease: the row is ready at its position, or waits until this time, or
 * until the delay of the message has ended.  message: the slot with the row of
 * table t.  Sets *ready.
 */
TM_Result
aq_leased_row_give_back(const AqQueue *queue, RowScan *rows, TupleTableSlot *message, int attempts,
						TimestampTz until, const char *error, bool *ready)
{
	TimestampTz next_at;
	int			state = aq_leased_row_ready(queue, message, &next_at);
	TM_Result	result;

	until = Max(until, time_of(message, COL_READY_AT));
	*ready = until <= GetCurrentTimestamp();
	if (!*ready)
	{
		state = STATE_WAITING;
		next_at = until;
	}
	result = end_lease(rows, state, next_at, attempts, 0, error);
	if (result == TM_Ok && next_at != 0)
		aq_due_time_announce(queue->shm, next_at);
	return result;
}
