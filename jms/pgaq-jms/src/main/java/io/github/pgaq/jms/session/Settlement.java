package io.github.pgaq.jms.session;

import io.github.pgaq.jms.store.Ahead;
import io.github.pgaq.jms.store.Lease;
import io.github.pgaq.jms.store.Outgoing;
import io.github.pgaq.jms.store.Received;
import io.github.pgaq.jms.store.Store;
import jakarta.jms.JMSException;
import jakarta.jms.Session;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;

/**
 * What happens to the messages of a session: acknowledgement, redelivery, and the transaction with the messages sent
 * and received in it. Its callers have entered the gate.
 *
 * <p>A transacted session leases messages too. Its commit sends what it has to send and acknowledges the leases in one
 * transaction, so no transaction is open while it waits or works. It is <i>joined</i> when a transaction of the JDBC
 * connection is what decides: the connection is the caller's, or the caller has asked for it, or too many messages were
 * to be sent for keeping them here. Then it sends at once and consumes in the open transaction.
 */
final class Settlement {
    /** So many messages are kept for the commit. */
    private static final int MOST_KEPT = 1000;
    /** The most characters and bytes of their bodies together, unless it is a single message. */
    private static final long MOST_KEPT_SIZE = 16L << 20;
    /**
     * So many acknowledgements go with the next take. Fewer cost the server more there than the keeper's: its group has
     * those of all sessions.
     */
    private static final int LEAST_DUE = 16;

    private final ClientSession session;
    private final Link link;
    private final LeaseKeeper keeper;
    private final boolean transacted;
    private final boolean callers;
    private final Duration redeliveryDelay;

    private final List<Taken> unacknowledged = new ArrayList<>();
    private List<Outgoing> kept = new ArrayList<>();
    private long keptSize;
    /** When each of them was sent, by System.nanoTime(). */
    private List<Long> sentAt = new ArrayList<>();
    /** The message that a listener processes in a session that acknowledges by itself. */
    private Taken current;

    private boolean recovered;
    /** The caller has the JDBC connection. */
    private boolean shared;

    private SharedConnection given;
    /** A transaction was begun at the server. */
    private boolean open;
    /** The connection was lost with an open transaction. */
    private SQLException lost;

    /**
     * Makes a settlement.
     *
     * @param callers whether the JDBC connection is the caller's
     */
    Settlement(ClientSession session, Link link, boolean transacted, boolean callers) {
        this.session = session;
        this.link = link;
        this.keeper = session.connection().keeper();
        this.transacted = transacted;
        this.callers = callers;
        this.redeliveryDelay = session.connection().options().redeliveryDelay();
    }

    /** Whether messages are sent and consumed in a transaction of the JDBC connection that may be open. */
    boolean isJoined() {
        return callers || shared || open;
    }

    /**
     * Whether the open transaction consumes a message when it is taken, instead of leasing it. This is so in a joined
     * session. Outside a transaction, an auto-acknowledging session on the caller's connection takes messages with a
     * lease; otherwise a message that cannot be returned would be lost.
     */
    boolean consumes() throws JMSException {
        if (!callers || !acknowledgesItself()) {
            return isJoined();
        }
        return !link.call("could not receive", Store::isAlone);
    }

    /** Calls the store, in the transaction if the session is joined. */
    <T> T call(String what, Link.Call<T> call) throws JMSException {
        if (!transacted || !isJoined()) {
            return link.call(what, call);
        }
        checkLost();
        return link.call(what, store -> {
            store.begin();
            open = true;
            return call.on(store);
        });
    }

    /** Gives the JDBC connection to the client. */
    Connection share() throws JMSException {
        if (callers) {
            return call("could not connect", Store::connection);
        }
        shared = true;
        send(List.of());
        Connection connection = call("could not begin a transaction", Store::connection);
        if (given == null || !given.isOf(connection)) {
            given = new SharedConnection(connection);
        }
        return given.proxy();
    }

    /** Sends, at the commit at the latest. */
    void send(List<Outgoing> messages) throws JMSException {
        if (transacted && !isJoined() && isRoomFor(messages)) {
            keep(messages);
            return;
        }
        List<Outgoing> all = aged();
        all.addAll(messages);
        if (transacted && !open && !isJoined()) {
            link.call("could not begin a transaction", store -> {
                store.begin();
                return null;
            });
            open = true;
        }
        if (!all.isEmpty()) {
            call("could not send", store -> {
                store.send(all);
                return null;
            });
        }
        forgetKept();
    }

    private boolean isRoomFor(List<Outgoing> messages) {
        long size =
                messages.stream().mapToLong(message -> message.body().size()).sum();
        return kept.size() + messages.size() <= MOST_KEPT && (kept.isEmpty() || keptSize + size <= MOST_KEPT_SIZE);
    }

    private void keep(List<Outgoing> messages) {
        for (Outgoing message : messages) {
            kept.add(message);
            keptSize += message.body().size();
            sentAt.add(System.nanoTime());
        }
    }

    private void forgetKept() {
        kept = new ArrayList<>();
        keptSize = 0;
        sentAt = new ArrayList<>();
    }

    /** The messages kept for the commit: delay and time to live count from the send. */
    private List<Outgoing> aged() {
        List<Outgoing> aged = new ArrayList<>();
        for (int i = 0; i < kept.size(); i++) {
            Outgoing m = kept.get(i);
            long age = (System.nanoTime() - sentAt.get(i)) / 1_000_000;
            long delay = Math.max(0, m.delay() - age);
            long expiration = m.expiration() == 0 ? 0 : m.delay() + m.expiration() - age - delay;
            if (m.expiration() == 0 || expiration > 0) {
                aged.add(new Outgoing(
                        m.queue(),
                        m.body(),
                        m.priority(),
                        delay,
                        expiration,
                        m.correlation(),
                        m.producer(),
                        m.affinity()));
            }
        }
        return aged;
    }

    /**
     * A message is about to be returned by receive().
     *
     * @return false if its lease has ended, so that it must not be returned
     */
    boolean received(Taken taken) throws JMSException {
        if (taken.lease() == null) {
            return true;
        }
        if (acknowledgesItself()) {
            if (inGroups() && !callers) {
                keeper.acknowledgeLater(session, taken.lease());
                return true;
            }
            return acknowledgeReceived(taken.lease());
        }
        unacknowledged.add(taken);
        return true;
    }

    private boolean acknowledgeReceived(Lease lease) throws JMSException {
        try {
            return acknowledgeNow(List.of(lease)).isEmpty();
        } catch (JMSException e) {
            if (link.isOpen()) {
                throw e;
            }
            // if it was acknowledged, it is not redelivered: the client gets it now, at worst a second time later
            return true;
        }
    }

    /** A message is about to be delivered to a listener. */
    void listening(Taken taken) {
        recovered = false;
        if (taken.lease() != null) {
            if (acknowledgesItself()) {
                current = taken;
            } else {
                unacknowledged.add(taken);
            }
        }
    }

    /**
     * A listener has returned.
     *
     * @param failed whether by an exception
     * @return leases to acknowledge now or with the next take
     */
    List<Lease> listened(boolean failed) throws JMSException {
        Taken taken = current;
        current = null;
        if (taken == null || recovered) {
            return List.of();
        }
        if (failed) {
            release(List.of(taken.lease()), session.roster().drain());
            return List.of();
        }
        if (inGroups()) {
            keeper.acknowledgeLater(session, taken.lease());
            return List.of();
        }
        return List.of(taken.lease());
    }

    /** Leases that were to be acknowledged in a group, for the next call of the server; none if they are too few. */
    List<Lease> due() {
        return acknowledgesItself() && inGroups() ? keeper.take(session, LEAST_DUE) : List.of();
    }

    /** Acknowledges; returns what was given to another consumer meanwhile. */
    List<Lease> acknowledgeNow(List<Lease> leases) throws JMSException {
        if (leases.isEmpty()) {
            return leases;
        }
        keeper.settle(leases);
        List<Lease> stale = call("could not acknowledge", store -> store.acknowledge(leases));
        LeaseKeeper.logStale(stale, "was acknowledged");
        return stale;
    }

    /** Acknowledges all that was delivered: CLIENT_ACKNOWLEDGE. */
    void acknowledgeAll() throws JMSException {
        List<Lease> leases = leases(unacknowledged);
        unacknowledged.clear();
        List<Lease> stale = acknowledgeNow(leases);
        session.retire();
        if (!stale.isEmpty()) {
            throw new JMSException("the leases of " + stale.size() + " of " + leases.size()
                    + " messages ended before they were acknowledged; they can be delivered again");
        }
    }

    /** Whether messages of the consumer are delivered and not acknowledged. */
    boolean holds(Consumer consumer) {
        return current != null && current.consumer() == consumer
                || unacknowledged.stream().anyMatch(taken -> taken.consumer() == consumer);
    }

    /** Whether messages are delivered and not acknowledged. */
    boolean holdsAny() {
        return current != null || !unacknowledged.isEmpty();
    }

    /** Delivers again what was not acknowledged, from the oldest on. */
    void recover() throws JMSException {
        if (current != null) {
            unacknowledged.add(current);
            recovered = true;
        }
        List<Lease> seen = leases(unacknowledged);
        unacknowledged.clear();
        release(seen, seen.isEmpty() ? List.of() : session.roster().drain());
        session.retire();
    }

    /**
     * Gives leases back, in one transaction.
     *
     * @param seen those whose attempt counts
     * @param unseen those whose attempt does not
     */
    void release(List<Lease> seen, List<Lease> unseen) throws JMSException {
        if (seen.isEmpty() && unseen.isEmpty()) {
            return;
        }
        String what = "could not give messages back";
        keeper.settle(seen);
        keeper.settle(unseen);
        if (isJoined() && !callers || !link.isOpen()) {
            // not in the client's transaction; or the control connection may still work
            session.connection().control().call(what, store -> release(store, seen, unseen));
        } else {
            link.call(what, store -> release(store, seen, unseen));
        }
    }

    private Void release(Store store, List<Lease> seen, List<Lease> unseen) throws SQLException {
        if (seen.isEmpty() || unseen.isEmpty()) {
            releaseEach(store, seen, unseen);
            return null;
        }
        store.begin();
        try {
            releaseEach(store, seen, unseen);
            store.commit();
        } catch (SQLException | RuntimeException e) {
            try {
                store.rollback();
            } catch (SQLException next) {
                e.addSuppressed(next);
            }
            throw e;
        }
        return null;
    }

    private void releaseEach(Store store, List<Lease> seen, List<Lease> unseen) throws SQLException {
        if (!seen.isEmpty()) {
            store.release(seen, redeliveryDelay, null, true);
        }
        if (!unseen.isEmpty()) {
            store.release(unseen, null, null, false);
        }
    }

    /** Commits what was sent and received. */
    void commit() throws JMSException {
        if (session.roster().hasConsumed()) {
            refuseCommit("the session was stopped before it delivered a message of the transaction");
        }
        checkLost();
        List<Outgoing> messages = aged();
        List<Lease> leases = leases(unacknowledged);
        forgetKept();
        if (messages.isEmpty() && leases.isEmpty() && !isJoined()) {
            unacknowledged.clear();
            return;
        }
        keeper.settle(leases);
        boolean joined = isJoined();
        Ahead ahead = joined ? null : session.intake().ahead(unacknowledged);
        Received taken = null;
        boolean[] deciding = new boolean[1];
        try {
            if (joined) {
                link.raw(store -> {
                    store.begin();
                    store.send(messages);
                    store.commit(List.of(), leases, () -> deciding[0] = true);
                    return null;
                });
            } else {
                taken = session.connection().commits().commit(link, messages, leases, ahead, () -> deciding[0] = true);
            }
        } catch (SQLException e) {
            lost = null;
            abandon();
            throw deciding[0] && Errors.isLost(e)
                    ? Errors.of("the outcome of the commit is not known", e)
                    : Errors.rolledBack("the transaction was rolled back", e);
        } catch (RuntimeException | Error e) {
            // what was to be sent is forgotten: what was received must not be acknowledged by a later commit
            abandon();
            throw e;
        }
        open = false;
        if (taken != null && taken.source() >= 0) {
            session.intake().took(unacknowledged, ahead, taken.messages());
        }
        unacknowledged.clear();
        again();
        session.retire();
    }

    /** Rolls back what was sent and received. */
    void rollback() throws JMSException {
        lost = null;
        forgetKept();
        if (isJoined()) {
            open = false;
            rollBackAtServer();
        }
        recover();
        again();
    }

    private void rollBackAtServer() throws JMSException {
        session.roster().forgetConsumed();
        link.call("could not roll back", store -> {
            store.rollback();
            return null;
        });
    }

    /** After a failed commit: everything is as after a rollback, as far as the server can be reached. */
    private void abandon() {
        try {
            rollBackAtServer();
            open = false;
            recover();
            again();
        } catch (JMSException e) {
            // without the server, the leases end by themselves
            open = false;
            leases(unacknowledged).forEach(keeper::drop);
            unacknowledged.clear();
        }
    }

    /** A client that has the JDBC connection finds a transaction begun there at any time. */
    private void again() throws JMSException {
        if (shared) {
            call("could not begin a transaction", store -> null);
        }
    }

    /** The connection is lost, and with it the open transaction. */
    void connectionLost(SQLException cause) {
        if (open) {
            lost = cause;
            open = false;
        }
    }

    /** The open transaction has consumed a message that the client never got: it must not commit. */
    void refuseCommit(String reason) {
        lost = new SQLException(reason, "40000");
    }

    private void checkLost() throws JMSException {
        if (lost != null) {
            SQLException cause = lost;
            lost = null;
            forgetKept();
            abandon();
            throw Errors.rolledBack("the transaction was rolled back", cause);
        }
    }

    /**
     * Ends everything: unacknowledged messages go back counted, others uncounted. What fails does not keep the rest
     * from ending.
     */
    void close() throws JMSException {
        forgetKept();
        List<Lease> seen = leases(unacknowledged);
        unacknowledged.clear();
        try {
            if (transacted && isJoined()) {
                rollBackAtServer();
                open = false;
            }
            acknowledgeNow(keeper.take(session, 1));
        } finally {
            release(seen, session.roster().drain());
        }
    }

    /** Whether the client need not acknowledge. */
    boolean acknowledgesItself() {
        return session.mode() == Session.AUTO_ACKNOWLEDGE || session.mode() == Session.DUPS_OK_ACKNOWLEDGE;
    }

    private boolean inGroups() {
        return session.mode() == Session.DUPS_OK_ACKNOWLEDGE
                || session.connection().options().groupAcknowledgements();
    }

    private static List<Lease> leases(List<Taken> messages) {
        List<Lease> leases = new ArrayList<>();
        for (Taken taken : messages) {
            leases.add(taken.lease());
        }
        return leases;
    }
}
