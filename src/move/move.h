/*-------------------------------------------------------------------------
 *
 * move.h
 *	  The public header of part "move": messages that go from one queue to
 *	  another.  The part has no record: it needs no parameters, memory or
 *	  callbacks of its own.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AQ_MOVE_H
#define AQ_MOVE_H

#include "queue/queue.h"

/* --- move.c, move_wait.c: messages that go to another queue of the database */
typedef struct AqMove
{
	int32		source;			/* number of the queue */
	const char *consumer;		/* NULL: it has a single one */
	const char *destination;	/* name of the other queue; not for aq_move_away_take */
	const char *recipient;		/* NULL: its subscribers; only for a topic */
	int64		producer;		/* of aq_producer_own: its messages keep their order */
	int			max;			/* messages */
	int			unit;			/* for part "node": AqTakeOptions.unit, AqPutOptions.held; else 0 */
	int64		bytes;			/* of the moved payloads; set by the call */
} AqMove;

typedef struct AqMoveSource
{
	int32		queue_id;
	const char *consumer;		/* NULL: it has a single one, or only new recipients are waited for */
} AqMoveSource;

#define AQ_MOVE_SOURCES 200

/* Transformations of subscribers.  Set by part "oracle". */
typedef struct AqMoveTransformer
{
	/* The full name of one that this role has chosen; raises an error if it must not be used. */
	char	   *(*check) (const char *queue, const char *name, Oid role);
	/* Transforms n payloads from one type to the other. */
	void		(*apply) (const char *name, const char *queue, Oid given, Oid wanted, int n, Datum *payloads, bool *nulls);
} AqMoveTransformer;

extern void aq_move_on_transform(const AqMoveTransformer *callbacks);
extern uint32 aq_move_messages(AqMove *move);
extern void aq_move_wait(int n, const AqMoveSource *sources, int64 deadline, bool (*disturbed) (void));

/* --- move_away.c: messages that go to, and come from, another database */
typedef enum AqMovedColumn
{
	AQ_MOVED_PAYLOAD,			/* text */
	AQ_MOVED_PRIORITY,			/* integer */
	AQ_MOVED_TIME,				/* taken: timestamptz, when they expire; put: bigint, microseconds that are left */
	AQ_MOVED_CORRELATION,		/* text */
	AQ_MOVED_PROPERTIES,		/* jsonb */
	AQ_MOVED_SENDER,			/* text */
	AQ_MOVED_EXCEPTION_QUEUE,	/* text */
	AQ_MOVED_ORIGINAL,			/* uuid */
	AQ_MOVED_KEY,				/* text */
	AQ_MOVED_COLUMNS
} AqMovedColumn;

typedef struct AqMoved
{
	int			n;				/* messages */
	int64		bytes;			/* of their payloads */
	const char *payload_type;	/* its name, with the schema */
	bool		keyed;			/* at least one has a key; without, AQ_MOVED_KEY is not set, nor sent */
	Datum		columns[AQ_MOVED_COLUMNS];	/* arrays with n elements; not set if n is 0 */
} AqMoved;

extern void aq_move_away_take(const AqMove *move, AqMoved *moved);
extern void aq_move_away_put(const AqMove *move, const AqMoved *moved);
extern int	aq_move_away_columns(const AqMoved *moved);
extern AqMoved aq_move_away_arguments(FunctionCallInfo fcinfo, int first);

#endif							/* AQ_MOVE_H */
