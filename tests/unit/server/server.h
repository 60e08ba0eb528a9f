/*-------------------------------------------------------------------------
 *
 * server.h
 *	  Stands in for what parts "cache", "shard" and "classic" use of the server and of part "base".
 *
 * The files beside it have the names of the server's headers.  An error of the
 * code under test ends the test: what happens to the caller of a failed load is
 * played by the test itself.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AQ_UNIT_SERVER_H
#define AQ_UNIT_SERVER_H

#include "unit.h"

typedef uint32 Oid;
typedef int64 TimestampTz;
typedef uint32 TransactionId;
typedef uint32 SubTransactionId;
typedef uint32 BlockNumber;
typedef uint16 OffsetNumber;
typedef uint64 XLogRecPtr;
typedef struct AqPart AqPart;
typedef struct AqDeadlockWatch
{
	int64		since;
} AqDeadlockWatch;
struct config_enum_entry
{
	const char *name;
	int			val;
	bool		hidden;
};

#define AQ_MAX_CONSUMERS 1024
#define InvalidOid 0
#define OidIsValid(oid) ((oid) != InvalidOid)

#define CACHELINEALIGN(size) (((size) + PG_CACHE_LINE_SIZE - 1) / PG_CACHE_LINE_SIZE * PG_CACHE_LINE_SIZE)
#define mul_size(a, b) ((Size) (a) * (Size) (b))
#define add_size(a, b) ((Size) (a) + (Size) (b))

#define TopMemoryContext NULL
#define MemoryContextAlloc(context, size) malloc(size)
#define MemoryContextAllocZero(context, size) calloc(1, size)
#define palloc(size) malloc(size)
#define repalloc(p, size) realloc(p, size)
#define pfree(p) free(p)

typedef struct AqFindings AqFindings;

/* claims: test_object.c keeps them */
typedef void (*AqClaimRelease) (void *object, int64 argument);
extern void aq_claim_reserve(int n);
extern void aq_claim_enter(AqClaimRelease release, void *object, int64 argument);
extern void aq_claim_end(AqClaimRelease release, const void *object);
extern void aq_claim_count(pg_atomic_uint32 *counter);
extern void aq_claim_uncount(pg_atomic_uint32 *counter);

#define PG_TRY() do {
#define PG_CATCH() } while (0); if (false) {
#define PG_FINALLY() } while (0); {
#define PG_END_TRY() }
#define PG_RE_THROW() ((void) 0)
#define ereport(level, ...) shim_panic("an error is raised in %s", __func__)

#define GetCurrentTimestamp() aq_clock_us()
#define pg_memory_barrier() sim_switch()
#define pg_read_barrier() sim_switch()
#define aq_point(name) sim_switch()
#define aq_point_held(name) sim_switch()

static inline uint32
murmurhash32(uint32 n)
{
	n ^= n >> 16;
	n *= 0x85ebca6b;
	n ^= n >> 13;
	n *= 0xc2b2ae35;
	return n ^ n >> 16;
}

static inline uint32
hash_combine(uint32 a, uint32 b)
{
	return a ^ (b + 0x9e3779b9 + (a << 6) + (a >> 2));
}

/* Bad on purpose: a chain has rows of several keys, and some of the same hash. */
static inline uint32
hash_bytes(const unsigned char *bytes, int length)
{
	uint32		sum = 0;

	while (length-- > 0)
		sum += *bytes++;
	return sum % 4;
}

/* --- transactions: the test plays them ------------------------------------------ */

typedef uint32 SubTransactionId;
#include "base/xact.h"

#define aq_xact_register(rank, ops) ((void) (ops))
#define TransactionIdIsValid(xid) ((xid) != 0)
#define FirstNormalTransactionId 3
#define TransactionIdAdvance(xid) ((xid) = (xid) + 1 < FirstNormalTransactionId ? FirstNormalTransactionId : (xid) + 1)
#define TransactionIdPrecedes(a, b) ((int32) ((a) - (b)) < 0)
#define TransactionIdFollows(a, b) ((int32) ((a) - (b)) > 0)
#define TransactionIdPrecedesOrEquals(a, b) (!TransactionIdFollows(a, b))
#define TransactionIdFollowsOrEquals(a, b) (!TransactionIdPrecedes(a, b))
#define aq_session_is_attached true

extern uint32 GetTopTransactionIdIfAny(void);
extern bool RecoveryInProgress(void);
extern void AcceptInvalidationMessages(void);

#define aq_trace_object_got(operation, object, mode, where, asked) ((void) (object), (void) (asked))
#define aq_trace_object_free(operation, object) ((void) (object))

/* A condition: who has prepared hears of each broadcast from then on. */
typedef struct AqCond
{
	uint64		broadcasts;
} AqCond;

extern int	aq_session_slots(void);
extern void aq_cond_init(AqCond *cond);
extern void aq_cond_prepare(AqCond *cond);
extern bool aq_cond_sleep(AqCond *cond, AqEvent event, uint64 p1, uint64 p2, uint64 p3, int64 timeout_us);
extern void aq_cond_cancel(void);
extern uint32 aq_cond_seen(AqCond *cond);
extern bool aq_cond_sleep_unseen(AqCond *cond, uint32 seen, AqEvent event, uint64 p1, uint64 p2, uint64 p3, int64 timeout_us);
extern void aq_cond_broadcast(AqCond *cond);

#endif							/* AQ_UNIT_SERVER_H */
