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
} AqLatchMisses;

typedef struct AqMutexSleeps
{
	pg_atomic_uint64 sleeps;	/* steps of the wait loop */
	pg_atomic_uint64 waits;		/* requests that slept */
	pg_atomic_uint64 wait_time; /* microseconds */
} AqMutexSleeps;

typedef struct AqMutexSleepRow
{
	pg_atomic_uint32 change;	/* odd while the row is written */
	uint32		idn;
	int64		time;			/* aq_clock_us */
	uint64		gets;
	uint64		sleeps;
	uint64		value;
	int32		session;
	int32		blocker;		/* session, or -1 */
	uint16		type;
	uint16		location;
} AqMutexSleepRow;

#define AQ_MUTEX_HISTORY	256

typedef struct AqSyncShared
{
	/* Registered latches by id: the head of a list through AqLatch.next. */
	pg_atomic_uint64 latches[AQ_LATCH_COUNT];

	AqLatchMisses latch_misses[AQ_LATCH_COUNT][AQ_LOC_COUNT];
	AqMutexSleeps mutex_sleeps[AQ_MUTEX_TYPE_COUNT][AQ_LOC_COUNT];

	pg_atomic_uint64 history_next;
	AqMutexSleepRow history[AQ_MUTEX_HISTORY];

	int32		nsleepers;
	AqSleeper	sleepers[FLEXIBLE_ARRAY_MEMBER];
} AqSyncShared;

extern AqSyncShared *aq_sync_shared;

extern void aq_sync_shared_init(AqSyncShared *shared, int nsleepers);

/* --- held.c: what this session holds ---------------------------------------- */

#define AQ_MAX_HELD 32

typedef struct AqHeld
{
	void	   *lock;
	bool		is_mutex;
	uint8		mode;			/* AqLatchMode */
	uint16		depth;			/* a mutex got again by its holder */
} AqHeld;

typedef struct AqSyncSelf
{
	int			nheld;
	AqHeld		held[AQ_MAX_HELD];
	uint32		random;			/* of scheme.c */
} AqSyncSelf;

extern AQ_LOCAL AqSyncSelf aq_sync_self;

pg_noreturn extern void aq_held_overflow(void);
extern AqHeld *aq_held_find(const void *lock);

static inline void
aq_held_push(void *lock, bool is_mutex, AqLatchMode mode)
{
	AqSyncSelf *self = &aq_sync_self;
	AqHeld	   *held;

	if (unlikely(self->nheld == AQ_MAX_HELD))
		aq_held_overflow();
	held = &self->held[self->nheld++];
	held->lock = lock;
	held->is_mutex = is_mutex;
	held->mode = (uint8) mode;
	held->depth = 1;
}

static inline void
aq_held_drop(AqHeld *held)
{
	AqSyncSelf *self = &aq_sync_self;

	/* nearly always the last one */
	self->nheld--;
	for (int i = (int) (held - self->held); i < self->nheld; i++)
		self->held[i] = self->held[i + 1];
}

/* latch.c */
extern int	aq_latch_level(const AqLatch *latch);

/* --- scheme.c: how a mutex waits ---------------------------------------------- */

#define AQ_LATCH_CLASSES 8

extern AQ_LOCAL int aq_spin_count;
extern AQ_LOCAL uint8 aq_latch_class[AQ_LATCH_COUNT];
extern AQ_LOCAL int aq_latch_class_spin[AQ_LATCH_CLASSES];	/* -1: aq_spin_count */
extern AQ_LOCAL int aq_mutex_spin_count;
extern AQ_LOCAL int aq_mutex_wait_scheme;
extern AQ_LOCAL int aq_mutex_wait_time;
extern AQ_LOCAL int aq_wait_yield_sleep_time;
extern AQ_LOCAL int aq_wait_yield_sleep_freq;

typedef struct AqScheme
{
	uint64		step;			/* steps made so far */
	bool		timed;			/* false: its time is not accounted as waiting */
} AqScheme;

extern void aq_scheme_start(AqScheme *scheme);
extern void aq_scheme_step(AqScheme *scheme, AqSem *sem);

/* --- latch_class.c ------------------------------------------------------------ */
#ifndef AQ_UNIT
extern void aq_latch_class_define_parameters(void);
#endif

/* --- event.c -------------------------------------------------------------------- */
#ifndef AQ_UNIT
extern Size aq_event_shmem_size(void);
extern void aq_event_shmem_init(void *area, bool found);
extern void aq_event_session_start(void);
extern void aq_event_session_exit(void);
extern void aq_event_end_all(void);
#endif

#endif							/* AQ_SYNC_INT_H */
