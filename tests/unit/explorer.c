/*-------------------------------------------------------------------------
 *
 * explorer.c
 *	  Visits every reachable state of a model.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include <stdlib.h>
#include <string.h>

#include "explorer.h"

/* The step that led to a state first, for the trace. */
typedef struct Step
{
	uint32		from;
	const char *name;
} Step;

uint32		explorer_states;

static const ExplorerModel *model;
static char *states;
static Step *first_steps;		/* to each state */
static uint32 max_states;
static uint32 current;			/* the state whose steps are being made */
static uint64 *table;			/* hash table: half of the hash, and number + 1 */
static uint32 table_size;
static uint32 *edges;			/* steps of progress: where they lead to */
static uint32 *first_edge;		/* of each state */
static uint32 nedges,
			max_edges;
static const char *violation;	/* NULL: none so far */
static Step guilty;				/* whose it is; without a name: not known yet */

#define HASH_HALF UINT64_C(0xFFFFFFFF00000000)

static char *
state_at(uint32 number)
{
	return states + number * model->size;
}

static uint64
hash_of(const char *state)
{
	uint64		hash = UINT64_C(14695981039346656037);

	for (size_t i = 0; i < model->size; i += sizeof(uint64))
	{
		uint64		word = 0;

		memcpy(&word, state + i, Min(sizeof(uint64), model->size - i));
		hash = (hash ^ word) * UINT64_C(0x9E3779B97F4A7C15);
		hash ^= hash >> 29;
	}
	return hash;
}

static void
grow(void)
{
	max_states = max_states == 0 ? 1 << 16 : max_states * 2;
	states = realloc(states, max_states * model->size);
	first_steps = realloc(first_steps, max_states * sizeof(Step));
	first_edge = realloc(first_edge, (max_states + 1) * sizeof(uint32));
	free(table);
	table_size = max_states * 2;
	table = calloc(table_size, sizeof(uint64));
	for (uint32 i = 0; i < explorer_states; i++)
	{
		uint64		hash = hash_of(state_at(i));
		uint32		slot = hash & (table_size - 1);

		while (table[slot] != 0)
			slot = (slot + 1) & (table_size - 1);
		table[slot] = (hash & HASH_HALF) | (i + 1);
	}
}

/* The number of a state, which is entered if it is new. */
static uint32
enter(const char *state, const char *name)
{
	uint64		hash = hash_of(state);
	uint32		slot;

	if (explorer_states == max_states)
		grow();
	for (slot = hash & (table_size - 1); table[slot] != 0; slot = (slot + 1) & (table_size - 1))
	{
		uint32		number = (uint32) table[slot] - 1;

		if ((table[slot] & HASH_HALF) == (hash & HASH_HALF) && memcmp(state_at(number), state, model->size) == 0)
			return number;
	}
	memcpy(state_at(explorer_states), state, model->size);
	first_steps[explorer_states] = (Step) {current, name};
	table[slot] = (hash & HASH_HALF) | ++explorer_states;
	return explorer_states - 1;
}

void
explorer_violate(const char *invariant)
{
	if (violation == NULL)
		violation = invariant;
}

void
explorer_reach(const void *state, ExplorerKind kind, const char *name)
{
	uint32		number;

	if (violation != NULL)
	{
		if (guilty.name == NULL)
			guilty = (Step) {current, name};
		return;
	}
	number = enter(state, name);
	if (kind != PROGRESS)
		return;
	if (nedges == max_edges)
	{
		max_edges = max_edges == 0 ? 1 << 16 : max_edges * 2;
		edges = realloc(edges, max_edges * sizeof(uint32));
	}
	edges[nedges++] = number;
}

static void
make_steps(uint32 number)
{
	char		state[model->size]; /* the array can move */

	memcpy(state, state_at(number), model->size);
	current = number;
	first_edge[number] = nedges;
	model->make_steps(state);
	first_edge[number + 1] = nedges;
}

/* Does progress lead from each state to a finished one? */
static void
check_progress(void)
{
	uint8	   *good = calloc(explorer_states, 1);
	uint8	   *stuck;
	bool		changed = true;

	for (uint32 i = 0; i < explorer_states; i++)
		good[i] = model->is_finished(state_at(i));
	while (changed)
	{
		changed = false;
		for (uint32 i = explorer_states; i-- > 0;)
			for (uint32 edge = first_edge[i]; edge < first_edge[i + 1] && !good[i]; edge++)
				if (good[edges[edge]])
					good[i] = changed = true;
	}
	stuck = memchr(good, 0, explorer_states);
	if (stuck != NULL)
	{
		violation = model->progress;
		guilty = (Step) {stuck - good, "nothing leads on"};
	}
	free(good);
}

static void
print_trace(Step last)
{
	if (last.from != 0)
		print_trace(first_steps[last.from]);
	printf("\t%s\n", last.name);
}

const char *
explorer_run(const ExplorerModel *the_model, const void *first)
{
	model = the_model;
	violation = guilty.name = NULL;
	explorer_states = max_states = nedges = current = 0;
	(void) enter(first, "start");
	for (uint32 i = 0; i < explorer_states && violation == NULL; i++)
		make_steps(i);
	if (violation == NULL)
		check_progress();
	if (violation != NULL && model->trace)
		print_trace(guilty);
	free(states);
	free(first_steps);
	free(first_edge);
	free(table);
	states = NULL;
	first_steps = NULL;
	first_edge = NULL;
	table = NULL;
	return violation;
}
