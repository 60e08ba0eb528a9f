/*-------------------------------------------------------------------------
 *
 * node_settings.c
 *	  The parameters of heartbeats.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "node/node_private.h"

#include "utils/guc.h"

int			aq_node_settings_heartbeat = 1000;
int			aq_node_settings_timeout = 10000;

void
aq_node_settings_define(void)
{
	DefineCustomIntVariable("pgaq.node_heartbeat",
							"Time between two heartbeats to another node.",
							"At most half of pgaq.node_timeout is used.",
							&aq_node_settings_heartbeat,
							1000, 100, 60000,
							PGC_SIGHUP, GUC_UNIT_MS,
							NULL, NULL, NULL);
	DefineCustomIntVariable("pgaq.node_timeout",
							"Time without an answer after which another node is unreachable.",
							"After the same time, another server can take over the node's identity.",
							&aq_node_settings_timeout,
							10000, 1000, 3600000,
							PGC_SIGHUP, GUC_UNIT_MS,
							NULL, NULL, NULL);
}
