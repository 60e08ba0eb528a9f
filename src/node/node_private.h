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
#include "move/move.h"
#include "queue/queue.h"

#define AQ_NODE_ID 37			/* bytes of a uuid as text, with the final zero */
#define AQ_NODE_MESSAGE 512
#define AQ_NODE_HINT 256

/* The identity that a node claims, in heartbeats and their answers. */
typedef struct AqNodeIdentity
{
	char		id[AQ_NODE_ID]; /* of the database; survives restarts and failovers */
	int64		timeline;		/* of the server's WAL */
	TimestampTz started;		/* when the server was started */
} AqNodeIdentity;

/* --- node_change.c: what the end of the transaction announces */
extern void aq_node_change_register(void);
extern void aq_node_change_note_room(void);
extern void aq_node_change_note_call(void);
extern bool aq_node_change_is_open(void);

/* --- node_queue.c */
extern void aq_node_queue_register(void);

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
	/* one queue on several nodes */
	int64		fence;			/* only messages that come with this token are taken; 0: none */
	int64		forwarded;		/* messages sent there, and arrived */
	int64		batches;		/* with these */
	int64		reported;		/* messages that it has consumed of this node's */
	int64		granted;		/* units */
	int64		returned;		/* units that came back */
	TimestampTz queue_error_time;	/* 0: no queue has an error */
	bool		queue_error_of_wish;	/* it is of node_want.c, else of node_forward.c; each ends its own */
	char		queue_error[AQ_NODE_MESSAGE];
} AqNodeState;

extern void aq_node_area_define(void);
extern Size aq_node_area_size(void);
extern void aq_node_area_init(void *area, bool found);
extern AqNodeState *aq_node_area_get(int32 number);
extern bool aq_node_area_copy(int32 number, AqNodeState *copy);
extern void aq_node_area_free(void);
extern void aq_node_area_queue_failed(int32 number, bool of_wish, const char *message, const char *hint);
extern void aq_node_area_queue_works(int32 number, bool of_wish);
extern void aq_node_area_keep(const int32 *numbers, int n);
extern void aq_node_area_forget(Oid database);

/* a consumer that has dequeued, or waited, within this time is wanted by its node, microseconds */
#define AQ_NODE_WISH_TIME ((int64) 5000000)

extern void aq_node_area_wish(int32 number, int32 queue_id, int64 consumer, Oid role);
extern Oid	aq_node_area_wish_role(int32 number, int32 queue_id, int64 consumer);
extern void aq_node_area_nodes_changed(void);	/* never raises */
extern uint32 aq_node_area_nodes(void);
extern void aq_node_area_units_changed(void);	/* never raises */
extern uint32 aq_node_area_units(void);
extern void aq_node_area_note_news(AqPeerNews news);	/* never raises */
extern uint32 aq_node_area_news(AqPeerNews news);

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
extern void aq_node_identity_send(AqLinkRequest *request, const AqNodeIdentity *own);
extern void aq_node_identity_require(AqNodeIdentity *own);
extern AqNodeMeeting aq_node_identity_meet(int32 number, const AqNodeIdentity *other);
extern const char *aq_node_identity_hint(AqNodeMeeting meeting);
extern int32 aq_node_identity_number(const char *id);
extern const char *aq_node_identity_caller(FunctionCallInfo fcinfo, const char *command, int32 *number);

/* --- node_stream.c: heartbeats; the nodes to which there are streams */
typedef struct AqNodeLink
{
	int32		number;
	Oid			server;
	Oid			role;
} AqNodeLink;

extern void aq_node_stream_register(void);
extern bool aq_node_stream_exist(void);
extern void aq_node_stream_list(void);

/*
 * --- node_unit.c: units of this node that others hold
 *
 * The messages of a consumer in a shard of a distributed queue.
 */
typedef struct AqNodeUnit
{
	int32		queue_id;
	int			shard;
	int64		consumer;		/* its number, never reused; 0: the only one, without a name */
	int64		epoch;
	bool		recalled;
	bool		is_back;		/* the holder is this node: see node_unit.c */
	int			age;			/* of the grant, or the recall; seconds */
	Oid			role;
	int32		holder;			/* number of the node; 0: it was removed */
} AqNodeUnit;

extern List *aq_node_unit_queues(void);
extern List *aq_node_unit_list(int32 holder, int32 queue_id);	/* 0: of any; in the current memory context */
extern bool aq_node_unit_lock(int32 queue_id, bool wait);
extern int64 aq_node_unit_number(void);
extern bool aq_node_unit_grant(int32 queue_id, int shard, int64 consumer, const char *holder, Oid role);
extern void aq_node_unit_forget_removed(int32 queue_id);
extern void aq_node_unit_recall(const AqNodeUnit *unit);
extern bool aq_node_unit_end(const AqNodeUnit *unit);
extern void aq_node_unit_give_back(AqQueue *queue, int position, const pg_uuid_t *ids, uint32 n);
extern int	aq_node_unit_position(const AqQueue *queue, int64 number);

/* --- node_job.c: in the worker of the database */
extern void aq_node_job_register(void);

/* --- node_policy.c: which node gets which unit */
extern void aq_node_policy_run(AqQueue *queue);
extern bool aq_node_policy_wished(AqQueue *queue, int position);

/* --- node_want.c: telling other nodes what is dequeued here */
extern void aq_node_want_register(void);

/* --- node_forward.c: sending units' messages to their holders */
extern void aq_node_forward_register(void);

/* --- node_held.c: units of other nodes that this one holds */
typedef struct AqNodeHeld
{
	int32		queue_id;
	int			shard;			/* here */
	int64		consumer;		/* its number here; 0 as above */
	bool		returns;
	int64		epoch;
} AqNodeHeld;

extern bool aq_node_held_lock(int32 number);
extern List *aq_node_held_list(const char *origin);
extern bool aq_node_held_find(const char *origin, int64 epoch, AqNodeHeld *held);
extern bool aq_node_held_begin(AqQueue *queue, const char *consumer, const char *origin, int64 epoch, int origin_shard, AqNodeHeld *held);
extern bool aq_node_held_return(const char *origin, int64 epoch, bool wait);
extern bool aq_node_held_clean(int32 queue_id);
extern void aq_node_held_adopt(const AqNodeHeld *held, const char *origin);
extern bool aq_node_held_end(const AqNodeHeld *held, const char *origin);

/* --- node_report.c: reporting what was consumed of them */
extern void aq_node_report_register(void);

/* --- values in rows of queries, and in requests: node_rows.c */
extern int64 aq_node_rows_int(uint64 row, int column);
extern bool aq_node_rows_bool(uint64 row, int column);
extern Datum aq_node_rows_array(Oid type, Datum *values, bool *nulls, int n);

#endif							/* AQ_NODE_PRIVATE_H */
