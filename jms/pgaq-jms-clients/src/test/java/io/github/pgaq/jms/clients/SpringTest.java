package io.github.pgaq.jms.clients;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.pgaq.jms.PgaqConnectionFactory;
import io.github.pgaq.jms.ServerTest;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageListener;
import jakarta.jms.TextMessage;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Enumeration;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.springframework.jms.connection.CachingConnectionFactory;
import org.springframework.jms.connection.JmsTransactionManager;
import org.springframework.jms.core.JmsTemplate;
import org.springframework.jms.listener.AbstractMessageListenerContainer;
import org.springframework.jms.listener.DefaultMessageListenerContainer;
import org.springframework.jms.listener.SessionAwareMessageListener;
import org.springframework.jms.listener.SimpleMessageListenerContainer;
import org.springframework.transaction.support.TransactionTemplate;

/** Spring's templates, containers, pool and transactions. */
@Timeout(60)
class SpringTest extends ServerTest {

    private static final int LONG = 20_000;

    private CachingConnectionFactory pool;
    private JmsTemplate template;
    private AbstractMessageListenerContainer container;

    @BeforeEach
    void connectByPool() {
        pool = new CachingConnectionFactory(new PgaqConnectionFactory(url()));
        template = new JmsTemplate(pool);
        template.setReceiveTimeout(LONG);
    }

    @AfterEach
    void close() {
        if (container != null) {
            container.shutdown();
        }
        pool.destroy();
    }

    /** Each send opens a connection of its own. */
    @Test
    void aTemplateWithoutAPoolSendsInOrder() throws Exception {
        String queue = newQueue();
        JmsTemplate alone = new JmsTemplate(new PgaqConnectionFactory(url()));
        List<String> sent = IntStream.range(0, 20).mapToObj(Integer::toString).toList();
        List<Object> received = new ArrayList<>();
        sent.forEach(text -> alone.convertAndSend(queue, text));
        assertEquals("1", value("SELECT count(DISTINCT shard) FROM aq.messages WHERE queue_name = '" + queue + "'"));
        sent.forEach(text -> received.add(template.receiveAndConvert(queue)));
        assertEquals(sent, received);
    }

    @Test
    void templateSendsAndReceives() throws Exception {
        String queue = newQueue();
        template.convertAndSend(queue, "hello");
        assertEquals("hello", template.receiveAndConvert(queue));
    }

    @Test
    void templateWithoutPoolSendsAndReceives() throws Exception {
        String queue = newQueue();
        JmsTemplate plain = new JmsTemplate(new PgaqConnectionFactory(url()));
        plain.setReceiveTimeout(LONG);
        plain.convertAndSend(queue, "hello");
        assertEquals("hello", plain.receiveAndConvert(queue));
    }

    @Test
    void receiveReturnsNullAfterTheTimeout() throws Exception {
        template.setReceiveTimeout(50);
        assertNull(template.receive(newQueue()));
    }

    @Test
    void receiveSelectedTakesTheSelectedMessage() throws Exception {
        String queue = newQueue();
        for (String color : List.of("red", "blue", "green")) {
            template.convertAndSend(queue, color, message -> {
                message.setStringProperty("color", color);
                return message;
            });
        }
        assertEquals("blue", template.receiveSelectedAndConvert(queue, "color = 'blue'"));
        assertEquals("red", template.receiveAndConvert(queue));
        assertEquals("green", template.receiveAndConvert(queue));
    }

    @Test
    void browseReadsWithoutTaking() throws Exception {
        String queue = newQueue();
        template.convertAndSend(queue, "first");
        template.convertAndSend(queue, "second");
        List<?> texts = template.browse(
                queue,
                (session, browser) -> Collections.list((Enumeration<?>) browser.getEnumeration()).stream()
                        .map(m -> text((Message) m))
                        .toList());
        assertEquals(List.of("first", "second"), texts);
        assertEquals("first", template.receiveAndConvert(queue));
    }

    @Test
    void explicitQosReachesTheMessage() throws Exception {
        String queue = newQueue();
        template.convertAndSend(queue, "low");
        template.setExplicitQosEnabled(true);
        template.setPriority(9);
        template.setTimeToLive(600_000);
        template.convertAndSend(queue, "high");
        Message message = template.receive(queue);
        assertEquals("high", text(message));
        assertEquals(9, message.getJMSPriority());
        assertTrue(message.getJMSExpiration() > System.currentTimeMillis());
    }

    @Test
    void sendAndReceiveGetsTheReply() throws Exception {
        String queue = newQueue();
        listen(queue, new DefaultMessageListenerContainer(), (SessionAwareMessageListener<Message>)
                (message, session) -> {
                    TextMessage reply = session.createTextMessage(text(message) + " too");
                    reply.setJMSCorrelationID(message.getJMSMessageID());
                    session.createProducer(null).send(message.getJMSReplyTo(), reply);
                });
        for (int i = 0; i < 20; i++) {
            String request = "request " + i;
            Message reply = template.sendAndReceive(queue, session -> session.createTextMessage(request));
            assertEquals(request + " too", text(reply));
        }
    }

    @Test
    void fourConsumersGetEachMessageOnce() throws Exception {
        String queue = newQueue();
        int messages = 200;
        CountDownLatch all = new CountDownLatch(messages);
        List<String> received = Collections.synchronizedList(new ArrayList<>());
        DefaultMessageListenerContainer four = new DefaultMessageListenerContainer();
        four.setConcurrentConsumers(4);
        listen(queue, four, (MessageListener) message -> {
            received.add(text(message));
            all.countDown();
        });
        IntStream.range(0, messages).forEach(i -> template.convertAndSend(queue, "m" + i));
        assertTrue(all.await(LONG, TimeUnit.MILLISECONDS), () -> "received " + received.size() + " of " + messages);
        container.shutdown();
        assertEquals(messages, received.size());
        assertEquals(messages, new HashSet<>(received).size());
    }

    @Test
    void aFailedListenerGetsTheMessageAgain() throws Exception {
        String queue = newQueue();
        BlockingQueue<Integer> counts = new LinkedBlockingQueue<>();
        DefaultMessageListenerContainer transacted = new DefaultMessageListenerContainer();
        transacted.setSessionTransacted(true);
        listen(queue, transacted, (MessageListener) message -> {
            int count = deliveryCount(message);
            counts.add(count);
            if (count < 3) {
                throw new IllegalStateException("attempt " + count + " fails on purpose");
            }
        });
        template.convertAndSend(queue, "work");
        for (int expected = 1; expected <= 3; expected++) {
            assertEquals(expected, counts.poll(LONG, TimeUnit.MILLISECONDS));
        }
    }

    @Test
    void simpleContainerDelivers() throws Exception {
        String queue = newQueue();
        BlockingQueue<String> received = new LinkedBlockingQueue<>();
        listen(queue, new SimpleMessageListenerContainer(), (MessageListener) message -> received.add(text(message)));
        template.convertAndSend(queue, "one");
        template.convertAndSend(queue, "two");
        assertEquals("one", received.poll(LONG, TimeUnit.MILLISECONDS));
        assertEquals("two", received.poll(LONG, TimeUnit.MILLISECONDS));
    }

    @Test
    void jmsTransactionManagerRollsBack() throws Exception {
        String queue = newQueue();
        TransactionTemplate transaction = new TransactionTemplate(new JmsTransactionManager(pool));
        transaction.executeWithoutResult(status -> {
            template.convertAndSend(queue, "never");
            status.setRollbackOnly();
        });
        transaction.executeWithoutResult(status -> template.convertAndSend(queue, "kept"));
        transaction.executeWithoutResult(status -> {
            assertEquals("kept", template.receiveAndConvert(queue));
            status.setRollbackOnly();
        });
        Message again = template.receive(queue);
        assertEquals("kept", text(again));
        assertTrue(again.getJMSRedelivered());
    }

    @Test
    void sharedDurableSubscriptionSharesAndOutlivesItsContainer() throws Exception {
        String topic = newTopic();
        String subscription = newName("shared");
        template.setPubSubDomain(true);
        BlockingQueue<String> received = new LinkedBlockingQueue<>();
        listen(topic, shared(subscription), (MessageListener) message -> received.add(text(message)));
        // a subscription exists from the moment its first consumer is there
        awaitSubscriber(topic, subscription);
        IntStream.range(0, 20).forEach(i -> template.convertAndSend(topic, "a" + i));
        Set<String> texts = new HashSet<>();
        for (int i = 0; i < 20; i++) {
            assertTrue(texts.add(received.poll(LONG, TimeUnit.MILLISECONDS)));
        }
        container.shutdown();
        template.convertAndSend(topic, "while away");
        listen(topic, shared(subscription), (MessageListener) message -> received.add(text(message)));
        assertEquals("while away", received.poll(LONG, TimeUnit.MILLISECONDS));
        assertTrue(received.isEmpty());
    }

    @Test
    void containerShutsDownWhileItsConsumersWait() throws Exception {
        String queue = newQueue();
        DefaultMessageListenerContainer waiting = new DefaultMessageListenerContainer();
        waiting.setConcurrentConsumers(3);
        listen(queue, waiting, (MessageListener) message -> {});
        container.shutdown();
        assertFalse(container.isRunning());
        template.convertAndSend(queue, "still here");
        assertNotNull(template.receive(queue));
    }

    private static DefaultMessageListenerContainer shared(String subscription) {
        DefaultMessageListenerContainer two = new DefaultMessageListenerContainer();
        two.setConcurrentConsumers(2);
        two.setPubSubDomain(true);
        two.setSubscriptionDurable(true);
        two.setSubscriptionShared(true);
        two.setSubscriptionName(subscription);
        return two;
    }

    private void listen(String destination, AbstractMessageListenerContainer made, Object listener) {
        container = made;
        made.setConnectionFactory(new PgaqConnectionFactory(url()));
        made.setDestinationName(destination);
        made.setMessageListener(listener);
        made.afterPropertiesSet();
        made.start();
    }

    private static void awaitSubscriber(String topic, String subscription) throws Exception {
        awaitValue(
                "1",
                "SELECT count(*) FROM aq.subscribers WHERE queue_name LIKE '%" + topic + "' AND consumer LIKE '%"
                        + subscription + "'");
    }

    private static int deliveryCount(Message message) {
        try {
            return message.getIntProperty("JMSXDeliveryCount");
        } catch (JMSException e) {
            throw new AssertionError(e);
        }
    }

    private static String text(Message message) {
        try {
            return message.getBody(String.class);
        } catch (JMSException e) {
            throw new AssertionError(e);
        }
    }
}
