/*-------------------------------------------------------------------------
 *
 * mutex_int.h
 *	  How a mutex waits; the counters of all sessions.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AQ_MUTEX_INT_H
#define AQ_MUTEX_INT_H

#include "sync/common/os.h"
#include "sync/mutexes/mutex.h"

/* --- mutex_wait.c: how a mutex waits ---------------------------------------------- */

extern AQ_LOCAL int aq_mutex_wait_spin_count;
extern AQ_LOCAL int aq_mutex_wait_scheme;
extern AQ_LOCAL int aq_mutex_wait_time;
extern AQ_LOCAL int aq_mutex_wait_yield_mode;	/* AqYieldMode */
extern AQ_LOCAL int aq_mutex_wait_yield_hp_mode;	/* AqYieldMode */
extern AQ_LOCAL bool aq_mutex_wait_high_priority;
extern AQ_LOCAL int aq_mutex_wait_yield_sleep_time;
extern AQ_LOCAL int aq_mutex_wait_yield_sleep_freq;
extern AQ_LOCAL int aq_mutex_wait_yield_yield_freq;

typedef enum AqYieldMode
{
	AQ_YIELD_MODE_YIELD,
	AQ_YIELD_MODE_SLEEP
} AqYieldMode;

#define AQ_MAX_SPIN			1000000
#define AQ_MAX_SCHEME		255
#define AQ_MAX_WAIT_TIME	100000

/* Settings of a mutex type; -1: use the parameter for all types. */
typedef struct AqMutexWay
{
	int			spin;
	int			scheme;
	int			time;
} AqMutexWay;

extern AQ_LOCAL AqMutexWay aq_mutex_wait_ways[AQ_MUTEX_TYPE_COUNT];

/* State of one wait: its settings and its current step. */
typedef struct AqScheme
{
	AqMutexWay	way;			/* resolved: no -1 */
	uint64		step;			/* steps made so far */
	bool		timed;			/* false: does not count as waiting time */
} AqScheme;

extern void aq_mutex_wait_start(AqScheme *scheme, AqMutexType type);
extern void aq_mutex_wait_step(AqScheme *scheme, AqSem *sem);

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

#endif							/* AQ_MUTEX_INT_H */
