/*-------------------------------------------------------------------------
 *
 * move_private.h
 *	  Declarations shared by the files of part "move".
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AQ_MOVE_PRIVATE_H
#define AQ_MOVE_PRIVATE_H

#include "move/move.h"
#include "queue/calls.h"

/* --- move.c: common to all that moves messages */
extern struct varlena *aq_move_copy(const struct varlena *value);
extern struct varlena *aq_move_properties(const AqMessage *m);
extern struct varlena *aq_move_sender(struct varlena *last, const struct varlena *sender);
extern struct varlena *aq_move_exception_queue(const char *name, int32 target, Oid payload_type);
extern void aq_move_bodies(const char *source, int32 target, Oid payload_type, int n, const Datum *payloads,
						   const bool *nulls, const pg_uuid_t *from, pg_uuid_t *const *to);

#endif							/* AQ_MOVE_PRIVATE_H */
