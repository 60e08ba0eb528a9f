package io.github.pgaq.jms.session;

import static io.github.pgaq.jms.ServerTest.SAFETY_SECONDS;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.pgaq.jms.store.Outgoing;
import jakarta.jms.CompletionListener;
import jakarta.jms.DeliveryMode;
import jakarta.jms.IllegalStateException;
import jakarta.jms.JMSContext;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageFormatException;
import jakarta.jms.MessageFormatRuntimeException;
import jakarta.jms.MessageProducer;
import jakarta.jms.Session;
import jakarta.jms.TextMessage;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

/** Sending, with and without waiting, and contexts. */
class ProducerTest extends SessionFixture {
    private final BlockingQueue<Object> results = new LinkedBlockingQueue<>();

    private Object next() throws InterruptedException {
        return results.poll(SAFETY_SECONDS, TimeUnit.SECONDS);
    }

    /** Adds what the action, called in the listener, throws, or else the text of the message. */
    private CompletionListener listener(Errors.CheckedVoid action) {
        return new CompletionListener() {
            @Override
            public void onCompletion(Message message) {
                try {
                    action.run();
                    results.add(text(message));
                } catch (JMSException e) {
                    results.add(e);
                }
            }

            @Override
            public void onException(Message message, Exception exception) {
                results.add(exception);
            }
        };
    }

    @Test
    void setsTheHeaders() throws Exception {
        Session session = started().createSession();
        MessageProducer producer = session.createProducer(queue);
        producer.setDeliveryDelay(1000);
        TextMessage message = session.createTextMessage("a");
        message.setJMSCorrelationID("k");
        long before = System.currentTimeMillis();
        producer.send(message, DeliveryMode.NON_PERSISTENT, 7, 5000);
        Outgoing outgoing = server.messages.get("q").get(0).outgoing;
        assertEquals(2, outgoing.priority());
        assertEquals(1000, outgoing.delay());
        assertEquals(4000, outgoing.expiration(), "from when it is ready");
        assertEquals("k", outgoing.correlation());
        assertEquals(queue, message.getJMSDestination());
        assertEquals(7, message.getJMSPriority());
        assertTrue(message.getJMSTimestamp() >= before);
        assertEquals(message.getJMSTimestamp() + 5000, message.getJMSExpiration());
        assertEquals(message.getJMSTimestamp() + 1000, message.getJMSDeliveryTime());
        assertTrue(message.getJMSMessageID().startsWith("ID:"));
    }

    @Test
    void refusesWhatIsNotValid() throws Exception {
        Session session = started().createSession();
        MessageProducer producer = session.createProducer(queue);
        Message message = session.createMessage();
        assertThrows(MessageFormatException.class, () -> producer.send(null));
        assertThrows(JMSException.class, () -> producer.setPriority(10));
        assertThrows(JMSException.class, () -> producer.setDeliveryMode(0));
        assertThrows(JMSException.class, () -> producer.setTimeToLive(-1));
        assertThrows(UnsupportedOperationException.class, () -> producer.send(queue, message));
        MessageProducer any = session.createProducer(null);
        assertThrows(UnsupportedOperationException.class, () -> any.send(message));
        assertThrows(IllegalArgumentException.class, () -> producer.send(message, null));
        producer.close();
        assertThrows(IllegalStateException.class, () -> producer.send(message));
    }

    @Test
    void completionsComeInOrderAndOneAtATime() throws Exception {
        Session session = started().createSession();
        MessageProducer producer = session.createProducer(queue);
        List<String> expected = new ArrayList<>();
        for (int i = 0; i < 50; i++) {
            producer.send(session.createTextMessage("m" + i), listener(() -> {}));
            expected.add("m" + i);
        }
        producer.close();
        assertEquals(expected, new ArrayList<>(results), "close() waits for the completions");
        assertEquals(expected, server.texts("q"));
    }

    @Test
    void aSendStaysBehindThoseBefore() throws Exception {
        Session session = started().createSession();
        MessageProducer producer = session.createProducer(queue);
        for (int i = 0; i < 20; i++) {
            producer.send(session.createTextMessage("async" + i), listener(() -> {}));
            producer.send(session.createTextMessage("sync" + i));
        }
        List<String> texts = server.texts("q");
        for (int i = 0; i < 20; i++) {
            assertEquals(List.of("async" + i, "sync" + i), texts.subList(2 * i, 2 * i + 2));
        }
    }

    @Test
    void anErrorReachesTheCompletionListener() throws Exception {
        Session session = started().createSession();
        MessageProducer producer = session.createProducer(queue);
        server.fail("send", "53200");
        producer.send(session.createTextMessage("a"), listener(() -> {}));
        assertInstanceOf(jakarta.jms.ResourceAllocationException.class, next());
    }

    @Test
    void aFullQueueHasNoResource() throws Exception {
        Session session = started().createSession();
        MessageProducer producer = session.createProducer(queue);
        Message message = session.createTextMessage("a");
        server.fail("send", "AQ053");
        assertThrows(jakarta.jms.ResourceAllocationException.class, () -> producer.send(message));
    }

    @Test
    void memoryThatIsExhaustedReachesTheCompletionListener() throws Exception {
        Session session = started().createSession();
        MessageProducer producer = session.createProducer(queue);
        server.exhaust("send");
        producer.send(session.createTextMessage("a"), listener(() -> {}));
        assertInstanceOf(
                OutOfMemoryError.class,
                assertInstanceOf(JMSException.class, next()).getCause());
        producer.send(session.createTextMessage("b"), listener(() -> {}));
        session.close();
        assertEquals("b", next());
        assertEquals(List.of("b"), server.texts("q"));
    }

    @Test
    void aCompletionListenerMustNotEndTheTransactionOrClose() throws Exception {
        ClientConnection connection = started();
        Session session = connection.createSession(Session.SESSION_TRANSACTED);
        MessageProducer producer = session.createProducer(queue);
        for (Errors.CheckedVoid action : List.<Errors.CheckedVoid>of(
                session::commit, session::rollback, session::close, connection::close, producer::close)) {
            producer.send(session.createTextMessage("a"), listener(action));
            assertInstanceOf(IllegalStateException.class, next());
        }
        producer.send(session.createTextMessage("b"), listener(() -> producer.send(session.createTextMessage("c"))));
        session.commit();
        assertEquals("b", next());
        assertEquals("c", server.texts("q").get(6));
    }

    @Test
    void contextsShareAConnectionAndStartIt() throws Exception {
        ClientConnection connection = connect();
        Context context = new Context(connection, JMSContext.AUTO_ACKNOWLEDGE);
        context.setClientID("c");
        JMSContext other = context.createContext(JMSContext.CLIENT_ACKNOWLEDGE);
        context.createProducer()
                .setProperty("p", 5)
                .setJMSType("type")
                .setPriority(9)
                .send(queue, "a");
        Message message = other.createConsumer(queue).receive(10_000);
        assertEquals(5, message.getIntProperty("p"));
        assertEquals("type", message.getJMSType());
        assertEquals(9, message.getJMSPriority());
        other.acknowledge();
        assertEquals(List.of(), server.texts("q"));
        context.close();
        assertNotNull(connection.getMetaData());
        other.close();
        assertThrows(IllegalStateException.class, connection::getMetaData);
    }

    @Test
    void aBodyOfTheWrongTypeIsReceivedAgain() throws Exception {
        server.text("q", "a");
        Context context = new Context(connect(), JMSContext.AUTO_ACKNOWLEDGE);
        jakarta.jms.JMSConsumer consumer = context.createConsumer(queue);
        assertThrows(MessageFormatRuntimeException.class, () -> consumer.receiveBody(byte[].class));
        assertEquals("a", consumer.receiveBody(String.class));
    }

    @Test
    void contextListenersClose() throws Exception {
        Context context = new Context(connect(), JMSContext.AUTO_ACKNOWLEDGE);
        server.text("q", "a");
        context.createConsumer(queue).setMessageListener(message -> {
            try {
                context.close();
                results.add("closed");
            } catch (jakarta.jms.IllegalStateRuntimeException e) {
                results.add(e);
            }
        });
        assertInstanceOf(jakarta.jms.IllegalStateRuntimeException.class, next());
        context.close();
    }

    @Test
    void thePropertyOfOracleDelaysAMessage() throws Exception {
        Session session = started().createSession();
        MessageProducer producer = session.createProducer(queue);
        producer.setDeliveryDelay(1000);
        Message message = session.createMessage();
        message.setIntProperty("JMS_OracleDelay", 3);
        producer.send(message);
        assertEquals(3000, message.getJMSDeliveryTime() - message.getJMSTimestamp());
        assertEquals(3000, server.place("q").get(0).outgoing.delay());
        message.setIntProperty("JMS_OracleDelay", -1);
        assertThrows(JMSException.class, () -> producer.send(message));
        message.setStringProperty("JMS_OracleDelay", "soon");
        assertThrows(MessageFormatException.class, () -> producer.send(message));
        message.setLongProperty("JMS_OracleDelay", 4);
        producer.send(message);
        assertEquals(4000, server.place("q").get(1).outgoing.delay());
        message.setLongProperty("JMS_OracleDelay", Long.MAX_VALUE);
        assertThrows(MessageFormatException.class, () -> producer.send(message));
    }

    @Test
    void aMessageThatIsSentOnIsNotDelayedAgain() throws Exception {
        Session session = started().createSession();
        MessageProducer producer = session.createProducer(queue);
        Message message = session.createMessage();
        message.setIntProperty("JMS_OracleDelay", 3);
        producer.send(message);
        Message received = session.createConsumer(queue).receive(SAFETY_SECONDS * 1000L);
        producer.send(received);
        assertEquals(3, received.getIntProperty("JMS_OracleDelay"));
        assertEquals(0, server.place("q").get(0).outgoing.delay());
        received.clearProperties();
        received.setIntProperty("JMS_OracleDelay", 5);
        producer.send(received);
        assertEquals(5000, server.place("q").get(1).outgoing.delay());
    }
}
