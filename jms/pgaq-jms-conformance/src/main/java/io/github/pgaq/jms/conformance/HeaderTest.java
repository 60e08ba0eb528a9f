package io.github.pgaq.jms.conformance;

import jakarta.jms.DeliveryMode;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.Queue;
import jakarta.jms.Session;
import jakarta.jms.TemporaryQueue;
import jakarta.jms.TemporaryTopic;
import jakarta.jms.TextMessage;
import jakarta.jms.Topic;
import java.nio.charset.StandardCharsets;
import java.util.HashSet;
import java.util.Set;
import org.junit.jupiter.api.Test;

/** Header fields: who sets them, and what the receiver sees. */
@Spec("3.4")
class HeaderTest extends ConformanceTest {
    private Message sent() throws JMSException {
        Message message = sender().createTextMessage("a");
        sender().createProducer(queue()).send(message);
        return message;
    }

    // ---- JMSDestination ---------------------------------------------------------------------------------------

    @Test
    @Spec("3.4.1")
    void destinationIsSetBySend() throws JMSException {
        Queue queue = queue();
        Message message = sender().createMessage();
        sender().createProducer(queue).send(message);
        equal("JMSDestination after send()", queue, message.getJMSDestination());
    }

    @Test
    @Spec("3.4.1")
    void destinationIsIgnoredOnSend() throws JMSException {
        Queue queue = queue();
        Message message = sender().createMessage();
        message.setJMSDestination(queue());
        sender().createProducer(queue).send(message);
        equal("JMSDestination after send()", queue, message.getJMSDestination());
    }

    @Test
    @Spec("3.4.1")
    void destinationOfAReceivedMessageIsTheQueueItWasSentTo() throws JMSException {
        Queue queue = queue();
        send(queue, "a");
        Message message = receive(session().createConsumer(queue));
        yes("JMSDestination of a message from a queue must be a Queue", message.getJMSDestination() instanceof Queue);
        equal("the name of JMSDestination", queue.getQueueName(), ((Queue) message.getJMSDestination()).getQueueName());
    }

    @Test
    @Spec("3.4.1")
    void destinationOfAReceivedMessageIsTheTopicItWasSentTo() throws JMSException {
        Topic topic = topic();
        MessageConsumer consumer = session().createConsumer(topic);
        send(topic, "a");
        Message message = receive(consumer);
        yes("JMSDestination of a message from a topic must be a Topic", message.getJMSDestination() instanceof Topic);
        equal("the name of JMSDestination", topic.getTopicName(), ((Topic) message.getJMSDestination()).getTopicName());
    }

    @Test
    @Spec("3.4.1")
    void destinationOfAReceivedMessageEqualsTheOneSent() throws JMSException {
        Queue queue = queue();
        send(queue, "a");
        equal(
                "JMSDestination of the received message",
                queue,
                receive(session().createConsumer(queue)).getJMSDestination());
    }

    @Test
    @Spec("3.4.1")
    void destinationOfAReceivedMessageCanBeSentTo() throws JMSException {
        Queue queue = queue();
        send(queue, "a");
        MessageConsumer consumer = session().createConsumer(queue);
        Message message = receive(consumer);
        send(message.getJMSDestination(), "b");
        equal("the message sent to the JMSDestination of another", "b", text(consumer));
    }

    // ---- JMSDeliveryMode --------------------------------------------------------------------------------------

    @Test
    @Spec("3.4.2")
    void deliveryModeIsSetBySend() throws JMSException {
        Message message = sender().createMessage();
        MessageProducer producer = sender().createProducer(queue());
        producer.setDeliveryMode(DeliveryMode.NON_PERSISTENT);
        producer.send(message);
        equal("JMSDeliveryMode after send()", DeliveryMode.NON_PERSISTENT, message.getJMSDeliveryMode());
    }

    @Test
    @Spec("3.4.2")
    void deliveryModeIsIgnoredOnSend() throws JMSException {
        Message message = sender().createMessage();
        message.setJMSDeliveryMode(DeliveryMode.NON_PERSISTENT);
        sender().createProducer(queue()).send(message);
        equal("JMSDeliveryMode after send()", DeliveryMode.PERSISTENT, message.getJMSDeliveryMode());
    }

    @Test
    @Spec("3.4.2")
    void persistentDeliveryModeArrives() throws JMSException {
        Message message = roundTrip(sender().createMessage());
        equal("JMSDeliveryMode of the received message", DeliveryMode.PERSISTENT, message.getJMSDeliveryMode());
    }

    @Test
    @Spec("3.4.2")
    void nonPersistentDeliveryModeArrives() throws JMSException {
        Queue queue = queue();
        sender().createProducer(queue).send(sender().createMessage(), DeliveryMode.NON_PERSISTENT, 4, 0);
        equal(
                "JMSDeliveryMode of the received message",
                DeliveryMode.NON_PERSISTENT,
                receive(session().createConsumer(queue)).getJMSDeliveryMode());
    }

    // ---- JMSMessageID -----------------------------------------------------------------------------------------

    @Test
    @Spec("3.4.3")
    void messageIdBeginsWithId() throws JMSException {
        String id = sent().getJMSMessageID();
        yes("JMSMessageID must begin with \"ID:\", but is " + id, id != null && id.startsWith("ID:"));
    }

    @Test
    @Spec("3.4.3")
    void messageIdIsNullBeforeSend() throws JMSException {
        isNull(
                "JMSMessageID of a message that was not sent",
                session().createTextMessage().getJMSMessageID());
    }

    @Test
    @Spec("3.4.3")
    void messageIdIsIgnoredOnSend() throws JMSException {
        Message message = sender().createMessage();
        message.setJMSMessageID("ID:mine");
        sender().createProducer(queue()).send(message);
        no("send() must replace JMSMessageID", "ID:mine".equals(message.getJMSMessageID()));
    }

    @Test
    @Spec("3.4.3")
    void messageIdsAreUnique() throws JMSException {
        MessageProducer producer = sender().createProducer(queue());
        Set<String> ids = new HashSet<>();
        for (int i = 0; i < 20; i++) {
            Message message = sender().createMessage();
            producer.send(message);
            ids.add(message.getJMSMessageID());
        }
        equal("different JMSMessageIDs of 20 messages", 20, ids.size());
    }

    @Test
    @Spec("3.4.3")
    void messageSentTwiceHasTwoIds() throws JMSException {
        MessageProducer producer = sender().createProducer(queue());
        Message message = sender().createMessage();
        producer.send(message);
        String first = message.getJMSMessageID();
        producer.send(message);
        no("the second send() of a message must give it a new JMSMessageID", first.equals(message.getJMSMessageID()));
    }

    @Test
    @Spec("3.4.3")
    void messageIdArrives() throws JMSException {
        Queue queue = queue();
        Message message = sender().createMessage();
        sender().createProducer(queue).send(message);
        equal(
                "JMSMessageID of the received message",
                message.getJMSMessageID(),
                receive(session().createConsumer(queue)).getJMSMessageID());
    }

    @Test
    @Spec("3.4.3")
    void copiesForTwoSubscribersHaveTheSameId() throws JMSException {
        Topic topic = topic();
        MessageConsumer one = session().createConsumer(topic);
        MessageConsumer two = session().createConsumer(topic);
        send(topic, "a");
        equal(
                "JMSMessageID of the copies of one message",
                receive(one).getJMSMessageID(),
                receive(two).getJMSMessageID());
    }

    @Test
    @Spec("3.4.3")
    void disabledMessageIdIsNullOrValid() throws JMSException {
        Queue queue = queue();
        MessageProducer producer = sender().createProducer(queue);
        producer.setDisableMessageID(true);
        Message message = sender().createMessage();
        producer.send(message);
        String id = receive(session().createConsumer(queue)).getJMSMessageID();
        yes(
                "with disabled message ids JMSMessageID must be null or a normal id, but is " + id,
                id == null || id.startsWith("ID:"));
    }

    // ---- JMSTimestamp -----------------------------------------------------------------------------------------

    @Test
    @Spec("3.4.4")
    void timestampLiesBetweenCallAndReturn() throws JMSException {
        MessageProducer producer = sender().createProducer(queue());
        Message message = sender().createMessage();
        long before = clock();
        producer.send(message);
        long after = clock();
        long time = message.getJMSTimestamp();
        yes(
                "JMSTimestamp must lie between the call and the return of send(): " + before + " <= " + time + " <= "
                        + after,
                before <= time && time <= after);
    }

    @Test
    @Spec("3.4.4")
    void timestampIsIgnoredOnSend() throws JMSException {
        Message message = sender().createMessage();
        message.setJMSTimestamp(17);
        sender().createProducer(queue()).send(message);
        no("send() must replace JMSTimestamp", message.getJMSTimestamp() == 17);
    }

    @Test
    @Spec("3.4.4")
    void timestampArrives() throws JMSException {
        Queue queue = queue();
        Message message = sender().createMessage();
        sender().createProducer(queue).send(message);
        equal(
                "JMSTimestamp of the received message",
                message.getJMSTimestamp(),
                receive(session().createConsumer(queue)).getJMSTimestamp());
    }

    @Test
    @Spec("3.4.4")
    void timestampOfATransactedSendIsTheTimeOfTheSend() throws Exception {
        Queue queue = queue();
        Session transacted = session(TRANSACTED);
        Message message = transacted.createMessage();
        transacted.createProducer(queue).send(message);
        long sent = clock();
        Thread.sleep(20);
        transacted.commit();
        long time = receive(session().createConsumer(queue)).getJMSTimestamp();
        yes("JMSTimestamp must be the time of send(), not of commit()", time <= sent);
    }

    @Test
    @Spec("3.4.4")
    void disabledTimestampIsZeroOrNormal() throws JMSException {
        Queue queue = queue();
        MessageProducer producer = sender().createProducer(queue);
        producer.setDisableMessageTimestamp(true);
        long before = clock();
        producer.send(sender().createMessage());
        long time = receive(session().createConsumer(queue)).getJMSTimestamp();
        yes(
                "with disabled timestamps JMSTimestamp must be 0 or the normal value, but is " + time,
                time == 0 || before <= time && time <= clock());
    }

    // ---- JMSCorrelationID -------------------------------------------------------------------------------------

    @Test
    @Spec("3.4.5")
    void correlationIdArrives() throws JMSException {
        Message message = sender().createMessage();
        message.setJMSCorrelationID("order 7");
        equal(
                "JMSCorrelationID of the received message",
                "order 7",
                roundTrip(message).getJMSCorrelationID());
    }

    @Test
    @Spec("3.4.5")
    void correlationIdCanBeAMessageId() throws JMSException {
        Message request = sent();
        Message reply = sender().createMessage();
        reply.setJMSCorrelationID(request.getJMSMessageID());
        equal(
                "JMSCorrelationID of the reply",
                request.getJMSMessageID(),
                roundTrip(reply).getJMSCorrelationID());
    }

    @Test
    @Spec("3.4.5")
    void correlationIdIsNullUnlessSet() throws JMSException {
        isNull(
                "JMSCorrelationID that was not set",
                roundTrip(sender().createMessage()).getJMSCorrelationID());
    }

    @Test
    @Spec("3.4.5")
    void correlationIdCanBeSetToNullAgain() throws JMSException {
        Message message = sender().createMessage();
        message.setJMSCorrelationID("a");
        message.setJMSCorrelationID(null);
        isNull("JMSCorrelationID that was set to null", roundTrip(message).getJMSCorrelationID());
    }

    @Test
    @Spec("3.4.5")
    void correlationIdKeepsUnicode() throws JMSException {
        Message message = sender().createMessage();
        message.setJMSCorrelationID("größe 'x' \"y\" \u20ac");
        equal(
                "JMSCorrelationID of the received message",
                "größe 'x' \"y\" \u20ac",
                roundTrip(message).getJMSCorrelationID());
    }

    @Test
    @Spec("3.4.5")
    void correlationIdAsBytesArrivesOrIsUnsupported() throws JMSException {
        byte[] id = "order 7".getBytes(StandardCharsets.UTF_8);
        Message message = sender().createMessage();
        try {
            message.setJMSCorrelationIDAsBytes(id);
        } catch (UnsupportedOperationException e) {
            return;
        }
        bytes(
                "JMSCorrelationIDAsBytes of the received message",
                id,
                roundTrip(message).getJMSCorrelationIDAsBytes());
    }

    // ---- JMSReplyTo -------------------------------------------------------------------------------------------

    @Test
    @Spec("3.4.6")
    void replyToQueueArrives() throws JMSException {
        Queue reply = queue();
        Message message = sender().createMessage();
        message.setJMSReplyTo(reply);
        Message received = roundTrip(message);
        yes("JMSReplyTo must be a Queue again", received.getJMSReplyTo() instanceof Queue);
        equal("JMSReplyTo of the received message", reply, received.getJMSReplyTo());
    }

    @Test
    @Spec("3.4.6")
    void replyToTopicArrives() throws JMSException {
        Topic reply = topic();
        Message message = sender().createMessage();
        message.setJMSReplyTo(reply);
        Message received = roundTrip(message);
        yes("JMSReplyTo must be a Topic again", received.getJMSReplyTo() instanceof Topic);
        equal("JMSReplyTo of the received message", reply, received.getJMSReplyTo());
    }

    @Test
    @Spec("3.4.6")
    void replyToATopicIsNotAQueue() throws JMSException {
        Message message = sender().createMessage();
        message.setJMSReplyTo(topic());
        no("JMSReplyTo with a topic must not be a Queue too", roundTrip(message).getJMSReplyTo() instanceof Queue);
    }

    @Test
    @Spec("3.4.6")
    void replyToTemporaryQueueArrives() throws JMSException {
        TemporaryQueue reply = session().createTemporaryQueue();
        Message message = sender().createMessage();
        message.setJMSReplyTo(reply);
        Queue received = (Queue) roundTrip(message).getJMSReplyTo();
        MessageConsumer consumer = session().createConsumer(reply);
        send(received, "reply");
        equal("the reply sent to JMSReplyTo", "reply", text(consumer));
    }

    @Test
    @Spec("3.4.6")
    void replyToTemporaryTopicArrives() throws JMSException {
        TemporaryTopic reply = session().createTemporaryTopic();
        MessageConsumer consumer = session().createConsumer(reply);
        Message message = sender().createMessage();
        message.setJMSReplyTo(reply);
        send(roundTrip(message).getJMSReplyTo(), "reply");
        equal("the reply sent to JMSReplyTo", "reply", text(consumer));
    }

    @Test
    @Spec("3.4.6")
    void replyToIsNullUnlessSet() throws JMSException {
        isNull(
                "JMSReplyTo that was not set",
                roundTrip(sender().createMessage()).getJMSReplyTo());
    }

    @Test
    @Spec("3.4.6")
    void replyToCanBeSetToNullAgain() throws JMSException {
        Message message = sender().createMessage();
        message.setJMSReplyTo(queue());
        message.setJMSReplyTo(null);
        isNull("JMSReplyTo that was set to null", roundTrip(message).getJMSReplyTo());
    }

    // ---- JMSRedelivered ---------------------------------------------------------------------------------------

    @Test
    @Spec("3.4.7")
    void redeliveredIsFalseAtTheFirstDelivery() throws JMSException {
        no(
                "JMSRedelivered of a message delivered for the first time",
                roundTrip(sender().createMessage()).getJMSRedelivered());
    }

    @Test
    @Spec("3.4.7")
    void redeliveredHasNoMeaningOnSend() throws JMSException {
        Message message = sender().createMessage();
        message.setJMSRedelivered(true);
        no(
                "JMSRedelivered set by the sender must not arrive",
                roundTrip(message).getJMSRedelivered());
    }

    // ---- JMSType ----------------------------------------------------------------------------------------------

    @Test
    @Spec("3.4.8")
    void typeArrives() throws JMSException {
        Message message = sender().createMessage();
        message.setJMSType("car");
        equal("JMSType of the received message", "car", roundTrip(message).getJMSType());
    }

    @Test
    @Spec("3.4.8")
    void typeIsNullUnlessSet() throws JMSException {
        isNull("JMSType that was not set", roundTrip(sender().createMessage()).getJMSType());
    }

    // ---- JMSExpiration ----------------------------------------------------------------------------------------

    @Test
    @Spec("3.4.9")
    void expirationIsZeroByDefault() throws JMSException {
        equal(
                "JMSExpiration without time to live",
                0L,
                roundTrip(sender().createMessage()).getJMSExpiration());
    }

    @Test
    @Spec("3.4.9")
    void expirationIsTimeOfSendPlusTimeToLive() throws JMSException {
        MessageProducer producer = sender().createProducer(queue());
        producer.setTimeToLive(100_000);
        Message message = sender().createMessage();
        long before = clock();
        producer.send(message);
        long after = clock();
        long expiration = message.getJMSExpiration();
        yes(
                "JMSExpiration must be the time of send() and 100 s, but is " + (expiration - before) + " ms after it",
                before + 100_000 <= expiration && expiration <= after + 100_000);
    }

    @Test
    @Spec("3.4.9")
    void expirationArrives() throws JMSException {
        Queue queue = queue();
        Message message = sender().createMessage();
        sender().createProducer(queue).send(message, DeliveryMode.PERSISTENT, 4, 100_000);
        equal(
                "JMSExpiration of the received message",
                message.getJMSExpiration(),
                receive(session().createConsumer(queue)).getJMSExpiration());
    }

    @Test
    @Spec("3.4.9")
    void expirationIsIgnoredOnSend() throws JMSException {
        Message message = sender().createMessage();
        message.setJMSExpiration(clock() + 1_000_000);
        sender().createProducer(queue()).send(message);
        equal("JMSExpiration after send() without time to live", 0L, message.getJMSExpiration());
    }

    // ---- JMSPriority ------------------------------------------------------------------------------------------

    @Test
    @Spec("3.4.10")
    void priorityIsSetBySend() throws JMSException {
        Message message = sender().createMessage();
        sender().createProducer(queue()).send(message, DeliveryMode.PERSISTENT, 7, 0);
        equal("JMSPriority after send()", 7, message.getJMSPriority());
    }

    @Test
    @Spec("3.4.10")
    void priorityIsIgnoredOnSend() throws JMSException {
        Message message = sender().createMessage();
        message.setJMSPriority(9);
        sender().createProducer(queue()).send(message);
        equal("JMSPriority after send() by a producer of priority 4", 4, message.getJMSPriority());
    }

    @Test
    @Spec("3.4.10")
    void eachPriorityArrives() throws JMSException {
        Queue queue = queue();
        MessageProducer producer = sender().createProducer(queue);
        MessageConsumer consumer = session().createConsumer(queue);
        for (int priority = 0; priority <= 9; priority++) {
            producer.send(sender().createMessage(), DeliveryMode.PERSISTENT, priority, 0);
            equal(
                    "JMSPriority of the received message",
                    priority,
                    receive(consumer).getJMSPriority());
        }
    }

    // ---- JMSDeliveryTime --------------------------------------------------------------------------------------

    @Test
    @Spec("3.4.13")
    void deliveryTimeIsTimeOfSendPlusDelay() throws JMSException {
        MessageProducer producer = sender().createProducer(queue());
        producer.setDeliveryDelay(50_000);
        Message message = sender().createMessage();
        long before = clock();
        producer.send(message);
        long after = clock();
        long time = message.getJMSDeliveryTime();
        yes(
                "JMSDeliveryTime must be the time of send() and 50 s, but is " + (time - before) + " ms after it",
                before + 50_000 <= time && time <= after + 50_000);
    }

    @Test
    @Spec("3.4.13")
    void deliveryTimeWithoutDelayIsTheTimeOfTheSend() throws JMSException {
        MessageProducer producer = sender().createProducer(queue());
        Message message = sender().createMessage();
        long before = clock();
        producer.send(message);
        long after = clock();
        long time = message.getJMSDeliveryTime();
        yes(
                "JMSDeliveryTime without a delay must be the time of send(), but is " + (time - before)
                        + " ms after it",
                before <= time && time <= after);
    }

    @Test
    @Spec("3.4.13")
    void deliveryTimeIsIgnoredOnSend() throws JMSException {
        Message message = sender().createMessage();
        message.setJMSDeliveryTime(clock() + 1_000_000);
        sender().createProducer(queue()).send(message);
        yes(
                "JMSDeliveryTime set by the client must be replaced by send()",
                message.getJMSDeliveryTime() < clock() + 500_000);
    }

    @Test
    @Spec("3.4.13")
    void deliveryTimeArrives() throws JMSException {
        Queue queue = queue();
        MessageProducer producer = sender().createProducer(queue);
        producer.setDeliveryDelay(100);
        Message message = sender().createMessage();
        producer.send(message);
        equal(
                "JMSDeliveryTime of the received message",
                message.getJMSDeliveryTime(),
                receive(session().createConsumer(queue)).getJMSDeliveryTime());
    }

    // ---- all --------------------------------------------------------------------------------------------------

    @Test
    @Spec("3.10")
    void headersOfAReceivedMessageCanBeChanged() throws JMSException {
        Message message = roundTrip(sender().createTextMessage("a"));
        works("setJMSType of a received message", () -> message.setJMSType("changed"));
        works("setJMSCorrelationID of a received message", () -> message.setJMSCorrelationID("changed"));
        equal("JMSType after it was changed", "changed", message.getJMSType());
    }

    @Test
    @Spec("3.9")
    void sentMessageCanBeChangedWithoutEffect() throws JMSException {
        Queue queue = queue();
        TextMessage message = sender().createTextMessage("sent");
        message.setStringProperty("p", "sent");
        message.setJMSType("sent");
        sender().createProducer(queue).send(message);
        message.setText("changed");
        message.setStringProperty("p", "changed");
        message.setJMSType("changed");
        TextMessage received = (TextMessage) receive(session().createConsumer(queue));
        equal(
                "body, property and type of the message that was sent",
                "sent sent sent",
                received.getText() + " " + received.getStringProperty("p") + " " + received.getJMSType());
    }

    @Test
    @Spec("3.9")
    void sentMessageCanBeChangedBeforeCommitWithoutEffect() throws JMSException {
        Queue queue = queue();
        Session transacted = session(TRANSACTED);
        TextMessage message = transacted.createTextMessage("sent");
        transacted.createProducer(queue).send(message);
        message.setText("changed");
        transacted.commit();
        equal("the body at the time of send()", "sent", text(session().createConsumer(queue)));
    }

    @Test
    @Spec("3.9")
    void sameMessageCanBeSentSeveralTimes() throws JMSException {
        Queue queue = queue();
        MessageProducer producer = sender().createProducer(queue);
        TextMessage message = sender().createTextMessage("one");
        producer.send(message);
        message.setText("two");
        producer.send(message);
        producer.send(message);
        equal(
                "what was sent",
                java.util.List.of("one", "two", "two"),
                texts(session().createConsumer(queue), 3));
    }

    @Test
    @Spec("3.9")
    void receivedMessageCanBeSentOn() throws JMSException {
        Message message = sender().createTextMessage("a");
        message.setIntProperty("p", 5);
        TextMessage second = roundTrip(roundTrip((TextMessage) message));
        equal("body of a message that was received and sent on", "a", second.getText());
        equal("property of a message that was received and sent on", 5, second.getIntProperty("p"));
    }

    @Test
    @Spec("3.10")
    void receivedMessageCanBeChangedAndSentOn() throws JMSException {
        Message sent = sender().createTextMessage("a");
        sent.setIntProperty("p", 5);
        TextMessage received = (TextMessage) roundTrip(sent);
        received.clearBody();
        received.setText("b");
        TextMessage second = roundTrip(received);
        equal("the new body", "b", second.getText());
        equal("the property, which was not cleared", 5, second.getIntProperty("p"));
    }
}
