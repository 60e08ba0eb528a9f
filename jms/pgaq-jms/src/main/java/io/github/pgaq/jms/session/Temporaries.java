package io.github.pgaq.jms.session;

import io.github.pgaq.jms.PgaqDestination;
import io.github.pgaq.jms.PgaqTemporaryQueue;
import io.github.pgaq.jms.PgaqTemporaryTopic;
import io.github.pgaq.jms.TemporaryOwner;
import io.github.pgaq.jms.selector.Conditions;
import io.github.pgaq.jms.store.Source;
import io.github.pgaq.jms.store.Store;
import jakarta.jms.IllegalStateException;
import jakarta.jms.InvalidDestinationException;
import jakarta.jms.JMSException;
import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/**
 * The temporary destinations of a connection. All temporary queues lie in one queue of the server, and all temporary
 * topics in one topic; the header {@code destination} tells their messages apart.
 *
 * <p>Each is claimed at the server until it is deleted, so that a send to one that is gone fails. A claim takes a place
 * in the server's table of locks: those beyond a number have none, and a send to them succeeds while the connection
 * lives. Messages of deleted queues, which also come from transactions that ended later, are consumed now and then.
 */
final class Temporaries implements TemporaryOwner {
    private static final int DISCARD = 1000;
    /** The number of claims that one call makes. */
    private static final int BLOCK = 8;
    /** The most claims of a connection for each of its connections to the server. */
    private static final int MOST_CLAIMS = 8;
    /** The number of deletions after which messages of deleted queues are consumed at once. */
    private static final int MOST_DELETED = 32;
    /** The most queues that a condition names. */
    private static final int MOST_NAMED = 500;

    /** Those that lie in a queue, or in a topic, of the server. Used with the lock of control, but for the name. */
    private static final class Place {
        private volatile String name;
        /** Claimed, and not in use yet. */
        private final Deque<String> ahead = new ArrayDeque<>();
    }

    private final ClientConnection connection;
    private final Map<PgaqDestination, Boolean> live = new ConcurrentHashMap<>();
    private final Place queues = new Place();
    private final Place topics = new Place();
    // with the lock of control, which also holds while it reconnects
    private long number;
    /** Those that the server knows, in use or not yet. */
    private final Set<String> claimed = new HashSet<>();
    /** Deleted since their messages were consumed last. */
    private int deleted;

    Temporaries(ClientConnection connection) {
        this.connection = connection;
    }

    /** Makes a temporary queue. */
    PgaqTemporaryQueue createQueue() throws JMSException {
        return control().exclusively(() -> {
            PgaqTemporaryQueue created = new PgaqTemporaryQueue(nextName(queues), this);
            live.put(created, true);
            return created;
        });
    }

    /** Makes a temporary topic. */
    PgaqTemporaryTopic createTopic() throws JMSException {
        return control().exclusively(() -> {
            PgaqTemporaryTopic created = new PgaqTemporaryTopic(nextName(topics), this);
            live.put(created, true);
            return created;
        });
    }

    private Control control() {
        return connection.control();
    }

    private String nextName(Place place) throws JMSException {
        boolean isTopic = place == topics;
        String what = "could not create a temporary " + (isTopic ? "topic" : "queue");
        if (place.ahead.isEmpty()) {
            control().run(what, store -> {
                if (place.name == null) {
                    place.name = store.createTemporary(isTopic);
                }
                claim(store, place);
            });
        }
        String ahead = place.ahead.poll();
        return ahead != null ? ahead : PgaqDestination.temporaryName(place.name, Long.toString(++number));
    }

    private void claim(Store store, Place place) throws SQLException {
        int most = MOST_CLAIMS * (1 + connection.sessions().size());
        int count = Math.min(BLOCK, most - claimed.size());
        if (count > 0) {
            List<String> names = store.claimTemporary(place.name, number + 1, count);
            place.ahead.addAll(names);
            claimed.addAll(names);
            number += count;
        }
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
        if (destination.serverName().equals(destination.isTopic() ? topics.name : queues.name)) {
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
        try {
            control().exclusively(() -> {
                end(destination);
                return null;
            });
        } catch (JMSException e) {
            if (!Errors.isLost(e.getErrorCode())) {
                throw e;
            }
        }
    }

    private void end(PgaqDestination destination) throws JMSException {
        if (live.remove(destination) == null) {
            return;
        }
        String name = destination.getName();
        if (claimed.remove(name)) {
            control().run("could not delete a temporary destination", store -> store.unclaimTemporary(name));
        }
        if (!destination.isTopic() && (++deleted >= MOST_DELETED || connection.isCallers())) {
            discard();
        }
    }

    /** Consumes what is left in deleted queues; the control thread calls it, too. */
    void discard() throws JMSException {
        int count;
        do {
            count = control().call("could not delete a temporary queue", this::discardSome);
        } while (count == DISCARD);
    }

    private int discardSome(Store store) throws SQLException {
        List<String> addresses = live.keySet().stream()
                .filter(destination -> !destination.isTopic())
                .map(PgaqDestination::address)
                .toList();
        if (deleted == 0 || queues.name == null || addresses.size() > MOST_NAMED) {
            return 0;
        }
        Source source = new Source(queues.name, null, Conditions.otherDestinations(addresses), DISCARD, 1);
        int count = store.receive(List.of(source), Duration.ZERO, null, List.of())
                .messages()
                .size();
        if (count < DISCARD) {
            deleted = 0;
        }
        return count;
    }

    /**
     * The queues of the server ended with the control connection; so did all temporary destinations.
     *
     * @return how many there were
     */
    int lost() {
        int count = live.size();
        live.clear();
        for (Place place : List.of(queues, topics)) {
            place.name = null;
            place.ahead.clear();
        }
        claimed.clear();
        deleted = 0;
        return count;
    }
}
