/*-------------------------------------------------------------------------
 *
 * explorer.h
 *	  Visits every reachable state of a model.
 *
 * The model makes the steps that are possible in a state, checks each state that
 * a step leads to, and hands it over.  The explorer also finds states from which
 * steps of progress, however chosen, do not lead to a finished one.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AQ_EXPLORER_H
#define AQ_EXPLORER_H

#include "unit.h"

typedef struct ExplorerModel
{
	size_t		size;			/* of a state: two are the same if their bytes are */
	void		(*make_steps) (const void *state);	/* calls explorer_reach() for each */
	bool		(*is_finished) (const void *state);
	const char *progress;		/* the invariant that a state without a way to a finished one violates */
	bool		trace;			/* prints the steps that lead to a violation */
} ExplorerModel;

/* PROGRESS: happens without faults, users and administrators. */
typedef enum ExplorerKind
{
	FAULT, PROGRESS
} ExplorerKind;

extern uint32 explorer_states;	/* that were visited */

/* Returns the violated invariant, or NULL. */
extern const char *explorer_run(const ExplorerModel *model, const void *first);

/* A step, with a name for the trace, leads to the state. */
extern void explorer_reach(const void *state, ExplorerKind kind, const char *name);

/* The step that is being made violates an invariant; explorer_reach() follows. */
extern void explorer_violate(const char *invariant);

#endif							/* AQ_EXPLORER_H */
