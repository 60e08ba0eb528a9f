/*-------------------------------------------------------------------------
 *
 * client_news.c
 *	  What is new for a registration that a program waits for; aq.notifications,
 *	  with which the program takes it.
 *
 * As for a procedure, a message is new if the consumer could dequeue it and
 * aq_internal.notified does not have it with the same number of attempts.  The
 * rows are written in the program's transaction: after a rollback the message is
 * new again.  The registration's row is locked meanwhile, so that two programs do
 * not get the same message.
 *
 * Groups need no timer in the server: the end of a group follows from the times of
 * its messages, and from the last notification.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "notify/notify_private.h"
#include "queue/calls.h"

#include "catalog/pg_type.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "utils/timestamp.h"
#include "utils/tuplestore.h"

/* most messages of a group's notification */
#define BATCH 1000

/* --- registrations --------------------------------------------------------------------- */

static void
refuse(int64 id)
{
	ereport(ERROR, aq_error(AQ_ERR_REGISTRATION_UNDEFINED, "registration " INT64_FORMAT " does not exist", id),
			errdetail("It may have ended, it may have a procedure, or it belongs to a role that you are not a member of."));
}

/* Raises an error if one of the registrations is not in the list. */
static void
check_found(ArrayType *ids, const List *found)
{
	Datum	   *elements;
	bool	   *nulls;
	int			n;

	deconstruct_array(ids, INT8OID, sizeof(int64), FLOAT8PASSBYVAL, TYPALIGN_DOUBLE, &elements, &nulls, &n);
	for (int i = 0; i < n; i++)
	{
		const ListCell *lc;
		bool		is_there = false;

		if (nulls[i])
			ereport(ERROR, aq_error(AQ_ERR_ARGUMENT_NULL, "element %d of \"registration_ids\" must not be null", i + 1));
		foreach(lc, found)
			is_there |= ((const AqRegistration *) lfirst(lc))->id == DatumGetInt64(elements[i]);
		if (!is_there)
			refuse(DatumGetInt64(elements[i]));
	}
}

/* The registrations with these numbers, or all of the current role (ids NULL), for which programs wait. */
List *
aq_client_news_registrations(ArrayType *ids)
{
	List	   *list;

	if (ids == NULL)
		return aq_registration_rows_read(psprintf("procedure_name IS NULL AND role::oid = %u", GetUserId()), InvalidOid, 0);
	list = aq_registration_rows_read(psprintf("procedure_name IS NULL AND registration_id = ANY ($1) "
											  "AND pg_has_role(%u::oid, role::oid, 'USAGE')", GetUserId()),
									 INT8ARRAYOID, PointerGetDatum(ids));
	check_found(ids, list);
	return list;
}

/* --- new messages ------------------------------------------------------------------------- */

typedef struct NewsScan
{
	AqNotified *notified;
	const AqRegistration *registration;
	AqNews	   *news;
	int			n;
	TimestampTz oldest;			/* enqueue time */
} NewsScan;

static bool
is_new(void *arg, const AqMessage *m)
{
	NewsScan   *scan = arg;

	return !aq_notified_has(scan->notified, scan->registration, &m->id, m->attempts);
}

static void
add_news(void *arg, const AqMessage *m, int delivery)
{
	NewsScan   *scan = arg;

	if (scan->oldest == 0 || m->enqueue_time < scan->oldest)
		scan->oldest = m->enqueue_time;
	if (scan->news != NULL)
	{
		scan->news[scan->n].id = m->id;
		scan->news[scan->n].attempts = m->attempts;
	}
	scan->n++;
}

static void
scan_queue(NewsScan *scan, AqQueue *queue, int max, bool only_new)
{
	AqDequeue	call = {.queue = pstrdup(queue->name), .payload_type = queue->payload_type,
		.consumer = scan->registration->consumer, .max = max, .mode = AQ_MODE_BROWSE, .filter = only_new ? is_new : NULL,
		.filter_arg = scan, .delivery = AQ_PERSISTENT, .emit = add_news, .arg = scan};

	scan->n = 0;
	scan->oldest = 0;
	(void) aq_dequeue_now(&call);
}

/*
 * Is the group over?  It ends with the period in which its oldest message has arrived.
 * There is at most one notification for each period.
 */
static bool
group_is_over(const AqRegistration *r, TimestampTz oldest, TimestampTz *due)
{
	if (oldest < r->group_begin && r->last_notification < r->group_begin && r->group_begin <= GetCurrentTimestamp())
		return true;
	*due = r->next_group_end;
	return false;
}

/*
 * Watches the queue, and finds up to this number of new messages.  Returns how many; 0
 * with *due set: there are some, and their group ends then.  news NULL: they are
 * only counted, and no rows of aq_internal.notified are removed.
 */
int
aq_client_news_find(AqNotified *notified, const AqRegistration *r, AqNews *news, int max, TimestampTz *due)
{
	NewsScan	scan = {.notified = notified, .registration = r, .news = NULL};
	AqQueue    *queue = aq_catalog_get_by_id(r->queue_id, true);

	if (queue == NULL)
		return 0;				/* it is being dropped */
	aq_pins_pin(queue);
	aq_waiters_watch(queue->shm);
	aq_point("client-watches");
	queue = aq_pins_pin_current(queue, false);	/* it may have been started before it was watched */
	if (!aq_notification_may(queue, r->consumer))
		return 0;
	/* a queue without messages, the usual case, needs no list of those that are known */
	if (news == NULL)
		scan_queue(&scan, queue, 1, false);
	if (news == NULL && scan.n == 0)
		return 0;
	aq_notified_load(notified, r);
	aq_notified_scan_begin(notified);
	scan.news = news;
	scan_queue(&scan, queue, max, true);
	if (news != NULL && scan.n < max)
		aq_notified_scan_end(notified, r);
	if (scan.n > 0 && r->grouped && !group_is_over(r, scan.oldest, due))
		return 0;
	return scan.n;
}

/* Has the registration a notification?  *due: when its group ends. */
bool
aq_client_news_has(AqNotified *notified, const AqRegistration *r, TimestampTz *due)
{
	if (r->posted)
		return aq_posting_name(r) != NULL && aq_posting_exists(r);
	return aq_client_news_find(notified, r, NULL, r->grouped ? BATCH : 1, due) > 0;
}

/* --- aq.notifications ------------------------------------------------------------------------- */

typedef struct Taking
{
	ReturnSetInfo *result;
	AqNotified	notified;
	int			left;
} Taking;

static void
put(Taking *taking, AqNotification *b)
{
	tuplestore_putvalues(taking->result->setResult, taking->result->setDesc, b->values, b->nulls);
	taking->left--;
}

/* The registration after its row was locked; NULL: it has ended meanwhile. */
static AqRegistration *
lock(const AqRegistration *r)
{
	List	   *list;

	if (aq_sql_change(psprintf("SELECT FROM aq_internal.registration WHERE registration_id = " INT64_FORMAT " FOR NO KEY UPDATE", r->id),
					  0, NULL, NULL, NULL) == 0)
		return NULL;
	list = aq_registration_rows_read(psprintf("registration_id = " INT64_FORMAT, r->id), InvalidOid, 0);
	return list == NIL ? NULL : linitial(list);
}

/* n notifications were taken. */
static void
finish(const AqRegistration *r, int n)
{
	if (n == 0)
		return;
	aq_client_took();
	if (r->once)
		aq_sql_change(psprintf("DELETE FROM aq_internal.registration WHERE registration_id = " INT64_FORMAT, r->id), 0, NULL, NULL, NULL);
	else
		aq_sql_change(psprintf("UPDATE aq_internal.registration SET notifications = notifications + %d, last_notification = clock_timestamp(), "
							   "next_at = NULL%s WHERE registration_id = " INT64_FORMAT, n,
							   r->grouped ? ", groups_left = groups_left - 1" : "", r->id), 0, NULL, NULL, NULL);
}

/* One notification, of n messages.  Returns whether there is one. */
static bool
take_messages(Taking *taking, const AqRegistration *r, const AqNews *news, int n)
{
	AqNotification b;
	AqQueue    *queue = aq_catalog_get_by_id(r->queue_id, true);
	bool		summary = r->grouped && !r->last;

	if (queue == NULL)
		return false;
	aq_notification_begin(&b, r, queue->name);
	/* another session may have taken the message meanwhile */
	if (!summary && !aq_notification_look_at(&b, queue, &news[n - 1].id) && !r->grouped)
		return false;
	aq_notification_set_ids(&b, news, n, r->grouped && r->last);
	put(taking, &b);
	for (int i = 0; i < n && !r->once; i++)
		aq_notified_store(r, &news[i]);
	return true;
}

static int
take_of_queue(Taking *taking, const AqRegistration *r)
{
	int			max = r->grouped ? BATCH : r->once ? 1 : Min(taking->left, BATCH);
	AqNews	   *news = palloc(max * sizeof(AqNews));
	TimestampTz due = 0;
	int			n = aq_client_news_find(&taking->notified, r, news, max, &due);
	int			taken = 0;

	if (r->grouped)
		return n > 0 && take_messages(taking, r, news, n) ? 1 : 0;
	for (int i = 0; i < n; i++)
		taken += take_messages(taking, r, &news[i], 1);
	return taken;
}

static int
take_postings(Taking *taking, const AqRegistration *r)
{
	char	   *name = aq_posting_name(r);
	List	   *list = name != NULL ? aq_posting_take(r, r->once ? 1 : taking->left) : NIL;
	ListCell   *lc;

	foreach(lc, list)
	{
		AqNotification b;

		aq_notification_begin(&b, r, name);
		aq_notification_set_posting(&b, lfirst(lc));
		put(taking, &b);
	}
	return list_length(list);
}

static void
take(Taking *taking, const AqRegistration *registration)
{
	TimestampTz due = 0;
	AqRegistration *r;

	/* without a lock of the row if there is nothing */
	if (!aq_client_news_has(&taking->notified, registration, &due))
		return;
	r = lock(registration);
	aq_point("client-takes");
	if (r != NULL)
		finish(r, r->posted ? take_postings(taking, r) : take_of_queue(taking, r));
}

static int
max_of(FunctionCallInfo fcinfo)
{
	aq_args_require(fcinfo, 1, "max_notifications");
	if (PG_GETARG_INT32(1) < 1)
		ereport(ERROR, aq_error(AQ_ERR_OPTION_INVALID, "\"max_notifications\" must be positive, not %d", PG_GETARG_INT32(1)));
	return PG_GETARG_INT32(1);
}

PG_FUNCTION_INFO_V1(aq_client_news_take);
Datum
aq_client_news_take(PG_FUNCTION_ARGS)
{
	Taking		taking = {.left = max_of(fcinfo)};
	MemoryContext old = CurrentMemoryContext;
	MemoryContext own = AllocSetContextCreate(old, "pgaq registration", ALLOCSET_DEFAULT_SIZES);
	ListCell   *lc;

	aq_registration_begin("aq.notifications()");
	InitMaterializedSRF(fcinfo, 0);
	taking.result = (ReturnSetInfo *) fcinfo->resultinfo;
	foreach(lc, aq_client_news_registrations(PG_ARGISNULL(0) ? NULL : PG_GETARG_ARRAYTYPE_P(0)))
	{
		CHECK_FOR_INTERRUPTS();
		if (taking.left <= 0)
			break;
		MemoryContextSwitchTo(own);
		memset(&taking.notified, 0, sizeof(taking.notified));
		taking.notified.context = own;
		take(&taking, lfirst(lc));
		MemoryContextSwitchTo(old);
		MemoryContextReset(own);
	}
	return (Datum) 0;
}
