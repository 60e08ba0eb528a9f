/*-------------------------------------------------------------------------
 *
 * mutex.c
 *	  Mutexes: small, embedded in what they protect, without a wait list.
 *
 * The word contains, from its high end, the number of gets (24 bits), a
 * reference count (20 bits), and the session that holds it in exclusive or
 * examine mode (number + 1, 0: none; 20 bits).  So one addition gets the mutex
 * and counts the get:
 *
 *	mode		from		to				meaning
 *	exclusive	(0, 0)		(session, 0)	alone
 *	shared		(0, n)		(0, n + 1)		one more reference
 *	examine		(0, n)		(session, n)	alone briefly; may change n
 *
 * On failure a session polls the word pgaq.mutex_spin_count times, then begins
 * its wait event (one per request), makes one step of the wait scheme, and
 * polls again.  Waiters are not posted, so the order of gets is random.  An
 * exchange that fails because of another shared request is also a failure, as
 * in Oracle: sharers contend for the word.
 *
 * The holder may get an exclusive mutex again, and then must free it as many
 * times.
 *
 * Sleeps are steps of the wait loop.  Each session has its own table of gets,
 * misses, sleeps and times, by type and location.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "sync/common/held.h"
#include "sync/common/spin_clock.h"
#include "sync/mutexes/mutex_int.h"
#include "sync/traces/trace.h"
#include "sync/waits/event.h"

#define GETS_SHIFT		40
#define COUNT_SHIFT		20
#define COUNT_ONE		(UINT64CONST(1) << COUNT_SHIFT)
#define COUNT_MAX		((UINT64CONST(1) << (GETS_SHIFT - COUNT_SHIFT)) - 1)
#define OWNER_MASK		(COUNT_ONE - 1)
#define ONE_GET			(AQ_ACCOUNTING ? UINT64CONST(1) << GETS_SHIFT : 0)

typedef struct MutexRow
{
	AqEvent		event_exclusive;
	AqEvent		event_shared;
} MutexRow;

static const MutexRow mutex_rows[] = {
#define X(id, name, event_x, event_s, text) {AQ_EVENT_##event_x, AQ_EVENT_##event_s},
#include "sync/common/mutex_list.h"
#undef X
};

StaticAssertDecl(lengthof(mutex_rows) == AQ_MUTEX_TYPE_COUNT, "mutex_list.h changed while it was read");

static inline uint64
own_owner(void)
{
	return (uint64) (aq_session_own_number + 1);
}

static inline uint64
owner_of(uint64 word)
{
	return word & OWNER_MASK;
}

static inline uint64
count_of(uint64 word)
{
	return word >> COUNT_SHIFT & COUNT_MAX;
}

/* The word as waits and views show it: session high, references low. */
static inline uint64
shown(uint64 word)
{
	return owner_of(word) << 32 | count_of(word);
}

void
aq_mutex_init(AqMutex *mutex, AqMutexType type, uint32 idn)
{
	pg_atomic_init_u64(&mutex->word, 0);
	mutex->idn = idn;
	mutex->object = 0;
	mutex->namespace = 0;
	mutex->type = (uint16) type;
	pg_atomic_init_u64(&mutex->halves, 0);
	pg_atomic_init_u64(&mutex->sleeps, 0);
}

/* Sets the parameters of waits for this mutex. */
void
aq_mutex_set_object(AqMutex *mutex, uint32 idn, uint32 object, uint16 namespace)
{
	mutex->idn = idn;
	mutex->object = object;
	mutex->namespace = namespace;
}

/*
 * Can the mutex be got in this mode?  Sets *grant to the number to add to the
 * word.
 */
static inline bool
wanted(uint64 word, AqMutexMode mode, uint64 *grant)
{
	*grant = mode == AQ_SHARED ? COUNT_ONE : own_owner();
	return owner_of(word) == 0 && (mode != AQ_EXCLUSIVE || word << (64 - GETS_SHIFT) == 0);
}

/* Adds the grant and one get to the word. */
static inline bool
exchange(AqMutex *mutex, uint64 word, uint64 grant)
{
	uint64		next = word + grant + ONE_GET;

	if (!pg_atomic_compare_exchange_u64(&mutex->word, &word, next))
		return false;
	if (unlikely((int64) (word ^ next) < 0))	/* the highest bit of the number of gets has changed */
		pg_atomic_fetch_add_u64(&mutex->halves, 1);
	return true;
}

static inline bool
try_get(AqMutex *mutex, AqMutexMode mode)
{
	uint64		word = pg_atomic_read_u64(&mutex->word);
	uint64		grant;

	return wanted(word, mode, &grant) && exchange(mutex, word, grant);
}

/* The number of gets; see aq_latch_gets(). */
uint64
aq_mutex_gets(AqMutex *mutex)
{
	uint64		halves = pg_atomic_read_u64(&mutex->halves);
	uint64		low = pg_atomic_read_u64(&mutex->word) >> GETS_SHIFT;

	if ((halves & 1) != low >> (63 - GETS_SHIFT))
		halves++;
	return (halves >> 1 << (64 - GETS_SHIFT)) | low;
}

/* Gets and sleeps since the mutex was initialized. */
void
aq_mutex_counters(AqMutex *mutex, uint64 *gets, uint64 *sleeps)
{
	*gets = aq_mutex_gets(mutex);
	*sleeps = pg_atomic_read_u64(&mutex->sleeps);
}

static bool
spin(AqMutex *mutex, AqMutexMode mode, int polls)
{
	for (int i = 0; i < polls; i++)
	{
		if (try_get(mutex, mode))
			return true;
		aq_cpu_pause();
	}
	return false;
}

static inline AqMutexCounts *
own_counts(const AqMutex *mutex, AqLocation where)
{
	return &aq_sync_self->mutexes[mutex->type][where];
}

/*
 * Where a get will be recorded; read before the get, see AqHeldEnd.
 * count_get() counts it by location, exchange() counts it for the mutex.
 */
typedef struct Books
{
	AqHeldEnd	end;
	pg_atomic_uint64 *counter;
	uint64		gets;
} Books;

static inline Books
open_books(const AqMutex *mutex, AqLocation where)
{
	Books		books = {.end = aq_held_end()};

	books.counter = &books.end.self->mutexes[mutex->type][where].gets;
	books.gets = pg_atomic_read_u64(books.counter);
	return books;
}

static inline void
count_get(const Books *books)
{
	if (AQ_ACCOUNTING)
		pg_atomic_write_u64(books->counter, books->gets + 1);
}

/* The sums of all sessions' counters for one location. */
AqMutexSum
aq_mutex_sum(AqMutexType type, AqLocation where)
{
	AqMutexSum	sum = {0};

	for (int i = 0; i < aq_sync_shared->nsleepers; i++)
	{
		AqMutexCounts *one = &aq_sync_shared->selves[i].mutexes[type][where];

		sum.gets += pg_atomic_read_u64(&one->gets);
		sum.misses += pg_atomic_read_u64(&one->misses);
		sum.waits += pg_atomic_read_u64(&one->waits);
		sum.sleeps += pg_atomic_read_u64(&one->sleeps);
		sum.wait_time += pg_atomic_read_u64(&one->wait_time);
		sum.spin_time += pg_atomic_read_u64(&one->spin_time);
	}
	return sum;
}

/* One request that waited. */
typedef struct MutexWait
{
	AqMutexMode mode;
	AqLocation	where;
	uint64		value;			/* of the word at the beginning of the wait */
	uint64		p3;
	uint64		sleeps;
	int64		time;			/* microseconds */
} MutexWait;

/*
 * Adds a request to the circular history of the latest requests that waited.
 */
static void
remember(AqMutex *mutex, const MutexWait *wait)
{
	uint64		n = pg_atomic_fetch_add_u64(&aq_sync_shared->history_next, 1);
	AqMutexSleepRow *row = &aq_sync_shared->history[n % AQ_MUTEX_HISTORY];
	uint32		change = pg_atomic_read_u32(&row->change);

	/*
	 * The row is in use by a writer one whole round behind: skip this request.
	 */
	if ((change & 1) != 0 ||
		!pg_atomic_compare_exchange_u32(&row->change, &change, change + 1))
		return;
	row->idn = mutex->idn;
	row->time = aq_clock_us();
	row->gets = aq_mutex_gets(mutex);
	row->sleeps = wait->sleeps;
	row->value = wait->value;
	row->where = wait->p3;
	row->wait_time = wait->time;
	row->session = aq_session_own_number;
	row->blocker = (int32) (wait->value >> 32) - 1;
	row->type = mutex->type;
	row->location = (uint16) wait->where;
	row->mode = (uint16) wait->mode;
	pg_atomic_fetch_add_u32(&row->change, 1);
}

static inline int64
read_clock(void)
{
	return AQ_ACCOUNTING ? aq_clock_ns() : 0;
}

/* Spins once; adds its CPU time in nanoseconds. */
static bool
timed_spin(AqMutex *mutex, AqMutexMode mode, int polls, int64 *spent)
{
	AqSpinClock clock = aq_spin_clock_start(polls);
	bool		got = spin(mutex, mode, polls);

	*spent += aq_spin_clock_spent(&clock);
	return got;
}

/* The wait loop: steps of the scheme, and spins. */
static void
wait_for(AqMutex *mutex, const MutexWait *wait, AqScheme *scheme, AqSem *sem, int64 *spun)
{
	/* a scheme without sleeps is one long spin */
	bool		spins_only = !scheme->timed;
	AqSpinClock whole;
	int64		parts = 0;

	if (spins_only)
		whole = aq_spin_clock_start(AQ_SPIN_SHORT);
	do
	{
		AQ_PROBE4(mutex__sleep, mutex, mutex->idn, wait->where, scheme->step);
		aq_mutex_wait_step(scheme, sem);
	} while (spins_only ? !spin(mutex, wait->mode, scheme->way.spin)
			 : !timed_spin(mutex, wait->mode, scheme->way.spin, &parts));
	*spun += spins_only ? aq_spin_clock_spent(&whole) : parts;
}

static pg_noinline void
get_slow(AqMutex *mutex, AqMutexMode mode, AqLocation where)
{
	const MutexRow *row = &mutex_rows[mutex->type];
	AqSleeper  *me = &aq_sync_shared->sleepers[aq_session_own_number];
	AqMutexCounts *counts = own_counts(mutex, where);
	MutexWait	wait = {.mode = mode, .where = where};
	AqScheme	scheme;
	int64		spun = 0;
	int64		start;

	aq_mutex_wait_start(&scheme, mutex->type);
	AQ_PROBE4(mutex__spin, mutex, mutex->idn, mode, where);
	if (!timed_spin(mutex, mode, scheme.way.spin, &spun))
	{
		wait.value = shown(pg_atomic_read_u64(&mutex->word));
		wait.p3 = ((uint64) mutex->object << 32) | ((uint64) mutex->namespace << 16) | where;
		start = read_clock();
		pg_atomic_write_u64(&aq_sync_self->wants, aq_lock_word(mutex, true, mode));
		if (mutex->type == AQ_MUTEX_TYPE_ROW)	/* this event has other parameters, as in Oracle */
			aq_event_begin(row->event_exclusive, mutex->object, where, 0);
		else
			aq_event_begin(mode == AQ_SHARED ? row->event_shared : row->event_exclusive,
						   mutex->idn, wait.value, wait.p3);
		wait_for(mutex, &wait, &scheme, &me->sem, &spun);
		aq_event_end();
		pg_atomic_write_u64(&aq_sync_self->wants, 0);
		wait.time = (read_clock() - start) / 1000;
		wait.sleeps = scheme.step;
	}
	if (!AQ_ACCOUNTING)
		return;

	aq_own_add(&counts->misses, 1);
	aq_own_add(&counts->spin_time, spun);
	if (wait.sleeps == 0)
		return;
	pg_atomic_fetch_add_u64(&mutex->sleeps, wait.sleeps);
	aq_own_add(&counts->waits, 1);
	aq_own_add(&counts->sleeps, wait.sleeps);
	if (scheme.timed)
		aq_own_add(&counts->wait_time, wait.time);
	remember(mutex, &wait);
}

/* If the session already holds the mutex exclusively, gets it once more. */
static bool
get_again(AqMutex *mutex, AqMutexMode mode, AqLocation where)
{
	uint64		word = pg_atomic_read_u64(&mutex->word);
	AqHeld	   *held;
	Books		books;

	if (owner_of(word) != (uint64) aq_session_own_number + 1)
		return false;
	held = aq_held_find(mutex);
	if (held == NULL || aq_lock_mode(pg_atomic_read_u64(&held->lock)) != AQ_EXCLUSIVE)
		return false;
	Assert(mode == AQ_EXCLUSIVE);
	held->again++;
	/* this cannot fail: others cannot change the word meanwhile */
	(void) exchange(mutex, word, 0);
	books = open_books(mutex, where);
	count_get(&books);
	return true;
}

static inline void
got(AqMutex *mutex, AqMutexMode mode, AqLocation where, const Books *books)
{
	count_get(books);
	aq_held_push(books->end, mutex, true, mode, where);
}

/* The first try has failed; interrupts are held off. */
static pg_noinline void
get_after_miss(AqMutex *mutex, AqMutexMode mode, AqLocation where, int64 asked)
{
	if (!get_again(mutex, mode, where))
	{
		Books		books;

		get_slow(mutex, mode, where);
		books = open_books(mutex, where);
		got(mutex, mode, where, &books);
	}
	aq_trace_mutex_got(mutex, mode, where, asked);
}

/*
 * The first try of a session that may be traced or has not attached. *asked is
 * the time of the request.  Interrupts are held off afterwards in any case.
 */
static bool
first_try(AqMutex *mutex, AqMutexMode mode, AqLocation where, int64 *asked)
{
	Books		books;

	*asked = aq_trace_asked();
	aq_session_attach();
	books = open_books(mutex, where);
	HOLD_INTERRUPTS();
	if (!try_get(mutex, mode))
		return false;
	got(mutex, mode, where, &books);
	aq_trace_mutex_got(mutex, mode, where, *asked);
	return true;
}

static pg_noinline void
get_traced(AqMutex *mutex, AqMutexMode mode, AqLocation where)
{
	int64		asked;

	if (!first_try(mutex, mode, where, &asked))
		get_after_miss(mutex, mode, where, asked);
}

/*
 * Waits without a time limit.  Do not wait for a latch while holding a mutex.
 *
 * The usual case makes no function call, so that no registers have to be
 * saved.
 */
void
aq_mutex_get(AqMutex *mutex, AqMutexMode mode, AqLocation where)
{
	Books		books;

	if (unlikely(!aq_trace_is_idle()))
	{
		get_traced(mutex, mode, where);
		return;
	}
	books = open_books(mutex, where);
	HOLD_INTERRUPTS();
	if (unlikely(!try_get(mutex, mode)))
	{
		get_after_miss(mutex, mode, where, 0);
		return;
	}
	got(mutex, mode, where, &books);
	aq_trace_mutex_got(mutex, mode, where, 0);
}

/* Never waits. */
bool
aq_mutex_get_nowait(AqMutex *mutex, AqMutexMode mode, AqLocation where)
{
	int64		asked;

	if (first_try(mutex, mode, where, &asked))
		return true;
	if (get_again(mutex, mode, where))
	{
		aq_trace_mutex_got(mutex, mode, where, asked);
		return true;
	}
	RESUME_INTERRUPTS();
	aq_trace_mutex_failed(mutex, mode, where, asked);
	return false;
}

static inline void
free_held(AqMutex *mutex, AqHeldEnd end, AqHeld *held)
{
	bool		shared = aq_lock_mode(pg_atomic_read_u64(&held->lock)) == AQ_SHARED;

	pg_atomic_fetch_sub_u64(&mutex->word, shared ? COUNT_ONE : own_owner());
	aq_held_drop(end, held);
	RESUME_INTERRUPTS();
}

/*
 * For a mutex that is not the latest in the list, that was got again, and for
 * traced sessions.
 */
static pg_noinline void
free_other(AqMutex *mutex)
{
	AqHeld	   *held = aq_held_find(mutex);

	Assert(held != NULL);
	aq_trace_mutex_free(mutex);
	if (held->again > 0)
	{
		held->again--;
		RESUME_INTERRUPTS();
	}
	else
		free_held(mutex, aq_held_end(), held);
}

void
aq_mutex_free(AqMutex *mutex)
{
	AqHeldEnd	end = aq_held_end();
	AqHeld	   *held = aq_held_last(end, mutex);

	if (unlikely(held == NULL || held->again > 0 || aq_traced()))
	{
		free_other(mutex);
		return;
	}
	AQ_PROBE2(mutex__release, mutex, mutex->idn);
	free_held(mutex, end, held);
}

bool
aq_mutex_held(const AqMutex *mutex)
{
	return aq_held_find(mutex) != NULL;
}

/* The reference count; exact only for a holder in examine mode. */
uint32
aq_mutex_count(AqMutex *mutex)
{
	return (uint32) count_of(pg_atomic_read_u64(&mutex->word));
}

/* Changes the reference count; the caller holds the mutex in examine mode. */
void
aq_mutex_add_count(AqMutex *mutex, int32 n)
{
	Assert(aq_held_find(mutex) != NULL &&
		   aq_lock_mode(pg_atomic_read_u64(&aq_held_find(mutex)->lock)) == AQ_EXAMINE);
	Assert((int64) aq_mutex_count(mutex) + n >= 0 && (int64) aq_mutex_count(mutex) + n <= (int64) COUNT_MAX);
	pg_atomic_fetch_add_u64(&mutex->word, (int64) n * (int64) COUNT_ONE);
}

/* For views: the session that holds it in exclusive or examine mode, or -1. */
int
aq_mutex_holder(AqMutex *mutex)
{
	return (int) owner_of(pg_atomic_read_u64(&mutex->word)) - 1;
}
