package io.github.pgaq.jms;

import jakarta.jms.IllegalStateException;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.QueueSession;
import jakarta.jms.TopicSession;
import java.sql.Connection;
import java.util.List;

/** A session, with what Jakarta Messaging has no method for. */
public interface PgaqSession extends QueueSession, TopicSession {
    /**
     * Returns the JDBC connection of a transacted session. SQL on it commits together with the session's messages.
     * From the first call on, the session sends each message to the server at once, and receives in the open
     * transaction, without a lease. {@link #commit()} and {@link #rollback()} of the session end the transaction; the
     * connection refuses {@code commit()}, {@code rollback()}, {@code setAutoCommit()} and {@code close()}. A session
     * on a connection of the caller returns that connection itself.
     *
     * @throws IllegalStateException if the session is closed, or neither transacted nor on a connection of the caller
     */
    Connection getConnection() throws JMSException;

    /**
     * Receives several messages: waits for the first, then takes what is there.
     *
     * @param consumer a consumer of this session
     * @param max how many messages at most; 1 or more
     * @param timeout how long to wait for the first, in milliseconds; 0: without limit
     * @return the messages; empty if none came, or the consumer was closed
     */
    List<Message> bulkReceive(MessageConsumer consumer, int max, long timeout) throws JMSException;

    /**
     * Receives the messages that are there, without waiting.
     *
     * @param consumer a consumer of this session
     * @param max how many messages at most; 1 or more
     * @return the messages; empty if there are none
     */
    List<Message> bulkReceiveNoWait(MessageConsumer consumer, int max) throws JMSException;
}
