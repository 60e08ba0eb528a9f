package io.github.pgaq.jms.session;

import io.github.pgaq.jms.PgaqDestination;
import io.github.pgaq.jms.store.Source;
import jakarta.jms.IllegalStateException;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageListener;
import jakarta.jms.Queue;
import jakarta.jms.QueueReceiver;
import jakarta.jms.Topic;
import jakarta.jms.TopicSubscriber;
import java.util.ArrayDeque;
import java.util.Deque;

/** A consumer of a queue or of a subscription. */
class Consumer implements MessageConsumer {
    private final ClientSession session;
    private final PgaqDestination destination;
    private final String selector;
    private final String condition;
    private final Subscriptions.Use subscription;
    private final Window window;
    /** Messages that it leased ahead. Used by the thread that has entered the gate. */
    private final Deque<Taken> buffer = new ArrayDeque<>();

    private volatile MessageListener listener;
    private volatile boolean closed;

    /**
     * Makes a consumer.
     *
     * @param selector the selector as the client gave it, or null
     * @param condition what the server is to compare messages with when they are taken, or null
     * @param subscription the subscription it consumes from; null for a queue
     */
    Consumer(
            ClientSession session,
            PgaqDestination destination,
            String selector,
            String condition,
            Subscriptions.Use subscription) {
        this.session = session;
        this.destination = destination;
        this.selector = selector;
        this.condition = condition;
        this.subscription = subscription;
        this.window = new Window(session.connection().options());
    }

    ClientSession session() {
        return session;
    }

    PgaqDestination destination() {
        return destination;
    }

    Subscriptions.Use subscription() {
        return subscription;
    }

    Window window() {
        return window;
    }

    Deque<Taken> buffer() {
        return buffer;
    }

    /** What to take at most that many messages from. */
    Source source(int max) {
        return new Source(
                destination.serverName(),
                subscription == null ? null : subscription.subscriber(),
                condition,
                max,
                session.connection().options().prefetchBytes());
    }

    boolean isClosed() {
        return closed;
    }

    MessageListener listener() {
        return listener;
    }

    @Override
    public String getMessageSelector() throws JMSException {
        checkOpen();
        return selector;
    }

    @Override
    public MessageListener getMessageListener() throws JMSException {
        checkOpen();
        return listener;
    }

    @Override
    public void setMessageListener(MessageListener listener) throws JMSException {
        checkOpen();
        Callbacks.refuseCompletion(session, "setMessageListener()");
        session.refuseListeners();
        boolean ended = this.listener != null && listener == null;
        this.listener = listener;
        session.consumersChanged();
        if (ended) {
            session.gate().awaitListener(this);
        }
    }

    @Override
    public Message receive() throws JMSException {
        return receive(Deadline.NEVER);
    }

    /** {@inheritDoc} A negative timeout waits without limit, as 0 does. */
    @Override
    public Message receive(long timeout) throws JMSException {
        return receive(timeout <= 0 ? Deadline.NEVER : Deadline.in(timeout));
    }

    @Override
    public Message receiveNoWait() throws JMSException {
        return receive(Deadline.in(0));
    }

    private Message receive(Deadline deadline) throws JMSException {
        return receiveBody(deadline, message -> message);
    }

    /** Receives a message and makes something of it; see {@link Intake#receive}. */
    <T> T receiveBody(Deadline deadline, Intake.Reader<T> reader) throws JMSException {
        checkOpen();
        session.checkThread("receive()");
        if (listener != null) {
            throw new IllegalStateException("the consumer has a message listener");
        }
        return session.intake().receive(this, deadline, 1, reader);
    }

    @Override
    public void close() throws JMSException {
        if (closed) {
            return;
        }
        closed = true;
        session.close(this);
    }

    void checkOpen() throws JMSException {
        session.checkOpen();
        if (closed) {
            throw new IllegalStateException("the consumer is closed");
        }
    }

    /** A consumer of a queue. */
    static final class Receiver extends Consumer implements QueueReceiver {
        Receiver(ClientSession session, PgaqDestination destination, String selector, String condition) {
            super(session, destination, selector, condition, null);
        }

        @Override
        public Queue getQueue() throws JMSException {
            checkOpen();
            return (Queue) destination();
        }
    }

    /** A consumer of a subscription. */
    static final class Subscriber extends Consumer implements TopicSubscriber {
        private final boolean noLocal;

        Subscriber(
                ClientSession session,
                PgaqDestination destination,
                String selector,
                boolean noLocal,
                Subscriptions.Use subscription) {
            super(session, destination, selector, null, subscription);
            this.noLocal = noLocal;
        }

        @Override
        public Topic getTopic() throws JMSException {
            checkOpen();
            return (Topic) destination();
        }

        @Override
        public boolean getNoLocal() throws JMSException {
            checkOpen();
            return noLocal;
        }
    }
}
