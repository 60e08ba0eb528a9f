/*-------------------------------------------------------------------------
 *
 * notifier.c
 *	  The process of a notifier, which calls the registered procedures of one
 *	  role in one database.
 *
 * It logs in as the role, so the procedures have its privileges and no others,
 * also by SET ROLE, which is not allowed during a call.  After each round, what
 * they have left in the session is removed.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "notify/notify_private.h"

#include "miscadmin.h"
#include "pgstat.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "storage/ipc.h"
#include "tcop/tcopprot.h"
#include "utils/guc.h"
#include "utils/timestamp.h"

/* how long it has nothing to do before its registrations are settled */
#define SETTLE_AFTER ((int64) 1000000)

PGDLLEXPORT void aq_notifier_main(Datum arg);

static void
notifier_exit(int code, Datum arg)
{
	aq_notifier_pool_exit();
}

static TimestampTz
run_round(void)
{
	TimestampTz next;

	CHECK_FOR_INTERRUPTS();
	aq_notifier_pool_begin_round();
	pgstat_report_activity(STATE_RUNNING, "notification");
	next = aq_delivery_round();
	aq_helper_forget_call();
	return next;
}

/* Sleeps until it is wanted, or until "next"; returns false when the process has to end. */
static bool
wait_for_work(TimestampTz next)
{
	int64		slept = 0;

	for (;;)
	{
		int64		left;
		int64		time;

		if (ConfigReloadPending)
		{
			ConfigReloadPending = false;
			ProcessConfigFile(PGC_SIGHUP);
		}
		if (slept >= SETTLE_AFTER && !aq_delivery_settle())
			slept = 0;
		switch (aq_notifier_pool_next(aq_delivery_is_settled() && !aq_delivery_remembers(), &left))
		{
			case AQ_NOTIFIER_ROUND:
				return true;
			case AQ_NOTIFIER_END:
				return false;
			case AQ_NOTIFIER_SLEEP:
				break;
		}
		time = left > 0 ? left : -1;
		if (!aq_delivery_is_settled())
			time = SETTLE_AFTER;
		if (next != 0 && next <= GetCurrentTimestamp())
			return true;
		if (next != 0)
			time = Min(time < 0 ? AQ_EVENT_CLOCK : Min(time, AQ_EVENT_CLOCK), next - GetCurrentTimestamp());
		HOLD_CANCEL_INTERRUPTS();
		if (!aq_event_sleep(AQ_EVENT_NOTIFIER_IDLE, 0, 0, 0, time == -1 ? -1 : Max(time, 0)))
			slept += Max(time, 0);
		QueryCancelPending = false;
		RESUME_CANCEL_INTERRUPTS();
	}
}

void
aq_notifier_main(Datum arg)
{
	Oid			database,
				role;
	uint32		serial;
	TimestampTz next;

	/* connecting may wait for a lock, so SIGTERM ends the process at once */
	pqsignal(SIGHUP, SignalHandlerForConfigReload);
	pqsignal(SIGTERM, die);
	BackgroundWorkerUnblockSignals();
	aq_session_attach();

	memcpy(&serial, MyBgworkerEntry->bgw_extra, sizeof(serial));
	if (!aq_notifier_pool_enter(DatumGetInt32(arg), serial, &database, &role))
		proc_exit(0);
	aq_stuck_enter(AQ_STUCK_NOTIFIER);
	before_shmem_exit(notifier_exit, (Datum) 0);
	BackgroundWorkerInitializeConnectionByOid(database, role, 0);
	aq_process_set_parameters("pgaq notifier");
	aq_process_set_parameter("role", "none");
	aq_notifier_pool_connected();
	aq_delivery_begin();
	do
	{
		next = run_round();
		pgstat_report_activity(STATE_IDLE, NULL);
		pgstat_report_stat(false);
	} while (wait_for_work(next));
	/* the worker notes when a registration has something to do again */
	aq_announcement_make_now();
	proc_exit(0);
}
