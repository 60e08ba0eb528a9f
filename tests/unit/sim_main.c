/*
 * sim_main.c
 *	  The table of tests of the simulated program.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 */
#include "tests.h"
#include "unit.h"

const UnitTest unit_tests[] = {
#define X(name, seeded) {#name, test_##name, seeded},
	UNIT_TESTS(X)
#undef X
	{NULL, NULL, false}
};
