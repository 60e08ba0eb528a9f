package io.github.pgaq.jms.session;

import io.github.pgaq.jms.PgaqDestination;
import io.github.pgaq.jms.PgaqTemporaryQueue;
import io.github.pgaq.jms.PgaqTemporaryTopic;
import io.github.pgaq.jms.TemporaryOwner;
import io.github.pgaq.jms.selector.Conditions;
import io.github.pgaq.jms.store.Source;
import jakarta.jms.IllegalStateException;
import jakarta.jms.InvalidDestinationException;
import jakarta.jms.JMSException;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;

/**
 * The temporary destinations of a connection. All temporary queues lie in one queue of the server, and all temporary
 * topics in one topic; the header {@code destination} tells their messages apart.
 */
final class Temporaries implements TemporaryOwner {
    private static final int DISCARD = 1000;

    private final ClientConnection connection;
    private final Map<PgaqDestination, Boolean> live = new ConcurrentHashMap<>();
    private final AtomicLong number = new AtomicLong();
    // written with the lock of control, which also holds while it reconnects
    private volatile String queue;
    private volatile String topic;

    Temporaries(ClientConnection connection) {
        this.connection = connection;
    }

    /** Makes a temporary queue. */
    PgaqTemporaryQueue createQueue() throws JMSException {
        PgaqTemporaryQueue created = new PgaqTemporaryQueue(name(false), this);
        live.put(created, true);
        return created;
    }

    /** Makes a temporary topic. */
    PgaqTemporaryTopic createTopic() throws JMSException {
        PgaqTemporaryTopic created = new PgaqTemporaryTopic(name(true), this);
        live.put(created, true);
        return created;
    }

    private String name(boolean isTopic) throws JMSException {
        return control().exclusively(() -> nextName(isTopic));
    }

    private Control control() {
        return connection.control();
    }

    private String nextName(boolean isTopic) throws JMSException {
        String server = isTopic ? topic : queue;
        if (server == null) {
            server = control()
                    .call(
                            "could not create a temporary " + (isTopic ? "topic" : "queue"),
                            store -> store.createTemporary(isTopic));
            if (isTopic) {
                topic = server;
            } else {
                queue = server;
            }
        }
        return PgaqDestination.temporaryName(server, Long.toString(number.incrementAndGet()));
    }

    /** What is one of these is returned as it was created, so that it can be deleted. */
    PgaqDestination resolve(PgaqDestination destination) {
        if (destination == null || !live.containsKey(destination)) {
            return destination;
        }
        return destination.isTopic()
                ? new PgaqTemporaryTopic(destination.getName(), this)
                : new PgaqTemporaryQueue(destination.getName(), this);
    }

    /** Fails unless the destination is one of these. */
    void checkOwn(PgaqDestination destination) throws JMSException {
        if (!live.containsKey(destination)) {
            throw new InvalidDestinationException("temporary destination \"" + destination.getName()
                    + "\" is deleted or belongs to another connection");
        }
    }

    /** Fails if the destination was one of these and is deleted. */
    void checkNotDeleted(PgaqDestination destination) throws JMSException {
        if (destination.serverName().equals(destination.isTopic() ? topic : queue)) {
            checkOwn(destination);
        }
    }

    /** Does nothing if it ended with its connection: callers delete it when they no longer need it. */
    @Override
    public void delete(PgaqDestination destination) throws JMSException {
        if (connection.isClosed() || !live.containsKey(destination)) {
            return;
        }
        if (connection.hasConsumer(destination)) {
            throw new IllegalStateException("temporary destination \"" + destination.getName() + "\" has a consumer");
        }
        live.remove(destination);
        if (!destination.isTopic()) {
            try {
                discard(destination);
            } catch (JMSException e) {
                if (!Errors.isLost(e.getErrorCode())) {
                    throw e;
                }
            }
        }
    }

    /** Consumes what is left in a queue. */
    private void discard(PgaqDestination destination) throws JMSException {
        Source source =
                new Source(destination.serverName(), null, Conditions.destination(destination.address()), DISCARD, 1);
        int count;
        do {
            count = control()
                    .call(
                            "could not delete a temporary queue",
                            store -> store.receive(List.of(source), Duration.ZERO, null, List.of()))
                    .messages()
                    .size();
        } while (count == DISCARD);
    }

    /**
     * The queues of the server ended with the control connection; so did all temporary destinations.
     *
     * @return how many there were
     */
    int lost() {
        int count = live.size();
        live.clear();
        queue = null;
        topic = null;
        return count;
    }
}
