package io.github.pgaq.jms.store;

import java.io.OutputStream;
import java.sql.Connection;
import java.sql.SQLException;
import java.time.Duration;
import java.util.List;
import java.util.UUID;

/**
 * What the provider needs of the queues: the only way from sessions to the database.
 *
 * <p>A store works on one JDBC connection. It belongs to one thread at a time, except for {@link #cancel()}, which any
 * thread may call. Queues are named as in SQL: {@code name} or {@code schema.name}. Errors are {@link SQLException}s
 * of the server, unchanged; the caller makes JMS exceptions of them.
 *
 * <p>While {@link #begin()} was called and neither {@link #commit()} nor {@link #rollback()} followed, all calls are
 * part of that transaction. Otherwise each call is a transaction of its own.
 */
public interface Store extends AutoCloseable {

    /** SQLSTATE: a lease had ended before its message was acknowledged. */
    String LEASE_ENDED = "AQ049";

    /** Describes a queue; fails with SQLSTATE 42704 if there is none. */
    QueueDescription describe(String queue) throws SQLException;

    /**
     * Enqueues the messages in their order, with their contents, in one transaction. A message to a temporary
     * destination that has ended is an error if that transaction is its own, and left out of one that has begun before.
     */
    void send(List<Outgoing> messages) throws SQLException;

    /**
     * Reads the content of a large message that can be browsed, or was received and not acknowledged; nothing if it is
     * gone.
     *
     * @param queue name of the queue or topic
     * @param consumer the subscriber's name; null for a queue
     * @param msgid the server's id of the message
     * @param to where the bytes are written
     */
    void readContent(String queue, String consumer, UUID msgid, OutputStream to) throws SQLException;

    /**
     * Acknowledges, and takes messages of the first source, in the order of the list, that has some; waits until one
     * has.
     *
     * <p>Without a lease the messages are consumed by the open transaction. With a lease they are leased, and the
     * acknowledgements are committed before the wait begins.
     *
     * @param sources what to take from; may be empty, then nothing is waited for
     * @param timeout how long to wait; zero: not at all; null: until there is a message, or {@link #cancel()}
     * @param lease how long messages are leased; null: no lease
     * @param acknowledge leased messages to acknowledge first
     * @return the messages, none after the timeout or a cancel, and the leases that had ended already
     */
    Received receive(List<Source> sources, Duration timeout, Duration lease, List<Lease> acknowledge)
            throws SQLException;

    /** Acknowledges leased messages; returns those whose lease had ended. */
    List<Lease> acknowledge(List<Lease> leases) throws SQLException;

    /**
     * Gives leased messages back.
     *
     * @param delay until they are ready again; null: the retry delay of the queue if the attempt counts, else none
     * @param error why, or null
     * @param count whether the attempt counts; false for messages that no client has seen
     * @return those whose lease had ended
     */
    List<Lease> release(List<Lease> leases, Duration delay, String error, boolean count) throws SQLException;

    /** Extends leases to end at the earliest after this time; returns those that had ended. */
    List<Lease> extend(List<Lease> leases, Duration lease) throws SQLException;

    /**
     * Reads messages that the source could take, in the order of taking, without taking them.
     *
     * @param after continue behind this message; null: from the beginning
     */
    List<Delivery> browse(Source source, UUID after) throws SQLException;

    /**
     * Adds a subscriber to a topic. Several connections can add the same subscriber that is not durable, with the same
     * rule; the server removes it with the last of them.
     *
     * @param rule condition that its messages meet; null: all messages
     * @param durable whether it outlives this connection; otherwise the server removes it with the connection
     */
    void subscribe(String topic, String subscriber, String rule, boolean durable) throws SQLException;

    /** Finds the subscribers of this name: each topic can have one. */
    List<Subscription> subscriptions(String subscriber) throws SQLException;

    /** Removes a subscriber with its messages. */
    void unsubscribe(String topic, String subscriber) throws SQLException;

    /**
     * Creates a queue, or a topic, that the server drops when this connection ends.
     *
     * @return its name
     */
    String createTemporary(boolean topic) throws SQLException;

    /** Drops a temporary queue or topic. */
    void dropTemporary(String queue) throws SQLException;

    /**
     * Claims a name, such as a client ID, for this connection until it ends or {@link #unclaim}. A claim does not
     * conflict with others of the same connection.
     *
     * @param shared whether other connections may have a shared claim beside it
     * @return whether the claim was granted
     */
    boolean claim(String name, boolean shared) throws SQLException;

    /**
     * Claims temporary destinations that lie in a temporary queue of this connection, until it ends or
     * {@link #unclaimTemporary}: all of them, or none.
     *
     * @param first the number of the first one; the others follow
     * @return their names
     */
    List<String> claimTemporary(String queue, long first, int count) throws SQLException;

    /** Gives up one claim of {@link #claimTemporary}. */
    void unclaimTemporary(String name) throws SQLException;

    /** Ends the other connections to the server that have a claim, and returns when they have ended. */
    void endClaimants(String name) throws SQLException;

    /** Gives up one claim. */
    void unclaim(String name, boolean shared) throws SQLException;

    /**
     * Enqueues messages, acknowledges others, and commits; in the open transaction, or in one of its own. Fails with
     * SQLSTATE {@value #LEASE_ENDED} if a lease has ended. After an error the caller rolls back.
     *
     * @param deciding runs before the call that commits: if the connection is lost later, the outcome is not known
     */
    void commit(List<Outgoing> messages, List<Lease> acknowledge, Runnable deciding) throws SQLException;

    /**
     * As {@link #commit(List, List, Runnable)}, but in one call of the server or not at all. After an error of the
     * server nothing was done.
     *
     * @param ahead messages to lease in the same transaction; null: none
     * @return these messages; null if nothing was done: a lease has ended or is in use by another transaction, a
     *     transaction is open, a message has a content, or the connection was not used for long and may be lost
     */
    Received commitAtOnce(List<Outgoing> messages, List<Lease> acknowledge, Ahead ahead, Runnable deciding)
            throws SQLException;

    /** Begins a transaction, unless one is open. */
    void begin() throws SQLException;

    /** Commits the open transaction, if there is one. */
    void commit() throws SQLException;

    /** Rolls the open transaction back, if there is one. */
    void rollback() throws SQLException;

    /**
     * Ends a running {@link #receive}, which then returns no messages; does nothing if none runs. The caller repeats it
     * until the other thread has returned, so it need not be remembered for a receive that begins later.
     */
    void cancel();

    /** Whether the connection to the server still works; asks the server. */
    boolean isAlive();

    /** Whether the next call is a transaction of its own, and not part of an open one. */
    boolean isAlone() throws SQLException;

    /** The JDBC connection. */
    Connection connection();

    /** Closes the JDBC connection, or, if it belongs to the caller, leaves it as it was. */
    @Override
    void close() throws SQLException;
}
