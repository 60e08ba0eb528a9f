-- Registrations for notification.

CREATE VIEW sys.dba_subscr_registrations AS
SELECT r.registration_id AS reg_id,
	coalesce(r.name, sys._oracle_quoted((SELECT q.queue_name FROM aq_internal.queue q WHERE q.queue_id = r.queue_id))
		|| coalesce(':' || sys._oracle_quoted_part(r.consumer), '')) AS subscription_name,
	r.callback AS location_name, r.role::oid AS "user#", r.context AS user_context, length(r.context) AS context_size,
	CASE r.namespace WHEN 'queue' THEN 'AQ' ELSE 'ANONYMOUS' END AS namespace, 'DEFAULT' AS presentation, '8.1.6' AS version,
	CASE r.status WHEN 'disabled' THEN 'DISABLED' ELSE 'DB REG' END AS status, NULL::jsonb AS any_context, 0 AS context_type,
	concat_ws(' ', CASE WHEN r.reliable THEN 'RELIABLE' END, CASE WHEN r.with_payload THEN 'PAYLOAD' END,
		CASE WHEN r.once THEN 'PURGE_ON_NTFN' END) AS qosflags,
	NULL::text AS payload_callback, r.expires_at AS timeout, r.created AS reg_time,
	CASE WHEN r.group_time IS NOT NULL THEN 'TIME' END AS ntfn_grouping_class, extract(epoch FROM r.group_time)::integer AS ntfn_grouping_value,
	upper(r.group_type) AS ntfn_grouping_type, r.group_start AS ntfn_grouping_start_time,
	CASE WHEN r.group_time IS NULL THEN NULL WHEN r.groups_left IS NULL THEN 'FOREVER' ELSE r.groups_left::text END AS ntfn_grouping_repeat_count
FROM aq_internal.registration r WHERE r.expires_at IS NULL OR r.expires_at > clock_timestamp();
COMMENT ON VIEW sys.dba_subscr_registrations IS 'All registrations for notification';
COMMENT ON COLUMN sys.dba_subscr_registrations.reg_id IS 'number';
COMMENT ON COLUMN sys.dba_subscr_registrations.subscription_name IS '"SCHEMA"."QUEUE", "SCHEMA"."QUEUE":"CONSUMER", or the name that is posted';
COMMENT ON COLUMN sys.dba_subscr_registrations.location_name IS 'what is called';
COMMENT ON COLUMN sys.dba_subscr_registrations."user#" IS 'OID of the role that registered';
COMMENT ON COLUMN sys.dba_subscr_registrations.user_context IS 'passed to the procedure';
COMMENT ON COLUMN sys.dba_subscr_registrations.context_size IS 'its length in bytes';
COMMENT ON COLUMN sys.dba_subscr_registrations.namespace IS 'AQ or ANONYMOUS';
COMMENT ON COLUMN sys.dba_subscr_registrations.presentation IS 'DEFAULT';
COMMENT ON COLUMN sys.dba_subscr_registrations.version IS '8.1.6';
COMMENT ON COLUMN sys.dba_subscr_registrations.status IS 'DB REG, or DISABLED: its calls have failed too often, see aq.registrations';
COMMENT ON COLUMN sys.dba_subscr_registrations.any_context IS 'null';
COMMENT ON COLUMN sys.dba_subscr_registrations.context_type IS '0';
COMMENT ON COLUMN sys.dba_subscr_registrations.qosflags IS 'RELIABLE, PAYLOAD, PURGE_ON_NTFN';
COMMENT ON COLUMN sys.dba_subscr_registrations.payload_callback IS 'null';
COMMENT ON COLUMN sys.dba_subscr_registrations.timeout IS 'when it ends; null: never';
COMMENT ON COLUMN sys.dba_subscr_registrations.reg_time IS 'when it was made';
COMMENT ON COLUMN sys.dba_subscr_registrations.ntfn_grouping_class IS 'TIME; null: no groups';
COMMENT ON COLUMN sys.dba_subscr_registrations.ntfn_grouping_value IS 'seconds of a group';
COMMENT ON COLUMN sys.dba_subscr_registrations.ntfn_grouping_type IS 'SUMMARY or LAST';
COMMENT ON COLUMN sys.dba_subscr_registrations.ntfn_grouping_start_time IS 'from when on groups are counted';
COMMENT ON COLUMN sys.dba_subscr_registrations.ntfn_grouping_repeat_count IS 'groups that are left, or FOREVER';
GRANT SELECT ON sys.dba_subscr_registrations TO aq_administrator_role;

CALL sys._make_variant('user_subscr_registrations', 'dba_subscr_registrations', 'Registrations for notification of the current role',
	$$pg_get_userbyid(d."user#") = current_user$$);
