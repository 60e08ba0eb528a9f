package io.github.pgaq.jms.session;

import io.github.pgaq.jms.store.Lease;
import jakarta.jms.InvalidDestinationException;
import jakarta.jms.JMSException;
import jakarta.jms.JMSSecurityException;
import jakarta.jms.Message;
import jakarta.jms.MessageListener;
import java.util.ArrayList;
import java.util.List;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** The thread of a session that delivers messages to its listeners. */
final class Dispatcher implements Runnable {
    private static final Logger LOG = LoggerFactory.getLogger(Dispatcher.class);
    private static final long FIRST_PAUSE_MS = 100;
    private static final long LONGEST_PAUSE_MS = 30_000;

    /** A message that is being delivered, and the listener that the consumer had when it was taken. */
    private record Call(Taken taken, Message message, MessageListener listener) {}

    private final ClientSession session;
    private final Gate gate;
    private final Intake intake;
    private final Settlement settlement;
    private int turn;
    private long pause = FIRST_PAUSE_MS;

    Dispatcher(ClientSession session, Gate gate, Intake intake, Settlement settlement) {
        this.session = session;
        this.gate = gate;
        this.intake = intake;
        this.settlement = settlement;
    }

    @Override
    public void run() {
        while (gate.awaitState(() -> gate.isStarted() && session.delivers())) {
            Call call = null;
            try {
                if (gate.enterStarted(session::delivers, Deadline.NEVER)) {
                    try {
                        call = next();
                    } finally {
                        gate.leave();
                    }
                }
                if (call != null) {
                    deliver(call);
                }
                pause = FIRST_PAUSE_MS;
            } catch (InterruptedException e) {
                // a listener has left it set, see fails()
                continue;
            } catch (JMSException | RuntimeException e) {
                failed(e);
            } finally {
                if (call != null) {
                    gate.endListener();
                }
            }
        }
    }

    /** Takes the next message and marks that its listener runs; null if there is none now. */
    private Call next() throws JMSException {
        Taken taken = buffered();
        if (taken == null) {
            fill(settlement.due());
            taken = buffered();
        }
        if (taken == null) {
            return null;
        }
        Message message = message(taken);
        MessageListener listener = taken.consumer().listener();
        if (listener == null || !gate.beginListener(taken.consumer())) {
            taken.consumer().buffer().addFirst(taken);
            return null;
        }
        settlement.listening(taken);
        return new Call(taken, message, listener);
    }

    /** A message that cannot be read goes back: nothing acknowledges it, and its lease is not extended. */
    private Message message(Taken taken) throws JMSException {
        try {
            return intake.message(taken);
        } catch (JMSException | RuntimeException e) {
            if (taken.lease() == null) {
                taken.consumer().buffer().addFirst(taken);
            } else {
                settlement.release(List.of(taken.lease()), session.roster().drain());
            }
            throw e;
        }
    }

    /** The next message of the buffers, the consumers in turn. */
    private Taken buffered() throws JMSException {
        List<Consumer> consumers = session.roster().listening();
        for (int i = 0; i < consumers.size(); i++) {
            Consumer consumer = consumers.get((turn + i) % consumers.size());
            Taken taken = intake.poll(consumer);
            if (taken != null) {
                turn = (turn + i + 1) % consumers.size();
                return taken;
            }
        }
        return null;
    }

    private void fill(List<Lease> due) throws JMSException {
        int version = session.version();
        // the server takes from the first that has some: none is always the first
        List<Consumer> consumers = new ArrayList<>(session.roster().listening());
        if (!consumers.isEmpty()) {
            java.util.Collections.rotate(consumers, -(turn % consumers.size()));
        }
        if (consumers.isEmpty()) {
            settlement.acknowledgeNow(due);
            return;
        }
        intake.fill(consumers, () -> session.version() == version, Deadline.NEVER, due, 1);
    }

    private void deliver(Call call) throws JMSException {
        boolean failed = fails(call);
        gate.enter();
        try {
            List<Lease> due = settlement.listened(failed);
            if (due.isEmpty()) {
                return;
            }
            boolean more = session.roster().listening().stream()
                    .anyMatch(consumer -> !consumer.buffer().isEmpty());
            if (more || settlement.isJoined()) {
                settlement.acknowledgeNow(due);
            } else {
                // the listener is over for those who stop or close, before the wait for the next message begins
                gate.endListener();
                fill(due);
            }
        } finally {
            session.retire();
            gate.leave();
        }
    }

    /** Calls the listener; returns whether it failed. */
    private boolean fails(Call call) {
        boolean[] failed = new boolean[1];
        // an interrupt that comes between two messages, such as a late one for the last call, does not concern this
        // call
        Thread.interrupted();
        Callbacks.inListener(session, () -> {
            try {
                call.listener().onMessage(call.message());
            } catch (RuntimeException | Error e) {
                LOG.warn(
                        "a message listener failed with message {}",
                        call.taken().delivery().msgid(),
                        e);
                failed[0] = true;
            }
        });
        // an interrupt that the listener has set, or has ignored, ends no wait of the provider
        Thread.interrupted();
        return failed[0];
    }

    /** An error of the server: tells the connection, and tries again later unless the session cannot go on. */
    private void failed(Exception e) {
        if (gate.isClosed()) {
            return;
        }
        LOG.warn("delivery to message listeners failed: {}", e.getMessage());
        if (pause == FIRST_PAUSE_MS && e instanceof JMSException reason && concernsConnection(reason)) {
            session.connection().report(reason);
        }
        gate.pause(Deadline.in(pause));
        pause = Math.min(2 * pause, LONGEST_PAUSE_MS);
    }

    /**
     * Not a queue that was dropped, or a privilege that was revoked: pools close the connection, with the sessions of
     * others, when its exception listener is told. The link reports that it is lost.
     */
    private static boolean concernsConnection(JMSException reason) {
        return !(reason instanceof InvalidDestinationException)
                && !(reason instanceof JMSSecurityException)
                && !Errors.isLost(reason.getErrorCode());
    }
}
