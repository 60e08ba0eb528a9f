-- Package dbms_aq: enqueue and dequeue with Oracle's interface.
-- They are in C: src/oracle/packages.c, the options in oracle_options.c.

-- Records with named fields, for calls outside of PL/pgSQL.

CREATE FUNCTION dbms_aq.enqueue_options_t(visibility numeric DEFAULT NULL, relative_msgid uuid DEFAULT NULL,
	sequence_deviation numeric DEFAULT NULL, transformation text DEFAULT NULL, delivery_mode numeric DEFAULT NULL)
RETURNS dbms_aq.enqueue_options_t LANGUAGE c IMMUTABLE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'aq_record_of_arguments';
COMMENT ON FUNCTION dbms_aq.enqueue_options_t(numeric, uuid, numeric, text, numeric) IS
'Make a record of enqueue options; name the fields that you set';

CREATE FUNCTION dbms_aq.dequeue_options_t(consumer_name text DEFAULT NULL, dequeue_mode numeric DEFAULT NULL,
	navigation numeric DEFAULT NULL, visibility numeric DEFAULT NULL, wait numeric DEFAULT NULL, msgid uuid DEFAULT NULL,
	correlation text DEFAULT NULL, deq_condition text DEFAULT NULL, signature sys.aq$_sig_prop DEFAULT NULL,
	transformation text DEFAULT NULL, delivery_mode numeric DEFAULT NULL)
RETURNS dbms_aq.dequeue_options_t LANGUAGE c IMMUTABLE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'aq_record_of_arguments';
COMMENT ON FUNCTION dbms_aq.dequeue_options_t(text, numeric, numeric, numeric, numeric, uuid, text, text, sys.aq$_sig_prop,
	text, numeric) IS
'Make a record of dequeue options; name the fields that you set';

CREATE FUNCTION dbms_aq.message_properties_t(priority numeric DEFAULT NULL, delay numeric DEFAULT NULL,
	expiration numeric DEFAULT NULL, correlation text DEFAULT NULL, attempts numeric DEFAULT NULL,
	recipient_list dbms_aq.aq$_recipient_list_t DEFAULT NULL, exception_queue text DEFAULT NULL,
	enqueue_time timestamptz DEFAULT NULL, state numeric DEFAULT NULL, sender_id sys.aq$_agent DEFAULT NULL,
	original_msgid uuid DEFAULT NULL, signature sys.aq$_sig_prop DEFAULT NULL, transaction_group text DEFAULT NULL,
	user_property jsonb DEFAULT NULL, delivery_mode numeric DEFAULT NULL)
RETURNS dbms_aq.message_properties_t LANGUAGE c IMMUTABLE PARALLEL UNSAFE
AS 'MODULE_PATHNAME', 'aq_record_of_arguments';
COMMENT ON FUNCTION dbms_aq.message_properties_t(numeric, numeric, numeric, text, numeric, dbms_aq.aq$_recipient_list_t,
	text, timestamptz, numeric, sys.aq$_agent, uuid, sys.aq$_sig_prop, text, jsonb, numeric) IS
'Make a record of message properties; name the fields that you set';

-- For the packages' functions in SQL.

CREATE FUNCTION dbms_aq._queue(queue_name text) RETURNS text
LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_oracle_options_resolve';
COMMENT ON FUNCTION dbms_aq._queue(text) IS 'Internal: native name of a queue to dequeue from, or an error';

CREATE FUNCTION dbms_aq._delivery_mode(delivery_mode numeric) RETURNS text
LANGUAGE c IMMUTABLE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_oracle_options_delivery_mode';
COMMENT ON FUNCTION dbms_aq._delivery_mode(numeric) IS 'Internal: what schema aq calls it; null: persistent';

-- enqueue

CREATE PROCEDURE dbms_aq.enqueue(queue_name text, enqueue_options dbms_aq.enqueue_options_t,
	message_properties dbms_aq.message_properties_t, payload text, OUT msgid uuid)
LANGUAGE c AS 'MODULE_PATHNAME', 'aq_packages_enqueue';
COMMENT ON PROCEDURE dbms_aq.enqueue(text, dbms_aq.enqueue_options_t, dbms_aq.message_properties_t, text) IS
'Enqueue a message; a payload given as text, or as a literal, is read by the payload type''s input function';

CREATE PROCEDURE dbms_aq.enqueue(queue_name text, enqueue_options dbms_aq.enqueue_options_t,
	message_properties dbms_aq.message_properties_t, payload anyelement, OUT msgid uuid)
LANGUAGE c AS 'MODULE_PATHNAME', 'aq_packages_enqueue';
COMMENT ON PROCEDURE dbms_aq.enqueue(text, dbms_aq.enqueue_options_t, dbms_aq.message_properties_t, anyelement) IS
'Enqueue a message; the payload is of the queue''s payload type, or what the transformation takes';

CREATE PROCEDURE dbms_aq.enqueue_array(queue_name text, enqueue_options dbms_aq.enqueue_options_t, array_size numeric,
	message_properties_array dbms_aq.message_properties_array_t, payload_array anyarray,
	OUT msgid_array dbms_aq.msgid_array_t, OUT error_array dbms_aq.error_array_t, OUT enqueued integer)
LANGUAGE c AS 'MODULE_PATHNAME', 'aq_packages_enqueue_array';
COMMENT ON PROCEDURE dbms_aq.enqueue_array(text, dbms_aq.enqueue_options_t, numeric, dbms_aq.message_properties_array_t, anyarray,
	dbms_aq.msgid_array_t, dbms_aq.error_array_t, integer) IS
'Enqueue the first array_size messages of the arrays; enqueued is what Oracle''s function returns';

-- Without error_array. The input arguments of the two forms must differ in a type, so the list is an array here, and a compatible array in
-- dequeue_array.
CREATE PROCEDURE dbms_aq.enqueue_array(queue_name text, enqueue_options dbms_aq.enqueue_options_t, array_size numeric,
	message_properties_array dbms_aq.message_properties_t[], payload_array anyarray,
	OUT msgid_array dbms_aq.msgid_array_t, OUT enqueued integer)
LANGUAGE c AS 'MODULE_PATHNAME', 'aq_packages_enqueue_array';
COMMENT ON PROCEDURE dbms_aq.enqueue_array(text, dbms_aq.enqueue_options_t, numeric, dbms_aq.message_properties_t[], anyarray,
	dbms_aq.msgid_array_t, integer) IS 'The same without error_array, which is never filled';

-- A helper executes these for calls with immediate visibility: each is one call in its own transaction, without a wait.

CREATE FUNCTION sys._put_message(queue_name text, options dbms_aq.enqueue_options_t, properties dbms_aq.message_properties_t,
	payload anyelement) RETURNS uuid
LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_packages_put_message';
COMMENT ON FUNCTION sys._put_message(text, dbms_aq.enqueue_options_t, dbms_aq.message_properties_t, anyelement) IS
'Internal: dbms_aq.enqueue in the current transaction';

CREATE FUNCTION sys._put_messages(queue_name text, options dbms_aq.enqueue_options_t, array_size numeric,
	properties dbms_aq.message_properties_t[], payloads anyarray) RETURNS uuid[]
LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_packages_put_messages';
COMMENT ON FUNCTION sys._put_messages(text, dbms_aq.enqueue_options_t, numeric, dbms_aq.message_properties_t[], anyarray) IS
'Internal: dbms_aq.enqueue_array in the current transaction';

CREATE FUNCTION sys._take_message(queue_name text, options dbms_aq.dequeue_options_t, as_type anyelement,
	OUT message_properties dbms_aq.message_properties_t, OUT payload anyelement, OUT msgid uuid)
LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_packages_take_message';
COMMENT ON FUNCTION sys._take_message(text, dbms_aq.dequeue_options_t, anyelement) IS
'Internal: dbms_aq.dequeue in the current transaction; msgid is null when there is no message';

CREATE FUNCTION sys._take_messages(queue_name text, options dbms_aq.dequeue_options_t, array_size numeric, as_type anyarray,
	OUT message_properties dbms_aq.message_properties_array_t, OUT payload anyarray, OUT msgid dbms_aq.msgid_array_t)
LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_packages_take_messages';
COMMENT ON FUNCTION sys._take_messages(text, dbms_aq.dequeue_options_t, numeric, anyarray) IS
'Internal: dbms_aq.dequeue_array in the current transaction; msgid is null when there is no message';

-- dequeue

CREATE PROCEDURE dbms_aq.dequeue(queue_name text, dequeue_options dbms_aq.dequeue_options_t,
	OUT message_properties dbms_aq.message_properties_t, INOUT payload anyelement, OUT msgid uuid)
LANGUAGE c AS 'MODULE_PATHNAME', 'aq_packages_dequeue';
COMMENT ON PROCEDURE dbms_aq.dequeue(text, dbms_aq.dequeue_options_t, anyelement) IS
'Dequeue a message; payload goes in as a null of the payload''s type. Waits without holding a snapshot, unless in a function';

CREATE PROCEDURE dbms_aq.dequeue(queue_name text, dequeue_options dbms_aq.dequeue_options_t,
	OUT message_properties dbms_aq.message_properties_t, INOUT payload text, OUT msgid uuid)
LANGUAGE c AS 'MODULE_PATHNAME', 'aq_packages_dequeue';
COMMENT ON PROCEDURE dbms_aq.dequeue(text, dbms_aq.dequeue_options_t, text) IS
'Dequeue a message, its payload as text, whatever the payload''s type';

CREATE PROCEDURE dbms_aq.dequeue(queue_name text, dequeue_options dbms_aq.dequeue_options_t,
	OUT message_properties dbms_aq.message_properties_t, INOUT payload varchar, OUT msgid uuid)
LANGUAGE c AS 'MODULE_PATHNAME', 'aq_packages_dequeue';
COMMENT ON PROCEDURE dbms_aq.dequeue(text, dbms_aq.dequeue_options_t, varchar) IS
'Dequeue a message, its payload as text; for variables and drivers that say varchar';

CREATE PROCEDURE dbms_aq.dequeue_array(queue_name text, dequeue_options dbms_aq.dequeue_options_t, array_size numeric,
	OUT message_properties_array dbms_aq.message_properties_array_t, INOUT payload_array anyarray,
	OUT msgid_array dbms_aq.msgid_array_t, OUT error_array dbms_aq.error_array_t, OUT dequeued integer)
LANGUAGE c AS 'MODULE_PATHNAME', 'aq_packages_dequeue_array';
COMMENT ON PROCEDURE dbms_aq.dequeue_array(text, dbms_aq.dequeue_options_t, numeric, dbms_aq.message_properties_array_t, anyarray,
	dbms_aq.msgid_array_t, dbms_aq.error_array_t, integer) IS
'Dequeue 1 to array_size messages; waits only while there is none. dequeued is what Oracle''s function returns';

CREATE PROCEDURE dbms_aq.dequeue_array(queue_name text, dequeue_options dbms_aq.dequeue_options_t, array_size numeric,
	OUT message_properties_array dbms_aq.message_properties_array_t, INOUT payload_array anycompatiblearray,
	OUT msgid_array dbms_aq.msgid_array_t, OUT dequeued integer)
LANGUAGE c AS 'MODULE_PATHNAME', 'aq_packages_dequeue_array';
COMMENT ON PROCEDURE dbms_aq.dequeue_array(text, dbms_aq.dequeue_options_t, numeric, dbms_aq.message_properties_array_t, anycompatiblearray,
	dbms_aq.msgid_array_t, integer) IS 'The same without error_array, which is never filled';

-- The same without an error if there is no message, so that the client's transaction is not aborted.

CREATE PROCEDURE dbms_aq.try_dequeue(queue_name text, dequeue_options dbms_aq.dequeue_options_t,
	OUT message_properties dbms_aq.message_properties_t, INOUT payload anyelement, OUT msgid uuid)
LANGUAGE c AS 'MODULE_PATHNAME', 'aq_packages_try_dequeue';
COMMENT ON PROCEDURE dbms_aq.try_dequeue(text, dbms_aq.dequeue_options_t, anyelement) IS
'As dequeue, but returns nulls instead of raising ORA-25228 when there is no message within the wait time';

CREATE PROCEDURE dbms_aq.try_dequeue(queue_name text, dequeue_options dbms_aq.dequeue_options_t,
	OUT message_properties dbms_aq.message_properties_t, INOUT payload text, OUT msgid uuid)
LANGUAGE c AS 'MODULE_PATHNAME', 'aq_packages_try_dequeue';
COMMENT ON PROCEDURE dbms_aq.try_dequeue(text, dbms_aq.dequeue_options_t, text) IS
'As dequeue, but returns nulls instead of raising ORA-25228 when there is no message within the wait time';

CREATE PROCEDURE dbms_aq.try_dequeue(queue_name text, dequeue_options dbms_aq.dequeue_options_t,
	OUT message_properties dbms_aq.message_properties_t, INOUT payload varchar, OUT msgid uuid)
LANGUAGE c AS 'MODULE_PATHNAME', 'aq_packages_try_dequeue';
COMMENT ON PROCEDURE dbms_aq.try_dequeue(text, dbms_aq.dequeue_options_t, varchar) IS
'As dequeue, but returns nulls instead of raising ORA-25228 when there is no message within the wait time';

CREATE PROCEDURE dbms_aq.try_dequeue_array(queue_name text, dequeue_options dbms_aq.dequeue_options_t, array_size numeric,
	OUT message_properties_array dbms_aq.message_properties_array_t, INOUT payload_array anyarray,
	OUT msgid_array dbms_aq.msgid_array_t, OUT dequeued integer)
LANGUAGE c AS 'MODULE_PATHNAME', 'aq_packages_try_dequeue_array';
COMMENT ON PROCEDURE dbms_aq.try_dequeue_array(text, dbms_aq.dequeue_options_t, numeric, anyarray) IS
'As dequeue_array, but dequeued is 0 instead of ORA-25228 when there is no message within the wait time';

-- listen

CREATE PROCEDURE dbms_aq.listen(agent_list dbms_aq.aq$_agent_list_t, OUT agent sys.aq$_agent)
LANGUAGE c AS 'MODULE_PATHNAME', 'aq_packages_listen';
COMMENT ON PROCEDURE dbms_aq.listen(dbms_aq.aq$_agent_list_t) IS
'Wait forever until one of the agents has a message; the first in list order is returned. Consumes nothing';
CREATE PROCEDURE dbms_aq.listen(agent_list dbms_aq.aq$_agent_list_t, wait numeric, OUT agent sys.aq$_agent)
LANGUAGE c AS 'MODULE_PATHNAME', 'aq_packages_listen';
COMMENT ON PROCEDURE dbms_aq.listen(dbms_aq.aq$_agent_list_t, numeric) IS
'Wait up to this number of seconds until one of the agents has a message; the first in list order is returned. Consumes nothing';
CREATE PROCEDURE dbms_aq.listen(agent_list dbms_aq.aq$_agent_list_t, wait numeric, listen_delivery_mode numeric,
	OUT agent sys.aq$_agent, OUT message_delivery_mode integer)
LANGUAGE c AS 'MODULE_PATHNAME', 'aq_packages_listen';
COMMENT ON PROCEDURE dbms_aq.listen(dbms_aq.aq$_agent_list_t, numeric, numeric) IS
'Wait until one of the agents has a message of this delivery mode; the first in list order is returned. Consumes nothing';

CREATE PROCEDURE dbms_aq.try_listen(agent_list dbms_aq.aq$_agent_list_t, wait numeric, OUT agent sys.aq$_agent)
LANGUAGE c AS 'MODULE_PATHNAME', 'aq_packages_try_listen';
COMMENT ON PROCEDURE dbms_aq.try_listen(dbms_aq.aq$_agent_list_t, numeric) IS
'As listen, but returns a null agent instead of raising ORA-25254 when there is no message within the wait time';
