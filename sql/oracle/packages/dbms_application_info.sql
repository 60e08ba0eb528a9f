-- Package dbms_application_info: texts with which a program describes its work, for monitoring.
-- As in Oracle, they are not transactional.

CREATE SCHEMA dbms_application_info;
COMMENT ON SCHEMA dbms_application_info IS 'Advanced Queuing: Oracle''s package by which a program sets its module and action';
GRANT USAGE ON SCHEMA dbms_application_info TO PUBLIC;

CREATE PROCEDURE dbms_application_info.set_module(module_name text, action_name text)
LANGUAGE c AS 'MODULE_PATHNAME', 'aq_application_set_module';
COMMENT ON PROCEDURE dbms_application_info.set_module(text, text) IS
'Set the module and action of the session, shown in sys."v$session" and in the session history.
module_name: up to 63 bytes, longer text is truncated; null: none
action_name: the same';

CREATE PROCEDURE dbms_application_info.set_action(action_name text)
LANGUAGE c AS 'MODULE_PATHNAME', 'aq_application_set_action';
COMMENT ON PROCEDURE dbms_application_info.set_action(text) IS
'Set the action of the session. action_name: up to 63 bytes, longer text is truncated; null: none';

CREATE PROCEDURE dbms_application_info.set_client_info(client_info text)
LANGUAGE c AS 'MODULE_PATHNAME', 'aq_application_set_client_info';
COMMENT ON PROCEDURE dbms_application_info.set_client_info(text) IS
'Set the client info of the session. client_info: up to 63 bytes, longer text is truncated; null: none';

CREATE FUNCTION sys._application_words(OUT module_name text, OUT action_name text, OUT client_info text)
LANGUAGE c VOLATILE PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_application_words';
COMMENT ON FUNCTION sys._application_words() IS 'Internal: what this session has said of itself';

CREATE PROCEDURE dbms_application_info.read_module(OUT module_name text, OUT action_name text)
LANGUAGE sql SET search_path = pg_catalog, pg_temp SET pgaq.oracle_errors = on AS $$ SELECT w.module_name, w.action_name FROM sys._application_words() w $$;
COMMENT ON PROCEDURE dbms_application_info.read_module() IS 'What set_module and set_action have set in this session';

CREATE PROCEDURE dbms_application_info.read_client_info(OUT client_info text)
LANGUAGE sql SET search_path = pg_catalog, pg_temp SET pgaq.oracle_errors = on AS $$ SELECT w.client_info FROM sys._application_words() w $$;
COMMENT ON PROCEDURE dbms_application_info.read_client_info() IS 'What set_client_info has set in this session';
