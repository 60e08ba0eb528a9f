package io.github.pgaq.jms.sql;

import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.util.HashMap;
import java.util.Map;
import org.postgresql.PGStatement;
import org.postgresql.core.BaseConnection;
import org.postgresql.core.TransactionState;

/** The prepared statements of a connection, prepared at their first use and kept. */
final class Statements {

    /** pgjdbc: prepare on the server at the first execution, and get results in binary form from the first one on. */
    private static final int AT_ONCE = -1;

    private final Connection connection;
    private final BaseConnection driver;
    private final Map<String, PreparedStatement> statements = new HashMap<>();

    Statements(Connection connection) throws SQLException {
        this.connection = connection;
        this.driver = connection.isWrapperFor(BaseConnection.class) ? connection.unwrap(BaseConnection.class) : null;
    }

    /** Whether no transaction is open on the server; false if that is not known. */
    boolean isIdle() {
        return driver != null && driver.getTransactionState() == TransactionState.IDLE;
    }

    /**
     * Whether the next statement is a transaction of its own. Autocommit does not show it: in a branch of an XA
     * transaction the driver leaves it on.
     */
    boolean isAlone() throws SQLException {
        return connection.getAutoCommit() && (driver == null || isIdle());
    }

    /** The statement with this text; the texts are constants of this package, so there are few. */
    PreparedStatement get(String sql) throws SQLException {
        PreparedStatement statement = statements.get(sql);
        if (statement == null || statement.isClosed()) {
            statement = connection.prepareStatement(sql);
            if (statement.isWrapperFor(PGStatement.class)) {
                statement.unwrap(PGStatement.class).setPrepareThreshold(AT_ONCE);
            }
            statements.put(sql, statement);
        }
        return statement;
    }

    /** Closes all of them; a later use prepares them again. */
    void close() throws SQLException {
        SQLException first = null;
        for (PreparedStatement statement : statements.values()) {
            try {
                statement.close();
            } catch (SQLException e) {
                first = first == null ? e : first;
            }
        }
        statements.clear();
        if (first != null) {
            throw first;
        }
    }
}
