package io.github.pgaq.jms.sql;

import io.github.pgaq.jms.store.Lease;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Types;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.UUID;

/** Ends and extends leases; those of any queues in one statement. */
final class Leases {

    private static final String LISTS = "(?::text[], ?::text[], ?::uuid[], ?::int8[]";

    private static final String ACKNOWLEDGE = "SELECT aq.jms_acknowledge" + LISTS + ")";

    private static final String RELEASE = "SELECT aq.jms_release" + LISTS
            + ", delay => make_interval(secs => ?), error => ?, count => ?)";

    private static final String EXTEND = "SELECT aq.jms_extend" + LISTS + ", make_interval(secs => ?))";

    private final Connection connection;
    private final Statements statements;

    Leases(Connection connection, Statements statements) {
        this.connection = connection;
        this.statements = statements;
    }

    List<Lease> acknowledge(List<Lease> leases) throws SQLException {
        return leases.isEmpty() ? List.of() : ended(prepare(ACKNOWLEDGE, leases), leases);
    }

    List<Lease> release(List<Lease> leases, Duration delay, String error, boolean count) throws SQLException {
        if (leases.isEmpty()) {
            return List.of();
        }
        PreparedStatement statement = prepare(RELEASE, leases);
        statement.setObject(5, delay == null ? null : SqlStore.seconds(delay), Types.DOUBLE);
        statement.setString(6, error);
        statement.setBoolean(7, count);
        return ended(statement, leases);
    }

    List<Lease> extend(List<Lease> leases, Duration lease) throws SQLException {
        if (leases.isEmpty()) {
            return List.of();
        }
        PreparedStatement statement = prepare(EXTEND, leases);
        statement.setDouble(5, SqlStore.seconds(lease));
        return ended(statement, leases);
    }

    private PreparedStatement prepare(String sql, List<Lease> leases) throws SQLException {
        PreparedStatement statement = statements.get(sql);
        arguments(connection, statement, 1, leases);
        return statement;
    }

    /** Sets four parameters: the lists that the server's functions take. */
    static void arguments(Connection connection, PreparedStatement statement, int first, List<Lease> leases)
            throws SQLException {
        int n = leases.size();
        String[] queues = new String[n];
        String[] consumers = new String[n];
        UUID[] ids = new UUID[n];
        Long[] receipts = new Long[n];
        for (int i = 0; i < n; i++) {
            Lease lease = leases.get(i);
            queues[i] = lease.queue();
            consumers[i] = lease.consumer();
            ids[i] = lease.msgid();
            receipts[i] = lease.receipt();
        }
        statement.setArray(first, connection.createArrayOf("text", queues));
        statement.setArray(first + 1, connection.createArrayOf("text", consumers));
        statement.setArray(first + 2, connection.createArrayOf("uuid", ids));
        statement.setArray(first + 3, connection.createArrayOf("int8", receipts));
    }

    /** Those leases whose indexes the statement returns. */
    private static List<Lease> ended(PreparedStatement statement, List<Lease> leases) throws SQLException {
        try (ResultSet row = statement.executeQuery()) {
            row.next();
            List<Lease> ended = new ArrayList<>();
            for (Object index : (Object[]) row.getArray(1).getArray()) {
                ended.add(leases.get((Integer) index));
            }
            return ended;
        }
    }
}
