package io.github.pgaq.jms.sql;

import io.github.pgaq.jms.store.QueueDescription;
import io.github.pgaq.jms.store.Subscription;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;

/** Queues, subscribers and claims: what is found by its name. */
final class Names {

    /** SQLSTATE: undefined object. */
    private static final String UNDEFINED = "42704";

    /** SQLSTATE: undefined table. */
    private static final String UNDEFINED_TABLE = "42P01";

    /** SQLSTATE: undefined schema. */
    private static final String UNDEFINED_SCHEMA = "3F000";

    /** SQLSTATE: object not in prerequisite state. */
    private static final String NOT_READY = "55000";

    private static final int ATTEMPTS = 5;

    /** Raises an error if the extension is older than 0.2.0, which has no schema aq_jms. */
    private static final String DESCRIBE = "SELECT q.queue_name, q.multiple_consumers, q.payload_type::text, "
            + "coalesce(q.max_retries, -1), q.may_enqueue FROM aq.queues q "
            + "WHERE q.queue_name = ? AND 'aq_jms'::regnamespace IS NOT NULL";

    private static final String SUBSCRIBE = "SELECT aq.subscribe(?, ?, rule => ?)";

    private static final String SUBSCRIBE_TEMPORARILY =
            "SELECT aq.subscribe(?, ?, rule => ?, if_not_exists => true, temporary => true)";

    private static final String UNSUBSCRIBE = "SELECT aq.unsubscribe(?, ?)";

    /** A rule of version 0.1.0 has the deprecated names of functions, and is the same rule. */
    private static final String SUBSCRIPTION = "SELECT s.queue_name, s.consumer, "
            + "regexp_replace(s.rule, '\\maq\\.jms_(?=(number|compare|calculate|negate)\\()', 'aq_jms.', 'g') "
            + "FROM aq.subscribers s WHERE s.consumer = ? AND s.kind = 'subscriber'";

    private static final String CREATE = "SELECT aq.create_temporary_queue('aq.jms_message', ?)";

    private static final String DROP = "SELECT aq.drop_queue(?, force => true)";

    /** The key of a claim: documented, so that other clients and administrators can find it in pg_locks. */
    private static final String KEY = "(hashtextextended('pgaq.jms:' || ?, 0))";

    private static final String CLAIM = "SELECT pg_try_advisory_lock" + KEY;

    private static final String CLAIM_SHARED = "SELECT pg_try_advisory_lock_shared" + KEY;

    private static final String CLAIM_TEMPORARY = "SELECT aq_jms.claim(?, ?, ?)";

    private static final String UNCLAIM_TEMPORARY = "SELECT aq_jms.unclaim(?)";

    private static final String UNCLAIM = "SELECT pg_advisory_unlock" + KEY;

    private static final String UNCLAIM_SHARED = "SELECT pg_advisory_unlock_shared" + KEY;

    /** A connection that ends meanwhile is no error. */
    private static final String END_CLAIMANTS = "SELECT count(pg_terminate_backend(pid, 10000)) FROM pg_locks "
            + "WHERE locktype = 'advisory' AND objsubid = 1 AND granted AND pid <> pg_backend_pid() "
            + "AND database = (SELECT oid FROM pg_database WHERE datname = current_database()) "
            + "AND (classid::bigint << 32 | objid::bigint) = " + KEY;

    /** A claim; one that was granted twice, as the server counts it, is in the list twice. */
    private record Claim(String name, boolean shared) {}

    private final Statements statements;
    private final List<Claim> claims = new ArrayList<>();
    private final Set<String> temporary = new HashSet<>();
    private final Set<String> claimedTemporary = new HashSet<>();

    Names(Statements statements) {
        this.statements = statements;
    }

    QueueDescription describe(String queue) throws SQLException {
        try {
            return findQueue(queue);
        } catch (SQLException e) {
            if (UNDEFINED_TABLE.equals(e.getSQLState())) {
                throw new SQLException(
                        "extension pgaq is not installed in this database: run CREATE EXTENSION pgaq",
                        UNDEFINED_TABLE,
                        e);
            }
            if (UNDEFINED_SCHEMA.equals(e.getSQLState())) {
                throw new SQLException(
                        "extension pgaq in this database is older than the provider:"
                                + " run ALTER EXTENSION pgaq UPDATE",
                        UNDEFINED_SCHEMA,
                        e);
            }
            throw e;
        }
    }

    private QueueDescription findQueue(String queue) throws SQLException {
        PreparedStatement statement = statements.get(DESCRIBE);
        statement.setString(1, queue);
        try (ResultSet row = statement.executeQuery()) {
            if (!row.next()) {
                throw new SQLException(
                        "queue \"" + queue + "\" does not exist, or the role has no privilege on it", UNDEFINED);
            }
            return new QueueDescription(
                    row.getString(1), row.getBoolean(2), row.getString(3), row.getInt(4), row.getBoolean(5));
        }
    }

    void subscribe(String topic, String subscriber, String rule, boolean durable) throws SQLException {
        run(durable ? SUBSCRIBE : SUBSCRIBE_TEMPORARILY, topic, subscriber, rule);
    }

    void unsubscribe(String topic, String subscriber) throws SQLException {
        run(UNSUBSCRIBE, topic, subscriber);
    }

    List<Subscription> subscriptions(String subscriber) throws SQLException {
        for (int attempt = 1; ; attempt++) {
            try {
                return findSubscriptions(subscriber);
            } catch (SQLException e) {
                // the view reads all queues, and another one may be dropped meanwhile
                if (!UNDEFINED.equals(e.getSQLState()) || attempt == ATTEMPTS || !statements.isAlone()) {
                    throw e;
                }
            }
        }
    }

    private List<Subscription> findSubscriptions(String subscriber) throws SQLException {
        PreparedStatement statement = statements.get(SUBSCRIPTION);
        statement.setString(1, subscriber);
        List<Subscription> found = new ArrayList<>();
        try (ResultSet row = statement.executeQuery()) {
            while (row.next()) {
                found.add(new Subscription(row.getString(1), row.getString(2), row.getString(3)));
            }
        }
        return found;
    }

    String createTemporary(boolean topic) throws SQLException {
        PreparedStatement statement = statements.get(CREATE);
        statement.setBoolean(1, topic);
        try (ResultSet row = statement.executeQuery()) {
            row.next();
            String name = row.getString(1);
            temporary.add(name);
            return name;
        }
    }

    void dropTemporary(String queue) throws SQLException {
        run(DROP, queue);
        temporary.remove(queue);
    }

    boolean claim(String name, boolean shared) throws SQLException {
        PreparedStatement statement = statements.get(shared ? CLAIM_SHARED : CLAIM);
        statement.setString(1, name);
        try (ResultSet row = statement.executeQuery()) {
            row.next();
            boolean granted = row.getBoolean(1);
            if (granted) {
                claims.add(new Claim(name, shared));
            }
            return granted;
        }
    }

    List<String> claimTemporary(String queue, long first, int count) throws SQLException {
        PreparedStatement statement = statements.get(CLAIM_TEMPORARY);
        statement.setString(1, queue);
        statement.setLong(2, first);
        statement.setInt(3, count);
        try (ResultSet row = statement.executeQuery()) {
            row.next();
            List<String> claimed = List.of((String[]) row.getArray(1).getArray());
            claimedTemporary.addAll(claimed);
            return claimed;
        }
    }

    void unclaimTemporary(String name) throws SQLException {
        run(UNCLAIM_TEMPORARY, name);
        claimedTemporary.remove(name);
    }

    void unclaim(String name, boolean shared) throws SQLException {
        if (claims.remove(new Claim(name, shared))) {
            run(shared ? UNCLAIM_SHARED : UNCLAIM, name);
        }
    }

    void endClaimants(String name) throws SQLException {
        PreparedStatement statement = statements.get(END_CLAIMANTS);
        statement.setString(1, name);
        for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
            try (ResultSet row = statement.executeQuery()) {
                row.next();
                if (row.getInt(1) == 0) {
                    return;
                }
            }
        }
        throw new SQLException("connections with the claim \"" + name + "\" do not end", NOT_READY);
    }

    /** Gives up what belongs to the connection, which may serve another client after this. */
    void close() throws SQLException {
        for (String queue : Set.copyOf(temporary)) {
            dropTemporary(queue);
        }
        for (String name : Set.copyOf(claimedTemporary)) {
            unclaimTemporary(name);
        }
        for (Claim claim : List.copyOf(claims)) {
            unclaim(claim.name(), claim.shared());
        }
    }

    private void run(String sql, String... arguments) throws SQLException {
        PreparedStatement statement = statements.get(sql);
        for (int i = 0; i < arguments.length; i++) {
            statement.setString(i + 1, arguments[i]);
        }
        SqlStore.run(statement);
    }
}
