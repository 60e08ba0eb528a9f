package io.github.pgaq.jms.session;

import io.github.pgaq.jms.PgaqDestination;
import io.github.pgaq.jms.selector.Conditions;
import io.github.pgaq.jms.store.Pause;
import io.github.pgaq.jms.store.Store;
import io.github.pgaq.jms.store.Subscription;
import jakarta.jms.IllegalStateException;
import jakarta.jms.InvalidDestinationException;
import jakarta.jms.JMSException;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.sql.SQLException;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Queue;
import java.util.Set;
import java.util.concurrent.ConcurrentLinkedQueue;

/**
 * The subscriptions that consumers of a connection use. Each use of a durable or shared subscription has a claim,
 * exclusive or shared, so that other connections know of it.
 */
final class Subscriptions {
    /** Claims of other connections for a change are short: so often it is tried again. */
    private static final int CLAIM_ATTEMPTS = 10;

    private static final long CLAIM_PAUSE_MS = 20;
    private static final int CLAIM_AGAIN_ATTEMPTS = 50;
    /** SQLSTATE: object in use. */
    static final String IN_USE = "55006";

    private static final String UNDEFINED = "42704";
    private static final String SUBSCRIBE = "could not subscribe";
    private static final String UNSUBSCRIBE = "could not unsubscribe";
    private static final String CLAIM = "subscription:";
    private static final int LONGEST_NAME = 127;
    private static final int CHECKSUM_BYTES = 16;

    /** The kinds of subscriptions. */
    enum Kind {
        /** Belongs to one consumer, ends with it. */
        PLAIN(false, false, "jms:"),
        /** Has one consumer at most at a time. */
        DURABLE(true, false, ""),
        /** Ends with its last consumer. */
        SHARED(false, true, "shared-temporary:"),
        /** Can have many consumers. */
        SHARED_DURABLE(true, true, "shared:");

        final boolean durable;
        private final boolean shared;
        private final String prefix;

        Kind(boolean durable, boolean shared, String prefix) {
            this.durable = durable;
            this.shared = shared;
            this.prefix = prefix;
        }
    }

    /**
     * The use of a subscription by a consumer.
     *
     * @param topic the topic
     * @param subscriber the server's name of it
     * @param plain whether it has the name that programs in SQL give it, so that other topics can have another one
     * @param rule what its messages meet, or null
     */
    record Use(Kind kind, PgaqDestination topic, String subscriber, boolean plain, String rule) {
        private String claim() {
            return Subscriptions.claim(plain, topic.serverName(), subscriber);
        }
    }

    private final Control control;
    private final String connection;
    private final boolean plain;
    // guarded by the lock of control: a lock of its own would be taken after it in restore(), and before it elsewhere
    private final Set<Use> uses = java.util.Collections.newSetFromMap(new java.util.IdentityHashMap<>());
    private final Map<String, Integer> active = new HashMap<>();
    private int number;
    /** Ended while the control connection was being opened again, so that their uses could not be removed then. */
    private final Queue<Use> ended = new ConcurrentLinkedQueue<>();

    /**
     * @param plain whether durable subscriptions are subscribers of the same name
     */
    Subscriptions(Control control, String connection, boolean plain) {
        this.control = control;
        this.connection = connection;
        this.plain = plain;
    }

    /** Whether a durable subscription is the subscriber of the same name, whatever the client identifier. */
    boolean arePlain() {
        return plain;
    }

    private static String claim(boolean plain, String topic, String subscriber) {
        return CLAIM + (plain ? topic + "/" : "") + subscriber;
    }

    /** Makes a subscription of one consumer. */
    Use plain(PgaqDestination topic, String rule) throws JMSException {
        return exclusively(() -> addPlain(topic, rule));
    }

    private Use addPlain(PgaqDestination topic, String rule) throws JMSException {
        Use use = new Use(Kind.PLAIN, topic, Kind.PLAIN.prefix + connection + ":" + ++number, false, rule);
        control.run(SUBSCRIBE, store -> store.subscribe(topic.serverName(), use.subscriber(), rule, false));
        uses.add(use);
        return use;
    }

    /**
     * Uses a named subscription; creates or changes it if that is needed.
     *
     * @param clientId the connection's client identifier, or null
     * @throws JMSException if it has consumers already that it cannot have beside this one
     */
    Use named(Kind kind, PgaqDestination topic, String clientId, String name, String rule) throws JMSException {
        return exclusively(() -> addNamed(kind, topic, clientId, name, rule));
    }

    private Use addNamed(Kind kind, PgaqDestination topic, String clientId, String name, String rule)
            throws JMSException {
        if (topic.isTemporary() && kind.durable) {
            throw new InvalidDestinationException("a durable subscription cannot be of a temporary topic");
        }
        boolean named = plain && kind.durable;
        Use use = new Use(kind, topic, named ? plainName(topic, name) : subscriber(kind, clientId, name), named, rule);
        boolean here = active.getOrDefault(use.claim(), 0) > 0;
        if (here && !kind.shared) {
            throw inUse(name);
        }
        if (kind.durable && clientId != null && !plain) {
            Kind other = kind.shared ? Kind.DURABLE : Kind.SHARED_DURABLE;
            if (!find(subscriber(other, clientId, name)).isEmpty()) {
                throw new JMSException("durable subscription \"" + name + "\" exists already, and is "
                        + (other.shared ? "shared" : "not shared"));
            }
        }
        for (int attempt = 0; attempt < CLAIM_ATTEMPTS; attempt++) {
            if (attempt > 0) {
                Pause.milliseconds(CLAIM_PAUSE_MS);
            }
            if (!here && claimFirst(use) || kind.shared && claimBeside(use, name)) {
                uses.add(use);
                active.merge(use.claim(), 1, Integer::sum);
                return use;
            }
        }
        throw inUse(name);
    }

    /** Uses the subscription as the only connection, and makes it what it is to be; false if others use it. */
    private boolean claimFirst(Use use) throws JMSException {
        return control.call(SUBSCRIBE, store -> {
            if (!store.claim(use.claim(), false)) {
                return false;
            }
            boolean done = false;
            try {
                Subscription there = there(store, use);
                // one that is not durable and has no consumers is left from a connection that crashed or closes
                if (there != null && (!use.kind().durable || !matches(store, there, use))) {
                    store.unsubscribe(there.topic(), use.subscriber());
                    there = null;
                }
                if (there == null) {
                    store.subscribe(use.topic().serverName(), use.subscriber(), use.rule(), use.kind().durable);
                }
                done = !use.kind().shared || store.claim(use.claim(), true);
                return done;
            } finally {
                if (use.kind().shared || !done) {
                    store.unclaim(use.claim(), false);
                }
            }
        });
    }

    /** Uses a shared subscription beside others; false if it ended meanwhile, or a connection changes it. */
    private boolean claimBeside(Use use, String name) throws JMSException {
        Boolean found = control.call(SUBSCRIBE, store -> {
            if (!store.claim(use.claim(), true)) {
                return false;
            }
            Subscription there = there(store, use);
            if (there != null && matches(store, there, use)) {
                if (!use.kind().durable) {
                    // from now on it belongs to this connection as well
                    store.subscribe(use.topic().serverName(), use.subscriber(), use.rule(), false);
                }
                return true;
            }
            store.unclaim(use.claim(), true);
            return there == null ? false : null;
        });
        if (found == null) {
            throw new JMSException(
                    "subscription \"" + name + "\" has consumers already, with another topic or selector");
        }
        return found;
    }

    /** Ends the use of a subscription; ends the subscription, too, unless it is durable or in use. */
    void release(Use use) throws JMSException {
        ended.add(use);
        try {
            exclusively(() -> null);
        } catch (JMSException e) {
            // with the connection the server has ended the use, and what is not durable
            if (!Errors.isLost(e.getErrorCode())) {
                throw e;
            }
        }
    }

    /** Runs calls on the control connection, after those that remove what has ended. */
    private <T> T exclusively(Errors.Checked<T> action) throws JMSException {
        return control.exclusively(() -> {
            for (Use use = ended.poll(); use != null; use = ended.poll()) {
                remove(use);
            }
            return action.run();
        });
    }

    private void remove(Use use) throws JMSException {
        if (!uses.remove(use)) {
            return;
        }
        if (use.kind() == Kind.PLAIN) {
            control.run(UNSUBSCRIBE, store -> unsubscribe(store, use));
            return;
        }
        int left = active.merge(use.claim(), -1, Integer::sum);
        control.run(UNSUBSCRIBE, store -> {
            store.unclaim(use.claim(), use.kind().shared);
            if (left == 0 && !use.kind().durable && store.claim(use.claim(), false)) {
                unsubscribe(store, use);
                store.unclaim(use.claim(), false);
            }
        });
    }

    /** Ends a durable subscription, shared or not. */
    void unsubscribe(String clientId, String name) throws JMSException {
        exclusively(() -> {
            end(clientId, name);
            return null;
        });
    }

    private void end(String clientId, String name) throws JMSException {
        List<Subscription> there = name == null
                ? List.of()
                : plain ? find(name) : clientId == null ? List.of() : find(subscriber(Kind.DURABLE, clientId, name));
        if (there.isEmpty() && name != null) {
            there = find(plain ? folded(name) : subscriber(Kind.SHARED_DURABLE, clientId, name));
        }
        if (there.isEmpty()) {
            throw new InvalidDestinationException("durable subscription \"" + name + "\" does not exist");
        }
        if (plain && there.size() > 1) {
            throw new JMSException("durable subscription \"" + name + "\" is not unique: "
                    + String.join(
                            ", ",
                            there.stream().map(Subscription::topic).sorted().toList())
                    + " have a subscriber of this name; remove one with aq.unsubscribe or dbms_aqadm");
        }
        Subscription found = there.get(0);
        String claim = claim(plain, found.topic(), found.subscriber());
        if (active.getOrDefault(claim, 0) > 0 || !control.call(UNSUBSCRIBE, store -> store.claim(claim, false))) {
            throw new IllegalStateException("durable subscription \"" + name + "\" has a consumer");
        }
        control.run(UNSUBSCRIBE, store -> {
            try {
                store.unsubscribe(found.topic(), found.subscriber());
            } finally {
                store.unclaim(claim, false);
            }
        });
    }

    private List<Subscription> find(String subscriber) throws JMSException {
        return control.call(SUBSCRIBE, store -> store.subscriptions(subscriber));
    }

    /** The subscription that is used, or null. Names that are not plain are those of one topic. */
    private static Subscription there(Store store, Use use) throws SQLException {
        String topic = use.plain() ? store.describe(use.topic().serverName()).name() : null;
        return store.subscriptions(use.subscriber()).stream()
                .filter(each -> topic == null || topic.equals(each.topic()))
                .findFirst()
                .orElse(null);
    }

    /** The topic's subscriber of this name: spelt in the same way, or else as Oracle's packages would read the name. */
    private String plainName(PgaqDestination topic, String name) throws JMSException {
        boolean same = find(name).stream().anyMatch(each -> each.topic().equals(topic.serverName()));
        return same ? name : folded(name);
    }

    /** A name as Oracle's packages read it: in lower case, unless it is in quotes or could not be without them. */
    static String folded(String name) {
        if (name.length() > 2 && name.startsWith("\"") && name.endsWith("\"")) {
            return name.substring(1, name.length() - 1).replace("\"\"", "\"");
        }
        return name.matches("[A-Za-z_][A-Za-z0-9_$#]*") ? name.toLowerCase(Locale.ROOT) : name;
    }

    /** Whether a consumer of this connection consumes from the topic. */
    boolean uses(PgaqDestination topic) throws JMSException {
        return exclusively(() -> uses.stream().anyMatch(use -> use.topic().equals(topic)));
    }

    /** After the control connection was lost: makes again what ended with it. The control connection calls this. */
    void restore(Store store) throws SQLException {
        for (Use use = ended.poll(); use != null; use = ended.poll()) {
            if (uses.remove(use) && use.kind() != Kind.PLAIN) {
                active.merge(use.claim(), -1, Integer::sum);
            }
        }
        for (Use use : new LinkedHashSet<>(uses)) {
            if (use.kind() != Kind.PLAIN) {
                claimAgain(store, use.claim(), use.kind().shared, "subscription \"" + use.subscriber() + "\"");
            }
            if (!use.kind().durable && !use.topic().isTemporary()) {
                store.subscribe(use.topic().serverName(), use.subscriber(), use.rule(), false);
            }
        }
    }

    /**
     * Claims a name for the connection that had it before its control connection was lost. The server may take that
     * one for alive for a moment.
     *
     * @throws SQLException with the state {@link #IN_USE} if another connection has it
     */
    static void claimAgain(Store store, String claim, boolean shared, String what) throws SQLException {
        for (int attempt = 1; !store.claim(claim, shared); attempt++) {
            if (attempt == CLAIM_AGAIN_ATTEMPTS) {
                throw new SQLException(what + " is in use by another connection, which claimed it meanwhile", IN_USE);
            }
            Pause.milliseconds(CLAIM_PAUSE_MS);
        }
    }

    /** Without a selector, a subscriber that programs in SQL may have made keeps its rule. */
    private static boolean matches(Store store, Subscription there, Use use) throws SQLException {
        return there.topic().equals(store.describe(use.topic().serverName()).name())
                && (use.plain() && use.rule() == null || Conditions.isSameRule(there.rule(), use.rule()));
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

    /**
     * The server's name of a subscription. Names of different kinds, client identifiers and names differ: dots and
     * colons in them are escaped, and what is too long for the server ends in its checksum.
     */
    static String subscriber(Kind kind, String clientId, String name) {
        String own = kind.prefix + (clientId == null ? "" : escape(clientId) + ".") + escape(name);
        byte[] bytes = own.getBytes(StandardCharsets.UTF_8);
        if (bytes.length <= LONGEST_NAME) {
            return own;
        }
        try {
            byte[] sum = MessageDigest.getInstance("SHA-256").digest(bytes);
            String end = "~" + HexFormat.of().formatHex(sum, 0, CHECKSUM_BYTES);
            int length = Math.min(own.length(), LONGEST_NAME - end.length());
            while (own.substring(0, length).getBytes(StandardCharsets.UTF_8).length + end.length() > LONGEST_NAME
                    || Character.isHighSurrogate(own.charAt(length - 1))) {
                length--;
            }
            return own.substring(0, length) + end;
        } catch (NoSuchAlgorithmException e) {
            throw new AssertionError("each Java has SHA-256", e);
        }
    }

    private static String escape(String text) {
        return text.replace("\\", "\\\\").replace(".", "\\.").replace(":", "\\:");
    }

    private static JMSException inUse(String name) {
        return new JMSException("subscription \"" + name + "\" has consumers already");
    }
}
