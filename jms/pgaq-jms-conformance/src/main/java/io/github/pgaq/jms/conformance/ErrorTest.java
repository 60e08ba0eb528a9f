package io.github.pgaq.jms.conformance;

import jakarta.jms.IllegalStateException;
import jakarta.jms.JMSException;
import jakarta.jms.JMSRuntimeException;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.Queue;
import jakarta.jms.Session;
import jakarta.jms.TextMessage;
import jakarta.jms.Topic;
import java.util.List;
import java.util.concurrent.Future;
import org.junit.jupiter.api.Test;

/** Exceptions, delivery counts, and reliability. */
@Spec("10.2")
class ErrorTest extends ConformanceTest {
    @Test
    void exceptionsHaveAMessage() throws JMSException {
        JMSException e =
                fails(IllegalStateException.class, "commit() of a session that is not transacted", session()::commit);
        no(
                "getMessage() must not be empty",
                present("getMessage()", e.getMessage()).isEmpty());
    }

    @Test
    void runtimeExceptionsHaveAMessage() {
        JMSRuntimeException e =
                fails(JMSRuntimeException.class, "commit() of a context that is not transacted", context()::commit);
        no(
                "getMessage() must not be empty",
                present("getMessage()", e.getMessage()).isEmpty());
    }

    @Test
    void errorOfTheProviderIsAJMSException() throws JMSException {
        fails(JMSException.class, "a send to a queue that does not exist", () -> {
            Queue missing = session().createQueue(unique("missing"));
            session().createProducer(missing).send(session().createMessage());
        });
    }

    @Test
    void sessionIsUsableAfterAnError() throws JMSException {
        Queue queue = queue();
        Session s = session(AUTO);
        fails(JMSException.class, "createConsumer with an invalid selector", () -> s.createConsumer(queue, "a ="));
        send(queue, "a");
        equal("the message received after an error", "a", text(s.createConsumer(queue)));
    }

    @Test
    void transactionIsUsableAfterAnError() throws JMSException {
        Queue queue = queue();
        Session s = session(TRANSACTED);
        s.createProducer(queue).send(s.createTextMessage("a"));
        fails(JMSException.class, "createConsumer with an invalid selector", () -> s.createConsumer(queue, "a ="));
        s.createProducer(queue).send(s.createTextMessage("b"));
        s.commit();
        equal(
                "the messages of the transaction",
                List.of("a", "b"),
                texts(session().createConsumer(queue), 2));
    }

    @Test
    void transactionIsUsableAfterASendToAMissingQueue() throws JMSException {
        Queue queue = queue();
        Session s = session(TRANSACTED);
        s.createProducer(queue).send(s.createTextMessage("a"));
        fails(
                JMSException.class,
                "a send to a queue that does not exist",
                () -> s.createProducer(s.createQueue(unique("missing"))).send(s.createMessage()));
        s.rollback();
        s.createProducer(queue).send(s.createTextMessage("b"));
        s.commit();
        equal("the first message after the rollback", "b", text(session().createConsumer(queue)));
    }

    // ---- JMSXDeliveryCount ------------------------------------------------------------------------------------

    @Test
    @Spec("3.5.11")
    void countOfEachConsumerOfATopicIsItsOwn() throws JMSException {
        Topic topic = topic();
        Session one = session(CLIENT);
        MessageConsumer first = one.createConsumer(topic);
        MessageConsumer second = session(AUTO).createConsumer(topic);
        send(topic, "a");
        receive(first);
        one.recover();
        equal("JMSXDeliveryCount of the redelivery", 2, count(receive(first)));
        equal("JMSXDeliveryCount of the other copy", 1, count(receive(second)));
    }

    @Test
    @Spec({"3.4.7", "3.5.11"})
    void redeliveredGoesWithACountOfTwo() throws JMSException {
        Queue queue = queue();
        send(queue, "a");
        Session s = session(CLIENT);
        MessageConsumer consumer = s.createConsumer(queue);
        for (int i = 1; i <= 3; i++) {
            Message message = receive(consumer);
            equal(
                    "JMSRedelivered at a JMSXDeliveryCount of " + count(message),
                    count(message) >= 2,
                    message.getJMSRedelivered());
            s.recover();
        }
    }

    @Test
    @Spec("3.5.11")
    void countOfADurableSubscriptionSurvivesItsConnection() throws JMSException {
        Topic topic = topic();
        String client = unique("client");
        jakarta.jms.Connection first = connect(client);
        MessageConsumer consumer = first.createSession(CLIENT).createDurableConsumer(topic, "sub");
        send(topic, "a");
        receive(consumer);
        first.close();
        Message message = receive(connect(client).createSession().createDurableConsumer(topic, "sub"));
        yes("JMSXDeliveryCount must be 2 or more", count(message) >= 2);
    }

    @Test
    @Spec("3.5.11")
    void otherMessagesOfARolledBackTransactionAreCountedToo() throws JMSException {
        Queue queue = queue();
        send(queue, "a", "b");
        Session s = session(TRANSACTED);
        MessageConsumer consumer = s.createConsumer(queue);
        texts(consumer, 2);
        s.rollback();
        equal("JMSXDeliveryCount of the first message", 2, count(receive(consumer)));
        equal("JMSXDeliveryCount of the second message", 2, count(receive(consumer)));
    }

    // ---- reliability ------------------------------------------------------------------------------------------

    @Test
    @Spec({"6.2.11", "9.1"})
    void acknowledgedMessageNeverComesAgain() throws JMSException {
        Queue queue = queue();
        send(queue, "a", "b");
        Session s = session(CLIENT);
        MessageConsumer consumer = s.createConsumer(queue);
        receive(consumer).acknowledge();
        receive(consumer);
        s.recover();
        equal("the message after recover()", "b", text(consumer));
    }

    @Test
    @Spec({"9.1", "6.2.14", "6.2.12", "7.7"})
    void manyConsumersLoseAndDoubleNothing() throws Exception {
        Queue queue = queue();
        int count = 120;
        java.util.Set<String> seen = java.util.concurrent.ConcurrentHashMap.newKeySet();
        java.util.concurrent.atomic.AtomicInteger doubles = new java.util.concurrent.atomic.AtomicInteger();
        List<Future<Object>> threads = new java.util.ArrayList<>();
        for (int i = 0; i < 3; i++) {
            Session s = session(TRANSACTED);
            MessageConsumer consumer = s.createConsumer(queue);
            threads.add(thread(() -> {
                int received = 0;
                // the slower the machine, the longer all of them take together
                for (long last = clock(); seen.size() < count && clock() < last + WAIT; ) {
                    Message message = consumer.receive(50);
                    if (message == null) {
                        continue;
                    }
                    last = clock();
                    if (++received % 7 == 0) {
                        s.rollback();
                        continue;
                    }
                    String text = ((TextMessage) message).getText();
                    s.commit();
                    if (!seen.add(text)) {
                        doubles.incrementAndGet();
                    }
                }
                s.close();
                return null;
            }));
        }
        for (int i = 0; i < count; i++) {
            send(queue, Integer.toString(i));
        }
        for (Future<Object> thread : threads) {
            thread.get();
        }
        equal("the number of messages received by three consumers", count, seen.size());
        equal("the number of messages received twice", 0, doubles.get());
    }

    @Test
    @Spec("6.2.14")
    void sessionsOfOneConnectionSendAtTheSameTime() throws Exception {
        Queue queue = queue();
        List<Future<Object>> threads = new java.util.ArrayList<>();
        for (int i = 0; i < 3; i++) {
            Session s = session(AUTO);
            String prefix = i + "/";
            threads.add(thread(() -> {
                jakarta.jms.MessageProducer producer = s.createProducer(queue);
                for (int k = 0; k < 20; k++) {
                    producer.send(s.createTextMessage(prefix + k));
                }
                return null;
            }));
        }
        for (Future<Object> thread : threads) {
            result("a sender", thread);
        }
        int[] next = new int[3];
        for (String text : texts(session().createConsumer(queue), 60)) {
            int sender = text.charAt(0) - '0';
            equal("the next message of sender " + sender, next[sender]++, Integer.parseInt(text.substring(2)));
        }
    }
}
