/*-------------------------------------------------------------------------
 *
 * os.h
 *	  The system calls by which a session waits.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AQ_OS_H
#define AQ_OS_H

#include "sync/common/atomics.h"

#ifndef AQ_UNIT
#include <semaphore.h>

typedef sem_t AqSem;
#endif

extern void aq_os_sem_init(AqSem *sem);
extern void aq_os_sem_post(AqSem *sem);
extern void aq_os_sem_wait(AqSem *sem); /* may return early */
extern void aq_os_sem_wait_us(AqSem *sem, int64 us);	/* also returns after us microseconds */
extern void aq_os_yield(void);
extern void aq_os_poll_ms(int ms);


#endif							/* AQ_OS_H */
