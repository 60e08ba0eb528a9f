/*
 * base_int.h
 *	  Declarations shared by the files of part "base".
 *
 * Portions Copyright (c) 2026, the pgaq authors
 */
#ifndef AQ_BASE_INT_H
#define AQ_BASE_INT_H

#include "base/base.h"

#define AQ_PRELOAD_HINT	"Add \"pgaq\" to the parameter \"shared_preload_libraries\" and restart the server."

/* error.c */
extern void aq_error_define_parameters(void);

/* session.c */
extern void aq_session_on(void (*start) (void), void (*exit) (void));	/* callbacks: session attached, process exit */
extern Size aq_session_shmem_size(void);
extern void aq_session_shmem_init(void *area, bool found);
extern void aq_session_set_claims(uint32 claims);

/* version.c */
extern void aq_version_define_parameters(void);

/* claim.c */
extern void aq_claim_init(void);

/* xact.c */
extern void aq_xact_init(void);

/* point.c */
extern Size aq_point_shmem_size(void);
extern void aq_point_shmem_init(void *area, bool found);
extern void aq_point_define_parameters(void);

#endif							/* AQ_BASE_INT_H */
