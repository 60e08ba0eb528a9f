package io.github.pgaq.jms;

import jakarta.jms.Destination;
import jakarta.jms.InvalidDestinationException;
import jakarta.jms.JMSException;
import java.io.Serializable;
import java.util.Objects;

/**
 * A queue or a topic, by its name: {@code name} or {@code schema.name}, as in SQL. Making one creates nothing in the
 * database.
 *
 * <p>Two destinations are equal if both are queues or both are topics, temporary or not, and have the same name.
 */
public abstract sealed class PgaqDestination implements Destination, Serializable
        permits PgaqQueue, PgaqTopic, PgaqTemporaryQueue, PgaqTemporaryTopic {
    private static final long serialVersionUID = 1;

    /** Separates the queue of the server from the number of a temporary destination in it. */
    private static final char TEMPORARY = '/';

    private final String name;

    /**
     * Names a destination.
     *
     * @param name its name; not null or empty
     */
    PgaqDestination(String name) {
        if (name == null || name.isEmpty()) {
            throw new IllegalArgumentException("name of a destination must not be empty");
        }
        this.name = name;
    }

    /** Returns the name that it was made with. */
    public final String getName() {
        return name;
    }

    /** Returns whether it is a topic. */
    public abstract boolean isTopic();

    /** Returns whether it is a temporary queue or topic. */
    public abstract boolean isTemporary();

    /**
     * Returns the name of the queue of the server. The temporary destinations of a connection share one, so for them
     * it is only a part of the name.
     */
    public final String serverName() {
        return isTemporary() ? name.substring(0, name.lastIndexOf(TEMPORARY)) : name;
    }

    /** Returns its form in the headers of a message, such as {@code queue:orders}; {@link #parse} reads it. */
    public final String address() {
        return (isTemporary() ? "temporary-" : "") + (isTopic() ? "topic:" : "queue:") + name;
    }

    /**
     * Reads the form that {@link #address()} returns.
     *
     * @return the destination; null if the text is null or no such form
     */
    public static PgaqDestination parse(String address) {
        int colon = address == null ? -1 : address.indexOf(':');
        if (colon < 0 || colon == address.length() - 1) {
            return null;
        }
        String name = address.substring(colon + 1);
        return switch (address.substring(0, colon)) {
            case "queue" -> new PgaqQueue(name);
            case "topic" -> new PgaqTopic(name);
            case "temporary-queue" -> name.indexOf(TEMPORARY) > 0 ? new PgaqTemporaryQueue(name, null) : null;
            case "temporary-topic" -> name.indexOf(TEMPORARY) > 0 ? new PgaqTemporaryTopic(name, null) : null;
            default -> null;
        };
    }

    /**
     * Returns a destination of this provider; one of another provider is converted by its name.
     *
     * @throws InvalidDestinationException if it is null, or neither a queue nor a topic
     */
    public static PgaqDestination of(Destination destination) throws JMSException {
        if (destination instanceof PgaqDestination own) {
            return own;
        }
        if (destination instanceof jakarta.jms.Queue queue && !(destination instanceof jakarta.jms.Topic)) {
            return new PgaqQueue(queue.getQueueName());
        }
        if (destination instanceof jakarta.jms.Topic topic && !(destination instanceof jakarta.jms.Queue)) {
            return new PgaqTopic(topic.getTopicName());
        }
        throw new InvalidDestinationException(
                destination == null
                        ? "destination must not be null"
                        : "destination must be a queue or a topic, not "
                                + destination.getClass().getName());
    }

    /**
     * Makes the name of a temporary destination.
     *
     * @param serverName the queue of the server
     * @param number tells it from the others in that queue
     */
    public static String temporaryName(String serverName, String number) {
        return serverName + TEMPORARY + number;
    }

    @Override
    public final boolean equals(Object other) {
        return other instanceof PgaqDestination that && isTopic() == that.isTopic() && name.equals(that.name);
    }

    @Override
    public final int hashCode() {
        return Objects.hash(isTopic(), name);
    }

    /** Returns {@link #address()}. */
    @Override
    public final String toString() {
        return address();
    }
}
