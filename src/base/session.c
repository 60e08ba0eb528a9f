/*-------------------------------------------------------------------------
 *
 * session.c
 *	  One slot per process that can run our code: who is it?
 *
 * A slot's index is the number of the process's PGPROC, so no search and no
 * lock is needed to find one's own slot, and other parts keep arrays of their
 * own under the same index.  A slot is written by its owner only; readers
 * see pid = 0 when the slot is not in use and must accept that a session they have
 * just seen is gone.
 *
 * A session attaches at its first use of the extension and leaves when the
 * process ends, after its transaction was ended: on_shmem_exit callbacks run
 * after all before_shmem_exit callbacks, the server's own end of the
 * transaction being one of the latter.  A process that is killed leaves its
 * slot as it is; the server then starts all shared memory anew.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "base/base_int.h"
#include "port/atomics.h"
#include "storage/ipc.h"
#include "storage/procarray.h"
#include "storage/shmem.h"

struct AqSession
{
	pg_atomic_uint32 pid;		/* 0: not in use */
	pg_atomic_uint32 serial;	/* grows with each process that has the slot */
	pg_atomic_uint32 claims;	/* see claim.c */
};

bool		aq_session_is_attached = false;
int			aq_session_own_number = -1;

static AqSession *slots = NULL;

/* of part.c */
static void (*session_starts) (void);
static void (*session_exits) (void);

void
aq_session_on(void (*start) (void), void (*exit) (void))
{
	session_starts = start;
	session_exits = exit;
}

Size
aq_session_shmem_size(void)
{
	return mul_size(sizeof(AqSession), aq_proc_slots());
}

void
aq_session_shmem_init(void *area, bool found)
{
	slots = area;
	if (found)
		return;
	for (int i = 0; i < aq_proc_slots(); i++)
	{
		pg_atomic_init_u32(&slots[i].pid, 0);
		pg_atomic_init_u32(&slots[i].serial, 0);
		pg_atomic_init_u32(&slots[i].claims, 0);
	}
}

static void
leave(int code, Datum arg)
{
	if (!aq_session_is_attached)
		return;
	session_exits();
	pg_atomic_write_u32(&slots[aq_session_own_number].pid, 0);
	aq_session_is_attached = false;
}

/* Shared memory is laid out when the library is preloaded, and only then. */
void
aq_session_require_preload(void)
{
	if (slots == NULL)
		ereport(ERROR,
				aq_error(AQ_ERR_NOT_PRELOADED, "pgaq must be loaded when the server starts"),
				errhint(AQ_PRELOAD_HINT));
}

void
aq_session_attach_slow(void)
{
	AqSession  *slot;

	aq_session_require_preload();
	if (MyProc == NULL)
		elog(ERROR, "pgaq session attached without shared memory");

	aq_session_own_number = aq_proc_number();
	Assert(aq_session_own_number >= 0 && aq_session_own_number < aq_proc_slots());
	slot = &slots[aq_session_own_number];

	on_shmem_exit(leave, (Datum) 0);
	pg_atomic_write_u32(&slot->serial, pg_atomic_read_u32(&slot->serial) + 1);
	pg_atomic_write_u32(&slot->pid, (uint32) MyProcPid);
	aq_session_is_attached = true;
	session_starts();
}

int
aq_session_slots(void)
{
	return aq_proc_slots();
}

PGPROC *
aq_session_proc(int number)
{
	Assert(number >= 0 && number < aq_proc_slots());
	if (pg_atomic_read_u32(&slots[number].pid) == 0)
		return NULL;
	return &ProcGlobal->allProcs[number];
}

int
aq_session_pid(int number)
{
	Assert(number >= 0 && number < aq_proc_slots());
	return (int) pg_atomic_read_u32(&slots[number].pid);
}

uint32
aq_session_serial(int number)
{
	Assert(number >= 0 && number < aq_proc_slots());
	return pg_atomic_read_u32(&slots[number].serial);
}

uint32
aq_session_claims(int number)
{
	Assert(number >= 0 && number < aq_proc_slots());
	return pg_atomic_read_u32(&slots[number].claims);
}

/* Of this session. */
void
aq_session_set_claims(uint32 claims)
{
	pg_atomic_write_u32(&slots[aq_session_own_number].claims, claims);
}

/* Does the session run a transaction?  Reads without a lock: it may have ended. */
bool
aq_session_in_transaction(int number)
{
	PGPROC	   *proc = aq_session_proc(number);

	return proc != NULL && aq_proc_in_transaction(proc);
}

/* How many sessions run a transaction, the caller's included. */
int
aq_session_count_in_transactions(void)
{
	int			n = 0;

	for (int i = 0; i < aq_session_slots(); i++)
		n += aq_session_in_transaction(i);
	return n;
}

/*
 * The number of a process that has a PGPROC, whether it has attached or not, and
 * the role it has logged in as (invalid for background processes).
 */
int
aq_session_of_pid(int pid, Oid *role)
{
	PGPROC	   *proc = BackendPidGetProc(pid);

	if (proc == NULL)
		return -1;
	*role = proc->roleId;
	return (int) (proc - ProcGlobal->allProcs);
}
