/*-------------------------------------------------------------------------
 *
 * mutex_wait.c
 *	  How sessions wait for a mutex: one step of the wait loop, as set by
 *	  pgaq.mutex_wait_scheme and pgaq.mutex_wait_time, or for the type of mutex
 *	  by pgaq.mutex_types.
 *
 * scheme	step k
 * 0		wait_yield_mode yield: yield; every wait_yield_sleep_freq-th step sleeps
 *			wait_yield_sleep_time ms instead.  wait_yield_mode sleep: sleep; every
 *			wait_yield_yield_freq-th step yields instead.  Sessions with
 *			high_priority have wait_yield_hp_mode instead of wait_yield_mode
 * 1		the first step yields, the others sleep mutex_wait_time ms; with
 *			mutex_wait_time 0 as scheme 0
 * 2		two steps yield, the others wait on the session's semaphore with a timeout
 *			of 10, 10, 30, 30, about 75, 75, 155, 155, 310 ... ms, at most
 *			mutex_wait_time * 10 ms (so 10 ms always, by default); 0 means 2 s
 * other	no system call but a yield every 65536 steps; not counted as waiting
 *
 * Waiters are not posted, but poll the mutex after each step.  Schemes 0 and
 * other cost processor time, schemes 1 and 2 response time.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "sync/common/sync_self.h"
#include "sync/mutexes/mutex_int.h"

#define SPIN_ONLY_STEPS	65536

AQ_LOCAL int aq_mutex_wait_spin_count = 255;
AQ_LOCAL int aq_mutex_wait_scheme = 2;
AQ_LOCAL int aq_mutex_wait_time = 1;
AQ_LOCAL int aq_mutex_wait_yield_mode = AQ_YIELD_MODE_YIELD;
AQ_LOCAL int aq_mutex_wait_yield_hp_mode = AQ_YIELD_MODE_YIELD;
AQ_LOCAL bool aq_mutex_wait_high_priority = false;
AQ_LOCAL int aq_mutex_wait_yield_sleep_time = 1;
AQ_LOCAL int aq_mutex_wait_yield_sleep_freq = 100;
AQ_LOCAL int aq_mutex_wait_yield_yield_freq = 20;
AQ_LOCAL AqMutexWay aq_mutex_wait_ways[AQ_MUTEX_TYPE_COUNT] = {
	[0 ... AQ_MUTEX_TYPE_COUNT - 1] = {-1, -1, -1}
};

void
aq_mutex_wait_start(AqScheme *scheme, AqMutexType type)
{
	AqMutexWay *own = &aq_mutex_wait_ways[type];
	AqMutexWay *way = &scheme->way;

	way->spin = own->spin >= 0 ? own->spin : aq_mutex_wait_spin_count;
	way->scheme = own->scheme >= 0 ? own->scheme : aq_mutex_wait_scheme;
	way->time = own->time >= 0 ? own->time : aq_mutex_wait_time;
	scheme->step = 0;
	scheme->timed = way->scheme <= 2;
}

/*
 * Randomizes a sleep, so that sessions that fell asleep together do not wake
 * up together.
 */
static int
spread(int ms)
{
	uint32		x = aq_sync_self->random;
	int			width = ms / 8;

	if (x == 0)
		x = (uint32) aq_session_own_number * 2654435761u + 1;
	x ^= x << 13;
	x ^= x >> 17;
	x ^= x << 5;
	aq_sync_self->random = x;
	return ms - width / 2 + (int) (x % (uint32) (width + 1));
}

static void
step_yield(uint64 k)
{
	int			mode = aq_mutex_wait_high_priority ? aq_mutex_wait_yield_hp_mode : aq_mutex_wait_yield_mode;
	bool		sleeps = (mode == AQ_YIELD_MODE_SLEEP);
	int			freq = sleeps ? aq_mutex_wait_yield_yield_freq : aq_mutex_wait_yield_sleep_freq;

	/* 0: never the other one */
	if (freq > 0 && k % freq == 0)
		sleeps = !sleeps;
	if (sleeps)
		aq_os_poll_ms(aq_mutex_wait_yield_sleep_time);
	else
		aq_os_yield();
}

static void
step_backoff(uint64 k, int time, AqSem *sem)
{
	static const int backoff_ms[] = {10, 30, 75, 155, 310, 630, 1270, 2000};
	uint64		pair;
	int			cap;
	int			ms;

	if (k <= 2)
	{
		aq_os_yield();
		return;
	}
	pair = (k - 3) / 2;
	ms = backoff_ms[Min(pair, lengthof(backoff_ms) - 1)];
	if (pair >= 2)
		ms = spread(ms);
	cap = (time == 0) ? 2000 : time * 10;
	aq_os_sem_wait_us(sem, (int64) Min(ms, cap) * 1000);
}

void
aq_mutex_wait_step(AqScheme *scheme, AqSem *sem)
{
	const AqMutexWay *way = &scheme->way;
	uint64		k = ++scheme->step;

	switch (way->scheme)
	{
		case 0:
			step_yield(k);
			break;
		case 1:
			if (way->time == 0)
				step_yield(k);
			else if (k == 1)
				aq_os_yield();
			else
				aq_os_poll_ms(way->time);
			break;
		case 2:
			step_backoff(k, way->time, sem);
			break;
		default:
			if (k % SPIN_ONLY_STEPS == 0)
				aq_os_yield();
			break;
	}
}
