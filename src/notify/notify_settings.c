/*-------------------------------------------------------------------------
 *
 * notify_settings.c
 *	  The configuration parameters of part "notify".
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "notify/notify_private.h"

#include "utils/guc.h"

int			aq_notify_settings_notifiers = 2;
int			aq_notify_settings_idle_timeout_ms = 60000;
int			aq_notify_settings_call_timeout_ms = 60000;
int			aq_notify_settings_failures = 16;
int			aq_notify_settings_retry_delay_ms = 1000;

void
aq_notify_settings_define(void)
{
	DefineCustomIntVariable("pgaq.notifiers",
							"Number of background workers that call registered procedures, in all databases.",
							"Each calls those of one role in one database, and is one of max_worker_processes.",
							&aq_notify_settings_notifiers,
							2, 1, 1000,
							PGC_SIGHUP, 0,
							NULL, NULL, NULL);
	DefineCustomIntVariable("pgaq.notifier_idle_timeout",
							"How long a background worker for notification waits for something to do.",
							"Then it ends. It ends earlier when another database or role needs its place.",
							&aq_notify_settings_idle_timeout_ms,
							60000, 0, INT_MAX,
							PGC_SIGHUP, GUC_UNIT_MS,
							NULL, NULL, NULL);
	DefineCustomIntVariable("pgaq.notification_timeout",
							"How long a registered procedure may run.",
							"Then it is cancelled, and five seconds later its background worker is ended; the call "
							"has failed.",
							&aq_notify_settings_call_timeout_ms,
							60000, 1, INT_MAX,
							PGC_SIGHUP, GUC_UNIT_MS,
							NULL, NULL, NULL);
	DefineCustomIntVariable("pgaq.notification_failures",
							"Number of failed calls in a row after which a registration is disabled.",
							NULL,
							&aq_notify_settings_failures,
							16, 1, 1000,
							PGC_SIGHUP, 0,
							NULL, NULL, NULL);
	DefineCustomIntVariable("pgaq.notification_retry_delay",
							"Time until a failed call of a registered procedure is repeated.",
							"It doubles with each further failure, up to five minutes.",
							&aq_notify_settings_retry_delay_ms,
							1000, 1, 300000,
							PGC_SIGHUP, GUC_UNIT_MS,
							NULL, NULL, NULL);
}
