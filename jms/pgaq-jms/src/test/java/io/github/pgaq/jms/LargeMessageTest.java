package io.github.pgaq.jms;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import jakarta.jms.BytesMessage;
import jakarta.jms.Connection;
import jakarta.jms.JMSConsumer;
import jakarta.jms.JMSContext;
import jakarta.jms.MessageConsumer;
import jakarta.jms.Session;
import java.io.File;
import java.sql.SQLException;
import java.util.Random;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** Messages whose bodies are sent and received in chunks. */
class LargeMessageTest extends ServerTest {

    private static final int SIZE = 5_500_000;

    private final PgaqConnectionFactory factory = new PgaqConnectionFactory(url());
    private final byte[] body = new byte[SIZE];
    private String queue;

    @BeforeEach
    void prepare() throws SQLException {
        queue = newQueue();
        new Random().nextBytes(body);
    }

    /** How many bodies of messages to the queue are in the database. */
    private static String contents(String queue) throws SQLException {
        return value("SELECT count(*) FROM aq_internal.jms_content c JOIN aq_internal.queue q ON q.queue_id = c.home_id"
                + " WHERE q.queue_name = '" + queue + "' AND EXISTS (SELECT FROM aq_internal.jms_chunk k"
                + " WHERE k.content = c.content)");
    }

    /** The worker's job, twice, without its patience. */
    private static void sweep() throws SQLException {
        value("SELECT aq_internal.jms_sweep('0')");
        value("SELECT aq_internal.jms_sweep('0')");
    }

    private void send() {
        try (JMSContext context = factory.createContext()) {
            context.createProducer().send(context.createQueue(queue), body);
        }
    }

    @Test
    void aBodyIsSentAndReceivedAndGoesWithItsMessage() throws Exception {
        send();
        assertEquals("1", contents(queue));
        assertEquals("6", value("SELECT count(*) FROM aq_internal.jms_chunk k JOIN aq_internal.jms_content c"
                + " USING (content) JOIN aq_internal.queue q ON q.queue_id = c.home_id WHERE q.queue_name = '" + queue
                + "'"));
        sweep();
        assertEquals("1", contents(queue), "the message is still there");
        try (JMSContext context = factory.createContext();
                JMSConsumer consumer = context.createConsumer(context.createQueue(queue))) {
            assertArrayEquals(body, consumer.receiveBody(byte[].class, 10_000));
        }
        sweep();
        assertEquals("0", contents(queue));
    }

    @Test
    void aBodyIsPartOfTheTransaction() throws Exception {
        try (JMSContext context = factory.createContext(JMSContext.SESSION_TRANSACTED);
                JMSContext other = factory.createContext();
                JMSConsumer consumer = context.createConsumer(context.createQueue(queue))) {
            BytesMessage message = context.createBytesMessage();
            message.writeBytes(body);
            context.createProducer().send(context.createQueue(queue), message);
            context.rollback();
            assertEquals("0", contents(queue));
            context.createProducer().send(context.createQueue(queue), message);
            message.clearBody();
            context.commit();
            assertArrayEquals(body, consumer.receiveBody(byte[].class, 10_000));
            context.rollback();
            sweep();
            BytesMessage again = (BytesMessage) consumer.receive(10_000);
            context.commit();
            sweep();
            assertEquals("0", contents(queue));
            assertTrue(again.getJMSRedelivered());
            assertArrayEquals(body, again.getBody(byte[].class), "a message in hand does not need the server");
            assertNull(other.createConsumer(other.createQueue(queue)).receiveNoWait());
        }
    }

    @Test
    void aBodyIsSentOnTheCallersConnection() throws Exception {
        try (java.sql.Connection jdbc = connect()) {
            jdbc.setAutoCommit(false);
            try (Connection connection = factory.createConnection(jdbc);
                    Session session = connection.createSession(Session.SESSION_TRANSACTED)) {
                BytesMessage message = session.createBytesMessage();
                message.writeBytes(body);
                session.createProducer(session.createQueue(queue)).send(message);
                jdbc.rollback();
                assertEquals("0", contents(queue));
                session.createProducer(session.createQueue(queue)).send(message);
                jdbc.commit();
                connection.start();
                try (MessageConsumer consumer = session.createConsumer(session.createQueue(queue))) {
                    assertArrayEquals(body, consumer.receive(10_000).getBody(byte[].class));
                }
                jdbc.commit();
            }
        }
        sweep();
        assertEquals("0", contents(queue));
    }

    @Test
    void eachSubscriberOfATopicGetsTheBody() throws Exception {
        String topic = newTopic();
        try (JMSContext context = factory.createContext()) {
            JMSConsumer one = context.createSharedDurableConsumer(context.createTopic(topic), newName("one"));
            JMSConsumer two = context.createSharedDurableConsumer(context.createTopic(topic), newName("two"));
            context.createProducer().send(context.createTopic(topic), body);
            assertArrayEquals(body, one.receiveBody(byte[].class, 10_000));
            sweep();
            assertEquals("1", contents(topic));
            assertArrayEquals(body, two.receiveBody(byte[].class, 10_000));
        }
        sweep();
        assertEquals("0", contents(topic));
    }

    @Test
    void aListenerGetsTheBody() throws Exception {
        BlockingQueue<byte[]> bodies = new ArrayBlockingQueue<>(10);
        try (JMSContext context = factory.createContext();
                JMSConsumer consumer = context.createConsumer(context.createQueue(queue))) {
            consumer.setMessageListener(message -> {
                try {
                    bodies.add(message.getBody(byte[].class));
                } catch (jakarta.jms.JMSException e) {
                    throw new IllegalStateException(e);
                }
            });
            send();
            send();
            for (int i = 0; i < 2; i++) {
                byte[] received = bodies.poll(20, TimeUnit.SECONDS);
                assertNotNull(received);
                assertArrayEquals(body, received);
            }
        }
    }

    @Test
    void aBodyGoesToTheExceptionQueueAndBack() throws Exception {
        execute("SELECT aq.alter_queue('" + queue + "', max_retries => 0)");
        send();
        try (JMSContext context = factory.createContext(JMSContext.SESSION_TRANSACTED);
                JMSConsumer consumer = context.createConsumer(context.createQueue(queue))) {
            assertNotNull(consumer.receive(10_000));
            context.rollback();
            while (value("SELECT 1 FROM aq.messages WHERE queue_name = '" + queue + "_exceptions'") == null) {
                Thread.sleep(20);
            }
            sweep();
            assertEquals("1", contents(queue));
            try (java.sql.Connection jdbc = connect()) {
                assertEquals(1, PgaqAdmin.redrive(jdbc, queue));
            }
            sweep();
            assertArrayEquals(body, consumer.receiveBody(byte[].class, 10_000));
            context.commit();
        }
        sweep();
        assertEquals("0", contents(queue));
    }

    @Test
    void aPurgedOrDroppedQueueLeavesNoBody() throws Exception {
        send();
        send();
        try (java.sql.Connection jdbc = connect()) {
            assertEquals(2, PgaqAdmin.purge(jdbc, queue));
            sweep();
            assertEquals("0", contents(queue));
            send();
            String id = value("SELECT max(c.content::text) FROM aq_internal.jms_content c JOIN aq_internal.queue q"
                    + " ON q.queue_id = c.home_id WHERE q.queue_name = '" + queue + "'");
            PgaqAdmin.drop(jdbc, queue, true);
            sweep();
            assertEquals("0", value("SELECT count(*) FROM aq_internal.jms_chunk WHERE content = '" + id + "'"));
        }
    }

    @Test
    void aBodyLargerThanTheHeapPasses() throws Exception {
        pass(100);
    }

    @Test
    @Tag("long")
    void aGigabytePasses() throws Exception {
        pass(1024);
    }

    private void pass(int megabytes) throws Exception {
        String path = System.getProperty("surefire.test.class.path", System.getProperty("java.class.path"));
        Process process = new ProcessBuilder(System.getProperty("java.home") + File.separator + "bin" + File.separator
                + "java", "-Xmx64m", "-cp", path, LargeMain.class.getName(), url(), queue, "" + megabytes)
                .redirectErrorStream(true).start();
        String output = new String(process.getInputStream().readAllBytes());
        assertEquals(0, process.waitFor(), output);
        sweep();
        assertEquals("0", contents(queue));
    }
}
