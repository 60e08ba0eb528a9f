package io.github.pgaq.jms.conformance;

import jakarta.jms.IllegalStateException;
import jakarta.jms.InvalidDestinationException;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageListener;
import jakarta.jms.Queue;
import jakarta.jms.Session;
import jakarta.jms.TextMessage;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.Future;
import org.junit.jupiter.api.Test;

/** Synchronous receivers, and closing of consumers. */
@Spec("8.5")
class ConsumerTest extends ConformanceTest {
    // ---- receive ----------------------------------------------------------------------------------------------

    @Test
    void receiveReturnsAMessageThatIsThere() throws JMSException {
        Queue queue = queue();
        send(queue, "a");
        TextMessage message = (TextMessage) session().createConsumer(queue).receive();
        equal("the message", "a", message.getText());
    }

    @Test
    void receiveWaitsForAMessage() throws Exception {
        Queue queue = queue();
        MessageConsumer consumer = session().createConsumer(queue);
        Future<Message> receive = thread(() -> consumer.receive());
        pending("receive() of an empty queue", receive);
        send(queue, "a");
        equal("the message", "a", ((TextMessage) result("receive()", receive)).getText());
    }

    @Test
    void receiveZeroWaitsForever() throws Exception {
        Queue queue = queue();
        MessageConsumer consumer = session().createConsumer(queue);
        Future<Message> receive = thread(() -> consumer.receive(0));
        pending("receive(0) of an empty queue", receive);
        send(queue, "a");
        equal("the message", "a", ((TextMessage) result("receive(0)", receive)).getText());
    }

    @Test
    void receiveWithTimeoutReturnsNull() throws JMSException {
        MessageConsumer consumer = session().createConsumer(queue());
        long before = clock();
        isNull("receive(150) of an empty queue", consumer.receive(150));
        long took = clock() - before;
        yes("receive(150) must wait 150 ms, but took " + took, took >= 145);
    }

    @Test
    void receiveWithTimeoutReturnsAMessageThatArrives() throws Exception {
        Queue queue = queue();
        MessageConsumer consumer = session().createConsumer(queue);
        Future<Message> receive = thread(() -> consumer.receive(WAIT));
        pending("receive(timeout) of an empty queue", receive);
        send(queue, "a");
        equal("the message", "a", ((TextMessage) result("receive(timeout)", receive)).getText());
    }

    @Test
    void receiveNoWaitReturnsNullAtOnce() throws JMSException {
        MessageConsumer consumer = session().createConsumer(queue());
        long before = clock();
        isNull("receiveNoWait() of an empty queue", consumer.receiveNoWait());
        yes("receiveNoWait() must not wait", clock() - before < 3_000);
    }

    @Test
    void receiveNoWaitReturnsAMessageThatIsThere() throws JMSException {
        Queue queue = queue();
        send(queue, "a");
        TextMessage message = (TextMessage) session().createConsumer(queue).receiveNoWait();
        present("the message that receiveNoWait() returns", message);
        equal("its text", "a", message.getText());
    }

    @Test
    void eachReceiveReturnsTheNextMessage() throws JMSException {
        Queue queue = queue();
        send(queue, "a", "b", "c");
        MessageConsumer consumer = session().createConsumer(queue);
        equal("the messages", List.of("a", "b", "c"), texts(consumer, 3));
        nothing("three messages were sent", consumer);
    }

    @Test
    void receiveAfterATimeoutWorks() throws JMSException {
        Queue queue = queue();
        MessageConsumer consumer = session().createConsumer(queue);
        isNull("receive(1) of an empty queue", consumer.receive(1));
        send(queue, "a");
        equal("the message after a timeout", "a", text(consumer));
    }

    @Test
    @Spec("8.2")
    void messageSentBeforeTheConsumerExistsIsReceived() throws JMSException {
        Queue queue = queue();
        send(queue, "early");
        equal("the message", "early", text(session().createConsumer(queue)));
    }

    // ---- creation ---------------------------------------------------------------------------------------------

    @Test
    @Spec({"10.3", "8.1"})
    void nullDestinationIsRefused() throws JMSException {
        fails(
                InvalidDestinationException.class,
                "createConsumer(null)",
                () -> session().createConsumer(null));
    }

    @Test
    @Spec("10.3")
    void missingQueueIsRefused() throws JMSException {
        fails(
                InvalidDestinationException.class,
                "createConsumer of a queue that does not exist",
                () -> session().createConsumer(session().createQueue(unique("missing"))));
    }

    @Test
    @Spec("10.3")
    void missingTopicIsRefused() throws JMSException {
        fails(
                InvalidDestinationException.class,
                "createConsumer of a topic that does not exist",
                () -> session().createConsumer(session().createTopic(unique("missing"))));
    }

    // ---- several consumers of a queue -------------------------------------------------------------------------

    @Test
    @Spec("4.1.2")
    void eachMessageGoesToOneConsumer() throws JMSException {
        Queue queue = queue();
        MessageConsumer one = session(AUTO).createConsumer(queue);
        MessageConsumer two = session(AUTO).createConsumer(queue);
        for (int i = 0; i < 20; i++) {
            send(queue, Integer.toString(i));
        }
        Set<String> seen = new HashSet<>();
        List<String> all = new ArrayList<>();
        long end = clock() + WAIT;
        while (all.size() < 20 && clock() < end) {
            for (MessageConsumer consumer : List.of(one, two)) {
                Message message = consumer.receive(20);
                if (message != null) {
                    all.add(((TextMessage) message).getText());
                }
            }
        }
        seen.addAll(all);
        equal("the number of messages that both received", 20, all.size());
        equal("the number of different messages", 20, seen.size());
    }

    @Test
    @Spec("4.1.2")
    void consumersOfTwoConnectionsShareAQueue() throws JMSException {
        Queue queue = queue();
        send(queue, "a", "b");
        MessageConsumer one = connect().createSession(CLIENT).createConsumer(queue);
        String first = text(one);
        one.close();
        String second = text(connect().createSession(CLIENT).createConsumer(queue));
        equal("what both received", Set.of("a", "b"), Set.of(first, second));
    }

    @Test
    @Spec("4.1.2")
    void twoConsumersOfOneSessionShareAQueue() throws JMSException {
        Queue queue = queue();
        Session s = session(AUTO);
        MessageConsumer one = s.createConsumer(queue);
        MessageConsumer two = s.createConsumer(queue);
        send(queue, "a", "b", "c", "d");
        Set<String> seen = new HashSet<>();
        long end = clock() + WAIT;
        while (seen.size() < 4 && clock() < end) {
            for (MessageConsumer consumer : List.of(one, two)) {
                Message message = consumer.receive(20);
                if (message != null) {
                    yes("a message must come once", seen.add(((TextMessage) message).getText()));
                }
            }
        }
        equal("what both received", Set.of("a", "b", "c", "d"), seen);
    }

    @Test
    @Spec("4.1.2")
    void messagesOfAClosedConsumerGoToOthers() throws JMSException {
        Queue queue = queue();
        Session s = session(AUTO);
        MessageConsumer one = s.createConsumer(queue);
        send(queue, "a", "b", "c");
        equal("the first message", "a", text(one));
        one.close();
        equal("the others", List.of("b", "c"), texts(session(AUTO).createConsumer(queue), 2));
    }

    @Test
    @Spec("3.5.11")
    void messagesThatAClosedConsumerDidNotDeliverAreNotRedelivered() throws JMSException {
        Queue queue = queue();
        send(queue, "a", "b", "c");
        MessageConsumer one = session(AUTO).createConsumer(queue);
        text(one);
        one.close();
        Message message = receive(session(AUTO).createConsumer(queue));
        no("JMSRedelivered of a message that no client has seen", message.getJMSRedelivered());
        equal("its JMSXDeliveryCount", 1, count(message));
    }

    @Test
    @Spec("3.5.11")
    void messagesThatAClosedConnectionDidNotDeliverAreNotRedelivered() throws JMSException {
        Queue queue = queue();
        send(queue, "a", "b", "c");
        jakarta.jms.Connection c = connect();
        text(c.createSession(AUTO).createConsumer(queue));
        c.close();
        Message message = receive(session(AUTO).createConsumer(queue));
        no("JMSRedelivered of a message that no client has seen", message.getJMSRedelivered());
        equal("its JMSXDeliveryCount", 1, count(message));
    }

    // ---- close ------------------------------------------------------------------------------------------------

    @Test
    @Spec("8.8")
    void closeIsIdempotent() throws JMSException {
        MessageConsumer consumer = session().createConsumer(queue());
        consumer.close();
        works("close() of a closed consumer", consumer::close);
    }

    @Test
    @Spec("6.1.8")
    void closedConsumerRefusesEachMethod() throws JMSException {
        MessageConsumer consumer = session().createConsumer(queue());
        consumer.close();
        Class<IllegalStateException> error = IllegalStateException.class;
        fails(error, "receive()", () -> consumer.receive());
        fails(error, "receive(timeout)", () -> consumer.receive(1));
        fails(error, "receiveNoWait()", consumer::receiveNoWait);
        fails(error, "getMessageListener()", consumer::getMessageListener);
        fails(error, "setMessageListener()", () -> consumer.setMessageListener(message -> {}));
        fails(error, "getMessageSelector()", consumer::getMessageSelector);
    }

    @Test
    @Spec("8.8")
    void closeEndsABlockedReceive() throws Exception {
        MessageConsumer consumer = session().createConsumer(queue());
        Future<Message> receive = thread(() -> consumer.receive());
        pending("receive() of an empty queue", receive);
        consumer.close();
        isNull("receive() ended by close()", result("receive()", receive));
    }

    @Test
    @Spec("8.8")
    void closeReturnsAfterTheReceive() throws Exception {
        MessageConsumer consumer = session().createConsumer(queue());
        Future<Message> receive = thread(() -> consumer.receive());
        pending("receive() of an empty queue", receive);
        consumer.close();
        isNull("receive() that has returned when close() returns", result("receive()", receive));
        fails(IllegalStateException.class, "receive() after close()", () -> consumer.receive(1));
    }

    @Test
    @Spec("8.8")
    void closedConsumerTakesNoMoreMessages() throws JMSException {
        Queue queue = queue();
        Session s = session(AUTO);
        s.createConsumer(queue).close();
        MessageConsumer other = s.createConsumer(queue);
        send(queue, "a");
        equal("the message for the other consumer", "a", text(other));
    }

    @Test
    @Spec("8.8")
    void messageIsAcknowledgedAfterItsConsumerWasClosed() throws JMSException {
        Queue queue = queue();
        send(queue, "a");
        Session s = session(CLIENT);
        MessageConsumer consumer = s.createConsumer(queue);
        Message message = receive(consumer);
        consumer.close();
        works("acknowledge() after the consumer was closed", message::acknowledge);
        s.close();
        send(queue, "marker");
        equal("the first message that is left", "marker", text(session().createConsumer(queue)));
    }

    @Test
    @Spec("8.8")
    void closeDoesNotAcknowledge() throws JMSException {
        Queue queue = queue();
        send(queue, "a");
        Session s = session(CLIENT);
        MessageConsumer consumer = s.createConsumer(queue);
        receive(consumer);
        consumer.close();
        s.close();
        equal("the message that was not acknowledged", "a", text(session().createConsumer(queue)));
    }

    @Test
    @Spec("8.8")
    void closeDoesNotGiveDeliveredMessagesBack() throws JMSException {
        Queue queue = queue();
        send(queue, "a");
        Session s = session(CLIENT);
        MessageConsumer consumer = s.createConsumer(queue);
        receive(consumer);
        consumer.close();
        nothing(
                "the session has not acknowledged the message yet",
                session(AUTO).createConsumer(queue));
    }

    @Test
    @Spec("8.8")
    void autoAcknowledgedMessageIsConsumedAfterClose() throws JMSException {
        Queue queue = queue();
        send(queue, "a");
        MessageConsumer consumer = session(AUTO).createConsumer(queue);
        receive(consumer);
        consumer.close();
        send(queue, "marker");
        equal("the first message that is left", "marker", text(session(AUTO).createConsumer(queue)));
    }

    // ---- listener of a consumer -------------------------------------------------------------------------------

    @Test
    @Spec("8.7")
    void listenerIsReturned() throws JMSException {
        MessageConsumer consumer = session().createConsumer(queue());
        isNull("getMessageListener() of a new consumer", consumer.getMessageListener());
        MessageListener listener = message -> {};
        consumer.setMessageListener(listener);
        equal("getMessageListener()", listener, consumer.getMessageListener());
    }

    @Test
    @Spec("8.7")
    void listenerCanBeRemoved() throws JMSException {
        Queue queue = queue();
        MessageConsumer consumer = session(AUTO).createConsumer(queue);
        consumer.setMessageListener(message -> {});
        consumer.setMessageListener(null);
        isNull("getMessageListener() after setMessageListener(null)", consumer.getMessageListener());
        send(queue, "a");
        equal("the message received after the listener was removed", "a", text(consumer));
    }

    @Test
    @Spec("6.2.5")
    void receiveIsRefusedWithAListener() throws JMSException {
        MessageConsumer consumer = session(AUTO).createConsumer(queue());
        consumer.setMessageListener(message -> {});
        fails(JMSException.class, "receive() of a consumer with a listener", () -> consumer.receive(1));
        fails(JMSException.class, "receiveNoWait() of a consumer with a listener", consumer::receiveNoWait);
    }
}
