package io.github.pgaq.jms;

import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;

/**
 * Administration of queues and topics: each method calls a function of the extension on a JDBC connection, as part of
 * its transaction if it is in one.
 *
 * <pre>{@code
 * try (Connection connection = dataSource.getConnection()) {
 *     PgaqAdmin.createQueue(connection, "orders", new PgaqAdmin.Settings().maxRetries(10));
 *     PgaqAdmin.grant(connection, "orders", "shop", PgaqAdmin.Privilege.ENQUEUE, PgaqAdmin.Privilege.DEQUEUE);
 * }
 * }</pre>
 *
 * <p>The name of a queue has no schema, and a dot in it is an ordinary character. Creating a queue needs the right to
 * execute the function {@code aq.create_queue}; the other methods are for the owner of the queue.
 */
public final class PgaqAdmin {

    /** The payload type of queues for Jakarta Messaging. */
    static final String PAYLOAD_TYPE = "aq.jms_message";

    /** Rights on a queue or topic. */
    public enum Privilege {
        /** To send. */
        ENQUEUE,
        /** To receive from a queue, and from any subscription of a topic. */
        DEQUEUE,
        /** To add subscriptions to a topic and to remove them. */
        SUBSCRIBE
    }

    /** Settings of a new queue or topic. What is not set has the default of the server. */
    public static final class Settings {
        private final Map<String, Object> values = new LinkedHashMap<>();

        /** Makes settings that are all defaults. */
        public Settings() {}

        /** Failed deliveries until a message goes to the exception queue, 255 at most; -1: no limit. */
        public Settings maxRetries(int maxRetries) {
            return set("max_retries", maxRetries < 0 ? null : maxRetries);
        }

        /** Time from the first failed delivery to the next attempt. */
        public Settings retryDelay(Duration delay) {
            return set("retry_delay", delay);
        }

        /** Factor by which the delay grows with each further failed delivery; 1: it does not grow. */
        public Settings retryDelayFactor(double factor) {
            return set("retry_delay_factor", factor);
        }

        /** Limit of the growing delay. */
        public Settings retryDelayMax(Duration delay) {
            return set("retry_delay_max", delay);
        }

        /** Time for which consumed messages remain visible. */
        public Settings retention(Duration retention) {
            return set("retention", retention);
        }

        /** Name of the exception queue; {@code none}: failed messages are dropped. */
        public Settings exceptionQueue(String name) {
            return set("exception_queue", name);
        }

        /** Number of shards, 1 to 32. */
        public Settings shards(int shards) {
            return set("shards", shards);
        }

        /** A comment. */
        public Settings comment(String comment) {
            return set("comment", comment);
        }

        /** Does nothing if a queue of this name exists, whatever its settings. */
        public Settings ifNotExists() {
            return set("if_not_exists", true);
        }

        private Settings set(String name, Object value) {
            values.put(name, value);
            return this;
        }
    }

    private PgaqAdmin() {}

    /**
     * Creates a queue with the server's default settings.
     *
     * @return its name as the server keeps it
     */
    public static String createQueue(Connection connection, String name) throws SQLException {
        return createQueue(connection, name, new Settings());
    }

    /**
     * Creates a queue.
     *
     * @return its name as the server keeps it
     */
    public static String createQueue(Connection connection, String name, Settings settings) throws SQLException {
        return create(connection, name, false, settings);
    }

    /**
     * Creates a topic with the server's default settings.
     *
     * @return its name as the server keeps it
     */
    public static String createTopic(Connection connection, String name) throws SQLException {
        return createTopic(connection, name, new Settings());
    }

    /**
     * Creates a topic.
     *
     * @return its name as the server keeps it
     */
    public static String createTopic(Connection connection, String name, Settings settings) throws SQLException {
        return create(connection, name, true, settings);
    }

    private static String create(Connection connection, String name, boolean topic, Settings settings)
            throws SQLException {
        StringBuilder sql = new StringBuilder("SELECT aq.create_queue(?, payload_type => '")
                .append(PAYLOAD_TYPE)
                .append("', multiple_consumers => ")
                .append(topic);
        List<Object> arguments = new ArrayList<>();
        arguments.add(name);
        settings.values.forEach((setting, value) -> {
            sql.append(", ").append(setting).append(" => ").append(value instanceof Duration ? "?::interval" : "?");
            arguments.add(value instanceof Duration d ? d.toString() : value);
        });
        return call(connection, sql.append(')').toString(), String.class, arguments.toArray());
    }

    /**
     * Drops a queue or topic and the exception queue that was made for it. Waits for transactions that use it.
     *
     * @param force whether to drop it even if it has messages
     */
    public static void drop(Connection connection, String name, boolean force) throws SQLException {
        call(connection, "SELECT aq.drop_queue(?, ?)", Object.class, name, force);
    }

    /** Allows sending and receiving again. */
    public static void start(Connection connection, String name) throws SQLException {
        call(connection, "SELECT aq.start_queue(?)", Object.class, name);
    }

    /**
     * Refuses sending and receiving.
     *
     * @param send whether to refuse sending
     * @param receive whether to refuse receiving
     */
    public static void stop(Connection connection, String name, boolean send, boolean receive) throws SQLException {
        call(connection, "SELECT aq.stop_queue(?, ?, ?)", Object.class, name, send, receive);
    }

    /**
     * Grants privileges on a queue or topic.
     *
     * @param role the role; {@code PUBLIC}: all roles
     * @param privileges which privileges; none given: all
     */
    public static void grant(Connection connection, String name, String role, Privilege... privileges)
            throws SQLException {
        call(connection, "SELECT aq.grant_queue(?, ?, ?)", Object.class, name, role, list(privileges));
    }

    /**
     * Revokes privileges on a queue or topic.
     *
     * @param role the role; {@code PUBLIC}: what was granted to all roles
     * @param privileges which privileges; none given: all
     */
    public static void revoke(Connection connection, String name, String role, Privilege... privileges)
            throws SQLException {
        call(connection, "SELECT aq.revoke_queue(?, ?, ?)", Object.class, name, role, list(privileges));
    }

    private static String list(Privilege... privileges) {
        List<String> names = new ArrayList<>();
        for (Privilege privilege : privileges) {
            names.add(privilege.name().toLowerCase(Locale.ROOT));
        }
        return names.isEmpty() ? "all" : String.join(", ", names);
    }

    /**
     * Grants the right to receive from one subscription of a topic.
     *
     * @param subscription its name in the server: {@code CLIENTID.NAME}, or {@code NAME} if it is shared and the
     *     connections have no client ID
     */
    public static void grantSubscription(Connection connection, String topic, String subscription, String role)
            throws SQLException {
        call(connection, "SELECT aq.grant_consumer(?, ?, ?)", Object.class, topic, subscription, role);
    }

    /** Revokes what {@link #grantSubscription} has granted. */
    public static void revokeSubscription(Connection connection, String topic, String subscription, String role)
            throws SQLException {
        call(connection, "SELECT aq.revoke_consumer(?, ?, ?)", Object.class, topic, subscription, role);
    }

    /**
     * Removes all messages, except those that a consumer holds now.
     *
     * @return how many were removed; a message of a topic counts once for each subscription
     */
    public static long purge(Connection connection, String name) throws SQLException {
        return purge(connection, name, null, null);
    }

    /**
     * Removes messages, except those that a consumer holds now.
     *
     * @param subscription of this subscription of a topic, by its name in the server; null: of all
     * @param condition SQL condition on them, such as {@code tab.payload.properties->>'color' = 'red'}; null: all
     * @return how many were removed; a message of a topic counts once for each subscription
     */
    public static long purge(Connection connection, String name, String subscription, String condition)
            throws SQLException {
        return call(connection, "SELECT aq.purge_queue(?, ?, ?)", Long.class, name, subscription, condition);
    }

    /**
     * Puts the dead letters of a queue or topic back into it, from its exception queue.
     *
     * @return how many
     */
    public static long redrive(Connection connection, String name) throws SQLException {
        return redrive(connection, name, -1, null);
    }

    /**
     * Puts dead letters of a queue or topic back into it, from its exception queue. Each is a new message for the
     * consumer for which it failed.
     *
     * @param max how many at most; -1: all
     * @param condition SQL condition on them; null: all
     * @return how many
     */
    public static long redrive(Connection connection, String name, int max, String condition) throws SQLException {
        return call(connection, "SELECT aq.redrive(?, ?, ?)", Long.class, name, max < 0 ? null : max, condition);
    }

    private static <T> T call(Connection connection, String sql, Class<T> type, Object... arguments)
            throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(sql)) {
            for (int i = 0; i < arguments.length; i++) {
                statement.setObject(i + 1, arguments[i]);
            }
            try (ResultSet result = statement.executeQuery()) {
                result.next();
                return type.cast(result.getObject(1));
            }
        }
    }
}
