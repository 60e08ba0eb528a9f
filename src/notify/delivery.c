/*-------------------------------------------------------------------------
 *
 * delivery.c
 *	  A round of a notifier: finds, for each registration of its role, the
 *	  messages that are new for it, and calls its procedure.
 *
 * What is to be notified is derived from the queue itself: a message that the
 * consumer could dequeue, and that is not among those of notified.c.  So nothing
 * is written when a message is enqueued, and nothing is lost with a process.
 *
 * A scan first has the queue watched (aq_waiters_watch), then looks: a message
 * that becomes ready later wakes the worker, which wakes this notifier.
 *
 * Each call is a transaction, which sees the registration once more, and the
 * message.  A call that fails ends the registration's turn; it is tried again
 * after a pause.  Other registrations go on.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "notify/notify_private.h"
#include "queue/calls.h"

#include "access/xact.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

/* most messages of a scan, and postings of a query */
#define BATCH 1000
#define POSTINGS 100

/* most bytes of an error that are kept */
#define ERROR_LENGTH 1000

/* when the extension is being dropped, or its definition changed, in microseconds */
#define LOCKED_AGAIN ((int64) 1000000)

/* Registrations marked as running, with the calls made since. */
typedef struct Work
{
	int64		registration;
	int64		calls;
} Work;

static Work *works;
static int	works_size;
static int	nworks;

static AqNotified notified;

/* --- transactions ------------------------------------------------------------------------ */

static MemoryContext turn;		/* of a registration's turn; NULL: between rounds */

static void
commit(void)
{
	aq_job_commit(false);
	aq_stuck_over();
	SetUserIdAndSecContext(GetSessionUserId(), 0);
	MemoryContextSwitchTo(turn != NULL ? turn : TopMemoryContext);
}

/* Returns false, without a transaction, if the extension is being dropped. */
static bool
begin(void)
{
	aq_job_begin();
	SetUserIdAndSecContext(GetSessionUserId(), SECURITY_LOCAL_USERID_CHANGE);
	if (aq_job_lock_extension())
		return true;
	commit();
	return false;
}

static uint64
change(const AqRegistration *registration, const char *command)
{
	return aq_sql_change(psprintf("%s WHERE registration_id = " INT64_FORMAT, command, registration->id), 0, NULL, NULL, NULL);
}

/* --- registrations ------------------------------------------------------------------------ */

/* The role's registrations, or one of them; in the current memory context. */
static List *
read_registrations(int64 only)
{
	return aq_registration_rows_read(psprintf("role::oid = %u AND procedure_name IS NOT NULL%s", GetSessionUserId(),
											  only == 0 ? "" : psprintf(" AND registration_id = " INT64_FORMAT, only)),
									 InvalidOid, 0);
}

static bool
is_registered(const AqRegistration *r)
{
	return read_registrations(r->id) != NIL;
}

/*
 * What a failed call does to its registration.  $2: it may disable it.  Errors
 * that are not the procedure's own do not, however long they last.
 */
static char *
failure_of(const char *condition)
{
	return psprintf("UPDATE aq_internal.registration SET failures = failures + 1, last_error = $1, "
					"last_error_time = clock_timestamp(), "
					"status = CASE WHEN $2 AND failures + 1 >= %d THEN 'disabled' ELSE 'retrying' END, "
					"next_at = clock_timestamp() + least(%d * 2.0 ^ least(failures, 30), 300000)::float8 * interval '1 millisecond' "
					"WHERE %s", aq_notify_settings_failures, aq_notify_settings_retry_delay_ms, condition);
}

static void
write_failure(const char *error, bool may_disable, const char *condition)
{
	Oid			types[] = {TEXTOID, BOOLOID};
	Datum		values[] = {
		PointerGetDatum(cstring_to_text_with_len(error, aq_clip_length(error, strlen(error), ERROR_LENGTH))),
		BoolGetDatum(may_disable)
	};

	aq_sql_change(failure_of(condition), lengthof(types), types, values, NULL);
}

static TimestampTz
fail(const AqRegistration *r, const char *error, bool may_disable)
{
	List	   *list;
	TimestampTz next;

	if (!begin())
		return GetCurrentTimestamp() + LOCKED_AGAIN;
	write_failure(error, may_disable, psprintf("registration_id = " INT64_FORMAT, r->id));
	list = read_registrations(r->id);
	next = list != NIL ? ((AqRegistration *) linitial(list))->next_at : 0;
	commit();
	if (list == NIL && aq_trouble_may_log(r->owner))
		ereport(LOG,
				(errmsg("registration " INT64_FORMAT " for notification was disabled", r->id),
				 errdetail("Its calls have failed %d times in a row, the last time with: %s", r->failures + 1, aq_error_clip(error))));
	return next;
}

/* --- running calls --------------------------------------------------------------------------- */

/*
 * Marks the registration as running: so a notifier that is started after this
 * one has died during a call counts a failure, and does not call again at once.
 */
static bool
mark(const AqRegistration *r)
{
	for (int i = 0; i < nworks; i++)
		if (works[i].registration == r->id)
			return true;
	works = aq_array_room(works, &works_size, nworks + 1, sizeof(Work));
	if (!begin())
		return false;
	(void) change(r, "UPDATE aq_internal.registration SET running = true");
	commit();
	works[nworks].registration = r->id;
	works[nworks++].calls = 0;
	aq_point("notifier-marked");
	return true;
}

static void
count_call(const AqRegistration *r)
{
	for (int i = 0; i < nworks; i++)
		if (works[i].registration == r->id)
			works[i].calls++;
}

bool
aq_delivery_is_settled(void)
{
	return nworks == 0;
}

/*
 * Called when there is nothing to do: no registration is running now.
 * Returns false if it has to be called again.
 */
bool
aq_delivery_settle(void)
{
	if (nworks == 0)
		return true;
	if (!begin())
		return false;
	for (int i = 0; i < nworks; i++)
		aq_sql_change(psprintf("UPDATE aq_internal.registration SET running = false, notifications = notifications + " INT64_FORMAT
							   "%s WHERE registration_id = " INT64_FORMAT, works[i].calls,
							   works[i].calls > 0 ? ", last_notification = clock_timestamp()" : "", works[i].registration),
					  0, NULL, NULL, NULL);
	commit();
	nworks = 0;
	return true;
}

/* Would something be lost with the process? */
bool
aq_delivery_remembers(void)
{
	return aq_notified_is_needed(&notified);
}

/* Called once, by a new process: what an earlier one was doing when it died has failed. */
void
aq_delivery_begin(void)
{
	if (!begin())
		return;
	write_failure("the notifier ended during a call", true, psprintf("role::oid = %u AND running", GetSessionUserId()));
	aq_sql_change(psprintf("UPDATE aq_internal.registration SET running = false WHERE role::oid = %u AND running",
						   GetSessionUserId()), 0, NULL, NULL, NULL);
	commit();
}

/* --- calls ------------------------------------------------------------------------------------ */

/* In the transaction of a call that has succeeded. */
static void
finish(const AqRegistration *r)
{
	if (r->once)
		(void) change(r, "DELETE FROM aq_internal.registration");
	else if (r->grouped)
		(void) change(r, "UPDATE aq_internal.registration SET group_end = NULL, groups_left = groups_left - 1, "
					  "status = 'enabled', failures = 0, next_at = NULL");
	else if (r->failures > 0 || r->next_at != 0)
		(void) change(r, "UPDATE aq_internal.registration SET status = 'enabled', failures = 0, next_at = NULL");
}

static void
call_procedure(AqRegistration *r, AqNotification *b)
{
	aq_point("notifier-call");
	aq_callback_call(r, aq_notification_make(b));
	aq_point("notifier-called");
	finish(r);
}

/* The call has been committed. */
static void
called(AqRegistration *r)
{
	aq_point("notifier-committed");
	count_call(r);
	r->failures = 0;
	r->next_at = r->group_end = 0;
}

/* May the registration's turn go on? */
static bool
goes_on(const AqRegistration *r)
{
	return !r->once && !aq_notifier_pool_yields();
}

/* Notifies of messages in one call.  Returns false if the registration's turn is over. */
static bool
notify(AqRegistration *r, const AqNews *news, int n)
{
	AqNotification b;
	AqQueue    *queue;
	bool		exists = true;
	bool		due;

	if (!begin())
		return false;
	queue = is_registered(r) ? aq_catalog_get_by_id(r->queue_id, true) : NULL;
	if (queue == NULL || !aq_notification_may(queue, r->consumer))
	{
		commit();
		return false;
	}
	aq_notification_begin(&b, r, queue->name);
	due = r->grouped && !r->last;
	if (!due)
		due = aq_notification_look_at(&b, queue, &news[n - 1].id) || r->grouped;
	if (due)
	{
		aq_notification_set_ids(&b, news, n, r->grouped && r->last);
		call_procedure(r, &b);
		queue = aq_catalog_get_by_id(r->queue_id, true);
		if (!r->grouped && queue != NULL)
		{
			aq_notification_begin(&b, r, queue->name);
			exists = aq_notification_look_at(&b, queue, &news[0].id);
		}
		for (int i = 0; i < n && exists && r->reliable && !r->once; i++)
			aq_notified_store(r, &news[i]);
	}
	commit();
	if (!due)
		return true;
	for (int i = 0; i < n && exists; i++)
		aq_notified_add(&notified, r, &news[i]);
	called(r);
	return goes_on(r);
}

/* --- queues -------------------------------------------------------------------------------------- */

typedef struct NewsScan
{
	const AqRegistration *registration;
	AqNews	   *news;
	int			n;
} NewsScan;

static bool
is_new(void *arg, const AqMessage *m)
{
	return !aq_notified_has(&notified, ((NewsScan *) arg)->registration, &m->id, m->attempts);
}

static void
add_news(void *arg, const AqMessage *m, int delivery)
{
	NewsScan   *scan = arg;

	Assert(scan->n < BATCH);
	scan->news[scan->n].id = m->id;
	scan->news[scan->n++].attempts = m->attempts;
}

/*
 * Watches the queue, and finds messages that are new for the registration.
 * Returns false if the registration's turn is over.
 */
static bool
find_news(NewsScan *scan)
{
	const AqRegistration *r = scan->registration;
	AqQueue    *queue;

	scan->n = 0;
	if (!begin())
		return false;
	queue = aq_catalog_get_by_id(r->queue_id, true);
	if (queue != NULL)
	{
		aq_pins_pin(queue);
		aq_waiters_watch(queue->shm);
		aq_point("notifier-watches");
		queue = aq_pins_pin_current(queue, false);	/* it may have been started before it was watched */
	}
	if (queue != NULL && aq_notification_may(queue, r->consumer))
	{
		AqDequeue	call = {.queue = pstrdup(queue->name), .payload_type = queue->payload_type, .consumer = r->consumer,
			.max = BATCH, .mode = AQ_MODE_BROWSE, .filter = is_new, .filter_arg = scan, .delivery = AQ_PERSISTENT,
			.emit = add_news, .arg = scan};

		if (r->reliable)
			aq_notified_load(&notified, r);
		aq_notified_scan_begin(&notified);
		(void) aq_dequeue_now(&call);
		if (scan->n < BATCH)
			aq_notified_scan_end(&notified, r);
	}
	commit();
	return scan->n > 0;
}

/* The first message of a group has come. */
static void
begin_group(AqRegistration *r)
{
	Oid			type = TIMESTAMPTZOID;
	Datum		end = TimestampTzGetDatum(r->next_group_end);

	if (!begin())
		return;
	aq_sql_change(psprintf("UPDATE aq_internal.registration SET group_end = $1, next_at = NULL WHERE registration_id = " INT64_FORMAT, r->id),
				  1, &type, &end, NULL);
	commit();
	r->next_at = 0;
	r->group_end = r->next_group_end;
}

/* There is nothing new: the registration waits for a message. */
static void
set_idle(AqRegistration *r)
{
	if (r->next_at == 0 && r->group_end == 0)
		return;
	if (!begin())
		return;
	(void) change(r, "UPDATE aq_internal.registration SET next_at = NULL, group_end = NULL, failures = 0, status = 'enabled'");
	commit();
}

/* Returns when the registration has something to do again; 0: when there is a message. */
static TimestampTz
serve_queue(AqRegistration *r)
{
	NewsScan	scan = {.registration = r, .news = palloc(BATCH * sizeof(AqNews))};
	bool		more = true;

	while (more && find_news(&scan))
	{
		if (r->grouped && r->group_end == 0 && r->failures == 0)
		{
			begin_group(r);
			return r->group_end;
		}
		if (!mark(r))
			return GetCurrentTimestamp() + LOCKED_AGAIN;
		if (r->grouped)
			more = notify(r, scan.news, scan.n);
		else
			for (int i = 0; i < scan.n && more; i++)
				more = notify(r, &scan.news[i], 1);
		if (r->grouped)
			return more ? GetCurrentTimestamp() : 0;	/* the rest belongs to the next group */
	}
	if (more)
		set_idle(r);
	return 0;
}

/* --- postings -------------------------------------------------------------------------------------- */

static bool
notify_posting(AqRegistration *r, const AqPosting *posting)
{
	AqNotification b;
	char	   *name;

	if (!begin())
		return false;
	name = is_registered(r) ? aq_posting_name(r) : NULL;
	if (name == NULL)
	{
		commit();
		return false;
	}
	aq_notification_begin(&b, r, name);
	aq_notification_set_posting(&b, posting);
	(void) aq_posting_remove(posting);
	call_procedure(r, &b);
	commit();
	called(r);
	return goes_on(r);
}

/* The oldest postings. */
static List *
find_postings(const AqRegistration *r)
{
	MemoryContext context = CurrentMemoryContext;
	List	   *list = NIL;

	if (!begin())
		return NIL;
	if (aq_posting_name(r) != NULL)
	{
		MemoryContextSwitchTo(context);
		list = aq_posting_read(r, POSTINGS);
	}
	commit();
	return list;
}

static TimestampTz
serve_postings(AqRegistration *r)
{
	List	   *list;
	ListCell   *lc;
	bool		more = true;

	while (more && (list = find_postings(r)) != NIL)
	{
		if (!mark(r))
			return GetCurrentTimestamp() + LOCKED_AGAIN;
		foreach(lc, list)
			if (more)
				more = notify_posting(r, lfirst(lc));
	}
	if (more)
		set_idle(r);
	return 0;
}

/* --- a round ---------------------------------------------------------------------------------------- */

static TimestampTz
serve(AqRegistration *r)
{
	TimestampTz now = GetCurrentTimestamp();

	if (r->next_at > now)
		return r->next_at;
	if (r->group_end > now)
		return r->group_end;
	return r->posted ? serve_postings(r) : serve_queue(r);
}

/* The same; an error is recorded, and delays only this registration. */
static TimestampTz
try_to_serve(AqRegistration *r)
{
	MemoryContext context = CurrentMemoryContext;
	volatile TimestampTz next = 0;

	PG_TRY();
	{
		next = serve(r);
	}
	PG_CATCH();
	{
		ErrorData  *error;

		MemoryContextSwitchTo(context);
		error = CopyErrorData();
		FlushErrorState();
		AbortCurrentTransaction();
		aq_stuck_over();
		SetUserIdAndSecContext(GetSessionUserId(), 0);
		MemoryContextSwitchTo(context);
		next = fail(r, error->message, aq_error_is_of_timed_user(error->sqlerrcode));
	}
	PG_END_TRY();
	MemoryContextSwitchTo(context);
	return next;
}

/*
 * Serves all registrations of the role; returns when one of them has something
 * to do again, 0 if none has before a message comes.
 */
TimestampTz
aq_delivery_round(void)
{
	static int	known;
	MemoryContext old = CurrentMemoryContext;
	MemoryContext context = AllocSetContextCreate(TopMemoryContext, "pgaq notifier round", ALLOCSET_DEFAULT_SIZES);
	MemoryContext own = AllocSetContextCreate(context, "pgaq notifier registration", ALLOCSET_DEFAULT_SIZES);
	TimestampTz next = 0;
	List	   *list = NIL;
	ListCell   *lc;

	if (begin())
	{
		MemoryContextSwitchTo(context);
		list = read_registrations(0);
		commit();
	}
	else
		next = GetCurrentTimestamp() + LOCKED_AGAIN;
	if (list_length(list) < known)
		aq_notified_keep_only(&notified, list);
	known = list_length(list);
	foreach(lc, list)
	{
		if (aq_notifier_pool_yields())
			break;
		MemoryContextSwitchTo(turn = own);
		aq_clock_sooner(&next, try_to_serve(lfirst(lc)));
		MemoryContextReset(own);
	}
	turn = NULL;
	MemoryContextSwitchTo(old);
	MemoryContextDelete(context);
	return next;
}
