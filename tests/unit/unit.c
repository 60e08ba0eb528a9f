/*-------------------------------------------------------------------------
 *
 * unit.c
 *	  Runs the tests of one program and counts.
 *
 *		unit_x [-n seeds] [-s first seed] [-t test] [-x]	(-x: stop at a failure)
 *
 * Ends with "N passed, N failed"; exits non-zero on a failure, or when nothing
 * ran.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include <setjmp.h>
#include <stdarg.h>
#include <unistd.h>

#include "unit.h"
#ifdef AQ_SIM
#include "sim.h"
#endif

uint64		unit_seed;
bool		unit_expect_assert = false;
bool		unit_assert_seen = false;
AQ_LOCAL UnitCounts unit_counts;

AQ_LOCAL int aq_session_own_number = 0;
AQ_LOCAL int shim_interrupt_holdoff = 0;

static const char *program;
static const UnitTest *current;
static sigjmp_buf out_of_test;
static AqSyncShared *shared = NULL;

void
unit_fail(const char *file, int line, const char *fmt, ...)
{
	va_list		args;

	printf("FAILED %s: %s:%d: ", current->name, file, line);
	va_start(args, fmt);
	vprintf(fmt, args);
	va_end(args);
	if (current->seeded)
		printf("\n  again: %s -t %s -s %llu -n 1", program, current->name,
			   (unsigned long long) unit_seed);
	printf("\n");
	fflush(stdout);
#ifdef AQ_SIM
	sim_abandon();				/* returns to sim_run's caller's stack */
	siglongjmp(out_of_test, 1);
#else
	_exit(1);
#endif
}

void
shim_assert_failed(const char *cond, const char *file, int line)
{
	if (unit_expect_assert)
	{
		unit_assert_seen = true;
		return;
	}
	unit_fail(file, line, "assertion failed: %s", cond);
}

void
shim_panic(const char *fmt, ...)
{
	va_list		args;

	va_start(args, fmt);
	vprintf(fmt, args);
	va_end(args);
	printf("\n");
	unit_fail(__FILE__, __LINE__, "PANIC");
}

void
unit_shared(int nsessions)
{
	free(shared);
	shared = aligned_alloc(PG_CACHE_LINE_SIZE, (aq_sync_shared_size(nsessions) + PG_CACHE_LINE_SIZE - 1) /
						   PG_CACHE_LINE_SIZE * PG_CACHE_LINE_SIZE);
	aq_sync_shared_init(shared, nsessions);
	unit_be(0);
	memset(&unit_counts, 0, sizeof(unit_counts));
	shim_interrupt_holdoff = 0;
}

/* The code under test runs as this session from now on. */
void
unit_be(int session)
{
	aq_session_own_number = session;
	aq_sync_self_set(&aq_sync_shared->selves[session]);
}

void
aq_event_begin(AqEvent event, uint64 p1, uint64 p2, uint64 p3)
{
	(void) event;
	(void) p1;
	(void) p2;
	(void) p3;
	unit_counts.waits_begun++;
	unit_counts.pauses_at_wait = unit_counts.pauses;
}

void
aq_event_end(void)
{
	unit_counts.waits_ended++;
}

static bool
run_one(const UnitTest *test)
{
	current = test;
	if (sigsetjmp(out_of_test, 0) != 0)
		return false;
	unit_expect_assert = unit_assert_seen = false;
	test->run();
	return true;
}

int
main(int argc, char **argv)
{
	uint64		seeds = 2000;
	uint64		first = 1;
	const char *only = NULL;
	int			passed = 0;
	int			failed = 0;
	bool		stop = false;
	int			opt;

	program = argv[0];
	while ((opt = getopt(argc, argv, "n:s:t:x")) != -1)
	{
		if (opt == 'n')
			seeds = strtoull(optarg, NULL, 10);
		else if (opt == 's')
			first = strtoull(optarg, NULL, 10);
		else if (opt == 't')
			only = optarg;
		else if (opt == 'x')
			stop = true;
		else
			return 2;
	}

	for (const UnitTest *test = unit_tests; test->name != NULL; test++)
	{
		uint64		n = test->seeded ? seeds : 1;
		bool		ok = true;

		if ((stop && failed > 0) || (only != NULL && strcmp(only, test->name) != 0))
			continue;
		for (uint64 i = 0; i < n && ok; i++)
		{
			unit_seed = first + i;
			ok = run_one(test);
		}
		if (ok)
			printf("ok %s%s\n", test->name, test->seeded ? " (seeded)" : "");
		fflush(stdout);
		if (ok)
			passed++;
		else
			failed++;
	}
	printf("%d passed, %d failed\n", passed, failed);
	return (failed > 0 || passed == 0) ? 1 : 0;
}
