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

static const struct config_enum_entry listen_wakeups[] = {
	{"targeted", AQ_LISTEN_TARGETED, false},
	{"broadcast", AQ_LISTEN_BROADCAST, false},
	{NULL, 0, false}
};

void
aq_parameters_define(void)
{
	DefineCustomIntVariable("pgaq.default_shards",
							"Number of shards of a queue created without saying how many.",
							NULL,
							&aq_parameters_default_shards,
							4, 1, AQ_MAX_SHARDS,
							PGC_USERSET, 0,
							NULL, NULL, NULL);
	DefineCustomEnumVariable("pgaq.listen_wakeup",
							 "Whom a message wakes of the sessions that listen.",
							 "targeted: as many as there are messages, of those that listen for its consumer. "
							 "broadcast: all of them, through one channel with one latch, for study.",
							 &aq_parameters_listen_wakeup,
							 AQ_LISTEN_TARGETED, listen_wakeups,
							 PGC_USERSET, 0,
							 NULL, NULL, NULL);
	DefineCustomBoolVariable("pgaq.session_pins",
							 "Keeps a queue pinned in the object cache from a session's first use of it.",
							 "off locks and pins it for each use, as Oracle does, for study: then all users "
							 "of a queue meet at its mutex.",
							 &aq_parameters_session_pins,
							 true,
							 PGC_USERSET, 0,
							 NULL, NULL, NULL);
	DefineCustomIntVariable("pgaq.fetch_patience",
							"How long after aq.wait a client may take to fetch the message before another waiter is told of it.",
							"-1 tells no other waiter: then a client that is busy or gone keeps the message from "
							"other waiters until the next one comes.",
							&aq_parameters_fetch_patience_ms,
							1000, -1, INT_MAX,
							PGC_SIGHUP, GUC_UNIT_MS,
							NULL, NULL, NULL);
	DefineCustomIntVariable("pgaq.buffered_message_limit",
							"Number of buffered messages that may lie before a consumer.",
							"Enqueuers wait while a consumer has this many buffered messages, up to "
							"pgaq.flow_control_timeout. A transaction cannot enqueue more into a queue, but for the "
							"rest of an array. 0: no limit.",
							&aq_parameters_buffered_message_limit,
							100000, 0, INT_MAX,
							PGC_SUSET, 0,
							NULL, NULL, NULL);
	DefineCustomIntVariable("pgaq.flow_control_timeout",
							"How long an enqueuer of a buffered message waits for consumers that have too many.",
							"Then it gets an error. 0 does not wait.",
							&aq_parameters_flow_control_timeout_ms,
							10000, 0, INT_MAX,
							PGC_USERSET, GUC_UNIT_MS,
							NULL, NULL, NULL);
}
