/*-------------------------------------------------------------------------
 *
 * stat_views.c
 *	  The functions under the views of statistics and of the time model.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "sync/statistics/stat_int.h"

typedef struct StatName
{
	const char *name;
	int			class;
	const char *text;
} StatName;

static const StatName stat_names[] = {
#define X(id, name, class, text) {name, class, text},
#include "sync/statistics/stat_list.h"
#undef X
};

static const StatName server_stat_names[] = {
#define X(id, name, class, text) {name, class, text},
#include "sync/statistics/server_stat_list.h"
#undef X
};

static const struct
{
	const char *elapsed;
	const char *cpu;
}			time_names[] = {
#define X(id, name, text) {name " elapsed time", name " cpu time"},
#include "sync/statistics/time_list.h"
#undef X
};

static void
put_name(AqRow *row, int number, const StatName *stat)
{
	aq_rows_int(row, number);
	aq_rows_text(row, stat->name);
	aq_rows_int(row, stat->class);
	aq_rows_number(row, aq_rows_name_hash(stat->name));
	aq_rows_text(row, stat->text);
	aq_rows_end(row);
}

static bool
is_counted(int server_stat)
{
	return server_stat != AQ_SERVER_STAT_READ_REQUESTS || AQ_READS_SINGLE_BLOCKS;
}

/* Statistics: number, name, class, identifier, what is counted. */
PG_FUNCTION_INFO_V1(aq_stat_views_names);
Datum
aq_stat_views_names(PG_FUNCTION_ARGS)
{
	AqRow		row;

	aq_rows_begin(&row, fcinfo);
	for (int stat = 0; stat < AQ_STAT_COUNT; stat++)
		put_name(&row, stat, &stat_names[stat]);
	for (int stat = 0; stat < AQ_SERVER_STAT_COUNT; stat++)
		if (is_counted(stat))
			put_name(&row, AQ_SERVER_STAT_FIRST + stat, &server_stat_names[stat]);
	return (Datum) 0;
}

/* All sessions' counters: number, value. */
PG_FUNCTION_INFO_V1(aq_stat_views_system);
Datum
aq_stat_views_system(PG_FUNCTION_ARGS)
{
	AqRow		row;
	AqStatSums	sums;
	uint64		server_sums[AQ_SERVER_STAT_COUNT];

	aq_rows_begin(&row, fcinfo);
	aq_stat_sum(&sums);
	aq_server_stat_sum(server_sums);
	for (int stat = 0; stat < AQ_SERVER_STAT_COUNT; stat++)
	{
		if (!is_counted(stat))
			continue;
		aq_rows_int(&row, AQ_SERVER_STAT_FIRST + stat);
		aq_rows_number(&row, (int64) server_sums[stat]);
		aq_rows_end(&row);
	}
	for (int stat = 0; stat < AQ_STAT_COUNT; stat++)
	{
		aq_rows_int(&row, stat);
		aq_rows_number(&row, (int64) sums.counts[stat]);
		aq_rows_end(&row);
	}
	return (Datum) 0;
}

static void
put_session_stat(AqRow *row, int session, int pid, int stat, uint64 value)
{
	aq_rows_int(row, session + 1);
	aq_rows_int(row, pid);
	aq_rows_int(row, stat);
	aq_rows_number(row, (int64) value);
	aq_rows_end(row);
}

/* Each running session's counters, or only its own: session, pid, number, value. */
PG_FUNCTION_INFO_V1(aq_stat_views_sessions);
Datum
aq_stat_views_sessions(PG_FUNCTION_ARGS)
{
	bool		only_own = PG_GETARG_BOOL(0);
	AqRow		row;

	aq_rows_begin(&row, fcinfo);
	for (int i = 0; i < aq_session_slots(); i++)
	{
		int			pid = aq_session_pid(i);
		uint64		server_counts[AQ_SERVER_STAT_COUNT];

		if (pid == 0 || (only_own && i != aq_session_own_number))
			continue;
		for (int stat = 0; stat < AQ_STAT_COUNT; stat++)
			put_session_stat(&row, i, pid, stat, aq_stat_slot(i)->counts[stat]);
		aq_server_stat_read(i, server_counts);
		for (int stat = 0; stat < AQ_SERVER_STAT_COUNT; stat++)
			if (is_counted(stat))
				put_session_stat(&row, i, pid, AQ_SERVER_STAT_FIRST + stat, server_counts[stat]);
	}
	return (Datum) 0;
}

/* --- time model --------------------------------------------------------------------------- */

static const char *const io_names[AQ_IO_COUNT] = {"data file read time", "data file write time", "WAL write time", "WAL sync time"};

typedef struct TimeLine
{
	const char *name;
	int64		identifier;		/* Oracle's, or a hash of the name */
	uint64		value;			/* nanoseconds */
} TimeLine;

#define LINES (4 + 2 * AQ_TIME_COUNT + AQ_IO_COUNT)

static TimeLine
line_of(const char *name, int64 identifier, uint64 value)
{
	TimeLine	line = {name, identifier != 0 ? identifier : aq_rows_name_hash(name), value};

	return line;
}

/* Times of the foreground and of the background, as lines with names. */
static void
make_lines(const AqTimes *foreground, const AqTimes *background, TimeLine *lines)
{
	uint64		background_elapsed = 0;
	int			n = 4;

	for (int kind = 0; kind < AQ_TIME_COUNT; kind++)
	{
		uint64		cpu = foreground->op_cpu[kind] + background->op_cpu[kind];

		background_elapsed += background->op_elapsed[kind];
		lines[n++] = line_of(time_names[kind].elapsed, 0,
							 foreground->op_elapsed[kind] + background->op_elapsed[kind]);
		lines[n++] = line_of(time_names[kind].cpu, 0, cpu);
	}
	for (int io = 0; io < AQ_IO_COUNT; io++)
		lines[n++] = line_of(io_names[io], 0, foreground->io[io]);
	Assert(n == LINES);
	lines[0] = line_of("DB time", INT64CONST(3649082374), foreground->db_time);
	lines[1] = line_of("DB CPU", INT64CONST(2748282437), foreground->cpu);
	lines[2] = line_of("background elapsed time", INT64CONST(4157170894), background_elapsed);
	lines[3] = line_of("background cpu time", INT64CONST(2451517896), background->cpu);
}

static void
put_line(AqRow *row, const TimeLine *line)
{
	aq_rows_number(row, line->identifier);
	aq_rows_text(row, line->name);
	aq_rows_number(row, (int64) (line->value / 1000));
	aq_rows_end(row);
}

/* All sessions' times: identifier, name, microseconds. */
PG_FUNCTION_INFO_V1(aq_stat_views_time_system);
Datum
aq_stat_views_time_system(PG_FUNCTION_ARGS)
{
	AqRow		row;
	AqStatSums	sums;
	TimeLine	lines[LINES];

	aq_rows_begin(&row, fcinfo);
	aq_stat_sum(&sums);
	make_lines(&sums.times[0], &sums.times[1], lines);
	for (int i = 0; i < LINES; i++)
		put_line(&row, &lines[i]);
	return (Datum) 0;
}

/* Each running session's: session, pid, identifier, name, microseconds. */
PG_FUNCTION_INFO_V1(aq_stat_views_time_sessions);
Datum
aq_stat_views_time_sessions(PG_FUNCTION_ARGS)
{
	static const AqTimes none;
	AqRow		row;

	aq_rows_begin(&row, fcinfo);
	for (int session = 0; session < aq_session_slots(); session++)
	{
		int			pid = aq_session_pid(session);
		AqStatSlot	slot;
		TimeLine	lines[LINES];

		if (pid == 0)
			continue;
		aq_stat_read(session, &slot);
		make_lines(slot.background ? &none : &slot.times, slot.background ? &slot.times : &none, lines);
		for (int i = 0; i < LINES; i++)
		{
			aq_rows_int(&row, session + 1);
			aq_rows_int(&row, pid);
			put_line(&row, &lines[i]);
		}
	}
	return (Datum) 0;
}
