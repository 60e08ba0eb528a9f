/*-------------------------------------------------------------------------
 *
 * oracle_options.c
 *	  Options, message properties and agents of Oracle's packages: reading,
 *	  checking, and making the properties of a message that was dequeued.
 *
 * The records are those of sql/oracle/tables/packages.sql.  A null field, and a
 * null record, mean the defaults; so does an empty text, as in Oracle.  Keep the
 * order of the checks: tests and programs know which of two errors comes first.
 *
 * Portions Copyright (c) 2026, the pgaq authors
 *
 *-------------------------------------------------------------------------
 */
#include "oracle/oracle_private.h"

#include "catalog/pg_collation.h"
#include "catalog/pg_type.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/numeric.h"
#include "utils/timestamp.h"

/* Oracle's values, see sql/oracle/packages/constants.sql */
#define VISIBILITY_IMMEDIATE 1
#define VISIBILITY_ON_COMMIT 2
#define DEVIATION_BEFORE 2
#define DEVIATION_TOP 3
#define MODE_REMOVE 3
#define NAVIGATION_NEXT_MESSAGE 3
#define STATE_READY 0
#define STATE_WAITING 1
#define STATE_EXPIRED 3

#define MAX_RECIPIENTS 1024

/* --- records ----------------------------------------------------------------------------- */

enum
{
	ENQ_VISIBILITY, ENQ_RELATIVE_MSGID, ENQ_DEVIATION, ENQ_TRANSFORMATION, ENQ_DELIVERY_MODE, ENQ_FIELDS
};

static const AqField enqueue_fields[ENQ_FIELDS] = {
	[ENQ_VISIBILITY] = {"visibility", INT4OID},
	[ENQ_RELATIVE_MSGID] = {"relative_msgid", UUIDOID},
	[ENQ_DEVIATION] = {"sequence_deviation", INT4OID},
	[ENQ_TRANSFORMATION] = {"transformation", TEXTOID},
	[ENQ_DELIVERY_MODE] = {"delivery_mode", INT4OID},
};

enum
{
	DEQ_CONSUMER, DEQ_MODE, DEQ_NAVIGATION, DEQ_VISIBILITY, DEQ_WAIT, DEQ_MSGID, DEQ_CORRELATION, DEQ_CONDITION,
	DEQ_TRANSFORMATION, DEQ_DELIVERY_MODE, DEQ_FIELDS
};

static const AqField dequeue_fields[DEQ_FIELDS] = {
	[DEQ_CONSUMER] = {"consumer_name", TEXTOID},
	[DEQ_MODE] = {"dequeue_mode", INT4OID},
	[DEQ_NAVIGATION] = {"navigation", INT4OID},
	[DEQ_VISIBILITY] = {"visibility", INT4OID},
	[DEQ_WAIT] = {"wait", INT4OID},
	[DEQ_MSGID] = {"msgid", UUIDOID},
	[DEQ_CORRELATION] = {"correlation", TEXTOID},
	[DEQ_CONDITION] = {"deq_condition", TEXTOID},
	[DEQ_TRANSFORMATION] = {"transformation", TEXTOID},
	[DEQ_DELIVERY_MODE] = {"delivery_mode", INT4OID},
};

enum
{
	MSG_PRIORITY, MSG_DELAY, MSG_EXPIRATION, MSG_CORRELATION, MSG_ATTEMPTS, MSG_RECIPIENTS, MSG_EXCEPTION_QUEUE,
	MSG_ENQUEUE_TIME, MSG_STATE, MSG_SENDER, MSG_ORIGINAL_MSGID, MSG_GROUP, MSG_USER_PROPERTY, MSG_DELIVERY_MODE,
	MSG_FIELDS
};

static const AqField property_fields[MSG_FIELDS] = {
	[MSG_PRIORITY] = {"priority", INT4OID},
	[MSG_DELAY] = {"delay", INT4OID},
	[MSG_EXPIRATION] = {"expiration", INT4OID},
	[MSG_CORRELATION] = {"correlation", TEXTOID},
	[MSG_ATTEMPTS] = {"attempts", INT4OID},
	[MSG_RECIPIENTS] = {"recipient_list", InvalidOid},
	[MSG_EXCEPTION_QUEUE] = {"exception_queue", TEXTOID},
	[MSG_ENQUEUE_TIME] = {"enqueue_time", TIMESTAMPTZOID},
	[MSG_STATE] = {"state", INT4OID},
	[MSG_SENDER] = {"sender_id", InvalidOid},
	[MSG_ORIGINAL_MSGID] = {"original_msgid", UUIDOID},
	[MSG_GROUP] = {"transaction_group", TEXTOID},
	[MSG_USER_PROPERTY] = {"user_property", JSONBOID},
	[MSG_DELIVERY_MODE] = {"delivery_mode", INT4OID},
};

enum
{
	AGENT_NAME, AGENT_ADDRESS, AGENT_PROTOCOL, AGENT_FIELDS
};

static const AqField agent_fields[AGENT_FIELDS] = {
	[AGENT_NAME] = {"name", TEXTOID},
	[AGENT_ADDRESS] = {"address", TEXTOID},
	[AGENT_PROTOCOL] = {"protocol", INT4OID},
};

static AqRecord enqueue_record = {.fields = enqueue_fields, .nfields = ENQ_FIELDS};
static AqRecord dequeue_record = {.fields = dequeue_fields, .nfields = DEQ_FIELDS};
static AqRecord property_record = {.fields = property_fields, .nfields = MSG_FIELDS};
static AqRecord agent_record = {.fields = agent_fields, .nfields = AGENT_FIELDS};

static int
int_of(NullableDatum field, int when_null)
{
	return field.isnull ? when_null : DatumGetInt32(field.value);
}

static char *
string_of(NullableDatum field)
{
	return field.isnull ? NULL : TextDatumGetCString(field.value);
}

static struct varlena *
varlena_of(NullableDatum field)
{
	return field.isnull ? NULL : PG_DETOAST_DATUM_PACKED(field.value);
}

/* NULL also when it is empty. */
static text *
text_of(NullableDatum field)
{
	text	   *value = (text *) varlena_of(field);

	return value != NULL && VARSIZE_ANY_EXHDR(value) == 0 ? NULL : value;
}

static char *
filled_string_of(NullableDatum field)
{
	text	   *value = text_of(field);

	return value == NULL ? NULL : text_to_cstring(value);
}

static NullableDatum
field_if(bool known, Datum value)
{
	return (NullableDatum) {.value = known ? value : (Datum) 0, .isnull = !known};
}

static NullableDatum
text_field(const char *string)
{
	return field_if(string != NULL, string != NULL ? CStringGetTextDatum(string) : 0);
}

/* --- what enqueue and dequeue have in common -------------------------------------------- */

/* The native name of a queue that the current role may use in this way.  AQ_RIGHT_CONSUMER: for some consumer. */
char *
aq_oracle_options_queue(const char *name, AqRight right)
{
	const char *privilege = right == AQ_RIGHT_ENQUEUE ? "enqueue" : "dequeue";
	char	   *native = name == NULL ? NULL : aq_names_native(name, right);
	char	   *schema;
	char	   *bare;

	if (native != NULL)
		return native;
	if (name == NULL || !aq_names_parse(name, &schema, &bare))
		ereport(ERROR,
				name == NULL ? aq_error(AQ_ERR_QUEUE_NAME_INVALID, "queue name must not be null")
				: aq_error(AQ_ERR_QUEUE_NAME_INVALID, "queue name \"%s\" is not valid", name),
				errhint("Specify [schema.]name; a part that is not an identifier must be in double quotes."));
	ereport(ERROR,
			aq_error(AQ_ERR_QUEUE_NOT_FOUND, "queue \"%s\" does not exist", name),
			errhint("Create it with dbms_aqadm, or ask its owner for the %s privilege (dbms_aqadm.grant_queue_privilege).",
					privilege));
}

/* Is it immediate? */
static bool
check_visibility(NullableDatum field)
{
	int			visibility = int_of(field, VISIBILITY_ON_COMMIT);

	if (visibility != VISIBILITY_IMMEDIATE && visibility != VISIBILITY_ON_COMMIT)
		ereport(ERROR,
				aq_error(AQ_ERR_VISIBILITY_INVALID, "visibility %d does not exist", visibility),
				errhint("Use dbms_aq.on_commit() or dbms_aq.immediate()."));
	return visibility == VISIBILITY_IMMEDIATE;
}

/* Buffered messages are not part of the caller's transaction. */
static void
check_immediate(bool immediate)
{
	if (!immediate)
		ereport(ERROR,
				aq_error(AQ_ERR_BUFFERED_VISIBILITY, "buffered messages require immediate visibility"),
				errhint("Set visibility to dbms_aq.immediate()."));
}

pg_noreturn static void
raise_delivery_mode(const char *given)
{
	ereport(ERROR,
			aq_error(AQ_ERR_DELIVERY_INVALID, "delivery mode %s does not exist", given),
			errhint("Use dbms_aq.persistent(), buffered() or persistent_or_buffered()."));
}

/* Oracle's numbers are ours. */
static int
check_delivery_mode(int mode)
{
	if (mode < AQ_PERSISTENT || mode > AQ_PERSISTENT_OR_BUFFERED)
		raise_delivery_mode(psprintf("%d", mode));
	return mode;
}

static char *
numeric_to_string(Datum number)
{
	return DatumGetCString(DirectFunctionCall1(numeric_out, number));
}

/* The same for a numeric argument. */
static int
check_numeric_delivery_mode(Datum number)
{
	double		mode = DatumGetFloat8(DirectFunctionCall1(numeric_float8_no_overflow, number));

	if (mode != AQ_PERSISTENT && mode != AQ_BUFFERED && mode != AQ_PERSISTENT_OR_BUFFERED)
		raise_delivery_mode(numeric_to_string(number));
	return (int) mode;
}

/* In microseconds; -1: no timeout.  given: the argument as text, for the error. */
static int64
check_wait(int seconds, const char *given)
{
	if (seconds < -1)
		ereport(ERROR,
				aq_error(AQ_ERR_WAIT_INVALID, "wait time %s is negative", given),
				errhint("Specify seconds, dbms_aq.no_wait() or dbms_aq.forever()."));
	return seconds < 0 ? -1 : seconds * USECS_PER_SEC;
}

/* --- agents ------------------------------------------------------------------------------- */

static AqOracleAgent
read_agent(Datum value, bool isnull)
{
	NullableDatum fields[AGENT_FIELDS];

	aq_record_read(&agent_record, value, isnull, fields);
	return (AqOracleAgent) {
		.name = string_of(fields[AGENT_NAME]),
		.address = string_of(fields[AGENT_ADDRESS]),
		.protocol = int_of(fields[AGENT_PROTOCOL], 0),
		.has_protocol = !fields[AGENT_PROTOCOL].isnull,
	};
}

static Datum
make_agent(Oid type, const AqOracleAgent *agent)
{
	NullableDatum fields[AGENT_FIELDS] = {
		[AGENT_NAME] = text_field(agent->name),
		[AGENT_ADDRESS] = text_field(agent->address),
		[AGENT_PROTOCOL] = field_if(agent->has_protocol, Int32GetDatum(agent->protocol)),
	};

	return aq_record_make(&agent_record, type, fields);
}

/* The elements of a list of agents, none of which is missing. */
static int
read_agents(ArrayType *list, AqErrorId error, const char *what, AqOracleAgent **agents)
{
	Datum	   *values;
	bool	   *nulls;
	int			n;

	aq_args_elements(list, &values, &nulls, &n);
	*agents = palloc(n * sizeof(AqOracleAgent) + 1);
	for (int i = 0; i < n; i++)
		if (nulls[i] && ARR_NDIM(list) == 1)
			ereport(ERROR,
					aq_error(error, "the %s list has a gap: element %d is null", what, ARR_LBOUND(list)[0] + i),
					errhint("Lists are arrays: number their elements 1, 2, 3, ..."));
	for (int i = 0; i < n; i++)
		(*agents)[i] = read_agent(values[i], nulls[i]);
	return n;
}

/* The native name of an agent. */
static char *
native_agent_name(const char *agent_name)
{
	char	   *schema;
	char	   *name;

	if (!aq_names_parse(agent_name, &schema, &name) || schema != NULL)
		ereport(ERROR,
				aq_error(AQ_ERR_AGENT_NAME_INVALID, "agent name \"%s\" is not an identifier", agent_name),
				errhint("Names begin with a letter, followed by letters, digits, _, $ and #; "
						"others must be in double quotes."));
	if (strlen(name) >= AQ_MAX_NAME)
		ereport(ERROR,
				aq_error(AQ_ERR_NAME_TOO_LONG, "agent name \"%s\" is too long", name),
				errhint("Names have at most %d bytes.", AQ_MAX_NAME - 1));
	if (pg_strncasecmp(name, "aq$_", 4) == 0)
		ereport(ERROR,
				aq_error(AQ_ERR_AGENT_NAME_RESERVED, "agent name \"%s\" is reserved", agent_name),
				errhint("Names must not begin with AQ$_."));
	return name;
}

/* [schema.]name, folded; NULL: malformed. */
static char *
folded(const char *string)
{
	char	   *schema;
	char	   *name;

	if (!aq_names_parse(string, &schema, &name))
		return NULL;
	return schema != NULL ? psprintf("%s.%s", schema, name) : name;
}

/* The native address of a queue of another database: queue@server.  NULL: malformed, or none. */
static char *
remote_address(const char *address)
{
	const char *at = strchr(address, '@');
	char	   *queue = at != NULL ? folded(pnstrdup(address, at - address)) : NULL;
	char	   *server = at != NULL ? folded(at + 1) : NULL;

	return queue != NULL && server != NULL ? psprintf("%s@%s", queue, server) : NULL;
}

/* The native name of the queue at an address; it must exist, if it is in this database. */
static char *
native_address(const char *address)
{
	char	   *native = aq_names_native(address, AQ_RIGHT_ANY);
	char	   *schema;
	char	   *name;

	if (native == NULL)
		native = remote_address(address);
	if (native != NULL)
		return native;
	if (!aq_names_parse(address, &schema, &name))
		ereport(ERROR,
				aq_error(AQ_ERR_AGENT_ADDRESS_INVALID, "agent address \"%s\" is not valid", address),
				errhint("An address is [schema.]queue, or [schema.]queue@server."));
	ereport(ERROR,
			aq_error(AQ_ERR_AGENT_ADDRESS_INVALID, "agent address \"%s\" does not name a queue that can be used", address));
}

/* The native name of the consumer of this queue that stands for the agent, which can be at another queue. */
static char *
agent_consumer(const char *queue, const AqOracleAgent *agent)
{
	char	   *address = agent->address != NULL ? native_address(agent->address) : NULL;
	char	   *name;

	if (agent->protocol != 0)
		ereport(ERROR,
				aq_error(AQ_ERR_FEATURE_UNSUPPORTED, "protocol %d of agent \"%s\" is not supported",
						 agent->protocol, agent->name != NULL ? agent->name : agent->address),
				errhint("Leave the protocol null."));
	if (address != NULL && strcmp(address, queue) != 0)
	{
		name = aq_address_consumer(agent->name != NULL ? native_agent_name(agent->name) : NULL, address);
		if (strlen(name) >= AQ_MAX_NAME)
			ereport(ERROR,
					aq_error(AQ_ERR_NAME_TOO_LONG, "agent \"%s\" is too long", name),
					errhint("Name and address have at most %d bytes together.", AQ_MAX_NAME - 5));
		return name;
	}
	if (agent->name == NULL)
		ereport(ERROR,
				aq_error(AQ_ERR_AGENT_NAME_INVALID, "the agent has no name"),
				errhint("Specify the name of a consumer."));
	return native_agent_name(agent->name);
}

/* sys._check_agent(queue, agent): the consumer's native name, for dbms_aqadm */
PG_FUNCTION_INFO_V1(aq_oracle_options_agent);
Datum
aq_oracle_options_agent(PG_FUNCTION_ARGS)
{
	AqOracleAgent agent = read_agent(PG_GETARG_DATUM(1), PG_ARGISNULL(1));

	PG_RETURN_TEXT_P(cstring_to_text(agent_consumer(text_to_cstring(PG_GETARG_TEXT_PP(0)), &agent)));
}

/* --- enqueue ------------------------------------------------------------------------------- */

static List *
read_recipients(const char *queue, NullableDatum field)
{
	List	   *names = NIL;
	ArrayType  *list;
	AqOracleAgent *agents;
	int			n;

	if (field.isnull)
		return NIL;
	list = DatumGetArrayTypeP(field.value);
	n = ArrayGetNItems(ARR_NDIM(list), ARR_DIMS(list));
	if (n > MAX_RECIPIENTS)
		ereport(ERROR,
				aq_error(AQ_ERR_RECIPIENT_LIMIT, "a recipient list has at most %d agents, not %d", MAX_RECIPIENTS, n));
	n = read_agents(list, AQ_ERR_RECIPIENT_EMPTY, "recipient", &agents);
	for (int i = 0; i < n; i++)
	{
		if (agents[i].name == NULL && agents[i].address == NULL)
			ereport(ERROR,
					aq_error(AQ_ERR_RECIPIENT_EMPTY, "recipient %d of the list has neither name nor address", i + 1));
		names = lappend(names, agent_consumer(queue, &agents[i]));
	}
	return names;
}

static void
read_enqueue_options(Datum value, bool isnull, AqOraclePut *put)
{
	NullableDatum o[ENQ_FIELDS];
	int			deviation;
	int			delivery;

	aq_record_read(&enqueue_record, value, isnull, o);
	put->immediate = check_visibility(o[ENQ_VISIBILITY]);
	put->call.on_commit = !put->immediate;
	deviation = int_of(o[ENQ_DEVIATION], 0);
	if (!o[ENQ_DEVIATION].isnull && deviation != DEVIATION_BEFORE && deviation != DEVIATION_TOP)
		ereport(ERROR,
				aq_error(AQ_ERR_DEVIATION_INVALID, "sequence deviation %d does not exist", deviation),
				errhint("Use dbms_aq.before(), dbms_aq.top() or null."));
	if (deviation == DEVIATION_BEFORE && o[ENQ_RELATIVE_MSGID].isnull)
		ereport(ERROR,
				aq_error(AQ_ERR_RELATIVE_MSGID_MISSING, "sequence deviation before requires a message"),
				errhint("Specify its id as relative_msgid."));
	if (deviation == DEVIATION_BEFORE)
	{
		put->call.deviation = "before";
		put->call.relative_msgid = DatumGetUUIDP(o[ENQ_RELATIVE_MSGID].value);
	}
	else if (deviation == DEVIATION_TOP)
		put->call.deviation = "top";
	delivery = int_of(o[ENQ_DELIVERY_MODE], AQ_PERSISTENT);
	if (delivery == AQ_BUFFERED)
	{
		check_immediate(put->immediate);
		put->call.delivery_mode = "buffered";
	}
	else
		(void) check_delivery_mode(delivery);
	put->transformation = filled_string_of(o[ENQ_TRANSFORMATION]);
}

static void
read_properties(Datum value, bool isnull, AqOraclePut *put)
{
	NullableDatum p[MSG_FIELDS];
	NullableDatum sender[AGENT_FIELDS];
	char	   *exception_queue;
	int			delay,
				expiration;

	aq_record_read(&property_record, value, isnull, p);
	put->call.priority = int_of(p[MSG_PRIORITY], AQ_DEFAULT_PRIORITY);
	put->call.default_priority = p[MSG_PRIORITY].isnull;
	put->call.default_delay = p[MSG_DELAY].isnull;
	put->call.default_expiration = p[MSG_EXPIRATION].isnull;
	delay = int_of(p[MSG_DELAY], 0);
	if (delay < 0)
		ereport(ERROR,
				aq_error(AQ_ERR_DELAY_INVALID, "delay %d is negative", delay),
				errhint("Specify seconds, or dbms_aq.no_delay()."));
	if (delay > 0)
	{
		put->delay = (Interval) {.time = delay * USECS_PER_SEC};
		put->call.delay = &put->delay;
	}
	expiration = int_of(p[MSG_EXPIRATION], -1);
	if (expiration < -1)
		ereport(ERROR,
				aq_error(AQ_ERR_EXPIRATION_INVALID, "expiration %d is negative", expiration),
				errhint("Specify seconds, or dbms_aq.never()."));
	if (expiration >= 0)
	{
		/* schema aq does not accept 0 */
		put->expiration = (Interval) {.time = expiration == 0 ? 1 : expiration * USECS_PER_SEC};
		put->call.expiration = &put->expiration;
	}
	put->call.correlation = (struct varlena *) text_of(p[MSG_CORRELATION]);
	put->call.recipients = read_recipients(put->call.queue, p[MSG_RECIPIENTS]);
	aq_record_read(&agent_record, p[MSG_SENDER].value, p[MSG_SENDER].isnull, sender);
	put->call.sender = varlena_of(sender[AGENT_NAME]);
	exception_queue = filled_string_of(p[MSG_EXCEPTION_QUEUE]);
	if (exception_queue != NULL)
		put->call.exception_queue = (struct varlena *)
			cstring_to_text(aq_oracle_options_queue(exception_queue, AQ_RIGHT_ENQUEUE));
	put->call.properties = varlena_of(p[MSG_USER_PROPERTY]);
}

/* put->call lacks the payload's type afterwards, and points into *put. */
void
aq_oracle_options_put(const char *queue, NullableDatum options, NullableDatum properties, AqOraclePut *put)
{
	memset(put, 0, sizeof(AqOraclePut));
	put->call.command = "aq.enqueue()";
	put->call.queue = aq_oracle_options_queue(queue, AQ_RIGHT_ENQUEUE);
	read_enqueue_options(options.value, options.isnull, put);
	read_properties(properties.value, properties.isnull, put);
}

/* Do these enqueue options ask for immediate visibility?  Checks nothing. */
bool
aq_oracle_options_put_is_immediate(NullableDatum options)
{
	NullableDatum o[ENQ_FIELDS];

	aq_record_read(&enqueue_record, options.value, options.isnull, o);
	return int_of(o[ENQ_VISIBILITY], VISIBILITY_ON_COMMIT) == VISIBILITY_IMMEDIATE;
}

/* --- dequeue ------------------------------------------------------------------------------- */

static AqMode
check_mode(NullableDatum field)
{
	static const AqMode modes[] = {AQ_MODE_BROWSE, AQ_MODE_LOCKED, AQ_MODE_REMOVE, AQ_MODE_REMOVE_NODATA};
	int			mode = int_of(field, MODE_REMOVE);

	if (mode < 1 || mode > lengthof(modes))
		ereport(ERROR,
				aq_error(AQ_ERR_DEQUEUE_MODE_INVALID, "dequeue mode %d does not exist", mode),
				errhint("Use dbms_aq.browse(), locked(), remove() or remove_nodata()."));
	return modes[mode - 1];
}

static const char *
check_navigation(NullableDatum field)
{
	static const char *const navigations[] = {
		"first_message", "next_transaction", "next_message", "first_message_multi_group", "next_message_multi_group"
	};
	int			navigation = int_of(field, NAVIGATION_NEXT_MESSAGE);

	if (navigation < 1 || navigation > lengthof(navigations))
		ereport(ERROR,
				aq_error(AQ_ERR_NAVIGATION_INVALID, "navigation %d does not exist", navigation),
				errhint("Use dbms_aq.first_message(), next_message() or next_transaction()."));
	return navigations[navigation - 1];
}

/* The consumer, and what its subscription says. */
static void
read_consumer(char *consumer_name, AqOracleTake *take)
{
	AqQueue    *queue;
	AqConsumer *consumer;

	if (consumer_name == NULL)
		return;
	take->consumer = aq_names_bare(consumer_name);
	queue = aq_catalog_get_for(take->queue, take->consumer, 0);
	if (queue->exception)
		ereport(ERROR,
				aq_error(AQ_ERR_EXCEPTION_CONSUMER, "queue \"%s\" is an exception queue, which has no consumers",
						 take->queue),
				errhint("Leave consumer_name null."));
	consumer = aq_catalog_consumer(queue, take->consumer);
	if (consumer != NULL && consumer->transformation != NULL)
		take->transformation = aq_transformation_of_subscriber(take->queue, pstrdup(consumer->transformation),
															   consumer->transformation_role);
}

void
aq_oracle_options_take(const char *queue, NullableDatum options, AqOracleTake *take)
{
	NullableDatum o[DEQ_FIELDS];
	char	   *own_transformation;

	memset(take, 0, sizeof(AqOracleTake));
	take->queue = aq_oracle_options_queue(queue, AQ_RIGHT_CONSUMER);
	aq_record_read(&dequeue_record, options.value, options.isnull, o);
	take->mode = check_mode(o[DEQ_MODE]);
	take->navigation = check_navigation(o[DEQ_NAVIGATION]);
	/* a browse takes nothing */
	take->immediate = check_visibility(o[DEQ_VISIBILITY]) && take->mode != AQ_MODE_BROWSE;
	take->delivery = check_delivery_mode(int_of(o[DEQ_DELIVERY_MODE], AQ_PERSISTENT));
	if (take->delivery != AQ_PERSISTENT && take->mode != AQ_MODE_BROWSE)
		check_immediate(take->immediate);
	take->timeout_us = check_wait(int_of(o[DEQ_WAIT], -1), psprintf("%d", int_of(o[DEQ_WAIT], -1)));
	take->id = o[DEQ_MSGID].isnull ? NULL : DatumGetUUIDP(o[DEQ_MSGID].value);
	take->correlation = text_of(o[DEQ_CORRELATION]);
	take->condition = text_of(o[DEQ_CONDITION]);
	if (take->id != NULL && (take->correlation != NULL || take->condition != NULL))
		ereport(ERROR,
				aq_error(AQ_ERR_MSGID_NOT_ALONE, "msgid cannot be combined with correlation or deq_condition"),
				errhint("A message id names exactly one message: leave the others null."));
	own_transformation = filled_string_of(o[DEQ_TRANSFORMATION]);
	read_consumer(filled_string_of(o[DEQ_CONSUMER]), take);
	/* the call's own comes first */
	take->restricted = own_transformation == NULL;
	if (own_transformation != NULL)
		take->transformation = own_transformation;
}

/* Whole seconds, as far as an integer goes. */
static Datum
seconds_between(TimestampTz from, TimestampTz to)
{
	int64		us = to - from;
	int64		seconds = (us + (us < 0 ? -1 : 1) * (USECS_PER_SEC / 2)) / USECS_PER_SEC;

	return Int32GetDatum((int32) Min(Max(seconds, PG_INT32_MIN), PG_INT32_MAX));
}

static int
state_of(const AqMessage *m)
{
	if (m->state != STATE_READY)
		return m->state;
	/* from an exception queue; a message that has only an original id has come by propagation */
	if (m->original_id != NULL && m->dead_letter != NULL)
		return STATE_EXPIRED;
	return m->ready_at > GetCurrentTimestamp() ? STATE_WAITING : STATE_READY;
}

/* dbms_aq.message_properties_t of a message; delivery: its mode. */
Datum
aq_oracle_options_properties(Oid type, const AqMessage *m, int delivery)
{
	NullableDatum p[MSG_FIELDS];

	for (int i = 0; i < MSG_FIELDS; i++)
		p[i] = field_if(false, 0);
	p[MSG_PRIORITY] = field_if(true, Int32GetDatum(m->priority));
	p[MSG_DELAY] = field_if(true, m->ready_at == 0 ? Int32GetDatum(0) : seconds_between(m->enqueue_time, m->ready_at));
	p[MSG_EXPIRATION] = field_if(true, m->expires_at == 0 ? Int32GetDatum(-1)
								 : seconds_between(m->ready_at != 0 ? m->ready_at : m->enqueue_time, m->expires_at));
	p[MSG_CORRELATION] = field_if(m->correlation != NULL, PointerGetDatum(m->correlation));
	p[MSG_ATTEMPTS] = field_if(true, Int32GetDatum(m->attempts));
	if (m->exception_queue != NULL)
		p[MSG_EXCEPTION_QUEUE] = text_field(aq_names_oracle(text_to_cstring((text *) m->exception_queue),
															DEFAULT_COLLATION_OID));
	p[MSG_ENQUEUE_TIME] = field_if(true, TimestampTzGetDatum(m->enqueue_time));
	p[MSG_STATE] = field_if(true, Int32GetDatum(state_of(m)));
	if (m->sender != NULL)
	{
		AqOracleAgent sender = {.name = text_to_cstring((text *) m->sender)};

		p[MSG_SENDER] = field_if(true, make_agent(aq_record_field_type(&property_record, type, MSG_SENDER), &sender));
	}
	p[MSG_ORIGINAL_MSGID] = field_if(m->original_id != NULL, UUIDPGetDatum(m->original_id));
	p[MSG_USER_PROPERTY] = field_if(m->properties != NULL, PointerGetDatum(m->properties));
	p[MSG_GROUP] = text_field(m->group == 0 ? NULL : psprintf(INT64_FORMAT, m->group));
	p[MSG_DELIVERY_MODE] = field_if(true, Int32GetDatum(delivery));
	return aq_record_make(&property_record, type, p);
}

/* --- listen -------------------------------------------------------------------------------- */

/* The queue and consumer of an agent, which no agent before it has. */
static void
read_target(AqOracleListen *listen, int i, const AqOracleAgent *agent)
{
	AqQueue    *queue;
	char	   *native,
			   *consumer;

	if (agent->address == NULL || strchr(agent->address, '@') != NULL || agent->protocol != 0)
		ereport(ERROR,
				aq_error(AQ_ERR_LISTEN_ADDRESS, "agent %d of the list names no local queue", i + 1),
				errhint("The address is [schema.]queue."));
	native = aq_oracle_options_queue(agent->address, AQ_RIGHT_CONSUMER);
	consumer = agent->name == NULL ? NULL : aq_names_bare(agent->name);
	queue = aq_catalog_get(native, AQ_RIGHT_ANY);
	if (!queue->dequeue_enabled)
		ereport(ERROR,
				aq_error(AQ_ERR_LISTEN_DISABLED, "queue \"%s\" is stopped for dequeue", native),
				errhint("Start it with dbms_aqadm.start_queue."));
	if (queue->multi && consumer == NULL)
		ereport(ERROR,
				aq_error(AQ_ERR_LISTEN_CONSUMER_MISSING, "queue \"%s\" has multiple consumers: name one", native),
				errhint("Set the agent's name to the consumer's name."));
	if (!queue->multi && consumer != NULL)
		ereport(ERROR,
				aq_error(AQ_ERR_LISTEN_ARGUMENT, "queue \"%s\" has a single consumer, which has no name", native),
				errhint("Leave the agent's name null."));
	for (int j = 0; j < i; j++)
		if (strcmp(listen->queues[j], native) == 0 &&
			(consumer == NULL || listen->consumers[j] == NULL ? consumer == listen->consumers[j]
			 : strcmp(listen->consumers[j], consumer) == 0))
			ereport(ERROR,
					aq_error(AQ_ERR_LISTEN_DUPLICATE, "queue \"%s\" is in the list twice for the same consumer", native));
	listen->queues[i] = native;
	listen->consumers[i] = consumer;
}

/* list: sys.aq$_agent[]; wait and mode: numeric */
void
aq_oracle_options_listen(NullableDatum list, NullableDatum wait, NullableDatum mode, AqOracleListen *listen)
{
	ArrayType  *array = list.isnull ? NULL : DatumGetArrayTypeP(list.value);

	if (array == NULL || ArrayGetNItems(ARR_NDIM(array), ARR_DIMS(array)) == 0)
		ereport(ERROR,
				aq_error(AQ_ERR_ARGUMENT_MISSING, "agent_list must not be empty"),
				errhint("Pass an agent for each queue and consumer."));
	listen->delivery = mode.isnull ? AQ_PERSISTENT : check_numeric_delivery_mode(mode.value);
	listen->timeout_us = wait.isnull ? -1 : check_wait(DatumGetInt32(DirectFunctionCall1(numeric_int4, wait.value)),
													   numeric_to_string(wait.value));
	listen->n = read_agents(array, AQ_ERR_LISTEN_ADDRESS, "agent", &listen->agents);
	listen->queues = palloc0(listen->n * sizeof(char *));
	listen->consumers = palloc0(listen->n * sizeof(char *));
	for (int i = 0; i < listen->n; i++)
		read_target(listen, i, &listen->agents[i]);
}

/* The agent with this number, its name in Oracle's spelling. */
Datum
aq_oracle_options_found_agent(const AqOracleListen *listen, int number, Oid type)
{
	AqOracleAgent agent = listen->agents[number];
	char	   *consumer = listen->consumers[number];

	agent.name = consumer == NULL || consumer[0] == '\0' ? NULL : aq_names_oracle_case(consumer, DEFAULT_COLLATION_OID);
	return make_agent(type, &agent);
}

/* --- for the packages' functions in SQL ------------------------------------------------------ */

/* dbms_aq._queue(name): the native name of a queue to dequeue from */
PG_FUNCTION_INFO_V1(aq_oracle_options_resolve);
Datum
aq_oracle_options_resolve(PG_FUNCTION_ARGS)
{
	char	   *name = PG_ARGISNULL(0) ? NULL : text_to_cstring(PG_GETARG_TEXT_PP(0));

	aq_session_require_preload();
	PG_RETURN_TEXT_P(cstring_to_text(aq_oracle_options_queue(name, AQ_RIGHT_CONSUMER)));
}

/* dbms_aq._delivery_mode(number): what schema aq calls it; null: persistent */
PG_FUNCTION_INFO_V1(aq_oracle_options_delivery_mode);
Datum
aq_oracle_options_delivery_mode(PG_FUNCTION_ARGS)
{
	int			mode = PG_ARGISNULL(0) ? AQ_PERSISTENT : check_numeric_delivery_mode(PG_GETARG_DATUM(0));

	if (mode == AQ_PERSISTENT)
		PG_RETURN_NULL();
	PG_RETURN_TEXT_P(cstring_to_text(mode == AQ_BUFFERED ? "buffered" : "persistent_or_buffered"));
}
