/*-------------------------------------------------------------------------
 *
 * part.c
 *	  Walks the parts of the extension: parameters, shared memory, sessions.
 *
 * module.c passes the list of parts, lowest first.  Each part has at most one
 * area of shared memory, "pgaq <part>", with a size that is fixed at server
 * start.  Areas and sessions are initialized in the order of the list, so that
 * a part may use the parts below it; at the end of a session the order is
 * reversed.
 *
 * If the library was not preloaded, there is no shared memory and no part is
 * called; then aq_session_require_preload() raises an error in each function
 * that needs them.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "base/base_int.h"
#include "commands/extension.h"
#include "miscadmin.h"
#include "storage/ipc.h"
#include "storage/lwlock.h"
#include "storage/shmem.h"
#include "utils/guc.h"

#define AREA_NAME_SIZE	64

static const AqPart *const *parts = NULL;
static int	nparts = 0;

static shmem_request_hook_type prev_shmem_request_hook = NULL;
static shmem_startup_hook_type prev_shmem_startup_hook = NULL;

static void base_parameters(void);
static Size base_size(void);
static void base_init(void *area, bool found);

static const AqPart base_part = {
	.name = "base",
	.define_parameters = base_parameters,
	.shmem_size = base_size,
	.shmem_init = base_init,
};

static void
base_parameters(void)
{
	aq_version_define_parameters();
	aq_error_define_parameters();
	aq_point_define_parameters();
	aq_citus_find();
}

static Size
base_size(void)
{
	return add_size(MAXALIGN(aq_session_shmem_size()), aq_point_shmem_size());
}

static void
base_init(void *area, bool found)
{
	aq_session_shmem_init(area, found);
	aq_point_shmem_init((char *) area + MAXALIGN(aq_session_shmem_size()), found);
}

/* Each area begins on a new cache line. */
static Size
padded_size(const AqPart *part)
{
	return CACHELINEALIGN(part->shmem_size());
}

static void
request_part(const AqPart *part)
{
	if (part->shmem_size != NULL)
		RequestAddinShmemSpace(add_size(padded_size(part), PG_CACHE_LINE_SIZE));
}

static void
start_part(const AqPart *part)
{
	char		name[AREA_NAME_SIZE];
	void	   *area;
	bool		found;

	if (part->shmem_size == NULL)
		return;
	snprintf(name, sizeof(name), "pgaq %s", part->name);
	area = ShmemInitStruct(name, padded_size(part), &found);
	if (part->shmem_init != NULL)
		part->shmem_init(area, found);
}

static void
request_areas(void)
{
	if (prev_shmem_request_hook)
		prev_shmem_request_hook();

	request_part(&base_part);
	for (int i = 0; i < nparts; i++)
		request_part(parts[i]);
}

static void
start_areas(void)
{
	if (prev_shmem_startup_hook)
		prev_shmem_startup_hook();

	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	start_part(&base_part);
	for (int i = 0; i < nparts; i++)
		start_part(parts[i]);
	LWLockRelease(AddinShmemInitLock);
}

/* --- sessions ------------------------------------------------------------------ */

static void
session_starts(void)
{
	for (int i = 0; i < nparts; i++)
	{
		if (parts[i]->session_start != NULL)
			parts[i]->session_start();
	}
}

/* Claims are released first, because their release needs the parts. */
static void
session_exits(void)
{
	aq_claim_release();
	for (int i = nparts - 1; i >= 0; i--)
	{
		if (parts[i]->session_exit != NULL)
			parts[i]->session_exit();
	}
}

/* --- the list of parts ------------------------------------------------------------- */

/* Called once, by _PG_init.  The list must live as long as the process. */
void
aq_part_init(const AqPart *const *list, int n)
{
	if (!process_shared_preload_libraries_in_progress)
	{
		if (creating_extension)
			ereport(WARNING,
					errmsg("pgaq is not loaded; its functions will fail"),
					errhint(AQ_PRELOAD_HINT));
		return;
	}

	parts = list;
	nparts = n;

	aq_xact_init();
	aq_session_on(session_starts, session_exits);
	aq_claim_init();
	base_part.define_parameters();
	for (int i = 0; i < nparts; i++)
	{
		if (parts[i]->define_parameters != NULL)
			parts[i]->define_parameters();
	}
	MarkGUCPrefixReserved("pgaq");

	prev_shmem_request_hook = shmem_request_hook;
	shmem_request_hook = request_areas;
	prev_shmem_startup_hook = shmem_startup_hook;
	shmem_startup_hook = start_areas;
}

/*
 * Returns the next bytes of an area; *at is the number of bytes already
 * allocated.  A part computes the size and the layout of its area with the
 * same function, so that they cannot differ.
 */
void *
aq_part_carve(void *area, Size *at, Size size)
{
	void	   *place = area != NULL ? (char *) area + *at : NULL;

	*at = add_size(*at, CACHELINEALIGN(size));
	return place;
}
