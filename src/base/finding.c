/*-------------------------------------------------------------------------
 *
 * finding.c
 *	  Collects what aq.check() finds.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "base/base.h"
#include "nodes/pg_list.h"

void
aq_finding_add(AqFindings *findings, const char *place, const char *what,
			   int64 in_memory, int64 expected, const char *detail)
{
	AqFinding  *finding = palloc(sizeof(AqFinding));

	finding->queue_id = findings->queue_id;
	finding->store = findings->store;
	finding->place = place;
	finding->what = what;
	finding->in_memory = in_memory;
	finding->expected = expected;
	finding->detail = detail;
	findings->list = lappend(findings->list, finding);
}

void
aq_finding_compare(AqFindings *findings, const char *place, const char *what,
				   int64 in_memory, int64 expected)
{
	if (in_memory != expected)
		aq_finding_add(findings, place, what, in_memory, expected, NULL);
}

static bool
is_same(const AqFinding *a, const AqFinding *b)
{
	return a->queue_id == b->queue_id && a->store == b->store &&
		strcmp(a->place, b->place) == 0 && strcmp(a->what, b->what) == 0 &&
		a->in_memory - a->expected == b->in_memory - b->expected;
}

void
aq_finding_waiting(AqFindings *findings, const char *place, const char *what,
				   uint32 before, pg_atomic_uint32 *waiting)
{
	uint32		most = Max(aq_session_count_in_transactions() - 1, 0);	/* not the caller */
	uint32		still = Min(before, pg_atomic_read_u32(waiting));

	if (still > most)
		aq_finding_add(findings, place, what, still, most, NULL);
}

void
aq_finding_keep(AqFindings *findings, const AqFindings *again)
{
	List	   *kept = NIL;
	ListCell   *x,
			   *y;

	foreach(x, again->list)
		foreach(y, findings->list)
			if (is_same(lfirst(x), lfirst(y)))
			{
				kept = lappend(kept, lfirst(x));
				break;
			}
	findings->list = kept;
}
