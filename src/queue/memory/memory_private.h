/*-------------------------------------------------------------------------
 *
 * memory_private.h
 *	  Declarations shared by the files of folder "memory" and of those that may use it.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AQ_MEMORY_PRIVATE_H
#define AQ_MEMORY_PRIVATE_H

#include "queue/catalog/catalog_private.h"

/* --- shm.c */
extern Size aq_shm_size(void);
extern void aq_shm_init(void *area, bool found);

/* --- history_wish.c: the worker's sample of a queue for its history */
extern bool aq_history_wish_on; /* pgaq.history */

extern Size aq_history_wish_size(void);
extern void aq_history_wish_init(void *area, bool found);
extern TimestampTz aq_history_wish_minute(TimestampTz time);
extern uint32 aq_history_wish_count(TimestampTz *due);
extern void aq_history_wish(AqQueueShm *shm);

/* Called when something of the queue has been counted.  Never raises an error. */
static inline void
aq_history_changed(AqQueueShm *shm)
{
	if (pg_atomic_read_u32(&shm->sampled) == 0)
		aq_history_wish(shm);
}

/* --- rate.c */
extern bool aq_rate_has_token(AqConsumerShm *consumer);
extern TimestampTz aq_rate_next(AqConsumerShm *consumer, const AqRate *rate);

/* --- share.c */
extern void aq_share_init(void);

/* --- lag.c */
extern int64 aq_lag_of(AqQueueShm *shm, int position);
extern void aq_lag_shrank(AqQueueShm *shm, int position);

/* --- temporary_owner.c */
extern Size aq_temporary_owner_size(void);
extern void aq_temporary_owner_init(void *area, bool found);
extern int64 aq_temporary_owner_enter(void);
extern bool aq_temporary_owner_lives(int64 identity);
extern uint64 aq_temporary_owner_ended(void);
extern void aq_temporary_owner_session_exit(void);

/* --- channel.c */
extern Size aq_channel_shmem_size(void);
extern void aq_channel_shmem_init(void *memory, bool found);
extern void aq_channel_join(void);
extern int	aq_channel_leave(void);
extern bool aq_channel_has_listeners(void);
extern bool aq_channel_has(int session);
extern bool aq_channel_woken(void);
extern void aq_channel_wake(void);
extern void aq_channel_set_latches(const int32 *sessions, int n);

/* --- waiters.c */
extern Size aq_waiters_shmem_size(void);
extern void aq_waiters_shmem_init(void *area, bool found);
extern void aq_waiters_job(int32 id, AqQueueShm *shm);
extern void aq_waiters_check(AqFindings *findings);
extern void aq_waiters_check_queue(AqQueueShm *shm, AqFindings *findings);

/* --- traffic.c */
extern void aq_traffic_begin(AqQueueShm *shm, AqConsumerShm *place, uint64 number);
extern bool aq_traffic_is_time(AqTraffic item);
extern bool aq_traffic_rule_failed(AqQueueShm *shm, int position, int64 number, uint32 n, int error, uint64 rule);

/* --- holds.c: recipients that must keep their positions */
extern bool aq_holds_take(AqQueue *queue, const AqConsumer *recipient, bool *new);
extern void aq_holds_drop(AqQueue *queue, int position);
extern void aq_holds_end(void);
extern bool aq_holds_are_allowed(AqQueue *queue, const AqConsumer *recipient);
extern bool aq_holds_are_closing(AqQueueShm *shm, int position);
extern void aq_holds_reopen(AqQueue *queue);
extern void aq_holds_check(AqQueue *queue, AqFindings *findings);

/* --- users.c */
extern Size aq_users_shmem_size(void);
extern void aq_users_shmem_init(void *area, bool found);
extern void aq_users_init(void);
extern void aq_users_want_end(const AqQueueShm *shm);
extern void aq_users_want_room(const AqQueueShm *shm, int position, uint32 room);
extern void aq_users_note_taken(const AqQueueShm *shm, int position, uint32 n);
extern uint32 aq_users_taken(const AqQueueShm *shm, int position);
extern void aq_users_forget_taken(void);
extern int	aq_users_add(AqQueueShm *shm);
extern uint32 aq_users_number(AqQueueShm *shm);
extern uint32 aq_users_generation(AqQueueShm *shm);
extern bool aq_users_outlived(AqQueueShm *shm, uint32 generation);
extern void aq_users_remove(AqQueueShm *shm, int counter);
extern bool aq_users_are_stopped(AqQueueShm *shm, bool enqueue);
extern void aq_users_count_stops(AqQueueShm *shm, int bits, int32 by);

/* --- pins.c: a session's pins on queues */
extern void aq_pins_sweep(void);
extern void aq_pins_book_time(int32 id, AqTimeKind kind, uint64 elapsed, uint64 cpu);
extern bool aq_pins_give_back(void);
extern void aq_pins_session_exit(void);
extern void aq_pins_end_use(bool commit);
extern AqQueueShm *aq_pins_shm_of(int32 id);
extern bool aq_pins_keep(AqObject *object);
extern void aq_pins_release(void);
extern bool aq_pins_use(AqQueueShm *shm);
extern void aq_pins_note_put(const AqQueueShm *shm);
extern void aq_pins_begin_dequeue(const AqQueueShm *shm, int position);
extern void aq_pins_note_taken(const AqQueueShm *shm, int position);
extern void aq_pins_unuse(AqQueueShm *shm);

/*
 * --- announce.c: definitions, at the end of transactions; only the first can
 * raise an error
 */
extern void aq_announce_pre_commit(void);
extern void aq_announce_commit(void);
extern void aq_announce_subxact_end(bool commit, SubTransactionId subid, SubTransactionId parent);
extern void aq_announce_xact_end(bool commit);
extern void aq_announce_released(void);

/* --- cursor.c: none but the first allocates or raises an error */
extern void aq_cursor_note(void);
extern void aq_cursor_subcommit(SubTransactionId subid, SubTransactionId parent);
extern void aq_cursor_subabort(SubTransactionId subid);
extern void aq_cursor_forget(void);

/* --- store_xact.c */
extern void aq_store_xact_init(void);

/* --- flow.c */
typedef struct AqFlowWait
{
	int64		deadline;
	bool		slept;
	AqDeadlockWatch watch;
} AqFlowWait;

extern bool aq_flow_admits(AqQueue *queue, Bitmapset *const *targets, uint32 n, bool immediate, AqFlowWait *wait);
extern uint64 aq_flow_enqueued_here(const AqQueueShm *shm);
extern void aq_flow_help(void);
extern void aq_flow_refused(int32 *queue_id, int *position);
extern bool aq_flow_wait(int32 queue_id, int position, AqFlowWait *wait);

#endif							/* AQ_MEMORY_PRIVATE_H */
