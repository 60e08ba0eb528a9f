/*-------------------------------------------------------------------------
 *
 * trace.h
 *	  The hooks of session traces and static probes: one call wherever
 *	  something is got, released, waited for, published or woken.
 *
 * A session that is not traced reads one word, which is nearly always in its
 * processor's cache, and takes a branch that is always predicted.  Only a
 * traced session reads the clock.  The hooks do not allocate memory or raise
 * errors, so they may be called under latches and in callbacks after commit.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AQ_TRACE_H
#define AQ_TRACE_H

#include "sync/common/latch_types.h"
#include "sync/common/lists.h"
#include "sync/common/probes.h"

typedef enum AqTraceOperation
{
#define X(id, name, text) AQ_TRACE_##id,
#include "sync/traces/trace_list.h"
#undef X
	AQ_TRACE_OPERATIONS
} AqTraceOperation;

/*
 * The mode of a lock that only marks the object as used; the other modes are
 * AqLatchMode.
 */
#define AQ_TRACE_NULL	3

/*
 * An object of the object cache, as shown in the rows of its locks and pins.
 */
typedef struct AqTraceObjectId
{
	uint32		handle;
	uint32		database;
	uint32		id;
} AqTraceObjectId;

#ifndef AQ_UNIT

extern pg_atomic_uint32 *aq_trace_word; /* this session's; 0: not traced */

extern void aq_trace_latch(const AqLatch *latch, AqLatchMode mode, AqLocation where,
						   bool got, int64 asked);
extern void aq_trace_mutex(const AqMutex *mutex, AqMutexMode mode, AqLocation where,
						   bool got, int64 asked);
extern void aq_trace_object(AqTraceOperation operation, AqTraceObjectId object, int mode,
							AqLocation where, int64 asked);
extern void aq_trace_release(AqTraceOperation operation, const void *lock);
extern void aq_trace_object_release(AqTraceOperation operation, AqTraceObjectId object);
extern void aq_trace_wait(AqEvent event, uint64 p1, uint64 p2, uint64 p3);
extern void aq_trace_wait_over(AqEvent event, bool timed_out, int64 us);
extern void aq_trace_post(AqTraceOperation operation, uint32 database, uint32 queue, uint64 n);

/*
 * Returns the queue of a latch, or 0.  Registered by the part that has the
 * latch.
 */
typedef uint32 (*AqTraceOwner) (int child, uint32 *database);
extern void aq_trace_on_name(AqLatchId id, AqTraceOwner owner);

static inline bool
aq_traced(void)
{
	return AQ_ACCOUNTING && unlikely(pg_atomic_read_u32(aq_trace_word) != 0);
}

/*
 * The session is attached and not traced, so only the lock itself has to be
 * handled.
 */
static inline bool
aq_trace_is_idle(void)
{
	return likely(aq_session_is_attached && !aq_traced());
}

/* Called before a request: the time, or 0 in a session that is not traced. */
static inline int64
aq_trace_asked(void)
{
	return aq_traced() ? aq_clock_ns() : 0;
}

static inline void
aq_trace_latch_got(const AqLatch *latch, AqLatchMode mode, AqLocation where, int64 asked)
{
	AQ_PROBE4(latch__get, latch, latch->id, mode, where);
	if (unlikely(asked != 0))
		aq_trace_latch(latch, mode, where, true, asked);
}

/* a get without waiting failed, because another session holds the latch */
static inline void
aq_trace_latch_failed(const AqLatch *latch, AqLatchMode mode, AqLocation where, int64 asked)
{
	AQ_PROBE4(latch__fail, latch, latch->id, mode, where);
	if (unlikely(asked != 0))
		aq_trace_latch(latch, mode, where, false, asked);
}

static inline void
aq_trace_latch_free(const AqLatch *latch)
{
	AQ_PROBE2(latch__free, latch, latch->id);
	if (aq_traced())
		aq_trace_release(AQ_TRACE_LATCH, latch);
}

static inline void
aq_trace_mutex_got(const AqMutex *mutex, AqMutexMode mode, AqLocation where, int64 asked)
{
	AQ_PROBE4(mutex__get, mutex, mutex->idn, mode, where);
	if (unlikely(asked != 0))
		aq_trace_mutex(mutex, mode, where, true, asked);
}

static inline void
aq_trace_mutex_failed(const AqMutex *mutex, AqMutexMode mode, AqLocation where, int64 asked)
{
	AQ_PROBE4(mutex__fail, mutex, mutex->idn, mode, where);
	if (unlikely(asked != 0))
		aq_trace_mutex(mutex, mode, where, false, asked);
}

static inline void
aq_trace_mutex_free(const AqMutex *mutex)
{
	AQ_PROBE2(mutex__release, mutex, mutex->idn);
	if (aq_traced())
		aq_trace_release(AQ_TRACE_MUTEX, mutex);
}

/* object cache: operation is AQ_TRACE_LOCK or AQ_TRACE_PIN */
static inline void
aq_trace_object_got(AqTraceOperation operation, AqTraceObjectId object, int mode,
					AqLocation where, int64 asked)
{
	if (unlikely(asked != 0))
		aq_trace_object(operation, object, mode, where, asked);
}

static inline void
aq_trace_object_free(AqTraceOperation operation, AqTraceObjectId object)
{
	if (aq_traced())
		aq_trace_object_release(operation, object);
}

static inline void
aq_trace_wait_begin(AqEvent event, uint64 p1, uint64 p2, uint64 p3)
{
	AQ_PROBE4(wait__start, event, p1, p2, p3);
	if (aq_traced())
		aq_trace_wait(event, p1, p2, p3);
}

static inline void
aq_trace_wait_end(AqEvent event, bool timed_out, int64 us)
{
	AQ_PROBE3(wait__end, event, timed_out, us);
	if (aq_traced())
		aq_trace_wait_over(event, timed_out, us);
}

/* n messages of the queue have become ready, in the commit's callback */
static inline void
aq_trace_publish(uint32 database, uint32 queue, uint32 n)
{
	AQ_PROBE3(publish, database, queue, n);
	if (aq_traced())
		aq_trace_post(AQ_TRACE_PUBLISH, database, queue, n);
}

/* the session with this process id is woken */
static inline void
aq_trace_wakeup(int pid)
{
	AQ_PROBE1(wakeup, pid);
	if (aq_traced())
		aq_trace_post(AQ_TRACE_WAKEUP, 0, 0, pid);
}

#else							/* AQ_UNIT: unit tests have no traces */

static inline bool
aq_trace_is_idle(void)
{
	aq_session_attach();
	return true;
}

#define aq_traced() false
#define aq_trace_asked() 0
#define aq_trace_latch_got(latch, mode, where, asked) ((void) (asked))
#define aq_trace_latch_failed(latch, mode, where, asked) ((void) (mode), (void) (asked))
#define aq_trace_latch_free(latch) ((void) 0)
#define aq_trace_mutex_got(mutex, mode, where, asked) ((void) (where), (void) (asked))
#define aq_trace_mutex_failed(mutex, mode, where, asked) ((void) (where), (void) (asked))
#define aq_trace_mutex_free(mutex) ((void) 0)

#endif							/* AQ_UNIT */

#endif							/* AQ_TRACE_H */
