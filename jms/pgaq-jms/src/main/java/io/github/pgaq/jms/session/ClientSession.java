package io.github.pgaq.jms.session;

import io.github.pgaq.jms.PgaqDestination;
import io.github.pgaq.jms.PgaqQueue;
import io.github.pgaq.jms.PgaqTopic;
import io.github.pgaq.jms.message.PgaqMessage;
import io.github.pgaq.jms.store.Delivery;
import io.github.pgaq.jms.store.Lease;
import io.github.pgaq.jms.store.Outgoing;
import io.github.pgaq.jms.store.Source;
import io.github.pgaq.jms.store.Store;
import io.github.pgaq.jms.store.StoreFactory;
import jakarta.jms.Destination;
import jakarta.jms.IllegalStateException;
import jakarta.jms.InvalidDestinationException;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageListener;
import jakarta.jms.MessageProducer;
import jakarta.jms.Queue;
import jakarta.jms.QueueBrowser;
import jakarta.jms.QueueReceiver;
import jakarta.jms.QueueSender;
import jakarta.jms.TemporaryQueue;
import jakarta.jms.TemporaryTopic;
import jakarta.jms.Topic;
import jakarta.jms.TopicPublisher;
import jakarta.jms.TopicSubscriber;
import java.sql.Connection;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Predicate;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** A session. */
public class ClientSession extends MessageMaker {
    private static final Logger LOG = LoggerFactory.getLogger(ClientSession.class);

    private final ClientConnection connection;
    private final int mode;
    private final boolean callers;
    private final Link link;
    private final Gate gate;
    private final Settlement settlement;
    private final Intake intake;
    private final ConsumerMaker maker = new ConsumerMaker(this);
    private final AsyncSender async;
    private final Roster roster = new Roster();
    /** Keeps the order of what the session sends, whichever connection commits it; null: its own always does. */
    private final String producer;

    private final AtomicInteger version = new AtomicInteger();
    private final AtomicBoolean dispatching = new AtomicBoolean();

    /**
     * Makes a session.
     *
     * @param mode one of the modes of jakarta.jms.Session
     * @param callers whether the JDBC connection is the caller's
     */
    protected ClientSession(ClientConnection connection, StoreFactory factory, int mode, boolean callers) {
        this.connection = connection;
        this.mode = mode;
        this.callers = callers;
        this.producer = mode == SESSION_TRANSACTED && !callers ? "jms:" + UUID.randomUUID() : null;
        this.link = new Link(factory, connection.options(), new Watcher());
        this.gate = new Gate(link::cancel);
        this.settlement = new Settlement(this, link, mode == SESSION_TRANSACTED, callers);
        this.intake = new Intake(this, gate, settlement);
        this.async = new AsyncSender(this, gate, settlement);
    }

    /** The producer of its messages for the server, see {@link io.github.pgaq.jms.store.Outgoing}. */
    String producer() {
        return producer;
    }

    private final class Watcher implements Link.Watcher {
        /** Leased ahead from the lost connection. Used by who has entered the gate. */
        private final List<Lease> unseen = new ArrayList<>();

        @Override
        public void lost(SQLException cause, long worked) {
            connection.reportLoss(cause, "", worked);
            settlement.connectionLost(cause);
            List<Lease> leases = roster.drain();
            leases.forEach(connection.keeper()::drop);
            unseen.addAll(leases);
        }

        /** The server has ended the leases, unless it has not noticed yet that the connection is lost. */
        @Override
        public void restored(Store store) throws SQLException {
            if (!callers) {
                connection.registerSession(store);
                try {
                    connection.checkClaim();
                } catch (JMSException e) {
                    throw new SQLException(e.getMessage(), e.getErrorCode(), e);
                }
            }
            try {
                store.release(unseen, null, null, false);
            } catch (SQLException e) {
                if (Errors.isLost(e)) {
                    throw e;
                }
                // a queue is gone, maybe with its connection; the leases of the others end by themselves
                LOG.debug("giving messages of a lost connection back failed", e);
            }
            unseen.clear();
        }

        @Override
        public void failed(JMSException reason) {
            connection.reportEnd(reason);
        }

        @Override
        public boolean isClosed() {
            return gate.isClosed();
        }
    }

    /** Connects; a session that fails to keeps no connection. */
    void open() throws JMSException {
        try {
            link.open();
            if (!callers) {
                link.call("could not open a session", store -> {
                    connection.registerSession(store);
                    return null;
                });
                connection.checkClaim();
            }
        } catch (JMSException e) {
            link.close();
            connection.checkOpen();
            throw e;
        }
    }

    @Override
    ClientConnection connection() {
        return connection;
    }

    int mode() {
        return mode;
    }

    Gate gate() {
        return gate;
    }

    Roster roster() {
        return roster;
    }

    Intake intake() {
        return intake;
    }

    AsyncSender async() {
        return async;
    }

    Link link() {
        return link;
    }

    // State

    @Override
    void checkOpen() throws JMSException {
        // a listener that runs while the session closes can finish its work
        if (gate.isClosed() && !gate.isListening()) {
            throw new IllegalStateException("the session is closed");
        }
    }

    /** Fails if listeners have the session and another thread calls. */
    void checkThread(String method) throws JMSException {
        if (roster.hasListeners() && gate.isStarted() && !gate.isListening()) {
            throw new IllegalStateException(
                    method + " is not allowed: the session delivers messages to listeners on another thread");
        }
    }

    /** Fails if the session cannot have listeners. */
    void refuseListeners() throws JMSException {
        if (callers) {
            throw new IllegalStateException(
                    "a session on a JDBC connection of the caller, or for XA, cannot have message listeners");
        }
    }

    /** Changes with the consumers and their listeners. */
    int version() {
        return version.get();
    }

    /** Consumers or listeners have changed: threads that wait for messages start over. */
    void consumersChanged() {
        version.incrementAndGet();
        if (roster.hasListeners() && dispatching.compareAndSet(false, true)) {
            connection
                    .thread("listener", new Dispatcher(this, gate, intake, settlement))
                    .start();
        }
        gate.wake();
    }

    /** Whether messages are delivered to listeners, when the session is started. */
    boolean delivers() {
        return roster.hasListeners() && !connection.isSuspended();
    }

    /** The connection was suspended, or is no longer: what was leased ahead goes back, and waits end. */
    void suspensionChanged() {
        gate.enter();
        try {
            if (connection.isSuspended() && !roster.hasConsumed()) {
                settlement.release(List.of(), roster.drain());
            }
        } catch (JMSException e) {
            // the leases end by themselves
            LOG.debug("giving messages of a suspended session back failed", e);
        } finally {
            gate.leave();
        }
    }

    void setStarted(boolean started) {
        gate.setStarted(started);
    }

    /** Returns when no listener runs. */
    void awaitListener() {
        gate.awaitListener(null);
    }

    // Transactions and acknowledgement

    @Override
    public boolean getTransacted() throws JMSException {
        checkOpen();
        return mode == SESSION_TRANSACTED;
    }

    @Override
    public int getAcknowledgeMode() throws JMSException {
        checkOpen();
        return mode;
    }

    @Override
    public void commit() throws JMSException {
        endTransaction("commit()", settlement::commit);
    }

    @Override
    public void rollback() throws JMSException {
        endTransaction("rollback()", settlement::rollback);
    }

    private void endTransaction(String method, Errors.CheckedVoid end) throws JMSException {
        checkOpen();
        Callbacks.refuseCompletion(this, method);
        if (mode != SESSION_TRANSACTED) {
            throw new IllegalStateException(method + " is not allowed: the session is not transacted");
        }
        checkThread(method);
        async.awaitIdle(null);
        entered(end);
    }

    @Override
    public void recover() throws JMSException {
        checkOpen();
        if (mode == SESSION_TRANSACTED) {
            throw new IllegalStateException("recover() is not allowed: the session is transacted");
        }
        checkThread("recover()");
        entered(settlement::recover);
    }

    /**
     * Accepts only null, which pools set before they keep a session for its next user. That user must not acknowledge
     * the messages of this one.
     */
    @Override
    public void setMessageListener(MessageListener listener) throws JMSException {
        super.setMessageListener(listener);
        if (mode == CLIENT_ACKNOWLEDGE) {
            entered(() -> {
                if (settlement.holdsAny()) {
                    recover();
                }
            });
        }
    }

    /** Acknowledges all that was delivered. */
    void acknowledge() throws JMSException {
        checkOpen();
        if (mode == CLIENT_ACKNOWLEDGE) {
            entered(settlement::acknowledgeAll);
        }
    }

    /** Returns when all asynchronous sends are complete. */
    protected final void awaitSends() throws JMSException {
        async.awaitIdle(null);
    }

    private void entered(Errors.CheckedVoid action) throws JMSException {
        gate.enter();
        try {
            action.run();
        } finally {
            gate.leave();
        }
    }

    /** Sends a message. */
    void send(Outgoing outgoing) throws JMSException {
        entered(() -> {
            async.flush();
            settlement.send(List.of(outgoing));
        });
    }

    /** Reads the body of a browsed message, if it is large. */
    void readBody(PgaqMessage message, Source source, UUID msgid) throws JMSException {
        gate.enter();
        try {
            message.fetch(to -> settlement.call("could not read the body of a message", store -> {
                store.readContent(source.queue(), source.consumer(), msgid, to);
                return null;
            }));
        } finally {
            gate.leave();
        }
    }

    List<Delivery> browse(Source source, UUID after) throws JMSException {
        gate.enter();
        try {
            return settlement.call("could not browse", store -> store.browse(source, after));
        } finally {
            gate.leave();
        }
    }

    @Override
    public Connection getConnection() throws JMSException {
        checkOpen();
        if (mode != SESSION_TRANSACTED && !callers) {
            throw new IllegalStateException("getConnection() is not allowed: the session is not transacted");
        }
        gate.enter();
        try {
            return settlement.share();
        } finally {
            gate.leave();
        }
    }

    // Closing

    @Override
    public void close() throws JMSException {
        Callbacks.refuseListener(this, "close()");
        Callbacks.refuseCompletion(this, "close()");
        if (!gate.close()) {
            return;
        }
        // it may still send
        gate.awaitListener(null);
        async.close();
        gate.enter();
        try {
            try {
                settlement.close();
            } finally {
                retire();
                for (Consumer consumer : roster.open()) {
                    endSubscription(consumer);
                }
            }
        } catch (JMSException e) {
            if (!link.isOpen()) {
                // the connection is lost, so the server has done it or the leases end
                return;
            }
            throw e;
        } finally {
            gate.leave();
            connection.closed(this);
            link.close();
        }
    }

    /** Closes a consumer of this session. */
    void close(Consumer consumer) throws JMSException {
        consumersChanged();
        gate.awaitListener(consumer);
        gate.enter();
        try {
            roster.remove(consumer);
            if (!gate.isClosed()) {
                if (Intake.hasConsumed(consumer)) {
                    settlement.refuseCommit("a consumer was closed before it got a message of the transaction");
                }
                roster.retire(consumer);
                try {
                    settlement.release(List.of(), Intake.drain(consumer));
                } finally {
                    retire();
                }
            }
        } finally {
            gate.leave();
        }
    }

    /** Ends the subscriptions of closed consumers, as far as all their messages are acknowledged. */
    void retire() throws JMSException {
        Predicate<Consumer> done = consumer -> gate.isClosed() || !settlement.holds(consumer);
        for (Consumer next = roster.endRetired(done); next != null; next = roster.endRetired(done)) {
            endSubscription(next);
        }
    }

    private void endSubscription(Consumer consumer) throws JMSException {
        if (consumer.subscription() != null) {
            connection.subscriptions().release(consumer.subscription());
        }
    }

    /**
     * Gives back messages that consumers have leased ahead and not used since this time, by System.nanoTime(), so that
     * other consumers get them: a listener may run for a long time, or receive() not be called.
     */
    void releaseIdle(long before) throws JMSException {
        if (!gate.tryEnter()) {
            return;
        }
        try {
            settlement.release(List.of(), roster.drainIdle(before));
        } finally {
            gate.leave();
        }
    }

    // Consumers

    @Override
    public MessageConsumer createConsumer(Destination destination) throws JMSException {
        return createConsumer(destination, null, false);
    }

    @Override
    public MessageConsumer createConsumer(Destination destination, String selector) throws JMSException {
        return createConsumer(destination, selector, false);
    }

    @Override
    public MessageConsumer createConsumer(Destination destination, String selector, boolean noLocal)
            throws JMSException {
        checkOpen();
        return add(maker.consumer(destination, selector, noLocal));
    }

    private TopicSubscriber named(Subscriptions.Kind kind, Topic topic, String name, String selector, boolean noLocal)
            throws JMSException {
        checkOpen();
        return add(maker.named(kind, topic, name, selector, noLocal));
    }

    private <C extends Consumer> C add(C consumer) {
        roster.add(consumer);
        consumersChanged();
        return consumer;
    }

    @Override
    public QueueReceiver createReceiver(Queue queue) throws JMSException {
        return createReceiver(queue, null);
    }

    @Override
    public QueueReceiver createReceiver(Queue queue, String selector) throws JMSException {
        checkOpen();
        return add(maker.receiver(queue, selector));
    }

    @Override
    public TopicSubscriber createSubscriber(Topic topic) throws JMSException {
        return createSubscriber(topic, null, false);
    }

    @Override
    public TopicSubscriber createSubscriber(Topic topic, String selector, boolean noLocal) throws JMSException {
        return (TopicSubscriber) createConsumer(topic, selector, noLocal);
    }

    @Override
    public MessageConsumer createSharedConsumer(Topic topic, String name) throws JMSException {
        return createSharedConsumer(topic, name, null);
    }

    @Override
    public MessageConsumer createSharedConsumer(Topic topic, String name, String selector) throws JMSException {
        return named(Subscriptions.Kind.SHARED, topic, name, selector, false);
    }

    @Override
    public TopicSubscriber createDurableSubscriber(Topic topic, String name) throws JMSException {
        return createDurableSubscriber(topic, name, null, false);
    }

    @Override
    public TopicSubscriber createDurableSubscriber(Topic topic, String name, String selector, boolean noLocal)
            throws JMSException {
        return named(Subscriptions.Kind.DURABLE, topic, name, selector, noLocal);
    }

    @Override
    public MessageConsumer createDurableConsumer(Topic topic, String name) throws JMSException {
        return createDurableConsumer(topic, name, null, false);
    }

    @Override
    public MessageConsumer createDurableConsumer(Topic topic, String name, String selector, boolean noLocal)
            throws JMSException {
        return named(Subscriptions.Kind.DURABLE, topic, name, selector, noLocal);
    }

    @Override
    public MessageConsumer createSharedDurableConsumer(Topic topic, String name) throws JMSException {
        return createSharedDurableConsumer(topic, name, null);
    }

    @Override
    public MessageConsumer createSharedDurableConsumer(Topic topic, String name, String selector) throws JMSException {
        return named(Subscriptions.Kind.SHARED_DURABLE, topic, name, selector, false);
    }

    @Override
    public void unsubscribe(String name) throws JMSException {
        checkOpen();
        connection.subscriptions().unsubscribe(connection.clientId(), name);
    }

    @Override
    public QueueBrowser createBrowser(Queue queue) throws JMSException {
        return createBrowser(queue, null);
    }

    @Override
    public QueueBrowser createBrowser(Queue queue, String selector) throws JMSException {
        checkOpen();
        return maker.browser(queue, selector);
    }

    @Override
    public List<Message> bulkReceive(MessageConsumer consumer, int max, long timeout) throws JMSException {
        return bulk(consumer, max, timeout <= 0 ? Deadline.NEVER : Deadline.in(timeout));
    }

    @Override
    public List<Message> bulkReceiveNoWait(MessageConsumer consumer, int max) throws JMSException {
        return bulk(consumer, max, Deadline.in(0));
    }

    private List<Message> bulk(MessageConsumer consumer, int max, Deadline deadline) throws JMSException {
        checkOpen();
        if (!(consumer instanceof Consumer own) || own.session() != this) {
            throw new JMSException("the consumer is not one of this session");
        }
        own.checkOpen();
        checkThread("bulkReceive()");
        List<Message> messages = new ArrayList<>();
        Message message = max < 1 ? null : intake.receive(own, deadline, max, m -> m);
        while (message != null) {
            messages.add(message);
            int left = max - messages.size();
            message = left == 0 ? null : intake.receive(own, Deadline.in(0), left, m -> m);
        }
        return messages;
    }

    // Producers and destinations

    @Override
    public MessageProducer createProducer(Destination destination) throws JMSException {
        checkOpen();
        if (destination == null) {
            return new Producer(this, null);
        }
        PgaqDestination own = PgaqDestination.of(destination);
        connection.describe(own, this);
        return own.isTopic() ? new Producer.Publisher(this, own) : new Producer.Sender(this, own);
    }

    @Override
    public QueueSender createSender(Queue queue) throws JMSException {
        return queue == null ? opened(new Producer.Sender(this, null)) : (QueueSender) createProducer(queue);
    }

    @Override
    public TopicPublisher createPublisher(Topic topic) throws JMSException {
        return topic == null ? opened(new Producer.Publisher(this, null)) : (TopicPublisher) createProducer(topic);
    }

    private <T> T opened(T object) throws JMSException {
        checkOpen();
        return object;
    }

    @Override
    public Queue createQueue(String name) throws JMSException {
        checkOpen();
        checkName(name);
        return new PgaqQueue(name);
    }

    @Override
    public Topic createTopic(String name) throws JMSException {
        checkOpen();
        checkName(name);
        return new PgaqTopic(name);
    }

    private static void checkName(String name) throws JMSException {
        if (name == null || name.isEmpty()) {
            throw new InvalidDestinationException("name of a destination must not be empty");
        }
    }

    @Override
    public TemporaryQueue createTemporaryQueue() throws JMSException {
        checkOpen();
        return connection.temporaries().createQueue();
    }

    @Override
    public TemporaryTopic createTemporaryTopic() throws JMSException {
        checkOpen();
        return connection.temporaries().createTopic();
    }
}
