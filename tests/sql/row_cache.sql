-- The dictionary cache: properties of the database, names of queues, rights.
SELECT column_name FROM information_schema.columns WHERE table_schema = 'sys' AND table_name = 'v$rowcache' ORDER BY ordinal_position;
SELECT "cache#", parameter, type, fixed, fastgets, scans FROM sys."v$rowcache" ORDER BY 1;
CREATE VIEW props AS SELECT gets, getmisses, usage, flushes, modifications FROM sys."v$rowcache" WHERE parameter = 'dc_props';

-- one get for each property, whatever the query wants
SELECT parameter FROM sys.nls_database_parameters ORDER BY 1;
SELECT count(*) AS properties, count(DISTINCT property_name) AS names, count(property_value) AS vals FROM sys.database_properties \gset
SELECT :properties = :names AND :properties = :vals AS complete, :properties > 20 AS many;
SELECT gets, getmisses FROM props \gset before_
SELECT value FROM sys.nls_database_parameters WHERE parameter = 'NLS_CHARACTERSET';
SELECT value FROM sys.nls_database_parameters WHERE parameter = 'NLS_CHARACTERSET';
SELECT gets - :before_gets = 2 * :properties AS gets_of_two, getmisses - :before_getmisses AS misses, usage = :properties AS usage FROM props;

-- a change, and one that is rolled back, also to a savepoint
SELECT aq.set_property('NLS_SORT', 'GERMAN');
SELECT value FROM sys.nls_database_parameters WHERE parameter = 'NLS_SORT';
BEGIN;
SELECT aq.set_property('NLS_SORT', 'FRENCH');
SELECT value FROM sys.nls_database_parameters WHERE parameter = 'NLS_SORT';
SAVEPOINT a;
UPDATE aq_internal.property SET value = 'DANISH';
SELECT value FROM sys.nls_database_parameters WHERE parameter = 'NLS_SORT';
ROLLBACK TO a;
SELECT value FROM sys.nls_database_parameters WHERE parameter = 'NLS_SORT';
ROLLBACK;
SELECT value FROM sys.nls_database_parameters WHERE parameter = 'NLS_SORT';
TRUNCATE aq_internal.property;
SELECT value FROM sys.nls_database_parameters WHERE parameter = 'NLS_SORT';
INSERT INTO aq_internal.property VALUES ('NLS_SORT', 'SWEDISH');
SELECT value FROM sys.nls_database_parameters WHERE parameter = 'NLS_SORT';
SELECT aq.set_property('NLS_SORT', NULL);
SELECT value FROM sys.nls_database_parameters WHERE parameter = 'NLS_SORT';
SELECT gets, getmisses FROM props \gset before_
SELECT value FROM sys.nls_database_parameters WHERE parameter = 'NLS_SORT';
SELECT getmisses - :before_getmisses AS misses FROM props;
SELECT aq.set_property('NLS_NOTHING', 'x');
SELECT aq.set_property('NLS_SORT', '');
SET ROLE pg_monitor;
SELECT aq.set_property('NLS_SORT', 'POLISH');
SELECT value FROM sys.nls_database_parameters WHERE parameter = 'NLS_SORT';
RESET ROLE;

-- names that are no queue's are read once
CREATE VIEW objects AS SELECT gets, getmisses FROM sys."v$rowcache" WHERE parameter = 'dc_objects';
SELECT aq.enqueue('rowed', '1');
SELECT gets, getmisses FROM objects \gset before_
SELECT aq.enqueue('rowed', '1');
SELECT gets - :before_gets AS gets, getmisses - :before_getmisses AS misses FROM objects;
SELECT aq.create_queue('rowed');
SELECT aq.enqueue('rowed', '1') IS NOT NULL AS there;
BEGIN;
SELECT aq.drop_queue('rowed', force => true);
SELECT aq.create_queue('rowed');
SELECT count(*) FROM aq.dequeue('rowed');
ROLLBACK;
SELECT count(*) FROM aq.dequeue('rowed');
SELECT aq.alter_queue('rowed', new_name => 'renamed');
SELECT count(*) FROM aq.dequeue('rowed');
SELECT count(*) FROM aq.dequeue('renamed');

-- rights: asked for each use when nothing is pinned
CREATE ROLE regress_rowed;
SET pgaq.session_pins = off;
CREATE VIEW users AS SELECT gets, getmisses, modifications FROM sys."v$rowcache" WHERE parameter = 'dc_users';
SELECT modifications FROM users \gset first_
SET ROLE regress_rowed;
SELECT count(*) FROM aq.dequeue('renamed');
RESET ROLE;
SELECT aq.grant_queue('renamed', 'regress_rowed', 'dequeue');
SET ROLE regress_rowed;
SELECT count(*) FROM aq.dequeue('renamed');
RESET ROLE;
SELECT gets, getmisses FROM users \gset before_
SET ROLE regress_rowed;
SELECT count(*) FROM aq.dequeue('renamed');
RESET ROLE;
SELECT gets > :before_gets AS asked, getmisses - :before_getmisses AS misses FROM users;
SELECT format('aq_data.q%s', queue_id) AS anchor FROM aq_internal.queue WHERE queue_name = 'renamed' \gset
REVOKE DELETE ON :anchor FROM regress_rowed;
SET ROLE regress_rowed;
SELECT count(*) FROM aq.dequeue('renamed');
RESET ROLE;
BEGIN;
GRANT DELETE ON :anchor TO PUBLIC;
SET ROLE regress_rowed;
SELECT count(*) FROM aq.dequeue('renamed');
ROLLBACK;
SET ROLE regress_rowed;
SELECT count(*) FROM aq.dequeue('renamed');
RESET ROLE;
SELECT aq.alter_queue('renamed', new_owner => 'regress_rowed');
SET ROLE regress_rowed;
SELECT count(*) FROM aq.dequeue('renamed');
RESET ROLE;
SELECT modifications - :first_modifications AS modifications FROM users;
RESET pgaq.session_pins;

SELECT aq.drop_queue('renamed', force => true);
DROP VIEW props, objects, users;
DROP ROLE regress_rowed;
