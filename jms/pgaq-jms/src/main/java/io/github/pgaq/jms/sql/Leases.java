package io.github.pgaq.jms.sql;

import io.github.pgaq.jms.store.Lease;
import io.github.pgaq.jms.store.Pause;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Types;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.UUID;

/**
 * Ends and extends leases; those of any queues in one statement.
 *
 * <p>A lease is busy while another transaction ends or extends it: that of a session whose connection was lost, or of
 * another process that recovers a branch. That it has ended is not known before that transaction has ended. It is short
 * as a rule, so the statement is repeated for these leases, with pauses.
 */
final class Leases {

    /** SQLSTATE: lock not available. */
    static final String BUSY = "55P03";

    private static final long FIRST_PAUSE_MS = 5;

    /** Less than a lease lasts. */
    private static final long LONGEST_BUSY_MS = 2000;

    private static final String LISTS = "(?::text[], ?::text[], ?::uuid[], ?::int8[]";

    private static final String ACKNOWLEDGE = "SELECT aq_jms.acknowledge" + LISTS + ")";

    private static final String RELEASE =
            "SELECT aq_jms.release" + LISTS + ", delay => make_interval(secs => ?), error => ?, count => ?)";

    private static final String EXTEND = "SELECT aq_jms.extend" + LISTS + ", make_interval(secs => ?))";

    private final Connection connection;
    private final Statements statements;

    Leases(Connection connection, Statements statements) {
        this.connection = connection;
        this.statements = statements;
    }

    List<Lease> acknowledge(List<Lease> leases) throws SQLException {
        return leases.isEmpty() ? List.of() : patiently(leases, left -> prepare(ACKNOWLEDGE, left));
    }

    List<Lease> release(List<Lease> leases, Duration delay, String error, boolean count) throws SQLException {
        if (leases.isEmpty()) {
            return List.of();
        }
        return patiently(leases, left -> {
            PreparedStatement statement = prepare(RELEASE, left);
            statement.setObject(5, delay == null ? null : SqlStore.seconds(delay), Types.DOUBLE);
            statement.setString(6, error);
            statement.setBoolean(7, count);
            return statement;
        });
    }

    List<Lease> extend(List<Lease> leases, Duration lease) throws SQLException {
        if (leases.isEmpty()) {
            return List.of();
        }
        PreparedStatement statement = prepare(EXTEND, leases);
        statement.setDouble(5, SqlStore.seconds(lease));
        Undone undone = new Undone();
        // a busy one has not ended: it is extended the next time
        undone.add(statement, leases);
        return undone.ended;
    }

    /** A statement for some leases, with all its parameters. */
    private interface Call {
        PreparedStatement on(List<Lease> leases) throws SQLException;
    }

    /** Repeats the call for leases that are busy; returns those that had ended. */
    private static List<Lease> patiently(List<Lease> leases, Call call) throws SQLException {
        Undone undone = new Undone();
        undone.add(call.on(leases), leases);
        long pause = FIRST_PAUSE_MS;
        for (long waited = 0; !undone.busy.isEmpty(); waited += pause, pause *= 2) {
            if (waited >= LONGEST_BUSY_MS) {
                throw new SQLException(
                        "another transaction, which has not ended, ends or extends the leases of " + undone.busy.size()
                                + " messages",
                        BUSY);
            }
            Pause.milliseconds(pause);
            List<Lease> left = List.copyOf(undone.busy);
            undone.busy.clear();
            undone.add(call.on(left), left);
        }
        return undone.ended;
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

    /** The leases that a call has not ended or extended. */
    static final class Undone {
        final List<Lease> ended = new ArrayList<>();
        final List<Lease> busy = new ArrayList<>();

        /** The server returns the index of a lease, or -1 - index if the lease is busy. */
        void add(int answer, List<Lease> leases) {
            if (answer < 0) {
                busy.add(leases.get(-1 - answer));
            } else {
                ended.add(leases.get(answer));
            }
        }

        private void add(PreparedStatement statement, List<Lease> leases) throws SQLException {
            try (ResultSet row = statement.executeQuery()) {
                row.next();
                for (Object answer : (Object[]) row.getArray(1).getArray()) {
                    add((Integer) answer, leases);
                }
            }
        }
    }
}
