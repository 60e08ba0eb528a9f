-- The log of a console: a row in the transaction of what it speaks of, so neither is there without the other.

CREATE FUNCTION aq.log_action(action text, object text, number bigint DEFAULT NULL, detail text DEFAULT NULL)
RETURNS void LANGUAGE sql VOLATILE PARALLEL UNSAFE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
	-- rows that another transaction deletes are skipped: no session waits for it
	DELETE FROM aq_internal.action WHERE ctid IN (
		SELECT a.ctid FROM aq_internal.action a
		WHERE a.done_at < clock_timestamp() - interval '90 days'
			OR a.role = session_user AND a.done_at <= (
				SELECT b.done_at FROM aq_internal.action b WHERE b.role = session_user ORDER BY b.done_at DESC OFFSET 9999 LIMIT 1)
		FOR UPDATE SKIP LOCKED);
	INSERT INTO aq_internal.action (role, action, object, number, detail)
		VALUES (session_user, left(log_action.action, 100), left(log_action.object, 500), log_action.number, left(log_action.detail, 2000));
END;
COMMENT ON FUNCTION aq.log_action(text, text, bigint, text) IS
'Write what is done in this transaction to the log that aq.actions shows, as the role that has logged in.
action: what is done
object: the queue, schedule or message
number: how many messages it concerns
detail: arguments
pgaq console calls it. Rows older than 90 days are removed, and all but the newest 10,000 of a
role. Long texts are cut';
