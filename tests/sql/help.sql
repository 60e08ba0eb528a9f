-- aq.help and aq.version.
\pset format unaligned
\pset tuples_only on
SELECT aq.version() = format('pgaq %1$s (catalog %1$s) on PostgreSQL %2$s', extversion, current_setting('server_version')) FROM pg_extension WHERE extname = 'pgaq';
SELECT * FROM aq.help();
-- each function of a group exists, once or in several forms, with its description
SELECT g.subject, c FROM aq.help() g, string_to_table(g.description, ', ') c WHERE NOT EXISTS (SELECT FROM aq.help(g.subject) f WHERE f.call ~ ('\maq\.' || c || '\(') AND f.description <> '');
SELECT * FROM aq.help('leases');
SELECT * FROM aq.help('aq.cancel');
SELECT left(call, 60) FROM aq.help('dequeue');
SELECT call FROM aq.help('AQ_JMS.text()') UNION ALL SELECT call FROM aq.help('drop_queues') UNION ALL SELECT call FROM aq.help('aq.wait');
SELECT t.error($$SELECT * FROM aq.help('nothing')$$);
