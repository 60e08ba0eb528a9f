/*-------------------------------------------------------------------------
 *
 * session_views.c
 *	  The function under sys."v$session".
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "monitor/monitor_private.h"

#include "fmgr.h"

/*
 * Puts event number, identifier, name; class identifier, number, name.  Events
 * of the server have no number.
 */
void
aq_session_views_event(AqRow *row, int event, uint32 wait_info, bool background, bool executing)
{
	const AqClassName *class;
	const char *name;

	if (event < 0 && wait_info == 0)
	{
		for (int i = 0; i < 6; i++)
			aq_rows_null(row);
		return;
	}
	if (event >= 0)
	{
		name = aq_event_names[event].name;
		class = &aq_event_names_classes[aq_event_names[event].class];
		aq_rows_int(row, event);
	}
	else
	{
		name = aq_activity_wait_name(wait_info);
		class = &aq_event_names_classes[aq_activity_wait_class(wait_info, background, executing)];
		aq_rows_null(row);
	}
	aq_rows_number(row, aq_rows_name_hash(name));
	aq_rows_text(row, name);
	aq_rows_number(row, class->identifier);
	aq_rows_int(row, class->number);
	aq_rows_text(row, class->name);
}

/* Puts name and value of P1 to P3, which only pgaq's waits have. */
void
aq_session_views_parameters(AqRow *row, int event, const uint64 *p)
{
	for (int i = 0; i < 3; i++)
	{
		if (event < 0)
		{
			aq_rows_null(row);
			aq_rows_null(row);
		}
		else
		{
			aq_rows_text(row, aq_event_names[event].parameters[i]);
			aq_rows_number(row, (int64) p[i]);
		}
	}
}

static void
put_word(AqRow *row, const char *word)
{
	aq_rows_text(row, word[0] != '\0' ? word : NULL);
}

/*
 * All processes: session, pid, attached, background, active; event, class, P1
 * to P3; waiting, sequence, microseconds of the wait so far or in all, since
 * it ended, until its timeout; blocker, final blocker; operation, queue;
 * module, action, client info.
 */
PG_FUNCTION_INFO_V1(aq_session_views_sessions);
Datum
aq_session_views_sessions(PG_FUNCTION_ARGS)
{
	AqRow		row;
	AqProcess  *processes;
	int			n;

	aq_rows_begin(&row, fcinfo);
	n = aq_activity_read(&processes);
	for (int i = 0; i < n; i++)
	{
		const AqProcess *process = &processes[i];
		const AqWaitNow *now = &process->now;
		const uint64 p[] = {now->p1, now->p2, now->p3};

		/* a current wait of the server is shown instead of pgaq's last wait */
		int			event = process->wait_info != 0 ? -1 : now->event;
		int64		clock = aq_clock_us();

		aq_rows_session(&row, process->number);
		aq_rows_int(&row, process->pid);
		aq_rows_bool(&row, process->attached);
		aq_rows_bool(&row, process->background);
		aq_rows_bool(&row, process->active);
		aq_session_views_event(&row, event, process->wait_info, process->background, process->executing);
		aq_session_views_parameters(&row, event, p);
		aq_rows_bool(&row, now->waiting || process->wait_info != 0);
		if (event < 0)
			for (int k = 0; k < 4; k++)
				aq_rows_null(&row);
		else
		{
			aq_rows_number(&row, (int64) now->sequence);
			aq_rows_number(&row, Max((now->waiting ? clock : now->end) - now->start, 0));
			aq_rows_number(&row, now->waiting ? 0 : Max(clock - now->end, 0));
			aq_rows_number_if(&row, now->waiting, aq_event_left(now, clock));
		}
		aq_rows_session(&row, process->blocker);
		aq_rows_session(&row, process->final_blocker);
		aq_rows_text(&row, process->operation < 0 ? NULL : aq_time_kind_names[process->operation]);
		aq_rows_int_if(&row, process->queue != 0, process->queue);
		put_word(&row, process->said.module);
		put_word(&row, process->said.action);
		put_word(&row, process->said.client_info);
		aq_rows_end(&row);
	}
	return (Datum) 0;
}
