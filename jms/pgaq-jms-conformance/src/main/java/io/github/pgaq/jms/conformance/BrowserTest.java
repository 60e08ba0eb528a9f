package io.github.pgaq.jms.conformance;

import jakarta.jms.DeliveryMode;
import jakarta.jms.IllegalStateException;
import jakarta.jms.InvalidDestinationException;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageProducer;
import jakarta.jms.Queue;
import jakarta.jms.QueueBrowser;
import jakarta.jms.Session;
import jakarta.jms.TextMessage;
import java.util.ArrayList;
import java.util.Enumeration;
import java.util.List;
import java.util.NoSuchElementException;
import org.junit.jupiter.api.Test;

/** Queue browsers, and destinations as names. */
@Spec("4.1.6")
class BrowserTest extends ConformanceTest {
    private List<String> browseTexts(QueueBrowser browser) throws JMSException {
        List<String> texts = new ArrayList<>();
        for (Message message : browse(browser)) {
            texts.add(((TextMessage) message).getText());
        }
        return texts;
    }

    @Test
    void browserShowsMessagesInTheirOrder() throws JMSException {
        Queue queue = queue();
        send(queue, "a", "b", "c");
        equal(
                "the browsed messages",
                List.of("a", "b", "c"),
                browseTexts(session().createBrowser(queue)));
    }

    @Test
    void browserOfAnEmptyQueueShowsNothing() throws JMSException {
        equal("the browsed messages", List.of(), browseTexts(session().createBrowser(queue())));
    }

    @Test
    void browsingRemovesNothing() throws JMSException {
        Queue queue = queue();
        send(queue, "a", "b");
        browse(session().createBrowser(queue));
        equal("the messages after browsing", List.of("a", "b"), texts(session().createConsumer(queue), 2));
    }

    @Test
    @Spec({"4.1.6", "3.5.11"})
    void browsingIsNoDelivery() throws JMSException {
        Queue queue = queue();
        send(queue, "a");
        browse(session().createBrowser(queue));
        Message message = receive(session().createConsumer(queue));
        no("JMSRedelivered after browsing", message.getJMSRedelivered());
        equal("JMSXDeliveryCount after browsing", 1, count(message));
    }

    @Test
    void browserWithASelectorShowsWhatMatches() throws JMSException {
        Queue queue = queue();
        sendWith(queue, "red", "color", "red");
        sendWith(queue, "blue", "color", "blue");
        equal("the browsed messages", List.of("blue"), browseTexts(session().createBrowser(queue, "color = 'blue'")));
    }

    @Test
    @Spec("api:QueueBrowser")
    void browserShowsMessagesByPriority() throws JMSException {
        Queue queue = queue();
        MessageProducer producer = sender().createProducer(queue);
        producer.send(sender().createTextMessage("normal"), DeliveryMode.PERSISTENT, 4, 0);
        producer.send(sender().createTextMessage("expedited"), DeliveryMode.PERSISTENT, 9, 0);
        equal(
                "the browsed messages, as they would be received",
                List.of("expedited", "normal"),
                browseTexts(session().createBrowser(queue)));
    }

    @Test
    void browserHasHeadersAndProperties() throws JMSException {
        Queue queue = queue();
        TextMessage sent = sender().createTextMessage("a");
        sent.setIntProperty("p", 5);
        sent.setJMSType("t");
        sender().createProducer(queue).send(sent);
        Message message = browse(session().createBrowser(queue)).get(0);
        equal("the property", 5, message.getIntProperty("p"));
        equal("JMSType", "t", message.getJMSType());
        equal("JMSMessageID", sent.getJMSMessageID(), message.getJMSMessageID());
    }

    @Test
    void eachEnumerationBeginsAnew() throws JMSException {
        Queue queue = queue();
        QueueBrowser browser = session().createBrowser(queue);
        equal("the messages at first", List.of(), browseTexts(browser));
        send(queue, "a");
        equal("the messages of a second enumeration", List.of("a"), browseTexts(browser));
    }

    @Test
    void browserDoesNotShowUncommittedMessages() throws JMSException {
        Queue queue = queue();
        Session s = session(TRANSACTED);
        s.createProducer(queue).send(s.createTextMessage("a"));
        equal("the messages before the commit", List.of(), browseTexts(session().createBrowser(queue)));
        s.commit();
        equal(
                "the messages after the commit",
                List.of("a"),
                browseTexts(session().createBrowser(queue)));
    }

    @Test
    void browserDoesNotShowConsumedMessages() throws JMSException {
        Queue queue = queue();
        send(queue, "a", "b");
        try (jakarta.jms.MessageConsumer consumer = session(AUTO).createConsumer(queue)) {
            text(consumer);
        }
        equal(
                "the messages that are left",
                List.of("b"),
                browseTexts(session(AUTO).createBrowser(queue)));
    }

    @Test
    void enumerationEndsWithAnException() throws JMSException {
        Enumeration<?> enumeration = session().createBrowser(queue()).getEnumeration();
        no("hasMoreElements() of an empty queue", enumeration.hasMoreElements());
        fails(NoSuchElementException.class, "nextElement() at the end", enumeration::nextElement);
    }

    @Test
    void browserShowsManyMessages() throws JMSException {
        Queue queue = queue();
        MessageProducer producer = sender().createProducer(queue);
        for (int i = 0; i < 300; i++) {
            producer.send(sender().createTextMessage(Integer.toString(i)));
        }
        List<String> texts = browseTexts(session().createBrowser(queue));
        equal("the number of browsed messages", 300, texts.size());
        equal("the last of them", "299", texts.get(299));
    }

    @Test
    @Spec("api:QueueBrowser")
    void browserReturnsItsQueueAndSelector() throws JMSException {
        Queue queue = queue();
        QueueBrowser browser = session().createBrowser(queue, "a = 1");
        equal("getQueue()", queue, browser.getQueue());
        equal("getMessageSelector()", "a = 1", browser.getMessageSelector());
    }

    @Test
    @Spec("api:QueueBrowser")
    void selectorOfABrowserWithoutOneIsNull() throws JMSException {
        isNull("getMessageSelector()", session().createBrowser(queue()).getMessageSelector());
        isNull(
                "getMessageSelector() with an empty selector",
                session().createBrowser(queue(), "").getMessageSelector());
    }

    @Test
    @Spec("10.3")
    void nullQueueIsRefused() throws JMSException {
        fails(
                InvalidDestinationException.class,
                "createBrowser(null)",
                () -> session().createBrowser(null));
    }

    @Test
    @Spec("10.3")
    void missingQueueIsRefused() throws JMSException {
        fails(
                InvalidDestinationException.class,
                "a browser of a queue that does not exist",
                () -> session()
                        .createBrowser(session().createQueue(unique("missing")))
                        .getEnumeration());
    }

    @Test
    @Spec("6.1.8")
    void closedBrowserIsRefused() throws JMSException {
        QueueBrowser browser = session().createBrowser(queue());
        browser.close();
        fails(IllegalStateException.class, "getEnumeration() of a closed browser", browser::getEnumeration);
        works("close() of a closed browser", browser::close);
    }

    @Test
    void browserOfATemporaryQueue() throws JMSException {
        Queue queue = session().createTemporaryQueue();
        send(queue, "a");
        equal(
                "the messages of a temporary queue",
                List.of("a"),
                browseTexts(session().createBrowser(queue)));
    }

    // ---- destinations -----------------------------------------------------------------------------------------

    @Test
    @Spec({"6.2.3", "4.1.4"})
    void createQueueMakesAnObjectForAName() throws JMSException {
        String name = queueName();
        equal("getQueueName()", name, session().createQueue(name).getQueueName());
    }

    @Test
    @Spec({"6.2.3", "4.2.6"})
    void createTopicMakesAnObjectForAName() throws JMSException {
        String name = topicName();
        equal("getTopicName()", name, session().createTopic(name).getTopicName());
    }

    @Test
    @Spec("6.2.3")
    void queuesOfOneNameAreTheSame() throws JMSException {
        String name = queueName();
        Queue one = session().createQueue(name);
        Queue two = connect().createSession().createQueue(name);
        equal("two objects for one queue", one, two);
        equal("their hash codes", one.hashCode(), two.hashCode());
        send(one, "a");
        equal("the message sent to the other object", "a", text(session().createConsumer(two)));
    }

    @Test
    @Spec("4")
    void noDestinationIsBothQueueAndTopic() throws JMSException {
        no("a queue must not be a Topic", (Object) queue() instanceof jakarta.jms.Topic);
        no("a topic must not be a Queue", (Object) topic() instanceof Queue);
    }

    @Test
    @Spec("2.14")
    void destinationIsUsedByManyThreads() throws Exception {
        Queue queue = queue();
        List<java.util.concurrent.Future<Object>> threads = new ArrayList<>();
        for (int i = 0; i < 4; i++) {
            Session s = session(AUTO);
            threads.add(thread(() -> {
                s.createProducer(queue).send(s.createTextMessage("a"));
                return null;
            }));
        }
        for (java.util.concurrent.Future<Object> thread : threads) {
            result("send() in a thread", thread);
        }
        equal(
                "the messages of all threads",
                4,
                texts(session().createConsumer(queue), 4).size());
    }
}
