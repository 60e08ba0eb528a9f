/*-------------------------------------------------------------------------
 *
 * test_object.c
 *	  The object cache: lock, pin, load once, age out, drop, hot copies.
 *
 * The sources of the cache are part of this file, because what a session has of
 * a handle is in variables of its own, which have to change with the session.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "server.h"

#include "sim.h"
#include "tests.h"

/* the cache is compiled with the server's choice of warnings */
#pragma GCC diagnostic ignored "-Wsign-compare"
#pragma GCC diagnostic ignored "-Wunused-parameter"

#include "cache/object.c"
#include "cache/handle.c"
#include "cache/hot.c"

#define SESSIONS 5
#define IDS 9
#define HOT 1					/* the only id that gets copies */
#define LIMIT (SESSIONS + 2)	/* a session needs one at a time, the hot one is pinned by its copies */
#define STEPS 12
#define HANDLES (LIMIT + AQ_COPY_HANDLES)

/* what the handle's owner keeps there: the value */
typedef struct Value
{
	uint32		id;				/* 0: not loaded */
	bool		loading;
	int			users;
	bool		changing;		/* somebody has the exclusive lock */
} Value;

static Value values[HANDLES + 1];
static int	loads;

/* --- what sessions have of their own ---------------------------------------------- */

typedef struct Own
{
	Mine	   *mine;
	AqObject  **locked;
	int			nlocked;
	int			locked_size;
	AqCond	   *cond;			/* prepared */
	uint64		seen;
	int			nclaims;
	struct
	{
		AqClaimRelease release;
		void	   *object;
	}			claims[8];
} Own;

static Own	owns[SIM_MAX_SESSIONS];

static void
put_down(int session)
{
	owns[session].mine = mine;
	owns[session].locked = locked;
	owns[session].nlocked = nlocked;
	owns[session].locked_size = locked_size;
}

static void
take_up(int session)
{
	mine = owns[session].mine;
	locked = owns[session].locked;
	nlocked = owns[session].nlocked;
	locked_size = owns[session].locked_size;
}

/* --- the server's part --------------------------------------------------------------- */

bool		aq_chunks_impatient = false;

int
aq_session_slots(void)
{
	return SIM_MAX_SESSIONS;
}

void
aq_cond_init(AqCond *cond)
{
	cond->broadcasts = 0;
}

void
aq_cond_prepare(AqCond *cond)
{
	Own		   *own = &owns[aq_session_own_number];

	CHECK(own->cond == NULL);
	own->cond = cond;
	own->seen = cond->broadcasts;
	sim_switch();
}

static bool
was_broadcast(void *arg)
{
	Own		   *own = arg;

	return own->cond->broadcasts != own->seen;
}

bool
aq_cond_sleep(AqCond *cond, AqEvent event, uint64 p1, uint64 p2, uint64 p3, int64 timeout_us)
{
	Own		   *own = &owns[aq_session_own_number];

	CHECK(own->cond == cond);
	aq_held_assert_none();
	if (timeout_us >= 0)
		sim_sleep_us(timeout_us);
	else if (sim_random(8) != 0)	/* else it wakes in vain */
		sim_wait_for(was_broadcast, own);
	own->seen = cond->broadcasts;
	return true;
}

void
aq_cond_cancel(void)
{
	owns[aq_session_own_number].cond = NULL;
}

uint32
aq_cond_seen(AqCond *cond)
{
	uint32		seen = cond->broadcasts;

	sim_switch();
	return seen;
}

/* Without a timeout: the broadcasts must be enough. */
bool
aq_cond_sleep_unseen(AqCond *cond, uint32 seen, AqEvent event, uint64 p1, uint64 p2, uint64 p3, int64 timeout_us)
{
	aq_cond_prepare(cond);
	if ((uint32) cond->broadcasts == seen)
		aq_cond_sleep(cond, event, p1, p2, p3, -1);
	aq_cond_cancel();
	return true;
}

void
aq_cond_broadcast(AqCond *cond)
{
	sim_switch();
	cond->broadcasts++;
}

/* --- claims, as base/claim.c keeps them --------------------------------------------------- */

void
aq_claim_reserve(int n)
{
	CHECK(owns[aq_session_own_number].nclaims + n <= (int) lengthof(owns[0].claims));
}

void
aq_claim_enter(AqClaimRelease release, void *object, int64 argument)
{
	Own		   *own = &owns[aq_session_own_number];

	own->claims[own->nclaims].release = release;
	own->claims[own->nclaims++].object = object;
}

void
aq_claim_end(AqClaimRelease release, const void *object)
{
	Own		   *own = &owns[aq_session_own_number];
	int			i = own->nclaims - 1;

	while (i >= 0 && (own->claims[i].release != release || own->claims[i].object != object))
		i--;
	CHECK(i >= 0);
	own->nclaims--;
	for (; i < own->nclaims; i++)
		own->claims[i] = own->claims[i + 1];
}

/* As an error or the end of the session does. */
static void
release_claims(void)
{
	Own		   *own = &owns[aq_session_own_number];

	while (own->nclaims > 0)
	{
		AqClaimRelease release = own->claims[own->nclaims - 1].release;
		void	   *object = own->claims[own->nclaims - 1].object;

		own->nclaims--;
		release(object, 0);
	}
}

void
aq_claim_count(pg_atomic_uint32 *counter)
{
	pg_atomic_fetch_add_u32(counter, 1);
}

void
aq_claim_uncount(pg_atomic_uint32 *counter)
{
	pg_atomic_fetch_sub_u32(counter, 1);
}

/* --- the owner of the values ------------------------------------------------------------ */

static void
free_it(AqObject *object)
{
	Value	   *value = &values[object->index];

	CHECK(!value->loading);
	CHECK_EQ(value->users, 0);
	value->id = 0;
}

static bool
is_idle(AqObject *object)
{
	sim_switch();
	CHECK_EQ(values[object->index].users, 0);
	return sim_random(4) != 0;
}

static void
prepare(void)
{
	static void *area;
	Size		size;

	aq_handle_limit = LIMIT;
	aq_hot_copies = 3;
	size = aq_handle_shmem_size();
	if (area == NULL)
		area = aligned_alloc(PG_CACHE_LINE_SIZE, CACHELINEALIGN(size));
	aq_handle_shmem_init(area, false);
	aq_handle_on_free(free_it, is_idle, 0);
	memset(values, 0, sizeof(values));
	for (int i = 0; i < SIM_MAX_SESSIONS; i++)
	{
		free(owns[i].mine);
		free(owns[i].locked);
		memset(&owns[i], 0, sizeof(Own));
	}
	take_up(0);
	loads = 0;
	sim_put_down = put_down;
	sim_take_up = take_up;
}

static int
length_of(uint32 first)
{
	int			n = 0;

	for (uint32 i = first; i != 0; i = aq_handle_objects[i].next)
		n++;
	return n;
}

/* When all sessions have ended and all objects are dropped, nothing is left. */
static void
check_empty(void)
{
	for (uint32 id = 1; id <= IDS; id++)
		aq_object_drop(1, id);
	CHECK_EQ(pg_atomic_read_u32(&aq_handle_area->npinned), 0);
	CHECK_EQ(pg_atomic_read_u32(&aq_handle_area->waiting), 0);
	CHECK_EQ(length_of(aq_handle_area->free), LIMIT);
	CHECK_EQ(length_of(aq_handle_area->free_copy), AQ_COPY_HANDLES);
	for (int i = 1; i <= HANDLES; i++)
	{
		AqObject   *object = &aq_handle_objects[i];

		CHECK_EQ(object->state, AQ_OBJECT_FREE);
		CHECK_EQ(object->pins, 0);
		CHECK_EQ(object->locks, 0);
		CHECK_EQ(object->lock_waiters, 0);
		CHECK_EQ(object->lock_holder, -1);
		CHECK_EQ(object->pin_holder, -1);
		CHECK_EQ(values[i].id, 0);
		for (int session = 0; session < SESSIONS; session++)
			for (AqHold kind = 0; kind < AQ_HOLD_KINDS; kind++)
				CHECK(!aq_handle_holds(i, kind, session));
	}
	for (int session = 0; session < SESSIONS; session++)
		CHECK(owns[session].cond == NULL && owns[session].nlocked == 0 && owns[session].nclaims == 0);
	sim_put_down = sim_take_up = NULL;
}

/* --- what sessions do ---------------------------------------------------------------------- */

static void
dawdle(void)
{
	for (uint32 n = sim_random(6); n > 0; n--)
		sim_switch();
}

/* The pinned object; NULL when this session had to load it, and failed. */
static AqObject *
pin(uint32 id)
{
	bool		must_load;
	AqObject   *object = aq_object_pin(1, id, &must_load);
	Value	   *value = &values[object->master];
	bool		success = sim_random(4) != 0;

	CHECK_EQ(object->id, id);
	if (!must_load)
		return object;
	CHECK(!value->loading && value->id == 0 && value->users == 0);
	value->loading = true;
	dawdle();
	value->loading = false;
	value->id = success ? id : 0;
	loads += success;
	if (!success)
	{
		release_claims();
		return NULL;
	}
	aq_object_loaded(object);
	return object;
}

/* What is pinned is loaded, and stays. */
static void
use(AqObject *object, uint32 id)
{
	Value	   *value = &values[object->master];

	value->users++;
	for (uint32 n = sim_random(6); n > 0; n--)
	{
		CHECK(!value->loading);
		CHECK_EQ(value->id, id);
		sim_switch();
	}
	CHECK_EQ(value->id, id);
	value->users--;
}

/* A transaction that has changed the definition. */
static void
change(uint32 id)
{
	aq_object_lock(1, id);
	for (int i = 0; i < nlocked; i++)
	{
		Value	   *value = &values[locked[i]->index];

		CHECK(!value->changing);
		value->changing = true;
	}
	dawdle();
	for (int i = 0; i < nlocked; i++)
	{
		CHECK_EQ(locked[i]->lock_holder, aq_session_own_number);
		CHECK_EQ(locked[i]->locks, 0);
		values[locked[i]->index].changing = false;
	}
	aq_object_invalidate(1, id);
	aq_object_unlock_all();
}

/* Locks, pins and unlocks what it knows, as with pgaq.session_pins off. */
static void
use_known(AqObject **known, uint32 serial, uint32 id)
{
	if (!aq_object_check(*known, serial))
	{
		aq_object_forget(*known, serial);
		*known = NULL;
		return;
	}
	CHECK_EQ((*known)->serial, serial);
	use(*known, id);
	aq_object_unpin(*known);
}

/* All sessions do this, from an empty cache on. */
static void
play(SimMain main, void *arg)
{
	sim_start(SESSIONS);
	prepare();
	for (int i = 0; i < SESSIONS; i++)
		sim_spawn(i, main, arg);
	sim_run();
}

static void
anything(void *arg)
{
	AqObject   *known = NULL;
	uint32		serial = 0,
				known_id = 0;

	for (int step = 0; step < STEPS; step++)
	{
		uint32		id = 1 + sim_random(IDS);
		AqObject   *object;

		switch (sim_random(8))
		{
			case 0:
				aq_object_drop(1, id);
				break;
			case 1:
				change(id);
				break;
			case 2:
				if (aq_object_find(1, HOT) != NULL && (object = pin(HOT)) != NULL)
				{
					aq_hot_mark(object);
					use(object, HOT);
					aq_object_unpin(object);
				}
				break;
			case 3:
				if ((object = pin(HOT)) != NULL)
				{
					aq_hot_unmark(object);
					aq_object_unpin(object);
				}
				break;
			case 4:
				if (known != NULL)
					use_known(&known, serial, known_id);
				break;
			default:
				if ((object = pin(id)) == NULL)
					break;
				use(object, id);
				if (known == NULL)
				{
					known = object;
					known_id = id;
					serial = object->serial;
				}
				aq_object_unpin(object);
		}
	}
}

/* Everything at the same time, with less room than there are objects. */
void
test_object_random(void)
{
	play(anything, NULL);
	check_empty();
}

static void
want_it(void *arg)
{
	AqObject   *object;

	dawdle();
	while ((object = pin(2)) == NULL)
		;
	use(object, 2);
	(*(int *) arg)++;
	/* so that it is there until all have had it */
	while (*(int *) arg < SESSIONS)
		sim_sleep_us(10);
	aq_object_unpin(object);
}

/* One loads, the others wait; when he fails, one of them loads. */
void
test_object_load_once(void)
{
	int			served = 0;

	play(want_it, &served);
	CHECK_EQ(served, SESSIONS);
	CHECK_EQ(loads, 1);
	check_empty();
}

static void
go_through(void *arg)
{
	for (uint32 id = 1; id <= IDS; id++)
	{
		AqObject   *object;

		while ((object = pin(id)) == NULL)
			;
		use(object, id);
		aq_object_unpin(object);
	}
}

/* More objects than room: each is there when it is wanted, and what is in use stays. */
void
test_object_age_out(void)
{
	play(go_through, NULL);
	CHECK(aq_handle_area->aged_out >= IDS - LIMIT);
	CHECK(loads >= IDS);
	check_empty();
}

static void
use_hot(void *arg)
{
	AqObject   *object = pin(HOT);

	if (object == NULL)
		return;
	use(object, HOT);
	aq_object_unpin(object);
}

/* Each session gets the copy of its number, whose value is the master's; the copies go with the master. */
void
test_object_hot(void)
{
	AqObject   *master;

	sim_start(SESSIONS);
	prepare();
	sim_take_up = sim_put_down = NULL;
	while ((master = pin(HOT)) == NULL)
		;
	aq_hot_mark(master);
	CHECK_EQ(master->copies, 3);
	for (int i = 0; i < SESSIONS; i++)
	{
		bool		must_load;
		AqObject   *copy;

		unit_be(i);
		copy = aq_object_pin(1, HOT, &must_load);
		CHECK(!must_load);
		CHECK_EQ(copy->copy, i % 3 + 1);
		CHECK_EQ(copy->master, master->index);
		aq_object_unpin(copy);
	}
	unit_be(0);
	aq_object_unpin(master);
	CHECK_EQ(pg_atomic_read_u32(&aq_handle_area->npinned), 1);
	put_down(0);
	sim_take_up = take_up;
	sim_put_down = put_down;
	for (int i = 1; i < SESSIONS; i++)
		sim_spawn(i, use_hot, NULL);
	sim_run();
	take_up(0);
	check_empty();
}
