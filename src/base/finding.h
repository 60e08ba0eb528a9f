/*
 * finding.h
 *	  What aq.check() has found: each part compares what it keeps in shared
 *	  memory and reports each difference.
 *
 * Included through base.h.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 */
#ifndef AQ_FINDING_H
#define AQ_FINDING_H

/* A number that a finding does not have. */
#define AQ_NO_NUMBER PG_INT64_MIN

typedef struct AqFinding
{
	int32		queue_id;		/* 0: of no queue */
	char		store;			/* '\0': of no store */
	const char *place;
	const char *what;
	int64		in_memory;
	int64		expected;		/* from tables, or from elsewhere in memory */
	const char *detail;			/* NULL: none */
} AqFinding;

typedef struct AqFindings
{
	struct List *list;			/* of AqFinding, in the caller's memory context */
	/* what is being checked */
	int32		queue_id;
	char		store;
} AqFindings;

extern void aq_finding_add(AqFindings *findings, const char *place, const char *what,
					 int64 in_memory, int64 expected, const char *detail);

/* A difference is a finding. */
extern void aq_finding_compare(AqFindings *findings, const char *place, const char *what,
					   int64 in_memory, int64 expected);

/* Keep what both have: the same place, and the same difference. */
extern void aq_finding_keep(AqFindings *findings, const AqFindings *again);

#endif							/* AQ_FINDING_H */
