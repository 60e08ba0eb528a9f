package io.github.pgaq.jms.conformance;

import jakarta.jms.Connection;
import jakarta.jms.IllegalStateException;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.Queue;
import jakarta.jms.QueueBrowser;
import jakarta.jms.Session;
import jakarta.jms.TextMessage;
import jakarta.jms.Topic;
import java.util.List;
import java.util.concurrent.Future;
import org.junit.jupiter.api.Test;

/** Sessions: modes, acknowledgement, recover, close. Transactions have a class of their own. */
@Spec("6.2")
class SessionTest extends ConformanceTest {
    // ---- creation and mode ------------------------------------------------------------------------------------

    @Test
    @Spec("6.2")
    void defaultSessionAcknowledgesAutomatically() throws JMSException {
        Session s = connection().createSession();
        equal("getAcknowledgeMode()", AUTO, s.getAcknowledgeMode());
        no("getTransacted() of createSession()", s.getTransacted());
    }

    @Test
    @Spec("6.2")
    void eachModeIsReturned() throws JMSException {
        for (int mode : new int[] {AUTO, CLIENT, DUPS}) {
            Session s = connection().createSession(mode);
            equal("getAcknowledgeMode()", mode, s.getAcknowledgeMode());
            no("getTransacted()", s.getTransacted());
        }
    }

    @Test
    @Spec("6.2")
    void transactedModeIsReturned() throws JMSException {
        Session s = connection().createSession(TRANSACTED);
        equal("getAcknowledgeMode()", TRANSACTED, s.getAcknowledgeMode());
        yes("getTransacted()", s.getTransacted());
    }

    @Test
    @Spec("api:Connection")
    void transactedSessionIgnoresTheOtherArgument() throws JMSException {
        Session s = connection().createSession(true, CLIENT);
        equal("getAcknowledgeMode() of createSession(true, CLIENT_ACKNOWLEDGE)", TRANSACTED, s.getAcknowledgeMode());
        yes("getTransacted()", s.getTransacted());
    }

    @Test
    @Spec("api:Connection")
    void twoArgumentsMakeASessionThatIsNotTransacted() throws JMSException {
        Session s = connection().createSession(false, CLIENT);
        equal("getAcknowledgeMode() of createSession(false, CLIENT_ACKNOWLEDGE)", CLIENT, s.getAcknowledgeMode());
        no("getTransacted()", s.getTransacted());
    }

    @Test
    @Spec("10.3")
    void commitIsRefusedUnlessTransacted() throws JMSException {
        for (int mode : new int[] {AUTO, CLIENT, DUPS}) {
            Session s = session(mode);
            fails(IllegalStateException.class, "commit() of a session that is not transacted", s::commit);
        }
    }

    @Test
    @Spec("api:Session")
    void rollbackIsRefusedUnlessTransacted() throws JMSException {
        for (int mode : new int[] {AUTO, CLIENT, DUPS}) {
            Session s = session(mode);
            fails(IllegalStateException.class, "rollback() of a session that is not transacted", s::rollback);
        }
    }

    @Test
    @Spec("api:Session")
    void recoverIsRefusedIfTransacted() throws JMSException {
        Session s = session(TRANSACTED);
        fails(IllegalStateException.class, "recover() of a transacted session", s::recover);
    }

    // ---- AUTO_ACKNOWLEDGE and DUPS_OK_ACKNOWLEDGE --------------------------------------------------------------

    @Test
    @Spec("6.2.10")
    void autoAcknowledgeConsumesAtReceive() throws JMSException {
        Queue queue = queue();
        send(queue, "a", "b");
        Session s = session(AUTO);
        MessageConsumer consumer = s.createConsumer(queue);
        equal("both messages", List.of("a", "b"), texts(consumer, 2));
        s.close();
        send(queue, "marker");
        equal("the first message that is left", "marker", text(session().createConsumer(queue)));
    }

    @Test
    @Spec("6.2.10")
    void dupsOkAcknowledgesAtTheLatestAtClose() throws JMSException {
        Queue queue = queue();
        send(queue, "a");
        Session s = session(DUPS);
        text(s.createConsumer(queue));
        s.close();
        send(queue, "marker");
        equal("the first message that is left", "marker", text(session().createConsumer(queue)));
    }

    @Test
    @Spec("6.2.10")
    void receivedMessageIsHiddenFromOthers() throws JMSException {
        Queue queue = queue();
        send(queue, "a");
        text(session(CLIENT).createConsumer(queue));
        nothing(
                "a message that another session received and has not acknowledged",
                session(AUTO).createConsumer(queue));
    }

    @Test
    @Spec("3.6")
    void acknowledgeIsIgnoredWithAutoAcknowledge() throws JMSException {
        Queue queue = queue();
        send(queue, "a");
        Message message = receive(session(AUTO).createConsumer(queue));
        works("acknowledge() with AUTO_ACKNOWLEDGE", message::acknowledge);
    }

    @Test
    @Spec("3.6")
    void acknowledgeIsIgnoredWithDupsOk() throws JMSException {
        Queue queue = queue();
        send(queue, "a");
        Message message = receive(session(DUPS).createConsumer(queue));
        works("acknowledge() with DUPS_OK_ACKNOWLEDGE", message::acknowledge);
    }

    @Test
    @Spec("api:Message")
    void acknowledgeIsIgnoredIfTransacted() throws JMSException {
        Queue queue = queue();
        send(queue, "a");
        Session s = session(TRANSACTED);
        Message message = receive(s.createConsumer(queue));
        works("acknowledge() in a transacted session", message::acknowledge);
        s.rollback();
        equal("the message after rollback()", "a", text(s.createConsumer(queue)));
    }

    @Test
    @Spec("3.6")
    void acknowledgeOfAMessageThatWasNotReceivedIsIgnored() throws JMSException {
        works("acknowledge() of a new message", session(CLIENT).createTextMessage("a")::acknowledge);
    }

    // ---- CLIENT_ACKNOWLEDGE -----------------------------------------------------------------------------------

    @Test
    @Spec("6.2.10")
    void clientAcknowledgeConsumes() throws JMSException {
        Queue queue = queue();
        send(queue, "a");
        Session s = session(CLIENT);
        receive(s.createConsumer(queue)).acknowledge();
        s.close();
        send(queue, "marker");
        equal("the first message that is left", "marker", text(session().createConsumer(queue)));
    }

    @Test
    @Spec("6.2.10")
    void acknowledgeOfTheLastAcknowledgesAll() throws JMSException {
        Queue queue = queue();
        send(queue, "a", "b", "c");
        Session s = session(CLIENT);
        MessageConsumer consumer = s.createConsumer(queue);
        receive(consumer);
        receive(consumer);
        receive(consumer).acknowledge();
        s.close();
        send(queue, "marker");
        equal("the first message that is left", "marker", text(session().createConsumer(queue)));
    }

    @Test
    @Spec("6.2.10")
    void acknowledgeOfTheFirstAcknowledgesAllDelivered() throws JMSException {
        Queue queue = queue();
        send(queue, "a", "b", "c");
        Session s = session(CLIENT);
        MessageConsumer consumer = s.createConsumer(queue);
        Message first = receive(consumer);
        receive(consumer);
        receive(consumer);
        first.acknowledge();
        s.close();
        send(queue, "marker");
        equal("the first message that is left", "marker", text(session().createConsumer(queue)));
    }

    @Test
    @Spec("6.2.10")
    void acknowledgeDoesNotReachMessagesNotYetDelivered() throws JMSException {
        Queue queue = queue();
        send(queue, "a", "b");
        Session s = session(CLIENT);
        receive(s.createConsumer(queue)).acknowledge();
        s.close();
        equal("the message that was not delivered", "b", text(session().createConsumer(queue)));
    }

    @Test
    @Spec("6.2.10")
    void acknowledgeReachesAllConsumersOfTheSession() throws JMSException {
        Queue one = queue();
        Queue two = queue();
        send(one, "1");
        send(two, "2");
        Session s = session(CLIENT);
        receive(s.createConsumer(one));
        receive(s.createConsumer(two)).acknowledge();
        s.close();
        send(one, "marker");
        equal("the first message of the other queue", "marker", text(session().createConsumer(one)));
    }

    @Test
    @Spec("6.2.10")
    void acknowledgeDoesNotReachOtherSessions() throws JMSException {
        Queue queue = queue();
        send(queue, "a", "b");
        Session one = session(CLIENT);
        Session two = session(CLIENT);
        MessageConsumer first = one.createConsumer(queue);
        String kept = text(first);
        first.close();
        receive(two.createConsumer(queue)).acknowledge();
        one.close();
        two.close();
        equal("the message of the other session", kept, text(session().createConsumer(queue)));
    }

    @Test
    @Spec("6.2.10")
    void secondAcknowledgeIsIgnored() throws JMSException {
        Queue queue = queue();
        send(queue, "a");
        Message message = receive(session(CLIENT).createConsumer(queue));
        message.acknowledge();
        works("a second acknowledge()", message::acknowledge);
    }

    @Test
    @Spec("6.2.15")
    void closeDoesNotAcknowledge() throws JMSException {
        Queue queue = queue();
        send(queue, "a");
        Session s = session(CLIENT);
        text(s.createConsumer(queue));
        s.close();
        equal("the message that was not acknowledged", "a", text(session().createConsumer(queue)));
    }

    @Test
    @Spec({"6.2", "3.4.7"})
    void messageOfAClosedSessionIsRedelivered() throws JMSException {
        Queue queue = queue();
        send(queue, "a");
        Session s = session(CLIENT);
        text(s.createConsumer(queue));
        s.close();
        Message message = receive(session().createConsumer(queue));
        yes("JMSRedelivered of a message that was delivered before", message.getJMSRedelivered());
        yes("JMSXDeliveryCount must be 2 or more", count(message) >= 2);
    }

    @Test
    @Spec("6.2.7")
    void sendOfASessionIsVisibleWhileItHoldsMessages() throws JMSException {
        Queue queue = queue();
        Queue other = queue();
        send(queue, "a");
        Session s = session(CLIENT);
        receive(s.createConsumer(queue));
        s.createProducer(other).send(s.createTextMessage("sent"));
        equal(
                "the message sent by a session with an unacknowledged message",
                "sent",
                text(session().createConsumer(other)));
    }

    // ---- recover ----------------------------------------------------------------------------------------------

    @Test
    @Spec("6.2.10")
    void recoverDeliversAgain() throws JMSException {
        Queue queue = queue();
        send(queue, "a", "b");
        Session s = session(CLIENT);
        MessageConsumer consumer = s.createConsumer(queue);
        texts(consumer, 2);
        s.recover();
        equal("the messages after recover(), in their order", List.of("a", "b"), texts(consumer, 2));
    }

    @Test
    @Spec({"6.2.10", "3.4.7"})
    void recoverSetsJMSRedelivered() throws JMSException {
        Queue queue = queue();
        send(queue, "a");
        Session s = session(CLIENT);
        MessageConsumer consumer = s.createConsumer(queue);
        receive(consumer);
        s.recover();
        yes("JMSRedelivered after recover()", receive(consumer).getJMSRedelivered());
    }

    @Test
    @Spec({"6.2.10", "3.5.11"})
    void recoverRaisesTheDeliveryCount() throws JMSException {
        Queue queue = queue();
        send(queue, "a");
        Session s = session(CLIENT);
        MessageConsumer consumer = s.createConsumer(queue);
        receive(consumer);
        s.recover();
        equal("JMSXDeliveryCount after recover()", 2, count(receive(consumer)));
        s.recover();
        equal("JMSXDeliveryCount after a second recover()", 3, count(receive(consumer)));
    }

    @Test
    @Spec({"6.2.10", "6.2.11"})
    void recoverDoesNotDeliverAcknowledgedMessages() throws JMSException {
        Queue queue = queue();
        send(queue, "a", "b");
        Session s = session(CLIENT);
        MessageConsumer consumer = s.createConsumer(queue);
        receive(consumer).acknowledge();
        receive(consumer);
        s.recover();
        equal("the message that was not acknowledged", "b", text(consumer));
        nothing("the other message was acknowledged", consumer);
    }

    @Test
    @Spec("6.2.10")
    void recoverKeepsTheOrderBeforeNewMessages() throws JMSException {
        Queue queue = queue();
        send(queue, "a", "b", "c");
        Session s = session(CLIENT);
        MessageConsumer consumer = s.createConsumer(queue);
        receive(consumer);
        s.recover();
        equal("all messages after recover()", List.of("a", "b", "c"), texts(consumer, 3));
    }

    @Test
    @Spec({"6.2.10", "3.5.11"})
    void messagesNotSeenBeforeRecoverAreNotRedelivered() throws JMSException {
        Queue queue = queue();
        send(queue, "a", "b");
        Session s = session(CLIENT);
        MessageConsumer consumer = s.createConsumer(queue);
        receive(consumer);
        s.recover();
        receive(consumer);
        Message second = receive(consumer);
        no("JMSRedelivered of a message that was not delivered before recover()", second.getJMSRedelivered());
        equal("its JMSXDeliveryCount", 1, count(second));
    }

    @Test
    @Spec("6.2.10")
    void recoverWithAutoAcknowledgeDeliversNothingAgain() throws JMSException {
        Queue queue = queue();
        send(queue, "a");
        Session s = session(AUTO);
        MessageConsumer consumer = s.createConsumer(queue);
        receive(consumer);
        s.recover();
        nothing("the message was acknowledged before recover()", consumer);
    }

    @Test
    @Spec("6.2.10")
    void recoverOfASessionWithoutMessagesWorks() throws JMSException {
        works("recover() of a new session", session(CLIENT)::recover);
    }

    @Test
    @Spec({"6.2.10", "4.2.8"})
    void recoverDeliversMessagesOfASubscriptionAgain() throws JMSException {
        Topic topic = topic();
        Session s = session(CLIENT);
        MessageConsumer consumer = s.createConsumer(topic);
        send(topic, "a", "b");
        texts(consumer, 2);
        s.recover();
        equal("the messages after recover()", List.of("a", "b"), texts(consumer, 2));
    }

    @Test
    @Spec("3.10")
    void redeliveredMessageIsTheOriginal() throws JMSException {
        Queue queue = queue();
        sendWith(queue, "original", "p", "original");
        Session s = session(CLIENT);
        MessageConsumer consumer = s.createConsumer(queue);
        TextMessage message = (TextMessage) receive(consumer);
        message.clearBody();
        message.setText("changed");
        message.clearProperties();
        message.setStringProperty("p", "changed");
        s.recover();
        TextMessage again = (TextMessage) receive(consumer);
        equal("the body of the redelivered message", "original", again.getText());
        equal("the property of the redelivered message", "original", again.getStringProperty("p"));
    }

    // ---- several consumers ------------------------------------------------------------------------------------

    @Test
    @Spec("6.2.1")
    void sessionHasManyConsumersAndProducers() throws JMSException {
        Queue one = queue();
        Queue two = queue();
        Session s = session(AUTO);
        MessageConsumer first = s.createConsumer(one);
        MessageConsumer second = s.createConsumer(two);
        MessageProducer producerOne = s.createProducer(one);
        MessageProducer producerTwo = s.createProducer(two);
        producerTwo.send(s.createTextMessage("2"));
        producerOne.send(s.createTextMessage("1"));
        equal("the message of the first queue", "1", text(first));
        equal("the message of the second queue", "2", text(second));
    }

    @Test
    @Spec("6.2")
    void sessionCanBeUsedByOneThreadAfterTheOther() throws Exception {
        Queue queue = queue();
        Session s = session(AUTO);
        MessageConsumer consumer = s.createConsumer(queue);
        send(queue, "a", "b");
        equal("the message received in a thread", "a", result("receive()", thread(() -> text(consumer))));
        equal("the message received in another thread", "b", text(consumer));
    }

    @Test
    @Spec("6.2.14")
    void sessionsOfAConnectionWorkAtTheSameTime() throws Exception {
        Queue one = queue();
        Queue two = queue();
        MessageConsumer first = session(AUTO).createConsumer(one);
        MessageConsumer second = session(AUTO).createConsumer(two);
        Future<Message> blocked = thread(() -> first.receive(WAIT));
        pending("receive() of an empty queue", blocked);
        send(two, "2");
        equal("the message of the second session", "2", text(second));
        send(one, "1");
        equal("the message of the first session", "1", ((TextMessage) result("receive()", blocked)).getText());
    }

    // ---- close ------------------------------------------------------------------------------------------------

    @Test
    @Spec("6.2.15")
    void closeIsIdempotent() throws JMSException {
        Session s = session(AUTO);
        s.close();
        works("close() of a closed session", s::close);
    }

    @Test
    @Spec("6.2.15")
    void closedSessionRefusesEachMethod() throws JMSException {
        Queue queue = queue();
        Topic topic = topic();
        Session s = session(CLIENT);
        s.close();
        Class<IllegalStateException> error = IllegalStateException.class;
        fails(error, "createProducer()", () -> s.createProducer(queue));
        fails(error, "createConsumer()", () -> s.createConsumer(queue));
        fails(error, "createConsumer(selector)", () -> s.createConsumer(queue, "a = 1"));
        fails(error, "createBrowser()", () -> s.createBrowser(queue));
        fails(error, "createSharedConsumer()", () -> s.createSharedConsumer(topic, "s"));
        fails(error, "createDurableConsumer()", () -> s.createDurableConsumer(topic, "s"));
        fails(error, "createSharedDurableConsumer()", () -> s.createSharedDurableConsumer(topic, "s"));
        fails(error, "createDurableSubscriber()", () -> s.createDurableSubscriber(topic, "s"));
        fails(error, "createTemporaryQueue()", s::createTemporaryQueue);
        fails(error, "createTemporaryTopic()", s::createTemporaryTopic);
        fails(error, "createQueue()", () -> s.createQueue("q"));
        fails(error, "createTopic()", () -> s.createTopic("t"));
        fails(error, "unsubscribe()", () -> s.unsubscribe("s"));
        fails(error, "recover()", s::recover);
        fails(error, "getTransacted()", s::getTransacted);
        fails(error, "getAcknowledgeMode()", s::getAcknowledgeMode);
    }

    @Test
    @Spec("6.2.15")
    void closedSessionCreatesNoMessages() throws JMSException {
        Session s = session(AUTO);
        s.close();
        Class<IllegalStateException> error = IllegalStateException.class;
        fails(error, "createMessage()", s::createMessage);
        fails(error, "createTextMessage()", s::createTextMessage);
        fails(error, "createTextMessage(text)", () -> s.createTextMessage("a"));
        fails(error, "createBytesMessage()", s::createBytesMessage);
        fails(error, "createMapMessage()", s::createMapMessage);
        fails(error, "createStreamMessage()", s::createStreamMessage);
        fails(error, "createObjectMessage()", s::createObjectMessage);
        fails(error, "createObjectMessage(object)", () -> s.createObjectMessage("a"));
    }

    @Test
    @Spec("6.2.15")
    void closedTransactedSessionRefusesCommitAndRollback() throws JMSException {
        Session s = session(TRANSACTED);
        s.close();
        fails(IllegalStateException.class, "commit() of a closed session", s::commit);
        fails(IllegalStateException.class, "rollback() of a closed session", s::rollback);
    }

    @Test
    @Spec("6.2.15")
    void closeClosesProducersConsumersAndBrowsers() throws JMSException {
        Queue queue = queue();
        Session s = session(AUTO);
        MessageProducer producer = s.createProducer(queue);
        MessageConsumer consumer = s.createConsumer(queue);
        QueueBrowser browser = s.createBrowser(queue);
        Message message = s.createMessage();
        s.close();
        fails(IllegalStateException.class, "send() after the session was closed", () -> producer.send(message));
        fails(IllegalStateException.class, "receive() after the session was closed", () -> consumer.receive(1));
        fails(IllegalStateException.class, "getEnumeration() after the session was closed", browser::getEnumeration);
    }

    @Test
    @Spec("6.2.15")
    void closeOfPartsOfAClosedSessionIsIgnored() throws JMSException {
        Queue queue = queue();
        Session s = session(AUTO);
        MessageProducer producer = s.createProducer(queue);
        MessageConsumer consumer = s.createConsumer(queue);
        s.close();
        works("close() of a producer of a closed session", producer::close);
        works("close() of a consumer of a closed session", consumer::close);
    }

    @Test
    @Spec("6.2.15")
    void otherSessionsStayOpen() throws JMSException {
        Session other = session(AUTO);
        session(AUTO).close();
        works("createTextMessage() of another session of the connection", other::createTextMessage);
    }

    @Test
    @Spec("6.2.15")
    void closeEndsABlockedReceive() throws Exception {
        Session s = session(AUTO);
        MessageConsumer consumer = s.createConsumer(queue());
        Future<Message> receive = thread(() -> consumer.receive());
        pending("receive() of an empty queue", receive);
        s.close();
        isNull("receive() ended by the close of its session", result("receive()", receive));
    }

    @Test
    @Spec("6.2.15")
    void closeEndsAReceiveWithTimeout() throws Exception {
        Session s = session(AUTO);
        MessageConsumer consumer = s.createConsumer(queue());
        Future<Message> receive = thread(() -> consumer.receive(WAIT * 4));
        pending("receive(timeout) of an empty queue", receive);
        s.close();
        isNull("receive(timeout) ended by the close of its session", result("receive(timeout)", receive));
    }

    @Test
    @Spec("6.2.15")
    void acknowledgeAfterCloseFails() throws JMSException {
        Queue queue = queue();
        send(queue, "a");
        Session s = session(CLIENT);
        Message message = receive(s.createConsumer(queue));
        s.close();
        fails(IllegalStateException.class, "acknowledge() after the session was closed", message::acknowledge);
    }

    @Test
    @Spec("6.2.15")
    void messageIsUsableAfterClose() throws JMSException {
        Queue queue = queue();
        send(queue, "a");
        Session s = session(AUTO);
        TextMessage message = (TextMessage) receive(s.createConsumer(queue));
        s.close();
        equal("the text read after the session was closed", "a", message.getText());
    }

    @Test
    @Spec("6.2.15")
    void tryWithResourcesCloses() throws JMSException {
        Session used;
        try (Session s = session(AUTO)) {
            used = s;
        }
        fails(IllegalStateException.class, "createMessage() after try-with-resources", used::createMessage);
    }

    @Test
    @Spec({"6.2", "6.2.11", "9.1"})
    void messagesOfALostConnectionAreRedelivered() throws Exception {
        Queue queue = queue();
        send(queue, "a");
        Connection lost = connect();
        Message message = receive(lost.createSession(CLIENT).createConsumer(queue));
        no("JMSRedelivered at first", message.getJMSRedelivered());
        org.junit.jupiter.api.Assumptions.assumeTrue(
                provider().kill(lost), "the provider has no way to break a connection");
        Message again = receive(session().createConsumer(queue));
        yes("JMSRedelivered after the connection broke", again.getJMSRedelivered());
        yes("JMSXDeliveryCount must be 2 or more", count(again) >= 2);
    }
}
