/*-------------------------------------------------------------------------
 *
 * address.c
 *	  Names of consumers that are at another queue.
 *
 * A consumer of a topic whose name is "[agent ]-> address" does not dequeue: its
 * messages are propagated to the queue at the address, for the agent there, or
 * for the queue's own subscribers.  Everything else about it, its rule, its
 * position, its rights, is as of any consumer; part "propagate" takes its
 * messages.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "queue/catalog/catalog_private.h"

#define ARROW "-> "

/* The consumer's name; agent NULL: none. */
char *
aq_address_consumer(const char *agent, const char *address)
{
	return agent != NULL ? psprintf("%s " ARROW "%s", agent, address) : psprintf(ARROW "%s", address);
}

/* The address in a consumer's name, or NULL; *agent: NULL, or the name of the agent there. */
const char *
aq_address_of(const char *consumer, char **agent)
{
	const char *arrow;

	*agent = NULL;
	if (strncmp(consumer, ARROW, strlen(ARROW)) == 0)
		return consumer + strlen(ARROW);
	arrow = strstr(consumer, " " ARROW);
	if (arrow == NULL || arrow == consumer)
		return NULL;
	*agent = pnstrdup(consumer, arrow - consumer);
	return arrow + strlen(" " ARROW);
}
