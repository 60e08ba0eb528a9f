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
#include "utils/array.h"
#include "utils/uuid.h"

/* A row of aq_internal.registration, with what its delivery needs. */
typedef struct AqRegistration
{
	int64		id;
	int32		queue_id;		/* 0: anonymous */
	char	   *name;			/* of the anonymous registration; NULL: a queue */
	bool		posted;			/* it gets what is posted: anonymous, or of a non-persistent queue */
	char	   *consumer;		/* NULL: none */
	char	   *schema;			/* of the procedure; NULL: a program waits for it */
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
	TimestampTz group_begin;	/* of the current group */
	TimestampTz last_notification;	/* 0: none yet */
	TimestampTz next_at;		/* 0: when there is a message */
	TimestampTz expires_at;		/* 0: never */
	int			failures;		/* in a row */
} AqRegistration;

/* A message to notify of. */
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
extern void aq_announcement_make(bool of_registrations);
extern void aq_announcement_make_now(void);
extern uint32 aq_announcement_count(void);

/* --- callback.c: the registered procedure */
extern bool aq_callback_is_address(const char *callback);
extern char *aq_callback_address(const char *callback);
extern bool aq_callback_parse(const char *callback, char **schema, char **procedure);
extern Oid	aq_callback_check(const char *schema, const char *procedure, bool missing_ok);	/* returns its owner */
extern Oid	aq_callback_notification_type(void);
extern void aq_callback_call(const AqRegistration *registration, Datum notification);

/* --- outgoing.c: notifications to addresses outside of the database */
extern void aq_outgoing_check(void);

/* --- registration.c */
extern void aq_registration_init(void);
extern void aq_registration_begin(const char *command);

/* --- registration_rows.c */
extern List *aq_registration_rows_read(const char *condition, Oid type, Datum value);

/* --- posting.c: posted notifications, among them those of messages of non-persistent queues */
typedef struct AqPosting
{
	int64		id;
	Datum		payload;
	bool		no_payload;
	TimestampTz posted;
	pg_uuid_t  *msgid;			/* NULL: sent by aq.post, and without the properties of a message */
	int			priority;
	text	   *correlation;	/* NULL: none */
	text	   *sender;			/* NULL: none */
	TimestampTz expires_at;		/* 0: never */
	pg_uuid_t  *original_id;	/* NULL: none */
} AqPosting;

extern void aq_posting_init(void);
extern char *aq_posting_name(const AqRegistration *r);
extern bool aq_posting_exists(const AqRegistration *r);
extern List *aq_posting_read(const AqRegistration *r, int max);
extern List *aq_posting_take(const AqRegistration *r, int max);
extern bool aq_posting_remove(const AqPosting *posting);

/* --- notification.c: a value of type aq.notification */
#define AQ_NOTIFICATION_FIELDS 17

typedef struct AqNotification
{
	const AqRegistration *registration;
	Oid			payload_type;
	Datum		values[AQ_NOTIFICATION_FIELDS];
	bool		nulls[AQ_NOTIFICATION_FIELDS];
	bool		found;
} AqNotification;

extern void aq_notification_begin(AqNotification *b, const AqRegistration *r, const char *name);
extern bool aq_notification_may(AqQueue *queue, const char *consumer);
extern bool aq_notification_look_at(AqNotification *b, AqQueue *queue, const pg_uuid_t *id);
extern void aq_notification_set_ids(AqNotification *b, const AqNews *news, int n, bool last);
extern Datum aq_notification_bytes(Oid type, Datum payload);
extern void aq_notification_set_posting(AqNotification *b, const AqPosting *posting);
extern Datum aq_notification_make(AqNotification *b);

/* --- notified.c: the messages that registrations were notified of */
typedef struct AqNotified
{
	MemoryContext context;		/* NULL: it lives as long as the process */
	struct HTAB *messages;
	uint32		scan;
	int64	   *loaded;			/* registrations whose rows were read */
	int			loaded_size;
	int			nloaded;
} AqNotified;

extern void aq_notified_load(AqNotified *set, const AqRegistration *registration);
extern void aq_notified_scan_begin(AqNotified *set);
extern bool aq_notified_has(AqNotified *set, const AqRegistration *registration, const pg_uuid_t *id, int attempts);
extern void aq_notified_scan_end(AqNotified *set, const AqRegistration *registration);
extern void aq_notified_add(AqNotified *set, const AqRegistration *registration, const AqNews *news);
extern void aq_notified_store(const AqRegistration *registration, const AqNews *news);
extern void aq_notified_keep_only(AqNotified *set, const List *registrations);
extern bool aq_notified_is_needed(AqNotified *set);

/* --- client.c: sessions that wait for notifications, in shared memory */
extern Size aq_client_shmem_size(void);
extern void aq_client_shmem_init(void *area, bool found);
extern void aq_client_init(void);
extern void aq_client_session_exit(void);
extern uint64 aq_client_bit(int64 registration);
extern void aq_client_wake(uint64 bits);
extern void aq_client_wake_all(void);
extern bool aq_client_exists(void);
extern void aq_client_begin_interest(uint64 bits);
extern uint64 aq_client_collect(bool *definitions, bool *unknown);
extern void aq_client_sleep(int registrations, int64 left);
extern void aq_client_took(void);
extern void aq_client_roll_back_look(void);

/* --- client_news.c: what is new for a registration that a program waits for */
extern List *aq_client_news_registrations(ArrayType *ids);
extern int	aq_client_news_find(AqNotified *set, const AqRegistration *r, AqNews *news, int max, TimestampTz *due);
extern bool aq_client_news_has(AqNotified *set, const AqRegistration *r, TimestampTz *due);

/* --- delivery.c: a round of a notifier */
extern void aq_delivery_begin(void);
extern TimestampTz aq_delivery_round(void);
extern bool aq_delivery_settle(void);
extern bool aq_delivery_is_settled(void);
extern bool aq_delivery_remembers(void);

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
