package io.github.pgaq.jms.sql;

import io.github.pgaq.jms.store.Ahead;
import io.github.pgaq.jms.store.Body;
import io.github.pgaq.jms.store.Lease;
import io.github.pgaq.jms.store.Outgoing;
import io.github.pgaq.jms.store.Received;
import io.github.pgaq.jms.store.Source;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.util.List;
import java.util.Objects;

/** Enqueues messages, and acknowledges others in the same transaction: however many, in one round trip. */
final class Sender {

    private static final String SEND = "SELECT aq_jms.send(?, ?, affinity => ?, skip_gone => ?)";

    private static final String SEND_AND_TAKE = "SELECT aq_jms.commit(?, ?, affinity => ?, skip_gone => true, "
            + "queue_name => ?, consumer => ?, condition => ?, max_messages => ?, "
            + "lease => make_interval(secs => ?), max_bytes => ?)";

    private final Statements statements;

    Sender(Statements statements) {
        this.statements = statements;
    }

    /**
     * Enqueues the messages in their order; fails with the SQLSTATE AQ049 if one of the leases has ended.
     *
     * @param skip whether a message to a temporary destination that has ended is left out; otherwise it is an error
     */
    void send(List<Outgoing> messages, List<Lease> acknowledge, boolean skip) throws SQLException {
        if (messages.isEmpty() && acknowledge.isEmpty()) {
            return;
        }
        PreparedStatement statement = prepare(SEND, messages, acknowledge);
        statement.setBoolean(4, skip);
        try {
            SqlStore.run(statement);
        } finally {
            statement.clearParameters();
        }
    }

    /** As {@link #send}; also leases messages, in the same transaction. */
    Received sendAndTake(List<Outgoing> messages, List<Lease> acknowledge, Ahead ahead) throws SQLException {
        PreparedStatement statement = prepare(SEND_AND_TAKE, messages, acknowledge);
        Source from = ahead.source();
        statement.setString(4, from.queue());
        statement.setString(5, from.consumer());
        statement.setString(6, from.condition());
        statement.setInt(7, from.max());
        statement.setDouble(8, SqlStore.seconds(ahead.lease()));
        Receiver.limit(statement, 9, from.maxBytes());
        try {
            Rows rows = Receiver.rows(statement);
            rows.undone(List.of());
            return new Received(rows.source(), rows.messages(), List.of());
        } finally {
            statement.clearParameters();
        }
    }

    private PreparedStatement prepare(String sql, List<Outgoing> messages, List<Lease> acknowledge)
            throws SQLException {
        PreparedStatement statement = statements.get(sql);
        statement.setBytes(1, messages.isEmpty() ? null : messages(messages));
        statement.setBytes(2, acknowledge.isEmpty() ? null : leases(acknowledge));
        // messages of one call are those of one connection
        statement.setString(3, messages.isEmpty() ? null : messages.get(0).affinity());
        return statement;
    }

    private static byte[] messages(List<Outgoing> messages) {
        Parcel out = new Parcel();
        for (int first = 0, next; first < messages.size(); first = next) {
            Outgoing common = messages.get(first);
            next = first + 1;
            while (next < messages.size() && alike(common, messages.get(next))) {
                next++;
            }
            out.text(common.queue());
            out.number(common.priority());
            out.number(common.delay());
            out.number(common.expiration());
            out.text(common.correlation());
            out.text(common.producer());
            out.text(null);
            out.number(next - first);
            for (Outgoing message : messages.subList(first, next)) {
                body(out, message.body());
            }
        }
        return out.toBytes();
    }

    private static void body(Parcel out, Body body) {
        out.text(body.type());
        out.text(body.headers());
        out.text(body.properties());
        out.text(body.propertyTypes());
        out.text(body.text());
        out.bytes(body.bytes());
    }

    /** Whether only their bodies differ. */
    static boolean alike(Outgoing one, Outgoing other) {
        return one.queue().equals(other.queue())
                && one.priority() == other.priority()
                && one.delay() == other.delay()
                && one.expiration() == other.expiration()
                && Objects.equals(one.correlation(), other.correlation())
                && Objects.equals(one.producer(), other.producer())
                && Objects.equals(one.affinity(), other.affinity());
    }

    private static byte[] leases(List<Lease> leases) {
        Parcel out = new Parcel();
        for (int first = 0, next; first < leases.size(); first = next) {
            Lease common = leases.get(first);
            next = first + 1;
            while (next < leases.size() && isTogether(common, leases.get(next))) {
                next++;
            }
            out.text(common.queue());
            out.text(common.consumer());
            out.number(common.receipt());
            out.number(next - first);
            for (Lease lease : leases.subList(first, next)) {
                out.id(lease.msgid());
            }
        }
        return out.toBytes();
    }

    private static boolean isTogether(Lease one, Lease other) {
        return one.receipt() == other.receipt()
                && one.queue().equals(other.queue())
                && Objects.equals(one.consumer(), other.consumer());
    }
}
