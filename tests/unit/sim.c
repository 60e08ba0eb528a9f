/*-------------------------------------------------------------------------
 *
 * sim.c
 *	  The seeded scheduler, and the system calls of sync/common/os.c in it.
 *
 * Sessions are coroutines in one thread.  At every atomic access, poll and
 * system call the scheduler may go on with another session that can run; how
 * often it does so differs from seed to seed, because some faults need many
 * switches and others one at the right place after a long run.  Time is a number
 * that grows by one at each such place, and jumps to the next deadline when
 * nobody can run.  When nobody can run and there is no deadline, sessions wait
 * for each other for ever: the test fails.  The same seed gives the same run.
 *
 * What this cannot find: what a processor's reordering of memory accesses does.
 * The same tests run as threads under ThreadSanitizer for that.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include <setjmp.h>
#include <ucontext.h>

#include "sim.h"

#define STACK_SIZE	(64 * 1024)
#define MAX_STEPS	1000000

typedef enum State
{
	UNUSED,
	READY,
	ON_SEM,						/* until count > 0 or the deadline */
	ON_CONDITION,
	ON_LATCH,
	ON_TIME,
	ENDED
} State;

typedef struct Session
{
	ucontext_t	context;		/* its beginning */
	jmp_buf		place;			/* where it goes on */
	bool		begun;
	char	   *stack;
	State		state;
	SimMain		main;
	void	   *arg;
	AqSem	   *sem;
	bool		early;			/* lets its semaphore return without a post */
	int64		deadline;		/* -1: none */
	SimCondition condition;
	void	   *condition_arg;
	bool		latch_set;

	/* what a process has of its own */
	int			holdoff;
	UnitCounts	counts;
} Session;

static Session sessions[SIM_MAX_SESSIONS];
static int	nsessions;
static int	running = -1;		/* -1: the test itself */
static jmp_buf outside;
static uint64 state;
static uint32 switch_odds;
static bool early_returns;
static bool stray_posts;
static bool frozen;
static int64 now;
static int64 steps;

void		(*sim_take_up) (int session);
void		(*sim_put_down) (int session);

int			sim_nposted;
int			sim_posted[64];
int			sim_ntimed;
int64		sim_timed_us[64];

/* --- randomness ------------------------------------------------------------------ */

static uint64
next_random(void)
{
	uint64		z = (state += UINT64CONST(0x9E3779B97F4A7C15));

	z = (z ^ (z >> 30)) * UINT64CONST(0xBF58476D1CE4E5B9);
	z = (z ^ (z >> 27)) * UINT64CONST(0x94D049BB133111EB);
	return z ^ (z >> 31);
}

uint32
sim_random(uint32 n)
{
	return (uint32) (next_random() % n);
}

/* --- scheduler --------------------------------------------------------------------- */

/*
 * Control goes to a session and back by jumps between the stacks: swapcontext
 * would ask the kernel for the signal mask each time, which takes most of a run.
 */
static void
give_control(Session *s)
{
	if (_setjmp(outside) != 0)
		return;
	if (s->begun)
		_longjmp(s->place, 1);
	s->begun = true;
	setcontext(&s->context);
}

static void
give_back_control(Session *me)
{
	if (_setjmp(me->place) == 0)
		_longjmp(outside, 1);
}

static void
entry(void)
{
	Session    *me = &sessions[running];

	me->main(me->arg);
	me->state = ENDED;
	give_back_control(me);
}

static bool
can_run(Session *s)
{
	bool		over = s->deadline >= 0 && s->deadline <= now;

	switch (s->state)
	{
		case READY:
			return true;
		case ON_SEM:
			return s->sem->count > 0 || s->early || over;
		case ON_CONDITION:
			return s->condition(s->condition_arg);
		case ON_LATCH:
			return s->latch_set || over;
		case ON_TIME:
			return over;
		case UNUSED:
		case ENDED:
			break;
	}
	return false;
}

static void
resume(int number)
{
	Session    *s = &sessions[number];

	running = number;
	unit_be(number);
	shim_interrupt_holdoff = s->holdoff;
	unit_counts = s->counts;
	if (sim_take_up != NULL)
		sim_take_up(number);
	give_control(s);
	if (sim_put_down != NULL)
		sim_put_down(number);
	s->holdoff = shim_interrupt_holdoff;
	s->counts = unit_counts;
	running = -1;
}

static void
disturb(void)
{
	Session    *s = &sessions[sim_random((uint32) nsessions)];

	if (s->state != ON_SEM)
		return;
	if (early_returns && sim_random(2) == 0)
		s->early = true;
	else if (stray_posts)
		s->sem->count++;
}

/* The session to go on, -1: all have ended. */
static int
choose(void)
{
	int			candidates[SIM_MAX_SESSIONS];
	int			n = 0;
	bool		alive = false;
	int64		next = -1;

	for (int i = 0; i < nsessions; i++)
	{
		Session    *s = &sessions[i];

		if (s->state == UNUSED || s->state == ENDED)
			continue;
		alive = true;
		if (can_run(s))
			candidates[n++] = i;
		else if (s->deadline >= 0 && (next < 0 || s->deadline < next))
			next = s->deadline;
	}
	if (!alive)
		return -1;
	if (n == 0 || (next >= 0 && sim_random(64) == 0))
	{
		if (next < 0)
			unit_fail(__FILE__, __LINE__, "sessions wait for each other for ever");
		now = next;
		if (n == 0)
			return choose();
	}
	return candidates[sim_random((uint32) n)];
}

void
sim_run(void)
{
	int			number;

	while ((number = choose()) >= 0)
	{
		if ((early_returns || stray_posts) && sim_random(16) == 0)
			disturb();
		resume(number);
	}
	for (int i = 0; i < nsessions; i++)
	{
		CHECK_EQ(pg_atomic_read_u32(&aq_sync_shared->selves[i].nheld), 0);
		CHECK_EQ(pg_atomic_read_u64(&aq_sync_shared->selves[i].wants), 0);
		CHECK_EQ(sessions[i].holdoff, 0);
	}
}

/* After a failure inside a session: its stack will not be used again. */
void
sim_abandon(void)
{
	running = -1;
}

static void
reschedule(void)
{
	if (++steps > MAX_STEPS)
		unit_fail(__FILE__, __LINE__, "no end after %d steps", MAX_STEPS);
	give_back_control(&sessions[running]);
}

void
sim_switch(void)
{
	if (running < 0)
		return;
	now++;
	if (++steps > MAX_STEPS)
		unit_fail(__FILE__, __LINE__, "no end after %d steps", MAX_STEPS);
	if (!frozen && sim_random(switch_odds) == 0)
		reschedule();
}

void
sim_freeze(bool on)
{
	frozen = on;
}

void
sim_pause(void)
{
	unit_counts.pauses++;
	sim_switch();
}

void
sim_start(int n)
{
	static const uint32 odds[] = {1, 2, 3, 5, 10, 30, 100};

	unit_shared(n);
	nsessions = n;
	state = unit_seed * UINT64CONST(0x2545F4914F6CDD1D);
	now = 1000;
	steps = 0;
	switch_odds = odds[sim_random(lengthof(odds))];
	early_returns = stray_posts = frozen = false;
	sim_take_up = sim_put_down = NULL;
	sim_nposted = sim_ntimed = 0;
	for (int i = 0; i < SIM_MAX_SESSIONS; i++)
	{
		char	   *stack = sessions[i].stack;

		memset(&sessions[i], 0, sizeof(Session));
		sessions[i].stack = stack;
		sessions[i].deadline = -1;
	}
}

void
sim_spawn(int number, SimMain main, void *arg)
{
	Session    *s = &sessions[number];

	if (s->stack == NULL)
		s->stack = malloc(STACK_SIZE);
	getcontext(&s->context);
	s->context.uc_stack.ss_sp = s->stack;
	s->context.uc_stack.ss_size = STACK_SIZE;
	s->context.uc_link = NULL;
	makecontext(&s->context, entry, 0);
	s->begun = false;
	s->main = main;
	s->arg = arg;
	s->state = READY;
}

void
sim_disturb(bool early, bool stray)
{
	early_returns = early;
	stray_posts = stray;
}

/* --- what sessions do ---------------------------------------------------------------- */

static void
block(State why, int64 timeout_us)
{
	Session    *s = &sessions[running];

	s->state = why;
	s->deadline = (timeout_us >= 0) ? now + timeout_us : -1;
	reschedule();
	s->state = READY;
	s->deadline = -1;
}

void
sim_wait_for(SimCondition condition, void *arg)
{
	sessions[running].condition = condition;
	sessions[running].condition_arg = arg;
	block(ON_CONDITION, -1);
}

void
sim_sleep_us(int64 us)
{
	block(ON_TIME, us);
}

bool
sim_asleep(int number)
{
	Session    *s = &sessions[number];

	return s->state == ON_SEM && s->deadline < 0 && s->sem->count == 0;
}

UnitCounts *
sim_counts(int number)
{
	return &sessions[number].counts;
}

void
sim_set_latch(int number)
{
	sim_switch();
	sessions[number].latch_set = true;
}

bool
sim_wait_latch(int64 timeout_us)
{
	Session    *s = &sessions[running];
	bool		set;

	block(ON_LATCH, timeout_us);
	set = s->latch_set;
	s->latch_set = false;
	return set;
}

/* --- sync/common/os.c ------------------------------------------------------------------------ */

int64
aq_clock_us(void)
{
	return now;
}

/* Time here has no smaller unit. */
int64
aq_clock_ns(void)
{
	return now * 1000;
}

int64
aq_clock_cpu_ns(void)
{
	return now * 1000;
}

void
aq_os_sem_init(AqSem *sem)
{
	sem->count = 0;
}

void
aq_os_sem_post(AqSem *sem)
{
	sim_switch();
	for (int i = 0; i < nsessions; i++)
	{
		if (sem == &aq_sync_shared->sleepers[i].sem && sim_nposted < (int) lengthof(sim_posted))
			sim_posted[sim_nposted++] = i;
	}
	unit_counts.posts++;
	sem->count++;
}

static void
sem_wait_for(AqSem *sem, int64 us)
{
	Session    *s = &sessions[running];

	sim_switch();
	s->sem = sem;
	s->early = false;
	block(ON_SEM, us);
	s->early = false;
	if (sem->count > 0)
		sem->count--;
}

void
aq_os_sem_wait(AqSem *sem)
{
	unit_counts.sem_waits++;
	sem_wait_for(sem, -1);
}

void
aq_os_sem_wait_us(AqSem *sem, int64 us)
{
	unit_counts.timed_waits++;
	if (sim_ntimed < (int) lengthof(sim_timed_us))
		sim_timed_us[sim_ntimed++] = us;
	sem_wait_for(sem, us);
}

void
aq_os_yield(void)
{
	unit_counts.yields++;
	reschedule();
}

void
aq_os_poll_ms(int ms)
{
	unit_counts.polls++;
	unit_counts.poll_ms += ms;
	block(ON_TIME, (int64) ms * 1000);
}
