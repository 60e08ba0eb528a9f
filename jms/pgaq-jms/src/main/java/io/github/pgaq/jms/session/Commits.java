package io.github.pgaq.jms.session;

import io.github.pgaq.jms.store.Lease;
import io.github.pgaq.jms.store.Outgoing;
import jakarta.jms.JMSException;
import java.sql.SQLException;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

/**
 * The commits of the transacted sessions of a connection. A few run at a time, each on the connection of its session.
 * Those that come meanwhile wait, and the next one takes them along: they are one call of the server and one
 * transaction, which has the cost of one.
 *
 * <p>If that transaction is rolled back, each of its sessions commits again by itself. So a session gets no errors of
 * others, unless the connection is lost during the call: then the outcome is not known to any of them.
 */
final class Commits {
    /** So many calls at a time; the others wait. With one, sessions would wait for the disk in turns. */
    private static final int MOST_CALLS = 2;
    private static final int MOST_SESSIONS = 64;
    /** Of all sessions of a call. */
    private static final int MOST_MESSAGES = 1000;
    private static final long MOST_SIZE = 4L << 20;
    /** Then a session that no call has taken along goes by itself: those that run may wait for a lock of the server. */
    private static final long LONGEST_WAIT = TimeUnit.MILLISECONDS.toNanos(100);
    /** SQLSTATE: transaction resolution unknown. */
    private static final String UNKNOWN_OUTCOME = "08007";

    /** What becomes of the commit of a session. */
    private enum State {
        WAITING,
        /** It makes the next call. */
        LEADS,
        DONE,
        /** It was not committed, and is to be by itself. */
        ALONE,
        /** The connection was lost during the call. */
        UNKNOWN
    }

    /** The commit of a session. */
    private static final class Part {
        final List<Outgoing> messages;
        final List<Lease> leases;
        final long size;
        final Thread thread = Thread.currentThread();
        volatile State state = State.WAITING;
        Throwable failure;

        Part(List<Outgoing> messages, List<Lease> leases) {
            this.messages = messages;
            this.leases = leases;
            this.size = messages.stream().mapToLong(message -> message.body().size()).sum();
        }

        /** Whether others can wait for it: it is short, and has no content of its own. */
        boolean isShort() {
            return size <= MOST_SIZE && count() <= MOST_MESSAGES
                    && messages.stream().allMatch(message -> message.body().content() == null);
        }

        int count() {
            return messages.size() + leases.size();
        }
    }

    private final int mostCalls;
    private final long longestWait;
    // guarded by this
    private final ArrayDeque<Part> waiting = new ArrayDeque<>();
    private int calls;

    Commits() {
        this(MOST_CALLS, LONGEST_WAIT);
    }

    /**
     * For tests.
     *
     * @param longestWait nanoseconds that a session waits for a call to take it along
     */
    Commits(int mostCalls, long longestWait) {
        this.mostCalls = mostCalls;
        this.longestWait = longestWait;
    }

    /** How many sessions wait now. */
    synchronized int waiting() {
        return waiting.size();
    }

    /**
     * Commits what a session has sent and received.
     *
     * @param link of the session, whose thread this is
     * @param deciding runs before what can leave the outcome unknown
     */
    void commit(Link link, List<Outgoing> messages, List<Lease> leases, Runnable deciding)
            throws SQLException, JMSException {
        Part own = new Part(messages, leases);
        if (!link.isOpen() || !own.isShort()) {
            alone(link, own, deciding);
            return;
        }
        if (!begins(own)) {
            await(own);
        }
        switch (own.state) {
            case LEADS -> lead(link, own, deciding);
            case ALONE -> alone(link, own, deciding);
            case UNKNOWN -> {
                deciding.run();
                throw new SQLException(own.failure.getMessage(), UNKNOWN_OUTCOME, own.failure);
            }
            default -> { }
        }
    }

    private static void alone(Link link, Part own, Runnable deciding) throws SQLException, JMSException {
        link.raw(store -> {
            store.commit(own.messages, own.leases, deciding);
            return null;
        });
    }

    private synchronized boolean begins(Part own) {
        if (calls < mostCalls) {
            calls++;
            own.state = State.LEADS;
            return true;
        }
        waiting.add(own);
        return false;
    }

    /** Waits until the commit is decided, or is to be made. */
    private void await(Part own) {
        boolean interrupted = false;
        long until = System.nanoTime() + longestWait;
        while (own.state == State.WAITING) {
            long left = until - System.nanoTime();
            if (left > 0) {
                LockSupport.parkNanos(this, left);
            } else if (!leaves(own)) {
                LockSupport.park(this);
            }
            interrupted |= Thread.interrupted();
        }
        if (interrupted) {
            Thread.currentThread().interrupt();
        }
    }

    /** Goes by itself, unless a call has taken it along. */
    private synchronized boolean leaves(Part own) {
        boolean left = waiting.remove(own);
        if (left) {
            own.state = State.ALONE;
        }
        return left;
    }

    private void lead(Link link, Part own, Runnable deciding) throws SQLException, JMSException {
        boolean done = false;
        try {
            List<Part> others = gather(own);
            if (others.isEmpty()) {
                alone(link, own, deciding);
                return;
            }
            done = together(link, own, others, deciding);
        } finally {
            handOver();
        }
        if (!done) {
            alone(link, own, deciding);
        }
    }

    /** Takes along what waits, as far as there is room. */
    private synchronized List<Part> gather(Part own) {
        // with room for all, so that none is lost where memory is short
        List<Part> others = new ArrayList<>(MOST_SESSIONS);
        int count = own.count();
        long size = own.size;
        while (!waiting.isEmpty() && others.size() + 1 < MOST_SESSIONS) {
            Part next = waiting.peek();
            count += next.count();
            size += next.size;
            if (count > MOST_MESSAGES || size > MOST_SIZE) {
                break;
            }
            others.add(waiting.remove());
        }
        return others;
    }

    /** False: nothing was committed. */
    private static boolean together(Link link, Part own, List<Part> others, Runnable deciding)
            throws SQLException {
        boolean[] decided = new boolean[1];
        State state = State.ALONE;
        Throwable failure = null;
        try {
            List<Outgoing> messages = new ArrayList<>(own.messages);
            List<Lease> leases = new ArrayList<>(own.leases);
            for (Part other : others) {
                messages.addAll(other.messages);
                leases.addAll(other.leases);
            }
            boolean done = link.raw(store -> store.commitAtOnce(messages, leases, () -> decided[0] = true));
            state = done ? State.DONE : State.ALONE;
            return done;
        } catch (SQLException e) {
            if (!Errors.isLost(e)) {
                // rolled back: alone, each session gets its own errors
                return false;
            }
            if (decided[0]) {
                state = State.UNKNOWN;
                failure = e;
                deciding.run();
            }
            throw e;
        } catch (JMSException e) {
            // there is no connection
            return false;
        } catch (RuntimeException | Error e) {
            state = decided[0] ? State.UNKNOWN : State.ALONE;
            failure = e;
            throw e;
        } finally {
            for (Part other : others) {
                wake(other, state, failure);
            }
        }
    }

    /** The next session makes a call. */
    private synchronized void handOver() {
        Part next = waiting.poll();
        if (next == null) {
            calls--;
        } else {
            wake(next, State.LEADS, null);
        }
    }

    private static void wake(Part part, State state, Throwable failure) {
        part.failure = failure;
        part.state = state;
        LockSupport.unpark(part.thread);
    }
}
