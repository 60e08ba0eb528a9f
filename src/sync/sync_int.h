/*-------------------------------------------------------------------------
 *
 * sync_int.h
 *	  What the files of part "sync" share with each other and nobody else.
 *
 * Compiles without the server (AQ_UNIT), as latch.c, mutex.c, scheme.c and
 * held.c do.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AQ_SYNC_INT_H
#define AQ_SYNC_INT_H

#include "sync/sync.h"

#ifndef AQ_UNIT
#include <semaphore.h>

typedef sem_t AqSem;
#endif

/* --- os.c: the system calls by which a session waits ------------------------ */

extern void aq_os_sem_init(AqSem *sem);
extern void aq_os_sem_post(AqSem *sem);
extern void aq_os_sem_wait(AqSem *sem); /* may return early */
extern void aq_os_sem_wait_us(AqSem *sem, int64 us);	/* or when us are over */
extern void aq_os_yield(void);
extern void aq_os_poll_ms(int ms);

/* --- sleepers: one per session, in shared memory ---------------------------- */

typedef enum AqSleepState
{
	AQ_SLEEP_NONE,				/* in no list */
	AQ_SLEEP_QUEUED,			/* in the wait list of a latch */
	AQ_SLEEP_POSTED				/* taken out of it, a post is under way */
} AqSleepState;

typedef struct AqSleeper
{
	AqSem		sem;			/* posted by latches only */
	pg_atomic_uint32 state;		/* AqSleepState; changed under the LIST bit */
	int32		next;			/* protected by the LIST bit, as all below */
	int32		prev;
	bool		exclusive;
} AqSleeper;

/* Contended gets by place; one atomic addition per get that had to sleep. */
typedef struct AqLatchMisses
{
	pg_atomic_uint64 nowait_failures;	/* nobody waited: no-wait get failed here */
	pg_atomic_uint64 sleeps;	/* the holder had got it here */
	pg_atomic_uint64 waiter_sleeps; /* who slept had asked here */
	pg_atomic_uint64 long_holds;	/* the holder had it all through a sleep */
} AqLatchMisses;

/*
 * Requests for mutexes of one type at one place in the code.  Each session
 * counts its own, so no count is lost and none costs an atomic operation.  They
 * belong to the session's slot: the next process in it goes on, so the sum of
 * all slots is what all sessions have done that ever were.
 */
typedef struct AqMutexCounts
{
	pg_atomic_uint64 gets;
	pg_atomic_uint64 misses;	/* the first try failed */
	pg_atomic_uint64 waits;		/* requests that slept; the other misses spun */
	pg_atomic_uint64 sleeps;	/* steps of the wait loop */
	pg_atomic_uint64 wait_time; /* microseconds in the wait loop */
	pg_atomic_uint64 spin_time; /* nanoseconds spent spinning */
} AqMutexCounts;

typedef struct AqMutexSleepRow
{
	pg_atomic_uint32 change;	/* odd while the row is written */
	uint32		idn;
	int64		time;			/* aq_clock_us */
	uint64		gets;
	uint64		sleeps;
	uint64		value;
	uint64		where;			/* P3 of the wait */
	int64		wait_time;		/* microseconds */
	int32		session;
	int32		blocker;		/* session, or -1 */
	uint16		type;
	uint16		location;
	uint16		mode;
} AqMutexSleepRow;

#define AQ_MUTEX_HISTORY	256

typedef struct AqSyncShared
{
	/* Registered latches by id: the head of a list through AqLatch.next. */
	pg_atomic_uint64 latches[AQ_LATCH_COUNT];

	AqLatchMisses latch_misses[AQ_LATCH_COUNT][AQ_LOC_COUNT];
	pg_atomic_uint64 history_next;
	AqMutexSleepRow history[AQ_MUTEX_HISTORY];

	int32		nsleepers;
	struct AqSyncSelf *selves;	/* as many, behind them */
	AqSleeper	sleepers[FLEXIBLE_ARRAY_MEMBER];
} AqSyncShared;

extern AqSyncShared *aq_sync_shared;

extern Size aq_sync_shared_size(int nsleepers);
extern void aq_sync_shared_init(AqSyncShared *shared, int nsleepers);

/* --- held.c: what a session holds and wants ----------------------------------- */

#define AQ_MAX_HELD 32

/*
 * A latch or mutex and a mode in one word, so that who reads it while it
 * changes never takes the one for the other.  Both are aligned to 8 bytes.
 */
#define AQ_LOCK_MODE	UINT64CONST(3)
#define AQ_LOCK_MUTEX	UINT64CONST(4)
#define AQ_LOCK_ADDRESS	(~UINT64CONST(7))

static inline uint64
aq_lock_word(const void *lock, bool is_mutex, AqLatchMode mode)
{
	return (uint64) (uintptr_t) lock | (is_mutex ? AQ_LOCK_MUTEX : 0) | (uint64) mode;
}

static inline void *
aq_lock_address(uint64 word)
{
	return (void *) (uintptr_t) (word & AQ_LOCK_ADDRESS);
}

static inline AqLatchMode
aq_lock_mode(uint64 word)
{
	return (AqLatchMode) (word & AQ_LOCK_MODE);
}

typedef struct AqHeld
{
	pg_atomic_uint64 lock;		/* aq_lock_word */
	pg_atomic_uint32 where;		/* AqLocation */
	uint32		again;			/* how often its holder has got a mutex again */
} AqHeld;

/*
 * One per session, in shared memory: written by its session, read by views.
 * What a get writes here is written often: no more than what is needed.
 */
typedef struct AqSyncSelf
{
	pg_atomic_uint32 nheld;
	uint32		random;			/* of scheme.c */
	pg_atomic_uint64 wants;		/* aq_lock_word it waits for, 0: none */
	AqHeld		held[AQ_MAX_HELD];
	AqMutexCounts mutexes[AQ_MUTEX_TYPE_COUNT][AQ_LOC_COUNT];
} AqSyncSelf;

extern AQ_LOCAL AqSyncSelf *aq_sync_self;	/* without a session: one that holds nothing */

extern void aq_sync_self_init(AqSyncSelf *self);
extern void aq_sync_self_set(int session);	/* -1: none */
pg_noreturn extern void aq_held_overflow(void);
extern AqHeld *aq_held_by(int session, const void *lock);	/* NULL when it does not hold it */
extern AqHeld *aq_held_find(const void *lock);	/* NULL when not held */

static inline uint32
aq_held_count(void)
{
	return pg_atomic_read_u32(&aq_sync_self->nheld);
}

/*
 * The end of the list, as it is before a get or a free.  Whoever gets or frees
 * looks it up first: what is read after an atomic operation has to wait for it.
 */
typedef struct AqHeldEnd
{
	AqSyncSelf *self;
	uint32		n;
} AqHeldEnd;

static inline AqHeldEnd
aq_held_end(void)
{
	AqHeldEnd	end = {.self = aq_sync_self};

	end.n = pg_atomic_read_u32(&end.self->nheld);
	return end;
}

/* NULL unless it is what was got last, as it nearly always is. */
static inline AqHeld *
aq_held_last(AqHeldEnd end, const void *lock)
{
	AqHeld	   *last = &end.self->held[end.n - 1];

	return likely(end.n > 0 && aq_lock_address(pg_atomic_read_u64(&last->lock)) == lock) ? last : NULL;
}

static inline void
aq_held_push(AqHeldEnd end, void *lock, bool is_mutex, AqLatchMode mode, AqLocation where)
{
	AqHeld	   *held = &end.self->held[end.n];

	if (unlikely(end.n == AQ_MAX_HELD))
		aq_held_overflow();
	pg_atomic_write_u64(&held->lock, aq_lock_word(lock, is_mutex, mode));
	pg_atomic_write_u32(&held->where, where);
	pg_atomic_write_u32(&end.self->nheld, end.n + 1);
}

static inline void
aq_held_drop(AqHeldEnd end, AqHeld *held)
{
	AqHeld	   *last = &end.self->held[end.n - 1];

	Assert(held->again == 0);
	/* nearly always the last one */
	for (; unlikely(held < last); held++)
	{
		held->again = held[1].again;
		pg_atomic_write_u32(&held->where, pg_atomic_read_u32(&held[1].where));
		pg_atomic_write_u64(&held->lock, pg_atomic_read_u64(&held[1].lock));
		held[1].again = 0;
	}
	pg_atomic_write_u32(&end.self->nheld, end.n - 1);
}

/* Adds to a counter that nobody else writes. */
static inline void
aq_own_add(pg_atomic_uint64 *counter, int64 n)
{
	pg_atomic_write_u64(counter, pg_atomic_read_u64(counter) + n);
}

/* --- latch.c: how a latch waits -------------------------------------------------- */

#define AQ_LATCH_CLASSES 8
#define AQ_CLASS_SLEEPS 8

/* Of class 0 only the defaults are used. */
typedef struct AqLatchClass
{
	int			spin;			/* polls; -1: aq_spin_count */
	int			yields;			/* how often to yield and spin again before sleeping */
	bool		timed;			/* sleeps end by themselves; false: only by a post */
	int			sleep_us[AQ_CLASS_SLEEPS];	/* the last one for all that follow */
} AqLatchClass;

extern AQ_LOCAL int aq_spin_count;
extern AQ_LOCAL uint8 aq_latch_class[AQ_LATCH_COUNT];
extern AQ_LOCAL AqLatchClass aq_latch_classes[AQ_LATCH_CLASSES];

extern uint64 aq_latch_gets(const AqLatch *latch);	/* with those that would not wait */

/* Of those that were willing to wait. */
static inline uint64
aq_latch_willing_gets(AqLatch *latch)
{
	uint64		immediate = pg_atomic_read_u64(&latch->immediate_gets);

	return aq_latch_gets(latch) - immediate;
}

/* --- scheme.c: how a mutex waits ---------------------------------------------- */

extern AQ_LOCAL int aq_mutex_spin_count;
extern AQ_LOCAL int aq_mutex_wait_scheme;
extern AQ_LOCAL int aq_mutex_wait_time;
extern AQ_LOCAL int aq_wait_yield_mode; /* AqYieldMode */
extern AQ_LOCAL int aq_wait_yield_sleep_time;
extern AQ_LOCAL int aq_wait_yield_sleep_freq;
extern AQ_LOCAL int aq_wait_yield_yield_freq;

typedef enum AqYieldMode
{
	AQ_YIELD_MODE_YIELD,
	AQ_YIELD_MODE_SLEEP
} AqYieldMode;

#define AQ_MAX_SPIN			1000000
#define AQ_MAX_SCHEME		255
#define AQ_MAX_WAIT_TIME	100000

/* What a type of mutex has of its own; -1: as all others. */
typedef struct AqMutexWay
{
	int			spin;
	int			scheme;
	int			time;
} AqMutexWay;

extern AQ_LOCAL AqMutexWay aq_mutex_ways[AQ_MUTEX_TYPE_COUNT];

/* One wait: how it waits, and how far it has come. */
typedef struct AqScheme
{
	AqMutexWay	way;			/* without -1 */
	uint64		step;			/* steps made so far */
	bool		timed;			/* false: its time is not accounted as waiting */
} AqScheme;

extern void aq_scheme_start(AqScheme *scheme, AqMutexType type);
extern void aq_scheme_step(AqScheme *scheme, AqSem *sem);

/* --- mutex.c ------------------------------------------------------------------- */

typedef struct AqMutexSum
{
	uint64		gets;
	uint64		misses;
	uint64		waits;
	uint64		sleeps;
	uint64		wait_time;
	uint64		spin_time;
} AqMutexSum;

extern AqMutexSum aq_mutex_sum(AqMutexType type, AqLocation where);

/* --- latch_find.c ------------------------------------------------------------- */
#ifndef AQ_UNIT
extern const char *const aq_latch_names[AQ_LATCH_COUNT];
extern const char *const aq_mutex_names[AQ_MUTEX_TYPE_COUNT];

/* Which of the names it is, in any case; -1: none. */
extern int	aq_name_find(const char *const *names, int n, const char *name, int length);
#endif

/* --- lock_lists.c: parameters that are lists ------------------------------------- */
#ifndef AQ_UNIT
extern void aq_lock_lists_define_parameters(void);
#endif

/* --- event.c -------------------------------------------------------------------- */
#ifndef AQ_UNIT
extern Size aq_event_shmem_size(void);
extern void aq_event_shmem_init(void *area, bool found);
extern void aq_event_session_start(void);
extern void aq_event_session_exit(void);
extern void aq_event_end_all(void);
#endif

/* --- trace_control.c -------------------------------------------------------------- */
#ifndef AQ_UNIT
extern void aq_trace_define_parameters(void);
extern Size aq_trace_shmem_size(void);
extern void aq_trace_shmem_init(void *area, bool found);
extern void aq_trace_session_start(void);
extern void aq_trace_session_exit(void);
#endif

#endif							/* AQ_SYNC_INT_H */
