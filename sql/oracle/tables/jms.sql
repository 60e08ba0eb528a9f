-- Oracle's types of JMS messages. A message is an aq.jms_message, which is also what Java programs send and receive: the types are domains over it, so
-- that a variable of one of them is a payload without a conversion.

CREATE SCHEMA dbms_aqjms;
COMMENT ON SCHEMA dbms_aqjms IS 'Advanced Queuing: constants of Oracle''s JMS types';
CREATE SCHEMA dbms_jms_plsql;
COMMENT ON SCHEMA dbms_jms_plsql IS 'Advanced Queuing: types of values in Oracle''s JMS types';
GRANT USAGE ON SCHEMA dbms_aqjms, dbms_jms_plsql TO PUBLIC;

CREATE DOMAIN sys.aq$_jms_message AS aq.jms_message;
COMMENT ON DOMAIN sys.aq$_jms_message IS 'A JMS message of any kind';
CREATE DOMAIN sys.aq$_jms_text_message AS aq.jms_message CONSTRAINT is_a_text_message CHECK ((VALUE).type = 'text');
COMMENT ON DOMAIN sys.aq$_jms_text_message IS 'A text message of JMS';
CREATE DOMAIN sys.aq$_jms_bytes_message AS aq.jms_message CONSTRAINT is_a_bytes_message CHECK ((VALUE).type = 'bytes');
COMMENT ON DOMAIN sys.aq$_jms_bytes_message IS 'A bytes message of JMS';
CREATE DOMAIN sys.aq$_jms_map_message AS aq.jms_message CONSTRAINT is_a_map_message CHECK ((VALUE).type = 'map');
COMMENT ON DOMAIN sys.aq$_jms_map_message IS 'A map message of JMS';
CREATE DOMAIN sys.aq$_jms_stream_message AS aq.jms_message CONSTRAINT is_a_stream_message CHECK ((VALUE).type = 'stream');
COMMENT ON DOMAIN sys.aq$_jms_stream_message IS 'A stream message of JMS';
CREATE DOMAIN sys.aq$_jms_object_message AS aq.jms_message CONSTRAINT is_an_object_message CHECK ((VALUE).type = 'object');
COMMENT ON DOMAIN sys.aq$_jms_object_message IS 'An object message of JMS; its body is Java''s serial form';

CREATE TYPE sys.aq$_jms_userproperty AS (name text, type integer, str_value text, num_value numeric, java_type integer);
COMMENT ON TYPE sys.aq$_jms_userproperty IS 'A property of a JMS message';
COMMENT ON COLUMN sys.aq$_jms_userproperty.name IS 'its name';
COMMENT ON COLUMN sys.aq$_jms_userproperty.type IS '100: a string, 200: a number or boolean';
COMMENT ON COLUMN sys.aq$_jms_userproperty.str_value IS 'the value of a string';
COMMENT ON COLUMN sys.aq$_jms_userproperty.num_value IS 'the value of a number; of a boolean 1 or 0';
COMMENT ON COLUMN sys.aq$_jms_userproperty.java_type IS '20 boolean, 21 byte, 22 short, 23 int, 24 long, 25 float, 26 double, 27 String';
CREATE DOMAIN sys.aq$_jms_userproparray AS sys.aq$_jms_userproperty[];
COMMENT ON DOMAIN sys.aq$_jms_userproparray IS 'Properties of a JMS message';

CREATE TYPE sys.aq$_jms_header AS (replyto sys.aq$_agent, type text, userid text, appid text, groupid text, groupseq integer,
	properties sys.aq$_jms_userproparray);
COMMENT ON TYPE sys.aq$_jms_header IS 'Header and properties of a JMS message';
COMMENT ON COLUMN sys.aq$_jms_header.replyto IS 'JMSReplyTo: where to send an answer';
COMMENT ON COLUMN sys.aq$_jms_header.type IS 'JMSType: free text';
COMMENT ON COLUMN sys.aq$_jms_header.userid IS 'property JMSXUserID';
COMMENT ON COLUMN sys.aq$_jms_header.appid IS 'property JMSXAppID';
COMMENT ON COLUMN sys.aq$_jms_header.groupid IS 'property JMSXGroupID';
COMMENT ON COLUMN sys.aq$_jms_header.groupseq IS 'property JMSXGroupSeq';
COMMENT ON COLUMN sys.aq$_jms_header.properties IS 'all other properties';

CREATE TYPE sys.aq$_jms_value AS (type integer, num_val numeric, char_val text, text_val text, bytes_val bytea);
COMMENT ON TYPE sys.aq$_jms_value IS 'A value of a map or stream message';
COMMENT ON COLUMN sys.aq$_jms_value.type IS 'its type in Java: dbms_jms_plsql.data_type_...';
COMMENT ON COLUMN sys.aq$_jms_value.num_val IS 'a number; of a boolean 1 or 0';
COMMENT ON COLUMN sys.aq$_jms_value.char_val IS 'a character';
COMMENT ON COLUMN sys.aq$_jms_value.text_val IS 'a string';
COMMENT ON COLUMN sys.aq$_jms_value.bytes_val IS 'bytes';
CREATE DOMAIN sys.aq$_jms_namearray AS text[];
COMMENT ON DOMAIN sys.aq$_jms_namearray IS 'Names of the values of a map message';
CREATE TYPE sys.aq$_jms_exception AS (id numeric, exp_name text, err_msg text, stack text);
COMMENT ON TYPE sys.aq$_jms_exception IS 'An exception of Java in Oracle''s methods of JMS messages; not used';
COMMENT ON COLUMN sys.aq$_jms_exception.id IS 'not used';
COMMENT ON COLUMN sys.aq$_jms_exception.exp_name IS 'not used';
COMMENT ON COLUMN sys.aq$_jms_exception.err_msg IS 'not used';
COMMENT ON COLUMN sys.aq$_jms_exception.stack IS 'not used';
