/*-------------------------------------------------------------------------
 *
 * parameters.c
 *	  The configuration parameters of part "queue".
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "queue/catalog/catalog_private.h"

#include "utils/guc.h"

int			aq_parameters_default_shards = 4;
int			aq_parameters_listen_wakeup = AQ_LISTEN_TARGETED;
bool		aq_parameters_session_pins = true;
int			aq_parameters_fetch_patience_ms = 1000;
int			aq_parameters_buffered_message_limit = 100000;
int			aq_parameters_flow_control_timeout_ms = 10000;
int			aq_parameters_immediate_helpers = 3;
int			aq_parameters_immediate_idle_timeout_ms = 60000;
int			aq_parameters_recipient_grace_ms = 60000;
int			aq_parameters_max_temporary_queues = 10;
int			aq_parameters_role_share = 75;
int			aq_parameters_role_schedules = 1000;

static char *system_role;		/* it only stands in pg_db_role_setting */

static const struct config_enum_entry listen_wakeups[] = {
	{"targeted", AQ_LISTEN_TARGETED, false},
	{"broadcast", AQ_LISTEN_BROADCAST, false},
	{NULL, 0, false}
};

static void
define_helpers(void)
{
	DefineCustomIntVariable("pgaq.immediate_helpers",
							"Number of background workers for calls with immediate visibility, in all databases.",
							"A call takes one for as long as it executes, not while it waits for messages. Each is "
							"one of max_worker_processes.",
							&aq_parameters_immediate_helpers,
							3, 1, 1000,
							PGC_SIGHUP, 0,
							NULL, NULL, NULL);
	DefineCustomIntVariable("pgaq.immediate_idle_timeout",
							"How long a background worker for immediate visibility waits for its next call.",
							"Then it ends. It ends earlier when another database or role needs its place.",
							&aq_parameters_immediate_idle_timeout_ms,
							60000, 0, INT_MAX,
							PGC_SIGHUP, GUC_UNIT_MS,
							NULL, NULL, NULL);
}

void
aq_parameters_define(void)
{
	DefineCustomIntVariable("pgaq.default_shards",
							"Default number of shards of a queue.",
							NULL,
							&aq_parameters_default_shards,
							4, 1, AQ_MAX_SHARDS,
							PGC_USERSET, 0,
							NULL, NULL, NULL);
	DefineCustomEnumVariable("pgaq.listen_wakeup",
							 "Listening sessions that a message wakes.",
							 "targeted: as many as there are messages, of those that listen for its "
							 "consumer. broadcast: all of them, through one channel with one latch, for experiments.",
							 &aq_parameters_listen_wakeup,
							 AQ_LISTEN_TARGETED, listen_wakeups,
							 PGC_USERSET, 0,
							 NULL, NULL, NULL);
	DefineCustomBoolVariable("pgaq.session_pins",
							 "Keeps a queue pinned in the object cache from a session's first use of it.",
							 "off locks and pins it for each use, for experiments: then all users of a queue meet at its mutex.",
							 &aq_parameters_session_pins,
							 true,
							 PGC_USERSET, 0,
							 NULL, NULL, NULL);
	DefineCustomStringVariable("pgaq.system_role",
							   "Marks the roles that pgaq_oracle has made: set for each of them, to its name.",
							   "It has no effect in a session.",
							   &system_role, "",
							   PGC_SUSET, GUC_NOT_IN_SAMPLE,
							   NULL, NULL, NULL);
	DefineCustomIntVariable("pgaq.fetch_patience",
							"Time that a client has after aq.wait to dequeue the message, before the other waiters are woken.",
							"-1 wakes no other waiter: then a busy or disconnected "
							"client keeps the message from other waiters until the next message.",
							&aq_parameters_fetch_patience_ms,
							1000, -1, INT_MAX,
							PGC_SIGHUP, GUC_UNIT_MS,
							NULL, NULL, NULL);
	DefineCustomIntVariable("pgaq.buffered_message_limit",
							"Maximum backlog of buffered messages of a consumer.",
							"Enqueuers wait while a consumer has this many buffered messages, up to "
							"pgaq.flow_control_timeout. A transaction cannot enqueue more into a "
							"queue, except for the rest of an array. 0: no limit.",
							&aq_parameters_buffered_message_limit,
							100000, 0, INT_MAX,
							PGC_SUSET, 0,
							NULL, NULL, NULL);
	DefineCustomIntVariable("pgaq.flow_control_timeout",
							"Time that an enqueue waits for room: in a full queue, or of a buffered message for consumers with too large a backlog.",
							"After that it fails. 0 does not wait.",
							&aq_parameters_flow_control_timeout_ms,
							10000, 0, INT_MAX,
							PGC_USERSET, GUC_UNIT_MS,
							NULL, NULL, NULL);
	define_helpers();
	DefineCustomIntVariable("pgaq.recipient_grace",
							"How long a recipient that is no subscriber keeps its place in a queue without messages.",
							"Then the worker gives the place back. It does so at once for another recipient when "
							"there is no other place.",
							&aq_parameters_recipient_grace_ms,
							60000, 1000, INT_MAX,
							PGC_SIGHUP, GUC_UNIT_MS,
							NULL, NULL, NULL);
	DefineCustomIntVariable("pgaq.max_temporary_queues",
							"Maximum number of temporary queues of a session.",
							"0: none can be created.",
							&aq_parameters_max_temporary_queues,
							10, 0, INT_MAX,
							PGC_SUSET, 0,
							NULL, NULL, NULL);
	DefineCustomIntVariable("pgaq.role_schedules",
							"Maximum number of schedules, and of propagation schedules, of a role in a database.",
							"The same limit applies to propagation schedules of other databases that send messages as the role. "
							"Superusers have no limit. The view aq.role_usage shows the use.",
							&aq_parameters_role_schedules,
							1000, 0, INT_MAX,
							PGC_SUSET, 0,
							NULL, NULL, NULL);
	DefineCustomIntVariable("pgaq.role_share",
							"Largest share of a role in the memory of all queues, in percent.",
							"The queues of a role that is not a superuser can use at most this percentage of "
							"pgaq.max_queues, pgaq.max_streams, pgaq.max_partitions and, for messages of running "
							"transactions, of pgaq.message_cache_size, and its transactions of the entries for "
							"dequeues from queue tables. The view aq.role_usage shows the use.",
							&aq_parameters_role_share,
							75, 1, 100,
							PGC_SIGHUP, 0,
							NULL, NULL, NULL);
}
