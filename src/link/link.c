/*-------------------------------------------------------------------------
 *
 * link.c
 *	  The interface of "link": what the parts above call, and the AqPart.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "link/link_private.h"

#include "fmgr.h"
#include "utils/fmgroids.h"

/* of this session's database; NULL: aq_link_prepare() was not called */
static AqLinkDatabase *prepared;

/* --- registration ------------------------------------------------------------------------- */

void
aq_link_register(const AqLinkKind *kind)
{
	aq_link_stream_register(kind);
}

static void
database_gone(Oid database)
{
	aq_link_area_stop(database);
	aq_link_area_forget(database);
}

static void
link_define_parameters(void)
{
	aq_link_area_define();
	aq_link_job_register();
	aq_link_ddl_register();
	aq_jobs_on_database_wanted(aq_link_area_stop);
	aq_jobs_on_database_dropped(database_gone);
#ifdef AQ_TEST_POINTS
	aq_link_register(&aq_link_test_kind);
#endif
}

const AqPart aq_link_part = {
	.name = "link",
	.define_parameters = link_define_parameters,
	.shmem_size = aq_link_area_size,
	.shmem_init = aq_link_area_init,
};

/* --- sessions ------------------------------------------------------------------------------- */

void
aq_link_prepare(void)
{
	aq_jobs_ensure_worker();
	prepared = aq_link_area_own();
}

void
aq_link_changed(void)
{
	if (prepared == NULL)
		return;
	pg_atomic_fetch_add_u32(&prepared->changes, 1);
	aq_link_area_post(prepared, AQ_LINK_STREAMS);
	/* the database's worker looks, too: the first stream needs a link worker */
	aq_jobs_post();
}

void
aq_link_wake(void)
{
	if (prepared != NULL)
		aq_link_area_post(prepared, AQ_LINK_WAKE);
}

Oid
aq_link_server(const char *name, Oid role)
{
	return aq_link_options_server(name, role);
}

/* --- callbacks --------------------------------------------------------------------------------- */

AqLinkStream *
aq_link_add(int64 key, Oid server, Oid role)
{
	return &aq_link_stream_add(key, server, role)->public;
}

void
aq_link_wake_stream(AqLinkStream *stream)
{
	aq_link_stream_wake((AqLinkStreamState *) stream);
}

static const AqLinkRoute *
route_of(const AqLinkStream *stream)
{
	return ((const AqLinkStreamState *) stream)->route;
}

const AqLinkRemote *
aq_link_remote(const AqLinkStream *stream)
{
	return &route_of(stream)->remote;
}

/*
 * Can messages be sent with their keys?  A database of 0.1.0 gets them without, and the
 * log says so once for each stream.  what: "propagation schedule 7".
 */
bool
aq_link_sends_keys(AqLinkStream *stream, const char *what)
{
	AqLinkStreamState *state = (AqLinkStreamState *) stream;
	const char *version = state->route->remote.version;

	if (aq_version_knows_keys(version))
		return true;
	if (!state->without_keys)
		ereport(LOG,
				(errmsg("messages of %s arrive without their keys", what),
				 errdetail("The other database has version %s of the extension \"pgaq\".", version),
				 errhint("Update the extension there to 0.2.0 or later.")));
	state->without_keys = true;
	return false;
}

void
aq_link_flush(void)
{
	aq_link_stream_flush();
}

static int
next_parameter(AqLinkRequest *request, Oid type, const char *value, int format)
{
	int			n = request->nparameters++;

	if (n >= AQ_LINK_PARAMETERS)
		elog(ERROR, "a request of a link has too many parameters");
	request->types[n] = type;
	request->values[n] = value;
	request->formats[n] = format;
	return n;
}

void
aq_link_text(AqLinkRequest *request, Oid type, const char *value)
{
	(void) next_parameter(request, type, value, 0);
}

/* As text, both sides would look at each byte, twice. */
void
aq_link_array(AqLinkRequest *request, Oid type, Datum array)
{
	bytea	   *sent = OidSendFunctionCall(F_ARRAY_SEND, array);
	int			n = next_parameter(request, type, VARDATA(sent), 1);

	request->lengths[n] = VARSIZE(sent) - VARHDRSZ;
}
