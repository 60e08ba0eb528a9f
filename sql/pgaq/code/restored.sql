-- Notifies the worker of rows of queues that a restore has inserted.

CREATE FUNCTION aq_internal.queues_restored() RETURNS trigger LANGUAGE c PARALLEL UNSAFE AS 'MODULE_PATHNAME', 'aq_restored_trigger';
COMMENT ON FUNCTION aq_internal.queues_restored() IS 'Internal: queues were restored from a dump';
REVOKE EXECUTE ON FUNCTION aq_internal.queues_restored() FROM PUBLIC;
CREATE TRIGGER restored AFTER INSERT ON aq_internal.queue FOR EACH STATEMENT EXECUTE FUNCTION aq_internal.queues_restored();
