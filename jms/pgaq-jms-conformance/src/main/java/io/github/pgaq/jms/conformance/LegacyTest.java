package io.github.pgaq.jms.conformance;

import jakarta.jms.DeliveryMode;
import jakarta.jms.IllegalStateException;
import jakarta.jms.InvalidDestinationException;
import jakarta.jms.JMSException;
import jakarta.jms.JMSSecurityException;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.Queue;
import jakarta.jms.QueueConnection;
import jakarta.jms.QueueReceiver;
import jakarta.jms.QueueSender;
import jakarta.jms.QueueSession;
import jakarta.jms.Topic;
import jakarta.jms.TopicConnection;
import jakarta.jms.TopicPublisher;
import jakarta.jms.TopicSession;
import jakarta.jms.TopicSubscriber;
import java.util.List;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Test;

/** The interfaces for queues alone and topics alone, and what they refuse. */
@Spec("9.2")
class LegacyTest extends ConformanceTest {
    private static final Class<IllegalStateException> ILLEGAL = IllegalStateException.class;

    private QueueSession queueSession() throws JMSException {
        return queueConnection().createQueueSession(false, AUTO);
    }

    private TopicSession topicSession() throws JMSException {
        return topicConnection().createTopicSession(false, AUTO);
    }

    // ---- queues -----------------------------------------------------------------------------------------------

    @Test
    @Spec("7.2")
    void senderSendsAndReceiverReceives() throws JMSException {
        Queue queue = queue();
        QueueSession s = queueSession();
        QueueReceiver receiver = s.createReceiver(queue);
        s.createSender(queue).send(s.createTextMessage("a"));
        equal("the message", "a", text(receiver));
    }

    @Test
    @Spec("7.2")
    void senderReturnsItsQueue() throws JMSException {
        Queue queue = queue();
        equal(
                "getQueue() of the sender",
                queue,
                queueSession().createSender(queue).getQueue());
    }

    @Test
    @Spec("8.2")
    void receiverReturnsItsQueue() throws JMSException {
        Queue queue = queue();
        equal(
                "getQueue() of the receiver",
                queue,
                queueSession().createReceiver(queue).getQueue());
    }

    @Test
    @Spec("7.2")
    void senderSendsWithOptions() throws JMSException {
        Queue queue = queue();
        QueueSession s = queueSession();
        s.createSender(queue).send(s.createMessage(), DeliveryMode.NON_PERSISTENT, 7, 60_000);
        Message message = receive(session().createConsumer(queue));
        equal("JMSPriority", 7, message.getJMSPriority());
        equal("JMSDeliveryMode", DeliveryMode.NON_PERSISTENT, message.getJMSDeliveryMode());
    }

    @Test
    @Spec({"7.1", "7.2"})
    void anonymousSenderSends() throws JMSException {
        Queue queue = queue();
        QueueSession s = queueSession();
        QueueSender sender = s.createSender(null);
        sender.send(queue, s.createTextMessage("a"));
        sender.send(queue, s.createTextMessage("b"), DeliveryMode.PERSISTENT, 4, 0);
        equal("the messages", List.of("a", "b"), texts(session().createConsumer(queue), 2));
    }

    @Test
    @Spec({"api:QueueSender", "7.1"})
    void anonymousSenderNeedsAQueue() throws JMSException {
        QueueSession s = queueSession();
        QueueSender sender = s.createSender(null);
        Message message = s.createMessage();
        fails(UnsupportedOperationException.class, "send(message) of createSender(null)", () -> sender.send(message));
        fails(
                InvalidDestinationException.class,
                "send(null, message) of createSender(null)",
                () -> sender.send((Queue) null, message));
    }

    @Test
    @Spec("8.2")
    void receiverSelects() throws JMSException {
        Queue queue = queue();
        QueueReceiver receiver = queueSession().createReceiver(queue, "n = 2");
        sendWith(queue, "1", "n", 1);
        sendWith(queue, "2", "n", 2);
        equal("the message that matches", "2", text(receiver));
        equal("getMessageSelector()", "n = 2", receiver.getMessageSelector());
    }

    @Test
    @Spec("10.3")
    void receiverOfANullQueueIsRefused() throws JMSException {
        QueueSession s = queueSession();
        fails(InvalidDestinationException.class, "createReceiver(null)", () -> s.createReceiver(null));
    }

    @Test
    @Spec("4.1.6")
    void queueSessionBrowses() throws JMSException {
        Queue queue = queue();
        send(queue, "a", "b");
        equal(
                "the number of browsed messages",
                2,
                browse(queueSession().createBrowser(queue)).size());
    }

    @Test
    @Spec("6.2.2")
    void queueSessionCreatesTemporaryQueues() throws JMSException {
        QueueSession s = queueSession();
        Queue queue = s.createTemporaryQueue();
        s.createSender(queue).send(s.createTextMessage("a"));
        equal("the message", "a", text(s.createReceiver(queue)));
    }

    @Test
    @Spec("6.2.3")
    void queueSessionCreatesQueuesByName() throws JMSException {
        String name = queueName();
        equal("getQueueName()", name, queueSession().createQueue(name).getQueueName());
    }

    @Test
    @Spec("6.2.7")
    void queueSessionCommits() throws JMSException {
        Queue queue = queue();
        QueueSession s = queueConnection().createQueueSession(true, 0);
        s.createSender(queue).send(s.createTextMessage("a"));
        MessageConsumer consumer = session().createConsumer(queue);
        nothing("the transaction is not committed", consumer);
        s.commit();
        equal("the message", "a", text(consumer));
    }

    @Test
    @Spec("6.1")
    void queueConnectionTakesUserAndPassword() throws JMSException {
        QueueConnection c = closeLater(provider()
                .queueConnectionFactory()
                .createQueueConnection(provider().user(), provider().password()));
        works("createQueueSession()", () -> c.createQueueSession(false, AUTO));
    }

    @Test
    @Spec("10.3")
    void queueConnectionRefusesAWrongPassword() {
        Assumptions.assumeTrue(provider().checksPasswords(), "the server trusts every password");
        fails(
                JMSSecurityException.class,
                "createQueueConnection with a wrong password",
                () -> closeLater(provider()
                                .queueConnectionFactory()
                                .createQueueConnection(provider().user(), "wrong"))
                        .createQueueSession(false, AUTO));
    }

    @Test
    void queueSessionRefusesCreateTopic() throws JMSException {
        QueueSession s = queueSession();
        fails(ILLEGAL, "QueueSession.createTopic()", () -> s.createTopic("t"));
    }

    @Test
    void queueSessionRefusesCreateTemporaryTopic() throws JMSException {
        QueueSession s = queueSession();
        fails(ILLEGAL, "QueueSession.createTemporaryTopic()", s::createTemporaryTopic);
    }

    @Test
    void queueSessionRefusesCreateDurableSubscriber() throws JMSException {
        Topic topic = topic();
        QueueSession s = queueSession();
        fails(ILLEGAL, "QueueSession.createDurableSubscriber()", () -> s.createDurableSubscriber(topic, "s"));
        fails(
                ILLEGAL,
                "QueueSession.createDurableSubscriber() with a selector",
                () -> s.createDurableSubscriber(topic, "s", "a = 1", false));
    }

    @Test
    void queueSessionRefusesCreateDurableConsumer() throws JMSException {
        Topic topic = topic();
        QueueSession s = queueSession();
        fails(ILLEGAL, "QueueSession.createDurableConsumer()", () -> s.createDurableConsumer(topic, "s"));
        fails(
                ILLEGAL,
                "QueueSession.createDurableConsumer() with a selector",
                () -> s.createDurableConsumer(topic, "s", "a = 1", false));
    }

    @Test
    void queueSessionRefusesCreateSharedConsumer() throws JMSException {
        Topic topic = topic();
        QueueSession s = queueSession();
        fails(ILLEGAL, "QueueSession.createSharedConsumer()", () -> s.createSharedConsumer(topic, "s"));
        fails(
                ILLEGAL,
                "QueueSession.createSharedConsumer() with a selector",
                () -> s.createSharedConsumer(topic, "s", "a = 1"));
    }

    @Test
    void queueSessionRefusesCreateSharedDurableConsumer() throws JMSException {
        Topic topic = topic();
        QueueSession s = queueSession();
        fails(ILLEGAL, "QueueSession.createSharedDurableConsumer()", () -> s.createSharedDurableConsumer(topic, "s"));
        fails(
                ILLEGAL,
                "QueueSession.createSharedDurableConsumer() with a selector",
                () -> s.createSharedDurableConsumer(topic, "s", "a = 1"));
    }

    @Test
    void queueSessionRefusesUnsubscribe() throws JMSException {
        QueueSession s = queueSession();
        fails(ILLEGAL, "QueueSession.unsubscribe()", () -> s.unsubscribe("s"));
    }

    // ---- topics -----------------------------------------------------------------------------------------------

    @Test
    @Spec("7.2")
    void publisherPublishesAndSubscriberReceives() throws JMSException {
        Topic topic = topic();
        TopicSession s = topicSession();
        TopicSubscriber subscriber = s.createSubscriber(topic);
        s.createPublisher(topic).publish(s.createTextMessage("a"));
        equal("the message", "a", text(subscriber));
    }

    @Test
    @Spec("8.3.1")
    void subscriberReturnsItsTopicAndNoLocal() throws JMSException {
        Topic topic = topic();
        TopicSession s = topicSession();
        TopicSubscriber subscriber = s.createSubscriber(topic);
        equal("getTopic()", topic, subscriber.getTopic());
        no("getNoLocal()", subscriber.getNoLocal());
        yes(
                "getNoLocal() of createSubscriber(topic, null, true)",
                s.createSubscriber(topic, null, true).getNoLocal());
    }

    @Test
    @Spec("7.2")
    void publisherReturnsItsTopic() throws JMSException {
        Topic topic = topic();
        equal("getTopic()", topic, topicSession().createPublisher(topic).getTopic());
    }

    @Test
    @Spec("7.2")
    void publisherPublishesWithOptions() throws JMSException {
        Topic topic = topic();
        MessageConsumer consumer = session().createConsumer(topic);
        TopicSession s = topicSession();
        s.createPublisher(topic).publish(s.createMessage(), DeliveryMode.NON_PERSISTENT, 7, 60_000);
        Message message = receive(consumer);
        equal("JMSPriority", 7, message.getJMSPriority());
        equal("JMSDeliveryMode", DeliveryMode.NON_PERSISTENT, message.getJMSDeliveryMode());
    }

    @Test
    @Spec({"7.1", "7.2"})
    void anonymousPublisherPublishes() throws JMSException {
        Topic topic = topic();
        MessageConsumer consumer = session().createConsumer(topic);
        TopicSession s = topicSession();
        TopicPublisher publisher = s.createPublisher(null);
        publisher.publish(topic, s.createTextMessage("a"));
        publisher.publish(topic, s.createTextMessage("b"), DeliveryMode.PERSISTENT, 4, 0);
        equal("the messages", List.of("a", "b"), texts(consumer, 2));
    }

    @Test
    @Spec({"api:TopicPublisher", "7.1"})
    void anonymousPublisherNeedsATopic() throws JMSException {
        TopicSession s = topicSession();
        TopicPublisher publisher = s.createPublisher(null);
        Message message = s.createMessage();
        fails(
                UnsupportedOperationException.class,
                "publish(message) of createPublisher(null)",
                () -> publisher.publish(message));
        fails(
                InvalidDestinationException.class,
                "publish(null, message) of createPublisher(null)",
                () -> publisher.publish((Topic) null, message));
    }

    @Test
    @Spec("8.3.1")
    void subscriberLeavesOutOwnMessages() throws JMSException {
        Topic topic = topic();
        TopicSession s = topicSession();
        TopicSubscriber subscriber = s.createSubscriber(topic, null, true);
        s.createPublisher(topic).publish(s.createTextMessage("own"));
        send(topic, "other");
        equal("the first message", "other", text(subscriber));
    }

    @Test
    @Spec("8.3.1")
    void subscriberSelects() throws JMSException {
        Topic topic = topic();
        TopicSubscriber subscriber = topicSession().createSubscriber(topic, "n = 2", false);
        sendWith(topic, "1", "n", 1);
        sendWith(topic, "2", "n", 2);
        equal("the message that matches", "2", text(subscriber));
    }

    @Test
    @Spec("10.3")
    void subscriberOfANullTopicIsRefused() throws JMSException {
        TopicSession s = topicSession();
        fails(InvalidDestinationException.class, "createSubscriber(null)", () -> s.createSubscriber(null));
    }

    @Test
    @Spec("8.3.3")
    void topicSessionMakesDurableSubscribers() throws JMSException {
        Topic topic = topic();
        TopicConnection c = closeLater(provider().topicConnectionFactory().createTopicConnection());
        c.setClientID(unique("client"));
        c.start();
        TopicSession s = c.createTopicSession(false, AUTO);
        s.createDurableSubscriber(topic, "sub").close();
        send(topic, "a");
        TopicSubscriber subscriber = s.createDurableSubscriber(topic, "sub");
        equal("the message sent while it was inactive", "a", text(subscriber));
        subscriber.close();
        works("unsubscribe()", () -> s.unsubscribe("sub"));
    }

    @Test
    @Spec("6.2.2")
    void topicSessionCreatesTemporaryTopics() throws JMSException {
        TopicSession s = topicSession();
        Topic topic = s.createTemporaryTopic();
        TopicSubscriber subscriber = s.createSubscriber(topic);
        s.createPublisher(topic).publish(s.createTextMessage("a"));
        equal("the message", "a", text(subscriber));
    }

    @Test
    @Spec("6.2.3")
    void topicSessionCreatesTopicsByName() throws JMSException {
        String name = topicName();
        equal("getTopicName()", name, topicSession().createTopic(name).getTopicName());
    }

    @Test
    @Spec("6.2.7")
    void topicSessionCommits() throws JMSException {
        Topic topic = topic();
        MessageConsumer consumer = session().createConsumer(topic);
        TopicSession s = topicConnection().createTopicSession(true, 0);
        s.createPublisher(topic).publish(s.createTextMessage("a"));
        nothing("the transaction is not committed", consumer);
        s.commit();
        equal("the message", "a", text(consumer));
    }

    @Test
    @Spec("6.1")
    void topicConnectionTakesUserAndPassword() throws JMSException {
        TopicConnection c = closeLater(provider()
                .topicConnectionFactory()
                .createTopicConnection(provider().user(), provider().password()));
        works("createTopicSession()", () -> c.createTopicSession(false, AUTO));
    }

    @Test
    void topicSessionRefusesCreateQueue() throws JMSException {
        TopicSession s = topicSession();
        fails(ILLEGAL, "TopicSession.createQueue()", () -> s.createQueue("q"));
    }

    @Test
    void topicSessionRefusesCreateTemporaryQueue() throws JMSException {
        TopicSession s = topicSession();
        fails(ILLEGAL, "TopicSession.createTemporaryQueue()", s::createTemporaryQueue);
    }

    @Test
    @Spec({"9.2", "10.3"})
    void topicSessionRefusesCreateBrowser() throws JMSException {
        Queue queue = queue();
        TopicSession s = topicSession();
        fails(ILLEGAL, "TopicSession.createBrowser()", () -> s.createBrowser(queue));
        fails(ILLEGAL, "TopicSession.createBrowser() with a selector", () -> s.createBrowser(queue, "a = 1"));
    }

    @Test
    @Spec("2.9")
    void legacyConnectionsMakeUnifiedSessions() throws JMSException {
        Queue queue = queue();
        jakarta.jms.Session s = queueConnection().createSession(false, AUTO);
        s.createProducer(queue).send(s.createTextMessage("a"));
        equal("the message", "a", text(s.createConsumer(queue)));
    }

    // ---- connection consumers ---------------------------------------------------------------------------------

    @Test
    void queueConnectionRefusesConsumersOfTopics() throws JMSException {
        Topic topic = topic();
        QueueConnection c = queueConnection();
        fails(
                ILLEGAL,
                "QueueConnection.createDurableConnectionConsumer()",
                () -> c.createDurableConnectionConsumer(topic, "s", null, null, 1));
        fails(
                ILLEGAL,
                "QueueConnection.createSharedConnectionConsumer()",
                () -> c.createSharedConnectionConsumer(topic, "s", null, null, 1));
        fails(
                ILLEGAL,
                "QueueConnection.createSharedDurableConnectionConsumer()",
                () -> c.createSharedDurableConnectionConsumer(topic, "s", null, null, 1));
    }

    /** An optional facility: without it the call must fail with a JMSException, not in another way. */
    @Test
    @Spec("11.2.4")
    void connectionConsumerWorksOrIsRefused() throws JMSException {
        Queue queue = queue();
        try {
            connection().createConnectionConsumer(queue, null, () -> null, 1).close();
        } catch (JMSException e) {
            no(
                    "the exception must say why",
                    present("getMessage()", e.getMessage()).isEmpty());
        }
    }
}
