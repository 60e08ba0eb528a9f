/*-------------------------------------------------------------------------
 *
 * compat.h
 *	  Every difference between the server versions that pgaq supports.
 *
 * No other file may use PG_VERSION_NUM.  Each difference gets a name here,
 * which the other files use.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#ifndef AQ_COMPAT_H
#define AQ_COMPAT_H

#include "access/genam.h"
#include "access/tableam.h"
#include "catalog/pg_database.h"
#include "catalog/pg_extension.h"
#include "catalog/pg_foreign_server.h"
#include "catalog/pg_namespace.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_tablespace.h"
#include "catalog/pg_type.h"
#include "libpq/pqformat.h"
#include "miscadmin.h"
#include "storage/latch.h"
#include "storage/lmgr.h"
#include "storage/proc.h"
#include "storage/procarray.h"
#include "utils/acl.h"
#include "utils/guc.h"
#include "utils/jsonb.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/syscache.h"
#include "utils/tuplestore.h"
#include "utils/typcache.h"
#include "utils/wait_event.h"

#if PG_VERSION_NUM < 150000
#error "pgaq needs PostgreSQL 15 or later"
#endif

/* PostgreSQL 18 has renamed pg_attribute_noreturn(). */
#if PG_VERSION_NUM < 180000
#define pg_noreturn pg_attribute_noreturn()
#endif

/* PostgreSQL 19 has this itself. */
#ifndef pg_fallthrough
#define pg_fallthrough __attribute__((fallthrough))
#endif

/*
 * The number of this process's PGPROC: 0 .. aq_proc_slots() - 1, stable for
 * the life of the process.  Background workers without a database have one
 * too.
 */
static inline int
aq_proc_number(void)
{
#if PG_VERSION_NUM >= 170000
	return MyProcNumber;
#else
	return MyProc->pgprocno;
#endif
}

/*
 * The number of PGPROCs that running processes can have; known in
 * shmem_request_hook.
 */
static inline int
aq_proc_slots(void)
{
	return MaxBackends + NUM_AUXILIARY_PROCS;
}

/*
 * The wait event that pg_stat_activity shows during a wait of pgaq.  From
 * PostgreSQL 17 on it has its own name; before, all waits of extensions are
 * shown as "Extension".  The first call for a name may take a lock, so it is
 * made when a session attaches, not when it waits.
 */
static inline uint32
aq_server_wait_event(const char *name)
{
#if PG_VERSION_NUM >= 170000
	return WaitEventExtensionNew(name);
#else
	(void) name;
	return PG_WAIT_EXTENSION;
#endif
}

/* What PostgreSQL times in each process, with track_io_timing and track_wal_io_timing. */
typedef enum AqIo
{
	AQ_IO_READ,
	AQ_IO_WRITE,
	AQ_IO_WAL_WRITE,
	AQ_IO_WAL_SYNC,
	AQ_IO_COUNT
} AqIo;

/* This process's times so far, in nanoseconds: see compat.c. */
extern void aq_compat_io_times(uint64 *times);

/* A set for this number of events, freed by FreeWaitEventSet(), or at the process's end. */
static inline WaitEventSet *
aq_wait_set_create(int nevents)
{
#if PG_VERSION_NUM >= 170000
	return CreateWaitEventSet(NULL, nevents);
#else
	return CreateWaitEventSet(TopMemoryContext, nevents);
#endif
}

/* Does the role have USAGE on the foreign server? */
static inline bool
aq_foreign_server_allows(Oid server, Oid role)
{
#if PG_VERSION_NUM >= 160000
	return object_aclcheck(ForeignServerRelationId, server, role, ACL_USAGE) == ACLCHECK_OK;
#else
	return pg_foreign_server_aclcheck(server, role, ACL_USAGE) == ACLCHECK_OK;
#endif
}

/* Does the server read each block with a request of its own? */
#define AQ_READS_SINGLE_BLOCKS (PG_VERSION_NUM < 170000)

static inline bool
aq_proc_in_transaction(const volatile PGPROC *proc)
{
#if PG_VERSION_NUM >= 170000
	return proc->vxid.lxid != InvalidLocalTransactionId;
#else
	return proc->lxid != InvalidLocalTransactionId;
#endif
}

/*
 * Backend i, counted from 1, in this process's copy of the data of
 * pg_stat_activity.
 */
extern struct LocalPgBackendStatus *aq_compat_backend_status(int i);

/* The arguments of ExecutorRun_hook. */
#if PG_VERSION_NUM >= 180000
#define AQ_EXECUTOR_RUN_ARGS QueryDesc *query, ScanDirection direction, uint64 count
#define AQ_EXECUTOR_RUN_PASS query, direction, count
#else
#define AQ_EXECUTOR_RUN_ARGS QueryDesc *query, ScanDirection direction, uint64 count, bool once
#define AQ_EXECUTOR_RUN_PASS query, direction, count, once
#endif

/* The arguments of ExecutorCheckPerms_hook. */
#if PG_VERSION_NUM >= 160000
#define AQ_CHECK_PERMS_ARGS List *range_table, List *perm_infos, bool raise
#define AQ_CHECK_PERMS_PASS range_table, perm_infos, raise
#else
#define AQ_CHECK_PERMS_ARGS List *range_table, bool raise
#define AQ_CHECK_PERMS_PASS range_table, raise
#endif

/* Does the current role own this object of pg_extension or pg_database? */
static inline bool
aq_object_owned(Oid catalog, Oid object)
{
#if PG_VERSION_NUM >= 160000
	return object_ownercheck(catalog, object, GetUserId());
#else
	return catalog == ExtensionRelationId ? pg_extension_ownercheck(object, GetUserId()) : pg_database_ownercheck(object, GetUserId());
#endif
}

/*
 * Does the current role have this privilege on a type, schema, function or
 * tablespace?
 */
static inline bool
aq_object_allows(Oid catalog, Oid object, AclMode mode)
{
#if PG_VERSION_NUM >= 160000
	return object_aclcheck(catalog, object, GetUserId(), mode) == ACLCHECK_OK;
#else
	AclResult	result = catalog == TypeRelationId ? pg_type_aclcheck(object, GetUserId(), mode)
		: catalog == NamespaceRelationId ? pg_namespace_aclcheck(object, GetUserId(), mode)
		: catalog == ProcedureRelationId ? pg_proc_aclcheck(object, GetUserId(), mode)
		: pg_tablespace_aclcheck(object, GetUserId(), mode);

	return result == ACLCHECK_OK;
#endif
}

/* The relation's file number, which changes when the relation is rewritten. */
static inline uint32
aq_relation_file(Relation rel)
{
#if PG_VERSION_NUM >= 160000
	return rel->rd_locator.relNumber;
#else
	return rel->rd_node.relNode;
#endif
}

/*
 * Is the database invalid after an interrupted DROP DATABASE?  (Minor releases
 * from 2023 on mark it.)
 */
static inline bool
aq_database_half_dropped(Form_pg_database database)
{
	return database->datconnlimit == -2;
}

/* The primary key's index; pgaq has no deferrable primary keys. */
static inline Oid
aq_primary_key(Relation rel)
{
#if PG_VERSION_NUM >= 180000
	return RelationGetPrimaryKeyIndex(rel, false);
#else
	return RelationGetPrimaryKeyIndex(rel);
#endif
}

/* Appends the length of a text, as four bytes, and the text in the client's encoding. */
static inline void
aq_send_counted_text(StringInfo buffer, const char *string, int length)
{
#if PG_VERSION_NUM >= 170000
	pq_sendcountedtext(buffer, string, length);
#else
	pq_sendcountedtext(buffer, string, length, false);
#endif
}

/* Does this session hold the lock in this mode? */
extern bool aq_compat_holds_lock(const struct LOCKTAG *tag, int mode);

/* For use after an in-place truncation: see compat.c. */
extern void aq_compat_after_truncate(struct RelationData *rel, int32 freeze_age);
extern const char *aq_compat_search_path_behind(const char *pinned);

/* Suspended time limits: the remaining time in milliseconds; 0: not suspended. */
typedef struct AqTimeLimits
{
	int			statement,
				transaction;
} AqTimeLimits;

extern void aq_compat_suspend_limits(AqTimeLimits *limits);
extern void aq_compat_resume_limits(AqTimeLimits *limits);

/* The role that grants privileges, if role calls GRANT: see compat.c. */
extern Oid	aq_compat_best_grantor(Oid role, AclMode privileges, const Acl *acl, Oid owner);

/* The oldest xmin of a snapshot that can read this database's tables: see compat.c. */
extern TransactionId aq_compat_oldest_xmin(void);

/* A replication slot that has an xmin. */
typedef struct AqSlotLook
{
	TransactionId xmin;
	Oid			database;		/* InvalidOid: slot of a standby */
	bool		active;			/* a process uses it now */
} AqSlotLook;

/*
 * Reads slot i, counted from 0; returns false if it does not exist or has no
 * xmin.
 */
extern bool aq_compat_slot_look(int i, AqSlotLook *look);

/* A scan of the whole table. */
static inline TableScanDesc
aq_table_beginscan(struct RelationData *rel, struct SnapshotData *snapshot)
{
#if PG_VERSION_NUM >= 190000
	return table_beginscan(rel, snapshot, 0, NULL, SO_NONE);
#else
	return table_beginscan(rel, snapshot, 0, NULL);
#endif
}

/* An index scan without order-by operators. */
static inline IndexScanDesc
aq_index_beginscan(struct RelationData *heap, struct RelationData *index, struct SnapshotData *snapshot,
				   int nkeys)
{
#if PG_VERSION_NUM >= 190000
	return index_beginscan(heap, index, snapshot, NULL, nkeys, 0, SO_NONE);
#elif PG_VERSION_NUM >= 180000
	return index_beginscan(heap, index, snapshot, NULL, nkeys, 0);
#else
	return index_beginscan(heap, index, snapshot, nkeys, 0);
#endif
}

/*
 * Updates a row; waits for other transactions only if wait is true.  Sets
 * *indexes if the new version must be entered into all indexes.
 */
static inline TM_Result
aq_table_update(struct RelationData *rel, ItemPointer tid, TupleTableSlot *slot, CommandId command,
				bool wait, bool *indexes)
{
	TM_FailureData failure;
	LockTupleMode mode;
	TM_Result	result;
#if PG_VERSION_NUM >= 160000
	TU_UpdateIndexes which;
#else
	bool		which;
#endif

	result = table_tuple_update(rel, tid, slot, command,
#if PG_VERSION_NUM >= 190000
								0,
#endif
								InvalidSnapshot, InvalidSnapshot, wait, &failure, &mode, &which);
#if PG_VERSION_NUM >= 160000
	*indexes = which == TU_All;
#else
	*indexes = which;
#endif
	return result;
}

/* Deletes a row; waits for other transactions only if wait is true. */
static inline TM_Result
aq_table_delete(struct RelationData *rel, ItemPointer tid, CommandId command, bool wait)
{
	TM_FailureData failure;

#if PG_VERSION_NUM >= 190000
	return table_tuple_delete(rel, tid, command, 0, InvalidSnapshot, InvalidSnapshot, wait, &failure);
#else
	return table_tuple_delete(rel, tid, command, InvalidSnapshot, InvalidSnapshot, wait, &failure, false);
#endif
}

/* The oldest transaction of all databases that has an id and has not ended. */
static inline TransactionId
aq_oldest_running_xid(void)
{
#if PG_VERSION_NUM >= 190000
	return GetOldestActiveTransactionId(false, true);
#else
	return GetOldestActiveTransactionId();
#endif
}

static inline bool
aq_domain_has_constraints(Oid domain)
{
#if PG_VERSION_NUM >= 190000
	return DomainHasConstraints(domain, NULL);
#else
	return DomainHasConstraints(domain);
#endif
}

/*
 * Is the process a background worker?  (From PostgreSQL 18 on a PGPROC only
 * says whether it is a client's.)
 */
static inline bool
aq_proc_is_worker(const PGPROC *proc)
{
	return proc->procgloballist == &ProcGlobal->bgworkerFreeProcs;
}

/* From PostgreSQL 19 on a backslash in a plain string always stands for itself. */
#if PG_VERSION_NUM >= 190000
#define AQ_STANDARD_STRINGS true
#else
#define AQ_STANDARD_STRINGS standard_conforming_strings
#endif

/* An argument of post_parse_analyze_hook. */
#if PG_VERSION_NUM >= 190000
typedef const struct JumbleState AqJumbleState;
#else
typedef struct JumbleState AqJumbleState;
#endif

/* A value of type jsonb that is being built; its result is set when it is complete. */
#if PG_VERSION_NUM >= 190000
typedef JsonbInState AqJsonbState;
#else
typedef struct AqJsonbState
{
	JsonbParseState *state;
	JsonbValue *result;
} AqJsonbState;
#endif

static inline void
aq_jsonb_push(AqJsonbState *state, JsonbIteratorToken token, JsonbValue *value)
{
#if PG_VERSION_NUM >= 190000
	pushJsonbValue(state, token, value);
#else
	state->result = pushJsonbValue(&state->state, token, value);
#endif
}

/*
 * Finds a row of a system catalog that is to be changed; NULL if there is
 * none.  The caller must call aq_catalog_row_unlock afterwards.  Minor
 * releases from November 2024 on require a lock against the server's in-place
 * updates.
 */
static inline HeapTuple
aq_catalog_row_lock(int cache, Datum key)
{
#ifdef InplaceUpdateTupleLock
	return SearchSysCacheLocked1(cache, key);
#else
	return SearchSysCache1(cache, key);
#endif
}

static inline void
aq_catalog_row_unlock(struct RelationData *catalog, HeapTuple row)
{
#ifdef InplaceUpdateTupleLock
	UnlockTuple(catalog, &row->t_self, InplaceUpdateTupleLock);
#endif
	ReleaseSysCache(row);
}

/*
 * Allocates the "extra" of a check hook; from PostgreSQL 16 on by guc_malloc.
 */
static inline void *
aq_guc_alloc(Size size)
{
#if PG_VERSION_NUM >= 160000
	return guc_malloc(LOG, size);
#else
	return malloc(size);
#endif
}

static inline void
aq_guc_free(void *extra)
{
#if PG_VERSION_NUM >= 160000
	guc_free(extra);
#else
	free(extra);
#endif
}

#endif							/* AQ_COMPAT_H */
