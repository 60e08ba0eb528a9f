package io.github.pgaq.jms.conformance;

import jakarta.jms.Connection;
import jakarta.jms.IllegalStateException;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.Queue;
import jakarta.jms.QueueRequestor;
import jakarta.jms.QueueSession;
import jakarta.jms.Session;
import jakarta.jms.TemporaryQueue;
import jakarta.jms.TemporaryTopic;
import jakarta.jms.TextMessage;
import jakarta.jms.Topic;
import jakarta.jms.TopicRequestor;
import jakarta.jms.TopicSession;
import java.util.HashSet;
import java.util.Set;
import java.util.concurrent.Future;
import org.junit.jupiter.api.Test;

/** Temporary destinations, requests and replies. */
@Spec("6.2.2")
class TemporaryTest extends ConformanceTest {
    @Test
    void temporaryQueueSendsAndReceives() throws JMSException {
        TemporaryQueue queue = session().createTemporaryQueue();
        send(queue, "a");
        equal("the message of a temporary queue", "a", text(session().createConsumer(queue)));
    }

    @Test
    void temporaryTopicSendsAndReceives() throws JMSException {
        TemporaryTopic topic = session().createTemporaryTopic();
        MessageConsumer one = session().createConsumer(topic);
        MessageConsumer two = session().createConsumer(topic);
        send(topic, "a");
        equal("the copy of the first consumer", "a", text(one));
        equal("the copy of the second consumer", "a", text(two));
    }

    @Test
    void temporaryQueuesAreUnique() throws JMSException {
        Set<String> names = new HashSet<>();
        for (int i = 0; i < 5; i++) {
            names.add(session().createTemporaryQueue().getQueueName());
        }
        equal("the number of different names", 5, names.size());
    }

    @Test
    void temporaryTopicsAreUnique() throws JMSException {
        no(
                "two temporary topics must have different names",
                session()
                        .createTemporaryTopic()
                        .getTopicName()
                        .equals(session().createTemporaryTopic().getTopicName()));
    }

    @Test
    void twoTemporaryQueuesAreSeparate() throws JMSException {
        TemporaryQueue one = session().createTemporaryQueue();
        TemporaryQueue two = session().createTemporaryQueue();
        send(one, "1");
        send(two, "2");
        equal("the message of the second queue", "2", text(session().createConsumer(two)));
        equal("the message of the first queue", "1", text(session().createConsumer(one)));
    }

    @Test
    void twoTemporaryTopicsAreSeparate() throws JMSException {
        TemporaryTopic one = session().createTemporaryTopic();
        TemporaryTopic two = session().createTemporaryTopic();
        MessageConsumer first = session().createConsumer(one);
        MessageConsumer second = session().createConsumer(two);
        send(one, "1");
        send(two, "2");
        equal("the message of the first topic", "1", text(first));
        equal("the message of the second topic", "2", text(second));
    }

    @Test
    void otherSessionsOfTheConnectionReceive() throws JMSException {
        TemporaryQueue queue = session(AUTO).createTemporaryQueue();
        MessageConsumer consumer = session(AUTO).createConsumer(queue);
        send(queue, "a");
        equal("the message received by another session of the connection", "a", text(consumer));
    }

    @Test
    void otherConnectionsSend() throws JMSException {
        TemporaryQueue queue = session().createTemporaryQueue();
        Session other = connect().createSession();
        other.createProducer(queue).send(other.createTextMessage("a"));
        equal("the message of another connection", "a", text(session().createConsumer(queue)));
    }

    @Test
    void otherConnectionsDoNotReceiveFromAQueue() throws JMSException {
        TemporaryQueue queue = session().createTemporaryQueue();
        Session other = connect().createSession();
        fails(
                JMSException.class,
                "createConsumer of a temporary queue of another connection",
                () -> other.createConsumer(queue));
    }

    @Test
    void otherConnectionsDoNotReceiveFromATopic() throws JMSException {
        TemporaryTopic topic = session().createTemporaryTopic();
        Session other = connect().createSession();
        fails(
                JMSException.class,
                "createConsumer of a temporary topic of another connection",
                () -> other.createConsumer(topic));
    }

    @Test
    void queueOutlivesItsSession() throws JMSException {
        Session s = session(AUTO);
        TemporaryQueue queue = s.createTemporaryQueue();
        send(queue, "a");
        s.close();
        equal("the message after the session was closed", "a", text(session().createConsumer(queue)));
    }

    @Test
    void messagesStayWithoutAConsumer() throws JMSException {
        TemporaryQueue queue = session().createTemporaryQueue();
        session().createConsumer(queue).close();
        send(queue, "a");
        equal("the message sent without a consumer", "a", text(session().createConsumer(queue)));
    }

    // ---- delete -----------------------------------------------------------------------------------------------

    @Test
    @Spec("api:TemporaryQueue")
    void deletedQueueRefusesSends() throws JMSException {
        TemporaryQueue queue = session().createTemporaryQueue();
        queue.delete();
        fails(JMSException.class, "a send to a deleted temporary queue", () -> send(queue, "a"));
    }

    @Test
    @Spec("api:TemporaryQueue")
    void deletedQueueRefusesConsumers() throws JMSException {
        TemporaryQueue queue = session().createTemporaryQueue();
        queue.delete();
        fails(
                JMSException.class,
                "createConsumer of a deleted temporary queue",
                () -> session().createConsumer(queue));
    }

    @Test
    @Spec("api:TemporaryTopic")
    void deletedTopicRefusesSends() throws JMSException {
        TemporaryTopic topic = session().createTemporaryTopic();
        topic.delete();
        fails(JMSException.class, "a send to a deleted temporary topic", () -> send(topic, "a"));
    }

    @Test
    @Spec("api:TemporaryQueue")
    void queueWithAConsumerIsNotDeleted() throws JMSException {
        TemporaryQueue queue = session().createTemporaryQueue();
        MessageConsumer consumer = session().createConsumer(queue);
        fails(JMSException.class, "delete() of a temporary queue with a consumer", queue::delete);
        send(queue, "a");
        equal("the message after the refused delete()", "a", text(consumer));
    }

    @Test
    @Spec("api:TemporaryTopic")
    void topicWithAConsumerIsNotDeleted() throws JMSException {
        TemporaryTopic topic = session().createTemporaryTopic();
        session().createConsumer(topic);
        fails(JMSException.class, "delete() of a temporary topic with a consumer", topic::delete);
    }

    @Test
    @Spec("api:TemporaryQueue")
    void queueIsDeletedAfterItsConsumerWasClosed() throws JMSException {
        TemporaryQueue queue = session().createTemporaryQueue();
        session().createConsumer(queue).close();
        works("delete() after the consumer was closed", queue::delete);
    }

    @Test
    void closeOfTheConnectionDeletesTheQueue() throws JMSException {
        Connection c = connect();
        TemporaryQueue queue = c.createSession().createTemporaryQueue();
        c.close();
        fails(JMSException.class, "a send to a temporary queue of a closed connection", () -> send(queue, "a"));
    }

    @Test
    void closeOfTheConnectionDeletesTheTopic() throws JMSException {
        Connection c = connect();
        TemporaryTopic topic = c.createSession().createTemporaryTopic();
        c.close();
        fails(JMSException.class, "a send to a temporary topic of a closed connection", () -> send(topic, "a"));
    }

    @Test
    @Spec("4.2.7")
    void durableSubscriptionToATemporaryTopicIsRefusedOrWorks() throws JMSException {
        Session s = connect(unique("client")).createSession();
        TemporaryTopic topic = s.createTemporaryTopic();
        MessageConsumer consumer;
        try {
            consumer = s.createDurableConsumer(topic, "sub");
        } catch (JMSException e) {
            return;
        }
        send(topic, "a");
        equal("the message", "a", text(consumer));
        consumer.close();
        s.unsubscribe("sub");
    }

    @Test
    void transactionSendsToATemporaryQueue() throws JMSException {
        TemporaryQueue queue = session().createTemporaryQueue();
        Session s = session(TRANSACTED);
        s.createProducer(queue).send(s.createTextMessage("a"));
        MessageConsumer consumer = session().createConsumer(queue);
        nothing("the transaction is not committed", consumer);
        s.commit();
        equal("the message of the transaction", "a", text(consumer));
    }

    @Test
    void temporaryQueueSelects() throws JMSException {
        TemporaryQueue queue = session().createTemporaryQueue();
        MessageConsumer consumer = session().createConsumer(queue, "n = 2");
        sendWith(queue, "1", "n", 1);
        sendWith(queue, "2", "n", 2);
        equal("the message that matches", "2", text(consumer));
    }

    @Test
    void temporaryQueueOfAContext() throws JMSException {
        jakarta.jms.JMSContext context = context();
        TemporaryQueue queue = context.createTemporaryQueue();
        context.createProducer().send(queue, "a");
        equal("the message", "a", context.createConsumer(queue).receiveBody(String.class, WAIT));
    }

    // ---- request and reply ------------------------------------------------------------------------------------

    @Test
    @Spec("2.16")
    void replyGoesToATemporaryQueue() throws Exception {
        Queue service = queue();
        Session client = session(AUTO);
        TemporaryQueue replies = client.createTemporaryQueue();
        MessageConsumer consumer = client.createConsumer(replies);
        Future<?> server = answer(service, connect().createSession());
        TextMessage request = client.createTextMessage("question");
        request.setJMSReplyTo(replies);
        client.createProducer(service).send(request);
        TextMessage reply = (TextMessage) receive(consumer);
        equal("the reply", "question!", reply.getText());
        equal("JMSCorrelationID of the reply", request.getJMSMessageID(), reply.getJMSCorrelationID());
        result("the service", server);
    }

    @Test
    @Spec("2.16")
    void manyRequestsWithAQueueEach() throws Exception {
        Queue service = queue();
        Session client = session(AUTO);
        Session server = connect().createSession();
        for (int i = 0; i < 10; i++) {
            Future<?> answer = answer(service, server);
            TemporaryQueue replies = client.createTemporaryQueue();
            TextMessage request = client.createTextMessage("question " + i);
            request.setJMSReplyTo(replies);
            client.createProducer(service).send(request);
            try (MessageConsumer consumer = client.createConsumer(replies)) {
                equal("the reply to request " + i, "question " + i + "!", text(consumer));
            }
            result("the service", answer);
            replies.delete();
        }
    }

    /** Answers one request in a thread of its own. */
    private static Future<?> answer(jakarta.jms.Destination service, Session server) throws Exception {
        MessageConsumer requests = server.createConsumer(service);
        return thread(() -> {
            TextMessage request = (TextMessage) receive(requests);
            TextMessage reply = server.createTextMessage(request.getText() + "!");
            reply.setJMSCorrelationID(request.getJMSMessageID());
            server.createProducer(null).send(request.getJMSReplyTo(), reply);
            requests.close();
            return null;
        });
    }

    @Test
    @Spec("4.1.7")
    void queueRequestorReturnsTheReply() throws Exception {
        Queue service = queue();
        QueueSession client = queueConnection().createQueueSession(false, AUTO);
        Future<?> server = answer(service, connect().createSession());
        QueueRequestor requestor = new QueueRequestor(client, service);
        Future<Message> reply = thread(() -> requestor.request(client.createTextMessage("question")));
        equal("the reply", "question!", ((TextMessage) result("request()", reply)).getText());
        result("the service", server);
        requestor.close();
    }

    @Test
    @Spec("4.1.7")
    void queueRequestorClosesItsSession() throws JMSException {
        Queue service = queue();
        QueueSession client = queueConnection().createQueueSession(false, AUTO);
        new QueueRequestor(client, service).close();
        fails(
                IllegalStateException.class,
                "createTextMessage() after QueueRequestor.close()",
                client::createTextMessage);
    }

    @Test
    @Spec("4.1.7")
    void queueRequestorRefusesANullQueue() throws JMSException {
        QueueSession client = queueConnection().createQueueSession(false, AUTO);
        fails(
                jakarta.jms.InvalidDestinationException.class,
                "new QueueRequestor(session, null)",
                () -> new QueueRequestor(client, null));
    }

    @Test
    @Spec("4.2.10")
    void topicRequestorReturnsTheReply() throws Exception {
        Topic service = topic();
        TopicSession client = topicConnection().createTopicSession(false, AUTO);
        Future<?> server = answer(service, connect().createSession());
        TopicRequestor requestor = new TopicRequestor(client, service);
        Future<Message> reply = thread(() -> requestor.request(client.createTextMessage("question")));
        equal("the reply", "question!", ((TextMessage) result("request()", reply)).getText());
        result("the service", server);
        requestor.close();
    }

    @Test
    @Spec("4.2.10")
    void topicRequestorClosesItsSession() throws JMSException {
        Topic service = topic();
        TopicSession client = topicConnection().createTopicSession(false, AUTO);
        new TopicRequestor(client, service).close();
        fails(
                IllegalStateException.class,
                "createTextMessage() after TopicRequestor.close()",
                client::createTextMessage);
    }

    @Test
    @Spec("4.2.10")
    void topicRequestorRefusesANullTopic() throws JMSException {
        TopicSession client = topicConnection().createTopicSession(false, AUTO);
        fails(
                jakarta.jms.InvalidDestinationException.class,
                "new TopicRequestor(session, null)",
                () -> new TopicRequestor(client, null));
    }
}
