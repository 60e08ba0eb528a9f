/*-------------------------------------------------------------------------
 *
 * node_views.c
 *	  The functions under aq.nodes and aq.node_units.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "node/node_private.h"

#include "access/xlog.h"
#include "catalog/pg_authid.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/timestamp.h"

/* an error of a queue is over when it has not occurred again for this time, milliseconds; longer than LONGEST_PAUSE of node_forward.c */
#define QUEUE_ERROR_MS 15000

static const char *
state_of(const AqNodeState *state, TimestampTz now)
{
	if (state->refused)
		return "refused";
	if (state->answered != 0 && !TimestampDifferenceExceeds(state->answered, now, aq_node_settings_timeout))
		return "reachable";
	if (state->answered == 0 && state->failures == 0 && !TimestampDifferenceExceeds(state->since, now, aq_node_settings_timeout))
		return "unknown";
	return "unreachable";
}

/*
 * The state of a node: state, last answer, when the identity was contested,
 * latency, failures, mutual, protocol, version, and of the latest error: time,
 * SQLSTATE, message and hint.  Only members of pg_monitor see the last two.
 */
AQ_ROWS(aq_node_views_state)
{
	AqNodeState state;
	bool		sees = has_privs_of_role(GetUserId(), ROLE_PG_MONITOR);
	bool		known;

	if (PG_ARGISNULL(0) || !aq_node_area_copy(PG_GETARG_INT32(0), &state))
		return;
	known = state.answered != 0;
	aq_rows_text(row, state_of(&state, GetCurrentTimestamp()));
	aq_rows_time(row, state.answered);
	aq_rows_time(row, state.contested);
	aq_rows_number_if(row, known, state.latency_us);
	aq_rows_int(row, state.failures);
	aq_rows_put_if(row, known, BoolGetDatum(state.mutual));
	aq_rows_int_if(row, known, state.protocol);
	aq_rows_text(row, known ? state.version : NULL);
	aq_rows_time(row, state.error_time);
	aq_rows_text(row, state.error_time != 0 ? unpack_sql_state(state.sqlstate) : NULL);
	aq_rows_text(row, state.error_time != 0 && sees ? state.message : NULL);
	aq_rows_text(row, state.error_time != 0 && sees && state.hint[0] != '\0' ? state.hint : NULL);
	aq_rows_number(row, state.forwarded);
	aq_rows_number(row, state.batches);
	aq_rows_number(row, state.reported);
	aq_rows_number(row, state.granted);
	aq_rows_number(row, state.returned);
	if (TimestampDifferenceExceeds(state.queue_error_time, GetCurrentTimestamp(), QUEUE_ERROR_MS))
		state.queue_error_time = 0;
	aq_rows_text(row, state.queue_error_time != 0 && sees ? state.queue_error : NULL);
	aq_rows_time(row, state.queue_error_time);
	aq_rows_end(row);
}

/*
 * The numbers of leased and ready messages of a consumer in a shard.  The view has
 * checked the role's privileges.
 */
AQ_ROWS(aq_node_views_unit)
{
	AqQueue    *queue = aq_catalog_get_by_id(PG_GETARG_INT32(0), true);
	int			shard = PG_GETARG_INT32(1);
	int			position = queue != NULL ? aq_node_unit_position(queue, PG_GETARG_INT64(2)) : -1;
	AqPeek		peek;

	if (position < 0 || queue->store->units == NULL || RecoveryInProgress() || !aq_pins_peek(queue, &peek))
		return;
	aq_rows_number(row, queue->store->units->count_lent(queue, shard, position));
	aq_rows_number(row, queue->store->units->count_ready(queue, shard, position));
	aq_rows_end(row);
	aq_pins_peek_end(&peek);
}

/* One row about this server: system identifier, database, timeline, start. */
AQ_ROWS(aq_node_views_own)
{
	bool		standby = RecoveryInProgress();

	aq_rows_number(row, (int64) GetSystemIdentifier());
	aq_rows_put(row, ObjectIdGetDatum(MyDatabaseId));
	aq_rows_number_if(row, !standby, standby ? 0 : (int64) GetWALInsertionTimeLine());
	aq_rows_time(row, PgStartTime);
	aq_rows_end(row);
}
