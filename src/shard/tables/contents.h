/*-------------------------------------------------------------------------
 *
 * contents.h
 *	  The contents of a partition's tables, in the reader's own memory.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AQ_CONTENTS_H
#define AQ_CONTENTS_H

#include "shard/tables/tables_private.h"

#include "nodes/pg_list.h"

typedef struct Contents
{
	Partition  *partition;
	AqQueueShm *shm;
	int			stream;			/* number */
	TimestampTz now;
	uint64		next_xid;		/* full */
	uint32		file;			/* of the message table */
	uint32		nslots;			/* highest slot used, plus one */
	Slot	   *slots;
	uint16	   *tags;			/* by slot: see tag.h */
	TimestampTz *ready_at;		/* of WAITING slots */
	uint64_t   *todo[AQ_MAX_CONSUMERS]; /* by consumer: messages not done; NULL: none */
	uint64_t   *doubt[AQ_MAX_CONSUMERS];	/* by consumer: messages taken by prepared transactions; NULL: none */
	uint8	   *attempts[AQ_MAX_CONSUMERS];
	uint8	   *unseen[AQ_MAX_CONSUMERS];	/* attempts that do not count */
	Lease	   *leases[AQ_MAX_CONSUMERS];	/* as in a frame; NULL: none */
	List	   *lease_rows;
	uint16	   *removed;		/* by slot: number of its consumers that were removed */
	uint64_t   *left[AQ_MAX_CONSUMERS]; /* by removed consumer: messages not done; NULL: none */
	uint64_t   *moved;			/* slots moved to the exception queue */
	uint64_t   *bodies;			/* slots with chunks of a body; NULL: none */
	uint32		inflight;		/* taken by transactions in doubt */
	uint32		pending;		/* slots in doubt */
	uint32		nfailed;
	bool		delayed;		/* there are WAITING slots */
	bool		young;			/* there are rows with immediate visibility of running transactions: see frozen.c */
	uint32		ntimers;		/* finally including those of retry delays */
	List	   *retry_delays;	/* list of Timers that have not expired */
	TimestampTz next_timer;		/* of the retry delays */
	List	   *doubts;			/* list of xids; doubt_sessions has their sessions */
	List	   *doubt_sessions;
	TimestampTz last_take;
} Contents;

extern Contents *aq_contents_read(AqQueueShm *shm, Partition *partition);
extern uint32 aq_contents_todo(const Contents *p, int position);
extern uint32 aq_contents_waiting(const Contents *p, int position, int *head, uint32 *leased);

#endif
