package io.github.pgaq.jms.session;

import io.github.pgaq.jms.PgaqDestination;
import io.github.pgaq.jms.store.Store;
import io.github.pgaq.jms.store.Subscription;
import jakarta.jms.IllegalStateException;
import jakarta.jms.InvalidDestinationException;
import jakarta.jms.JMSException;
import java.sql.SQLException;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.Map;
import java.util.Objects;
import java.util.Set;

/**
 * The subscriptions that consumers of a connection use. Each use of a durable or shared subscription has a claim,
 * exclusive or shared, so that other connections know of it.
 */
final class Subscriptions {
    /** Claims of other connections for a change are short: so often it is tried again. */
    private static final int CLAIM_ATTEMPTS = 10;
    private static final long CLAIM_PAUSE_MS = 20;
    private static final String UNDEFINED = "42704";

    /** The kinds of subscriptions. */
    enum Kind {
        /** Of one consumer, ends with it. */
        PLAIN(false, false),
        /** Has one consumer at most at a time. */
        DURABLE(true, false),
        /** Ends with its last consumer. */
        SHARED(false, true),
        /** Can have many consumers. */
        SHARED_DURABLE(true, true);

        private final boolean durable;
        private final boolean shared;

        Kind(boolean durable, boolean shared) {
            this.durable = durable;
            this.shared = shared;
        }
    }

    /**
     * The use of a subscription by a consumer.
     *
     * @param topic the topic
     * @param subscriber the server's name of it
     * @param rule what its messages meet, or null
     */
    record Use(Kind kind, PgaqDestination topic, String subscriber, String rule) {
        private String claim() {
            return "subscription:" + subscriber;
        }
    }

    private final Control control;
    private final String connection;
    // guarded by this: calls of the server are made while it is held, as they are by one thread of the control
    private final Set<Use> uses = java.util.Collections.newSetFromMap(new java.util.IdentityHashMap<>());
    private final Map<String, Integer> active = new HashMap<>();
    private int number;

    Subscriptions(Control control, String connection) {
        this.control = control;
        this.connection = connection;
    }

    /** Makes a subscription of one consumer. */
    synchronized Use plain(PgaqDestination topic, String rule) throws JMSException {
        Use use = new Use(Kind.PLAIN, topic, "jms:" + connection + ":" + ++number, rule);
        control.run("could not subscribe",
                store -> store.subscribe(topic.serverName(), use.subscriber(), rule, false));
        uses.add(use);
        return use;
    }

    /**
     * Uses a named subscription; creates or changes it if that is needed.
     *
     * @param clientId the connection's client identifier, or null
     * @throws JMSException if it has consumers already that it cannot have beside this one
     */
    synchronized Use named(Kind kind, PgaqDestination topic, String clientId, String name, String rule)
            throws JMSException {
        if (topic.isTemporary() && kind.durable) {
            throw new InvalidDestinationException("a durable subscription cannot be of a temporary topic");
        }
        Use use = new Use(kind, topic, subscriber(kind, clientId, name), rule);
        int here = active.getOrDefault(use.subscriber(), 0);
        if (here > 0 && !kind.shared || here > 0 && uses.stream().anyMatch(other -> other.kind() != kind
                && other.subscriber().equals(use.subscriber()))) {
            throw inUse(name);
        }
        Subscription there = control.call("could not subscribe", store -> store.subscription(use.subscriber()));
        boolean fits = there != null && matches(there, use);
        if (there != null && !fits) {
            change(there, use, name, here);
        }
        claim(use, name);
        try {
            if (!fits || !kind.durable) {
                control.run("could not subscribe",
                        store -> store.subscribe(topic.serverName(), use.subscriber(), rule, kind.durable));
            }
        } catch (JMSException e) {
            control.run("could not subscribe", store -> store.unclaim(use.claim(), kind.shared));
            throw e;
        }
        uses.add(use);
        active.merge(use.subscriber(), 1, Integer::sum);
        return use;
    }

    /** Ends the use of a subscription; ends the subscription, too, unless it is durable or in use. */
    synchronized void release(Use use) throws JMSException {
        if (!uses.remove(use)) {
            return;
        }
        if (use.kind() == Kind.PLAIN) {
            control.run("could not unsubscribe", store -> unsubscribe(store, use));
            return;
        }
        int left = active.merge(use.subscriber(), -1, Integer::sum);
        control.run("could not unsubscribe", store -> {
            store.unclaim(use.claim(), use.kind().shared);
            if (left == 0 && !use.kind().durable && store.claim(use.claim(), false)) {
                unsubscribe(store, use);
                store.unclaim(use.claim(), false);
            }
        });
    }

    /** Ends a durable subscription. */
    synchronized void unsubscribe(String clientId, String name) throws JMSException {
        String own = subscriber(Kind.DURABLE, clientId, name);
        Subscription there = name == null ? null
                : control.call("could not unsubscribe", store -> store.subscription(own));
        if (there == null) {
            throw new InvalidDestinationException("durable subscription \"" + name + "\" does not exist");
        }
        String claim = "subscription:" + own;
        boolean free = active.getOrDefault(own, 0) == 0
                && control.call("could not unsubscribe", store -> store.claim(claim, false));
        if (!free) {
            throw new IllegalStateException("durable subscription \"" + name + "\" has a consumer");
        }
        control.run("could not unsubscribe", store -> {
            store.unsubscribe(there.topic(), own);
            store.unclaim(claim, false);
        });
    }

    /** Whether a consumer of this connection consumes from the topic. */
    synchronized boolean uses(PgaqDestination topic) {
        return uses.stream().anyMatch(use -> use.topic().equals(topic));
    }

    /** After the control connection was lost: makes again what ended with it. */
    synchronized void restore(Store store) throws SQLException {
        for (Use use : new LinkedHashSet<>(uses)) {
            if (use.kind() != Kind.PLAIN) {
                store.claim(use.claim(), use.kind().shared);
            }
            if (!use.kind().durable && !use.topic().isTemporary()) {
                store.subscribe(use.topic().serverName(), use.subscriber(), use.rule(), false);
            }
        }
    }

    private void claim(Use use, String name) throws JMSException {
        for (int attempt = 0; attempt < CLAIM_ATTEMPTS; attempt++) {
            if (attempt > 0) {
                pause();
            }
            if (control.call("could not subscribe", store -> store.claim(use.claim(), use.kind().shared))) {
                return;
            }
        }
        throw inUse(name);
    }

    /** Another topic, selector or noLocal: removes the subscription, so that it can be made anew. */
    private void change(Subscription there, Use use, String name, int here) throws JMSException {
        if (here > 0 || !control.call("could not subscribe", store -> store.claim(use.claim(), false))) {
            throw inUse(name);
        }
        control.run("could not subscribe", store -> {
            try {
                store.unsubscribe(there.topic(), use.subscriber());
            } finally {
                store.unclaim(use.claim(), false);
            }
        });
    }

    private boolean matches(Subscription there, Use use) throws JMSException {
        String topic = control.call("could not subscribe", store -> store.describe(use.topic().serverName())).name();
        return there.topic().equals(topic) && Objects.equals(there.rule(), use.rule());
    }

    /** A subscriber that is gone already is no error: its topic may have been dropped. */
    private static void unsubscribe(Store store, Use use) throws SQLException {
        try {
            store.unsubscribe(use.topic().serverName(), use.subscriber());
        } catch (SQLException e) {
            if (!UNDEFINED.equals(e.getSQLState())) {
                throw e;
            }
        }
    }

    private static String subscriber(Kind kind, String clientId, String name) {
        String own = clientId == null ? name : clientId + "." + name;
        return kind.durable ? own : "shared:" + own;
    }

    private static JMSException inUse(String name) {
        return new JMSException("subscription \"" + name + "\" has consumers already");
    }

    private static void pause() {
        try {
            Thread.sleep(CLAIM_PAUSE_MS);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }
}
