/*-------------------------------------------------------------------------
 *
 * jms_private.h
 *	  Declarations shared by the files of part "jms".
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AQ_JMS_PRIVATE_H
#define AQ_JMS_PRIVATE_H

#include "jms/jms.h"
#include "queue/calls.h"
#include "utils/jsonb.h"

/* --- jms_lease.c: leased messages of several queues */
typedef struct AqJmsLease
{
	char	   *queue;
	char	   *consumer;		/* NULL: none */
	pg_uuid_t	id;
	int64		receipt;
} AqJmsLease;

extern AqJmsLease *aq_jms_lease_read(FunctionCallInfo fcinfo, int first, int *n);
extern const AqJmsLease *aq_jms_lease_find_unreachable(const AqJmsLease *leases, int n);
extern int	aq_jms_lease_settle(const char *command, const AqLeaseOptions *options, const AqJmsLease *leases, int n,
								int *undone);

/* in undone: lease number i is busy, not stale */
#define AQ_JMS_BUSY(i) (-1 - (i))

/* --- jms_send.c */
extern void aq_jms_send_arguments(FunctionCallInfo fcinfo, const char *command, int more);

/* --- jms_gone.c */
extern bool aq_jms_gone(const char *queue, const Jsonb *headers);

/* --- jms_number.c */
extern bool aq_jms_number_is_function(Oid function);

#endif							/* AQ_JMS_PRIVATE_H */
