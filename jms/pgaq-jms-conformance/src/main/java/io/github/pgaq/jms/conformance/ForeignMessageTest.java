package io.github.pgaq.jms.conformance;

import jakarta.jms.BytesMessage;
import jakarta.jms.DeliveryMode;
import jakarta.jms.JMSException;
import jakarta.jms.MapMessage;
import jakarta.jms.Message;
import jakarta.jms.ObjectMessage;
import jakarta.jms.Queue;
import jakarta.jms.StreamMessage;
import jakarta.jms.TextMessage;
import org.junit.jupiter.api.Test;

/** Messages of another implementation, which each provider must accept. */
@Spec("3.12")
class ForeignMessageTest extends ConformanceTest {
    private TextMessage foreign(String text) throws JMSException {
        TextMessage message = ForeignMessages.create(TextMessage.class);
        message.setText(text);
        return message;
    }

    @Test
    void textArrives() throws JMSException {
        equal("the text of a foreign message", "abc", roundTrip(foreign("abc")).getText());
    }

    @Test
    void objectArrives() throws JMSException {
        ObjectMessage message = ForeignMessages.create(ObjectMessage.class);
        message.setObject("object");
        equal("the object of a foreign message", "object", roundTrip(message).getObject());
    }

    @Test
    void mapArrives() throws JMSException {
        MapMessage message = ForeignMessages.create(MapMessage.class);
        message.setInt("i", 1);
        message.setString("s", "two");
        MapMessage received = roundTrip(message);
        equal("the int of a foreign message", 1, received.getObject("i"));
        equal("the String of a foreign message", "two", received.getObject("s"));
    }

    @Test
    void streamArrives() throws JMSException {
        StreamMessage message = ForeignMessages.create(StreamMessage.class);
        message.writeInt(1);
        message.writeString("two");
        StreamMessage received = roundTrip(message);
        equal("the int of a foreign message", 1, received.readInt());
        equal("the String of a foreign message", "two", received.readString());
    }

    @Test
    void bytesArrive() throws JMSException {
        BytesMessage message = ForeignMessages.create(BytesMessage.class);
        message.writeBytes(new byte[] {1, 2, 3});
        BytesMessage received = roundTrip(message);
        equal("the length of a foreign message", 3L, received.getBodyLength());
        received.readByte();
        equal("its second byte", (byte) 2, received.readByte());
    }

    @Test
    void messageWithoutBodyArrives() throws JMSException {
        Message message = ForeignMessages.create(Message.class);
        message.setJMSType("t");
        equal("JMSType of a foreign message", "t", roundTrip(message).getJMSType());
    }

    @Test
    void headersOfTheClientArrive() throws JMSException {
        Queue reply = queue();
        TextMessage message = foreign("a");
        message.setJMSCorrelationID("c");
        message.setJMSReplyTo(reply);
        message.setJMSType("t");
        Message received = roundTrip(message);
        equal("JMSCorrelationID of a foreign message", "c", received.getJMSCorrelationID());
        equal("JMSReplyTo of a foreign message", reply, received.getJMSReplyTo());
        equal("JMSType of a foreign message", "t", received.getJMSType());
    }

    @Test
    void propertiesArriveWithTheirTypes() throws JMSException {
        TextMessage message = foreign("a");
        message.setIntProperty("i", 1);
        message.setStringProperty("s", "two");
        message.setBooleanProperty("b", true);
        message.setDoubleProperty("d", 2.5);
        Message received = roundTrip(message);
        equal("the int property", 1, received.getObjectProperty("i"));
        equal("the String property", "two", received.getObjectProperty("s"));
        equal("the boolean property", true, received.getObjectProperty("b"));
        equal("the double property", 2.5, received.getObjectProperty("d"));
    }

    @Test
    @Spec("3.4.11")
    void sendSetsTheHeadersOfAForeignMessage() throws JMSException {
        Queue queue = queue();
        TextMessage message = foreign("a");
        long before = clock();
        sender().createProducer(queue).send(message, DeliveryMode.NON_PERSISTENT, 7, 100_000);
        equal("JMSDestination", queue, message.getJMSDestination());
        equal("JMSDeliveryMode", DeliveryMode.NON_PERSISTENT, message.getJMSDeliveryMode());
        equal("JMSPriority", 7, message.getJMSPriority());
        yes("JMSMessageID must be set in a foreign message", message.getJMSMessageID() != null);
        yes("JMSTimestamp must be set in a foreign message", message.getJMSTimestamp() >= before);
        yes("JMSExpiration must be set in a foreign message", message.getJMSExpiration() >= before + 100_000);
    }

    @Test
    void messageIdOfAForeignMessageIsTheReceivedOne() throws JMSException {
        Queue queue = queue();
        TextMessage message = foreign("a");
        sender().createProducer(queue).send(message);
        equal(
                "JMSMessageID of the received message",
                message.getJMSMessageID(),
                receive(session().createConsumer(queue)).getJMSMessageID());
    }

    @Test
    void foreignMessageIsSentInATransaction() throws JMSException {
        Queue queue = queue();
        jakarta.jms.Session transacted = session(TRANSACTED);
        transacted.createProducer(queue).send(foreign("a"));
        transacted.commit();
        equal(
                "the text of a foreign message sent in a transaction",
                "a",
                text(session().createConsumer(queue)));
    }

    @Test
    void foreignMessageIsSentToATopic() throws JMSException {
        jakarta.jms.Topic topic = topic();
        jakarta.jms.MessageConsumer consumer = session().createConsumer(topic);
        sender().createProducer(topic).send(foreign("a"));
        equal("the text of a foreign message sent to a topic", "a", text(consumer));
    }

    @Test
    void foreignMessageIsSentByAContext() throws JMSException {
        Queue queue = queue();
        context().createProducer().setProperty("p", 1).send(queue, foreign("a"));
        Message received = receive(session().createConsumer(queue));
        equal("the property that the producer set", 1, received.getIntProperty("p"));
        equal("the text", "a", ((TextMessage) received).getText());
    }

    @Test
    @Spec("6.2.4")
    void messageOfAnotherSessionCanBeSent() throws JMSException {
        Queue queue = queue();
        Message message = connect().createSession().createTextMessage("a");
        sender().createProducer(queue).send(message);
        equal(
                "the message made by a session of another connection",
                "a",
                text(session().createConsumer(queue)));
    }

    @Test
    @Spec("6.2.4")
    void messageOfAClosedSessionCanBeSent() throws JMSException {
        Queue queue = queue();
        jakarta.jms.Session closed = session(AUTO);
        Message message = closed.createTextMessage("a");
        closed.close();
        sender().createProducer(queue).send(message);
        equal("the message made by a closed session", "a", text(session().createConsumer(queue)));
    }
}
