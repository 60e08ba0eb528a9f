/*-------------------------------------------------------------------------
 *
 * leases_private.h
 *	  Declarations shared by the files of folder "leases" and of those that may use it.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AQ_LEASES_PRIVATE_H
#define AQ_LEASES_PRIVATE_H

#include "shard/loading/loading_private.h"

/* --- lease.c ----------------------------------------------------------------------------- */
extern int64 aq_lease_block(int64 receipt);
extern int64 aq_lease_new_block(AqQueue *queue);
extern int64 aq_lease_receipt(AqQueue *queue);
extern const char *aq_lease_holder(void);
extern bool aq_lease_fails(const AqQueue *queue, const Partition *partition, int position, uint32 number,
						   bool counts, TimestampTz now);
extern void aq_lease_settle(AqQueue *queue, const AqLeaseOptions *options, const pg_uuid_t *ids, uint32 n,
							AqLeaseResult *results);
extern void aq_lease_settle_lent(AqQueue *queue, const AqLeaseOptions *options, const pg_uuid_t *ids, uint32 n,
								 AqLeaseResult *results);

/* --- lease_end.c --------------------------------------------------------------------------- */
extern void aq_lease_end_due(int32 id, AqQueueShm *shm, Stream *stream, Partition *partition);
extern void aq_lease_end_block(int32 id, Oid owner_view, AqQueueShm *shm, Stream *stream, Partition *partition,
							   int64 block);

/* --- lease_session.c --------------------------------------------------------------------- */
extern int64 aq_lease_session_receipt(AqQueue *queue);
extern void aq_lease_session_exit(void);
extern void aq_lease_session_job(int32 id, AqQueueShm *shm);
extern void aq_lease_session_register(void);

#endif							/* AQ_LEASES_PRIVATE_H */
