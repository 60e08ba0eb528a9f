/*-------------------------------------------------------------------------
 *
 * trace_int.h
 *	  Data of traces: trace.c records them, trace_control.c manages them,
 *	  trace_views.c shows them.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AQ_TRACE_INT_H
#define AQ_TRACE_INT_H

#include "datatype/timestamp.h"
#include "sync/traces/trace.h"

typedef enum AqTraceAction
{
	AQ_TRACE_GET,
	AQ_TRACE_FREE,
	AQ_TRACE_FAIL,				/* a get without waiting that failed */
	AQ_TRACE_BEGIN,				/* of a wait, like the two below */
	AQ_TRACE_END,
	AQ_TRACE_TIMEOUT,
	AQ_TRACE_POST				/* published, or sent */
} AqTraceAction;

#define AQ_TRACE_UNKNOWN (-1)	/* a time that was not measured */

typedef struct AqTraceRow
{
	pg_atomic_uint64 sequence;	/* from 1; 0 while the row is written */
	int64		at;				/* ns since the start of the trace */
	int64		elapsed;		/* ns to get it, or of the wait */
	int64		held;			/* ns it was held */
	uint64		p[3];			/* of a wait */
	uint32		child;			/* latch child, mutex idn, handle, pid, messages */
	uint32		database;
	uint32		queue;			/* id, 0: see aq_trace_on_name */
	uint16		number;			/* latch, mutex type, event */
	uint16		where;
	uint8		operation;
	uint8		action;
	uint8		mode;			/* AqLatchMode, AQ_TRACE_NULL or AQ_TRACE_NO_MODE */
} AqTraceRow;

#define AQ_TRACE_NO_MODE	255

/*
 * Histograms of ns like those of DTrace's quantize(): bucket 0 counts 0,
 * bucket k durations from 2^(k-1) to below 2^k; the last one also counts all
 * longer ones.
 */
#define AQ_QUANTIZE_BUCKETS	40

static inline int
aq_quantize_bucket(int64 ns)
{
	int			bucket = ns > 0 ? 64 - __builtin_clzll((unsigned long long) ns) : 0;

	return Min(bucket, AQ_QUANTIZE_BUCKETS - 1);
}

typedef enum AqTraceMeasure
{
	AQ_MEASURE_ACQUIRE,			/* from the request to the get, or a wait */
	AQ_MEASURE_HOLD,			/* from the get to the release */
	AQ_MEASURE_BOTH,			/* from the request to the release */
	AQ_MEASURES
} AqTraceMeasure;

/*
 * The sums for one object and one location that requested it; when few
 * profiles are left, for all further objects of the class.
 */
typedef struct AqTraceProfile
{
	uint64		address;
	bool		of_class;
	uint32		child;
	uint32		database;
	uint32		queue;
	uint16		number;
	uint16		where;
	uint8		operation;
	uint64		gets;
	uint64		releases;
	uint64		failures;
	uint64		ns[AQ_MEASURES];
	uint64		histogram[AQ_MEASURES][AQ_QUANTIZE_BUCKETS];
} AqTraceProfile;

#define AQ_TRACE_PROFILES	320
#define AQ_TRACE_CLASSES	64	/* of these: left for objects that are summed by class */
#define AQ_TRACE_HASH		512 /* a power of two, larger than that */

/*
 * One trace.  Its first part is written by the session that starts or stops
 * it, under the latch "session traces"; the rest only by the traced session,
 * and by a session that starts another trace here, which is not done while
 * that session is busy.
 */
typedef struct AqTrace
{
	int			pid;			/* 0: never used, or discarded */
	int32		session;
	uint32		role;			/* of the traced session; 0: a background process */
	uint32		started_by;
	uint32		operations;		/* bits: the operations that are recorded as rows */
	bool		running;
	TimestampTz started;
	TimestampTz stopped;
	uint32		generation;		/* changes with each start */

	int64		base;			/* aq_clock_ns at the start */
	pg_atomic_uint64 written;	/* number of rows written; only the latest are kept */
	uint64		counts[AQ_TRACE_OPERATIONS][AQ_TRACE_POST + 1];
	uint64		unprofiled;		/* operations on objects without a profile, because all were in use */
	int32		nprofiles;
	uint16		hash[AQ_TRACE_HASH];	/* profile + 1; 0: empty */
	AqTraceProfile profiles[AQ_TRACE_PROFILES];
	AqTraceRow	rows[FLEXIBLE_ARRAY_MEMBER];
} AqTrace;

/*
 * One for each session; on a separate cache line, because every get reads it.
 */
typedef union AqTraceSession
{
	struct
	{
		pg_atomic_uint32 word;	/* trace + 1; 0: not traced */
		pg_atomic_uint32 busy;	/* the session is writing into its trace */
	};
	char		padding[64];
} AqTraceSession;

extern int	aq_trace_max;		/* pgaq.max_traces */
extern int	aq_trace_rows;		/* pgaq.trace_rows */

extern AqTraceSession *aq_trace_sessions;

extern AqTrace *aq_trace_at(int number);
extern uint32 aq_trace_queue_of(AqLatchId id, int child, uint32 *database);

extern Size aq_trace_size(void);
extern int	aq_trace_number(const AqTrace *trace);

extern void aq_trace_define_parameters(void);
extern Size aq_trace_shmem_size(void);
extern void aq_trace_shmem_init(void *area, bool found);
extern void aq_trace_session_start(void);

#endif							/* AQ_TRACE_INT_H */
