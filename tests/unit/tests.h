/*
 * tests.h
 *	  Every test of the simulated program: X(name, once per seed).
 *
 * Included once to declare the functions and once by sim_main.c for the table.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 */
#ifndef AQ_TESTS_H
#define AQ_TESTS_H

#define UNIT_TESTS(X) \
	X(latch_modes, false) \
	X(latch_levels, false) \
	X(latch_many_gets, false) \
	X(latch_registry, false) \
	X(latch_release_all, false) \
	X(latch_random, true) \
	X(latch_fifo, true) \
	X(latch_cascade, true) \
	X(latch_posts, true) \
	X(latch_last_sharer, true) \
	X(latch_starvation, true) \
	X(latch_class, false) \
	X(latch_class_sleeps, false) \
	X(latch_timed, true) \
	X(latch_nested, true) \
	X(blocker, true) \
	X(mutex_random, true) \
	X(mutex_pins, true) \
	X(mutex_many_gets, false) \
	X(scheme_table, false) \
	X(scheme_types, false) \
	X(scheme_yield, true) \
	X(scheme_sleep, true) \
	X(scheme_backoff, true) \
	X(scheme_spin, false) \
	X(wakeup_model, true) \
	X(wakeup_queue, true) \
	X(bitmap_model, true) \
	X(bitmap_queue, true) \
	X(hist, false) \
	X(object_load_once, true) \
	X(object_age_out, true) \
	X(object_hot, true) \
	X(object_random, true) \
	X(row_own, false) \
	X(row_standby, false) \
	X(row_lengths, false) \
	X(row_clock, false) \
	X(row_clones, false) \
	X(row_change, true) \
	X(row_random, true) \
	X(slot_random, true) \
	X(slot_end, true) \
	X(slot_forbidden, false) \
	X(xids_model, true) \
	X(lease_protocol, false) \
	X(lease_variants, false)

#define X(name, seeded) extern void test_##name(void);
UNIT_TESTS(X)
#undef X

#endif							/* AQ_TESTS_H */
