package io.github.pgaq.jms.conformance;

import jakarta.jms.Connection;
import jakarta.jms.Destination;
import jakarta.jms.JMSConsumer;
import jakarta.jms.JMSContext;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.Queue;
import jakarta.jms.QueueBrowser;
import jakarta.jms.QueueConnection;
import jakarta.jms.Session;
import jakarta.jms.TextMessage;
import jakarta.jms.Topic;
import jakarta.jms.TopicConnection;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Deque;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.Callable;
import java.util.concurrent.ConcurrentLinkedDeque;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Assertions;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.function.Executable;

/**
 * The base of all tests: connections, sessions and destinations of one test, closed and dropped at its end, and
 * assertions that say in plain English what the specification demands. Tests run in parallel; each has an object of
 * its own and shares nothing with the others but the server.
 */
@ExtendWith(Deviations.class)
abstract class ConformanceTest {
    /** How long a test waits for something that must happen. It is reached only by a test that fails. */
    static final long WAIT = Long.getLong("conformance.wait", 10_000);
    /** How long a test waits for something that must not happen. */
    static final long QUIET = Long.getLong("conformance.quiet", 250);

    static final int AUTO = Session.AUTO_ACKNOWLEDGE;
    static final int CLIENT = Session.CLIENT_ACKNOWLEDGE;
    static final int DUPS = Session.DUPS_OK_ACKNOWLEDGE;
    static final int TRANSACTED = Session.SESSION_TRANSACTED;

    private static final AtomicLong COUNTER = new AtomicLong();
    private static final String RUN = Long.toString(System.currentTimeMillis() % 100_000_000L, 36);

    /** Rigs that no test uses now. */
    private static final Deque<Rig> RIGS = new ConcurrentLinkedDeque<>();

    static {
        Providers.beforeClose(() -> RIGS.forEach(Rig::discard));
    }

    /** A connection, its sessions and an empty queue, which the tests of messages use in turn. */
    private static final class Rig {
        private final Connection connection;
        private final Session session;
        private final MessageProducer producer;
        private final MessageConsumer consumer;
        private final String queue = unique("rig");
        private boolean empty = true;

        Rig() throws JMSException {
            perform("create a queue", () -> Providers.get().createQueue(queue));
            connection = Providers.get().connectionFactory().createConnection();
            connection.start();
            session = connection.createSession(AUTO);
            Session sender = connection.createSession(AUTO);
            producer = sender.createProducer(sender.createQueue(queue));
            consumer = session.createConsumer(session.createQueue(queue));
        }

        Message roundTrip(Message message) throws JMSException {
            empty = false;
            producer.send(message);
            Message received = receive(consumer);
            empty = true;
            return received;
        }

        void discard() {
            quietly(connection::close);
            quietly(() -> Providers.get().dropQueue(queue));
        }
    }

    private Rig rig;
    private boolean own;

    /** Clean-up at the end of a test, in the reverse order of registration. */
    private final Deque<AutoCloseable> closers = new ArrayDeque<>();

    private final Deque<AutoCloseable> droppers = new ArrayDeque<>();
    private Connection connection;
    private Session session;
    private Session sender;

    final Provider provider() {
        return Providers.get();
    }

    /** A name that no other test uses. */
    static String unique(String prefix) {
        return "ct_" + prefix + "_" + RUN + "_" + COUNTER.incrementAndGet();
    }

    // ---- what a test works with -------------------------------------------------------------------------------

    /** Whether the tests of the class only make messages and send them with {@link #roundTrip}. */
    boolean sharesConnection() {
        return false;
    }

    private Rig rig() throws JMSException {
        if (rig == null) {
            Rig idle = RIGS.poll();
            rig = idle != null ? idle : new Rig();
        }
        return rig;
    }

    /** The started connection of the test. */
    final Connection connection() throws JMSException {
        if (connection == null) {
            connection = connect();
        }
        return connection;
    }

    /** A further connection, started. */
    final Connection connect() throws JMSException {
        Connection c = connectStopped();
        c.start();
        return c;
    }

    /** A further connection, not started. */
    final Connection connectStopped() throws JMSException {
        return closeLater(provider().connectionFactory().createConnection());
    }

    /** A further connection with a client identifier, started. */
    final Connection connect(String clientId) throws JMSException {
        Connection c = connectStopped();
        c.setClientID(clientId);
        c.start();
        return c;
    }

    final QueueConnection queueConnection() throws JMSException {
        QueueConnection c = closeLater(provider().queueConnectionFactory().createQueueConnection());
        c.start();
        return c;
    }

    final TopicConnection topicConnection() throws JMSException {
        TopicConnection c = closeLater(provider().topicConnectionFactory().createTopicConnection());
        c.start();
        return c;
    }

    /** The session of the test: AUTO_ACKNOWLEDGE, on its started connection. */
    final Session session() throws JMSException {
        if (sharesConnection() && !own) {
            return rig().session;
        }
        if (session == null) {
            session = connection().createSession(AUTO);
        }
        return session;
    }

    /** A further session on the connection of the test. */
    final Session session(int mode) throws JMSException {
        return connection().createSession(mode);
    }

    /** A session that only sends, so that the session under test stays in its own state. */
    final Session sender() throws JMSException {
        if (sharesConnection() && !own) {
            return rig().session;
        }
        if (sender == null) {
            sender = connection().createSession(AUTO);
        }
        return sender;
    }

    final JMSContext context() {
        return closeLater(provider().connectionFactory().createContext());
    }

    final JMSContext context(int mode) {
        return closeLater(provider().connectionFactory().createContext(mode));
    }

    final Queue queue() throws JMSException {
        own = true;
        return session().createQueue(queueName());
    }

    /** The name of a new queue, dropped at the end of the test. */
    final String queueName() {
        String name = unique("q");
        perform("create a queue", () -> provider().createQueue(name));
        droppers.push(() -> provider().dropQueue(name));
        return name;
    }

    final Topic topic() throws JMSException {
        own = true;
        return session().createTopic(topicName());
    }

    final String topicName() {
        String name = unique("t");
        perform("create a topic", () -> provider().createTopic(name));
        droppers.push(() -> provider().dropTopic(name));
        return name;
    }

    final <T extends AutoCloseable> T closeLater(T object) {
        synchronized (closers) {
            closers.push(object);
        }
        return object;
    }

    @AfterEach
    void closeAll() {
        if (rig != null && rig.empty) {
            RIGS.push(rig);
        } else if (rig != null) {
            rig.discard();
        }
        for (AutoCloseable closer : closers) {
            quietly(closer::close);
        }
        for (AutoCloseable dropper : droppers) {
            quietly(dropper::close);
        }
    }

    private static void quietly(Executable action) {
        try {
            action.execute();
        } catch (Throwable e) {
            // The test has its result; what remains is cleared with the server.
            if (Boolean.getBoolean("conformance.verbose")) {
                System.err.println("at the end of a test: " + e);
            }
        }
    }

    private static void perform(String what, Executable action) {
        try {
            action.execute();
        } catch (Throwable e) {
            throw new AssertionError("the suite could not " + what + ": " + e, e);
        }
    }

    // ---- sending and receiving --------------------------------------------------------------------------------

    /** Sends text messages with the sending session of the test. */
    final void send(Destination destination, String... texts) throws JMSException {
        try (MessageProducer producer = sender().createProducer(destination)) {
            for (String text : texts) {
                producer.send(sender().createTextMessage(text));
            }
        }
    }

    /** Sends a text message with a property. */
    final void sendWith(Destination destination, String text, String property, Object value) throws JMSException {
        try (MessageProducer producer = sender().createProducer(destination)) {
            TextMessage message = sender().createTextMessage(text);
            message.setObjectProperty(property, value);
            producer.send(message);
        }
    }

    /** Sends a message through a queue of its own and returns it as received. */
    @SuppressWarnings("unchecked")
    final <M extends Message> M roundTrip(M message) throws JMSException {
        if (sharesConnection()) {
            return (M) rig().roundTrip(message);
        }
        Queue queue = queue();
        try (MessageProducer producer = sender().createProducer(queue);
                MessageConsumer consumer = session().createConsumer(queue)) {
            producer.send(message);
            return (M) receive(consumer);
        }
    }

    /** The next message, which must come. */
    static Message receive(MessageConsumer consumer) throws JMSException {
        Message message = consumer.receive(WAIT);
        Assertions.assertNotNull(message, "a message was sent and must be received, but receive() timed out");
        return message;
    }

    /** The text of the next message, which must come. */
    static String text(MessageConsumer consumer) throws JMSException {
        return ((TextMessage) receive(consumer)).getText();
    }

    static List<String> texts(MessageConsumer consumer, int count) throws JMSException {
        List<String> texts = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            texts.add(text(consumer));
        }
        return texts;
    }

    static Message receive(JMSConsumer consumer) {
        Message message = consumer.receive(WAIT);
        Assertions.assertNotNull(message, "a message was sent and must be received, but receive() timed out");
        return message;
    }

    static String text(JMSConsumer consumer) throws JMSException {
        return ((TextMessage) receive(consumer)).getText();
    }

    /** Nothing can be received at once. */
    static void nothing(String why, MessageConsumer consumer) throws JMSException {
        noMessage(why, consumer.receiveNoWait());
    }

    static void nothing(String why, JMSConsumer consumer) throws JMSException {
        noMessage(why, consumer.receiveNoWait());
    }

    /** Nothing comes for a while: for messages that a provider could deliver late. */
    static void quiet(String why, MessageConsumer consumer) throws JMSException {
        noMessage(why, consumer.receive(QUIET));
    }

    private static void noMessage(String why, Message message) throws JMSException {
        if (message != null) {
            Assertions.fail(why + ": no message must come, but this one came: "
                    + (message instanceof TextMessage t ? t.getText() : message.toString()));
        }
    }

    static List<Message> browse(QueueBrowser browser) throws JMSException {
        List<Message> messages = new ArrayList<>();
        for (Object message : Collections.list(browser.getEnumeration())) {
            messages.add((Message) message);
        }
        return messages;
    }

    static int count(Message message) throws JMSException {
        return message.getIntProperty("JMSXDeliveryCount");
    }

    // ---- assertions -------------------------------------------------------------------------------------------

    static void equal(String what, Object expected, Object actual) {
        Assertions.assertEquals(expected, actual, what);
    }

    static void bytes(String what, byte[] expected, byte[] actual) {
        Assertions.assertArrayEquals(expected, actual, what);
    }

    static void yes(String claim, boolean holds) {
        Assertions.assertTrue(holds, claim);
    }

    static void no(String claim, boolean holds) {
        Assertions.assertFalse(holds, claim);
    }

    static void isNull(String what, Object value) {
        Assertions.assertNull(value, what + " must be null");
    }

    static <T> T present(String what, T value) {
        Assertions.assertNotNull(value, what + " must not be null");
        return value;
    }

    /** The action must fail with this exception or one derived from it. */
    static <T extends Throwable> T fails(Class<T> type, String what, Executable action) {
        try {
            action.execute();
        } catch (Throwable e) {
            if (type.isInstance(e)) {
                return type.cast(e);
            }
            throw new AssertionError(what + " must throw " + type.getName() + ", but threw " + e, e);
        }
        throw new AssertionError(what + " must throw " + type.getName() + ", but returned normally");
    }

    /** The action must not fail. */
    static void works(String what, Executable action) {
        try {
            action.execute();
        } catch (Throwable e) {
            throw new AssertionError(what + " must not throw, but threw " + e, e);
        }
    }

    static void happens(String what, CountDownLatch latch) throws InterruptedException {
        yes(what + " must happen, but did not within " + WAIT + " ms", latch.await(WAIT, TimeUnit.MILLISECONDS));
    }

    /** The next element of a queue that listeners fill. */
    static <T> T next(String what, BlockingQueue<T> queue) throws InterruptedException {
        T element = queue.poll(WAIT, TimeUnit.MILLISECONDS);
        Assertions.assertNotNull(element, what + " must come, but did not within " + WAIT + " ms");
        return element;
    }

    /** Runs the action in a thread of its own, which has begun: on a busy machine that may take long. */
    static <T> Future<T> thread(Callable<T> action) throws InterruptedException {
        CountDownLatch begun = new CountDownLatch(1);
        FutureTask<T> task = new FutureTask<>(() -> {
            begun.countDown();
            return action.call();
        });
        Thread thread = new Thread(task, "conformance");
        thread.setDaemon(true);
        thread.start();
        begun.await();
        return task;
    }

    static <T> T result(String what, Future<T> future) throws Exception {
        try {
            return future.get(WAIT, TimeUnit.MILLISECONDS);
        } catch (TimeoutException e) {
            throw new AssertionError(what + " must return, but did not within " + WAIT + " ms", e);
        } catch (ExecutionException e) {
            if (e.getCause() instanceof Error error) {
                throw error;
            }
            throw new AssertionError(what + " must not throw, but threw " + e.getCause(), e.getCause());
        }
    }

    /** Still running after a while. */
    static void pending(String what, Future<?> future) throws Exception {
        try {
            Object value = future.get(QUIET, TimeUnit.MILLISECONDS);
            Assertions.fail(what + " must wait, but returned " + Objects.toString(value));
        } catch (TimeoutException e) {
            return;
        }
    }

    static long clock() {
        return System.currentTimeMillis();
    }
}
