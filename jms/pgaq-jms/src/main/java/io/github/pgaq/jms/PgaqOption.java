package io.github.pgaq.jms;

/** The options of connection factories, with their names and defaults. */
public enum PgaqOption {
    /** Messages that a consumer leases ahead, 0 to 10000. */
    PREFETCH("prefetch", "100"),
    /** Length of a lease in milliseconds, 1000 or more. It is extended while a message is processed. */
    LEASE("lease", "30000"),
    /**
     * {@code each}: a message is acknowledged in AUTO_ACKNOWLEDGE before the next one is delivered. {@code group}:
     * acknowledgements are committed in groups, later; after a crash those of the last {@link #ACK_INTERVAL} are
     * delivered again, marked as redelivered. DUPS_OK_ACKNOWLEDGE always works in groups.
     */
    ACK_MODE("ackMode", "each"),
    /** Milliseconds until a group of acknowledgements is committed at the latest, 1 or more. */
    ACK_INTERVAL("ackInterval", "50"),
    /** Client identifier of all connections of the factory; empty: none. */
    CLIENT_ID("clientId", ""),
    /** How often to try to connect again after a connection is lost; 0: not at all; -1: without limit. */
    RECONNECT_ATTEMPTS("reconnectAttempts", "0"),
    /** Milliseconds between two attempts to connect again. */
    RECONNECT_DELAY("reconnectDelay", "1000"),
    /**
     * Milliseconds until a message is ready again after recover(), rollback() or a listener's error; -1: the retry
     * delay of the queue. With a delay, later messages overtake it.
     */
    REDELIVERY_DELAY("redeliveryDelay", "0"),
    /** Classes that object messages can contain beside the values of Java: names and {@code package.*}, with commas. */
    ALLOWED_CLASSES("allowedClasses", "");

    private final String key;
    private final String initial;

    PgaqOption(String key, String initial) {
        this.key = key;
        this.initial = initial;
    }

    /** Returns its name in properties; in a URL it is {@code pgaq.} and this name. */
    public String key() {
        return key;
    }

    /** Returns its default. */
    public String initial() {
        return initial;
    }
}
