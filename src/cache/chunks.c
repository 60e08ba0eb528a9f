/*-------------------------------------------------------------------------
 *
 * chunks.c
 *	  The pool of chunks; see cache.h.
 *
 * The free chunks are linked through their first four bytes; the latch
 * "message cache" protects the list.  A session's reserve is in its own
 * memory: its exit callback returns the chunks; if the process is killed, the
 * server reinitializes shared memory and with it the pool.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "cache/cache_private.h"

#include "utils/memutils.h"

/*
 * chunks taken from the pool at a time; also the most that aq_chunks_trim
 * keeps
 */
#define RESERVE_BATCH 16

/* all sessions together may keep 1/KEPT_SHARE of the pool's chunks */
#define KEPT_SHARE 8

/*
 * If all chunks of the pool belong to running transactions: how long to wait
 * for one of these to end, in microseconds.
 */
#define PATIENCE ((int64) 10000000)

/*
 * A frame is not evicted while its stream's latch is held, and nothing is told
 * when it is released: it is tried again so much later, in microseconds.
 */
#define BUSY_PAUSE ((int64) 100000)

typedef struct MemoryArea
{
	AqLatch		latch;
	uint32		total;
	uint32		nfree;
	AqChunk		free;			/* list of freed chunks */
	AqChunk		next_unused;	/* this and the following chunks were never used */
	AqCond		freed;			/* chunks were freed, or can be: see aq_chunks_tell */
	pg_atomic_uint32 waiting;	/* sessions that wait for "freed" */
	/*
	 * by session: number of chunks in its reserve; written by the session, for
	 * aq.check()
	 */
	volatile uint32 reserves[FLEXIBLE_ARRAY_MEMBER];
} MemoryArea;

char	   *aq_chunks_base;
int			aq_chunks_cache_kb = 128 * 1024;

static MemoryArea *area;
static AqChunkPressure pressure;

/* the session's reserve */
static AqChunk *reserve;
static uint32 nreserve;
static uint32 reserve_size;
bool		aq_chunks_impatient = false;

static uint32
chunk_total(void)
{
	return (uint32) ((Size) aq_chunks_cache_kb * 1024 / AQ_CHUNK_SIZE);
}

static Size
head_size(void)
{
	return CACHELINEALIGN(add_size(offsetof(MemoryArea, reserves), mul_size(aq_session_slots(), sizeof(uint32))));
}

Size
aq_chunks_shmem_size(void)
{
	Size		size = head_size();

	/* chunk 0 is not used, because 0 means none */
	return add_size(size, mul_size((Size) chunk_total() + 1, AQ_CHUNK_SIZE));
}

void
aq_chunks_shmem_init(void *ptr, bool found)
{
	area = ptr;
	aq_chunks_base = (char *) ptr + head_size();
	if (found)
		return;
	memset(area, 0, head_size());
	aq_latch_init(&area->latch, AQ_LATCH_CHUNKS, 0);
	area->total = area->nfree = chunk_total();

	/* chunks are given out in order, so that unused memory is never touched */
	area->next_unused = 1;
	aq_cond_init(&area->freed);
	pg_atomic_init_u32(&area->waiting, 0);
}

void
aq_chunks_on_pressure(AqChunkPressure callback)
{
	pressure = callback;
}

uint32
aq_chunks_total(void)
{
	return area->total;
}

uint32
aq_chunks_free_count(void)
{
	return area->nfree;
}

/*
 * The maximum number of chunks in use at a time: freed chunks are used again
 * before new ones.
 */
uint32
aq_chunks_most_used(void)
{
	return area->next_unused - 1;
}

uint32
aq_chunks_reserved(void)
{
	return nreserve;
}

static inline void
set_reserve(uint32 n)
{
	nreserve = n;
	area->reserves[aq_session_own_number] = n;
}

/* The number of chunks that a session keeps for its next calls. */
static uint32
kept(void)
{
	return Min(RESERVE_BATCH, area->total / KEPT_SHARE / aq_session_slots());
}

/*
 * Moves chunks from the pool to the reserve: as many as are needed, and some
 * more; fewer only if partly.
 */
static void
fill_reserve(uint32 needed, uint32 more, bool partly)
{
	uint32		count;

	aq_latch_get(&area->latch, AQ_EXCLUSIVE, AQ_LOC_CHUNK_ALLOC);
	count = partly || area->nfree >= needed ? Min(needed + more, area->nfree) : 0;
	while (count > 0)
	{
		AqChunk		chunk = area->free;

		if (chunk != 0)
			area->free = *(AqChunk *) aq_chunk_ptr(chunk);
		else
			chunk = area->next_unused++;
		area->nfree--;
		reserve[nreserve] = chunk;
		set_reserve(nreserve + 1);
		count--;
	}
	aq_latch_free(&area->latch);
}

bool
aq_chunks_try(uint32 count)
{
	if (nreserve >= count)
		return true;
	if (reserve_size < count + RESERVE_BATCH)
	{
		uint32		size = Max(2 * reserve_size, count + 4 * RESERVE_BATCH);

		reserve = reserve ? repalloc(reserve, size * sizeof(AqChunk))
			: MemoryContextAlloc(TopMemoryContext, size * sizeof(AqChunk));
		reserve_size = size;
	}
	/*
	 * chunks of an evicted frame are ours; but two sessions that take what is
	 * not enough, and return it, would wake each other forever
	 */
	fill_reserve(count - nreserve, kept() / 2, false);
	while (nreserve < count && pressure != NULL && pressure())
		fill_reserve(count - nreserve, kept() / 2, true);
	if (nreserve >= count)
		return true;
	aq_chunks_trim();			/* other sessions may need the chunks of our reserve */
	return false;
}

/*
 * The first call does not sleep: what became free before is not told, so the
 * caller tries again.
 */
bool
aq_chunks_wait(AqChunkWait *wait, uint32 count)
{
	int64		now = aq_clock_us();

	if (wait->deadline == 0)
	{
		if (aq_chunks_impatient)
			return false;
		wait->deadline = now + PATIENCE;
		aq_claim_count(&area->waiting);
	}
	else
	{
		if (now > wait->deadline)
			return false;
		aq_deadlock_check(&wait->watch, AQ_EVENT_CACHE_FULL, count);
		(void) aq_cond_sleep_unseen(&area->freed, wait->seen, AQ_EVENT_CACHE_FULL, count, 0, 0,
									Min(Min(wait->deadline - now, aq_deadlock_pause()), BUSY_PAUSE));
	}
	wait->seen = aq_cond_seen(&area->freed);
	return true;
}

void
aq_chunks_end_wait(AqChunkWait *wait)
{
	if (wait->deadline != 0)
		aq_claim_uncount(&area->waiting);
}

void
aq_chunks_tell(void)
{
	pg_memory_barrier();		/* pairs with the counting: a session that waits tries again after it */
	if (pg_atomic_read_u32(&area->waiting) > 0)
		aq_cond_broadcast(&area->freed);
}

void
aq_chunks_reserve(uint32 count)
{
	AqChunkWait wait = {0};

	while (!aq_chunks_try(count))
		if (!aq_chunks_wait(&wait, count))
			ereport(ERROR,
					aq_error(AQ_ERR_CACHE_FULL, "the message cache is full"),
					errhint("Raise pgaq.message_cache_size (now %d MB) and restart the server, "
							"or let fewer transactions lock messages at the same time.",
							aq_chunks_cache_kb / 1024));
	aq_chunks_end_wait(&wait);
}

/*
 * Set while other sessions wait for this one, which then must not wait for
 * them.  Returns the previous value.
 */
bool
aq_chunks_set_impatient(bool on)
{
	bool		before = aq_chunks_impatient;

	aq_chunks_impatient = on;
	return before;
}

AqChunk
aq_chunks_take(void)
{
	AqChunk		chunk;

	Assert(nreserve > 0);
	chunk = reserve[nreserve - 1];
	set_reserve(nreserve - 1);
	memset(aq_chunk_ptr(chunk), 0, AQ_CHUNK_SIZE);
	return chunk;
}

void
aq_chunks_free(const AqChunk *chunks, uint32 count)
{
	AqChunk		first = 0,
				last = 0;
	uint32		n = 0;

	/* link the chunks before the latch is taken */
	for (uint32 i = 0; i < count; i++)
	{
		if (chunks[i] == 0)
			continue;
		*(AqChunk *) aq_chunk_ptr(chunks[i]) = first;
		first = chunks[i];
		if (last == 0)
			last = first;
		n++;
	}
	if (n == 0)
		return;
	aq_latch_get(&area->latch, AQ_EXCLUSIVE, AQ_LOC_CHUNK_FREE);
	*(AqChunk *) aq_chunk_ptr(last) = area->free;
	area->free = first;
	area->nfree += n;
	aq_latch_free(&area->latch);
	aq_chunks_tell();
}

void
aq_chunks_trim(void)
{
	uint32		keep = kept();

	if (nreserve <= keep)
		return;
	aq_chunks_free(reserve + keep, nreserve - keep);
	set_reserve(keep);
}

void
aq_chunks_session_exit(void)
{
	if (nreserve > 0)
		aq_chunks_free(reserve, nreserve);
	set_reserve(0);
}

/*
 * used: chunks used by the parts, in all databases.  Each chunk is free,
 * reserved or used.
 */
void
aq_chunks_check(AqFindings *findings, uint32 used)
{
	uint32		reserved = 0;
	uint32		nfree;
	uint32		waiting = pg_atomic_read_u32(&area->waiting);

	for (int i = 0; i < aq_session_slots(); i++)
	{
		reserved += area->reserves[i];
		if (area->reserves[i] > 0 && aq_session_pid(i) == 0)
			aq_finding_add(findings, psprintf("session %d", i + 1), "chunks reserved by a session that has ended",
						   area->reserves[i], 0, NULL);
	}
	nfree = area->nfree;
	aq_finding_compare(findings, "message cache", "chunks that are free, reserved or used",
					   (int64) nfree + reserved + used, area->total);
	aq_finding_waiting(findings, "message cache", "sessions that wait for chunks", waiting, &area->waiting);
}
