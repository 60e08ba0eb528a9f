/*-------------------------------------------------------------------------
 *
 * trace_views.c
 *	  The functions under aq.traces, aq.trace, aq.trace_objects and
 *	  aq.trace_histogram.
 *
 * A running trace is read without stopping its session: each figure is exact,
 * but figures are not read at the same moment.  A trace can be seen by roles
 * that may trace its session; aq.traces leaves out the others.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "fmgr.h"
#include "miscadmin.h"
#include "sync/control/control_int.h"
#include "utils/timestamp.h"

static const char *const operations[] = {
#define X(id, name, text) name,
#include "sync/traces/trace_list.h"
#undef X
};

static const char *const actions[] = {"get", "release", "failed", "begin", "end", "timeout", "post"};
static const char *const modes[] = {"shared", "exclusive", "examine", "null"};
static const char *const measures[] = {"acquire", "hold", "both"};

static const char *const latches[] = {
#define X(id, name, level, event, children, text) name,
#include "sync/common/latch_list.h"
#undef X
};

static const bool has_children[] = {
#define X(id, name, level, event, children, text) children,
#include "sync/common/latch_list.h"
#undef X
};

static const char *const mutexes[] = {
#define X(id, name, event_x, event_s, text) name,
#include "sync/common/mutex_list.h"
#undef X
};

static const char *const events[] = {
#define X(id, name, class, p1, p2, p3, text) name,
#include "sync/common/event_list.h"
#undef X
};

static const char *const locations[] = {
	"",
#define X(id, name) name,
#include "sync/common/location_list.h"
#undef X
};

/*
 * Adds the object's name, its number if it has one, and its queue; of_class: of
 * all objects of its class.
 */
static void
add_object(AqRow *row, uint8 operation, uint16 number, uint32 child, uint32 database, uint32 queue, bool of_class)
{
	const char *name = NULL;
	bool		numbered = true;

	switch ((AqTraceOperation) operation)
	{
		case AQ_TRACE_LATCH:
			name = latches[number];
			numbered = has_children[number];
			if (!of_class)
				queue = aq_trace_queue_of(number, (int) child, &database);
			break;
		case AQ_TRACE_MUTEX:
			name = mutexes[number];
			break;
		case AQ_TRACE_WAIT:
			name = events[number];
			numbered = false;
			break;
		case AQ_TRACE_LOCK:
		case AQ_TRACE_PIN:
		case AQ_TRACE_PUBLISH:
			name = "queue";
			break;
		case AQ_TRACE_WAKEUP:
			name = "session";
			break;
		case AQ_TRACE_OPERATIONS:
			break;
	}
	aq_rows_text(row, operations[operation]);
	aq_rows_text(row, name);
	aq_rows_number_if(row, numbered && !of_class, child);
	aq_rows_int_if(row, queue != 0 && database == MyDatabaseId, queue);
}

static AqTrace *
begin(AqRow *out, FunctionCallInfo fcinfo, bool with_rows)
{
	int			pid = PG_ARGISNULL(0) ? MyProcPid : PG_GETARG_INT32(0);

	aq_rows_begin(out, fcinfo);
	return aq_trace_control_copy(pid, with_rows);
}

/*
 * Process id, role, role that started it, running, started, stopped, rows
 * written, rows lost, profiles, operations without a profile; then the
 * counters.
 */
PG_FUNCTION_INFO_V1(aq_trace_views_traces);
Datum
aq_trace_views_traces(PG_FUNCTION_ARGS)
{
	static const AqTraceOperation got[] = {AQ_TRACE_LOCK, AQ_TRACE_PIN, AQ_TRACE_LATCH, AQ_TRACE_MUTEX};
	AqTrace    *traces = palloc0((aq_trace_max + 1) * sizeof(AqTrace));
	bool		running[64];
	int			n;
	AqRow		out;

	aq_rows_begin(&out, fcinfo);
	n = aq_trace_control_copy_heads(traces, running);
	for (int i = 0; i < n; i++)
	{
		AqTrace    *trace = &traces[i];
		int64		written = (int64) pg_atomic_read_u64(&trace->written);

		if (!aq_trace_control_may_see(trace))
			continue;
		aq_rows_int(&out, trace->pid);
		aq_rows_put_if(&out, OidIsValid(trace->role), ObjectIdGetDatum(trace->role));
		aq_rows_put(&out, ObjectIdGetDatum(trace->started_by));
		aq_rows_bool(&out, running[i]);
		aq_rows_put(&out, TimestampTzGetDatum(trace->started));
		aq_rows_put_if(&out, trace->stopped != 0, TimestampTzGetDatum(trace->stopped));
		aq_rows_number(&out, written);
		aq_rows_number(&out, Max(written - aq_trace_rows, 0));
		aq_rows_number(&out, trace->nprofiles);
		aq_rows_number(&out, (int64) trace->unprofiled);
		for (int k = 0; k < lengthof(got); k++)
		{
			aq_rows_number(&out, (int64) trace->counts[got[k]][AQ_TRACE_GET]);
			aq_rows_number(&out, (int64) trace->counts[got[k]][AQ_TRACE_FREE]);
			if (got[k] == AQ_TRACE_LATCH || got[k] == AQ_TRACE_MUTEX)
				aq_rows_number(&out, (int64) trace->counts[got[k]][AQ_TRACE_FAIL]);
		}
		aq_rows_number(&out, (int64) (trace->counts[AQ_TRACE_WAIT][AQ_TRACE_END] +
									  trace->counts[AQ_TRACE_WAIT][AQ_TRACE_TIMEOUT]));
		aq_rows_number(&out, (int64) trace->counts[AQ_TRACE_WAIT][AQ_TRACE_TIMEOUT]);
		aq_rows_number(&out, (int64) trace->counts[AQ_TRACE_PUBLISH][AQ_TRACE_POST]);
		aq_rows_number(&out, (int64) trace->counts[AQ_TRACE_WAKEUP][AQ_TRACE_POST]);
		aq_rows_end(&out);
	}
	return (Datum) 0;
}

/*
 * Sequence, ns since the start, action; operation, object, its number, queue id;
 * location, mode, ns to get, ns held, P1 to P3.
 */
PG_FUNCTION_INFO_V1(aq_trace_views_rows);
Datum
aq_trace_views_rows(PG_FUNCTION_ARGS)
{
	AqRow		out;
	AqTrace    *trace = begin(&out, fcinfo, true);
	uint64		written = pg_atomic_read_u64(&trace->written);
	uint64		first = written > aq_trace_rows ? written - aq_trace_rows + 1 : 1;

	for (uint64 sequence = first; sequence <= written; sequence++)
	{
		AqTraceRow *row = &trace->rows[(sequence - 1) % aq_trace_rows];
		bool		waits = row->operation == AQ_TRACE_WAIT && row->action == AQ_TRACE_BEGIN;

		/* overwritten while it was copied */
		if (pg_atomic_read_u64(&row->sequence) != sequence)
			continue;
		aq_rows_number(&out, (int64) sequence);
		aq_rows_number(&out, row->at);
		aq_rows_text(&out, actions[row->action]);
		add_object(&out, row->operation, row->number, row->child, row->database, row->queue, false);
		aq_rows_text(&out, row->where != AQ_LOC_NONE ? locations[row->where] : NULL);
		aq_rows_text(&out, row->mode != AQ_TRACE_NO_MODE ? modes[row->mode] : NULL);
		aq_rows_number_if(&out, row->elapsed != AQ_TRACE_UNKNOWN, row->elapsed);
		aq_rows_number_if(&out, row->held != AQ_TRACE_UNKNOWN, row->held);
		for (int i = 0; i < 3; i++)
			aq_rows_number_if(&out, waits, (int64) row->p[i]);
		aq_rows_end(&out);
	}
	return (Datum) 0;
}

static void
add_profile(AqRow *row, const AqTraceProfile *profile)
{
	add_object(row, profile->operation, profile->number, profile->child, profile->database,
			   profile->queue, profile->of_class);
	aq_rows_text(row, profile->where != AQ_LOC_NONE ? locations[profile->where] : NULL);
}

/* Operation, object, number, queue id, location; gets, releases, failures; ns by measure. */
PG_FUNCTION_INFO_V1(aq_trace_views_objects);
Datum
aq_trace_views_objects(PG_FUNCTION_ARGS)
{
	AqRow		out;
	AqTrace    *trace = begin(&out, fcinfo, false);

	for (int i = 0; i < trace->nprofiles; i++)
	{
		AqTraceProfile *profile = &trace->profiles[i];

		add_profile(&out, profile);
		aq_rows_number(&out, (int64) profile->gets);
		aq_rows_number(&out, (int64) profile->releases);
		aq_rows_number(&out, (int64) profile->failures);
		aq_rows_number(&out, (int64) profile->ns[AQ_MEASURE_ACQUIRE]);
		aq_rows_number(&out, (int64) profile->ns[AQ_MEASURE_HOLD]);
		aq_rows_end(&out);
	}
	return (Datum) 0;
}

/* Operation, object, number, queue id, location; measure, lower bound in ns, count. */
PG_FUNCTION_INFO_V1(aq_trace_views_histogram);
Datum
aq_trace_views_histogram(PG_FUNCTION_ARGS)
{
	AqRow		out;
	AqTrace    *trace = begin(&out, fcinfo, false);

	for (int i = 0; i < trace->nprofiles; i++)
		for (int which = 0; which < AQ_MEASURES; which++)
			for (int bucket = 0; bucket < AQ_QUANTIZE_BUCKETS; bucket++)
			{
				uint64		count = trace->profiles[i].histogram[which][bucket];

				if (count == 0)
					continue;
				add_profile(&out, &trace->profiles[i]);
				aq_rows_text(&out, measures[which]);
				aq_rows_number(&out, bucket == 0 ? 0 : INT64CONST(1) << (bucket - 1));
				aq_rows_number(&out, (int64) count);
				aq_rows_end(&out);
			}
	return (Datum) 0;
}
