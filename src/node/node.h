/*-------------------------------------------------------------------------
 *
 * node.h
 *	  The public header of part "node": the databases on other servers that
 *	  this one belongs together with.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AQ_NODE_H
#define AQ_NODE_H

#include "sync/sync.h"

extern const AqPart aq_node_part;

#endif							/* AQ_NODE_H */
