/*
 * test_points.sql
 *	  The functions by which a test arms test points.  Not part of the extension:
 *	  a test runs this file in a database whose server loads a library that was
 *	  built with TEST_POINTS=1.  What they do is said in src/base/base.h.
 */
CREATE OR REPLACE FUNCTION aq.point_hold(name text)
RETURNS void LANGUAGE c STRICT VOLATILE AS 'pgaq', 'aq_point_hold';

CREATE OR REPLACE FUNCTION aq.point_release(name text)
RETURNS void LANGUAGE c STRICT VOLATILE AS 'pgaq', 'aq_point_release';

CREATE OR REPLACE FUNCTION aq.point_arm(name text, action text, skip integer DEFAULT 0)
RETURNS void LANGUAGE c STRICT VOLATILE AS 'pgaq', 'aq_point_arm';

CREATE OR REPLACE FUNCTION aq.point_reached(name text)
RETURNS bigint LANGUAGE c STRICT VOLATILE AS 'pgaq', 'aq_point_reached';

CREATE OR REPLACE FUNCTION aq.point_waiting(name text)
RETURNS bigint LANGUAGE c STRICT VOLATILE AS 'pgaq', 'aq_point_waiting';

CREATE OR REPLACE FUNCTION aq.point_await(name text, arrivals bigint DEFAULT 1, seconds integer DEFAULT 60)
RETURNS boolean LANGUAGE c STRICT VOLATILE AS 'pgaq', 'aq_point_await';

CREATE OR REPLACE FUNCTION aq.point_uninterrupted(name text)
RETURNS boolean LANGUAGE c STRICT VOLATILE AS 'pgaq', 'aq_point_uninterrupted';

CREATE OR REPLACE FUNCTION aq.point_reset()
RETURNS void LANGUAGE c STRICT VOLATILE AS 'pgaq', 'aq_point_reset';

/* Streams of links for tests: see src/link/link_test.c. */
CREATE OR REPLACE FUNCTION aq.link_test_changed()
RETURNS void LANGUAGE c STRICT VOLATILE AS 'pgaq', 'aq_link_test_changed';

CREATE OR REPLACE FUNCTION aq.link_test_wake()
RETURNS void LANGUAGE c STRICT VOLATILE AS 'pgaq', 'aq_link_test_wake';

/* What aq.check() is to find: by 1 makes it, -1 undoes it; see src/shard/checks/damage.c and where the others are. */
CREATE OR REPLACE FUNCTION aq.damage(queue_name text, what text, by integer)
RETURNS void LANGUAGE c STRICT VOLATILE AS 'pgaq', 'aq_damage';

CREATE OR REPLACE FUNCTION aq.damage_queue_table(queue_name text, what text, by integer)
RETURNS void LANGUAGE c STRICT VOLATILE AS 'pgaq', 'aq_classic_damage';

CREATE OR REPLACE FUNCTION aq.damage_latches(by integer)
RETURNS void LANGUAGE c STRICT VOLATILE AS 'pgaq', 'aq_sync_check_damage';

CREATE OR REPLACE FUNCTION aq.damage_stops(by integer)
RETURNS void LANGUAGE c STRICT VOLATILE AS 'pgaq', 'aq_jobs_damage_stops';

CREATE OR REPLACE FUNCTION aq.damage_entries(by integer)
RETURNS void LANGUAGE c STRICT VOLATILE AS 'pgaq', 'aq_waiters_damage';
