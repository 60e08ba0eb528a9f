/*-------------------------------------------------------------------------
 *
 * tables_private.h
 *	  Declarations shared by the files of folder "tables" and of those that may use it.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AQ_TABLES_PRIVATE_H
#define AQ_TABLES_PRIVATE_H

#include "shard/notes/notes_private.h"

#include "access/htup_details.h"
#include "access/transam.h"
#include "storage/buf.h"
#include "storage/itemptr.h"
#include "utils/relcache.h"

/*
 * P3 of a wait for tables, to distinguish it from other waits for the worker
 */
#define AQ_WAITS_FOR_TABLES 1

/* --- columns of the tables ------------------------------------------------------------ */

/*
 * A row whose ordinal is negative is a chunk of a message's body: the ordinal is the
 * complement of the message's, MSG_SESSION the chunk's number, MSG_TARGETS its bytes.
 */
enum
{
	MSG_ORDINAL, MSG_SESSION, MSG_ENQUEUE_TIME, MSG_STREAM, MSG_PAYLOAD, MSG_TARGETS,
	MSG_CORRELATION, MSG_PROPERTIES, MSG_READY_AT, MSG_EXPIRES_AT, MSG_SENDER,
	MSG_EXCEPTION_QUEUE, MSG_ORIGINAL_ID, MSG_ATTEMPTS, MSG_EXCEPTION_QUEUE_ID, MSG_DEAD_LETTER,
	MSG_KEY,					/* tables made by 0.1.0 do not have it: Partition.keyed */
	MSG_COLUMNS
};

enum
{
	LOG_KIND, LOG_STREAM, LOG_CONSUMER, LOG_TIME, LOG_ORDINALS, LOG_RECEIPT, LOG_DETAIL, LOG_WRITTEN, LOG_COLUMNS
};

/* The ordinal of the message to which a row belongs. */
static inline int64
message_ordinal(int64 ordinal)
{
	return ordinal < 0 ? ~ordinal : ordinal;
}

/* The consumers of a row's "targets", like bms_next_member(). */
static inline int
targets_next(bytea *targets, int position)
{
	const uint8 *bits = (const uint8 *) VARDATA_ANY(targets);
	int			n = VARSIZE_ANY_EXHDR(targets) * 8;

	while (++position < n)
		if (bits[position / 8] >> (position % 8) & 1)
			return position;
	return -1;
}

/* kinds of log rows */
#define LOG_TAKEN	't'			/* consumed */
#define LOG_PURGED	'p'
#define LOG_CLEARED	'c'			/* purged after it was consumed: only the views read it */
#define LOG_RETRY	'r'			/* a dequeue was rolled back; time: end of its retry delay */
#define LOG_FAILED	'x'			/* expired or failed for this consumer; with a receipt, detail begins with an
								 * AQ_DEATH_* */
#define LOG_MOVED	'm'			/* moved to the exception queue, or deleted */
#define LOG_LOCKED	'l'			/* locked by a prepared transaction, not consumed */
#define LOG_LEASED	's'			/* taken for a time; time: when the lease ends, here and in the next one */
#define LOG_EXTENDED 'e'
#define LOG_OVER	'o'			/* the lease has ended by time */
#define LOG_RELEASED 'b'		/* given back; time: when it is ready again, here and in the next one */
#define LOG_UNSEEN	'u'			/* given back, and the attempt does not count */
#define LOG_REMOVED 'd'			/* the consumer was removed: it is done with all messages up to this one */

/* in the log instead of an AQ_DEATH_*: it was given back unseen, and had expired; the lease is no attempt */
#define DEATH_UNSEEN	'u'

/* bytes of LOG_DETAIL at most: see AQ_LOG_ORDINALS */
#define LOG_DETAIL_SIZE 600

/* ordinals of a log row at most: it must fit on a page without TOAST, together with LOG_DETAIL_SIZE bytes */
#define AQ_LOG_ORDINALS 900

/* A row of the log; valid as long as its tuple. */
typedef struct LogRow
{
	char		kind;
	int			stream;
	int			position;
	TimestampTz at;
	int			n;
	const int64 *ordinals;
	int64		receipt;		/* 0: none */
	bool		alone;			/* a dequeue without a lease; if it is rolled back after PREPARE: the only message of
								 * its queue */
	const text *detail;			/* NULL: none */
	TimestampTz written;		/* 0: not about a lease */
} LogRow;

/* Why a leased message failed: AQ_DEATH_* or DEATH_UNSEEN; '\0': the row does not say. */
static inline char
log_death(const LogRow *row)
{
	return row->kind == LOG_FAILED && row->receipt != 0 && row->detail != NULL && VARSIZE_ANY_EXHDR(row->detail) > 0
		? *VARDATA_ANY(row->detail) : '\0';
}

/* --- heap.c ------------------------------------------------------------------------------ */
pg_noreturn extern void aq_heap_queue_is_gone(void);
extern bool aq_heap_holds_others(uint32 queue, const Partition *partition);
extern void aq_heap_lock_relation(Oid relid, LOCKMODE mode);
extern void aq_heap_lock_against_drop(uint32 queue, const Partition *partition, Oid relid, LOCKMODE mode);
extern bool aq_heap_lock_for_worker(Partition *partition, LOCKMODE mode);
extern bool aq_heap_try_tables(const Partition *partition);
extern void aq_heap_leave_tables(const Partition *partition);
extern Relation aq_heap_open_messages(Partition *partition, LOCKMODE mode);
extern bool aq_heap_read_row(Relation rel, HeapTuple tuple, Buffer *buffer);
extern void aq_heap_read_message(AqQueue *queue, const Stream *stream, HeapTuple tuple, TupleDesc desc,
								 AqMessage *message, Datum *values, bool *nulls);
extern LogRow aq_heap_read_log(HeapTuple tuple, TupleDesc desc);
extern Relation aq_heap_open_numbered(const AqQueue *queue, char letter, int table_no, LOCKMODE mode);
extern int64 aq_heap_partition_number(Relation rel);
extern int64 aq_heap_next_number(AqQueue *queue);
extern void aq_heap_write_cleared(Relation log, int stream, int64 number, int position, const uint16 *slots, uint32 n);
extern void aq_heap_write_log(Partition *partition, char kind, TimestampTz at, int position,
							  const uint16 *slots, uint32 n);
extern void aq_heap_write_lease(Partition *partition, char kind, TimestampTz at, int position,
								const uint16 *slots, uint32 n, int64 receipt, const char *detail);
extern Relation aq_heap_open_log(Partition *partition);
extern void aq_heap_write_frozen(Relation log, Partition *partition, char kind, int position, const uint16 *slots, uint32 n);

/* --- tables.c ---------------------------------------------------------------------------- */
extern Oid	aq_tables_find(char letter, int32 id, int table_no);
extern List *aq_tables_numbers(int32 id);
extern void aq_tables_lock(AqQueue *queue);
extern void aq_tables_drop(AqQueue *queue);
extern Partition *aq_tables_provide(AqQueue *queue, bool keyed);	/* an EMPTY one, TAKEN: a claim */
extern void aq_tables_used(Partition *partition);	/* the claim ends */
extern void aq_tables_unused(Partition *partition); /* likewise; to the list again */
extern void aq_tables_give_back(AqQueueShm *shm, Partition *partition);
extern void aq_tables_subabort(SubTransactionId subid);
extern void aq_tables_subcommit(SubTransactionId subid, SubTransactionId parent);
extern void aq_tables_xact_end(void);
extern bool aq_tables_ready_for_worker(AqQueue *queue, bool keyed);
extern Partition *aq_tables_take_empty(AqQueueShm *shm);
extern void aq_tables_job(int32 id, AqQueueShm *shm);
extern void aq_tables_check_surplus(AqQueueShm *shm);
extern void aq_tables_surplus_job(int32 id, AqQueueShm *shm);

/* --- body_places.c ----------------------------------------------------------------------- */
extern bytea *aq_body_places_read(Relation rel, int64 ordinal, int32 number);
extern bytea *aq_body_places_targets(Relation rel, int64 ordinal);
extern void aq_body_places_written(Oid table, int64 ordinal);

#endif							/* AQ_TABLES_PRIVATE_H */
