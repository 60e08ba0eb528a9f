package io.github.pgaq.jms.session;

import io.github.pgaq.jms.PgaqOptions;
import io.github.pgaq.jms.store.Lease;
import jakarta.jms.JMSException;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The control thread of a connection: extends the leases of its sessions at a third of their length, commits
 * acknowledgements in groups, and notices that the server is gone.
 */
final class LeaseKeeper implements Runnable {
    private static final Logger LOG = LoggerFactory.getLogger(LeaseKeeper.class);
    /** So long a session waits for an extension; one that takes longer may be connecting again. */
    private static final long LONGEST_EXTENSION_NANOS = 1_000_000_000;
    /** So often, or with each extension, the server is asked whether it is there. */
    static final long PING_NANOS = 3_000_000_000L;

    private final Control control;
    private final PgaqOptions options;
    private final Errors.CheckedVoid upkeep;
    private final Map<Lease, Consumer> held = new ConcurrentHashMap<>();
    private final Set<Lease> stale = ConcurrentHashMap.newKeySet();

    private final ReentrantLock lock = new ReentrantLock();
    private final Condition changed = lock.newCondition();
    // guarded by lock
    private final Map<Object, List<Lease>> acknowledged = new HashMap<>();
    private Set<Lease> extending = Set.of();
    private boolean closed;

    /**
     * Makes a keeper.
     *
     * @param upkeep what else is to be done from time to time
     */
    LeaseKeeper(Control control, PgaqOptions options, Errors.CheckedVoid upkeep) {
        this.control = control;
        this.options = options;
        this.upkeep = upkeep;
    }

    /** Extends the lease of this message from now on. */
    void keep(Taken taken) {
        held.put(taken.lease(), taken.consumer());
    }

    /** Extends it no longer. */
    void drop(Lease lease) {
        lock.lock();
        try {
            held.remove(lease);
            stale.remove(lease);
        } finally {
            lock.unlock();
        }
    }

    /**
     * Extends them no longer, and waits for an extension that is under way: while its transaction is open, the server
     * refuses to acknowledge or release them. To be called before that.
     */
    void settle(List<Lease> leases) {
        lock.lock();
        try {
            leases.forEach(this::drop);
            long until = System.nanoTime() + LONGEST_EXTENSION_NANOS;
            while (!Collections.disjoint(leases, extending) && Gate.awaitUninterruptibly(changed, until)) {
                // another change
            }
        } finally {
            lock.unlock();
        }
    }

    /** Whether the lease is known to have ended. */
    boolean isStale(Lease lease) {
        return stale.contains(lease);
    }

    /**
     * Acknowledges soon, together with others.
     *
     * @param session what {@link #take} can take it back with
     */
    void acknowledgeLater(Object session, Lease lease) {
        lock.lock();
        try {
            if (acknowledged.isEmpty()) {
                changed.signalAll();
            }
            acknowledged.computeIfAbsent(session, key -> new ArrayList<>()).add(lease);
        } finally {
            lock.unlock();
        }
    }

    /**
     * Takes back what the session is to acknowledge, for it to do so itself with its next call of the server.
     *
     * @param least nothing if there are fewer
     */
    List<Lease> take(Object session, int least) {
        lock.lock();
        try {
            List<Lease> leases = acknowledged.get(session);
            if (leases == null || leases.size() < least) {
                return List.of();
            }
            acknowledged.remove(session);
            return leases;
        } finally {
            lock.unlock();
        }
    }

    /** Acknowledges what {@link #acknowledgeLater} was called with. */
    void flush() throws JMSException {
        List<Lease> group = new ArrayList<>();
        lock.lock();
        try {
            acknowledged.values().forEach(group::addAll);
            acknowledged.clear();
        } finally {
            lock.unlock();
        }
        if (group.isEmpty()) {
            return;
        }
        settle(group);
        List<Lease> ended = control.call("could not acknowledge", store -> store.acknowledge(group));
        logStale(ended, "was acknowledged");
    }

    /** Says that messages were given to another consumer although this one had them. */
    static void logStale(List<Lease> ended, String state) {
        for (Lease lease : ended) {
            LOG.warn(
                    "lease of message {} of \"{}\" ended before it {}; it can be delivered again",
                    lease.msgid(),
                    lease.queue(),
                    state);
        }
    }

    /** Ends the thread soon. */
    void close() {
        lock.lock();
        try {
            closed = true;
            changed.signalAll();
        } finally {
            lock.unlock();
        }
    }

    @Override
    public void run() {
        long period = options.lease().toNanos() / 3;
        long pinging = Math.min(period, PING_NANOS);
        long pause = Math.min(pinging, options.prefetchIdle().toNanos() / 2);
        long next = System.nanoTime() + period;
        long ping = System.nanoTime() + pinging;
        while (await(System.nanoTime() + pause)) {
            // nothing ends this thread but close()
            Thread.interrupted();
            try {
                if (ping - System.nanoTime() <= 0) {
                    ping = System.nanoTime() + pinging;
                    control.ping();
                    upkeep.run();
                }
                flush();
                releaseIdle();
                if (next - System.nanoTime() <= 0) {
                    next = System.nanoTime() + period;
                    extend();
                }
            } catch (JMSException | RuntimeException e) {
                // the control connection reports a lost connection to the exception listener itself
                LOG.warn("control of leases failed: {}", e.getMessage());
            }
        }
    }

    /** Waits until the time, or, if there are acknowledgements, for the interval of a group; false: closed. */
    private boolean await(long next) {
        lock.lock();
        try {
            while (!closed && acknowledged.isEmpty() && Gate.awaitUninterruptibly(changed, next)) {
                // nothing to do yet
            }
            if (!closed && !acknowledged.isEmpty()) {
                long until = System.nanoTime() + options.ackInterval().toNanos();
                while (!closed && Gate.awaitUninterruptibly(changed, until)) {
                    // the group grows
                }
            }
            return !closed;
        } finally {
            lock.unlock();
        }
    }

    /** Gives back what lies unused; the thread calls it, and tests. */
    void releaseIdle() {
        for (ClientSession session :
                new HashSet<>(held.values().stream().map(Consumer::session).toList())) {
            try {
                session.releaseIdle(System.nanoTime() - options.prefetchIdle().toNanos());
            } catch (JMSException | RuntimeException e) {
                // a session whose connection is lost does not end the leases of the others
                LOG.warn("giving back unused messages failed: {}", e.getMessage());
            }
        }
    }

    /** Extends all leases once; the thread calls it, and tests. */
    void extend() throws JMSException {
        List<Lease> leases = beginExtension();
        if (leases.isEmpty()) {
            return;
        }
        List<Lease> ended = List.of();
        try {
            ended = control.call("could not extend leases", store -> store.extend(leases, options.lease()));
        } finally {
            logStale(endExtension(ended), "was acknowledged");
        }
    }

    private List<Lease> beginExtension() {
        lock.lock();
        try {
            extending = new HashSet<>(held.keySet());
            return new ArrayList<>(extending);
        } finally {
            lock.unlock();
        }
    }

    /** Notes those that have ended; returns those of them that were still held. */
    private List<Lease> endExtension(List<Lease> ended) {
        lock.lock();
        try {
            List<Lease> real = new ArrayList<>(ended);
            real.retainAll(held.keySet());
            stale.addAll(real);
            real.forEach(held::remove);
            extending = Set.of();
            changed.signalAll();
            return real;
        } finally {
            lock.unlock();
        }
    }
}
