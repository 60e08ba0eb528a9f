package io.github.pgaq.jms.session;

import io.github.pgaq.jms.store.Ahead;
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
import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.stream.LongStream;

/** A store of a {@link FakeServer}. */
final class FakeStore implements Store {
    private final FakeServer server;
    private final List<Runnable> atCommit = new ArrayList<>();
    private final List<Runnable> atRollback = new ArrayList<>();
    private boolean open;
    private boolean cancelled;
    private boolean receiving;
    boolean dead;
    boolean closed;
    private final Map<String, Integer> claims = new HashMap<>();

    FakeStore(FakeServer server) {
        this.server = server;
    }

    /** The connection ends: so do its transaction and what belongs to it. */
    void forget() {
        atRollback.forEach(Runnable::run);
        atRollback.clear();
        atCommit.clear();
        claims.clear();
        open = false;
    }

    private void effect(Runnable commit, Runnable rollback) {
        if (open) {
            atCommit.add(commit);
            atRollback.add(rollback);
        } else {
            commit.run();
        }
    }

    @Override
    public QueueDescription describe(String queue) throws SQLException {
        server.called(this, "describe", queue);
        Boolean topic = server.queues.get(queue);
        if (topic == null) {
            throw new SQLException("queue \"" + queue + "\" does not exist", "42704");
        }
        return new QueueDescription(queue, topic, "aq.jms_message", 5, true);
    }

    @Override
    public void readContent(String queue, String consumer, UUID msgid, OutputStream to) throws SQLException {
        server.reading.run();
        server.called(this, "readContent", "");
    }

    @Override
    public void send(List<Outgoing> messages) throws SQLException {
        server.called(this, "send", Integer.toString(messages.size()));
        for (Outgoing message : messages) {
            effect(
                    () -> {
                        try {
                            server.add(message);
                        } catch (SQLException e) {
                            throw new IllegalStateException(e);
                        }
                    },
                    () -> {});
        }
    }

    @Override
    public Received receive(List<Source> sources, Duration timeout, Duration lease, List<Lease> acknowledge)
            throws SQLException {
        synchronized (server) {
            server.called(this, "receive", "");
            List<Lease> stale = acknowledge(acknowledge);
            long until = timeout == null ? Long.MAX_VALUE : System.nanoTime() + timeout.toNanos();
            cancelled = false;
            receiving = true;
            boolean interrupted = false;
            server.waits(1);
            try {
                while (true) {
                    for (int i = 0; i < sources.size(); i++) {
                        List<Delivery> taken = take(sources.get(i), lease != null);
                        if (!taken.isEmpty()) {
                            return new Received(i, taken, stale);
                        }
                    }
                    long left = until == Long.MAX_VALUE ? 0 : (until - System.nanoTime()) / 1_000_000;
                    if (cancelled || until != Long.MAX_VALUE && left <= 0) {
                        return new Received(-1, List.of(), stale);
                    }
                    interrupted |= await(left);
                    if (dead) {
                        throw new SQLException("connection is lost", "08006");
                    }
                }
            } finally {
                receiving = false;
                if (interrupted) {
                    Thread.currentThread().interrupt();
                }
                server.waits(-1);
            }
        }
    }

    /** Waits for a change as a driver reads from a socket: an interrupt does not end it. */
    private boolean await(long milliseconds) {
        try {
            server.wait(milliseconds);
            return false;
        } catch (InterruptedException e) {
            return true;
        }
    }

    private List<Delivery> take(Source source, boolean leased) {
        List<Delivery> taken = new ArrayList<>();
        String key = FakeServer.key(source.queue(), source.consumer());
        long bytes = 0;
        for (FakeServer.Stored message : server.ready(key, source.condition())) {
            if (taken.size() == source.max()) {
                break;
            }
            bytes += message.outgoing.body().size();
            boolean beyond = source.maxBytes() > 0 && bytes > source.maxBytes() && !taken.isEmpty();
            taken.add(new Delivery(
                    message.msgid,
                    leased ? server.nextReceipt() : 0,
                    message.attempts,
                    message.outgoing.priority(),
                    0,
                    0,
                    0,
                    null,
                    beyond ? null : message.outgoing.body()));
            if (leased) {
                message.receipt = taken.get(taken.size() - 1).receipt();
                message.leasedBy = this;
                message.attempts++;
            } else {
                message.takenBy = this;
                effect(() -> server.place(key).remove(message), () -> {
                    message.takenBy = null;
                    message.attempts++;
                });
            }
        }
        return taken;
    }

    @Override
    public List<Lease> acknowledge(List<Lease> leases) throws SQLException {
        synchronized (server) {
            if (!leases.isEmpty()) {
                server.called(this, "acknowledge", Integer.toString(leases.size()));
            }
            List<Lease> stale = new ArrayList<>();
            for (Lease lease : leases) {
                FakeServer.Stored message = server.leased(lease);
                if (message == null) {
                    stale.add(lease);
                } else {
                    effect(
                            () -> server.place(FakeServer.key(lease.queue(), lease.consumer()))
                                    .remove(message),
                            () -> {});
                }
            }
            return stale;
        }
    }

    @Override
    public List<Lease> release(List<Lease> leases, Duration delay, String error, boolean count) throws SQLException {
        synchronized (server) {
            server.called(this, "release", leases.size() + " " + count);
            List<Lease> stale = new ArrayList<>();
            for (Lease lease : leases) {
                FakeServer.Stored message = server.leased(lease);
                if (message == null) {
                    stale.add(lease);
                } else {
                    effect(
                            () -> {
                                message.receipt = 0;
                                message.attempts -= count ? 0 : 1;
                                server.notifyAll();
                            },
                            () -> {});
                }
            }
            return stale;
        }
    }

    @Override
    public List<Lease> extend(List<Lease> leases, Duration lease) throws SQLException {
        server.extending.run();
        synchronized (server) {
            server.called(this, "extend", Integer.toString(leases.size()));
            return leases.stream().filter(each -> server.leased(each) == null).toList();
        }
    }

    @Override
    public List<Delivery> browse(Source source, UUID after) throws SQLException {
        server.called(this, "browse", source.queue());
        List<Delivery> found = new ArrayList<>();
        for (FakeServer.Stored message : server.ready(source.queue(), source.condition())) {
            found.add(new Delivery(
                    message.msgid,
                    0,
                    message.attempts,
                    message.outgoing.priority(),
                    0,
                    0,
                    0,
                    null,
                    message.outgoing.body()));
        }
        return after == null ? found : List.of();
    }

    @Override
    public void subscribe(String topic, String subscriber, String rule, boolean durable) throws SQLException {
        synchronized (server) {
            server.called(this, "subscribe", subscriber);
            server.subscribers.put(subscriber, new Subscription(topic, subscriber, rule));
        }
    }

    @Override
    public List<Subscription> subscriptions(String subscriber) {
        synchronized (server) {
            Subscription found = server.subscribers.get(subscriber);
            return found == null ? List.of() : List.of(found);
        }
    }

    @Override
    public void unsubscribe(String topic, String subscriber) throws SQLException {
        synchronized (server) {
            server.called(this, "unsubscribe", subscriber);
            server.subscribers.remove(subscriber);
            server.messages.remove(FakeServer.key(topic, subscriber));
        }
    }

    @Override
    public String createTemporary(boolean topic) throws SQLException {
        synchronized (server) {
            server.called(this, "createTemporary", "");
            String name = "temporary_" + server.queues.size();
            if (topic) {
                server.topic(name);
            } else {
                server.queue(name);
            }
            return name;
        }
    }

    @Override
    public void dropTemporary(String queue) {
        server.queues.remove(queue);
    }

    /** A positive number counts shared claims, a negative one exclusive claims. */
    @Override
    public boolean claim(String name, boolean shared) {
        synchronized (server) {
            boolean taken = server.stores.stream()
                    .anyMatch(other -> other != this
                            && (shared
                                    ? other.claims.getOrDefault(name, 0) < 0
                                    : other.claims.getOrDefault(name, 0) != 0));
            if (!taken) {
                claims.merge(name, shared ? 1 : -1, Integer::sum);
            }
            return !taken;
        }
    }

    @Override
    public List<String> claimTemporary(String queue, long first, int count) {
        return LongStream.range(first, first + count)
                .mapToObj(n -> queue + "/0" + n)
                .toList();
    }

    @Override
    public void unclaimTemporary(String name) {
        // sends do not ask for claims
    }

    @Override
    public void endClaimants(String name) {
        synchronized (server) {
            server.stores.stream()
                    .filter(other -> other != this && other.claims.getOrDefault(name, 0) != 0)
                    .forEach(server::kill);
        }
    }

    @Override
    public void unclaim(String name, boolean shared) {
        synchronized (server) {
            claims.merge(name, shared ? -1 : 1, Integer::sum);
        }
    }

    @Override
    public void begin() throws SQLException {
        if (!open) {
            server.called(this, "begin", "");
            open = true;
        }
    }

    @Override
    public void commit(List<Outgoing> messages, List<Lease> acknowledge, Runnable deciding) throws SQLException {
        begin();
        if (!messages.isEmpty()) {
            send(messages);
        }
        List<Lease> ended = acknowledge(acknowledge);
        if (!ended.isEmpty()) {
            throw new SQLException("the leases of " + ended.size() + " messages have ended", LEASE_ENDED);
        }
        deciding.run();
        commit();
    }

    @Override
    public Received commitAtOnce(List<Outgoing> messages, List<Lease> acknowledge, Ahead ahead, Runnable deciding)
            throws SQLException {
        synchronized (server) {
            server.called(this, "commitAtOnce", messages.size() + " " + acknowledge.size());
            if (acknowledge.stream().anyMatch(lease -> server.leased(lease) == null)) {
                return null;
            }
            deciding.run();
            server.called(this, "decide", "");
            if (ahead != null) {
                server.called(this, "ahead", Integer.toString(ahead.source().max()));
            }
            for (Outgoing message : messages) {
                server.add(message);
            }
            acknowledge(acknowledge);
            List<Delivery> taken = ahead == null ? List.of() : take(ahead.source(), true);
            return new Received(taken.isEmpty() ? -1 : 0, taken, List.of());
        }
    }

    @Override
    public void commit() throws SQLException {
        synchronized (server) {
            server.called(this, "commit", "");
            atCommit.forEach(Runnable::run);
            atCommit.clear();
            atRollback.clear();
            open = false;
        }
    }

    @Override
    public void rollback() throws SQLException {
        synchronized (server) {
            server.called(this, "rollback", "");
            forgetTransaction();
        }
    }

    private void forgetTransaction() {
        atRollback.forEach(Runnable::run);
        atRollback.clear();
        atCommit.clear();
        open = false;
        server.notifyAll();
    }

    @Override
    public void cancel() {
        server.noteMonitors();
        synchronized (server) {
            if (receiving) {
                cancelled = true;
                server.notifyAll();
            }
        }
    }

    @Override
    public boolean isAlive() {
        return !dead;
    }

    @Override
    public boolean isAlone() {
        return !open;
    }

    @Override
    public Connection connection() {
        return null;
    }

    @Override
    public void close() {
        synchronized (server) {
            closed = true;
            forgetTransaction();
            claims.clear();
        }
    }
}
