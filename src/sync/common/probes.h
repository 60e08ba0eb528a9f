/*-------------------------------------------------------------------------
 *
 * probes.h
 *	  Static probes (USDT) for bpftrace, perf and gdb: AQ_PROBEn(name, n values).
 *
 * A probe is a single "nop" in the code, and a note in the library that gives
 * its address and the locations of its values: nothing is computed for it.
 * Probes are compiled in if sys/sdt.h exists (Debian: systemtap-sdt-dev).
 * docs/tracing.md lists the probes and shows how to use them.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AQ_PROBES_H
#define AQ_PROBES_H

#if !defined(AQ_UNIT) && !defined(AQ_NO_PROBES) && !defined(AQ_NO_ACCOUNTING) && defined(__has_include)
#if __has_include(<sys/sdt.h>)
#define AQ_HAVE_PROBES
#endif
#endif

#ifdef AQ_HAVE_PROBES
#include <sys/sdt.h>
#define AQ_PROBE1(name, a) DTRACE_PROBE1(pgaq, name, a)
#define AQ_PROBE2(name, a, b) DTRACE_PROBE2(pgaq, name, a, b)
#define AQ_PROBE3(name, a, b, c) DTRACE_PROBE3(pgaq, name, a, b, c)
#define AQ_PROBE4(name, a, b, c, d) DTRACE_PROBE4(pgaq, name, a, b, c, d)
#else
#define AQ_PROBE1(name, a) ((void) 0)
#define AQ_PROBE2(name, a, b) ((void) 0)
#define AQ_PROBE3(name, a, b, c) ((void) 0)
#define AQ_PROBE4(name, a, b, c, d) ((void) 0)
#endif

#endif							/* AQ_PROBES_H */
