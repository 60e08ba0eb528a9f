/*-------------------------------------------------------------------------
 *
 * control_int.h
 *	  Declarations shared by the files of this folder and sync.c.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AQ_CONTROL_INT_H
#define AQ_CONTROL_INT_H

#include "sync/control/control.h"
#include "sync/traces/trace_int.h"

/* lock_lists.c: parameters that are lists */
extern void aq_lock_lists_define_parameters(void);

/* trace_control.c */
extern Size aq_trace_control_shmem_size(void);
extern void aq_trace_control_shmem_init(void *area, bool found);
extern void aq_trace_control_session_exit(void);
extern bool aq_trace_control_may_see(const AqTrace *trace);
extern AqTrace *aq_trace_control_copy(int pid, bool with_rows);
extern int	aq_trace_control_copy_heads(AqTrace *heads, bool *running);

#endif							/* AQ_CONTROL_INT_H */
