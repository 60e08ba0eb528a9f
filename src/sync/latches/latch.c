/*-------------------------------------------------------------------------
 *
 * latch.c
 *	  Latches: exclusive or shared, spin first, then sleep until posted.
 *
 * A latch is one word.  Its low half:
 *
 *	EXCLUSIVE	held exclusively; the count is then the holder's number + 1
 *	count		holders in shared mode
 *	LIST		a session is changing the wait list (a spin lock, held briefly)
 *	WAITERS		the wait list is not empty
 *	WAKING		one sleeper was posted and has not yet got the latch or gone
 *				back to sleep; no other sleeper is posted meanwhile
 *	PENDING		an exclusive request sleeps or was posted: newcomers do not
 *				get the latch in shared mode, or they could starve it
 *
 * Its high half counts the gets, so that the operation that gets the latch is
 * also the one that counts it.
 *
 * session				exclusive get succeeds if	shared get succeeds if
 * newcomer				not EXCLUSIVE, count = 0	not EXCLUSIVE, not PENDING
 * posted				not EXCLUSIVE, count = 0	not EXCLUSIVE
 *
 * A session whose get fails spins, then enters the wait list, then tries once
 * more, then sleeps on its semaphore.  The last holder's free posts only the
 * head of the list.  The posted session competes with newcomers, so the latch
 * can be used while it wakes up; if it loses, it sleeps again as the head of
 * the list.
 *
 * The class (AqLatchClass) says how long to spin, how many times to yield and
 * spin again before sleeping, and whether sleeps end only by a post.  A
 * sleeper that wakes up because of a timeout keeps its place in the list while
 * it spins, and competes as a newcomer.
 *
 * No wake-up is lost, because all flags are in one word, so that all changes
 * have one order, and:
 *	I1	A sleeper has set WAITERS before it tried for the last time.  A free
 *		before that leaves a free word to that try; a free after that sees WAITERS.
 *	I2	A free that finds WAKING set posts no session.  The posted session clears
 *		WAKING after this free, and then either tries again, so that I1 holds for
 *		it if it sleeps again, or has got the latch and posts when it frees it.
 *	I3	PENDING is set only while an exclusive request is in the list, or was
 *		posted and not yet settled.  Then the latch is held, or an awake session
 *		will try; so a session that sleeps because of PENDING is posted later.
 *	I4	A post belongs to one stay in the list: a session leaves the list or is
 *		removed from it under LIST, and only its state says whether it was posted,
 *		not the return from the semaphore.  A post that came too late stays in the
 *		semaphore, and its only effect is that the next sleep checks one more time.
 *
 * The other counters are in the latch and are changed while it is held:
 * without atomic operations by an exclusive holder, atomically by shared ones.
 * They are exact:
 *		gets = gets at once + spin_gets + gets that slept
 *		misses = spin_gets + gets that slept
 *		sleeps + spin_gets - misses = repeated sleeps, never negative
 * Only a session whose first try failed reads the clock.
 *
 * While a latch is held, interrupts are held off; a sleep for a latch is not
 * interruptible.  So latches must be held briefly, and no error may be raised
 * under them.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "sync/common/held.h"
#include "sync/common/spin_clock.h"
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
 * Polls before sleeping.  Oracle's 20000 suits machines with more processors
 * than sessions, where the holder runs and will soon be done.  If there are
 * more sessions than processors, the holder has often been preempted, perhaps
 * by the session that spins. 200 polls take some microseconds, about as long
 * as a sleep and a wake-up.  The choice rests on this reasoning: with 2, 8 and
 * 32 sessions on two (busy) processors, the time for the same number of gets
 * showed no trend between 100 and 20000.
 */
AQ_LOCAL int aq_latch_spin_count = 200;
AQ_LOCAL uint8 aq_latch_class[AQ_LATCH_COUNT];
AQ_LOCAL AqLatchClass aq_latch_classes[AQ_LATCH_CLASSES] = {
	/* class 0, the default: sleep until posted */
	{.spin = -1}
};

static const LatchRow latch_rows[] = {
#define X(id, name, level, event, children, text) {level, AQ_EVENT_##event},
#include "sync/common/latch_list.h"
#undef X
};

StaticAssertDecl(lengthof(latch_rows) == AQ_LATCH_COUNT, "latch_list.h changed while it was read");

/*
 * The latch must be in shared memory that is never freed, because the registry
 * keeps it; the memory must be zeroed or already contain a latch.  A latch
 * that is initialized again (because its struct is reused) must be free and
 * keeps its counters.
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

/* The caller holds the latch. */
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

/*
 * Tries once: fails only if another session holds the latch or gets it first.
 */
static inline bool
try_get(AqLatch *latch, AqLatchMode mode, bool posted)
{
	uint64		expected = pg_atomic_read_u64(&latch->word);
	uint64		grant = (mode == AQ_EXCLUSIVE) ?
		(W_EXCLUSIVE | (uint64) (aq_session_own_number + 1)) : 1;

	/* The exchange also fails if only a flag has changed: then check again. */
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
 * The number of gets, with or without waiting.  The word has the lower 32 bits
 * of the number; halves counts the changes of the highest of these bits.
 * After a get that changes this bit, the word is ahead of halves until the
 * holder has updated halves.
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
			/*
			 * Its holder needs only a few instructions, unless it was
			 * preempted.
			 */
			if (++polls % 100 == 0)
				aq_os_yield();
			else
				aq_cpu_pause();
		} while (pg_atomic_read_u64(&latch->word) & W_LIST);
	}
}

/* Clears LIST and sets the flags according to the list. */
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

/*
 * Removes the head of the list; the caller posts it after unlock_list(true).
 */
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

/*
 * The last step of a free: wakes the head of the list and resumes interrupts.
 */
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
 * Enters the list: at its end, or at its head if this session was posted but
 * did not get the latch.
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
 * Called by a session that slept or was in the list, after it has got the
 * latch.  It leaves the list, or, if it was posted, clears WAKING.  A shared
 * holder posts the next sleeper if that one also wants shared mode.
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

static int
polls_of(const AqLatchClass *class, AqLatchMode mode)
{
	int			polls = class->spin >= 0 ? class->spin : aq_latch_spin_count;

	/* As in Oracle, spin twice as long for shared mode. */
	if (mode == AQ_SHARED)
		polls *= 2;
	return polls;
}

static bool
spin(AqLatch *latch, AqLatchMode mode, int polls, bool posted)
{
	for (int i = 0; i <= polls; i++)
	{
		if (try_get(latch, mode, posted))
			return true;
		aq_cpu_pause();
	}
	return false;
}

/*
 * Spins and yields as the class says, before the session sleeps; adds the CPU
 * time in nanoseconds.
 */
static bool
spin_and_yield(AqLatch *latch, AqLatchMode mode, const AqLatchClass *class, bool posted, int64 *spent)
{
	int			polls = polls_of(class, mode);
	AqSpinClock clock = aq_spin_clock_start(class->yields > 0 ? AQ_SPIN_SHORT : polls);
	bool		got = spin(latch, mode, polls, posted);

	for (int yields = class->yields; !got && yields > 0; yields--)
	{
		aq_os_yield();
		got = spin(latch, mode, polls, posted);
	}
	*spent += aq_spin_clock_spent(&clock);
	return got;
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

/* Sleeps for the n-th time; returns whether the session was posted. */
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
	/* There was no get meanwhile, so the holder has not changed. */
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
	int64		spun = 0;		/* nanoseconds */
	bool		posted = false;
	bool		queued = false;

	AQ_PROBE4(latch__miss, latch, latch->id, mode, where);
	while (!spin_and_yield(latch, mode, class, posted, &spun))
	{
		int64		asleep;

		pg_atomic_write_u64(&aq_sync_self->wants, aq_lock_word(latch, false, mode));
		if (!queued)
		{
			enter_list(latch, mode, posted);
			queued = true;
			/*
			 * I1: a session that freed the latch earlier did not see us in the
			 * list.
			 */
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

	/* In shared mode other holders count at the same time, hence count(). */
	count(&latch->misses, mode, 1);
	count(&latch->spin_time, mode, spun);
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

/* Finds violations of the latch order before they cause a deadlock. */
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

/* end: of the session's list, as read before the get */
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
 * The first try of a session that may be traced or has not attached. *asked is
 * the time of the request.  Interrupts are held off afterwards in any case.
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
 * Waits without a time limit.  The session must not hold this latch, nor one
 * of the same or a higher level.  Has the same structure as aq_mutex_get().
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

/* Never waits, so it may be called whatever latches are held. */
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
		/*
		 * One atomic operation suffices: the count is this session's number +
		 * 1.
		 */
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

/* For a latch that is not the latest in the list, and for traced sessions. */
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

/* The number of shared holders. */
uint32
aq_latch_sharers(const AqLatch *latch)
{
	uint64		word = pg_atomic_read_u64((pg_atomic_uint64 *) &latch->word);

	return (word & W_EXCLUSIVE) ? 0 : (uint32) (word & W_COUNT);
}
