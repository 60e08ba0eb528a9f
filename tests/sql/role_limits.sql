-- How many schedules and propagation schedules a role can have. What it can have of shared memory: tests/cluster/test_shares.py.
\pset format unaligned
\pset tuples_only on
CREATE ROLE regress_aq_eve;
SET pgaq.role_schedules = 2;
SELECT aq.create_queue('from1'), aq.create_queue('from2'), aq.create_queue('from3'), aq.create_queue('to1');
SELECT aq.grant_queue(q, 'regress_aq_eve', 'all') FROM unnest('{from1,from2,from3,to1}'::text[]) q;
SET ROLE regress_aq_eve;
SELECT aq.schedule('one', 'to1', '1', every => '1 day') > now(), aq.schedule('two', 'to1', '2', every => '1 day') > now();
SELECT t.error($$SELECT aq.schedule('three', 'to1', '3', every => '1 day')$$);
SELECT aq.schedule('two', 'to1', '2', every => '1 day', if_not_exists => true);
SELECT count(aq.create_propagation(q, 'to1')) FROM unnest('{from1,from2}'::text[]) q;
SELECT t.error($$SELECT aq.create_propagation('from3', 'to1')$$);
SELECT role, resource, used, role_limit, used_by_all, total, parameter FROM aq.role_usage WHERE resource IN ('schedules', 'propagations') ORDER BY 2;
-- what a link calls on the other side leaves a row for good
SELECT aq.propagation_begin(gen_random_uuid(), 1, 1, 0, 'to1') FROM generate_series(1, 2);
SELECT t.error($$SELECT aq.propagation_begin(gen_random_uuid(), 1, 1, 0, 'to1')$$);
SELECT used, role_limit FROM aq.role_usage WHERE resource = 'sources';
-- one that ends makes room; superusers have no limit
SELECT aq.unschedule('one'), aq.schedule('three', 'to1', '3', every => '1 day') > now();
RESET ROLE;
SELECT count(aq.schedule('more' || n, 'to1', '3', every => '1 day')) FROM generate_series(1, 3) n;
SELECT role, used, role_limit, used_by_all FROM aq.role_usage WHERE resource = 'schedules' ORDER BY role;
SELECT aq.unschedule(schedule_name) FROM aq.schedules;
DELETE FROM aq_internal.propagation_arrival;
SELECT aq.drop_propagation(q, 'to1') FROM unnest('{from1,from2}'::text[]) q;
SELECT aq.drop_queue(q, true) FROM unnest('{from1,from2,from3,to1}'::text[]) q;
RESET pgaq.role_schedules;
DROP ROLE regress_aq_eve;
