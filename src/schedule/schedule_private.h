/*-------------------------------------------------------------------------
 *
 * schedule_private.h
 *	  What the files of part "schedule" share.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AQ_SCHEDULE_PRIVATE_H
#define AQ_SCHEDULE_PRIVATE_H

#include "schedule/schedule.h"

#include "datatype/timestamp.h"
#include "nodes/pg_list.h"
#include "pgtime.h"
#include "utils/array.h"
#include "utils/jsonb.h"

/* --- local_time.c: seconds since 1970, as an instant or as the time on a clock in the zone */
typedef struct AqLocalTime
{
	bool		exists;			/* false: the clocks were put forward over it */
	pg_time_t	first;			/* its instant; if it does not exist, when the clocks were put forward */
	pg_time_t	second;			/* its second instant, if the clocks were put back over it; else as first */
} AqLocalTime;

extern pg_time_t aq_local_time_at(pg_time_t instant, pg_tz *zone);
extern AqLocalTime aq_local_time_find(pg_time_t local, pg_tz *zone);

/* --- cron.c */
typedef struct AqCron
{
	uint64		minutes;		/* bits 0 to 59 */
	uint64		hours;			/* bits 0 to 23 */
	uint64		days;			/* bits 1 to 31 */
	uint64		months;			/* bits 1 to 12 */
	uint64		weekdays;		/* bits 0 to 6, Sunday is 0 */
	bool		either_day;		/* day of the month and of the week are both restricted: one of them must match */
} AqCron;

extern void aq_cron_parse(const char *text, AqCron *cron);
extern bool aq_cron_next(const AqCron *cron, pg_time_t after, pg_tz *zone, pg_time_t *next);

/* --- timing.c: the times of a schedule; DT_NOEND: never */
typedef struct AqTiming
{
	const char *cron;			/* NULL: an interval */
	const Interval *every;
	const char *zone_name;
	TimestampTz start;			/* no time before; the first one of an interval */
	TimestampTz until;			/* no time after; DT_NOEND: no limit */
	/* set by aq_timing_prepare */
	AqCron		parsed;
	pg_tz	   *zone;
} AqTiming;

extern void aq_timing_prepare(AqTiming *timing);
extern TimestampTz aq_timing_next(const AqTiming *timing, TimestampTz after);

/* --- schedule_row.c */
extern void aq_schedule_row_init(void);
typedef struct AqSchedule
{
	int64		id;
	char	   *name;
	int32		queue_id;
	char	   *queue;			/* its name */
	Oid			owner;
	text	   *payload;		/* NULL: null */
	Jsonb	   *options;		/* as an element of argument "options" of aq.enqueue_array */
	AqTiming	timing;
	char	   *catch_up;		/* skip, one or all */
	TimestampTz next_run;		/* DT_NOEND: none */
	int			failures;		/* in a row */
} AqSchedule;

typedef enum AqScheduleLock
{
	AQ_SCHEDULE_NO_LOCK,
	AQ_SCHEDULE_WAIT,			/* lock the row, and wait for sessions that have changed it */
	AQ_SCHEDULE_IF_DUE			/* only if it is due and not locked */
} AqScheduleLock;

/* A schedule that is due. */
typedef struct AqScheduleDue
{
	int64		id;
	char	   *name;
	Oid			owner;
	int64		used;			/* microseconds of the scheduler's time that the owner has used recently */
	int			number;			/* in the order of their times */
} AqScheduleDue;

extern AqSchedule *aq_schedule_row_read(const char *name, AqScheduleLock lock); /* NULL: none */
extern List *aq_schedule_row_due(List *passed_over);
extern AqSchedule *aq_schedule_row_find(int64 id);
extern void aq_schedule_row_ran(const AqSchedule *schedule, int messages, TimestampTz next_run);
extern bool aq_schedule_row_failed(const AqSchedule *schedule, const char *error, int64 pause, bool disable);

/* --- scheduler.c: the process; turn.c: what it does for a schedule */
#define AQ_SCHEDULE_MAX_FAILURES 16

extern bool aq_turn_take(const AqScheduleDue *due, MemoryContext context);	/* false: it was not due, or is locked */
extern void aq_turn_has_ended(int64 id);
extern ArrayType *aq_turn_message(const AqSchedule *schedule, int n, const TimestampTz *times);

/* --- schedule_job.c: the worker's job, which starts the scheduler */
extern bool aq_schedule_job_enabled;

extern Size aq_schedule_job_shmem_size(void);
extern void aq_schedule_job_shmem_init(void *area, bool found);
extern void aq_schedule_job_init(void);
extern void aq_schedule_job_in_scheduler(void); /* this process is one */

#endif							/* AQ_SCHEDULE_PRIVATE_H */
