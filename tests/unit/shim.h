/*-------------------------------------------------------------------------
 *
 * shim.h
 *	  Stands in for base/base.h and the server's headers in the unit tests.
 *
 * Included by sync/common/atomics.h when AQ_UNIT is defined.  Two builds:
 *
 *	AQ_SIM		sessions are coroutines of sim.c; every atomic access is a place
 *				where another session may go on, chosen by a seeded generator
 *	otherwise	sessions are threads, under ThreadSanitizer
 *
 * As in the server, pg_atomic_read and pg_atomic_write order nothing (relaxed),
 * everything else is a full barrier.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AQ_SHIM_H
#define AQ_SHIM_H

#include <limits.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int8_t int8;
typedef int16_t int16;
typedef int32_t int32;
typedef int64_t int64;
typedef uint8_t uint8;
typedef uint16_t uint16;
typedef uint32_t uint32;
typedef uint64_t uint64;
typedef size_t Size;

#define INT64CONST(x) (x##L)
#define UINT64CONST(x) (x##UL)
#define FLEXIBLE_ARRAY_MEMBER
#define PG_CACHE_LINE_SIZE 128
#define likely(x) __builtin_expect((x) != 0, 1)
#define unlikely(x) __builtin_expect((x) != 0, 0)
#define Min(a, b) ((a) < (b) ? (a) : (b))
#define Max(a, b) ((a) > (b) ? (a) : (b))
#define lengthof(a) (sizeof(a) / sizeof((a)[0]))
#define pg_noinline __attribute__((noinline))
#define pg_noreturn __attribute__((noreturn))
#define pg_unreachable() __builtin_unreachable()
#define StaticAssertDecl(cond, text) _Static_assert(cond, text)
#define USE_ASSERT_CHECKING 1
#define Assert(cond) \
	((cond) ? (void) 0 : shim_assert_failed(#cond, __FILE__, __LINE__))
#define elog(level, ...) shim_panic(__VA_ARGS__)

extern void shim_assert_failed(const char *cond, const char *file, int line);
extern void shim_panic(const char *fmt, ...) __attribute__((noreturn, format(printf, 1, 2)));

#ifdef AQ_SIM
#define AQ_LOCAL
typedef struct AqSem
{
	int			count;
} AqSem;
extern void sim_switch(void);
extern void sim_pause(void);
#else
#define AQ_LOCAL __thread
typedef sem_t AqSem;
#define sim_switch() ((void) 0)
#ifdef __x86_64__
#define sim_pause() __builtin_ia32_pause()
#elif defined(__aarch64__)
#define sim_pause() __asm__ volatile("isb" ::: "memory")
#else
#define sim_pause() ((void) 0)
#endif
#endif

#define aq_cpu_pause() sim_pause()

/* --- session, clock, interrupts ------------------------------------------------ */

extern AQ_LOCAL int aq_session_own_number;
extern AQ_LOCAL int shim_interrupt_holdoff;

#define aq_session_attach() ((void) 0)
#define HOLD_INTERRUPTS() ((void) shim_interrupt_holdoff++)
#define RESUME_INTERRUPTS() \
	do { Assert(shim_interrupt_holdoff > 0); shim_interrupt_holdoff--; } while (0)

extern int64 aq_clock_us(void);
extern int64 aq_clock_ns(void);
extern int64 aq_clock_cpu_ns(void);

/* --- atomics --------------------------------------------------------------------- */

#define DEFINE_ATOMIC(bits, signed_type) \
typedef struct pg_atomic_uint##bits { uint##bits value; } pg_atomic_uint##bits; \
static inline void \
pg_atomic_init_u##bits(pg_atomic_uint##bits *p, uint##bits v) \
{ __atomic_store_n(&p->value, v, __ATOMIC_RELAXED); } \
static inline uint##bits \
pg_atomic_read_u##bits(pg_atomic_uint##bits *p) \
{ sim_switch(); return __atomic_load_n(&p->value, __ATOMIC_RELAXED); } \
static inline void \
pg_atomic_write_u##bits(pg_atomic_uint##bits *p, uint##bits v) \
{ sim_switch(); __atomic_store_n(&p->value, v, __ATOMIC_RELAXED); } \
static inline bool \
pg_atomic_compare_exchange_u##bits(pg_atomic_uint##bits *p, uint##bits *expected, uint##bits v) \
{ sim_switch(); return __atomic_compare_exchange_n(&p->value, expected, v, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST); } \
static inline uint##bits \
pg_atomic_exchange_u##bits(pg_atomic_uint##bits *p, uint##bits v) \
{ sim_switch(); return __atomic_exchange_n(&p->value, v, __ATOMIC_SEQ_CST); } \
static inline uint##bits \
pg_atomic_fetch_add_u##bits(pg_atomic_uint##bits *p, signed_type v) \
{ sim_switch(); return __atomic_fetch_add(&p->value, (uint##bits) v, __ATOMIC_SEQ_CST); } \
static inline uint##bits \
pg_atomic_fetch_sub_u##bits(pg_atomic_uint##bits *p, signed_type v) \
{ sim_switch(); return __atomic_fetch_sub(&p->value, (uint##bits) v, __ATOMIC_SEQ_CST); } \
static inline uint##bits \
pg_atomic_add_fetch_u##bits(pg_atomic_uint##bits *p, signed_type v) \
{ sim_switch(); return __atomic_add_fetch(&p->value, (uint##bits) v, __ATOMIC_SEQ_CST); } \
static inline uint##bits \
pg_atomic_sub_fetch_u##bits(pg_atomic_uint##bits *p, signed_type v) \
{ sim_switch(); return __atomic_sub_fetch(&p->value, (uint##bits) v, __ATOMIC_SEQ_CST); } \
static inline uint##bits \
pg_atomic_fetch_or_u##bits(pg_atomic_uint##bits *p, uint##bits v) \
{ sim_switch(); return __atomic_fetch_or(&p->value, v, __ATOMIC_SEQ_CST); } \
static inline uint##bits \
pg_atomic_fetch_and_u##bits(pg_atomic_uint##bits *p, uint##bits v) \
{ sim_switch(); return __atomic_fetch_and(&p->value, v, __ATOMIC_SEQ_CST); }

DEFINE_ATOMIC(32, int32)
DEFINE_ATOMIC(64, int64)

#endif							/* AQ_SHIM_H */
