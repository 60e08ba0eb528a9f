package io.github.pgaq.jms.sql;

import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;

/**
 * The settings of the provider's own connections: they may be idle for a long time, end soon after the client's machine
 * is gone, and commit each call. A pool gets its connection back with the former settings.
 */
public final class Ownership {
    /** The kernel of the server asks so often that has not answered, before it ends the connection. */
    private static final int PROBES = 5;

    private final Connection connection;
    private final boolean committing;
    /** The former values of the settings that were changed. */
    private final Map<String, String> former;

    private Ownership(Connection connection, boolean committing, Map<String, String> former) {
        this.connection = connection;
        this.committing = committing;
        this.former = former;
    }

    /**
     * Takes over a connection without a transaction.
     *
     * @param keepAlive after which time without an answer of the client's machine the server ends the connection; 0: as
     *     it is configured
     */
    public static Ownership of(Connection connection, Duration keepAlive) throws SQLException {
        boolean committing = connection.getAutoCommit();
        if (!committing) {
            connection.setAutoCommit(true);
        }
        Map<String, String> wanted = wanted(keepAlive);
        Map<String, String> former = read(connection, wanted.keySet());
        former.entrySet().removeIf(setting -> setting.getValue().equals(wanted.get(setting.getKey())));
        wanted.keySet().retainAll(former.keySet());
        set(connection, wanted);
        return new Ownership(connection, committing, former);
    }

    private static Map<String, String> wanted(Duration keepAlive) {
        Map<String, String> wanted = new LinkedHashMap<>();
        wanted.put("idle_session_timeout", "0");
        if (!keepAlive.isZero()) {
            long seconds = Math.max(2, keepAlive.toSeconds());
            long interval = Math.max(1, seconds / 2 / PROBES);
            wanted.put("tcp_keepalives_idle", Long.toString(Math.max(1, seconds - PROBES * interval)));
            wanted.put("tcp_keepalives_interval", Long.toString(interval));
            wanted.put("tcp_keepalives_count", Integer.toString(PROBES));
            wanted.put("tcp_user_timeout", Long.toString(1000 * seconds));
        }
        return wanted;
    }

    private static Map<String, String> read(Connection connection, Set<String> names) throws SQLException {
        String values =
                names.stream().map(name -> "current_setting('" + name + "')").collect(Collectors.joining(", "));
        try (Statement statement = connection.createStatement();
                ResultSet row = statement.executeQuery("SELECT " + values)) {
            row.next();
            Map<String, String> settings = new LinkedHashMap<>();
            for (String name : names) {
                settings.put(name, row.getString(settings.size() + 1));
            }
            return settings;
        }
    }

    private static void set(Connection connection, Map<String, String> settings) throws SQLException {
        if (settings.isEmpty()) {
            return;
        }
        String changes = settings.keySet().stream()
                .map(name -> "set_config('" + name + "', ?, false)")
                .collect(Collectors.joining(", "));
        try (PreparedStatement statement = connection.prepareStatement("SELECT " + changes)) {
            int index = 0;
            for (String value : settings.values()) {
                statement.setString(++index, value);
            }
            statement.execute();
        }
    }

    /** The connection, without a transaction, goes back. */
    void end() throws SQLException {
        set(connection, former);
        if (!committing) {
            connection.setAutoCommit(false);
        }
    }
}
