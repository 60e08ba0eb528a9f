/*-------------------------------------------------------------------------
 *
 * commit_private.h
 *	  Declarations shared by the files of folder "commit" and of those that may use it.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AQ_COMMIT_PRIVATE_H
#define AQ_COMMIT_PRIVATE_H

#include "shard/tables/tables_private.h"

/* --- settle.c: the end of a transaction, slot by slot; none raises ----------------------- */
extern void aq_settle_put(PutNote *note, bool commit, TransactionId xid);
extern void aq_settle_wake(PutNote *const *notes, int n);
extern void aq_settle_count_put(AqQueueShm *shm, Stream *stream, uint32 n, bool delayed, bool expires, TimestampTz now);
extern uint64 aq_settle_finished_here(const AqQueueShm *shm, int position);
extern void aq_settle_take(TakeNote *note, bool commit, bool count_retry, TransactionId xid);
extern void aq_settle_publish(AqQueueShm *shm, Stream *stream, Partition *partition, uint32 first, uint32 n,
							  const Bitmapset *targets, TimestampTz ready_at, TimestampTz now);
extern void aq_settle_removed(AqQueueShm *shm, Partition *partition, int position, uint32 number, TransactionId xid);
extern void aq_settle_done(AqQueueShm *shm, Partition *partition, int position,
						   uint32 slot, TransactionId xid);
extern void aq_settle_list_done(ShardQueue *queue, Partition *partition);
extern uint32 aq_settle_first_done(ShardQueue *queue);
extern bool aq_settle_lease(Stream *stream, Partition *partition, int position, uint32 number, char kind,
							TimestampTz until, int64 receipt);
extern bool aq_settle_lease_goes_on(Partition *partition, int position, uint32 number);
extern char aq_settle_kind(AqMode mode);
extern void aq_settle_failed(AqQueueShm *shm, Partition *partition, int position, uint32 number);
extern void aq_settle_check_done(Stream *stream, Partition *partition);

/* --- doubt.c ----------------------------------------------------------------------------- */
extern void aq_doubt_prepare(TransactionId xid);	/* pre-prepare: reserves entries; may raise an error */
extern void aq_doubt_prepared(void);	/* passes the notes on; does not raise an error */
extern void aq_doubt_cancel(void);	/* the transaction has not been prepared, but aborted */
extern bool aq_doubt_resolve(AqQueueShm *shm, bool wait);
extern void aq_doubt_pass(AqQueueShm *shm); /* settles prepared transactions that have ended */
extern void aq_doubt_sweep_ended(void); /* a prepared transaction was finished; does not raise an error */
extern void aq_doubt_sweep_job(int32 id, AqQueueShm *shm);

/* --- frozen.c: immediate visibility --------------------------------------------------------- */
extern void aq_frozen_begin(Relation rel);
extern void aq_frozen_publish(PutNote *note);
extern uint32 aq_frozen_number(void);
extern void aq_frozen_settle_taken(AqImmediate *immediate);

/* --- shard_xact.c ------------------------------------------------------------------------ */
extern const AqStoreXact aq_shard_xact;

#endif							/* AQ_COMMIT_PRIVATE_H */
