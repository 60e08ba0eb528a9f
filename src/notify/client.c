/*-------------------------------------------------------------------------
 *
 * client.c
 *	  Sessions that wait for notifications, in shared memory.
 *
 * A session has a slot, whose words have a bit for the number of a registration,
 * modulo 63: "interest", the registrations for which it has waited, and "woken",
 * those for which there may be something.  So one session waits for any number of
 * registrations.  A wake-up for a registration with the same bit is a false one,
 * after which the session finds nothing in the queue.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "notify/notify_private.h"

#include "access/xact.h"
#include "miscadmin.h"
#include "storage/latch.h"
#include "storage/proc.h"

/* the bit for "registrations were made or ended" */
#define DEFINITIONS (UINT64CONST(1) << 63)

typedef struct Client
{
	pg_atomic_uint64 interest;	/* 0: it has not waited yet */
	pg_atomic_uint64 woken;
	pg_atomic_uint32 sleeps;
	Oid			database;		/* written before "interest" */
} Client;

typedef struct Clients
{
	pg_atomic_uint32 count;		/* slots with an interest */
	Client		slots[FLEXIBLE_ARRAY_MEMBER];	/* by session */
} Clients;

static Clients *clients;

static bool outdated;			/* a transaction that has taken notifications was rolled back */
static bool took;				/* this transaction has */

/* --- shared memory ------------------------------------------------------------------------- */

Size
aq_client_shmem_size(void)
{
	return MAXALIGN(add_size(offsetof(Clients, slots), mul_size(aq_session_slots(), sizeof(Client))));
}

void
aq_client_shmem_init(void *area, bool found)
{
	clients = area;
	if (found)
		return;
	pg_atomic_init_u32(&clients->count, 0);
	for (int i = 0; i < aq_session_slots(); i++)
	{
		pg_atomic_init_u64(&clients->slots[i].interest, 0);
		pg_atomic_init_u64(&clients->slots[i].woken, 0);
		pg_atomic_init_u32(&clients->slots[i].sleeps, 0);
		clients->slots[i].database = InvalidOid;
	}
}

uint64
aq_client_bit(int64 registration)
{
	return UINT64CONST(1) << (registration % 63);
}

/* Has any session of the server waited for registrations? */
bool
aq_client_exists(void)
{
	pg_memory_barrier();		/* pairs with the one in begin_interest */
	return pg_atomic_read_u32(&clients->count) > 0;
}

/* Wakes the database's sessions that wait for registrations with these bits.  Does not raise an error. */
void
aq_client_wake(uint64 bits)
{
	if (bits == 0 || !aq_client_exists())
		return;
	for (int i = 0; i < aq_session_slots(); i++)
	{
		Client	   *client = &clients->slots[i];
		uint64		hit = pg_atomic_read_u64(&client->interest) & bits;
		PGPROC	   *proc;

		if (hit == 0 || client->database != MyDatabaseId)
			continue;
		pg_atomic_fetch_or_u64(&client->woken, hit);
		pg_memory_barrier();	/* the session sees the bits, or is seen to sleep */
		if (pg_atomic_read_u32(&client->sleeps) != 0 && (proc = aq_session_proc(i)) != NULL)
			SetLatch(&proc->procLatch);
	}
}

void
aq_client_wake_all(void)
{
	aq_client_wake(PG_UINT64_MAX);
}

static Client *
own(void)
{
	return &clients->slots[aq_session_number()];
}

/* The session has an interest in registrations with these bits from now on. */
void
aq_client_begin_interest(uint64 bits)
{
	Client	   *client = own();

	if (pg_atomic_read_u64(&client->interest) == 0)
	{
		pg_atomic_write_u64(&client->woken, 0);
		client->database = MyDatabaseId;
		pg_atomic_fetch_add_u32(&clients->count, 1);
	}
	pg_atomic_fetch_or_u64(&client->interest, bits | DEFINITIONS);
}

void
aq_client_session_exit(void)
{
	Client	   *client = own();

	pg_atomic_write_u32(&client->sleeps, 0);
	if (pg_atomic_exchange_u64(&client->interest, 0) != 0)
		pg_atomic_fetch_sub_u32(&clients->count, 1);
}

/*
 * Which bits were woken since the last call?  *definitions:
 * registrations were made or ended; *unknown: so that nothing is known now, or
 * because a transaction that has taken notifications was rolled back.
 */
uint64
aq_client_collect(bool *definitions, bool *unknown)
{
	uint64		woken = pg_atomic_exchange_u64(&own()->woken, 0);

	*definitions = (woken & DEFINITIONS) != 0;
	*unknown = *definitions || outdated;
	outdated = false;
	return woken;
}

/* Sleeps until it is woken, or until the time, in microseconds, is over; negative: none. */
void
aq_client_sleep(int registrations, int64 left)
{
	Client	   *client = own();
	int64		end = left < 0 ? -1 : aq_clock_us() + left;

	pg_atomic_write_u32(&client->sleeps, 1);
	pg_memory_barrier();		/* pairs with aq_client_wake */
	while (pg_atomic_read_u64(&client->woken) == 0)
	{
		if (end >= 0 && (left = end - aq_clock_us()) <= 0)
			break;
		(void) aq_event_sleep(AQ_EVENT_REGISTRATION_WAIT, registrations, 0, 0, left);
	}
	pg_atomic_write_u32(&client->sleeps, 0);
}

/* --- transactions --------------------------------------------------------------------------- */

/* The transaction has taken notifications: if it is rolled back, they are to be found again. */
void
aq_client_took(void)
{
	took = true;
}

static void
committed(void)
{
	took = false;
}

static void
rolled_back(void)
{
	outdated |= took;
	took = false;
}

static void
subtransaction_rolled_back(SubTransactionId subid, SubTransactionId parent)
{
	outdated |= took;
}

static const AqXactOps ends = {
	.commit = committed,
	.prepare = rolled_back,
	.abort = rolled_back,
	.subabort = subtransaction_rolled_back,
};

void
aq_client_init(void)
{
	aq_xact_register(AQ_XACT_CLIENTS, &ends);
}

/* A subtransaction of the wait itself, which takes nothing, is rolled back by this. */
void
aq_client_roll_back_look(void)
{
	bool		was = outdated;

	RollbackAndReleaseCurrentSubTransaction();
	outdated = was;
}
