package io.github.pgaq.jms.sql;

import io.github.pgaq.jms.store.Lease;
import java.sql.Array;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Types;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.function.Function;

/** Ends and extends leases; those of any queues in one statement. */
final class Leases {

    private static final String GROUPS = "SELECT r.msgid FROM ("
            + "SELECT l.queue, l.consumer, l.receipt, array_agg(l.msgid) AS msgids "
            + "FROM unnest(?::text[], ?::text[], ?::int8[], ?::uuid[]) AS l(queue, consumer, receipt, msgid) "
            + "GROUP BY l.queue, l.consumer, l.receipt) AS g, LATERAL ";

    private static final String NOT_DONE = " AS r WHERE r.result <> 'done'";

    private static final String ACKNOWLEDGE = GROUPS
            + "aq.acknowledge(g.queue, g.msgids, g.receipt, g.consumer)" + NOT_DONE;

    private static final String RELEASE = GROUPS + "aq.release(g.queue, g.msgids, g.receipt, g.consumer, "
            + "delay => make_interval(secs => ?), error => ?, count => ?)" + NOT_DONE;

    private static final String EXTEND = GROUPS
            + "aq.extend(g.queue, g.msgids, g.receipt, make_interval(secs => ?), g.consumer)" + NOT_DONE;

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
        statement.setArray(1, texts(leases, Lease::queue));
        statement.setArray(2, texts(leases, Lease::consumer));
        statement.setArray(3, connection.createArrayOf("int8",
                leases.stream().map(Lease::receipt).toArray(Long[]::new)));
        statement.setArray(4, connection.createArrayOf("uuid", leases.stream().map(Lease::msgid).toArray(UUID[]::new)));
        return statement;
    }

    private Array texts(List<Lease> leases, Function<Lease, String> field) throws SQLException {
        return connection.createArrayOf("text", leases.stream().map(field).toArray(String[]::new));
    }

    /** Those leases that the statement reports. */
    private static List<Lease> ended(PreparedStatement statement, List<Lease> leases) throws SQLException {
        List<Lease> ended = new ArrayList<>();
        try (ResultSet rows = statement.executeQuery()) {
            Map<UUID, Lease> byId = null;
            while (rows.next()) {
                if (byId == null) {
                    byId = new HashMap<>();
                    for (Lease lease : leases) {
                        byId.put(lease.msgid(), lease);
                    }
                }
                ended.add(byId.get(rows.getObject(1, UUID.class)));
            }
        }
        return ended;
    }
}
