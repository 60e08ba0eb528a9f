package io.github.pgaq.jms.sql;

import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;

/**
 * The settings of the provider's own connections: they may be idle for a long time, and commit each call. A pool gets
 * its connection back with the former settings.
 */
public final class Ownership {
    private static final String SHOW = "SELECT current_setting('idle_session_timeout')";
    private static final String SET = "SELECT set_config('idle_session_timeout', ?, false)";
    private static final String NONE = "0";

    private final Connection connection;
    private final boolean committing;
    private final String limit;

    private Ownership(Connection connection, boolean committing, String limit) {
        this.connection = connection;
        this.committing = committing;
        this.limit = limit;
    }

    /** Takes over a connection without a transaction. */
    public static Ownership of(Connection connection) throws SQLException {
        boolean committing = connection.getAutoCommit();
        if (!committing) {
            connection.setAutoCommit(true);
        }
        Ownership ownership = new Ownership(connection, committing, limit(connection));
        ownership.setLimit(NONE);
        return ownership;
    }

    private static String limit(Connection connection) throws SQLException {
        try (Statement statement = connection.createStatement();
                ResultSet row = statement.executeQuery(SHOW)) {
            row.next();
            return row.getString(1);
        }
    }

    private void setLimit(String value) throws SQLException {
        if (limit.equals(NONE)) {
            return;
        }
        try (PreparedStatement statement = connection.prepareStatement(SET)) {
            statement.setString(1, value);
            statement.execute();
        }
    }

    /** The connection, without a transaction, goes back. */
    void end() throws SQLException {
        setLimit(limit);
        if (!committing) {
            connection.setAutoCommit(false);
        }
    }
}
