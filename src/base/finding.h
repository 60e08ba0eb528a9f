/*
 * finding.h
 *	  Findings of aq.check(): each part checks its shared memory and reports
 *	  each difference.
 *
 * Included through base.h.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 */
#ifndef AQ_FINDING_H
#define AQ_FINDING_H

/* For in_memory or expected: the finding has no such number. */
#define AQ_NO_NUMBER PG_INT64_MIN

typedef struct AqFinding
{
	int32		queue_id;		/* 0: no queue */
	char		store;			/* '\0': no store */
	const char *place;
	const char *what;
	int64		in_memory;
	int64		expected;		/* from tables, or from elsewhere in memory */
	const char *detail;			/* NULL: none */
} AqFinding;

typedef struct AqFindings
{
	struct List *list;			/* of AqFinding, in the caller's memory context */
	/* the queue and store that are being checked */
	int32		queue_id;
	char		store;
} AqFindings;

extern void aq_finding_add(AqFindings *findings, const char *place, const char *what,
						   int64 in_memory, int64 expected, const char *detail);

/* Adds a finding if the numbers differ. */
extern void aq_finding_compare(AqFindings *findings, const char *place, const char *what,
							   int64 in_memory, int64 expected);

/*
 * Adds a finding if more sessions are counted as waiting than can be: a session
 * that waits is in a transaction, asleep or trying again just now.  before: the
 * count when the check began; sessions may have ended their wait since.
 */
extern void aq_finding_waiting(AqFindings *findings, const char *place, const char *what,
							   uint32 before, pg_atomic_uint32 *waiting);

/*
 * Keeps only findings that are in both lists, with the same place and the same
 * difference.
 */
extern void aq_finding_keep(AqFindings *findings, const AqFindings *again);

#endif							/* AQ_FINDING_H */
