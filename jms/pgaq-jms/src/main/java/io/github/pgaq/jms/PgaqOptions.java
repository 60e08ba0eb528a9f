package io.github.pgaq.jms;

import java.io.Serializable;
import java.time.Duration;
import java.util.EnumMap;
import java.util.Map;

/** Values of the options; immutable. */
public final class PgaqOptions implements Serializable {
    private static final long serialVersionUID = 1;

    /** All options have their defaults. */
    public static final PgaqOptions DEFAULTS = new PgaqOptions(new EnumMap<>(PgaqOption.class));

    private final EnumMap<PgaqOption, String> values;

    private PgaqOptions(EnumMap<PgaqOption, String> values) {
        this.values = values;
    }

    /**
     * Returns these options with one of them changed.
     *
     * @throws IllegalArgumentException if the option cannot have this value
     */
    public PgaqOptions with(PgaqOption option, String value) {
        EnumMap<PgaqOption, String> changed = new EnumMap<>(values);
        changed.put(option, value.trim());
        option.check(value.trim());
        return new PgaqOptions(changed);
    }

    /**
     * Returns these options with one of them changed, by its name.
     *
     * @throws IllegalArgumentException if there is no such option, or it cannot have this value
     */
    public PgaqOptions with(String key, String value) {
        return with(PgaqOption.of(key), value);
    }

    /** Returns the value of an option. */
    public String get(PgaqOption option) {
        return values.getOrDefault(option, option.initial());
    }

    /** Returns the options that do not have their default, by name. */
    Map<PgaqOption, String> changed() {
        return values;
    }

    /** {@link PgaqOption#PREFETCH}. */
    public int prefetch() {
        return (int) number(PgaqOption.PREFETCH);
    }

    /** {@link PgaqOption#PREFETCH_BYTES}. */
    public int prefetchBytes() {
        return (int) number(PgaqOption.PREFETCH_BYTES);
    }

    /** {@link PgaqOption#PREFETCH_IDLE}. */
    public Duration prefetchIdle() {
        return Duration.ofMillis(number(PgaqOption.PREFETCH_IDLE));
    }

    /** {@link PgaqOption#LEASE}. */
    public Duration lease() {
        return Duration.ofMillis(number(PgaqOption.LEASE));
    }

    /** Whether AUTO_ACKNOWLEDGE works in groups: {@link PgaqOption#ACK_MODE}. */
    public boolean groupAcknowledgements() {
        return get(PgaqOption.ACK_MODE).equals("group");
    }

    /** {@link PgaqOption#ACK_INTERVAL}. */
    public Duration ackInterval() {
        return Duration.ofMillis(number(PgaqOption.ACK_INTERVAL));
    }

    /** {@link PgaqOption#CLIENT_ID}; null: none. */
    public String clientId() {
        String id = get(PgaqOption.CLIENT_ID);
        return id.isEmpty() ? null : id;
    }

    /** Whether durable subscriptions are subscribers of the same name: {@link PgaqOption#DURABLE_NAMES}. */
    public boolean plainDurableNames() {
        return get(PgaqOption.DURABLE_NAMES).equals("plain");
    }

    /**
     * The affinity of messages, by {@link PgaqOption#SEND_ORDER}.
     *
     * @param client that of the client
     */
    public String affinity(String client) {
        return switch (get(PgaqOption.SEND_ORDER)) {
            case "client" -> client;
            case "group" -> "";
            default -> null;
        };
    }

    /** {@link PgaqOption#RECONNECT_ATTEMPTS}. */
    public int reconnectAttempts() {
        return (int) number(PgaqOption.RECONNECT_ATTEMPTS);
    }

    /** {@link PgaqOption#RECONNECT_DELAY}. */
    public Duration reconnectDelay() {
        return Duration.ofMillis(number(PgaqOption.RECONNECT_DELAY));
    }

    /** {@link PgaqOption#RECONNECT_WAIT}. */
    public Duration reconnectWait() {
        return Duration.ofMillis(number(PgaqOption.RECONNECT_WAIT));
    }

    /** {@link PgaqOption#REDELIVERY_DELAY}; null: the retry delay of the queue. */
    public Duration redeliveryDelay() {
        long delay = number(PgaqOption.REDELIVERY_DELAY);
        return delay < 0 ? null : Duration.ofMillis(delay);
    }

    /** {@link PgaqOption#CLIENT_ID_TAKEOVER}. */
    public boolean clientIdTakeover() {
        return Boolean.parseBoolean(get(PgaqOption.CLIENT_ID_TAKEOVER));
    }

    /** {@link PgaqOption#KEEP_ALIVE}. */
    public Duration keepAlive() {
        return Duration.ofMillis(number(PgaqOption.KEEP_ALIVE));
    }

    /** {@link PgaqOption#DAEMON_THREADS}. */
    public boolean daemonThreads() {
        return Boolean.parseBoolean(get(PgaqOption.DAEMON_THREADS));
    }

    private long number(PgaqOption option) {
        return Long.parseLong(get(option));
    }

    /** Returns the options that do not have their default, as a URL has them. */
    @Override
    public String toString() {
        StringBuilder out = new StringBuilder();
        values.forEach((option, value) -> out.append(out.isEmpty() ? "" : "&")
                .append("pgaq.")
                .append(option.key())
                .append('=')
                .append(value));
        return out.toString();
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof PgaqOptions that && values.equals(that.values);
    }

    @Override
    public int hashCode() {
        return values.hashCode();
    }
}
