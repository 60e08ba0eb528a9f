package io.github.pgaq.jms.session;

import io.github.pgaq.jms.store.Body;
import io.github.pgaq.jms.store.Lease;
import io.github.pgaq.jms.store.Outgoing;
import io.github.pgaq.jms.store.Subscription;
import java.lang.management.ManagementFactory;
import java.lang.management.MonitorInfo;
import java.lang.management.ThreadInfo;
import java.lang.management.ThreadMXBean;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;

/** Queues in memory for the stores of a test. Leases end only when a test says so. */
final class FakeServer {
    private static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();

    /** A message of a queue or of a subscriber. */
    static final class Stored {
        final UUID msgid = UUID.randomUUID();
        final long sequence;
        final Outgoing outgoing;
        int attempts;
        long receipt;
        FakeStore takenBy;
        /** Whose lease it is; it ends with that connection. */
        FakeStore leasedBy;

        Stored(long sequence, Outgoing outgoing) {
            this.sequence = sequence;
            this.outgoing = outgoing;
        }

        boolean isReady() {
            return receipt == 0 && takenBy == null;
        }
    }

    /** The messages of queues, by name, and of subscribers, by topic and name. */
    final Map<String, List<Stored>> messages = new LinkedHashMap<>();

    final Map<String, Boolean> queues = new HashMap<>();
    final Map<String, Subscription> subscribers = new HashMap<>();
    final Map<String, FakeStore> owners = new HashMap<>();
    final List<FakeStore> stores = new ArrayList<>();
    /** The calls, as {@code name argument}, in their order. */
    final List<String> calls = new ArrayList<>();

    /** Monitors that were held during calls. */
    final Set<String> monitors = ConcurrentHashMap.newKeySet();

    private final Map<String, SQLException> failures = new HashMap<>();
    private final Set<String> exhausted = new HashSet<>();
    private long sequence;
    private long receipts;
    private int waiting;
    boolean refusing;
    /** Runs before a connection is refused. */
    Runnable refused = () -> {};
    /** Runs before a call of extend. */
    volatile Runnable extending = () -> {};
    /** Runs before a call of readContent. */
    volatile Runnable reading = () -> {};

    synchronized FakeServer queue(String name) {
        queues.put(name, false);
        messages.put(name, new ArrayList<>());
        return this;
    }

    synchronized FakeServer topic(String name) {
        queues.put(name, true);
        return this;
    }

    synchronized FakeStore open() throws SQLException {
        noteMonitors();
        if (refusing) {
            refused.run();
            throw new SQLException("connection refused", "08001");
        }
        FakeStore store = new FakeStore(this);
        stores.add(store);
        return store;
    }

    /** The next call of that name fails. */
    synchronized void fail(String call, String state) {
        failures.put(call, new SQLException("made to fail", state));
    }

    /** The next call of that name runs out of memory. */
    synchronized void exhaust(String call) {
        exhausted.add(call);
    }

    /** Notes the monitors of the provider that the calling thread has while it calls the server. */
    void noteMonitors() {
        ThreadInfo thread =
                THREADS.getThreadInfo(new long[] {Thread.currentThread().getId()}, true, false)[0];
        for (MonitorInfo monitor : thread.getLockedMonitors()) {
            if (monitor.getClassName().startsWith("io.github.pgaq.jms.")
                    && !monitor.getClassName().equals(FakeServer.class.getName())) {
                monitors.add(monitor.getClassName() + " in " + monitor.getLockedStackFrame());
            }
        }
    }

    synchronized void called(FakeStore store, String call, String argument) throws SQLException {
        noteMonitors();
        if (store.dead) {
            throw new SQLException("connection is lost", "08006");
        }
        calls.add(argument.isEmpty() ? call : call + " " + argument);
        notifyAll();
        if (exhausted.remove(call)) {
            throw new OutOfMemoryError("made to fail");
        }
        SQLException failure = failures.remove(call);
        if (failure != null) {
            if (failure.getSQLState().startsWith("08")) {
                kill(store);
            }
            throw failure;
        }
    }

    /** Ends the connection of a store, as a network failure does. */
    synchronized void kill(FakeStore store) {
        store.dead = true;
        store.forget();
        messages.values()
                .forEach(
                        place -> place.stream().filter(m -> m.leasedBy == store).forEach(m -> m.receipt = 0));
        owners.entrySet().removeIf(entry -> entry.getValue() == store);
        notifyAll();
    }

    /** Waits until that many stores wait for messages. */
    synchronized void awaitWaiting(int count) throws InterruptedException {
        while (waiting != count) {
            wait();
        }
    }

    /** Waits until a call of the name has come that often. */
    synchronized void awaitCalls(String call, int count) throws InterruptedException {
        while (count(call) < count) {
            wait();
        }
    }

    synchronized long count(String call) {
        return calls.stream()
                .filter(each -> each.equals(call) || each.startsWith(call + " "))
                .count();
    }

    synchronized void waits(int change) {
        waiting += change;
        notifyAll();
    }

    synchronized void add(Outgoing outgoing) throws SQLException {
        Boolean topic = queues.get(outgoing.queue());
        if (topic == null) {
            throw new SQLException("queue does not exist", "42704");
        }
        if (topic) {
            subscribers.values().stream()
                    .filter(s -> s.topic().equals(outgoing.queue()) && meets(outgoing, s.rule()))
                    .forEach(s -> place(key(s.topic(), s.subscriber())).add(new Stored(++sequence, outgoing)));
        } else {
            place(outgoing.queue()).add(new Stored(++sequence, outgoing));
        }
        notifyAll();
    }

    /** Sends a text message with a priority of JMS. */
    void text(String queue, String text, int priority) throws SQLException {
        add(new Outgoing(queue, new Body("text", "{}", null, null, text, null), 9 - priority, 0, 0, null, null, null));
    }

    void text(String queue, String... texts) throws SQLException {
        for (String text : texts) {
            text(queue, text, 4);
        }
    }

    /** Sends a bytes message whose body is a large one. */
    void large(String queue) throws SQLException {
        String headers = "{\"content_length\": 1}";
        add(new Outgoing(queue, new Body("bytes", headers, null, null, null, null), 5, 0, 0, null, null, null));
    }

    static String key(String queue, String consumer) {
        return consumer == null ? queue : queue + "/" + consumer;
    }

    List<Stored> place(String key) {
        return messages.computeIfAbsent(key, k -> new ArrayList<>());
    }

    /** The messages that can be taken, in order. */
    synchronized List<Stored> ready(String key, String condition) {
        return place(key).stream()
                .filter(m -> m.isReady() && meets(m.outgoing, condition))
                .sorted(Comparator.<Stored>comparingInt(m -> m.outgoing.priority())
                        .thenComparingLong(m -> m.sequence))
                .toList();
    }

    /** Understands what Conditions makes, and nothing else. */
    private static boolean meets(Outgoing outgoing, String condition) {
        if (condition == null) {
            return true;
        }
        if (condition.contains(" NOT IN (")) {
            return Arrays.stream(condition.split("'"))
                    .noneMatch(value -> outgoing.body().headers().contains("\"destination\": \"" + value + "\""));
        }
        String value = condition.substring(condition.indexOf("' ") + 2).replaceAll("^[^']*'|'\\)?$", "");
        boolean found = outgoing.body().headers().contains("\"" + value + "\"");
        return condition.contains("DISTINCT") ? !found : found;
    }

    synchronized long nextReceipt() {
        return ++receipts;
    }

    /** The leased message of the lease; null if that has ended. */
    synchronized Stored leased(Lease lease) {
        return place(key(lease.queue(), lease.consumer())).stream()
                .filter(m -> m.msgid.equals(lease.msgid()) && m.receipt == lease.receipt())
                .findFirst()
                .orElse(null);
    }

    /** Ends all leases, as when their time is over. */
    synchronized void endLeases() {
        messages.values().forEach(place -> place.forEach(m -> m.receipt = 0));
        notifyAll();
    }

    /** The texts that are in the queue, ready or not. */
    synchronized List<String> texts(String key) {
        return place(key).stream().map(m -> m.outgoing.body().text()).toList();
    }

    /** How often the messages of the queue were tried. */
    synchronized List<Integer> attempts(String key) {
        return place(key).stream().map(m -> m.attempts).toList();
    }
}
