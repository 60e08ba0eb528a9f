package io.github.pgaq.jms.session;

import io.github.pgaq.jms.store.Ahead;
import io.github.pgaq.jms.store.Lease;
import io.github.pgaq.jms.store.Outgoing;
import io.github.pgaq.jms.store.Received;
import jakarta.jms.JMSException;
import java.sql.SQLException;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

/**
 * The commits of the transacted sessions of a connection. One runs at a time, on the connection of its session. Those
 * that come meanwhile wait, and the next one takes them along: they are one call of the server and one transaction,
 * which has the cost of one. A session that is also to take messages does not wait, as its messages come to
 * its own connection; it takes the others along, too.
 *
 * <p>If that transaction is rolled back, each of its sessions commits again by itself. So a session gets no errors of
 * others, unless the connection is lost during the call: then the outcome is not known to any of them.
 */
final class Commits {
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
        final Ahead ahead;
        final long size;
        final Thread thread = Thread.currentThread();
        volatile State state = State.WAITING;
        Throwable failure;

        Part(List<Outgoing> messages, List<Lease> leases, Ahead ahead) {
            this.messages = messages;
            this.leases = leases;
            this.ahead = ahead;
            this.size = messages.stream()
                    .mapToLong(message -> message.body().size())
                    .sum();
        }

        /** Whether others can wait for it: it is short, and has no content of its own. */
        boolean isShort() {
            return size <= MOST_SIZE
                    && count() <= MOST_MESSAGES
                    && messages.stream().allMatch(message -> message.body().content() == null);
        }

        int count() {
            return messages.size() + leases.size();
        }
    }

    private final long longestWait;
    // guarded by this
    private final ArrayDeque<Part> waiting = new ArrayDeque<>();
    /** More than one only because some of them take messages. */
    private int calls;

    Commits() {
        this(LONGEST_WAIT);
    }

    /**
     * For tests.
     *
     * @param longestWait nanoseconds that a session waits for a call to take it along
     */
    Commits(long longestWait) {
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
     * @param ahead messages to lease with it if that costs no call of its own; null: none
     * @param deciding runs before what can leave the outcome unknown
     * @return what was leased, or null
     */
    Received commit(Link link, List<Outgoing> messages, List<Lease> leases, Ahead ahead, Runnable deciding)
            throws SQLException, JMSException {
        Part own = new Part(messages, leases, ahead);
        if (!link.isOpen() || !own.isShort()) {
            return alone(link, own, deciding);
        }
        if (!begins(own)) {
            await(own);
        }
        switch (own.state) {
            case LEADS:
                return lead(link, own, deciding);
            case ALONE:
                return alone(link, own, deciding);
            case UNKNOWN:
                deciding.run();
                throw new SQLException(own.failure.getMessage(), UNKNOWN_OUTCOME, own.failure);
            default:
                return null;
        }
    }

    private static Received alone(Link link, Part own, Runnable deciding) throws SQLException, JMSException {
        return link.raw(store -> {
            store.commit(own.messages, own.leases, deciding);
            return null;
        });
    }

    private synchronized boolean begins(Part own) {
        if (calls == 0 || own.ahead != null) {
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

    private Received lead(Link link, Part own, Runnable deciding) throws SQLException, JMSException {
        Received received;
        try {
            List<Part> others = gather(own);
            if (others.isEmpty() && own.ahead == null) {
                return alone(link, own, deciding);
            }
            received = together(link, own, others, deciding);
        } finally {
            handOver();
        }
        return received != null ? received : alone(link, own, deciding);
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

    /** Null: nothing was committed. */
    private static Received together(Link link, Part own, List<Part> others, Runnable deciding) throws SQLException {
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
            Received received =
                    link.raw(store -> store.commitAtOnce(messages, leases, own.ahead, () -> decided[0] = true));
            state = received != null ? State.DONE : State.ALONE;
            return received;
        } catch (SQLException e) {
            if (!Errors.isLost(e)) {
                // rolled back: alone, each session gets its own errors
                return null;
            }
            if (decided[0]) {
                state = State.UNKNOWN;
                failure = e;
                deciding.run();
            }
            throw e;
        } catch (JMSException e) {
            // there is no connection
            return null;
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

    /** The next session makes a call, unless one that takes messages is making one. */
    private synchronized void handOver() {
        Part next = calls > 1 ? null : waiting.poll();
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
