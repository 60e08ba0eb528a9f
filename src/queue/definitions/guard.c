/*-------------------------------------------------------------------------
 *
 * guard.c
 *	  Protects queues from being dropped by CASCADE.
 *
 * A queue's owner view, the view aq_data.q<id>, depends on the payload type
 * and belongs to the queue's owner.  So DROP TYPE, DROP SCHEMA or DROP TABLE
 * with CASCADE, and DROP OWNED, would drop it, and leave a queue without type
 * and owner, which could not even be dropped.  They are refused.  Commands
 * that name objects in aq_data (pgaq's own commands, and a restore) are
 * allowed, and so are DROP EXTENSION and the server's removal of temporary
 * objects, which would otherwise be retried forever: a payload type can depend
 * on one if it is the row type of a table OF a temporary type.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "queue/definitions/definitions_private.h"

#include "catalog/dependency.h"
#include "catalog/namespace.h"
#include "catalog/objectaccess.h"
#include "catalog/pg_class.h"
#include "commands/extension.h"
#include "miscadmin.h"
#include "utils/lsyscache.h"

static object_access_hook_type previous_hook;

/* Does the command drop this extension, or name objects in aq_data? */
static bool
means_us(Node *command)
{
	DropStmt   *drop = (DropStmt *) command;
	ListCell   *lc;

	if (command == NULL || !IsA(command, DropStmt))
		return false;
	foreach(lc, drop->objects)
	{
		Node	   *object = lfirst(lc);

		if (drop->removeType == OBJECT_EXTENSION && IsA(object, String) &&
			strcmp(strVal(object), "pgaq") == 0)
			return true;
		if (IsA(object, List) && list_length((List *) object) > 1 &&
			strcmp(strVal(linitial((List *) object)), "aq_data") == 0)
			return true;
	}
	return false;
}

/* The id of the queue with this owner view; 0: not an owner view. */
static int32
queue_of_view(Oid relation)
{
	Oid			schema = get_namespace_oid("aq_data", true);
	char	   *name;
	char	   *end;
	long		id;

	if (!OidIsValid(schema) || get_rel_namespace(relation) != schema || get_rel_relkind(relation) != RELKIND_VIEW ||
		!OidIsValid(get_extension_oid("pgaq", true)))
		return 0;
	name = get_rel_name(relation);
	id = name[0] == 'q' ? strtol(name + 1, &end, 10) : 0;
	return id > 0 && *end == '\0' ? (int32) id : 0;
}

/*
 * A role without privileges on the queue is told the queue's owner, but not
 * its name.
 */
static void
refuse(int32 id)
{
	AqQueue    *queue = aq_catalog_get_by_id(id, true);

	if (queue != NULL && !aq_privilege_allows(queue, AQ_RIGHT_ANY))
		ereport(ERROR,
				(errcode(ERRCODE_DEPENDENT_OBJECTS_STILL_EXIST),
				 errmsg("cannot drop an object on which a queue of role \"%s\" depends", GetUserNameFromId(queue->owner, false)),
				 errdetail("CASCADE does not drop queues."),
				 errhint("Ask that role, or a superuser, to drop the queue first.")));
	if (queue != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_DEPENDENT_OBJECTS_STILL_EXIST),
				 errmsg("cannot drop an object on which queue \"%s\" depends", queue->name),
				 errdetail("CASCADE does not drop queues."),
				 errhint("Drop the queue first, with aq.drop_queue, or reassign it with REASSIGN OWNED.")));
}

static void
guard_hook(ObjectAccessType access, Oid class, Oid object, int column, void *arg)
{
	int32		id;

	if (previous_hook)
		previous_hook(access, class, object, column, arg);
	if (access != OAT_DROP || class != RelationRelationId || column != 0 ||
		(((ObjectAccessDrop *) arg)->dropflags & PERFORM_DELETION_QUIETLY))
		return;
	id = queue_of_view(object);
	if (id != 0 && !means_us(aq_utility_command()))
		refuse(id);
}

void
aq_guard_init(void)
{
	previous_hook = object_access_hook;
	object_access_hook = guard_hook;
}
