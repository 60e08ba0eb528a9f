/*-------------------------------------------------------------------------
 *
 * mutex.c
 *	  Mutexes: small, embedded in what they protect, without a wait list.
 *
 * The word's high half is the session that has it exclusively or examines it
 * (number + 1, 0: nobody), its low half a reference count:
 *
 *	mode		from		to				meaning
 *	exclusive	(0, 0)		(session, 0)	alone
 *	shared		(0, n)		(0, n + 1)		one reference more
 *	examine		(0, n)		(session, n)	alone for a moment; may change n
 *
 * On failure a session polls the word pgaq.mutex_spin_count times, then begins
 * its wait event (one per request), makes one step of the wait scheme, and polls
 * again.  Nobody posts it: who comes next is a matter of chance.  An exchange
 * that fails because another shared request came first is a failure too, as in
 * Oracle: sharers contend for the word.
 *
 * The holder may get an exclusive mutex again; it frees it as often.
 *
 * Gets are counted in the mutex, one per request.  Sleeps are steps of the wait
 * loop.  Sleeps and wait time go to one table by type and location, shared by
 * all sessions: one atomic addition per request that waited, so a slot per
 * session would gain nothing.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "sync/sync_int.h"

#define COUNT_MASK		UINT64CONST(0x00000000FFFFFFFF)
#define OWNER_SHIFT		32

typedef struct MutexRow
{
	AqEvent		event_exclusive;
	AqEvent		event_shared;
} MutexRow;

static const MutexRow mutex_rows[] = {
#define X(id, name, event_x, event_s, text) {AQ_EVENT_##event_x, AQ_EVENT_##event_s},
#include "sync/mutex_list.h"
#undef X
};

StaticAssertDecl(lengthof(mutex_rows) == AQ_MUTEX_TYPE_COUNT, "mutex_list.h changed while it was read");

static inline uint64
own_owner(void)
{
	return (uint64) (aq_session_own_number + 1) << OWNER_SHIFT;
}

void
aq_mutex_init(AqMutex *mutex, AqMutexType type, uint32 idn)
{
	pg_atomic_init_u64(&mutex->word, 0);
	mutex->idn = idn;
	mutex->object = 0;
	mutex->namespace = 0;
	mutex->type = (uint16) type;
	pg_atomic_init_u64(&mutex->gets, 0);
	pg_atomic_init_u64(&mutex->sleeps, 0);
}

/* What P3 of a wait says beside the location; before the mutex is shared. */
void
aq_mutex_set_object(AqMutex *mutex, uint32 object, uint16 namespace)
{
	mutex->object = object;
	mutex->namespace = namespace;
}

/* May the word be changed to what the mode wants, and to what? */
static inline bool
wanted(uint64 word, AqMutexMode mode, uint64 *result)
{
	switch (mode)
	{
		case AQ_EXCLUSIVE:
			*result = own_owner();
			return word == 0;
		case AQ_SHARED:
			*result = word + 1;
			return (word & ~COUNT_MASK) == 0;
		case AQ_EXAMINE:
			*result = word | own_owner();
			return (word & ~COUNT_MASK) == 0;
	}
	return false;
}

static inline bool
try_get(AqMutex *mutex, AqMutexMode mode)
{
	uint64		word = pg_atomic_read_u64(&mutex->word);
	uint64		result;

	return wanted(word, mode, &result) &&
		pg_atomic_compare_exchange_u64(&mutex->word, &word, result);
}

static bool
spin(AqMutex *mutex, AqMutexMode mode)
{
	for (int i = 0; i < aq_mutex_spin_count; i++)
	{
		if (try_get(mutex, mode))
			return true;
		aq_cpu_pause();
	}
	return false;
}

static inline void
count_get(AqMutex *mutex, AqMutexMode mode)
{
	/* Others may hold it too, unless it is ours alone. */
	if (mode == AQ_EXCLUSIVE)
		pg_atomic_write_u64(&mutex->gets, pg_atomic_read_u64(&mutex->gets) + 1);
	else
		pg_atomic_fetch_add_u64(&mutex->gets, 1);
}

/* The circular history: the latest requests that waited. */
static void
remember(AqMutex *mutex, AqLocation where, uint64 value, uint64 sleeps)
{
	uint64		n = pg_atomic_fetch_add_u64(&aq_sync_shared->history_next, 1);
	AqMutexSleepRow *row = &aq_sync_shared->history[n % AQ_MUTEX_HISTORY];
	uint32		change = pg_atomic_read_u32(&row->change);

	/* A writer a whole round behind us has the row: leave it to that one. */
	if ((change & 1) != 0 ||
		!pg_atomic_compare_exchange_u32(&row->change, &change, change + 1))
		return;
	row->idn = mutex->idn;
	row->time = aq_clock_us();
	row->gets = pg_atomic_read_u64(&mutex->gets);
	row->sleeps = sleeps;
	row->value = value;
	row->session = aq_session_own_number;
	row->blocker = (int32) (value >> OWNER_SHIFT) - 1;
	row->type = mutex->type;
	row->location = (uint16) where;
	pg_atomic_fetch_add_u32(&row->change, 1);
}

static pg_noinline void
get_slow(AqMutex *mutex, AqMutexMode mode, AqLocation where)
{
	const MutexRow *row = &mutex_rows[mutex->type];
	AqSleeper  *me = &aq_sync_shared->sleepers[aq_session_own_number];
	AqMutexSleeps *total = &aq_sync_shared->mutex_sleeps[mutex->type][where];
	AqScheme	scheme;
	uint64		value;
	int64		start;

	if (spin(mutex, mode))
		return;

	value = pg_atomic_read_u64(&mutex->word);
	aq_scheme_start(&scheme);
	start = aq_clock_us();
	aq_wait_begin(mode == AQ_SHARED ? row->event_shared : row->event_exclusive,
				  mutex->idn, value,
				  ((uint64) mutex->object << 32) | ((uint64) mutex->namespace << 16) | where);
	do
		aq_scheme_step(&scheme, &me->sem);
	while (!spin(mutex, mode));
	aq_wait_end();

	pg_atomic_fetch_add_u64(&mutex->sleeps, scheme.step);
	pg_atomic_fetch_add_u64(&total->sleeps, scheme.step);
	pg_atomic_fetch_add_u64(&total->waits, 1);
	if (scheme.timed)
		pg_atomic_fetch_add_u64(&total->wait_time, aq_clock_us() - start);
	remember(mutex, where, value, scheme.step);
}

/* An exclusive holder that gets its mutex again. */
static bool
get_again(AqMutex *mutex, AqMutexMode mode)
{
	AqHeld	   *held;

	if ((pg_atomic_read_u64(&mutex->word) & ~COUNT_MASK) != own_owner())
		return false;
	held = aq_held_find(mutex);
	if (held == NULL || held->mode != AQ_EXCLUSIVE)
		return false;
	Assert(mode == AQ_EXCLUSIVE);
	held->depth++;
	count_get(mutex, AQ_EXCLUSIVE);
	return true;
}

/*
 * Waits as long as it takes.  Do not wait for a latch while holding a mutex.
 */
void
aq_mutex_get(AqMutex *mutex, AqMutexMode mode, AqLocation where)
{
	aq_session_attach();
	HOLD_INTERRUPTS();
	if (unlikely(!try_get(mutex, mode)))
	{
		if (get_again(mutex, mode))
			return;
		get_slow(mutex, mode, where);
	}
	count_get(mutex, mode);
	aq_held_push(mutex, true, mode);
}

/*
 * Never waits.  The place is asked for as in aq_mutex_get, but only sleeps are
 * counted by place.
 */
bool
aq_mutex_get_nowait(AqMutex *mutex, AqMutexMode mode, AqLocation where)
{
	(void) where;
	aq_session_attach();
	HOLD_INTERRUPTS();
	if (!try_get(mutex, mode))
	{
		if (get_again(mutex, mode))
			return true;
		RESUME_INTERRUPTS();
		return false;
	}
	count_get(mutex, mode);
	aq_held_push(mutex, true, mode);
	return true;
}

void
aq_mutex_free(AqMutex *mutex)
{
	AqHeld	   *held = aq_held_find(mutex);

	Assert(held != NULL);
	if (--held->depth == 0)
	{
		pg_atomic_fetch_sub_u64(&mutex->word, held->mode == AQ_SHARED ? 1 : own_owner());
		aq_held_drop(held);
	}
	RESUME_INTERRUPTS();
}

bool
aq_mutex_held(const AqMutex *mutex)
{
	return aq_held_find(mutex) != NULL;
}

/* The reference count; exact only for who examines it. */
uint32
aq_mutex_count(AqMutex *mutex)
{
	return (uint32) (pg_atomic_read_u64(&mutex->word) & COUNT_MASK);
}

/* Changes the reference count; the caller holds the mutex in examine mode. */
void
aq_mutex_add_count(AqMutex *mutex, int32 n)
{
	Assert(aq_held_find(mutex) != NULL && aq_held_find(mutex)->mode == AQ_EXAMINE);
	Assert((int64) aq_mutex_count(mutex) + n >= 0);
	pg_atomic_fetch_add_u64(&mutex->word, n);
}
