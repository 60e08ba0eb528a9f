/*-------------------------------------------------------------------------
 *
 * calls_private.h
 *	  What the files of room "calls" show to each other and to the rooms above.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AQ_CALLS_PRIVATE_H
#define AQ_CALLS_PRIVATE_H

#include "queue/definitions/definitions_private.h"

/* --- use.c */
extern void aq_use_check_started(AqQueue *queue, bool enqueue);
extern AqQueue *aq_use_begin(AqQueue *queue, bool enqueue, bool *begins);
extern void aq_use_undo(AqQueue *queue);

/* --- match.c: subscribers by their rules */
extern void aq_match_subscribers(AqQueue *queue, const AqPutOptions *options, uint32 n, const Datum *payloads,
								 const bool *nulls, Bitmapset **targets);

/* --- wait.c */
extern bool aq_wait_until(AqQueue *const *queues, int n, int position, bool selective, int64 timeout_us,
						  bool (*attempt) (void *arg), void *arg);

/*
 * For procedures: wait without a snapshot.  attempt checks, and takes one of its
 * own for that; the number of the pair that has something, or -1.
 */
extern bool aq_wait_released(char *queue, char *consumer, int delivery, bool selective, int64 timeout_us,
							 bool (*attempt) (void *arg), void *arg);
extern void aq_wait_call_ahead(void (*call) (void *arg), void *arg);
extern int	aq_wait_listen_released(int n, char **queues, char **consumers, int *delivery, int64 timeout_us);

/* --- autonomous.c: a statement in a transaction of its own */
extern void aq_autonomous_session_exit(void);
extern void aq_autonomous_call(const char *sql, int nargs, const Oid *types, const Datum *values,
							   const char *nulls, int ncolumns, Datum *results, bool *isnull);

/* --- position.c: navigation */
typedef struct AqPosition AqPosition;

typedef struct AqNavigation
{
	bool		given;
	bool		first;			/* from the head */
	bool		transaction;	/* to the next group */
	bool		groups;			/* over the ends of groups */
	AqPosition *position;		/* NULL: none is kept */
} AqNavigation;

extern AqNavigation aq_position_begin(AqQueue *queue, AqTakeOptions *take, const char *name,
										const char *consumer, const char *correlation);
extern void aq_position_moved(const AqNavigation *navigation, const AqMessage *message,
								const char *consumer, const char *correlation);
extern bool aq_position_rewind(AqQueue *queue, const AqNavigation *navigation, AqTakeOptions *take);
extern void aq_position_none(const AqNavigation *navigation);

#endif							/* AQ_CALLS_PRIVATE_H */
