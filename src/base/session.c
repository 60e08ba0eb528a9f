/*-------------------------------------------------------------------------
 *
 * session.c
 *	  Session slots: one for each process that can run pgaq's code.
 *
 * A slot's index is the number of the process's PGPROC, so a process finds its
 * slot without a search or a lock, and other parts can have arrays with the
 * same index.  Only its owner writes a slot; readers see pid = 0 if the slot
 * is not in use, and must expect that a session that they have just seen has
 * ended.
 *
 * A session attaches at its first use of the extension and leaves when the
 * process exits, after the end of its transaction: on_shmem_exit callbacks run
 * after all before_shmem_exit callbacks, one of which ends the transaction.  A
 * process that is killed does not clear its slot; the server then
 * reinitializes all shared memory.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "base/base_int.h"
#include "miscadmin.h"
#include "storage/ipc.h"
#include "storage/procarray.h"
#include "storage/shmem.h"
#include "utils/array.h"
#include "utils/fmgrprotos.h"

struct AqSession
{
	pg_atomic_uint32 pid;		/* 0: not in use */
	pg_atomic_uint32 serial;	/* incremented by each process that attaches */
	pg_atomic_uint32 claims;	/* see claim.c */
};

bool		aq_session_is_attached = false;
int			aq_session_own_number = -1;

static AqSession *slots = NULL;

/* callbacks of part.c */
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

/* Shared memory exists only if the library was preloaded. */
void
aq_session_require_preload(void)
{
	if (slots == NULL)
		ereport(ERROR,
				aq_error(AQ_ERR_NOT_PRELOADED, "pgaq must be loaded when the server starts"),
				errhint(AQ_PRELOAD_HINT));
}

void
aq_session_require_write(const char *command)
{
	aq_session_require_preload();
	PreventCommandIfReadOnly(command);
	PreventCommandIfParallelMode(command);
	PreventCommandDuringRecovery(command);
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

/* Sets the number of this session's claims, for aq.check(). */
void
aq_session_set_claims(uint32 claims)
{
	pg_atomic_write_u32(&slots[aq_session_own_number].claims, claims);
}

/*
 * Is the session in a transaction?  Read without a lock, so the transaction
 * may have ended since.
 */
bool
aq_session_in_transaction(int number)
{
	PGPROC	   *proc = aq_session_proc(number);

	return proc != NULL && aq_proc_in_transaction(proc);
}

/* The number of sessions in a transaction, including the caller. */
int
aq_session_count_in_transactions(void)
{
	int			n = 0;

	for (int i = 0; i < aq_session_slots(); i++)
		n += aq_session_in_transaction(i);
	return n;
}

/*
 * The session number of a process, whether it has attached or not, and its
 * login role (InvalidOid for background processes).
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

/* The processes for whose heavyweight locks this one waits, as pg_blocking_pids() has them; 0 stands for a prepared transaction. */
const int32 *
aq_session_blockers(int pid, int *n)
{
	ArrayType  *pids = DatumGetArrayTypeP(DirectFunctionCall1(pg_blocking_pids, Int32GetDatum(pid)));

	*n = ArrayGetNItems(ARR_NDIM(pids), ARR_DIMS(pids));
	return (const int32 *) ARR_DATA_PTR(pids);
}
