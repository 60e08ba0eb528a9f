package io.github.pgaq.jms.sql;

import io.github.pgaq.jms.store.Ahead;
import io.github.pgaq.jms.store.Body;
import io.github.pgaq.jms.store.Delivery;
import io.github.pgaq.jms.store.Lease;
import io.github.pgaq.jms.store.Outgoing;
import io.github.pgaq.jms.store.QueueDescription;
import io.github.pgaq.jms.store.Received;
import io.github.pgaq.jms.store.Source;
import io.github.pgaq.jms.store.Store;
import io.github.pgaq.jms.store.Subscription;
import java.io.OutputStream;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.UUID;
import org.postgresql.PGConnection;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A store on a JDBC connection of pgjdbc, or on a pool's connection that unwraps to one.
 *
 * <p>On a connection of the caller it sets nothing but autocommit, which {@link #begin()} turns off if it is on, until
 * the transaction ends. If it is off already, each call is part of the transaction that its owner ends, and no call
 * changes autocommit: so a store also works in a branch of an XA transaction.
 */
public final class SqlStore implements Store {

    private static final Logger LOG = LoggerFactory.getLogger(SqlStore.class);

    /** SQLSTATE: canceled on request. */
    private static final String CANCELED = "57014";

    private static final int ALIVE_SECONDS = 5;
    private static final String SAVEPOINT = "pgaq_jms_wait";
    private static final Duration LONGEST = Duration.ofDays(365);
    private static final Received NOTHING = new Received(-1, List.of(), List.of());

    private final Connection connection;
    /** Null: the connection is the caller's. */
    private final Ownership ownership;

    private final Statements statements;
    private final Sender sender;
    private final Receiver receiver;
    private final Leases leases;
    private final Names names;
    private final Contents contents;
    private final Payloads payloads;
    private final Cancellation cancellation = new Cancellation();
    private boolean open;
    private boolean turnedOff;
    /** When the server answered last, by System.nanoTime(). */
    private long answered = System.nanoTime();
    /** So long the connection is believed to work; tests change it. */
    long freshNanos = 1_000_000_000;
    /** So large are the messages of a call that has several, in characters and bytes: a value has 1 GB at most. */
    long mostInCall = 64L << 20;

    /**
     * Makes a store.
     *
     * @param connection where it works
     * @param owned whether the connection is the store's, which sets what it needs, and closes it
     */
    public SqlStore(Connection connection, boolean owned) throws SQLException {
        this(connection, owned ? Ownership.of(connection, Duration.ZERO) : null);
    }

    /** Makes a store on a connection of its own; see {@link Ownership#of}. */
    public SqlStore(Connection connection, Duration keepAlive) throws SQLException {
        this(connection, Ownership.of(connection, keepAlive));
    }

    private SqlStore(Connection connection, Ownership ownership) throws SQLException {
        this.connection = connection;
        this.ownership = ownership;
        this.statements = new Statements(connection);
        this.sender = new Sender(statements);
        this.receiver = new Receiver(connection, statements);
        this.leases = new Leases(connection, statements);
        this.names = new Names(statements);
        this.contents = new Contents(statements);
        this.payloads = new Payloads(connection, statements);
    }

    @Override
    public QueueDescription describe(String queue) throws SQLException {
        return names.describe(queue);
    }

    @Override
    public void send(List<Outgoing> messages) throws SQLException {
        boolean alone = statements.isAlone();
        if (messages.isEmpty() || messages.get(0).body().content() == null && end(messages, 0) == messages.size()) {
            sendInParts(messages, !alone);
            return;
        }
        if (alone) {
            begin();
        }
        try {
            sendInParts(messages, !alone);
            if (alone) {
                commit();
            }
        } catch (SQLException | RuntimeException | Error e) {
            if (alone) {
                undo(e);
            }
            throw e;
        }
    }

    @Override
    public void commit(List<Outgoing> messages, List<Lease> acknowledge, Runnable deciding) throws SQLException {
        if (commitAtOnce(messages, acknowledge, null, deciding) == null) {
            begin();
            // before the messages are sent, because this makes room in a full queue
            List<Lease> ended = leases.acknowledge(acknowledge);
            if (!ended.isEmpty()) {
                // fails, and names a privilege that is missing
                sender.send(List.of(), ended, true);
                throw new SQLException("the leases of " + ended.size() + " messages have ended", LEASE_ENDED);
            }
            sendInParts(messages, true);
            deciding.run();
            commit();
            answered = System.nanoTime();
        }
    }

    @Override
    public Received commitAtOnce(List<Outgoing> messages, List<Lease> acknowledge, Ahead ahead, Runnable deciding)
            throws SQLException {
        // not if the connection may have been lost long ago, which is no outcome to leave open
        boolean fresh = System.nanoTime() - answered < freshNanos;
        if (!fresh || open || !isWhole(messages) || !statements.isAlone()) {
            return null;
        }
        deciding.run();
        try {
            Received received = NOTHING;
            if (ahead == null) {
                sender.send(messages, acknowledge, true);
            } else {
                received = sender.sendAndTake(messages, acknowledge, ahead);
            }
            answered = System.nanoTime();
            return received;
        } catch (SQLException e) {
            if (!LEASE_ENDED.equals(e.getSQLState())) {
                throw e;
            }
            return null;
        }
    }

    /**
     * Sends large messages one by one, those between them together, as many as one call can have.
     *
     * @param skip see {@link Sender#send}
     */
    private void sendInParts(List<Outgoing> messages, boolean skip) throws SQLException {
        int next;
        for (int first = 0; first < messages.size(); first = next) {
            next = end(messages, first);
            Body body = messages.get(first).body();
            if (body.isPlain()) {
                payloads.send(messages.subList(first, next));
            } else if (body.content() != null) {
                contents.send(messages.get(first));
            } else {
                sender.send(messages.subList(first, next), List.of(), skip);
            }
        }
    }

    /** The end of those that go together from the first one on; one with a content of its own goes alone. */
    private int end(List<Outgoing> messages, int first) {
        Outgoing common = messages.get(first);
        long size = common.body().size();
        int end = first + 1;
        while (end < messages.size() && common.body().content() == null && goesWith(messages.get(end), common)) {
            size += messages.get(end).body().size();
            if (size > mostInCall) {
                break;
            }
            end++;
        }
        return end;
    }

    private static boolean goesWith(Outgoing next, Outgoing common) {
        boolean plain = common.body().isPlain();
        return next.body().content() == null
                && next.body().isPlain() == plain
                && (!plain || Sender.alike(next, common));
    }

    /** Whether one call of {@code aq_jms.send} can send them. */
    private boolean isWhole(List<Outgoing> messages) {
        if (messages.isEmpty()) {
            return true;
        }
        Body body = messages.get(0).body();
        return !body.isPlain() && body.content() == null && end(messages, 0) == messages.size();
    }

    private void undo(Throwable cause) {
        try {
            rollback();
        } catch (SQLException e) {
            cause.addSuppressed(e);
        }
    }

    @Override
    public void readContent(String queue, String consumer, UUID msgid, OutputStream to) throws SQLException {
        contents.read(queue, consumer, msgid, to);
    }

    @Override
    public Received receive(List<Source> sources, Duration timeout, Duration lease, List<Lease> acknowledge)
            throws SQLException {
        Double seconds = timeout == null || timeout.compareTo(LONGEST) > 0 ? null : Double.valueOf(seconds(timeout));
        boolean waits = !sources.isEmpty() && (seconds == null || seconds > 0);
        Received received =
                waits ? receiveWaiting(sources, seconds, lease, acknowledge) : take(sources, 0.0, lease, acknowledge);
        answered = System.nanoTime();
        return received;
    }

    private Received receiveWaiting(List<Source> sources, Double seconds, Duration lease, List<Lease> acknowledge)
            throws SQLException {
        cancellation.begin();
        try {
            if (statements.isAlone()) {
                return receiveAlone(sources, seconds, lease, acknowledge);
            }
            return statements.isIdle()
                    ? receiveFirst(sources, seconds, lease, acknowledge)
                    : receiveNext(sources, seconds, lease, acknowledge);
        } finally {
            cancellation.end();
        }
    }

    /** One call of the server; if leases are busy, it acknowledges them again, and waits for the remaining time. */
    private Received take(List<Source> sources, Double seconds, Duration lease, List<Lease> acknowledge)
            throws SQLException {
        long began = System.nanoTime();
        Received received = receiver.receive(sources, seconds, lease, acknowledge);
        List<Lease> busy = receiver.busy();
        if (busy.isEmpty()) {
            return received;
        }
        List<Lease> stale = new ArrayList<>(received.stale());
        stale.addAll(acknowledgeBusy(busy));
        if (received.source() < 0 && !sources.isEmpty()) {
            Double left = seconds == null ? null : Math.max(0, seconds - (System.nanoTime() - began) / 1e9);
            received = receiver.receive(sources, left, lease, List.of());
        }
        return new Received(received.source(), received.messages(), stale);
    }

    /** Messages may have been taken: so what stays busy is not an error, but counts as ended. */
    private List<Lease> acknowledgeBusy(List<Lease> busy) throws SQLException {
        try {
            return leases.acknowledge(busy);
        } catch (SQLException e) {
            if (!Leases.BUSY.equals(e.getSQLState())) {
                throw e;
            }
            LOG.warn("{}", e.getMessage());
            return busy;
        }
    }

    /** Without a transaction. */
    private Received receiveAlone(List<Source> sources, Double seconds, Duration lease, List<Lease> acknowledge)
            throws SQLException {
        Received received = receiveCancellable(sources, seconds, lease, acknowledge);
        if (received != null) {
            return received;
        }
        // the cancel may have come before the acknowledgements were committed; if not, all leases have ended now,
        // and which of them had ended before is no longer known
        leases.acknowledge(acknowledge);
        return NOTHING;
    }

    /** As the first call of a transaction: while the server waits, it holds no snapshot. */
    private Received receiveFirst(List<Source> sources, Double seconds, Duration lease, List<Lease> acknowledge)
            throws SQLException {
        Received received = receiveCancellable(sources, seconds, lease, acknowledge);
        if (received != null) {
            return received;
        }
        execute("ROLLBACK");
        return new Received(-1, List.of(), leases.acknowledge(acknowledge));
    }

    /** In a transaction that has done something: a cancel must not abort that. */
    private Received receiveNext(List<Source> sources, Double seconds, Duration lease, List<Lease> acknowledge)
            throws SQLException {
        Received received = take(sources, 0.0, lease, acknowledge);
        if (received.source() >= 0) {
            return received;
        }
        execute("SAVEPOINT " + SAVEPOINT);
        Received later = receiveCancellable(sources, seconds, lease, List.of());
        if (later == null) {
            execute("ROLLBACK TO SAVEPOINT " + SAVEPOINT);
            later = NOTHING;
        }
        execute("RELEASE SAVEPOINT " + SAVEPOINT);
        return new Received(later.source(), later.messages(), received.stale());
    }

    /** Null: it was cancelled. */
    private Received receiveCancellable(List<Source> sources, Double seconds, Duration lease, List<Lease> acknowledge)
            throws SQLException {
        if (!cancellation.arm()) {
            return take(sources, 0.0, lease, acknowledge);
        }
        try {
            return take(sources, seconds, lease, acknowledge);
        } catch (SQLException e) {
            if (cancellation.disarm() && CANCELED.equals(e.getSQLState())) {
                return null;
            }
            throw e;
        } finally {
            cancellation.disarm();
        }
    }

    @Override
    public List<Lease> acknowledge(List<Lease> ended) throws SQLException {
        return leases.acknowledge(ended);
    }

    @Override
    public List<Lease> release(List<Lease> given, Duration delay, String error, boolean count) throws SQLException {
        return leases.release(given, delay, error, count);
    }

    @Override
    public List<Lease> extend(List<Lease> extended, Duration lease) throws SQLException {
        return leases.extend(extended, lease);
    }

    @Override
    public List<Delivery> browse(Source source, UUID after) throws SQLException {
        return receiver.browse(source, after);
    }

    @Override
    public void subscribe(String topic, String subscriber, String rule, boolean durable) throws SQLException {
        names.subscribe(topic, subscriber, rule, durable);
    }

    @Override
    public List<Subscription> subscriptions(String subscriber) throws SQLException {
        return names.subscriptions(subscriber);
    }

    @Override
    public void unsubscribe(String topic, String subscriber) throws SQLException {
        names.unsubscribe(topic, subscriber);
    }

    @Override
    public String createTemporary(boolean topic) throws SQLException {
        return names.createTemporary(topic);
    }

    @Override
    public void dropTemporary(String queue) throws SQLException {
        names.dropTemporary(queue);
    }

    @Override
    public boolean claim(String name, boolean shared) throws SQLException {
        return names.claim(name, shared);
    }

    @Override
    public List<String> claimTemporary(String queue, long first, int count) throws SQLException {
        return names.claimTemporary(queue, first, count);
    }

    @Override
    public void unclaimTemporary(String name) throws SQLException {
        names.unclaimTemporary(name);
    }

    @Override
    public void endClaimants(String name) throws SQLException {
        names.endClaimants(name);
    }

    @Override
    public void unclaim(String name, boolean shared) throws SQLException {
        names.unclaim(name, shared);
    }

    /**
     * Not called in a branch of an XA transaction, in which autocommit could not be turned on again: {@link #send} does
     * not if a transaction is open, and sessions that use branches have neither transactions of their own nor messages
     * that were delivered and not acknowledged.
     */
    @Override
    public void begin() throws SQLException {
        if (!open) {
            turnedOff = connection.getAutoCommit();
            if (turnedOff) {
                connection.setAutoCommit(false);
            }
            open = true;
        }
    }

    @Override
    public void commit() throws SQLException {
        if (open) {
            connection.commit();
            restore();
        }
    }

    @Override
    public void rollback() throws SQLException {
        if (open) {
            connection.rollback();
            restore();
        }
    }

    /** The transaction has ended. */
    private void restore() throws SQLException {
        open = false;
        if (turnedOff) {
            turnedOff = false;
            connection.setAutoCommit(true);
        }
    }

    @Override
    public void cancel() {
        try {
            cancellation.cancel(connection.unwrap(PGConnection.class)::cancelQuery);
        } catch (SQLException e) {
            // the wait ends with its timeout, or with the connection
            LOG.warn("a wait for messages could not be cancelled", e);
        }
    }

    @Override
    public boolean isAlive() {
        try {
            return connection.isValid(ALIVE_SECONDS);
        } catch (SQLException e) {
            return false;
        }
    }

    @Override
    public boolean isAlone() throws SQLException {
        return statements.isAlone();
    }

    @Override
    public Connection connection() {
        return connection;
    }

    @Override
    public void close() throws SQLException {
        if (connection.isClosed()) {
            return;
        }
        try {
            end();
        } catch (SQLException e) {
            // with a connection that is lost, the server has given all of it up
            if (!connection.isClosed()) {
                throw e;
            }
        } finally {
            if (ownership != null) {
                connection.close();
            }
        }
    }

    /** A pool gets the connection as it was, even if not everything could be given up. */
    private void end() throws SQLException {
        try {
            if (open && turnedOff) {
                rollback();
            }
            names.close();
            statements.close();
        } finally {
            if (ownership != null) {
                ownership.end();
            }
        }
    }

    private void execute(String sql) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            statement.execute(sql);
        }
    }

    /** Executes a statement whose result is not used. */
    static void run(PreparedStatement statement) throws SQLException {
        statement.execute();
        statement.getMoreResults();
    }

    static double seconds(Duration duration) {
        return duration.toNanos() / 1e9;
    }
}
