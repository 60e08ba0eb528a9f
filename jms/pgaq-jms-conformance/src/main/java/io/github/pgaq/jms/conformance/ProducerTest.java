package io.github.pgaq.jms.conformance;

import jakarta.jms.DeliveryMode;
import jakarta.jms.IllegalStateException;
import jakarta.jms.InvalidDestinationException;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageFormatException;
import jakarta.jms.MessageProducer;
import jakarta.jms.Queue;
import jakarta.jms.QueueBrowser;
import jakarta.jms.Session;
import jakarta.jms.Topic;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Producers: their options, anonymous ones, priority, time to live, delivery delay. */
@Spec("7.1")
class ProducerTest extends ConformanceTest {
    private MessageProducer producer() throws JMSException {
        return session().createProducer(queue());
    }

    private Message message(String text) throws JMSException {
        return session().createTextMessage(text);
    }

    // ---- destination ------------------------------------------------------------------------------------------

    @Test
    void destinationIsReturned() throws JMSException {
        Queue queue = queue();
        equal("getDestination()", queue, session().createProducer(queue).getDestination());
    }

    @Test
    void destinationOfAnAnonymousProducerIsNull() throws JMSException {
        isNull(
                "getDestination() of createProducer(null)",
                session().createProducer(null).getDestination());
    }

    @Test
    void anonymousProducerSendsToQueuesAndTopics() throws JMSException {
        Queue queue = queue();
        Topic topic = topic();
        MessageConsumer subscriber = session().createConsumer(topic);
        MessageProducer producer = session().createProducer(null);
        producer.send(queue, message("q"));
        producer.send(topic, message("t"));
        equal("the message for the queue", "q", text(session().createConsumer(queue)));
        equal("the message for the topic", "t", text(subscriber));
    }

    @Test
    @Spec("7.4")
    void anonymousSendTakesItsOptions() throws JMSException {
        Queue queue = queue();
        Message message = message("a");
        session().createProducer(null).send(queue, message, DeliveryMode.NON_PERSISTENT, 8, 100_000);
        equal("JMSDeliveryMode", DeliveryMode.NON_PERSISTENT, message.getJMSDeliveryMode());
        equal("JMSPriority", 8, message.getJMSPriority());
        yes("JMSExpiration must be set", message.getJMSExpiration() > 0);
        equal("JMSDestination", queue, message.getJMSDestination());
    }

    @Test
    @Spec({"api:MessageProducer", "7.1"})
    void anonymousProducerNeedsADestination() throws JMSException {
        MessageProducer producer = session().createProducer(null);
        Message message = message("a");
        fails(
                UnsupportedOperationException.class,
                "send(message) of an anonymous producer",
                () -> producer.send(message));
        fails(
                UnsupportedOperationException.class,
                "send(message, options) of an anonymous producer",
                () -> producer.send(message, DeliveryMode.PERSISTENT, 4, 0));
    }

    @Test
    @Spec("api:MessageProducer")
    void producerWithADestinationRefusesAnother() throws JMSException {
        Queue queue = queue();
        MessageProducer producer = producer();
        Message message = message("a");
        fails(
                UnsupportedOperationException.class,
                "send(destination, message) of a producer with a destination",
                () -> producer.send(queue, message));
        fails(
                UnsupportedOperationException.class,
                "send(destination, message, options)",
                () -> producer.send(queue, message, DeliveryMode.PERSISTENT, 4, 0));
    }

    @Test
    @Spec({"api:MessageProducer", "10.3"})
    void anonymousSendToNullIsRefused() throws JMSException {
        MessageProducer producer = session().createProducer(null);
        Message message = message("a");
        fails(InvalidDestinationException.class, "send(null, message)", () -> producer.send(null, message));
    }

    @Test
    @Spec("10.3")
    void sendToAMissingQueueIsRefused() throws JMSException {
        Message message = message("a");
        fails(
                InvalidDestinationException.class,
                "a send to a queue that does not exist",
                () -> session()
                        .createProducer(session().createQueue(unique("missing")))
                        .send(message));
    }

    @Test
    @Spec("10.3")
    void sendToAMissingTopicIsRefused() throws JMSException {
        Message message = message("a");
        fails(
                InvalidDestinationException.class,
                "a send to a topic that does not exist",
                () -> session().createProducer(null).send(session().createTopic(unique("missing")), message));
    }

    @Test
    @Spec({"api:MessageProducer", "10.3"})
    void nullMessageIsRefused() throws JMSException {
        MessageProducer producer = producer();
        fails(MessageFormatException.class, "send(null)", () -> producer.send((Message) null));
    }

    // ---- defaults and options ---------------------------------------------------------------------------------

    @Test
    @Spec("api:MessageProducer")
    void defaultsAreAsSpecified() throws JMSException {
        MessageProducer producer = producer();
        equal("getDeliveryMode()", DeliveryMode.PERSISTENT, producer.getDeliveryMode());
        equal("getPriority()", 4, producer.getPriority());
        equal("getTimeToLive()", 0L, producer.getTimeToLive());
        equal("getDeliveryDelay()", 0L, producer.getDeliveryDelay());
        no("getDisableMessageID()", producer.getDisableMessageID());
        no("getDisableMessageTimestamp()", producer.getDisableMessageTimestamp());
    }

    @Test
    @Spec("7.4")
    void optionsAreReturned() throws JMSException {
        MessageProducer producer = producer();
        producer.setDeliveryMode(DeliveryMode.NON_PERSISTENT);
        producer.setPriority(9);
        producer.setTimeToLive(1000);
        producer.setDeliveryDelay(2000);
        producer.setDisableMessageID(true);
        producer.setDisableMessageTimestamp(true);
        equal("getDeliveryMode()", DeliveryMode.NON_PERSISTENT, producer.getDeliveryMode());
        equal("getPriority()", 9, producer.getPriority());
        equal("getTimeToLive()", 1000L, producer.getTimeToLive());
        equal("getDeliveryDelay()", 2000L, producer.getDeliveryDelay());
        yes("getDisableMessageID()", producer.getDisableMessageID());
        yes("getDisableMessageTimestamp()", producer.getDisableMessageTimestamp());
    }

    @Test
    @Spec("7.4")
    void argumentsOfSendOverrideTheProducer() throws JMSException {
        MessageProducer producer = producer();
        producer.setPriority(9);
        producer.setDeliveryMode(DeliveryMode.PERSISTENT);
        Message message = message("a");
        producer.send(message, DeliveryMode.NON_PERSISTENT, 2, 0);
        equal("JMSPriority", 2, message.getJMSPriority());
        equal("JMSDeliveryMode", DeliveryMode.NON_PERSISTENT, message.getJMSDeliveryMode());
    }

    @Test
    @Spec("7.4")
    void optionsHoldForEachMessage() throws JMSException {
        MessageProducer producer = producer();
        producer.setPriority(7);
        for (int i = 0; i < 2; i++) {
            Message message = message("a");
            producer.send(message);
            equal("JMSPriority of message " + i, 7, message.getJMSPriority());
        }
    }

    @Test
    @Spec("3.4.10")
    void invalidPriorityIsRefused() throws JMSException {
        MessageProducer producer = producer();
        fails(JMSException.class, "setPriority(10)", () -> producer.setPriority(10));
        fails(JMSException.class, "setPriority(-1)", () -> producer.setPriority(-1));
    }

    @Test
    @Spec("7.7")
    void invalidDeliveryModeIsRefused() throws JMSException {
        MessageProducer producer = producer();
        fails(JMSException.class, "setDeliveryMode(7)", () -> producer.setDeliveryMode(7));
    }

    @Test
    @Spec("7.7")
    void nonPersistentMessagesArriveOnce() throws JMSException {
        Queue queue = queue();
        MessageProducer producer = session().createProducer(queue);
        producer.setDeliveryMode(DeliveryMode.NON_PERSISTENT);
        producer.send(message("a"));
        producer.send(message("b"));
        MessageConsumer consumer = session().createConsumer(queue);
        equal("both messages", List.of("a", "b"), texts(consumer, 2));
        nothing("each message comes once", consumer);
    }

    @Test
    @Spec("9.1")
    void bothDeliveryModesMixOnOneQueue() throws JMSException {
        Queue queue = queue();
        MessageProducer producer = session().createProducer(queue);
        producer.send(message("p1"), DeliveryMode.PERSISTENT, 4, 0);
        producer.send(message("n"), DeliveryMode.NON_PERSISTENT, 4, 0);
        producer.send(message("p2"), DeliveryMode.PERSISTENT, 4, 0);
        MessageConsumer consumer = session().createConsumer(queue);
        List<String> received = texts(consumer, 3);
        yes(
                "the persistent messages must come in their order, but: " + received,
                received.indexOf("p1") < received.indexOf("p2") && received.contains("n"));
    }

    @Test
    @Spec("7.7")
    void nonPersistentMessagesRollBack() throws JMSException {
        Queue queue = queue();
        Session s = session(TRANSACTED);
        MessageProducer producer = s.createProducer(queue);
        producer.setDeliveryMode(DeliveryMode.NON_PERSISTENT);
        producer.send(s.createTextMessage("a"));
        s.rollback();
        send(queue, "marker");
        equal("the first message", "marker", text(session().createConsumer(queue)));
    }

    // ---- priority ---------------------------------------------------------------------------------------------

    @Test
    @Spec("3.4.10")
    void expeditedMessagesComeBeforeNormalOnes() throws JMSException {
        Queue queue = queue();
        MessageProducer producer = session().createProducer(queue);
        producer.send(message("normal"), DeliveryMode.PERSISTENT, 4, 0);
        producer.send(message("expedited"), DeliveryMode.PERSISTENT, 9, 0);
        equal(
                "the messages, 9 before 4",
                List.of("expedited", "normal"),
                texts(session().createConsumer(queue), 2));
    }

    @Test
    @Spec("3.4.10")
    void tenPrioritiesAreOrdered() throws JMSException {
        Queue queue = queue();
        MessageProducer producer = session().createProducer(queue);
        for (int priority : new int[] {3, 7, 0, 9, 5, 1, 8, 2, 6, 4}) {
            producer.send(message(Integer.toString(priority)), DeliveryMode.PERSISTENT, priority, 0);
        }
        equal(
                "the messages by priority",
                List.of("9", "8", "7", "6", "5", "4", "3", "2", "1", "0"),
                texts(session().createConsumer(queue), 10));
    }

    @Test
    @Spec({"3.4.10", "6.2.9.2"})
    void messagesOfOnePriorityKeepTheirOrder() throws JMSException {
        Queue queue = queue();
        MessageProducer producer = session().createProducer(queue);
        for (String text : new String[] {"a", "b", "c"}) {
            producer.send(message(text + "4"), DeliveryMode.PERSISTENT, 4, 0);
            producer.send(message(text + "8"), DeliveryMode.PERSISTENT, 8, 0);
        }
        equal(
                "the messages by priority, then in the order of sending",
                List.of("a8", "b8", "c8", "a4", "b4", "c4"),
                texts(session().createConsumer(queue), 6));
    }

    // ---- time to live -----------------------------------------------------------------------------------------

    @Test
    @Spec({"7.8", "3.4.9"})
    void expiredMessageIsNotReceived() throws Exception {
        Queue queue = queue();
        MessageProducer producer = session().createProducer(queue);
        producer.send(message("short"), DeliveryMode.PERSISTENT, 9, 50);
        producer.send(message("long"), DeliveryMode.PERSISTENT, 4, 0);
        Thread.sleep(300);
        equal("the first message that has not expired", "long", text(session().createConsumer(queue)));
    }

    @Test
    @Spec({"7.8", "3.4.9"})
    void expiredMessageIsNotReceivedByADurableSubscription() throws Exception {
        Topic topic = topic();
        Session s = connect(unique("client")).createSession();
        s.createDurableConsumer(topic, "sub").close();
        MessageProducer producer = session().createProducer(topic);
        producer.send(message("short"), DeliveryMode.PERSISTENT, 4, 50);
        producer.send(message("long"), DeliveryMode.PERSISTENT, 4, 0);
        Thread.sleep(300);
        equal("the first message that has not expired", "long", text(s.createDurableConsumer(topic, "sub")));
    }

    @Test
    @Spec("7.8")
    void timeToLiveOfTheProducerExpires() throws Exception {
        Queue queue = queue();
        MessageProducer producer = session().createProducer(queue);
        producer.setTimeToLive(50);
        producer.send(message("short"));
        producer.setTimeToLive(0);
        producer.send(message("long"));
        Thread.sleep(300);
        equal("the first message that has not expired", "long", text(session().createConsumer(queue)));
    }

    @Test
    @Spec("7.8")
    void messageIsReceivedBeforeItExpires() throws JMSException {
        Queue queue = queue();
        session().createProducer(queue).send(message("a"), DeliveryMode.PERSISTENT, 4, 60_000);
        equal("a message with a minute to live", "a", text(session().createConsumer(queue)));
    }

    @Test
    @Spec("7.8")
    void transactedTimeToLiveBeginsWithTheSend() throws Exception {
        Queue queue = queue();
        Session s = session(TRANSACTED);
        MessageProducer producer = s.createProducer(queue);
        producer.send(s.createTextMessage("short"), DeliveryMode.PERSISTENT, 9, 100);
        producer.send(s.createTextMessage("long"), DeliveryMode.PERSISTENT, 4, 0);
        Thread.sleep(400);
        s.commit();
        equal("the first message that has not expired", "long", text(session().createConsumer(queue)));
    }

    // ---- delivery delay ---------------------------------------------------------------------------------------

    @Test
    @Spec({"7.9", "3.4.13"})
    void messageIsNotReceivedBeforeItsDeliveryTime() throws JMSException {
        Queue queue = queue();
        MessageConsumer consumer = session().createConsumer(queue);
        MessageProducer producer = sender().createProducer(queue);
        producer.setDeliveryDelay(500);
        Message message = message("a");
        producer.send(message);
        nothing("the message has a delay", consumer);
        Message received = receive(consumer);
        yes("the message must not be received before its JMSDeliveryTime", clock() >= message.getJMSDeliveryTime());
        equal("JMSDeliveryTime", message.getJMSDeliveryTime(), received.getJMSDeliveryTime());
    }

    @Test
    @Spec({"7.9", "6.2.9.2"})
    void laterMessageOvertakesADelayedOne() throws JMSException {
        Queue queue = queue();
        MessageProducer producer = session().createProducer(queue);
        producer.setDeliveryDelay(600);
        producer.send(message("delayed"));
        producer.setDeliveryDelay(0);
        producer.send(message("at once"));
        equal(
                "the messages by delivery time",
                List.of("at once", "delayed"),
                texts(session().createConsumer(queue), 2));
    }

    @Test
    @Spec({"7.9", "3.4.13"})
    void delayedMessageOfATopicIsHeldBack() throws JMSException {
        Topic topic = topic();
        MessageConsumer consumer = session().createConsumer(topic);
        MessageProducer producer = sender().createProducer(topic);
        producer.setDeliveryDelay(400);
        long sent = clock();
        producer.send(message("a"));
        receive(consumer);
        yes("the message of a topic must not be received before its delivery time", clock() >= sent + 400);
    }

    @Test
    @Spec("7.9")
    void delayedMessageIsOnlyForSubscriptionsAtTheTimeOfTheSend() throws JMSException {
        Topic topic = topic();
        MessageConsumer early = session().createConsumer(topic);
        MessageProducer producer = sender().createProducer(topic);
        producer.setDeliveryDelay(300);
        producer.send(message("a"));
        MessageConsumer late = session().createConsumer(topic);
        equal("the subscription that existed at the send", "a", text(early));
        nothing("the subscription that was made after the send", late);
    }

    @Test
    @Spec("7.9")
    void delayedMessageWithATimeToLiveIsReceived() throws JMSException {
        Queue queue = queue();
        MessageProducer producer = session().createProducer(queue);
        producer.setDeliveryDelay(100);
        producer.setTimeToLive(60_000);
        producer.send(message("a"));
        equal("the delayed message", "a", text(session().createConsumer(queue)));
    }

    @Test
    @Spec("7.9")
    void transactedDelayBeginsWithTheSend() throws Exception {
        Queue queue = queue();
        Session s = session(TRANSACTED);
        MessageProducer producer = s.createProducer(queue);
        producer.setDeliveryDelay(300);
        Message message = s.createTextMessage("a");
        long before = clock();
        producer.send(message);
        long after = clock();
        Thread.sleep(350);
        s.commit();
        long time = receive(session().createConsumer(queue)).getJMSDeliveryTime();
        yes(
                "JMSDeliveryTime must count from the send, not from the commit",
                before + 300 <= time && time <= after + 300);
    }

    @Test
    @Spec("4.1.6")
    void browserDoesNotShowADelayedMessage() throws JMSException {
        Queue queue = queue();
        MessageProducer producer = session().createProducer(queue);
        producer.setDeliveryDelay(60_000);
        producer.send(message("delayed"));
        producer.setDeliveryDelay(0);
        producer.send(message("at once"));
        QueueBrowser browser = session().createBrowser(queue);
        equal(
                "the number of messages that the browser shows",
                1,
                browse(browser).size());
    }

    // ---- close ------------------------------------------------------------------------------------------------

    @Test
    @Spec("api:MessageProducer")
    void closeIsIdempotent() throws JMSException {
        MessageProducer producer = producer();
        producer.close();
        works("close() of a closed producer", producer::close);
    }

    @Test
    @Spec("6.1.8")
    void closedProducerRefusesEachMethod() throws JMSException {
        MessageProducer producer = producer();
        Message message = message("a");
        producer.close();
        Class<IllegalStateException> error = IllegalStateException.class;
        fails(error, "send()", () -> producer.send(message));
        fails(error, "send(options)", () -> producer.send(message, DeliveryMode.PERSISTENT, 4, 0));
        fails(error, "getDestination()", producer::getDestination);
        fails(error, "getDeliveryMode()", producer::getDeliveryMode);
        fails(error, "setDeliveryMode()", () -> producer.setDeliveryMode(DeliveryMode.PERSISTENT));
        fails(error, "getPriority()", producer::getPriority);
        fails(error, "setPriority()", () -> producer.setPriority(4));
        fails(error, "getTimeToLive()", producer::getTimeToLive);
        fails(error, "setTimeToLive()", () -> producer.setTimeToLive(0));
        fails(error, "getDeliveryDelay()", producer::getDeliveryDelay);
        fails(error, "setDeliveryDelay()", () -> producer.setDeliveryDelay(0));
        fails(error, "getDisableMessageID()", producer::getDisableMessageID);
        fails(error, "setDisableMessageID()", () -> producer.setDisableMessageID(true));
        fails(error, "getDisableMessageTimestamp()", producer::getDisableMessageTimestamp);
        fails(error, "setDisableMessageTimestamp()", () -> producer.setDisableMessageTimestamp(true));
    }

    // ---- order ------------------------------------------------------------------------------------------------

    @Test
    @Spec("6.2.9.1")
    void messagesOfASessionComeInTheirOrder() throws JMSException {
        Queue queue = queue();
        MessageProducer producer = session().createProducer(queue);
        for (int i = 0; i < 100; i++) {
            producer.send(message(Integer.toString(i)));
        }
        MessageConsumer consumer = session().createConsumer(queue);
        for (int i = 0; i < 100; i++) {
            equal("the next message", Integer.toString(i), text(consumer));
        }
    }

    @Test
    @Spec("6.2.9.1")
    void messagesOfTwoProducersOfASessionComeInTheirOrder() throws JMSException {
        Queue queue = queue();
        MessageProducer one = session().createProducer(queue);
        MessageProducer two = session().createProducer(queue);
        one.send(message("1"));
        two.send(message("2"));
        one.send(message("3"));
        equal(
                "the messages of a session",
                List.of("1", "2", "3"),
                texts(session().createConsumer(queue), 3));
    }

    @Test
    @Spec("6.2.9.1")
    void messagesOfATopicComeInTheirOrder() throws JMSException {
        Topic topic = topic();
        MessageConsumer consumer = session().createConsumer(topic);
        MessageProducer producer = sender().createProducer(topic);
        for (int i = 0; i < 100; i++) {
            producer.send(message(Integer.toString(i)));
        }
        for (int i = 0; i < 100; i++) {
            equal("the next message", Integer.toString(i), text(consumer));
        }
    }

    @Test
    @Spec("6.2.9.2")
    void transactionsOfASessionComeInTheirOrder() throws JMSException {
        Queue queue = queue();
        Session s = session(TRANSACTED);
        MessageProducer producer = s.createProducer(queue);
        for (int i = 0; i < 20; i++) {
            producer.send(s.createTextMessage(Integer.toString(i)));
            if (i % 3 == 0) {
                s.commit();
            }
        }
        s.commit();
        MessageConsumer consumer = session().createConsumer(queue);
        for (int i = 0; i < 20; i++) {
            equal("the next message", Integer.toString(i), text(consumer));
        }
    }

    @Test
    @Spec({"6.2.12", "7.7"})
    void noMessageIsDuplicated() throws JMSException {
        Queue queue = queue();
        MessageProducer producer = session().createProducer(queue);
        for (int i = 0; i < 50; i++) {
            producer.send(message(Integer.toString(i)));
        }
        MessageConsumer consumer = session().createConsumer(queue);
        equal(
                "the number of different messages",
                50L,
                texts(consumer, 50).stream().distinct().count());
        nothing("fifty messages were sent", consumer);
    }
}
