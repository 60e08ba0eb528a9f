/*-------------------------------------------------------------------------
 *
 * notes_private.h
 *	  Declarations shared by the files of folder "notes" and of those that may use it.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AQ_NOTES_PRIVATE_H
#define AQ_NOTES_PRIVATE_H

#include "shard/partitions/partitions_private.h"

/* --- notes.c: what the running transaction has enqueued and taken ------------------------ */

typedef struct PutNote
{
	Partition  *partition;
	AqQueueShm *shm;
	SubTransactionId subid;
	uint32		first;
	uint32		count;
	Bitmapset  *shared_targets; /* the same for all messages, or NULL */
	Bitmapset **targets;		/* one for each message, or NULL; both NULL: single consumer */
	TimestampTz ready_at;
	TimestampTz expires_at;
	uint32		timers;			/* number reserved in the frame */
	uint32		key;			/* of the correlation of all messages, or AQ_ANY_KEY */
	bool		inserted;		/* the slots have their TIDs */
	bool		published;		/* committed, and waiters are to be woken */
	bool		frozen;			/* with immediate visibility: everybody sees the row */
} PutNote;

static inline bool
put_note_has(const PutNote *note, uint32 slot)
{
	return slot >= note->first && slot < note->first + note->count;
}

/* This bit of a receipt: another node has the message.  No session gets such a receipt. */
#define AQ_RECEIPT_NODE (INT64CONST(1) << 60)

/* What the log row of a take with a lease, or of the end of one, contains besides its messages. */
typedef struct LeaseTerms
{
	int64		receipt;
	int64		span;			/* microseconds, counted from the end of the transaction; else 0 */
	TimestampTz until;			/* end of the lease or retry delay; 0: no delay */
	const char *detail;			/* for the log; NULL: none */
} LeaseTerms;

typedef struct TakeNote
{
	Partition  *partition;
	AqQueueShm *shm;
	SubTransactionId subid;
	int			position;
	AqMode		mode;
	LeaseTerms	terms;
	bool		own;			/* the messages are this transaction's own */
	bool		last;			/* the next failure of its message is the last one: aq_notes_have_last */
	bool		alone;			/* see aq_notes_find_alone */
	uint32		immediate;		/* number of the dequeue with immediate visibility: see frozen.c; 0: none */
	struct TakeNote *locked;	/* the note by which they were locked before, or NULL */
	uint32		count;
	uint32		size;
	uint16	   *slots;
	uint64_t   *tried;			/* LOCKED: bitmap of messages whose removal was rolled back; NULL: none */
	AqConsumed	consumed;		/* of messages whose rows were read */
	AqHistNote	latencies;		/* of the same */
} TakeNote;

extern MemoryContext aq_notes_context(void);
extern uint32 aq_notes_enqueued_for(const Partition *partition, uint32 number);
extern uint32 aq_notes_finishes(const Partition *partition, uint32 number);
extern PutNote *aq_notes_new_put(AqQueueShm *shm);	/* fill it in before aq_notes_add_put */
extern void aq_notes_add_put(PutNote *note);
extern void aq_notes_reserve_take(AqQueueShm *shm, uint32 n);
extern void aq_notes_add_take(Partition *partition, AqQueueShm *shm, int position, AqMode mode,
							  bool own, uint32 immediate, uint32 slot);
extern void aq_notes_add_lease(Partition *partition, AqQueueShm *shm, int position, AqMode mode,
							   const LeaseTerms *terms, uint32 slot);
extern void aq_notes_consumed(AqMode mode, TimestampTz now, const AqMessage *message);
extern int	aq_notes_puts(PutNote ***notes);
extern uint32 aq_notes_frames(void);
extern bool aq_notes_have_puts(const AqQueueShm *shm);
extern uint64 aq_notes_enqueued(const AqQueueShm *shm);
extern int	aq_notes_takes(TakeNote ***notes);
extern bool aq_notes_have_takes(const AqQueueShm *shm);
extern uint32 aq_notes_count_takes(const AqQueueShm *shm, int position);
extern void aq_notes_mark_last(void);
extern bool aq_notes_have_last(const AqQueueShm *shm);
extern void aq_notes_find_alone(SubTransactionId subid, bool commit);
extern TakeNote *aq_notes_find_locked(Partition *partition, int position, uint32 slot, uint32 *at);
extern void aq_notes_take_locked(TakeNote *locked, uint32 at, AqMode mode);
extern void aq_notes_at_commit(void (*callback) (void *arg), void *arg);
extern void aq_notes_run_at_commit(void);
extern void aq_notes_subcommit(SubTransactionId subid, SubTransactionId parent);
extern TakeNote *aq_notes_find_immediate(uint32 number);
extern void aq_notes_remove_take(TakeNote *note);
extern void aq_notes_remove_put(PutNote *note);
extern TakeNote *aq_notes_pop_take(SubTransactionId subid);
extern PutNote *aq_notes_pop_put(SubTransactionId subid, int *number);
extern void aq_notes_forget(void);

/* --- own.c: its own messages that it has dequeued; only aq_own_view raises --------------- */

typedef struct OwnView OwnView;

extern OwnView *aq_own_view(Partition *partition, int position, PutNote *const *notes, int n);
extern int	aq_own_next(const OwnView *view, uint32 from);
extern bool aq_own_take(OwnView *view, uint32 number);
extern void aq_own_give_back(Partition *partition, int position, const uint16 *slots, uint32 n);
extern void aq_own_remove(const PutNote *note, int number);
extern void aq_own_leave(const Partition *partition, int position, uint32 number);
extern uint32 aq_own_keep(const Partition *partition, int position, uint16 *slots, uint32 n);
extern bool aq_own_has_taken(const Partition *partition);
extern int	aq_own_taker(const Partition *partition, uint32 number, int *cursor);
extern void aq_own_forget(void);

/* --- keep.c ------------------------------------------------------------------------------ */
extern bool aq_keep_is_new(const Partition *partition);
extern void aq_keep_admit(AqQueueShm *shm); /* may wait and raise an error; call it without a latch */
extern void aq_keep_register(void);

#endif							/* AQ_NOTES_PRIVATE_H */
