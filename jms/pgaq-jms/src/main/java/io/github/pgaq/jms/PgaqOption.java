package io.github.pgaq.jms;

import java.util.Arrays;
import java.util.List;
import java.util.Locale;

/**
 * The options of connection factories: their names, what they can be, and their defaults.
 *
 * <p>They are set by {@link PgaqConnectionFactory#setOption}, or, with the prefix {@code pgaq.}, in its URL or
 * properties: {@code jdbc:postgresql://host/database?pgaq.prefetch=10}. Times are milliseconds.
 */
public enum PgaqOption {
    /** Messages that a consumer leases ahead, 0 to 10000. */
    PREFETCH("prefetch", 100, 0, 10_000),
    /** Bytes of the messages that a consumer leases ahead, together; a message that is larger comes alone. */
    PREFETCH_BYTES("prefetchBytes", 4 << 20, 1, 1 << 29),
    /**
     * Milliseconds after which messages that a consumer has leased ahead, and not used since, become available to other
     * consumers, 100 or more. The attempt does not count.
     */
    PREFETCH_IDLE("prefetchIdle", 5000, 100, Integer.MAX_VALUE),
    /** Length of a lease in milliseconds, 1000 or more. It is extended while a message is processed. */
    LEASE("lease", 30_000, 1000, Integer.MAX_VALUE),
    /**
     * {@code each}: a message is acknowledged in AUTO_ACKNOWLEDGE before the next one is delivered. {@code group}:
     * acknowledgements are committed in groups, later; after a crash those of the last {@link #ACK_INTERVAL} are
     * delivered again, marked as redelivered. DUPS_OK_ACKNOWLEDGE always works in groups.
     */
    ACK_MODE("ackMode", "each", "each", "group"),
    /** Milliseconds until a group of acknowledgements is committed at the latest, 1 or more. */
    ACK_INTERVAL("ackInterval", 50, 1, 60_000),
    /** Client identifier of all connections of the factory; empty: none. */
    CLIENT_ID("clientId", ""),
    /**
     * {@code true}: a new connection takes the client identifier from the connection that has it, which can neither
     * acknowledge nor receive after that; {@code false}: it fails.
     */
    CLIENT_ID_TAKEOVER("clientIdTakeover", "false", "true", "false"),
    /**
     * Milliseconds after which the server ends a connection whose client's machine does not answer, with its leases and
     * its client identifier; 0: as the server is configured.
     */
    KEEP_ALIVE("keepAlive", 30_000, 0, 86_400_000),
    /**
     * {@code client}: the subscriber of a durable subscription is named after the client identifier and the
     * subscription, so those of other clients are others. {@code plain}: it has the name of the subscription, as
     * subscribers that programs in SQL make, and a client identifier is not needed.
     */
    DURABLE_NAMES("durableNames", "client", "client", "plain"),
    /**
     * {@code client}: messages that are sent one after another keep their order, whichever connections of the factory
     * or of the client identifier, and whichever sessions, send them. {@code session}: those of one session do, and
     * sessions use all shards of a queue. {@code group}: those of one {@code JMSXGroupID} do, whichever programs send
     * them, and those of one session that have none.
     */
    SEND_ORDER("sendOrder", "client", "client", "session", "group"),
    /** How often to try to connect again after a connection is lost; 0: not at all; -1: without limit. */
    RECONNECT_ATTEMPTS("reconnectAttempts", 0, -1, Integer.MAX_VALUE),
    /** Milliseconds between two attempts to connect again. */
    RECONNECT_DELAY("reconnectDelay", 1000, 0, Integer.MAX_VALUE),
    /**
     * Milliseconds that a call waits at most for a lost connection to be opened again; then it fails, and a later call
     * continues the attempts.
     */
    RECONNECT_WAIT("reconnectWait", 30_000, 0, Integer.MAX_VALUE),
    /**
     * Milliseconds until a message is ready again after recover(), rollback() or a listener's error; -1: the retry
     * delay of the queue. With a delay, later messages overtake it.
     */
    REDELIVERY_DELAY("redeliveryDelay", 0, -1, Integer.MAX_VALUE),
    /** Whether threads of the provider, such as those that call listeners, let the program end: {@code true}. */
    DAEMON_THREADS("daemonThreads", "true", "true", "false"),
    /** Classes that object messages can contain beside the values of Java: names and {@code package.*}, with commas. */
    ALLOWED_CLASSES("allowedClasses", "");

    private final String key;
    private final String initial;
    private final String allowed;
    private final long least;
    private final long most;
    private final List<String> choices;

    /** A number. */
    PgaqOption(String key, long initial, long least, long most) {
        this.key = key;
        this.initial = Long.toString(initial);
        this.allowed = "a number from " + least + " to " + most;
        this.least = least;
        this.most = most;
        this.choices = null;
    }

    /** A choice, or any text if there are no choices. */
    PgaqOption(String key, String initial, String... choices) {
        this.key = key;
        this.initial = initial;
        this.allowed = choices.length == 0 ? "any text" : String.join(" or ", choices);
        this.least = 0;
        this.most = 0;
        this.choices = List.of(choices);
    }

    /** Returns its name in properties; in a URL it is {@code pgaq.} and this name. */
    public String key() {
        return key;
    }

    /** Returns its default. */
    public String initial() {
        return initial;
    }

    /** Returns what its value can be, in words. */
    public String allowed() {
        return allowed;
    }

    /** Fails with IllegalArgumentException if it cannot have the value. */
    void check(String value) {
        if (choices == null ? !isInRange(value) : !choices.isEmpty() && !choices.contains(value)) {
            throw new IllegalArgumentException("option \"" + key + "\" must be " + allowed + ", not \"" + value + "\"");
        }
    }

    private boolean isInRange(String value) {
        try {
            long number = Long.parseLong(value);
            return number >= least && number <= most;
        } catch (NumberFormatException e) {
            return false;
        }
    }

    /**
     * Finds an option.
     *
     * @throws IllegalArgumentException if no option has this name; the message names the nearest one
     */
    static PgaqOption of(String key) {
        PgaqOption nearest = null;
        int least = Integer.MAX_VALUE;
        for (PgaqOption option : values()) {
            if (option.key.equals(key)) {
                return option;
            }
            int distance = distance(option.key.toLowerCase(Locale.ROOT), key.toLowerCase(Locale.ROOT));
            if (distance < least) {
                least = distance;
                nearest = option;
            }
        }
        boolean near = nearest != null && least <= Math.max(2, key.length() / 3);
        String hint = near
                ? "; did you mean \"" + nearest.key + "\"?"
                : "; there are "
                        + String.join(
                                ", ",
                                Arrays.stream(values()).map(PgaqOption::key).toList());
        throw new IllegalArgumentException("option \"" + key + "\" does not exist" + hint);
    }

    static boolean exists(String key) {
        return Arrays.stream(values()).anyMatch(option -> option.key.equals(key));
    }

    /** How many characters must be inserted, removed or replaced to make one text of the other. */
    private static int distance(String a, String b) {
        int[] row = new int[b.length() + 1];
        Arrays.setAll(row, i -> i);
        for (int i = 1; i <= a.length(); i++) {
            int diagonal = row[0];
            row[0] = i;
            for (int j = 1; j <= b.length(); j++) {
                int replaced = diagonal + (a.charAt(i - 1) == b.charAt(j - 1) ? 0 : 1);
                diagonal = row[j];
                row[j] = Math.min(replaced, Math.min(row[j], row[j - 1]) + 1);
            }
        }
        return row[b.length()];
    }
}
