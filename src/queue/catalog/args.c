/*-------------------------------------------------------------------------
 *
 * args.c
 *	  Checking what the user gave: names, intervals, consumers; who the session is.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "queue/queue_private.h"

#include "commands/sequence.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"

/* the sum of a delay and an expiration, counted from now, is still a timestamp */
#define LONGEST_YEARS 100000
#define LONGEST (LONGEST_YEARS * (int64) (MONTHS_PER_YEAR * DAYS_PER_MONTH) * USECS_PER_DAY)

char *
aq_arg_name_or_null(FunctionCallInfo fcinfo, int arg, const char *what)
{
	if (PG_ARGISNULL(arg))
		return NULL;
	return text_to_cstring(PG_GETARG_TEXT_PP(arg));
}

char *
aq_arg_name(FunctionCallInfo fcinfo, int arg, const char *what)
{
	char	   *name = aq_arg_name_or_null(fcinfo, arg, what);

	if (name == NULL)
		ereport(ERROR, aq_error(AQ_ERR_ARGUMENT_NULL, "\"%s\" must not be null", what));
	return name;
}

/* Is the name fit for a new queue or consumer? */
void
aq_check_name(const char *name, const char *what)
{
	Size		length = strlen(name);

	if (length == 0)
		ereport(ERROR, aq_error(AQ_ERR_NAME_INVALID, "%s name must not be empty", what));
	if (length >= AQ_MAX_NAME)
		ereport(ERROR,
				aq_error(AQ_ERR_NAME_INVALID, "%s name \"%s\" is too long", what, name),
				errhint("Names have at most %d bytes.", AQ_MAX_NAME - 1));
	if (pg_strncasecmp(name, "aq$", 3) == 0)
		ereport(ERROR,
				aq_error(AQ_ERR_NAME_INVALID, "%s name \"%s\" is reserved", what, name),
				errhint("Names must not begin with \"aq$\"."));
}

/* Months count 30 days, as in interval comparisons; not more than LONGEST. */
int64
aq_interval_to_us(Datum datum)
{
	Interval   *i = DatumGetIntervalP(datum);
	double		us = i->time + (i->day + (double) i->month * DAYS_PER_MONTH) * USECS_PER_DAY;

	if (us >= LONGEST || us <= -LONGEST)
		return us < 0 ? -LONGEST : LONGEST;
	return i->time + ((int64) i->day + (int64) i->month * DAYS_PER_MONTH) * USECS_PER_DAY;
}

/* The same, of an option; raises this error when it is too long. */
int64
aq_interval_option(Datum datum, AqErrorId error, const char *what)
{
	int64		us = aq_interval_to_us(datum);

	if (us == LONGEST)
		ereport(ERROR,
				aq_error(error, "\"%s\" is out of range", what),
				errhint("It must be shorter than %d years.", LONGEST_YEARS));
	return us;
}

/*
 * The position of the consumer that dequeues, -1 for one that is unknown: he
 * finds nothing.
 */
int
aq_dequeue_position(AqQueue *queue, const char *name)
{
	AqConsumer *consumer;

	if (!queue->multi)
	{
		if (name != NULL)
			ereport(ERROR,
					aq_error(AQ_ERR_CONSUMER_FORBIDDEN,
							 "queue \"%s\" has a single consumer, which has no name", queue->name),
					errhint("Leave the consumer null, or create the queue with multiple_consumers => true."));
		return 0;
	}
	if (name == NULL)
		ereport(ERROR,
				aq_error(AQ_ERR_CONSUMER_MISSING,
						 "queue \"%s\" has multiple consumers: name one", queue->name),
				errhint("Name a subscriber or recipient as the consumer."));
	consumer = aq_queue_consumer(queue, name);
	return consumer ? consumer->position : -1;
}

/* This session's identity in rows: unique in the database for ever. */
int64
aq_session_identity(void)
{
	static int64 identity;
	static Oid	database;

	if (identity == 0 || database != MyDatabaseId)
	{
		identity = nextval_internal(aq_catalog_relation("session_id_seq"), false);
		database = MyDatabaseId;
	}
	return identity;
}

bytea *
aq_targets_to_bytes(const Bitmapset *targets)
{
	int			last = -1,
				position = -1;
	bytea	   *bytes;
	uint8	   *bits;

	while ((position = bms_next_member(targets, position)) >= 0)
		last = position;
	bytes = palloc0(VARHDRSZ + last / 8 + 1);
	SET_VARSIZE(bytes, VARHDRSZ + last / 8 + 1);
	bits = (uint8 *) VARDATA(bytes);
	position = -1;
	while ((position = bms_next_member(targets, position)) >= 0)
		bits[position / 8] |= 1 << (position % 8);
	return bytes;
}
