-- dbms_application_info: what a session says of itself, and where it is seen.
\pset null null
\pset format unaligned
CALL dbms_application_info.read_module(null, null);
CALL dbms_application_info.set_module('orders', 'pay');
CALL dbms_application_info.set_client_info('till 7');
CALL dbms_application_info.read_module(null, null);
CALL dbms_application_info.read_client_info(null);
CALL dbms_application_info.set_action('ship');
SELECT module, action, client_info FROM sys."v$session" WHERE pid = pg_backend_pid();
-- not a part of the transaction
BEGIN; CALL dbms_application_info.set_action('gone'); ROLLBACK;
SELECT module, action FROM sys."v$session" WHERE pid = pg_backend_pid();
-- cut off between characters; null empties
CALL dbms_application_info.set_module(repeat('ä', 40), null);
SELECT module = repeat('ä', 31) AS cut, action FROM sys."v$session" WHERE pid = pg_backend_pid();
SET application_name = 'a program';
CALL dbms_application_info.set_module(null, null);
SELECT program, module, action, status, type, active, attached, operation FROM sys."v$session" WHERE pid = pg_backend_pid();
RESET application_name;
-- anybody may say something, and only pg_monitor may look
CREATE ROLE regress_aq_info;
SET ROLE regress_aq_info;
CALL dbms_application_info.set_module('m', 'a');
SELECT * FROM t.error($$ SELECT count(*) FROM sys."v$session" $$);
RESET ROLE;
DROP ROLE regress_aq_info;
