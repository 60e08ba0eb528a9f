CALL aq_internal.make_view('aq', 'actions', 'What was changed through a console in the last 90 days: a role sees what it has done, members of pg_monitor see all',
	$$FROM aq_internal.action a WHERE a.role = session_user OR pg_has_role('pg_monitor', 'USAGE')$$, $$
	done_at = a.done_at | when
	role = a.role | role that had logged in
	action = a.action | what was done
	object = a.object | queue, schedule or message
	number = a.number | how many messages it concerned; null: none
	detail = a.detail | arguments
$$);
GRANT SELECT ON aq.actions TO PUBLIC;
