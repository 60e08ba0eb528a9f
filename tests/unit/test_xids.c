/*-------------------------------------------------------------------------
 *
 * test_xids.c
 *	  Sets of transaction ids, against a model.
 *
 * The source is part of this file.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "server.h"

#include "sim.h"
#include "tests.h"

#include "classic/xids.c"

#define IDS 120
#define FIRST ((TransactionId) -IDS / 2)	/* some ids come after the overflow of the counter */

typedef struct Model
{
	Xids		xids;
	bool		has[IDS];
	bool		grown;			/* all ranges were used: it may have more ids */
} Model;

static TransactionId
id(int i)
{
	TransactionId xid = FIRST + i;

	return xid < FIRST ? xid + FirstNormalTransactionId : xid;
}

/* The set has every id that was added, and others only in ranges that have grown. */
static void
check(const Model *m)
{
	CHECK(m->xids.n <= XIDS_MAX);
	for (int i = 0; i < IDS; i++)
		if (m->has[i] || !m->grown)
			CHECK_EQ(aq_xids_have(&m->xids, id(i)), m->has[i]);
}

/* A session adds ids as it gets them. */
static void
add(Model *m, int i)
{
	aq_xids_add(&m->xids, id(i), id(i));
	m->has[i] = true;
	m->grown |= m->xids.n == XIDS_MAX;
	check(m);
}

static void
join(Model *m, const Model *more)
{
	aq_xids_join(&m->xids, &more->xids);
	for (int i = 0; i < IDS; i++)
		m->has[i] |= more->has[i];
	m->grown |= more->grown || m->xids.n == XIDS_MAX;
	check(m);
}

/* A few subtransactions get ids, and their sets are joined in any order. */
void
test_xids_model(void)
{
	Model		models[4] = {0};

	sim_start(1);
	for (int i = 0; i < IDS; i++)
		if (sim_random(3) > 0)
			add(&models[sim_random(4)], i);
	for (int i = 0; i < 6; i++)
		join(&models[sim_random(4)], &models[sim_random(4)]);
}
