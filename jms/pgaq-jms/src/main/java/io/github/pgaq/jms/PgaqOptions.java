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
        PgaqOptions options = new PgaqOptions(changed);
        options.check(option);
        return options;
    }

    /**
     * Returns these options with one of them changed, by its name.
     *
     * @throws IllegalArgumentException if there is no such option, or it cannot have this value
     */
    public PgaqOptions with(String key, String value) {
        for (PgaqOption option : PgaqOption.values()) {
            if (option.key().equals(key)) {
                return with(option, value);
            }
        }
        throw new IllegalArgumentException("option \"" + key + "\" does not exist");
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
        return (int) number(PgaqOption.PREFETCH, 0, 10_000);
    }

    /** {@link PgaqOption#LEASE}. */
    public Duration lease() {
        return Duration.ofMillis(number(PgaqOption.LEASE, 1000, Integer.MAX_VALUE));
    }

    /** Whether AUTO_ACKNOWLEDGE works in groups: {@link PgaqOption#ACK_MODE}. */
    public boolean groupAcknowledgements() {
        return switch (get(PgaqOption.ACK_MODE)) {
            case "each" -> false;
            case "group" -> true;
            default -> throw invalid(PgaqOption.ACK_MODE, "each or group");
        };
    }

    /** {@link PgaqOption#ACK_INTERVAL}. */
    public Duration ackInterval() {
        return Duration.ofMillis(number(PgaqOption.ACK_INTERVAL, 1, 60_000));
    }

    /** {@link PgaqOption#CLIENT_ID}; null: none. */
    public String clientId() {
        String id = get(PgaqOption.CLIENT_ID);
        return id.isEmpty() ? null : id;
    }

    /** {@link PgaqOption#RECONNECT_ATTEMPTS}. */
    public int reconnectAttempts() {
        return (int) number(PgaqOption.RECONNECT_ATTEMPTS, -1, Integer.MAX_VALUE);
    }

    /** {@link PgaqOption#RECONNECT_DELAY}. */
    public Duration reconnectDelay() {
        return Duration.ofMillis(number(PgaqOption.RECONNECT_DELAY, 0, Integer.MAX_VALUE));
    }

    /** {@link PgaqOption#REDELIVERY_DELAY}; null: the retry delay of the queue. */
    public Duration redeliveryDelay() {
        long delay = number(PgaqOption.REDELIVERY_DELAY, -1, Integer.MAX_VALUE);
        return delay < 0 ? null : Duration.ofMillis(delay);
    }

    private void check(PgaqOption option) {
        switch (option) {
            case PREFETCH -> prefetch();
            case LEASE -> lease();
            case ACK_MODE -> groupAcknowledgements();
            case ACK_INTERVAL -> ackInterval();
            case RECONNECT_ATTEMPTS -> reconnectAttempts();
            case RECONNECT_DELAY -> reconnectDelay();
            case REDELIVERY_DELAY -> redeliveryDelay();
            default -> { }
        }
    }

    private long number(PgaqOption option, long least, long most) {
        try {
            long number = Long.parseLong(get(option));
            if (number >= least && number <= most) {
                return number;
            }
        } catch (NumberFormatException e) {
            // the same error as for a number out of range
        }
        throw invalid(option, "a number from " + least + " to " + most);
    }

    private IllegalArgumentException invalid(PgaqOption option, String allowed) {
        return new IllegalArgumentException(
                "option \"" + option.key() + "\" must be " + allowed + ", not \"" + get(option) + "\"");
    }
}
