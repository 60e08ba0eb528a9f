/*-------------------------------------------------------------------------
 *
 * notify_private.h
 *	  Declarations shared by the files of part "notify".
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AQ_NOTIFY_PRIVATE_H
#define AQ_NOTIFY_PRIVATE_H

#include "notify/notify.h"

#include "datatype/timestamp.h"
#include "nodes/pg_list.h"
#include "utils/uuid.h"

/* A row of aq_internal.registration, with what its delivery needs. */
typedef struct AqRegistration
{
	int64		id;
	int32		queue_id;		/* 0: anonymous */
	char	   *name;			/* of the anonymous registration; NULL: a queue */
	char	   *consumer;		/* NULL: none */
	char	   *schema;			/* of the procedure */
	char	   *procedure;
	Oid			owner;			/* of the procedure when it was registered */
	bytea	   *context;		/* NULL: none */
	bool		reliable;
	bool		once;
	bool		with_payload;
	bool		grouped;
	bool		last;			/* a group's call gets its last message */
	TimestampTz group_end;		/* 0: no message is in a group */
	TimestampTz next_group_end; /* if one comes now */
	TimestampTz next_at;		/* 0: when there is a message */
	TimestampTz expires_at;		/* 0: never */
	int			failures;		/* in a row */
} AqRegistration;

/* A message that is to be notified. */
typedef struct AqNews
{
	pg_uuid_t	id;
	int			attempts;
} AqNews;

/* --- notify_settings.c */
extern int	aq_notify_settings_notifiers;
extern int	aq_notify_settings_idle_timeout_ms;
extern int	aq_notify_settings_call_timeout_ms;
extern int	aq_notify_settings_failures;
extern int	aq_notify_settings_retry_delay_ms;
extern void aq_notify_settings_define(void);

/* --- announcement.c: the end of transactions */
extern Size aq_announcement_shmem_size(void);
extern void aq_announcement_shmem_init(void *area, bool found);
extern void aq_announcement_init(void);
extern void aq_announcement_make(void);
extern void aq_announcement_make_now(void);
extern uint32 aq_announcement_count(void);

/* --- callback.c: the registered procedure */
extern void aq_callback_parse(const char *callback, char **schema, char **procedure);
extern Oid	aq_callback_check(const char *schema, const char *procedure);	/* returns its owner */
extern Oid	aq_callback_notification_type(void);
extern void aq_callback_call(const AqRegistration *registration, Datum notification);
extern void aq_callback_over(void);

/* --- notified.c: the messages that registrations were notified of */
extern void aq_notified_load(const AqRegistration *registration);
extern void aq_notified_scan_begin(void);
extern bool aq_notified_has(const AqRegistration *registration, const pg_uuid_t *id, int attempts);
extern void aq_notified_scan_end(const AqRegistration *registration);
extern void aq_notified_add(const AqRegistration *registration, const AqNews *news);
extern void aq_notified_store(const AqRegistration *registration, const AqNews *news);
extern void aq_notified_keep_only(const List *registrations);
extern bool aq_notified_is_needed(void);

/* --- delivery.c: a round of a notifier */
extern void aq_delivery_begin(void);
extern TimestampTz aq_delivery_round(void);
extern bool aq_delivery_settle(void);
extern bool aq_delivery_is_settled(void);

/* --- notifier_pool.c: the processes, in shared memory */
extern Size aq_notifier_pool_size(void);
extern void aq_notifier_pool_init(void *area, bool found);
extern void aq_notifier_pool_register(void);
extern TimestampTz aq_notifier_pool_want(Oid role);
extern Oid	aq_notifier_pool_rested(TimestampTz *next, bool *connected);
extern bool aq_notifier_pool_enter(int number, uint32 serial, Oid *database, Oid *role);
extern void aq_notifier_pool_connected(void);
extern void aq_notifier_pool_begin_round(void);
extern bool aq_notifier_pool_yields(void);

/* What a notifier does after a round. */
typedef enum AqNotifierNext
{
	AQ_NOTIFIER_ROUND,			/* another one */
	AQ_NOTIFIER_SLEEP,
	AQ_NOTIFIER_END				/* its entry is free */
} AqNotifierNext;

extern AqNotifierNext aq_notifier_pool_next(bool may_end, int64 *left);
extern void aq_notifier_pool_exit(void);

/* --- notify_job.c: the worker's jobs */
extern void aq_notify_job_init(void);

#endif							/* AQ_NOTIFY_PRIVATE_H */
