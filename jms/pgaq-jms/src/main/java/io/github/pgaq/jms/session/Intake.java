package io.github.pgaq.jms.session;

import io.github.pgaq.jms.message.Acknowledger;
import io.github.pgaq.jms.message.PgaqMessage;
import io.github.pgaq.jms.store.Ahead;
import io.github.pgaq.jms.store.Delivery;
import io.github.pgaq.jms.store.Lease;
import io.github.pgaq.jms.store.Received;
import io.github.pgaq.jms.store.Source;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.function.BooleanSupplier;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Takes the messages of a session's consumers, ahead if possible. Its callers have entered the gate. */
final class Intake {
    private static final Logger LOG = LoggerFactory.getLogger(Intake.class);

    private final ClientSession session;
    private final Gate gate;
    private final Settlement settlement;
    private final LeaseKeeper keeper;
    private final Duration lease;

    Intake(ClientSession session, Gate gate, Settlement settlement) {
        this.session = session;
        this.gate = gate;
        this.settlement = settlement;
        this.keeper = session.connection().keeper();
        this.lease = session.connection().options().lease();
    }

    /** Makes the result of a received message. */
    interface Reader<T> {
        T read(Message message) throws JMSException;
    }

    /**
     * Receives a message; the caller has not entered the gate. If the reader fails, a session that acknowledges by
     * itself keeps the message for the next call, as if this one had not been (specification 8.6). What the open
     * transaction has consumed counts as delivered.
     *
     * @param want how many messages to take ahead at least, if the queue has that number
     * @return null if none came until the deadline, or consumer or session were closed
     * @throws JMSException also if the thread is interrupted and there is no message now
     */
    <T> T receive(Consumer consumer, Deadline deadline, int want, Reader<T> reader) throws JMSException {
        while (enterStarted(consumer, deadline)) {
            try {
                session.connection().checkNotSuspended();
                boolean over = deadline.isOver();
                boolean interrupted = !over && Thread.currentThread().isInterrupted();
                Taken taken = poll(consumer);
                if (taken == null) {
                    fill(consumer, over || interrupted ? Deadline.in(0) : deadline, want);
                    taken = poll(consumer);
                }
                if (taken == null && over) {
                    return null;
                }
                if (taken == null && interrupted) {
                    throw interrupted(new InterruptedException());
                }
                if (taken != null && taken.lease() != null && (!gate.isStarted() || consumer.isClosed())) {
                    // stopped or closed while it was waiting; what the transaction has consumed came before that
                    consumer.buffer().addFirst(taken);
                } else if (taken != null) {
                    T result = read(taken, reader);
                    if (settlement.received(taken)) {
                        return result;
                    }
                }
            } finally {
                gate.leave();
            }
        }
        return null;
    }

    private boolean enterStarted(Consumer consumer, Deadline deadline) throws JMSException {
        try {
            return gate.enterStarted(() -> !consumer.isClosed(), deadline);
        } catch (InterruptedException e) {
            throw interrupted(e);
        }
    }

    private static JMSException interrupted(InterruptedException e) {
        return Errors.interrupted("interrupted while waiting for a message", e);
    }

    /** Fills the buffer of a consumer whose client waits; an interrupt ends the wait. */
    private void fill(Consumer consumer, Deadline deadline, int want) throws JMSException {
        boolean wait = !deadline.isOver();
        if (wait) {
            Interrupts.begin(gate);
        }
        try {
            // an interrupt that comes before the wait begins finds nothing to cancel
            fill(
                    List.of(consumer),
                    () -> !consumer.isClosed() && !Thread.currentThread().isInterrupted(),
                    deadline,
                    settlement.due(),
                    want);
        } finally {
            if (wait) {
                Interrupts.end();
            }
        }
    }

    private <T> T read(Taken taken, Reader<T> reader) throws JMSException {
        Message message;
        try {
            message = message(taken);
        } catch (JMSException e) {
            if (taken.lease() != null) {
                giveBack(taken, e);
            } else {
                settlement.refuseCommit("a message of the transaction could not be read");
            }
            throw e;
        }
        try {
            return reader.read(message);
        } catch (JMSException e) {
            if (taken.lease() == null || !settlement.acknowledgesItself()) {
                settlement.received(taken);
            } else if (settlement.isJoined()) {
                // nothing extends the lease, and nothing gives the message back if the caller closes the connection
                settlement.release(List.of(), List.of(taken.lease()));
            } else {
                taken.consumer().buffer().addFirst(taken);
            }
            throw e;
        }
    }

    private void giveBack(Taken taken, JMSException reason) {
        try {
            // the attempt counts, so that the retries of the queue end it
            settlement.release(List.of(taken.lease()), session.roster().drain());
        } catch (JMSException e) {
            reason.addSuppressed(e);
        }
    }

    /** The next message of the consumer's buffer that can be delivered, or null. */
    Taken poll(Consumer consumer) throws JMSException {
        if (!consumer.buffer().isEmpty()) {
            session.connection().checkTakeover();
        }
        List<Lease> expired = new ArrayList<>();
        Taken next = consumer.buffer().poll();
        while (next != null && next.lease() != null) {
            long expires = next.delivery().expireTime();
            if (keeper.isStale(next.lease())) {
                keeper.drop(next.lease());
            } else if (expires != 0 && expires <= System.currentTimeMillis()) {
                expired.add(next.lease());
            } else {
                break;
            }
            next = consumer.buffer().poll();
        }
        if (next != null) {
            consumer.window().use(System.nanoTime());
        }
        if (!expired.isEmpty()) {
            // the server sees that they have expired
            settlement.release(List.of(), expired);
        }
        return next;
    }

    /** Makes the message that the client gets. */
    Message message(Taken taken) throws JMSException {
        boolean client = session.mode() == jakarta.jms.Session.CLIENT_ACKNOWLEDGE;
        Acknowledger acknowledger = client ? session::acknowledge : null;
        PgaqMessage message = session.connection()
                .messages()
                .toClient(taken.delivery(), taken.consumer().destination(), acknowledger);
        Source source = taken.consumer().source(1);
        message.fetch(to -> settlement.call("could not read the body of a message", store -> {
            store.readContent(
                    source.queue(), source.consumer(), taken.delivery().msgid(), to);
            return null;
        }));
        return message;
    }

    /**
     * Acknowledges, and takes messages of one of the consumers into its buffer; waits until there are some.
     *
     * @param given whether to go on waiting, see {@link Gate#beginWait}
     * @param due leases to acknowledge
     * @param want how many messages to take at least ahead
     */
    void fill(List<Consumer> consumers, BooleanSupplier given, Deadline deadline, List<Lease> due, int want)
            throws JMSException {
        boolean wait = !deadline.isOver();
        if (wait
                && !gate.beginWait(
                        () -> given.getAsBoolean() && !session.connection().isSuspended())) {
            settlement.acknowledgeNow(due);
            return;
        }
        List<Lease> beyond;
        try {
            beyond = take(consumers, wait ? deadline : Deadline.in(0), due, want);
        } finally {
            if (wait) {
                gate.endWaiting();
            }
        }
        settlement.release(List.of(), beyond);
    }

    /** Returns the leases of messages that came without their bodies, because of the limit of bytes. */
    private List<Lease> take(List<Consumer> consumers, Deadline deadline, List<Lease> due, int want)
            throws JMSException {
        boolean joined = settlement.isJoined();
        boolean consumes = settlement.consumes();
        long now = System.nanoTime();
        List<Source> sources = new ArrayList<>(consumers.size());
        for (Consumer consumer : consumers) {
            Window window = consumer.window();
            sources.add(consumer.source(joined ? 1 : Math.max(window.fitting(want), window.next(now))));
        }
        keeper.settle(due);
        Received received = settlement.call(
                "could not receive", store -> store.receive(sources, deadline.timeout(), consumes ? null : lease, due));
        LeaseKeeper.logStale(received.stale(), "was acknowledged");
        if (received.source() < 0) {
            return List.of();
        }
        return add(
                consumers.get(received.source()),
                sources.get(received.source()),
                received.messages(),
                !consumes,
                !joined);
    }

    /**
     * Puts messages into the buffer of a consumer.
     *
     * @param leased false: the open transaction has consumed them
     * @param kept whether their leases are extended
     * @return the leases of messages that came without their bodies, because of the limit of bytes
     */
    private List<Lease> add(Consumer consumer, Source source, List<Delivery> deliveries, boolean leased, boolean kept) {
        List<Lease> beyond = new ArrayList<>();
        consumer.window().taken(deliveries, System.nanoTime());
        for (Delivery delivery : deliveries) {
            Taken taken = new Taken(
                    consumer,
                    delivery,
                    !leased
                            ? null
                            : new Lease(source.queue(), source.consumer(), delivery.msgid(), delivery.receipt()));
            if (delivery.body() == null) {
                beyond.add(taken.lease());
                continue;
            }
            consumer.buffer().add(taken);
            if (kept) {
                keeper.keep(taken);
            }
        }
        return beyond;
    }

    /**
     * What to take with the commit of received messages: more for the consumer of the last one, if it has used up what
     * it had leased ahead, and uses messages quickly. Else it would be a call of its own, soon after.
     *
     * @return null: nothing
     */
    Ahead ahead(List<Taken> received) {
        if (received.isEmpty() || !gate.isStarted() || session.connection().isSuspended()) {
            return null;
        }
        Consumer consumer = received.get(received.size() - 1).consumer();
        long now = System.nanoTime();
        if (consumer.isClosed()
                || !consumer.buffer().isEmpty()
                || !consumer.window().isBusy(now)) {
            return null;
        }
        return new Ahead(consumer.source(consumer.window().next(now)), lease);
    }

    /** Buffers what a commit has taken for the consumer of the last of these messages. */
    void took(List<Taken> received, Ahead ahead, List<Delivery> deliveries) {
        Consumer consumer = received.get(received.size() - 1).consumer();
        List<Lease> beyond = add(consumer, ahead.source(), deliveries, true, true);
        try {
            settlement.release(List.of(), beyond);
        } catch (JMSException e) {
            // the commit has succeeded; the leases end by themselves
            LOG.debug("giving back messages behind the limit of bytes failed", e);
        }
    }

    /** Whether the consumer has a message that the open transaction has consumed. */
    static boolean hasConsumed(Consumer consumer) {
        return consumer.buffer().stream().anyMatch(taken -> taken.lease() == null);
    }

    /** Empties the buffer of a consumer; returns the leases, in order. */
    static List<Lease> drain(Consumer consumer) {
        List<Lease> leases = new ArrayList<>();
        for (Taken taken : consumer.buffer()) {
            if (taken.lease() != null) {
                leases.add(taken.lease());
            }
        }
        consumer.buffer().clear();
        consumer.window().reset();
        return leases;
    }
}
