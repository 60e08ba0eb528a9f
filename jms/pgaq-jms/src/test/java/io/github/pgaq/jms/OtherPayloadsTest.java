package io.github.pgaq.jms;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import jakarta.jms.BytesMessage;
import jakarta.jms.Connection;
import jakarta.jms.InvalidDestinationException;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageFormatException;
import jakarta.jms.MessageProducer;
import jakarta.jms.Queue;
import jakarta.jms.QueueBrowser;
import jakarta.jms.Session;
import jakarta.jms.TextMessage;
import jakarta.jms.Topic;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Enumeration;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Queues of text, jsonb and bytea, which programs in SQL use as well. */
class OtherPayloadsTest extends ServerTest {

    private Connection connection;
    private Session session;

    @BeforeEach
    void open() throws JMSException {
        connection = new PgaqConnectionFactory(url()).createConnection();
        connection.start();
        session = connection.createSession();
    }

    @AfterEach
    void close() throws JMSException {
        connection.close();
    }

    private Queue queue(String type) throws JMSException, SQLException {
        String name = newName(type);
        execute("SELECT aq.create_queue('" + name + "', '" + type + "', retry_delay => '0')");
        return session.createQueue(name);
    }

    private static void enqueue(Queue queue, String arguments) throws Exception {
        execute("SELECT aq.enqueue('" + queue.getQueueName() + "', " + arguments + ")");
    }

    private <T extends Message> T receive(Queue queue, Class<T> type) throws JMSException {
        try (MessageConsumer consumer = session.createConsumer(queue)) {
            return type.cast(consumer.receive(10_000));
        }
    }

    @Test
    void aJsonPayloadFromSqlIsATextMessage() throws Exception {
        Queue queue = queue("jsonb");
        enqueue(
                queue,
                "'{\"order\": 5}', priority => 2, correlation => 'c-5', "
                        + "properties => '{\"country\": \"CH\", \"weight\": 2.5, \"count\": 7, \"urgent\": true}'");
        TextMessage message = receive(queue, TextMessage.class);
        assertEquals("{\"order\": 5}", message.getText());
        assertEquals(7, message.getJMSPriority());
        assertEquals("c-5", message.getJMSCorrelationID());
        assertEquals("CH", message.getStringProperty("country"));
        assertEquals(2.5, message.getObjectProperty("weight"));
        assertEquals(7, message.getObjectProperty("count"));
        assertTrue(message.getBooleanProperty("urgent"));
        assertEquals(queue, message.getJMSDestination());
        assertTrue(message.getJMSMessageID().startsWith("ID:"));
    }

    @Test
    void theGroupIsTheKeyOfTheServer() throws Exception {
        for (String type : List.of("jsonb", "aq.jms_message")) {
            Queue queue = queue(type);
            String payload = type.equals("jsonb") ? "'1'" : "aq_jms.text('1')";
            for (String key : List.of("south", "north")) enqueue(queue, payload + ", key => '" + key + "'");
            try (MessageConsumer consumer = session.createConsumer(queue, "JMSXGroupID = 'north'")) {
                assertEquals("north", consumer.receive(10_000).getStringProperty("JMSXGroupID"));
            }
            assertEquals("south", receive(queue, TextMessage.class).getStringProperty("JMSXGroupID"));
            TextMessage message = session.createTextMessage("2");
            MessageProducer producer = session.createProducer(queue);
            producer.send(message);
            message.setStringProperty("JMSXGroupID", "we\\\"st");
            producer.send(message);
            assertEquals(
                    "|we\\\"st",
                    value("SELECT string_agg(coalesce(key, ''), '|' ORDER BY key NULLS FIRST) FROM aq.messages"
                            + " WHERE state = 'READY' AND queue_name = '" + queue.getQueueName() + "'"));
            try (MessageConsumer consumer = session.createConsumer(queue, "JMSXGroupID LIKE 'we%'")) {
                assertEquals("we\\\"st", consumer.receive(10_000).getStringProperty("JMSXGroupID"));
            }
            try (MessageConsumer consumer = session.createConsumer(queue, "JMSXGroupID IS NULL")) {
                assertEquals("2", ((TextMessage) consumer.receive(10_000)).getText());
            }
        }
    }

    @Test
    void aDeepJsonPayloadFromSqlIsATextMessage() throws Exception {
        Queue queue = queue("jsonb");
        String deep = "[".repeat(1000) + "]".repeat(1000);
        enqueue(queue, "'" + deep + "'");
        assertEquals(deep, receive(queue, TextMessage.class).getText());
        MessageProducer producer = session.createProducer(queue);
        TextMessage message = session.createTextMessage(deep);
        assertThrows(MessageFormatException.class, () -> producer.send(message));
    }

    @Test
    void aTextMessageIsAJsonPayload() throws Exception {
        Queue queue = queue("jsonb");
        TextMessage message = session.createTextMessage("{\"order\": [1, 2]}");
        message.setJMSCorrelationID("c-6");
        message.setStringProperty("country", "LI");
        MessageProducer producer = session.createProducer(queue);
        producer.setPriority(8);
        producer.send(message);
        String of = "(SELECT %s FROM aq.dequeue('" + queue.getQueueName() + "'))";
        String columns = "payload, priority, correlation, properties->>'country', properties->>'JMSMessageID'";
        assertEquals(
                "{\"order\": [1, 2]}|1|c-6|LI|" + message.getJMSMessageID(),
                value("SELECT " + of.formatted("concat_ws('|', " + columns + ")")));
    }

    @Test
    void headersAndPropertiesComeBack() throws Exception {
        Queue queue = queue("text");
        TextMessage sent = session.createTextMessage("ü \\ '");
        sent.setJMSType("order");
        sent.setJMSReplyTo(session.createTemporaryQueue());
        sent.setJMSCorrelationID("c".repeat(200));
        sent.setDoubleProperty("nan", Double.NaN);
        sent.setLongProperty("long", 1L << 40);
        session.createProducer(queue).send(sent);
        TextMessage received = receive(queue, TextMessage.class);
        assertEquals(sent.getText(), received.getText());
        assertEquals(sent.getJMSMessageID(), received.getJMSMessageID());
        assertEquals("order", received.getJMSType());
        assertEquals(sent.getJMSReplyTo(), received.getJMSReplyTo());
        assertEquals(sent.getJMSCorrelationID(), received.getJMSCorrelationID());
        assertEquals(
                List.of("long", "nan"),
                Collections.list((Enumeration<?>) received.getPropertyNames()).stream()
                        .map(String::valueOf)
                        .filter(name -> !name.startsWith("JMSX"))
                        .sorted()
                        .toList());
        assertEquals(Double.NaN, received.getObjectProperty("nan"));
        assertEquals(1L << 40, received.getObjectProperty("long"));
    }

    @Test
    void bytes() throws Exception {
        Queue queue = queue("bytea");
        byte[] large = new byte[5_000_000];
        large[4_999_999] = 7;
        for (byte[] body : List.of(new byte[] {0, -1}, large)) {
            BytesMessage sent = session.createBytesMessage();
            sent.writeBytes(body);
            session.createProducer(queue).send(sent);
        }
        assertArrayEquals(new byte[] {0, -1}, receive(queue, BytesMessage.class).getBody(byte[].class));
        assertArrayEquals(large, receive(queue, BytesMessage.class).getBody(byte[].class));
        enqueue(queue, "'\\x0102'::bytea");
        assertArrayEquals(new byte[] {1, 2}, receive(queue, BytesMessage.class).getBody(byte[].class));
    }

    @Test
    void aMessageWithoutBodyIsANullPayload() throws Exception {
        for (String type : List.of("text", "jsonb", "bytea")) {
            Queue queue = queue(type);
            Message sent = session.createMessage();
            sent.setIntProperty("n", 1);
            session.createProducer(queue).send(sent);
            assertNull(payloadOfFirst(queue));
            assertEquals(1, receive(queue, Message.class).getIntProperty("n"));
        }
    }

    private static String payloadOfFirst(Queue queue) throws Exception {
        return value("SELECT payload FROM aq.messages WHERE queue_name = '" + queue.getQueueName() + "'");
    }

    @Test
    void aTransactionHasAllKinds() throws Exception {
        Queue json = queue("jsonb");
        Queue messages = session.createQueue(newQueue());
        try (Session transacted = connection.createSession(Session.SESSION_TRANSACTED)) {
            MessageProducer producer = transacted.createProducer(null);
            for (int i = 0; i < 2; i++) {
                for (int j = 1; j <= 3; j++) {
                    producer.send(json, transacted.createTextMessage(Integer.toString(j)));
                    producer.send(messages, transacted.createTextMessage(Integer.toString(j)));
                }
                if (i == 0) {
                    transacted.rollback();
                    assertEquals(0, browsed(json, null).size());
                }
            }
            transacted.commit();
            assertEquals(List.of("1", "2", "3"), browsed(json, null));
            assertEquals(List.of("1", "2", "3"), browsed(messages, null));
            MessageConsumer consumer = transacted.createConsumer(json);
            assertEquals("1", ((TextMessage) consumer.receive(10_000)).getText());
            transacted.rollback();
            Message again = consumer.receive(10_000);
            assertEquals("1", ((TextMessage) again).getText());
            assertTrue(again.getJMSRedelivered());
            transacted.commit();
        }
        assertEquals(List.of("2", "3"), browsed(json, null));
    }

    private List<String> browsed(Queue queue, String selector) throws JMSException {
        List<String> texts = new ArrayList<>();
        try (QueueBrowser browser = session.createBrowser(queue, selector)) {
            for (Object message : Collections.list((Enumeration<?>) browser.getEnumeration())) {
                texts.add(((TextMessage) message).getText());
            }
        }
        return texts;
    }

    @Test
    void selectorsSeeThePropertiesOfTheServer() throws Exception {
        Queue queue = queue("text");
        enqueue(
                queue,
                "'sql'::text, priority => 1, correlation => 'c', "
                        + "properties => '{\"n\": 5, \"s\": \"x\", \"b\": true}'");
        TextMessage message = session.createTextMessage("jms");
        message.setJMSType("order");
        message.setShortProperty("n", (short) 2);
        MessageProducer producer = session.createProducer(queue);
        producer.setDeliveryMode(jakarta.jms.DeliveryMode.NON_PERSISTENT);
        producer.send(message);
        for (String selector : List.of(
                "n > 2",
                "s = 'x'",
                "s LIKE '_'",
                "b",
                "s IN ('x', 'y')",
                "JMSPriority = 8",
                "JMSCorrelationID = 'c'",
                "JMSType IS NULL",
                "n / 2 = 2 AND JMSDeliveryMode = 'PERSISTENT'")) {
            assertEquals(List.of("sql"), browsed(queue, selector), selector);
        }
        for (String selector : List.of(
                "n <> 5",
                "JMSType = 'order'",
                "s IS NULL",
                "NOT (n BETWEEN 4 AND 6)",
                "JMSMessageID = '" + message.getJMSMessageID() + "'",
                "JMSDeliveryMode = 'NON_PERSISTENT'")) {
            assertEquals(List.of("jms"), browsed(queue, selector), selector);
        }
        assertEquals(
                2,
                browsed(queue, "JMSTimestamp > 1000000000000 AND JMSXDeliveryCount = 1")
                        .size());
    }

    @Test
    void subscriptionsOfATopic() throws Exception {
        String name = newName("events");
        execute("SELECT aq.create_queue('" + name + "', 'jsonb', multiple_consumers => true)");
        Topic topic = session.createTopic(name);
        MessageConsumer all = session.createSharedConsumer(topic, "all");
        MessageConsumer some = session.createConsumer(topic, "kind = 'failure' AND JMSType IS NULL");
        execute("SELECT aq.enqueue('" + name + "', '1', properties => '{\"kind\": \"sale\"}'), " + "aq.enqueue('" + name
                + "', '2', properties => '{\"kind\": \"failure\"}')");
        session.createProducer(topic).send(session.createTextMessage("3"));
        for (String expected : List.of("1", "2", "3")) {
            assertEquals(expected, ((TextMessage) all.receive(10_000)).getText());
        }
        assertEquals("2", ((TextMessage) some.receive(10_000)).getText());
        assertNull(some.receiveNoWait());
        JMSException noLocal = assertThrows(JMSException.class, () -> session.createConsumer(topic, null, true));
        assertTrue(noLocal.getMessage().contains("aq.jms_message"), noLocal.getMessage());
    }

    @Test
    void whatAPayloadCannotHoldIsRefusedAtTheSend() throws Exception {
        Queue json = queue("jsonb");
        Queue text = queue("text");
        Queue bytes = queue("bytea");
        try (Session transacted = connection.createSession(Session.SESSION_TRANSACTED)) {
            MessageProducer producer = transacted.createProducer(null);
            refuses("must be JSON", () -> producer.send(json, transacted.createTextMessage("not JSON")));
            refuses("U+0000", () -> producer.send(text, transacted.createTextMessage("\0")));
            refuses("takes text messages, not map", () -> producer.send(text, transacted.createMapMessage()));
            refuses("takes text messages, not bytes", () -> producer.send(json, transacted.createBytesMessage()));
            refuses("takes bytes messages, not text", () -> producer.send(bytes, transacted.createTextMessage("a")));
            transacted.commit();
        }
        for (Queue queue : List.of(json, text, bytes)) {
            try (QueueBrowser browser = session.createBrowser(queue)) {
                assertFalse(browser.getEnumeration().hasMoreElements());
            }
        }
    }

    private static void refuses(String reason, org.junit.jupiter.api.function.Executable send) {
        MessageFormatException e = assertThrows(MessageFormatException.class, send);
        assertTrue(e.getMessage().contains(reason), e.getMessage());
    }

    @Test
    void otherTypesAreRefusedWithTheTypesThatWork() throws Exception {
        Queue xml = queue("xml");
        InvalidDestinationException e =
                assertThrows(InvalidDestinationException.class, () -> session.createConsumer(xml));
        assertTrue(e.getMessage().contains("must be aq.jms_message, text, jsonb or bytea, not xml"), e.getMessage());
    }
}
