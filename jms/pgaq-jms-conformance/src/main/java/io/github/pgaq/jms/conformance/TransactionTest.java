package io.github.pgaq.jms.conformance;

import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.Queue;
import jakarta.jms.Session;
import jakarta.jms.Topic;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Transacted sessions. */
@Spec("6.2.7")
class TransactionTest extends ConformanceTest {
    private static void send(Session session, MessageProducer producer, String... texts) throws JMSException {
        for (String text : texts) {
            producer.send(session.createTextMessage(text));
        }
    }

    @Test
    void sentMessagesComeWithTheCommit() throws JMSException {
        Queue queue = queue();
        Session s = session(TRANSACTED);
        MessageConsumer consumer = session().createConsumer(queue);
        send(s, s.createProducer(queue), "a", "b");
        nothing("the transaction is not committed", consumer);
        s.commit();
        equal("the messages of the transaction", List.of("a", "b"), texts(consumer, 2));
    }

    @Test
    void rolledBackMessagesNeverCome() throws JMSException {
        Queue queue = queue();
        Session s = session(TRANSACTED);
        send(s, s.createProducer(queue), "a");
        s.rollback();
        send(queue, "marker");
        equal("the first message", "marker", text(session().createConsumer(queue)));
    }

    @Test
    void receivedMessagesAreGoneWithTheCommit() throws JMSException {
        Queue queue = queue();
        send(queue, "a");
        Session s = session(TRANSACTED);
        text(s.createConsumer(queue));
        s.commit();
        s.close();
        send(queue, "marker");
        equal("the first message", "marker", text(session().createConsumer(queue)));
    }

    @Test
    void receivedMessagesComeBackWithTheRollback() throws JMSException {
        Queue queue = queue();
        send(queue, "a", "b");
        Session s = session(TRANSACTED);
        MessageConsumer consumer = s.createConsumer(queue);
        texts(consumer, 2);
        s.rollback();
        equal("the messages after rollback(), in their order", List.of("a", "b"), texts(consumer, 2));
    }

    @Test
    @Spec({"6.2.7", "3.4.7"})
    void rolledBackMessageIsMarked() throws JMSException {
        Queue queue = queue();
        send(queue, "a");
        Session s = session(TRANSACTED);
        MessageConsumer consumer = s.createConsumer(queue);
        receive(consumer);
        s.rollback();
        Message message = receive(consumer);
        yes("JMSRedelivered after rollback()", message.getJMSRedelivered());
        equal("JMSXDeliveryCount after rollback()", 2, count(message));
    }

    @Test
    void rolledBackMessageGoesToAnyConsumer() throws JMSException {
        Queue queue = queue();
        send(queue, "a");
        Session s = session(TRANSACTED);
        try (MessageConsumer consumer = s.createConsumer(queue)) {
            receive(consumer);
        }
        s.rollback();
        Message message = receive(session().createConsumer(queue));
        yes("JMSRedelivered for another consumer", message.getJMSRedelivered());
    }

    @Test
    void receivedMessageIsHiddenBeforeTheCommit() throws JMSException {
        Queue queue = queue();
        send(queue, "a");
        text(session(TRANSACTED).createConsumer(queue));
        nothing("a message that an open transaction has received", session().createConsumer(queue));
    }

    @Test
    void commitBeginsTheNextTransaction() throws JMSException {
        Queue queue = queue();
        Session s = session(TRANSACTED);
        MessageProducer producer = s.createProducer(queue);
        send(s, producer, "committed");
        s.commit();
        send(s, producer, "rolled back");
        s.rollback();
        send(s, producer, "committed too");
        s.commit();
        equal(
                "the committed messages",
                List.of("committed", "committed too"),
                texts(session().createConsumer(queue), 2));
    }

    @Test
    void inputAndOutputCommitTogether() throws JMSException {
        Queue in = queue();
        Queue out = queue();
        send(in, "a");
        Session s = session(TRANSACTED);
        MessageConsumer consumer = s.createConsumer(in);
        send(s, s.createProducer(out), text(consumer) + "!");
        s.commit();
        equal("the output", "a!", text(session().createConsumer(out)));
        nothing("the input is consumed", consumer);
    }

    @Test
    void inputAndOutputRollBackTogether() throws JMSException {
        Queue in = queue();
        Queue out = queue();
        send(in, "a");
        Session s = session(TRANSACTED);
        MessageConsumer consumer = s.createConsumer(in);
        send(s, s.createProducer(out), text(consumer) + "!");
        s.rollback();
        equal("the input", "a", text(consumer));
        nothing("the output was rolled back", session().createConsumer(out));
    }

    @Test
    void oneTransactionSpansManyDestinations() throws JMSException {
        Queue one = queue();
        Queue two = queue();
        Topic topic = topic();
        MessageConsumer subscriber = session().createConsumer(topic);
        Session s = session(TRANSACTED);
        send(s, s.createProducer(one), "1");
        send(s, s.createProducer(two), "2");
        send(s, s.createProducer(topic), "t");
        nothing("the transaction is not committed", subscriber);
        s.commit();
        equal("the message of the first queue", "1", text(session().createConsumer(one)));
        equal("the message of the second queue", "2", text(session().createConsumer(two)));
        equal("the message of the topic", "t", text(subscriber));
    }

    @Test
    void rollbackSpansManyDestinations() throws JMSException {
        Queue one = queue();
        Topic topic = topic();
        MessageConsumer subscriber = session().createConsumer(topic);
        Session s = session(TRANSACTED);
        send(s, s.createProducer(one), "1");
        send(s, s.createProducer(topic), "t");
        s.rollback();
        send(one, "marker");
        send(topic, "marker");
        equal("the first message of the queue", "marker", text(session().createConsumer(one)));
        equal("the first message of the topic", "marker", text(subscriber));
    }

    @Test
    void emptyTransactionCommitsAndRollsBack() throws JMSException {
        Session s = session(TRANSACTED);
        works("commit() of an empty transaction", s::commit);
        works("rollback() of an empty transaction", s::rollback);
    }

    @Test
    void messageSentInTheTransactionIsNotReceivedInIt() throws JMSException {
        Queue queue = queue();
        Session s = session(TRANSACTED);
        send(s, s.createProducer(queue), "a");
        MessageConsumer consumer = s.createConsumer(queue);
        nothing("a message of the same, uncommitted transaction", consumer);
        s.commit();
        equal("the message after the commit", "a", text(consumer));
    }

    @Test
    @Spec("6.2.15")
    void closeRollsBack() throws JMSException {
        Queue queue = queue();
        Session s = session(TRANSACTED);
        send(s, s.createProducer(queue), "a");
        s.close();
        send(queue, "marker");
        equal("the first message", "marker", text(session().createConsumer(queue)));
    }

    @Test
    @Spec("6.2.15")
    void closeGivesReceivedMessagesBack() throws JMSException {
        Queue queue = queue();
        send(queue, "a");
        Session s = session(TRANSACTED);
        text(s.createConsumer(queue));
        s.close();
        equal("the message of the closed session", "a", text(session().createConsumer(queue)));
    }

    @Test
    @Spec("8.8")
    void closedConsumerIsPartOfTheTransaction() throws JMSException {
        Queue queue = queue();
        send(queue, "a");
        Session s = session(TRANSACTED);
        MessageConsumer consumer = s.createConsumer(queue);
        text(consumer);
        consumer.close();
        s.commit();
        send(queue, "marker");
        equal("the first message", "marker", text(session().createConsumer(queue)));
    }

    @Test
    @Spec("8.8")
    void rollbackAfterTheConsumerWasClosed() throws JMSException {
        Queue queue = queue();
        send(queue, "a");
        Session s = session(TRANSACTED);
        MessageConsumer consumer = s.createConsumer(queue);
        text(consumer);
        consumer.close();
        s.rollback();
        equal("the message after rollback()", "a", text(session().createConsumer(queue)));
    }

    @Test
    void closedProducerIsPartOfTheTransaction() throws JMSException {
        Queue queue = queue();
        Session s = session(TRANSACTED);
        MessageProducer producer = s.createProducer(queue);
        send(s, producer, "a");
        producer.close();
        s.commit();
        equal("the message of the closed producer", "a", text(session().createConsumer(queue)));
    }

    @Test
    void largeTransactionIsWhole() throws JMSException {
        Queue queue = queue();
        Session s = session(TRANSACTED);
        MessageProducer producer = s.createProducer(queue);
        for (int i = 0; i < 200; i++) {
            send(s, producer, Integer.toString(i));
        }
        s.commit();
        MessageConsumer consumer = session().createConsumer(queue);
        for (int i = 0; i < 200; i++) {
            equal("message " + i + " of the transaction", Integer.toString(i), text(consumer));
        }
    }

    @Test
    void durableSubscriptionRollsBack() throws JMSException {
        Topic topic = topic();
        Session s = connect(unique("client")).createSession(TRANSACTED);
        MessageConsumer consumer = s.createDurableConsumer(topic, "sub");
        send(topic, "a");
        text(consumer);
        s.rollback();
        equal("the message after rollback()", "a", text(consumer));
        s.commit();
    }

    @Test
    @Spec({"6.2.7", "3.5.11"})
    void countSurvivesSeveralRollbacks() throws JMSException {
        Queue queue = queue();
        send(queue, "a");
        Session s = session(TRANSACTED);
        MessageConsumer consumer = s.createConsumer(queue);
        for (int i = 1; i <= 3; i++) {
            equal("JMSXDeliveryCount of delivery " + i, i, count(receive(consumer)));
            s.rollback();
        }
    }

    @Test
    @Spec("3.4.13")
    void headersAreSetBeforeTheCommit() throws JMSException {
        Session s = session(TRANSACTED);
        Message message = s.createTextMessage("a");
        s.createProducer(queue()).send(message);
        present("JMSMessageID before the commit", message.getJMSMessageID());
        yes("JMSTimestamp before the commit", message.getJMSTimestamp() > 0);
    }

    @Test
    void messageListenerCommits() throws Exception {
        Queue queue = queue();
        jakarta.jms.Connection c = connectStopped();
        Session s = c.createSession(TRANSACTED);
        java.util.concurrent.BlockingQueue<Object> results = new java.util.concurrent.LinkedBlockingQueue<>();
        s.createConsumer(queue).setMessageListener(message -> {
            try {
                s.commit();
                results.add("committed");
            } catch (JMSException e) {
                results.add(e);
            }
        });
        c.start();
        send(queue, "a");
        equal("commit() in a listener", "committed", next("the end of commit()", results));
        c.close();
        send(queue, "marker");
        equal("the first message that is left", "marker", text(session().createConsumer(queue)));
    }

    @Test
    void messageListenerRollsBack() throws Exception {
        Queue queue = queue();
        jakarta.jms.Connection c = connectStopped();
        Session s = c.createSession(TRANSACTED);
        java.util.concurrent.BlockingQueue<Integer> counts = new java.util.concurrent.LinkedBlockingQueue<>();
        s.createConsumer(queue)
                .setMessageListener(message -> ConnectionTest.unchecked(() -> {
                    counts.add(count(message));
                    if (count(message) == 1) {
                        s.rollback();
                    } else {
                        s.commit();
                    }
                }));
        c.start();
        send(queue, "a");
        equal("JMSXDeliveryCount of the first delivery", 1, next("the first delivery", counts));
        equal("JMSXDeliveryCount after rollback() in the listener", 2, next("the second delivery", counts));
    }
}
