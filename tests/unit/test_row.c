/*-------------------------------------------------------------------------
 *
 * test_row.c
 *	  The dictionary cache: nobody sees an old row after a change, rows come and
 *	  go, clones, counters.
 *
 * The source of the cache is part of this file, because what a transaction has
 * changed is in variables of the session, which have to change with it.
 *
 * The catalog is a number for each relation: who changes the relation writes a
 * higher one, which all its rows then have.
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
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"

#include "cache/cache_private.h"

/* Others may come in between: what is copied has to be protected. */
static void
copy_slowly(void *to, const void *from, Size n)
{
	memcpy(to, from, n / 2);
	sim_switch();
	memcpy((char *) to + n / 2, (const char *) from + n / 2, n - n / 2);
}

#define memcpy(to, from, n) copy_slowly(to, from, n)
#include "cache/row.c"
#undef memcpy

#define SESSIONS 5
#define RELATIONS 4
#define NAMES 4
#define LIMIT 7					/* rows, fewer than there are keys */
#define STEPS 15
#define VERSIONS (SESSIONS * STEPS + 2)

typedef struct Relation
{
	int			visible;		/* committed */
	int			announced;		/* PostgreSQL's own caches are told */
	int			sure;			/* who asks from now on may see no older one */
	bool		locked;			/* by who changes it */
} Relation;

typedef struct Content
{
	int			version;
	AqRowKey	key;
	int			again;			/* the version */
} Content;

StaticAssertDecl(sizeof(Content) <= AQ_ROW_VALUE, "a row's value has room for what the test keeps in it");

static Relation relations[RELATIONS + 1];
static bool committed[VERSIONS + 1];
static int	versions;
static bool standby;
static uint64 gets[AQ_ROW_CACHES];
static uint64 loads[AQ_ROW_CACHES];

/* --- what sessions have of their own ---------------------------------------------- */

typedef struct Own
{
	uint32		own[RELATION_BITS / 32];
	bool		any_own;
	bool		in_transaction; /* that has an id */
	int			mine[RELATIONS + 1];	/* version that it has written, and not committed */
	int			heard[RELATIONS + 1];	/* versions in PostgreSQL's caches of the session */
} Own;

static Own	owns[SIM_MAX_SESSIONS];

static Own *
me(void)
{
	return &owns[aq_session_own_number];
}

static void
put_down(int session)
{
	owns[session].any_own = any_own;
	memcpy(owns[session].own, own, sizeof(own));
}

static void
take_up(int session)
{
	any_own = owns[session].any_own;
	memcpy(own, owns[session].own, sizeof(own));
}

/* --- the server's part --------------------------------------------------------------- */

uint32
GetTopTransactionIdIfAny(void)
{
	return me()->in_transaction;
}

bool
RecoveryInProgress(void)
{
	return standby;
}

void
AcceptInvalidationMessages(void)
{
	sim_switch();
	for (int i = 1; i <= RELATIONS; i++)
		me()->heard[i] = relations[i].announced;
}

/* Rows of these come by PostgreSQL's own caches, which hear of a change later. */
static bool
is_cached_by_server(Oid relation)
{
	return relation % 2 == 1;
}

static AqRowCacheId
cache_of(Oid relation)
{
	return relation % AQ_ROW_CACHES;
}

/* In some versions some rows do not exist. */
static bool
exists(const AqRowKey *key, int version)
{
	return (version + key->name[0]) % 4 != 0;
}

static int
load(const AqRowKey *key, char *value, void *arg)
{
	Content    *content = (Content *) value;
	int			version = me()->mine[key->relation];

	loads[cache_of(key->relation)]++;
	sim_switch();
	if (version == 0)
		version = is_cached_by_server(key->relation) && sim_random(2) == 0 ?
			me()->heard[key->relation] : relations[key->relation].visible;
	sim_switch();
	if (!exists(key, version))
		return -1;
	content->version = content->again = version;
	content->key = *key;
	return sizeof(Content);
}

static void
prepare(void)
{
	static void *memory;

	aq_row_limit = LIMIT;
	aq_row_serialization = BY_MUTEX;
	aq_row_clone_sleeps = 0;
	aq_hot_copies = 3;
	if (memory == NULL)
		memory = aligned_alloc(PG_CACHE_LINE_SIZE, aq_row_shmem_size());
	aq_row_shmem_init(memory, false);
	memset(owns, 0, sizeof(owns));
	memset(gets, 0, sizeof(gets));
	memset(loads, 0, sizeof(loads));
	memset(committed, 0, sizeof(committed));
	versions = 1;
	committed[1] = true;
	for (int i = 1; i <= RELATIONS; i++)
		relations[i] = (Relation) {1, 1, 1, false};
	standby = false;
	take_up(0);
}

/* --- what sessions do ---------------------------------------------------------------- */

static AqRowKey
key_of(Oid relation, int name)
{
	AqRowKey	key;

	memset(&key, 0, sizeof(key));
	key.database = 1;
	key.relation = relation;
	key.name[0] = (char) name;
	return key;
}

/* The version of the row that the session gets; -1: none, its row does not exist. */
static int
get(Oid relation, int name)
{
	AqRowKey	key = key_of(relation, name);
	AqRowCacheId cache = cache_of(relation);
	char		value[AQ_ROW_VALUE];
	Content    *content = (Content *) value;
	int			length;

	gets[cache]++;
	length = aq_row_get(cache, &key, value, load, NULL);
	aq_held_assert_none();
	if (length < 0)
		return -1;
	CHECK_EQ(length, sizeof(Content));
	CHECK_EQ(memcmp(&content->key, &key, sizeof(key)), 0);
	CHECK_EQ(content->version, content->again);
	return content->version;
}

/* What it sees is its own change, or was committed and is not too old. */
static void
get_and_check(Oid relation, int name)
{
	AqRowKey	key = key_of(relation, name);
	int			mine = me()->mine[relation];
	int			from = mine ? mine : relations[relation].sure;
	int			version = get(relation, name);
	int			to = mine ? mine : relations[relation].visible;
	bool		possible = false;

	for (int i = from; i <= to; i++)
		if (mine || committed[i])
			possible |= exists(&key, i) ? version == i : version == -1;
	if (!possible)
		unit_fail(__FILE__, __LINE__, "version %d, not one of %d to %d", version, from, to);
}

static bool
is_unlocked(void *arg)
{
	return !((Relation *) arg)->locked;
}

static void
raise_to(int *version, int to)
{
	*version = Max(*version, to);
}

/* The transaction has the lock of what it changes, until its end. */
static void
begin_change(Oid relation)
{
	while (relations[relation].locked)
		sim_wait_for(is_unlocked, &relations[relation]);
	relations[relation].locked = true;
	me()->in_transaction = true;
	me()->mine[relation] = ++versions;
	aq_row_relation_changed(relation);
}

static void
end_change(Oid relation, bool commit)
{
	Relation   *r = &relations[relation];
	int			version = me()->mine[relation];

	if (commit)
	{
		row_ends.pre_commit();
		sim_switch();
		committed[version] = true;
		r->visible = version;
		sim_switch();
		row_ends.commit();
		r->announced = version;
		if (!is_cached_by_server(relation))
			r->sure = version;
	}
	me()->mine[relation] = 0;
	me()->in_transaction = false;
	r->locked = false;
	sim_switch();
	row_ends.released(commit);
	if (commit)
		raise_to(&r->sure, version);
}

static void
change(Oid relation)
{
	begin_change(relation);
	for (uint32 n = sim_random(3); n > 0; n--)
		get_and_check(1 + sim_random(RELATIONS), 1 + sim_random(NAMES));
	end_change(relation, sim_random(4) != 0);
}

/* COMMIT PREPARED: the session does not know what the transaction has changed. */
static void
change_prepared(Oid relation)
{
	begin_change(relation);
	any_own = false;
	memset(own, 0, sizeof(own));
	relations[relation].visible = relations[relation].announced = me()->mine[relation];
	committed[relations[relation].visible] = true;
	me()->mine[relation] = 0;
	me()->in_transaction = false;
	aq_row_flush_database(1);
	relations[relation].sure = relations[relation].visible;
	relations[relation].locked = false;
}

static void
anything(void *arg)
{
	AqRowCounts counts;

	for (int step = 0; step < STEPS; step++)
	{
		Oid			relation = 1 + sim_random(RELATIONS);

		switch (sim_random(8))
		{
			case 0:
				change(relation);
				break;
			case 1:
				if (sim_random(4) == 0)
					change_prepared(relation);
				break;
			case 2:
				aq_row_serialization = sim_random(2) ? BY_LATCH : BY_MUTEX;
				break;
			case 3:
				aq_row_count(cache_of(relation), &counts);
				break;
			default:
				get_and_check(relation, 1 + sim_random(NAMES));
		}
	}
}

/* --- what has to hold at the end -------------------------------------------------------- */

static int
usage(void)
{
	AqRowCounts counts;
	int			n = 0;

	for (AqRowCacheId id = 0; id < AQ_ROW_CACHES; id++)
	{
		aq_row_count(id, &counts);
		CHECK_EQ(counts.gets, gets[id]);
		CHECK_EQ(counts.misses, loads[id]);
		n += counts.usage;
	}
	return n;
}

/* Each row is free, or once in the chain of its bucket, where it is found. */
static void
check_rows(void)
{
	int			nfree = 0;
	int			nlive = 0;

	for (uint32 i = area->free; i != 0; i = rows[i].next)
	{
		CHECK(!rows[i].live);
		CHECK(++nfree <= LIMIT);
	}
	for (uint32 i = 0; i < area->nbuckets * AQ_ROW_CACHES; i++)
		for (uint32 n = area->buckets[i].first; n != 0; n = rows[n].next)
		{
			Bucket	   *bucket = bucket_of(rows[n].cache, rows[n].hash);

			CHECK(rows[n].live);
			CHECK(bucket == &area->buckets[i]);
			CHECK(row_in_bucket(bucket, rows[n].hash, rows[n].cache, &rows[n].key, rows[n].clone) == &rows[n]);
			CHECK(++nlive <= LIMIT);
		}
	for (int i = 1; i <= LIMIT; i++)
		CHECK_EQ(rows[i].pins, 0);
	CHECK_EQ(nfree + nlive, LIMIT);
	CHECK_EQ(usage(), nlive);
}

static void
check_end(void)
{
	check_rows();
	aq_row_flush_database(2);
	check_rows();
	aq_row_flush_database(1);
	CHECK_EQ(usage(), 0);
	check_rows();
}

/* All sessions do this, from an empty cache on. */
static void
play(SimMain main)
{
	sim_take_up = take_up;
	sim_put_down = put_down;
	for (int i = 0; i < SESSIONS; i++)
		sim_spawn(i, main, NULL);
	sim_run();
	sim_take_up = sim_put_down = NULL;
	check_end();
}

/* Everything at the same time, with less room than there are rows. */
void
test_row_random(void)
{
	sim_start(SESSIONS);
	prepare();
	aq_row_clone_sleeps = sim_random(2);
	play(anything);
}

static void
change_or_get(void *arg)
{
	if (aq_session_own_number == 0)
		change(2);
	for (int round = 0; round < 2; round++)
		for (int name = 1; name <= NAMES; name++)
			get_and_check(2, name);
}

static Row *
row_of(int name, uint32 clone)
{
	AqRowKey	key = key_of(2, name);
	uint32		hash = hash_of(cache_of(2), &key, clone);

	return row_in_bucket(bucket_of(cache_of(2), hash), hash, cache_of(2), &key, clone);
}

/* While one changes them, others enter rows that were never in use, and clones. */
void
test_row_change(void)
{
	sim_start(SESSIONS);
	prepare();
	if (sim_random(2))
	{
		aq_row_clone_sleeps = 1;
		get(2, 1);
		pg_atomic_write_u64(&row_of(1, 0)->mutex.sleeps, 1);
	}
	play(change_or_get);
}

/* --- one after the other ------------------------------------------------------------------ */

/* It is read from the catalog so many times. */
#define CHECK_LOADS(n, statement) \
	do { \
		uint64 before_ = loads[0] + loads[1] + loads[2]; \
		statement; \
		CHECK_EQ(loads[0] + loads[1] + loads[2] - before_, n); \
	} while (0)

/* Until its end a transaction reads what it has changed past the cache, and nothing else. */
void
test_row_own(void)
{
	sim_start(1);
	prepare();
	CHECK_LOADS(1, get(2, 4));
	CHECK_LOADS(0, get(2, 4));
	aq_row_relation_changed(2); /* somebody else has: it is not in a transaction with an id */
	CHECK_LOADS(0, get(2, 4));

	begin_change(2);
	CHECK_LOADS(1, CHECK_EQ(get(2, 4), 2));
	CHECK_LOADS(1, CHECK_EQ(get(2, 4), 2));
	CHECK_LOADS(1, CHECK_EQ(get(2, 4), 2));
	CHECK_LOADS(1, get(4, 4));
	CHECK_LOADS(0, get(4, 4));
	end_change(2, false);
	CHECK_LOADS(0, CHECK_EQ(get(2, 4), 1));

	begin_change(2);
	end_change(2, true);
	CHECK_LOADS(1, get(2, 4));
	CHECK_LOADS(0, CHECK_EQ(get(2, 4), 3));
	CHECK_LOADS(0, get(4, 4));
	check_end();
}

/* On a standby nobody tells of changes. */
void
test_row_standby(void)
{
	sim_start(1);
	prepare();
	standby = true;
	CHECK_LOADS(1, get(2, 1));
	CHECK_LOADS(1, get(2, 1));
	CHECK_EQ(usage(), 0);
}

static int
load_too_long(const AqRowKey *key, char *value, void *arg)
{
	return load(key, value, arg) + AQ_ROW_VALUE;
}

/* What does not fit is not kept; that there is none is. */
void
test_row_lengths(void)
{
	AqRowKey	key = key_of(2, 1);
	char		value[AQ_ROW_VALUE];

	sim_start(1);
	prepare();
	CHECK_LOADS(1, CHECK_EQ(get(2, 3), -1));
	CHECK_LOADS(0, CHECK_EQ(get(2, 3), -1));
	CHECK_EQ(usage(), 1);
	gets[cache_of(2)] += 2;
	CHECK_LOADS(1, aq_row_get(cache_of(2), &key, value, load_too_long, NULL));
	CHECK_LOADS(1, aq_row_get(cache_of(2), &key, value, load_too_long, NULL));
	CHECK_EQ(usage(), 1);
	check_end();
}

/* Room is made by what was not used since the hand came by; never by what is pinned. */
void
test_row_clock(void)
{
	sim_start(1);
	prepare();
	for (int name = 1; name <= LIMIT; name++)
		get(2, name);
	CHECK_LOADS(1, get(2, LIMIT + 1));	/* for the first: all marks are gone */
	for (int name = 2; name <= LIMIT; name++)
		if (name != 5)
			CHECK_LOADS(0, get(2, name));
	CHECK_LOADS(1, get(2, LIMIT + 2));	/* for the fifth */
	for (int name = 2; name <= LIMIT + 2; name++)
		if (name != 5)
			CHECK_LOADS(0, get(2, name));
	CHECK_EQ(usage(), LIMIT);

	for (int i = 1; i <= LIMIT; i++)
		rows[i].pins++;
	CHECK_LOADS(1, get(2, 1));
	CHECK_LOADS(1, get(2, 1));
	for (int i = 1; i <= LIMIT; i++)
		rows[i].pins--;
	CHECK_LOADS(1, get(2, 1));
	CHECK_LOADS(0, get(2, 1));
	check_end();
}

static uint64
clones_made(void)
{
	return pg_atomic_read_u64(&area->caches[cache_of(2)].clones_made);
}

/* A row that was slept for often enough gets a clone for each class of sessions; all go with a change. */
void
test_row_clones(void)
{
	Row		   *row;
	int			name = 1;

	sim_start(SESSIONS);
	prepare();
	aq_row_clone_sleeps = 3;
	get(2, 1);
	row = row_of(1, 0);
	pg_atomic_write_u64(&row->mutex.sleeps, 2);
	get(2, 1);
	CHECK_EQ(clones_made(), 0);
	pg_atomic_write_u64(&row->mutex.sleeps, 3);
	get(2, 1);
	CHECK_EQ(clones_made(), 1);
	for (int i = 0; i < SESSIONS; i++)
	{
		uint64		before;

		unit_be(i);
		get(2, 1);
		CHECK(row_of(1, i % 3 + 1) != NULL);
		before = row->gets;
		get(2, 1);
		CHECK_EQ(row->gets, before);
	}
	CHECK_EQ(clones_made(), 3);
	CHECK_EQ(usage(), 4);

	/* the row is used again: what it was waited for before does not count */
	unit_be(0);
	begin_change(2);
	end_change(2, true);
	CHECK_EQ(usage(), 0);
	do
		get(2, ++name);
	while (row_of(name, 0) != row);
	get(2, name);
	CHECK_EQ(clones_made(), 3);
	check_end();
}
