/*-------------------------------------------------------------------------
 *
 * latch.c
 *	  Latches: exclusive or shared, spin first, then sleep until posted.
 *
 * A latch is one word.  Its low half:
 *
 *	EXCLUSIVE	held exclusively; the count is then the holder's number + 1
 *	count		holders in shared mode
 *	LIST		a session changes the wait list (a spin bit, never held long)
 *	WAITERS		the wait list is not empty
 *	WAKING		one sleeper was posted and has not yet got the latch or gone
 *				back to sleep; no other one is posted meanwhile
 *	PENDING		an exclusive request sleeps or was posted: newcomers do not
 *				get the latch in shared mode, or they could starve it
 *
 * Its high half counts the gets, so that the operation that gets the latch is
 * also the one that counts it.
 *
 * who					exclusive get succeeds if	shared get succeeds if
 * newcomer				not EXCLUSIVE, count = 0	not EXCLUSIVE, not PENDING
 * who has been posted	not EXCLUSIVE, count = 0	not EXCLUSIVE
 *
 * A get that fails spins, then enters the wait list, then tries once more, then
 * sleeps on its semaphore.  The last holder's free posts the head of the list,
 * and only that.  Who was posted competes with newcomers (that keeps the latch
 * busy while it wakes up); when it loses it sleeps again as the head of the list.
 *
 * How long to spin, how often to yield and spin again before sleeping, and
 * whether sleeps end only by a post, is the class's matter (AqLatchClass).  A
 * sleeper that wakes up because its time is over keeps its place in the list while it spins,
 * and competes as a newcomer.
 *
 * Why no wake-up is lost.  All flags are in one word, so all changes have one
 * order.
 *	I1	A sleeper has set WAITERS before it tried for the last time.  A free
 *		before that leaves a free word to that try; a free after that sees WAITERS.
 *	I2	A free that finds WAKING set posts no session.  The one that was posted clears
 *		WAKING after the word was freed, and after that tries or holds: if it
 *		sleeps again, I1 holds for it; if it has the latch, its own free posts.
 *	I3	PENDING is set only while an exclusive request is in the list, or was
 *		posted and not yet settled.  Then the latch is either held, or a session is
 *		awake that will try; so one that sleeps because of PENDING is posted later.
 *	I4	A post belongs to one stay in the list: a session leaves the list or is
 *		taken from it under LIST, and only its state says whether it was posted,
 *		whatever else returns from the semaphore.  A post that came too late to be
 *		needed stays in the semaphore and makes the next sleep look twice, no more.
 *
 * The other counters are in the latch and are changed while it is held: plainly
 * by an exclusive holder, atomically by shared ones.  They are exact:
 *		gets = gets at once + spin_gets + gets that slept
 *		misses = spin_gets + gets that slept
 *		sleeps + spin_gets - misses = repeated sleeps, never negative
 * The clock is read only by who missed it.
 *
 * While a latch is held, interrupts are held off; a sleep for a latch is not
 * interruptible.  Both must therefore be short, and nothing may be raised.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "sync/common/held.h"
#include "sync/latches/latch_int.h"
#include "sync/traces/trace.h"
#include "sync/waits/event.h"

#define W_EXCLUSIVE	UINT64CONST(0x80000000)
#define W_WAITERS		UINT64CONST(0x40000000)
#define W_LIST		UINT64CONST(0x20000000)
#define W_WAKING		UINT64CONST(0x10000000)
#define W_PENDING		UINT64CONST(0x08000000)
#define W_COUNT		UINT64CONST(0x07FFFFFF)
#define W_HELD			(W_EXCLUSIVE | W_COUNT)
#define W_FLAGS			(W_WAITERS | W_WAKING | W_PENDING)

/* One get, in the high half. */
#define GETS_SHIFT		32
#define W_GET			(AQ_ACCOUNTING ? UINT64CONST(1) << GETS_SHIFT : 0)
#define HALF_MASK		UINT64CONST(0x7FFFFFFF)

#define LATCH_MAGIC		0x4c415147

StaticAssertDecl(sizeof(AqLatch) == AQ_LATCH_SIZE, "a latch is two cache lines");

typedef struct LatchRow
{
	int			level;
	AqEvent		event;
} LatchRow;

/*
 * How often to poll before sleeping.  Oracle's 20000 is for machines with more
 * processors than sessions: the holder runs and will be done soon.  Where
 * sessions outnumber processors, the holder that is waited for has often lost
 * its processor, perhaps to the session that spins.  200 polls are some
 * microseconds, about what going to sleep and being woken costs.  The choice
 * rests on this reasoning: with 2, 8 and 32 sessions on two (busy) processors,
 * the time for the same number of gets showed no trend between 100 and 20000.
 */
AQ_LOCAL int aq_latch_spin_count = 200;
AQ_LOCAL uint8 aq_latch_class[AQ_LATCH_COUNT];
AQ_LOCAL AqLatchClass aq_latch_classes[AQ_LATCH_CLASSES] = {
	/* how everything waits that no parameter speaks of: until posted */
	{.spin = -1}
};

static const LatchRow latch_rows[] = {
#define X(id, name, level, event, children, text) {level, AQ_EVENT_##event},
#include "sync/common/latch_list.h"
#undef X
};

StaticAssertDecl(lengthof(latch_rows) == AQ_LATCH_COUNT, "latch_list.h changed while it was read");

/*
 * In shared memory that is never given back, zeroed or a latch already: the
 * registry keeps the latch for ever.  A latch that is initialised again (its
 * owner recycles the struct around it) keeps its counters and must be free.
 */
void
aq_latch_init(AqLatch *latch, AqLatchId id, int child)
{
	uint64		head;

	if (latch->magic == LATCH_MAGIC && latch->id == id)
	{
		Assert((pg_atomic_read_u64(&latch->word) & W_HELD) == 0);
		latch->child = child;
		return;
	}

	pg_atomic_init_u64(&latch->word, 0);
	latch->magic = LATCH_MAGIC;
	latch->id = (uint16) id;
	latch->child = child;
	pg_atomic_init_u32(&latch->where, AQ_LOC_NONE);
	latch->head = latch->tail = -1;
	latch->exclusives = 0;
	latch->waking_exclusive = false;
	pg_atomic_init_u64(&latch->halves, 0);
	pg_atomic_init_u64(&latch->immediate_gets, 0);
	pg_atomic_init_u64(&latch->immediate_misses, 0);
	pg_atomic_init_u64(&latch->misses, 0);
	pg_atomic_init_u64(&latch->sleeps, 0);
	pg_atomic_init_u64(&latch->spin_gets, 0);
	pg_atomic_init_u64(&latch->wait_time, 0);
	pg_atomic_init_u64(&latch->spin_time, 0);
	pg_atomic_init_u64(&latch->holding_sleeps, 0);
	pg_atomic_init_u64(&latch->woken, 0);

	head = pg_atomic_read_u64(&aq_sync_shared->latches[id]);
	do
		latch->next = (AqLatch *) (uintptr_t) head;
	while (!pg_atomic_compare_exchange_u64(&aq_sync_shared->latches[id], &head,
										   (uint64) (uintptr_t) latch));
}

/* Only while the latch is held. */
static inline void
count(pg_atomic_uint64 *counter, AqLatchMode mode, int64 n)
{
	if (!AQ_ACCOUNTING)
		return;
	if (mode == AQ_EXCLUSIVE)
		aq_own_add(counter, n);
	else
		pg_atomic_fetch_add_u64(counter, n);
}

static inline bool
obtainable(uint64 word, AqLatchMode mode, bool posted)
{
	if (mode == AQ_EXCLUSIVE)
		return (word & W_HELD) == 0;
	return (word & W_EXCLUSIVE) == 0 && (posted || (word & W_PENDING) == 0);
}

/* One try: fails only when another holds the latch or comes first. */
static inline bool
try_get(AqLatch *latch, AqLatchMode mode, bool posted)
{
	uint64		expected = pg_atomic_read_u64(&latch->word);
	uint64		grant = (mode == AQ_EXCLUSIVE) ?
		(W_EXCLUSIVE | (uint64) (aq_session_own_number + 1)) : 1;

	/* The exchange fails too when a flag alone has changed: look again. */
	while (obtainable(expected, mode, posted))
	{
		if (pg_atomic_compare_exchange_u64(&latch->word, &expected, expected + grant + W_GET))
		{
			if (unlikely((expected >> GETS_SHIFT & HALF_MASK) == HALF_MASK))
				count(&latch->halves, mode, 1);
			return true;
		}
	}
	return false;
}

/*
 * How often it was got, waiting or not.  The word has the lower 32 bits of the
 * number, halves counts how often their highest bit has changed: the two
 * disagree for the moment between the get that changes it and its holder's note,
 * and then the note is the one that is late.
 */
uint64
aq_latch_gets(const AqLatch *latch)
{
	AqLatch    *l = (AqLatch *) latch;
	uint64		halves = pg_atomic_read_u64(&l->halves);
	uint64		low = pg_atomic_read_u64(&l->word) >> GETS_SHIFT;

	if ((halves & 1) != low >> 31)
		halves++;
	return (halves >> 1 << GETS_SHIFT) | low;
}

/* --- the wait list ----------------------------------------------------------- */

static void
lock_list(AqLatch *latch)
{
	int			polls = 0;

	while (pg_atomic_fetch_or_u64(&latch->word, W_LIST) & W_LIST)
	{
		do
		{
			/* Its holder runs a few instructions, unless it lost the processor. */
			if (++polls % 100 == 0)
				aq_os_yield();
			else
				aq_cpu_pause();
		} while (pg_atomic_read_u64(&latch->word) & W_LIST);
	}
}

/* Clears LIST and makes the flags say what the list says. */
static void
unlock_list(AqLatch *latch, bool waking)
{
	uint64		flags = 0;
	uint64		word = pg_atomic_read_u64(&latch->word);

	if (latch->head >= 0)
		flags |= W_WAITERS;
	if (waking)
		flags |= W_WAKING;
	if (latch->exclusives > 0 || (waking && latch->waking_exclusive))
		flags |= W_PENDING;
	while (!pg_atomic_compare_exchange_u64(&latch->word, &word,
										   (word & ~(W_LIST | W_FLAGS)) | flags))
		;
}

static void
list_insert(AqLatch *latch, int32 session, bool first)
{
	AqSleeper  *sleepers = aq_sync_shared->sleepers;
	AqSleeper  *sleeper = &sleepers[session];

	sleeper->prev = first ? -1 : latch->tail;
	sleeper->next = first ? latch->head : -1;
	if (sleeper->prev >= 0)
		sleepers[sleeper->prev].next = session;
	else
		latch->head = session;
	if (sleeper->next >= 0)
		sleepers[sleeper->next].prev = session;
	else
		latch->tail = session;
	latch->exclusives += sleeper->exclusive;
}

static void
list_remove(AqLatch *latch, int32 session)
{
	AqSleeper  *sleepers = aq_sync_shared->sleepers;
	AqSleeper  *sleeper = &sleepers[session];

	if (sleeper->prev >= 0)
		sleepers[sleeper->prev].next = sleeper->next;
	else
		latch->head = sleeper->next;
	if (sleeper->next >= 0)
		sleepers[sleeper->next].prev = sleeper->prev;
	else
		latch->tail = sleeper->prev;
	latch->exclusives -= sleeper->exclusive;
}

/* Takes the head of the list out; the caller posts it after unlock_list(true). */
static AqSleeper *
take_head(AqLatch *latch)
{
	int32		session = latch->head;
	AqSleeper  *sleeper = &aq_sync_shared->sleepers[session];

	list_remove(latch, session);
	latch->waking_exclusive = sleeper->exclusive;
	aq_own_add(&latch->woken, 1);
	pg_atomic_write_u32(&sleeper->state, AQ_SLEEP_POSTED);
	return sleeper;
}

/* The end of a free: interrupts come again. */
static pg_noinline void
post_head(AqLatch *latch)
{
	AqSleeper  *sleeper = NULL;
	bool		waking;

	lock_list(latch);
	waking = (pg_atomic_read_u64(&latch->word) & W_WAKING) != 0;
	if (!waking && latch->head >= 0)
	{
		sleeper = take_head(latch);
		waking = true;
	}
	unlock_list(latch, waking);
	if (sleeper != NULL)
		aq_os_sem_post(&sleeper->sem);
	RESUME_INTERRUPTS();
}

/*
 * Enters the list: at its end, or at its head when this session was posted
 * and came too late.
 */
static void
enter_list(AqLatch *latch, AqLatchMode mode, bool posted)
{
	AqSleeper  *sleeper = &aq_sync_shared->sleepers[aq_session_own_number];
	bool		waking;

	lock_list(latch);
	sleeper->exclusive = (mode == AQ_EXCLUSIVE);
	pg_atomic_write_u32(&sleeper->state, AQ_SLEEP_QUEUED);
	list_insert(latch, aq_session_own_number, posted);
	waking = !posted && (pg_atomic_read_u64(&latch->word) & W_WAKING) != 0;
	unlock_list(latch, waking);
}

/*
 * The session has the latch and had been in the list: it leaves the list, or
 * if it was posted WAKING goes.  A shared holder lets the next one in when that
 * wants to share too.
 */
static void
settle(AqLatch *latch, AqLatchMode mode)
{
	AqSleeper  *me = &aq_sync_shared->sleepers[aq_session_own_number];
	AqSleeper  *next = NULL;
	bool		waking;

	lock_list(latch);
	waking = (pg_atomic_read_u64(&latch->word) & W_WAKING) != 0;
	if (pg_atomic_read_u32(&me->state) == AQ_SLEEP_QUEUED)
		list_remove(latch, aq_session_own_number);
	else
		waking = false;
	pg_atomic_write_u32(&me->state, AQ_SLEEP_NONE);
	if (mode == AQ_SHARED && !waking && latch->head >= 0 &&
		!aq_sync_shared->sleepers[latch->head].exclusive)
	{
		next = take_head(latch);
		waking = true;
	}
	unlock_list(latch, waking);
	if (next != NULL)
		aq_os_sem_post(&next->sem);
}

/* --- get ---------------------------------------------------------------------- */

static bool
spin(AqLatch *latch, AqLatchMode mode, const AqLatchClass *class, bool posted)
{
	int			polls = class->spin >= 0 ? class->spin : aq_latch_spin_count;

	/* Shared holders are shorter and come in numbers: Oracle spins twice as long. */
	if (mode == AQ_SHARED)
		polls *= 2;

	for (int i = 0; i <= polls; i++)
	{
		if (try_get(latch, mode, posted))
			return true;
		aq_cpu_pause();
	}
	return false;
}

/* All that the class does before the session sleeps. */
static bool
spin_and_yield(AqLatch *latch, AqLatchMode mode, const AqLatchClass *class, bool posted)
{
	for (int yields = class->yields;; yields--)
	{
		if (spin(latch, mode, class, posted))
			return true;
		if (yields <= 0)
			return false;
		aq_os_yield();
	}
}

static inline void
count_miss(pg_atomic_uint64 *counter)
{
	if (AQ_ACCOUNTING)
		pg_atomic_fetch_add_u64(counter, 1);
}

static bool
holds_a_latch(void)
{
	for (uint32 i = 0; i < aq_held_count(); i++)
	{
		if ((pg_atomic_read_u64(&aq_sync_self->held[i].lock) & AQ_LOCK_MUTEX) == 0)
			return true;
	}
	return false;
}

/* Sleeps for the n-th time; returns whether it was posted. */
static bool
sleep_once(AqLatch *latch, const AqLatchClass *class, int64 n, AqLocation where)
{
	AqSleeper  *me = &aq_sync_shared->sleepers[aq_session_own_number];
	AqLatchMisses *misses = aq_sync_shared->latch_misses[latch->id];
	AqLatchMisses *holder = &misses[pg_atomic_read_u32(&latch->where)];
	uint64		got_before = aq_latch_gets(latch);

	count_miss(&holder->sleeps);
	count_miss(&misses[where].waiter_sleeps);
	AQ_PROBE4(latch__sleep, latch, latch->id, where, pg_atomic_read_u32(&latch->where));
	aq_event_begin(latch_rows[latch->id].event, (uint64) (uintptr_t) latch, latch->id, where);
	if (class->timed)
		aq_os_sem_wait_us(&me->sem, class->sleep_us[Min(n, AQ_CLASS_SLEEPS - 1)]);
	else
	{
		do
			aq_os_sem_wait(&me->sem);
		while (pg_atomic_read_u32(&me->state) != AQ_SLEEP_POSTED);
	}
	aq_event_end();
	/* Nobody has got it since: who had it when we fell asleep had it all the time. */
	if (aq_latch_gets(latch) == got_before)
		count_miss(&holder->long_holds);
	return pg_atomic_read_u32(&me->state) == AQ_SLEEP_POSTED;
}

static inline int64
read_clock(void)
{
	return AQ_ACCOUNTING ? aq_clock_ns() : 0;
}

static pg_noinline void
get_slow(AqLatch *latch, AqLatchMode mode, AqLocation where)
{
	const AqLatchClass *class = &aq_latch_classes[aq_latch_class[latch->id]];
	int64		sleeps = 0;
	int64		slept = 0;		/* nanoseconds */
	int64		start = read_clock();
	bool		posted = false;
	bool		queued = false;

	AQ_PROBE4(latch__miss, latch, latch->id, mode, where);
	while (!spin_and_yield(latch, mode, class, posted))
	{
		int64		asleep;

		pg_atomic_write_u64(&aq_sync_self->wants, aq_lock_word(latch, false, mode));
		if (!queued)
		{
			enter_list(latch, mode, posted);
			queued = true;
			/* I1: whoever freed it before we were in the list did not see us. */
			if (try_get(latch, mode, posted))
				break;
		}
		asleep = read_clock();
		posted = sleep_once(latch, class, sleeps++, where);
		slept += read_clock() - asleep;
		if (posted)
			queued = false;
	}
	if (queued || posted)
	{
		settle(latch, mode);
		pg_atomic_write_u64(&aq_sync_self->wants, 0);
	}

	/* Ours now: in shared mode others count with us, hence count(). */
	count(&latch->misses, mode, 1);
	count(&latch->spin_time, mode, read_clock() - start - slept);
	if (sleeps == 0)
		count(&latch->spin_gets, mode, 1);
	else
	{
		count(&latch->sleeps, mode, sleeps);
		count(&latch->wait_time, mode, slept / 1000);
		if (holds_a_latch())
			count(&latch->holding_sleeps, mode, sleeps);
	}
}

/* An error in the caller's design, found where it is made and not where it hangs. */
static inline void
assert_order(const AqLatch *latch)
{
#ifdef USE_ASSERT_CHECKING
	for (uint32 i = 0; i < aq_held_count(); i++)
	{
		uint64		held = pg_atomic_read_u64(&aq_sync_self->held[i].lock);

		if ((held & AQ_LOCK_MUTEX) == 0)
			Assert(latch_rows[((AqLatch *) aq_lock_address(held))->id].level < latch_rows[latch->id].level);
	}
#endif
}

/* end: of what the session held before */
static inline void
got(AqLatch *latch, AqLatchMode mode, AqLocation where, AqHeldEnd end)
{
	if (AQ_ACCOUNTING)
		pg_atomic_write_u32(&latch->where, where);
	aq_held_push(end, latch, false, mode, where);
}

/* The first try has failed; interrupts are held off. */
static pg_noinline void
get_after_miss(AqLatch *latch, AqLatchMode mode, AqLocation where, int64 asked)
{
	get_slow(latch, mode, where);
	got(latch, mode, where, aq_held_end());
	aq_trace_latch_got(latch, mode, where, asked);
}

/*
 * The first try of a session that may be traced, or has not used us yet; when
 * it asked is for what comes next.  Interrupts are held off, got or not.
 */
static bool
first_try(AqLatch *latch, AqLatchMode mode, AqLocation where, int64 *asked)
{
	*asked = aq_trace_asked();
	aq_session_attach();
	HOLD_INTERRUPTS();
	if (!try_get(latch, mode, false))
		return false;
	got(latch, mode, where, aq_held_end());
	aq_trace_latch_got(latch, mode, where, *asked);
	return true;
}

static pg_noinline void
get_traced(AqLatch *latch, AqLatchMode mode, AqLocation where)
{
	int64		asked;

	if (!first_try(latch, mode, where, &asked))
		get_after_miss(latch, mode, where, asked);
}

/*
 * Waits as long as it takes.  The session must not hold this latch, nor one of
 * the same or a higher level.  Built as aq_mutex_get().
 */
void
aq_latch_get(AqLatch *latch, AqLatchMode mode, AqLocation where)
{
	AqHeldEnd	end = aq_held_end();

	Assert(latch->magic == LATCH_MAGIC);
	Assert(mode == AQ_SHARED || mode == AQ_EXCLUSIVE);
	Assert(aq_held_find(latch) == NULL);

	assert_order(latch);
	if (unlikely(!aq_trace_is_idle()))
	{
		get_traced(latch, mode, where);
		return;
	}
	HOLD_INTERRUPTS();
	if (unlikely(!try_get(latch, mode, false)))
	{
		get_after_miss(latch, mode, where, 0);
		return;
	}
	got(latch, mode, where, end);
	aq_trace_latch_got(latch, mode, where, 0);
}

/* Never waits, hence may be called whatever latches are held. */
bool
aq_latch_get_nowait(AqLatch *latch, AqLatchMode mode, AqLocation where)
{
	int64		asked;

	Assert(latch->magic == LATCH_MAGIC);
	Assert(mode == AQ_SHARED || mode == AQ_EXCLUSIVE);
	Assert(aq_held_find(latch) == NULL);

	if (first_try(latch, mode, where, &asked))
	{
		count(&latch->immediate_gets, mode, 1);
		return true;
	}
	RESUME_INTERRUPTS();
	count_miss(&latch->immediate_misses);
	count_miss(&aq_sync_shared->latch_misses[latch->id][where].nowait_failures);
	aq_trace_latch_failed(latch, mode, where, asked);
	return false;
}

static inline void
free_held(AqLatch *latch, AqHeldEnd end, AqHeld *held)
{
	uint64		word;
	bool		last;

	if (aq_lock_mode(pg_atomic_read_u64(&held->lock)) == AQ_EXCLUSIVE)
	{
		/* One atomic operation: the holder knows what is in the count. */
		word = pg_atomic_fetch_sub_u64(&latch->word,
									   (int64) (W_EXCLUSIVE | (uint64) (aq_session_own_number + 1)));
		last = true;
	}
	else
	{
		word = pg_atomic_fetch_sub_u64(&latch->word, 1);
		last = (word & W_COUNT) == 1;
	}
	aq_held_drop(end, held);
	if (unlikely(last && (word & (W_WAITERS | W_WAKING)) == W_WAITERS))
	{
		post_head(latch);
		return;
	}
	RESUME_INTERRUPTS();
}

/* Not what was got last, or in a session that is traced. */
static pg_noinline void
free_other(AqLatch *latch)
{
	AqHeld	   *held = aq_held_find(latch);

	Assert(held != NULL);
	aq_trace_latch_free(latch);
	free_held(latch, aq_held_end(), held);
}

void
aq_latch_free(AqLatch *latch)
{
	AqHeldEnd	end = aq_held_end();
	AqHeld	   *held = aq_held_last(end, latch);

	if (unlikely(held == NULL || aq_traced()))
	{
		free_other(latch);
		return;
	}
	AQ_PROBE2(latch__free, latch, latch->id);
	free_held(latch, end, held);
}

bool
aq_latch_held(const AqLatch *latch)
{
	return aq_held_find(latch) != NULL;
}

/* For views: the exclusive holder's session number, or -1. */
int
aq_latch_holder(const AqLatch *latch)
{
	uint64		word = pg_atomic_read_u64((pg_atomic_uint64 *) &latch->word);

	if ((word & W_EXCLUSIVE) == 0)
		return -1;
	return (int) (word & W_COUNT) - 1;
}

/* How many sessions share it. */
uint32
aq_latch_sharers(const AqLatch *latch)
{
	uint64		word = pg_atomic_read_u64((pg_atomic_uint64 *) &latch->word);

	return (word & W_EXCLUSIVE) ? 0 : (uint32) (word & W_COUNT);
}
