/*-------------------------------------------------------------------------
 *
 * copy.h
 *	  A consistent copy of a partition, for aq.check().
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AQ_COPY_H
#define AQ_COPY_H

#include "port/pg_bitutils.h"

#include "shard/tables/contents.h"

typedef struct SubCopy
{
	int			position;
	FrameSub	sub;
	uint32		nleased;
	uint32		nameless;		/* leased, without a receipt or an end */
	uint32		late_pages;		/* pages with a lease that ends before their bound */
	uint32		holds;			/* messages in the whole stream that may hold others back */
	uint64_t	ready[PARTITION_SLOTS / 64];
	uint64_t	waiting[PARTITION_SLOTS / 64];
	uint64_t	retry[PARTITION_SLOTS / 64];
	uint64_t	doubt[PARTITION_SLOTS / 64];
	uint64_t	leased[PARTITION_SLOTS / 64];
	uint64_t	in_retry_delay[PARTITION_SLOTS / 64];	/* waiting, without a timer */
} SubCopy;

/* The next slot, from this one on, that is not done for the consumer; PARTITION_SLOTS: none.  Most are done. */
static inline uint32
aq_copy_next(const SubCopy *sub, uint32 from)
{
	for (uint32 word = from / 64; word < PARTITION_SLOTS / 64; word++)
	{
		uint64		open = sub->ready[word] | sub->waiting[word] | sub->retry[word] | sub->doubt[word] | sub->leased[word];

		if (word == from / 64)
			open &= ~UINT64CONST(0) << (from % 64);
		if (open != 0)
			return word * 64 + pg_rightmost_one_pos64(open);
	}
	return PARTITION_SLOTS;
}

typedef struct PartitionCopy
{
	Partition	partition;		/* frame: 0 if not resident; otherwise not a valid pointer here */
	uint32		timers_reserved;
	TimestampTz lease_end;
	TimestampTz first_end;		/* of all leases and retry delays; 0: none */
	uint32		nsubs;
	SubCopy    *subs;
	uint32		ntimers;
	Timer	   *timers;
	Slot		slots[PARTITION_SLOTS];
	uint16		tags[PARTITION_SLOTS];
} PartitionCopy;

/* --- shard_check.c */
extern PartitionCopy *aq_shard_check_copy(Stream *stream, int64 from);
extern void aq_shard_check_partition(AqFindings *findings, const Stream *stream, const PartitionCopy *copy);
extern void aq_shard_check_stream(AqFindings *findings, AqQueue *queue, Stream *stream);
extern void aq_shard_check_tables(AqFindings *findings, AqQueue *queue);
extern void aq_shard_check_work(AqFindings *findings, AqQueue *queue);

#endif							/* AQ_COPY_H */
