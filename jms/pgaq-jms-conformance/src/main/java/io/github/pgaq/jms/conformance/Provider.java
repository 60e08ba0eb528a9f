package io.github.pgaq.jms.conformance;

import jakarta.jms.Connection;
import jakarta.jms.ConnectionFactory;
import jakarta.jms.QueueConnectionFactory;
import jakarta.jms.TopicConnectionFactory;
import jakarta.jms.XAConnectionFactory;

/**
 * The functions of a Jakarta Messaging provider that the suite uses. All methods can be called by several threads.
 *
 * <p>The suite uses the only implementation that {@link java.util.ServiceLoader} finds, or the one that the system
 * property {@code conformance.provider} names.
 */
public interface Provider extends AutoCloseable {
    /** The name in messages; the list of known deviations is the resource {@code deviations/NAME.tsv}. */
    String name();

    ConnectionFactory connectionFactory();

    QueueConnectionFactory queueConnectionFactory();

    TopicConnectionFactory topicConnectionFactory();

    /** Null if the provider does not support distributed transactions, which are optional (6.2.8). */
    default XAConnectionFactory xaConnectionFactory() {
        return null;
    }

    /** A factory that an administrator configured with this client identifier; null if there is no such option. */
    default ConnectionFactory connectionFactory(String clientId) {
        return null;
    }

    /** A user name that {@code createConnection(user, password)} accepts. */
    String user();

    String password();

    /** Creates a queue, so that {@code session.createQueue(name)} identifies it. */
    void createQueue(String name) throws Exception;

    void dropQueue(String name) throws Exception;

    void createTopic(String name) throws Exception;

    /** Drops a topic with its subscriptions. */
    void dropTopic(String name) throws Exception;

    /** How often a message is delivered before the provider gives up; at least 3 in the suite. */
    default int deliveryLimit() {
        return 10;
    }

    /** Breaks the connection to the server as a network failure does. False if the provider has no way to do it. */
    default boolean kill(Connection connection) throws Exception {
        return false;
    }

    /** Whether wrong passwords are refused by the server that the suite runs against. */
    default boolean checksPasswords() {
        return true;
    }

    /** Stops what the constructor started. */
    @Override
    default void close() throws Exception {}
}
