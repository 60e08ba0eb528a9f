/*-------------------------------------------------------------------------
 *
 * sim.h
 *	  A seeded scheduler: sessions are coroutines, one runs at a time.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AQ_SIM_H
#define AQ_SIM_H

#include "unit.h"

#define SIM_MAX_SESSIONS 16

typedef void (*SimMain) (void *arg);
typedef bool (*SimCondition) (void *arg);

/* Begins a run by unit_seed with fresh shared memory. */
extern void sim_start(int nsessions);
extern void sim_spawn(int session, SimMain main, void *arg);

/* Runs until all sessions have ended; a deadlock or livelock fails the test. */
extern void sim_run(void);
extern void sim_abandon(void);

/* Called when a session goes on and when it stops: what the code under test keeps in its own variables. */
extern void (*sim_take_up) (int session);
extern void (*sim_put_down) (int session);

/* What goes wrong outside: semaphores that return early or have a post too many. */
extern void sim_disturb(bool early_returns, bool stray_posts);

/* In a session */
extern uint32 sim_random(uint32 n); /* 0 .. n - 1; anywhere */
extern void sim_wait_for(SimCondition condition, void *arg);
extern void sim_sleep_us(int64 us);
extern void sim_freeze(bool on);	/* nobody else runs, unless this session sleeps */
extern bool sim_asleep(int session);	/* on its semaphore, without a time-out */
extern UnitCounts *sim_counts(int session);

/* Like the server's process latch. */
extern void sim_set_latch(int session);
extern bool sim_wait_latch(int64 timeout_us);	/* false: time-out */

/* Sessions that were posted, in order. */
extern int	sim_nposted;
extern int	sim_posted[64];

/* Times of the timed semaphore waits of the code under test. */
extern int	sim_ntimed;
extern int64 sim_timed_us[64];

#endif							/* AQ_SIM_H */
