package io.github.pgaq.jms.session;

import io.github.pgaq.jms.PgaqDestination;
import io.github.pgaq.jms.message.Messages;
import io.github.pgaq.jms.message.PgaqMessage;
import io.github.pgaq.jms.store.Body;
import io.github.pgaq.jms.store.Outgoing;
import io.github.pgaq.jms.store.QueueDescription;
import jakarta.jms.CompletionListener;
import jakarta.jms.DeliveryMode;
import jakarta.jms.Destination;
import jakarta.jms.IllegalStateException;
import jakarta.jms.InvalidDestinationException;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageFormatException;
import jakarta.jms.MessageProducer;
import jakarta.jms.Queue;
import jakarta.jms.QueueSender;
import jakarta.jms.Topic;
import jakarta.jms.TopicPublisher;
import java.util.UUID;
import java.util.concurrent.atomic.AtomicLong;

/** A producer of messages, for one destination or for all. */
class Producer implements MessageProducer {
    /** The property of Oracle's provider that delays a message. */
    private static final String ORACLE_DELAY = "JMS_OracleDelay";
    /** The longest correlation of the server. */
    private static final int LONGEST_CORRELATION = 128;

    private final ClientSession session;
    private final PgaqDestination destination;
    /** The ids of its messages count from this one: random bits for each are made under a lock of all threads. */
    private final UUID firstId = UUID.randomUUID();

    private final AtomicLong ids = new AtomicLong();
    private boolean disableMessageID;
    private boolean disableTimestamp;
    private int deliveryMode = Message.DEFAULT_DELIVERY_MODE;
    private int priority = Message.DEFAULT_PRIORITY;
    private long timeToLive = Message.DEFAULT_TIME_TO_LIVE;
    private long deliveryDelay = Message.DEFAULT_DELIVERY_DELAY;
    private volatile boolean closed;

    /**
     * Makes a producer.
     *
     * @param destination null: each send names its destination
     */
    Producer(ClientSession session, PgaqDestination destination) {
        this.session = session;
        this.destination = destination;
    }

    @Override
    public void setDisableMessageID(boolean value) throws JMSException {
        checkOpen();
        disableMessageID = value;
    }

    @Override
    public boolean getDisableMessageID() throws JMSException {
        checkOpen();
        return disableMessageID;
    }

    @Override
    public void setDisableMessageTimestamp(boolean value) throws JMSException {
        checkOpen();
        disableTimestamp = value;
    }

    @Override
    public boolean getDisableMessageTimestamp() throws JMSException {
        checkOpen();
        return disableTimestamp;
    }

    @Override
    public void setDeliveryMode(int deliveryMode) throws JMSException {
        checkOpen();
        checkDeliveryMode(deliveryMode);
        this.deliveryMode = deliveryMode;
    }

    @Override
    public int getDeliveryMode() throws JMSException {
        checkOpen();
        return deliveryMode;
    }

    @Override
    public void setPriority(int priority) throws JMSException {
        checkOpen();
        checkPriority(priority);
        this.priority = priority;
    }

    @Override
    public int getPriority() throws JMSException {
        checkOpen();
        return priority;
    }

    @Override
    public void setTimeToLive(long timeToLive) throws JMSException {
        checkOpen();
        checkNotNegative("time to live", timeToLive);
        this.timeToLive = timeToLive;
    }

    @Override
    public long getTimeToLive() throws JMSException {
        checkOpen();
        return timeToLive;
    }

    @Override
    public void setDeliveryDelay(long deliveryDelay) throws JMSException {
        checkOpen();
        checkNotNegative("delivery delay", deliveryDelay);
        this.deliveryDelay = deliveryDelay;
    }

    @Override
    public long getDeliveryDelay() throws JMSException {
        checkOpen();
        return deliveryDelay;
    }

    @Override
    public Destination getDestination() throws JMSException {
        checkOpen();
        return destination;
    }

    @Override
    public void send(Message message) throws JMSException {
        send(message, deliveryMode, priority, timeToLive);
    }

    @Override
    public void send(Message message, int deliveryMode, int priority, long timeToLive) throws JMSException {
        sendNow(own(), message, deliveryMode, priority, timeToLive);
    }

    @Override
    public void send(Destination destination, Message message) throws JMSException {
        send(destination, message, deliveryMode, priority, timeToLive);
    }

    @Override
    public void send(Destination destination, Message message, int deliveryMode, int priority, long timeToLive)
            throws JMSException {
        sendNow(named(destination), message, deliveryMode, priority, timeToLive);
    }

    @Override
    public void send(Message message, CompletionListener listener) throws JMSException {
        send(message, deliveryMode, priority, timeToLive, listener);
    }

    @Override
    public void send(Message message, int deliveryMode, int priority, long timeToLive, CompletionListener listener)
            throws JMSException {
        sendSoon(own(), message, deliveryMode, priority, timeToLive, listener);
    }

    @Override
    public void send(Destination destination, Message message, CompletionListener listener) throws JMSException {
        send(destination, message, deliveryMode, priority, timeToLive, listener);
    }

    @Override
    public void send(
            Destination destination,
            Message message,
            int deliveryMode,
            int priority,
            long timeToLive,
            CompletionListener listener)
            throws JMSException {
        sendSoon(named(destination), message, deliveryMode, priority, timeToLive, listener);
    }

    private void sendNow(PgaqDestination to, Message message, int deliveryMode, int priority, long timeToLive)
            throws JMSException {
        session.send(outgoing(to, message, deliveryMode, priority, timeToLive));
    }

    private void sendSoon(
            PgaqDestination to,
            Message message,
            int deliveryMode,
            int priority,
            long timeToLive,
            CompletionListener listener)
            throws JMSException {
        if (listener == null) {
            throw new IllegalArgumentException("completion listener must not be null");
        }
        Outgoing outgoing = outgoing(to, message, deliveryMode, priority, timeToLive);
        session.async().send(this, message, outgoing, listener);
    }

    /** Sets the headers of a message and makes of it what is sent. */
    private Outgoing outgoing(PgaqDestination to, Message message, int deliveryMode, int priority, long timeToLive)
            throws JMSException {
        if (message == null) {
            throw new MessageFormatException("message must not be null");
        }
        checkDeliveryMode(deliveryMode);
        checkPriority(priority);
        checkNotNegative("time to live", timeToLive);
        ClientConnection connection = session.connection();
        QueueDescription description = connection.describeToSend(to, session);
        PgaqMessage own = connection.messages().own(message);
        long delay = delay(own);
        long now = System.currentTimeMillis();
        own.setJMSDestination(to);
        own.setJMSDeliveryMode(deliveryMode);
        own.setJMSPriority(priority);
        own.setJMSMessageID(nextId());
        own.setJMSTimestamp(now);
        own.setJMSExpiration(timeToLive == 0 ? 0 : now + timeToLive);
        own.setJMSDeliveryTime(now + delay);
        own.setConnectionId(to.isTopic() ? connection.name() : null);
        if (own != message) {
            Messages.copySendHeaders(own, message);
        }
        String correlation = own.getJMSCorrelationID();
        if (correlation != null && (correlation.isEmpty() || correlation.length() > LONGEST_CORRELATION)) {
            correlation = null;
        }
        // the server counts from when the message is ready, JMS from the send
        long expiration = timeToLive == 0 ? 0 : Math.max(1, timeToLive - delay);
        Body body = description.holdsMessages()
                ? connection.messages().toBody(own)
                : connection.messages().toPlainBody(own, description.payloadType(), correlation != null);
        return new Outgoing(
                to.serverName(),
                body,
                9 - priority,
                delay,
                expiration,
                correlation,
                session.producer(),
                connection.affinity());
    }

    /**
     * Oracle's property, in seconds, goes before the delay of the producer. In a message that was received, it has
     * served its purpose: one that is sent on is not delayed again.
     */
    private long delay(PgaqMessage message) throws JMSException {
        if (message.isReceived() || !message.propertyExists(ORACLE_DELAY)) {
            return deliveryDelay;
        }
        try {
            long seconds = message.getLongProperty(ORACLE_DELAY);
            checkNotNegative(ORACLE_DELAY, seconds);
            return Math.multiplyExact(1000, seconds);
        } catch (NumberFormatException | ArithmeticException e) {
            throw new MessageFormatException(ORACLE_DELAY + " must be a number of seconds");
        }
    }

    private String nextId() {
        return "ID:"
                + new UUID(firstId.getMostSignificantBits(), firstId.getLeastSignificantBits() + ids.getAndIncrement());
    }

    private PgaqDestination own() throws JMSException {
        checkOpen();
        if (destination == null) {
            throw new UnsupportedOperationException("the producer has no destination: name one in send()");
        }
        return destination;
    }

    PgaqDestination named(Destination to) throws JMSException {
        checkOpen();
        if (destination != null) {
            throw new UnsupportedOperationException("the producer has a destination: send() must not name one");
        }
        if (to == null) {
            throw new InvalidDestinationException("destination must not be null");
        }
        return PgaqDestination.of(to);
    }

    @Override
    public void close() throws JMSException {
        Callbacks.refuseCompletionOf(this);
        if (!closed) {
            closed = true;
            session.async().awaitIdle(this);
        }
    }

    void checkOpen() throws JMSException {
        session.checkOpen();
        if (closed) {
            throw new IllegalStateException("the producer is closed");
        }
    }

    PgaqDestination destination() {
        return destination;
    }

    private static void checkDeliveryMode(int mode) throws JMSException {
        if (mode != DeliveryMode.PERSISTENT && mode != DeliveryMode.NON_PERSISTENT) {
            throw new JMSException("delivery mode must be PERSISTENT or NON_PERSISTENT, not " + mode);
        }
    }

    private static void checkPriority(int priority) throws JMSException {
        if (priority < 0 || priority > 9) {
            throw new JMSException("priority must be from 0 to 9, not " + priority);
        }
    }

    private static void checkNotNegative(String what, long value) throws JMSException {
        if (value < 0) {
            throw new JMSException(what + " must not be negative: " + value);
        }
    }

    /** A producer for queues. */
    static final class Sender extends Producer implements QueueSender {
        Sender(ClientSession session, PgaqDestination destination) {
            super(session, destination);
        }

        @Override
        public Queue getQueue() throws JMSException {
            checkOpen();
            return (Queue) destination();
        }

        @Override
        public void send(Queue queue, Message message) throws JMSException {
            send((Destination) queue, message);
        }

        @Override
        public void send(Queue queue, Message message, int deliveryMode, int priority, long timeToLive)
                throws JMSException {
            send((Destination) queue, message, deliveryMode, priority, timeToLive);
        }
    }

    /** A producer for topics. */
    static final class Publisher extends Producer implements TopicPublisher {
        Publisher(ClientSession session, PgaqDestination destination) {
            super(session, destination);
        }

        @Override
        public Topic getTopic() throws JMSException {
            checkOpen();
            return (Topic) destination();
        }

        @Override
        public void publish(Message message) throws JMSException {
            send(message);
        }

        @Override
        public void publish(Message message, int deliveryMode, int priority, long timeToLive) throws JMSException {
            send(message, deliveryMode, priority, timeToLive);
        }

        @Override
        public void publish(Topic topic, Message message) throws JMSException {
            send((Destination) topic, message);
        }

        @Override
        public void publish(Topic topic, Message message, int deliveryMode, int priority, long timeToLive)
                throws JMSException {
            send((Destination) topic, message, deliveryMode, priority, timeToLive);
        }
    }
}
