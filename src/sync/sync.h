/*-------------------------------------------------------------------------
 *
 * sync.h
 *	  The door of part "sync": latches, mutexes, named waits.
 *
 * This is the only part in which a session waits or spins.  Everything is
 * counted; the uncontended path costs one atomic operation and a counter.
 *
 * Nothing may be allocated or raised while a latch or mutex is held; sections
 * are short.  Holding one holds off interrupts.  At the end of a transaction
 * and at exit aq_sync_release_all() frees what an error left behind.
 *
 * PostgreSQL owns the words Latch and latch.h; ours are always included as
 * "sync/sync.h" and begin with Aq / aq_.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AQ_SYNC_H
#define AQ_SYNC_H

#include "sync/common/atomics.h"		/* base/base.h, or the unit tests' stand-in */
#include "sync/common/lists.h"			/* enums from the list headers, see there */
#include "sync/common/latch_types.h"	/* AqLatch, AqMutex: structs, embeddable in shared memory */
#include "sync/waits/wakeup.h"		/* lists of waiters, for those who wake them */
#include "sync/traces/trace.h"			/* hooks of session traces */
#ifndef AQ_UNIT
#include "sync/waits/session_wait.h"	/* what sessions wait for; statistics, time model */
#endif

#ifndef AQ_UNIT
extern const AqPart aq_sync_part;
#endif

/* --- latches: post/wait, FIFO, exclusive or shared ------------------------
 * AqLatchId and AqLocation come from latch_list.h and location_list.h.
 * A latch lives for ever in shared memory that was zeroed, or was a latch of
 * the same id before.  child is the number shown in v$latch_children; give
 * each latch of an id its own, a lone latch 0.
 */
extern void aq_latch_init(AqLatch *latch, AqLatchId id, int child);
extern void aq_latch_get(AqLatch *latch, AqLatchMode mode, AqLocation where);
extern bool aq_latch_get_nowait(AqLatch *latch, AqLatchMode mode, AqLocation where);
extern void aq_latch_free(AqLatch *latch);
extern bool aq_latch_held(const AqLatch *latch);	/* by this session; for Assert */
extern int	aq_latch_holder(const AqLatch *latch);	/* session number, or -1 */
extern uint32 aq_latch_sharers(const AqLatch *latch);
extern AqLatch *aq_latch_find(const char *name, int child); /* or NULL */

/* --- mutexes: small, embedded in what they protect -------------------------
 * idn is the identifier shown as P1 (hash of the protected object).
 */
extern void aq_mutex_init(AqMutex *mutex, AqMutexType type, uint32 idn);
extern void aq_mutex_get(AqMutex *mutex, AqMutexMode mode, AqLocation where);
extern bool aq_mutex_get_nowait(AqMutex *mutex, AqMutexMode mode, AqLocation where);
extern void aq_mutex_free(AqMutex *mutex);
extern bool aq_mutex_held(const AqMutex *mutex);
extern uint64 aq_mutex_gets(AqMutex *mutex);	/* since it was initialised */
extern int	aq_mutex_holder(AqMutex *mutex);	/* exclusively or examining: session number, or -1 */

/* The reference count beside the owner: in mode AQ_EXAMINE it may be changed. */
extern uint32 aq_mutex_count(AqMutex *mutex);
extern void aq_mutex_add_count(AqMutex *mutex, int32 n);

/* After init: P1, and P3 as object << 32 | namespace << 16 | location.  The mutex is held, or not shared yet. */
extern void aq_mutex_set_object(AqMutex *mutex, uint32 idn, uint32 object, uint16 namespace);
extern void aq_mutex_counters(AqMutex *mutex, uint64 *gets, uint64 *sleeps);

/* For views: who has the latch or mutex that a session waits for; -1: none, nobody. */
extern int	aq_sync_blocker(int session);

extern void aq_sync_release_all(void);
extern void aq_sync_assert_none_held(void);

/* Only experiments sleep while they hold something. */
extern void aq_sleep_holding(int64 us);

/* For aq.check(): latches and mutexes of sessions that have ended. */
#ifndef AQ_UNIT
extern void aq_sync_check(AqFindings *findings);
#endif

/* What a get and a free cost; nobody else may use the two meanwhile. */
#ifndef AQ_UNIT
extern void aq_cost_rows(AqRow *row, AqLatch *free_latch, AqMutex *free_mutex, int n);
#endif

/* --- named waits -------------------------------------------------------------
 * AqEvent comes from event_list.h (name, class, P1-P3 texts).
 * aq_wait_begin/end bracket a wait made by other means; aq_wait_sleep sleeps on
 * the process latch until it is set, the time is over (timeout_us < 0: for
 * ever) or the postmaster dies; it handles interrupts, and returns false on
 * time-out.  It resets the process latch: check your condition after it.
 */
extern void aq_wait_begin(AqEvent event, uint64 p1, uint64 p2, uint64 p3);
extern void aq_wait_begin_timed(AqEvent event, uint64 p1, uint64 p2, uint64 p3, int64 timeout_us);
extern void aq_wait_end(void);
extern void aq_wait_end_timeout(void);	/* the same, counted as timed out */
extern bool aq_wait_sleep(AqEvent event, uint64 p1, uint64 p2, uint64 p3, int64 timeout_us);

/* the server's wait_event_info under which it shows the event */
extern uint32 aq_wait_info(AqEvent event);

/* waits for rare events that another session announces */
#ifndef AQ_UNIT
#include "sync/waits/cond.h"
#endif

#endif							/* AQ_SYNC_H */
