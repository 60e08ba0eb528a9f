package io.github.pgaq.jms;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import jakarta.jms.BytesMessage;
import jakarta.jms.Connection;
import jakarta.jms.JMSConsumer;
import jakarta.jms.JMSContext;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageEOFException;
import jakarta.jms.QueueBrowser;
import jakarta.jms.Session;
import jakarta.jms.StreamMessage;
import java.io.File;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Enumeration;
import java.util.List;
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

    /** How many chunks of bodies lie in the tables of the queue. */
    private static int chunks(String queue) throws SQLException {
        return Integer.parseInt(value("SELECT coalesce(sum((xpath('/row/n/text()', query_to_xml(format("
                + "'SELECT count(*) AS n FROM aq_data.q%s_%s WHERE ordinal < 0', t.queue_id, t.table_no),"
                + " false, true, '')))[1]::text::integer), 0) FROM aq_internal.message_table t"
                + " JOIN aq_internal.queue q USING (queue_id) WHERE q.queue_name = '" + queue + "'"));
    }

    private void send() {
        try (JMSContext context = factory.createContext()) {
            context.createProducer().send(context.createQueue(queue), body);
        }
    }

    @Test
    void aBodyIsSentAndReceivedInChunks() throws Exception {
        send();
        assertEquals(6, chunks(queue));
        try (JMSContext context = factory.createContext();
                JMSConsumer consumer = context.createConsumer(context.createQueue(queue))) {
            assertArrayEquals(body, consumer.receiveBody(byte[].class, 10_000));
        }
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
            assertEquals(0, chunks(queue));
            context.createProducer().send(context.createQueue(queue), message);
            message.clearBody();
            context.commit();
            assertArrayEquals(body, consumer.receiveBody(byte[].class, 10_000));
            context.rollback();
            BytesMessage again = (BytesMessage) consumer.receive(10_000);
            context.commit();
            assertTrue(again.getJMSRedelivered());
            assertArrayEquals(body, again.getBody(byte[].class), "a received message does not need the server");
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
                assertEquals(0, chunks(queue));
                session.createProducer(session.createQueue(queue)).send(message);
                jdbc.commit();
                connection.start();
                try (MessageConsumer consumer = session.createConsumer(session.createQueue(queue))) {
                    assertArrayEquals(body, consumer.receive(10_000).getBody(byte[].class));
                }
                jdbc.commit();
            }
        }
    }

    @Test
    void eachSubscriberOfATopicGetsTheBody() throws Exception {
        String topic = newTopic();
        try (JMSContext context = factory.createContext()) {
            JMSConsumer one = context.createSharedDurableConsumer(context.createTopic(topic), newName("one"));
            JMSConsumer two = context.createSharedDurableConsumer(context.createTopic(topic), newName("two"));
            context.createProducer().send(context.createTopic(topic), body);
            assertArrayEquals(body, one.receiveBody(byte[].class, 10_000));
            assertArrayEquals(body, two.receiveBody(byte[].class, 10_000));
        }
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
            try (java.sql.Connection jdbc = connect()) {
                assertEquals(1, PgaqAdmin.redrive(jdbc, queue));
            }
            assertArrayEquals(body, consumer.receiveBody(byte[].class, 10_000));
            context.commit();
        }
    }

    @Test
    void aBrowserShowsTheBody() throws Exception {
        send();
        send();
        try (JMSContext context = factory.createContext();
                QueueBrowser browser = context.createBrowser(context.createQueue(queue))) {
            int count = 0;
            for (Object message : Collections.list((Enumeration<?>) browser.getEnumeration())) {
                assertArrayEquals(body, ((BytesMessage) message).getBody(byte[].class));
                count++;
            }
            assertEquals(2, count);
        }
    }

    @Test
    void aStreamMessageIsSentInChunks() throws Exception {
        try (JMSContext context = factory.createContext();
                JMSConsumer consumer = context.createConsumer(context.createQueue(queue))) {
            StreamMessage message = context.createStreamMessage();
            message.writeString("first");
            message.writeBytes(body);
            message.writeInt(7);
            message.writeString("last");
            context.createProducer().send(context.createQueue(queue), message);
            assertEquals(6, chunks(queue));
            StreamMessage received = (StreamMessage) consumer.receive(10_000);
            assertEquals("first", received.readString());
            byte[] read = new byte[SIZE];
            assertEquals(SIZE, received.readBytes(read));
            assertArrayEquals(body, read);
            assertEquals(-1, received.readBytes(read));
            assertEquals("7", received.readString());
            assertEquals("last", received.readObject());
            assertThrows(MessageEOFException.class, received::readInt);
        }
    }

    @Test
    void largeAndSmallMessagesKeepTheirOrder() throws Exception {
        try (JMSContext context = factory.createContext(JMSContext.SESSION_TRANSACTED);
                JMSConsumer consumer = context.createConsumer(context.createQueue(queue))) {
            for (int i = 0; i < 3; i++) {
                context.createProducer().send(context.createQueue(queue), "small " + i);
                context.createProducer().send(context.createQueue(queue), body);
            }
            context.commit();
            for (int i = 0; i < 3; i++) {
                assertEquals("small " + i, consumer.receiveBody(String.class, 10_000));
                assertArrayEquals(body, consumer.receiveBody(byte[].class, 10_000));
            }
            context.commit();
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

    @Test
    void messagesThatAreLeasedAheadFitIntoASmallHeap() throws Exception {
        pass(180, "many");
    }

    private void pass(int megabytes, String... more) throws Exception {
        String path = System.getProperty("surefire.test.class.path", System.getProperty("java.class.path"));
        List<String> command = new ArrayList<>(List.of(
                System.getProperty("java.home") + File.separator + "bin" + File.separator + "java",
                "-Xmx64m",
                "-cp",
                path,
                LargeMain.class.getName(),
                url(),
                queue,
                "" + megabytes));
        command.addAll(List.of(more));
        Process process = new ProcessBuilder(command).redirectErrorStream(true).start();
        String output = new String(process.getInputStream().readAllBytes());
        assertEquals(0, process.waitFor(), output);
    }
}
