/*-------------------------------------------------------------------------
 *
 * node_private.h
 *	  What the files of part "node" share.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AQ_NODE_PRIVATE_H
#define AQ_NODE_PRIVATE_H

#include "node/node.h"

#include "link/link.h"
#include "queue/queue.h"

#define AQ_NODE_ID 37			/* bytes of a uuid as text, with the final zero */
#define AQ_NODE_MESSAGE 512
#define AQ_NODE_HINT 256

/* Who a node says that it is, in heartbeats and their answers. */
typedef struct AqNodeIdentity
{
	char		id[AQ_NODE_ID]; /* of the database; survives restarts and failovers */
	int64		timeline;		/* of the server's WAL */
	TimestampTz started;		/* when the server was started */
} AqNodeIdentity;

/* --- node_settings.c: parameters, in milliseconds */
extern int	aq_node_settings_heartbeat;
extern int	aq_node_settings_timeout;

extern void aq_node_settings_define(void);

/* --- node_area.c: shared memory, for aq.nodes */

/*
 * Another node; protected by the latch "nodes".  Written by the link worker of
 * its database, and by sessions in aq.node_beat().
 */
typedef struct AqNodeState
{
	Oid			database;		/* InvalidOid: the entry is free */
	int32		number;			/* of the row in aq_internal.node */
	TimestampTz since;			/* when the entry was made */
	TimestampTz answered;		/* the last answer to a heartbeat; 0: none; also the next two */
	TimestampTz seen;			/* the last answer or heartbeat of the server that the row describes */
	TimestampTz contested;		/* another server had the node's identity */
	int64		latency_us;		/* of the last answer */
	int			failures;		/* heartbeats without a good answer, in a row */
	bool		refused;		/* the last one was answered with an error, or by the wrong node */
	bool		mutual;			/* the other node has added this one */
	int			protocol;
	char		version[32];
	TimestampTz error_time;		/* 0: there was no error */
	int			sqlstate;
	char		message[AQ_NODE_MESSAGE];
	char		hint[AQ_NODE_HINT];
} AqNodeState;

extern void aq_node_area_define(void);
extern Size aq_node_area_size(void);
extern void aq_node_area_init(void *area, bool found);
extern AqNodeState *aq_node_area_get(int32 number);
extern bool aq_node_area_copy(int32 number, AqNodeState *copy);
extern void aq_node_area_free(void);
extern void aq_node_area_keep(const int32 *numbers, int n);
extern void aq_node_area_forget(Oid database);

/* --- node_identity.c: who this node is, and whether another one is who it says */
typedef enum AqNodeOwn
{
	AQ_NODE_NONE,				/* the database is not a node */
	AQ_NODE_OWN,
	AQ_NODE_COPY				/* the identity was made in another database, of which this one is a copy */
} AqNodeOwn;

typedef enum AqNodeMeeting
{
	AQ_NODE_SAME,				/* it was accepted */
	AQ_NODE_CONTESTED,			/* another server with this identity was seen a short time ago */
	AQ_NODE_OLD,				/* a server with a newer timeline has had this identity */
	AQ_NODE_BUSY				/* another transaction changes the row: try again */
} AqNodeMeeting;

extern AqNodeOwn aq_node_identity_own(AqNodeIdentity *own);
extern void aq_node_identity_require(AqNodeIdentity *own);
extern AqNodeMeeting aq_node_identity_meet(int32 number, const AqNodeIdentity *other);
extern const char *aq_node_identity_hint(AqNodeMeeting meeting);

/* --- node_calls.c: the functions for users */
extern int32 aq_node_calls_number(const char *id);

/* --- node_stream.c: heartbeats */
extern void aq_node_stream_register(void);

#endif							/* AQ_NODE_PRIVATE_H */
