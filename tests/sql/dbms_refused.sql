-- Subprograms of Oracle's that are not supported raise ORA-24205.
\pset format unaligned
\pset tuples_only on
SET search_path = ora, public;

SELECT t.error($$CALL dbms_aq.bind_agent(NULL)$$);
SELECT t.error($$CALL dbms_aq.unbind_agent(NULL)$$);
SELECT t.error($$CALL dbms_aqadm.create_aq_agent('x')$$);
SELECT t.error($$CALL dbms_aqadm.alter_aq_agent('x')$$);
SELECT t.error($$CALL dbms_aqadm.drop_aq_agent('x')$$);
SELECT t.error($$CALL dbms_aqadm.enable_db_access('x', 'x')$$);
SELECT t.error($$CALL dbms_aqadm.disable_db_access('x', 'x')$$);
SELECT t.error($$CALL dbms_aqadm.create_database_kafka_topic('x')$$);
SELECT t.error($$CALL dbms_aqadm.drop_database_kafka_topic('x')$$);
SELECT t.error($$CALL dbms_aqadm.add_eventstream('x', 1)$$);
SELECT t.error($$CALL dbms_aqadm.add_ltwt_subscriber('x', NULL)$$);
SELECT t.error($$CALL dbms_aqadm.grant_priv_for_rm_plan('x')$$);
SELECT t.error($$CALL dbms_aqadm.add_alias_to_ldap('a', 'cn=x')$$);
SELECT t.error($$CALL dbms_aqadm.del_alias_from_ldap('a')$$);
SELECT t.error($$CALL dbms_aqelm.set_mailhost('mail.example.com')$$);
SELECT t.error($$CALL dbms_aqelm.set_mailport(25)$$);
SELECT t.error($$CALL dbms_aqelm.set_sendfrom('aq@example.com')$$);
SELECT t.error($$CALL dbms_aqelm.set_proxy('proxy.example.com')$$);
SELECT t.error($$CALL dbms_aqelm.set_proxy('proxy.example.com', no_proxy_domains => 'example.com')$$);
