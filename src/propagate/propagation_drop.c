/*-------------------------------------------------------------------------
 *
 * propagation_drop.c
 *	  What is dropped, or changes its owner, while propagation uses it: queues,
 *	  roles, foreign servers.
 *
 * A schedule names its server, as it names its queue there: it does not keep
 * either from being dropped, and continues when there is one of this name again.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "propagate/propagate_private.h"

#include "catalog/dependency.h"
#include "catalog/objectaccess.h"
#include "catalog/pg_class.h"
#include "catalog/pg_foreign_server.h"
#include "catalog/pg_type.h"
#include "commands/extension.h"
#include "executor/spi.h"
#include "foreign/foreign.h"
#include "utils/builtins.h"

static object_access_hook_type previous_hook;

/* The number of schedules whose destinations are at the server. */
static int64
count_schedules(const char *server)
{
	Oid			type = TEXTOID;
	Datum		value = CStringGetTextDatum(server);
	int64		n;
	bool		isnull;

	(void) aq_sql_run("SELECT count(*) FROM aq_internal.propagation WHERE substring(destination, '@(.*)$') = $1", 1, &type, &value, NULL, true);
	n = DatumGetInt64(SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1, &isnull));
	SPI_finish();
	return n;
}

static void
warn(const ForeignServer *server)
{
	Oid			extension = get_extension_oid("pgaq", true);
	Oid			table = aq_owner_table("propagation");
	int64		n;

	/* DROP EXTENSION, an older version of it, or a user's schema of this name in a database without it */
	if (aq_utility_drops_pgaq() || !OidIsValid(extension) || !OidIsValid(table) ||
		getExtensionOfObject(RelationRelationId, table) != extension)
		return;
	n = count_schedules(server->servername);
	if (n > 0)
		ereport(WARNING,
				(errmsg_plural("server \"%s\" is used by " INT64_FORMAT " propagation schedule", "server \"%s\" is used by " INT64_FORMAT " propagation schedules",
							   n, server->servername, n),
				 errdetail("Their messages wait, and are sent when there is a server of this name again."),
				 errhint("Create the server again, or end the schedules: see \"End a schedule\" in docs/propagation.md.")));
}

static void
drop_hook(ObjectAccessType access, Oid class, Oid object, int column, void *arg)
{
	ForeignServer *server;

	if (previous_hook)
		previous_hook(access, class, object, column, arg);
	if (access != OAT_DROP || class != ForeignServerRelationId)
		return;
	server = GetForeignServerExtended(object, FSV_MISSING_OK);
	if (server != NULL)
		warn(server);
}

/* --- queues and roles ------------------------------------------------------------------------ */

/* Messages that have left the queue for another database, and are not known to have arrived there, would be lost with it. */
static void
refuse_on_way(const AqQueue *queue)
{
	char	   *destination = aq_sql_text(psprintf("SELECT p.destination FROM aq_internal.propagation p JOIN aq_internal.propagation_batch b "
												   "ON b.schedule_id = p.schedule_id WHERE p.queue_id = %d LIMIT 1", queue->id));

	if (destination != NULL)
		ereport(ERROR,
				aq_error(AQ_ERR_QUEUE_NOT_EMPTY, "messages of queue \"%s\" are on their way to \"%s\"", queue->name, destination),
				errhint("Wait until they have arrived, or drop the queue with force => true, which forgets them."));
}

void
aq_propagation_drop_init(void)
{
	static const AqQueueRows rows = {.table = "propagation", .role = "role", .check_drop = refuse_on_way};

	aq_definition_add_rows(&rows);
	previous_hook = object_access_hook;
	object_access_hook = drop_hook;
}
