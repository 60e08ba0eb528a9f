/*-------------------------------------------------------------------------
 *
 * trace.c
 *	  Recording of a session trace by the traced session.
 *
 * A trace has three parts: counters, which are exact; profiles, with sums and
 * histograms for each object and location, and for the further objects of a
 * class when few profiles are left; and the latest rows, in a ring buffer.  Only the traced
 * session writes; it does not allocate memory or raise errors, because it may
 * hold latches or be in a callback after commit.
 *
 * A trace is stopped by clearing the session's word.  The session may be about
 * to write at that moment; so it sets busy, issues a barrier, and reads its
 * word again, and a trace is not reused or restarted while its session is
 * busy: see trace_control.c.
 *
 * The times of the locks that a session holds are recorded here and not in
 * held.c, so that an untraced session does not pay for them.  If a lock was
 * got before the trace began, its hold time is unknown.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "common/hashfn.h"
#include "miscadmin.h"
#include "sync/traces/trace_int.h"
#include "utils/guc.h"

/*
 * Locks recorded as held, for each of the two sets; the hold times of further
 * ones are unknown.
 */
#define MAX_OPEN	64

typedef struct Open
{
	uint8		operation;
	uint8		mode;
	int			profile;		/* -1: no profile was free */
	uint64		address;
	int64		asked;
	int64		got;
} Open;

int			aq_trace_max = 4;
int			aq_trace_rows = 10000;

AqTraceSession *aq_trace_sessions;

static char *traces;			/* each has aq_trace_size() bytes */
static AqTraceOwner owners[AQ_LATCH_COUNT];

/* the word of a process that has not attached or has left */
static pg_atomic_uint32 no_trace;

pg_atomic_uint32 *aq_trace_word = &no_trace;

/*
 * locks and pins are held long and can be many, so latches and mutexes have a
 * separate set
 */
typedef struct OpenSet
{
	int			n;
	Open		opens[MAX_OPEN];
} OpenSet;

static OpenSet open_objects;
static OpenSet open_latches;
static uint32 opens_generation; /* of the trace to which the sets belong */

/*
 * --- shared memory
 * ------------------------------------------------------------
 */

void
aq_trace_define_parameters(void)
{
	DefineCustomIntVariable("pgaq.max_traces",
							"Number of sessions that can be traced at a time.",
							"Each takes 340 kB of shared memory, plus its rows.",
							&aq_trace_max, aq_trace_max, 0, 64,
							PGC_POSTMASTER, 0, NULL, NULL, NULL);
	DefineCustomIntVariable("pgaq.trace_rows",
							"Number of latest rows that a trace keeps.",
							"A row takes 88 bytes of shared memory in each of pgaq.max_traces traces.",
							&aq_trace_rows, aq_trace_rows, 100, 1000000,
							PGC_POSTMASTER, 0, NULL, NULL, NULL);
}

/* The size of one trace, with its rows. */
Size
aq_trace_size(void)
{
	return CACHELINEALIGN(add_size(offsetof(AqTrace, rows),
								   mul_size(aq_trace_rows, sizeof(AqTraceRow))));
}

static Size
sessions_size(void)
{
	return CACHELINEALIGN(mul_size(aq_session_slots(), sizeof(AqTraceSession)));
}

Size
aq_trace_shmem_size(void)
{
	return add_size(sessions_size(), mul_size(aq_trace_max, aq_trace_size()));
}

AqTrace *
aq_trace_at(int number)
{
	return (AqTrace *) (traces + (Size) number * aq_trace_size());
}

/* The trace's number, as in aq_trace_at. */
int
aq_trace_number(const AqTrace *trace)
{
	return (int) (((const char *) trace - traces) / aq_trace_size());
}

void
aq_trace_shmem_init(void *area, bool found)
{
	aq_trace_sessions = area;
	traces = (char *) aq_trace_sessions + sessions_size();
	if (found)
		return;
	memset(area, 0, aq_trace_shmem_size());
	for (int i = 0; i < aq_session_slots(); i++)
	{
		pg_atomic_init_u32(&aq_trace_sessions[i].word, 0);
		pg_atomic_init_u32(&aq_trace_sessions[i].busy, 0);
	}
	for (int i = 0; i < aq_trace_max; i++)
	{
		AqTrace    *trace = aq_trace_at(i);

		pg_atomic_init_u64(&trace->written, 0);
		for (int row = 0; row < aq_trace_rows; row++)
			pg_atomic_init_u64(&trace->rows[row].sequence, 0);
	}
}

/* A trace may have been started before the session's first use of the extension. */
void
aq_trace_session_start(void)
{
	pg_atomic_write_u32(&aq_trace_sessions[aq_session_own_number].busy, 0);
	aq_trace_word = &aq_trace_sessions[aq_session_own_number].word;
}

/* --- the queues of latches ------------------------------------------------------------ */

void
aq_trace_on_name(AqLatchId id, AqTraceOwner owner)
{
	owners[id] = owner;
}

uint32
aq_trace_queue_of(AqLatchId id, int child, uint32 *database)
{
	return owners[id] != NULL ? owners[id](child, database) : 0;
}

/* --- the traced session's own trace --------------------------------------------------- */

static inline OpenSet *
open_set(AqTraceOperation operation)
{
	return operation == AQ_TRACE_LOCK || operation == AQ_TRACE_PIN ? &open_objects : &open_latches;
}

static inline AqTraceSession *
own(void)
{
	return &aq_trace_sessions[aq_session_own_number];
}

static void
leave(void)
{
	pg_memory_barrier();		/* complete before busy is cleared */
	pg_atomic_write_u32(&own()->busy, 0);
}

/*
 * This session's trace, which is not reused until leave(); NULL: it was just
 * stopped.
 */
static AqTrace *
enter(void)
{
	uint32		word;
	AqTrace    *trace;

	pg_atomic_write_u32(&own()->busy, 1);
	pg_memory_barrier();		/* a session that clears the word after we read it sees busy */
	word = pg_atomic_read_u32(aq_trace_word);
	trace = word != 0 ? aq_trace_at(word - 1) : NULL;
	if (trace != NULL && trace->pid != MyProcPid)
	{
		/* the trace was meant for an earlier process in our slot */
		(void) pg_atomic_compare_exchange_u32(aq_trace_word, &word, 0);
		trace = NULL;
	}
	if (trace == NULL)
	{
		leave();
		return NULL;
	}
	if (trace->generation != opens_generation)
	{
		open_objects.n = open_latches.n = 0;
		opens_generation = trace->generation;
	}
	return trace;
}

/* --- profiles -------------------------------------------------------------------- */

static inline uint32
profile_hash(const AqTraceProfile *key)
{
	return hash_combine(murmurhash32((uint32) key->address ^ (uint32) (key->address >> 32)),
						murmurhash32(((uint32) key->operation << 16) ^ key->where)) &
		(AQ_TRACE_HASH - 1);
}

/* The key of all objects of the class at this location. */
static AqTraceProfile
class_key(const AqTraceProfile *key)
{
	AqTraceProfile of_class = {.operation = key->operation, .number = key->number, .where = key->where,
		.address = key->number, .of_class = true};

	return of_class;
}

/*
 * The number of the profile with the key's operation, address and location, or
 * of the object's class when few are left; -1: full.
 */
static int
find_profile(AqTrace *trace, const AqTraceProfile *key)
{
	uint32		at = profile_hash(key);
	AqTraceProfile *profile;

	while (trace->hash[at] != 0)
	{
		profile = &trace->profiles[trace->hash[at] - 1];
		if (profile->address == key->address && profile->operation == key->operation &&
			profile->where == key->where && profile->of_class == key->of_class)
			return trace->hash[at] - 1;
		at = (at + 1) & (AQ_TRACE_HASH - 1);
	}
	if (trace->nprofiles >= AQ_TRACE_PROFILES - AQ_TRACE_CLASSES && !key->of_class)
	{
		AqTraceProfile of_class = class_key(key);

		return find_profile(trace, &of_class);
	}
	if (trace->nprofiles == AQ_TRACE_PROFILES)
	{
		trace->unprofiled++;
		return -1;
	}
	profile = &trace->profiles[trace->nprofiles];
	memset(profile, 0, sizeof(*profile));
	profile->of_class = key->of_class;
	profile->operation = key->operation;
	profile->address = key->address;
	profile->where = key->where;
	profile->child = key->child;
	profile->database = key->database;
	profile->queue = key->queue;
	profile->number = key->number;
	pg_write_barrier();
	trace->hash[at] = (uint16) ++trace->nprofiles;
	return trace->nprofiles - 1;
}

static void
measure(AqTraceProfile *profile, AqTraceMeasure which, int64 ns)
{
	ns = Max(ns, 0);
	profile->ns[which] += ns;
	profile->histogram[which][aq_quantize_bucket(ns)]++;
}

/* --- rows ------------------------------------------------------------------------ */

static void
write_row(AqTrace *trace, AqTraceAction action, const AqTraceProfile *object, uint8 mode,
		  int64 now, int64 elapsed, int64 held, const uint64 *p)
{
	uint64		sequence;
	AqTraceRow *row;

	trace->counts[object->operation][action]++;
	if ((trace->operations & (1u << object->operation)) == 0)
		return;

	sequence = pg_atomic_read_u64(&trace->written) + 1;
	row = &trace->rows[(sequence - 1) % aq_trace_rows];
	pg_atomic_write_u64(&row->sequence, 0);
	pg_write_barrier();
	row->at = now - trace->base;
	row->elapsed = elapsed;
	row->held = held;
	for (int i = 0; i < 3; i++)
		row->p[i] = p != NULL ? p[i] : 0;
	row->child = object->child;
	row->database = object->database;
	row->queue = object->queue;
	row->number = object->number;
	row->where = object->where;
	row->operation = object->operation;
	row->action = action;
	row->mode = mode;
	pg_write_barrier();
	pg_atomic_write_u64(&row->sequence, sequence);
	pg_atomic_write_u64(&trace->written, sequence);
}

/* --- get and release --------------------------------------------------------------- */

static void
got(const AqTraceProfile *key, int mode, bool success, int64 asked)
{
	int64		now = aq_clock_ns();
	AqTrace    *trace = enter();
	OpenSet    *set = open_set(key->operation);
	int			number;

	if (trace == NULL)
		return;
	number = find_profile(trace, key);
	if (number >= 0)
	{
		AqTraceProfile *profile = &trace->profiles[number];

		if (success)
		{
			profile->gets++;
			measure(profile, AQ_MEASURE_ACQUIRE, now - asked);
		}
		else
			profile->failures++;
	}
	write_row(trace, success ? AQ_TRACE_GET : AQ_TRACE_FAIL, key, mode, now, now - asked,
			  AQ_TRACE_UNKNOWN, NULL);
	if (success && set->n < MAX_OPEN)
	{
		Open	   *open = &set->opens[set->n++];

		open->operation = key->operation;
		open->mode = (uint8) mode;
		open->profile = number;
		open->address = key->address;
		open->asked = asked;
		open->got = now;
	}
	leave();
}

static void
released(const AqTraceProfile *key)
{
	int64		now = aq_clock_ns();
	AqTrace    *trace = enter();
	AqTraceProfile object = *key;
	AqTraceProfile *profile;
	OpenSet    *set = open_set(key->operation);
	Open		open = {.profile = -1, .mode = AQ_TRACE_NO_MODE};
	int			at;

	if (trace == NULL)
		return;
	/* find the latest get, because a holder may get a mutex again */
	for (at = set->n - 1; at >= 0; at--)
		if (set->opens[at].address == key->address && set->opens[at].operation == key->operation)
			break;
	if (at >= 0)
	{
		open = set->opens[at];
		memmove(&set->opens[at], &set->opens[at + 1], (--set->n - at) * sizeof(Open));
	}
	else
		open.profile = find_profile(trace, key);

	if (open.profile >= 0)
	{
		profile = &trace->profiles[open.profile];
		object.where = profile->where;
		profile->releases++;
		if (at >= 0)
		{
			measure(profile, AQ_MEASURE_HOLD, now - open.got);
			measure(profile, AQ_MEASURE_BOTH, now - open.asked);
		}
	}
	write_row(trace, AQ_TRACE_FREE, &object, open.mode, now, AQ_TRACE_UNKNOWN,
			  at >= 0 ? now - open.got : AQ_TRACE_UNKNOWN, NULL);
	leave();
}

static AqTraceProfile
latch_key(const AqLatch *latch, AqLocation where)
{
	AqTraceProfile key = {.operation = AQ_TRACE_LATCH, .address = (uint64) (uintptr_t) latch,
		.child = latch->child, .number = latch->id, .where = where};

	return key;
}

static AqTraceProfile
mutex_key(const AqMutex *mutex, AqLocation where)
{
	AqTraceProfile key = {.operation = AQ_TRACE_MUTEX, .address = (uint64) (uintptr_t) mutex,
		.child = mutex->idn, .number = mutex->type, .where = where,
		.queue = mutex->type == AQ_MUTEX_TYPE_OBJECT ? mutex->object : 0, .database = MyDatabaseId};

	return key;
}

static AqTraceProfile
object_key(AqTraceOperation operation, AqTraceObjectId object, AqLocation where)
{
	AqTraceProfile key = {.operation = operation, .address = object.handle, .child = object.handle,
		.database = object.database, .queue = object.id, .where = where};

	return key;
}

/* The latch that protects the traces is not traced. */
void
aq_trace_latch(const AqLatch *latch, AqLatchMode mode, AqLocation where, bool success, int64 asked)
{
	AqTraceProfile key = latch_key(latch, where);

	if (latch->id != AQ_LATCH_TRACES)
		got(&key, mode, success, asked);
}

void
aq_trace_mutex(const AqMutex *mutex, AqMutexMode mode, AqLocation where, bool success, int64 asked)
{
	AqTraceProfile key = mutex_key(mutex, where);

	got(&key, mode, success, asked);
}

void
aq_trace_object(AqTraceOperation operation, AqTraceObjectId object, int mode, AqLocation where,
				int64 asked)
{
	AqTraceProfile key = object_key(operation, object, where);

	got(&key, mode, true, asked);
}

void
aq_trace_release(AqTraceOperation operation, const void *lock)
{
	AqTraceProfile key = (operation == AQ_TRACE_LATCH) ?
		latch_key(lock, AQ_LOC_NONE) : mutex_key(lock, AQ_LOC_NONE);

	if (operation != AQ_TRACE_LATCH || key.number != AQ_LATCH_TRACES)
		released(&key);
}

void
aq_trace_object_release(AqTraceOperation operation, AqTraceObjectId object)
{
	AqTraceProfile key = object_key(operation, object, AQ_LOC_NONE);

	released(&key);
}

/* --- waits and posts ---------------------------------------------------------------- */

void
aq_trace_wait(AqEvent event, uint64 p1, uint64 p2, uint64 p3)
{
	AqTraceProfile key = {.operation = AQ_TRACE_WAIT, .number = event};
	uint64		p[3] = {p1, p2, p3};
	int64		now = aq_clock_ns();
	AqTrace    *trace = enter();

	if (trace == NULL)
		return;
	write_row(trace, AQ_TRACE_BEGIN, &key, AQ_TRACE_NO_MODE, now, AQ_TRACE_UNKNOWN,
			  AQ_TRACE_UNKNOWN, p);
	leave();
}

/* us: the full duration, even if the trace was started meanwhile. */
void
aq_trace_wait_over(AqEvent event, bool timed_out, int64 us)
{
	AqTraceProfile key = {.operation = AQ_TRACE_WAIT, .address = event, .number = event};
	int64		now = aq_clock_ns();
	AqTrace    *trace = enter();
	int			number;

	if (trace == NULL)
		return;
	number = find_profile(trace, &key);
	if (number >= 0)
	{
		trace->profiles[number].gets++;
		measure(&trace->profiles[number], AQ_MEASURE_ACQUIRE, us * 1000);
	}
	write_row(trace, timed_out ? AQ_TRACE_TIMEOUT : AQ_TRACE_END, &key, AQ_TRACE_NO_MODE, now,
			  us * 1000, AQ_TRACE_UNKNOWN, NULL);
	leave();
}

/* n: messages that became ready, or the process id of the session that was woken */
void
aq_trace_post(AqTraceOperation operation, uint32 database, uint32 queue, uint64 n)
{
	AqTraceProfile key = {.operation = operation, .child = n, .database = database, .queue = queue};
	int64		now = aq_clock_ns();
	AqTrace    *trace = enter();

	if (trace == NULL)
		return;
	write_row(trace, AQ_TRACE_POST, &key, AQ_TRACE_NO_MODE, now, AQ_TRACE_UNKNOWN,
			  AQ_TRACE_UNKNOWN, NULL);
	leave();
}
