/*-------------------------------------------------------------------------
 *
 * messages_private.h
 *	  Declarations shared by the files of folder "messages", and shard.c.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AQ_MESSAGES_PRIVATE_H
#define AQ_MESSAGES_PRIVATE_H

#include "shard/leases/leases_private.h"

/* --- body.c ------------------------------------------------------------------------------ */
extern int	aq_body_partition_kb;
extern void aq_body_count(Partition *partition, uint64 bytes);
extern AqBodyWrite aq_body_write(AqQueue *queue, const pg_uuid_t *id, int32 number, bytea *data);
extern bytea *aq_body_read(AqQueue *queue, const pg_uuid_t *id, int32 number, int position);

/* --- put.c ------------------------------------------------------------------------------- */
extern void aq_put(AqQueue *queue, const AqPutOptions *options, uint32 n,
				   const Datum *payloads, const bool *nulls,
				   Bitmapset *const *targets, pg_uuid_t *ids);

/* --- take.c ------------------------------------------------------------------------------ */
extern uint32 aq_take(AqQueue *queue, const AqTakeOptions *options);
extern bool aq_take_is_ready(AqQueue *queue, int position, int64 until);

/* --- unfinished.c */
extern uint32 aq_unfinished(AqQueue *queue, const pg_uuid_t *id, bool loads);

/* --- retained.c -------------------------------------------------------------------------- */
extern uint64 aq_retained_purge(AqQueue *queue, int position, const pg_uuid_t *ids, uint32 n);

/* --- foreign.c: messages between nodes */
extern const AqStoreUnits aq_foreign_units;

#endif							/* AQ_MESSAGES_PRIVATE_H */
