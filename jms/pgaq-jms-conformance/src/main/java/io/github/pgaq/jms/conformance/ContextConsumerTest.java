package io.github.pgaq.jms.conformance;

import jakarta.jms.BytesMessage;
import jakarta.jms.IllegalStateRuntimeException;
import jakarta.jms.JMSConsumer;
import jakarta.jms.JMSContext;
import jakarta.jms.JMSException;
import jakarta.jms.MapMessage;
import jakarta.jms.Message;
import jakarta.jms.MessageFormatRuntimeException;
import jakarta.jms.MessageListener;
import jakarta.jms.Queue;
import jakarta.jms.StreamMessage;
import jakarta.jms.TextMessage;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Future;
import org.junit.jupiter.api.Test;

/** JMSConsumer: receive, receiveBody, close. */
@Spec("8.6")
class ContextConsumerTest extends ConformanceTest {
    private JMSConsumer consumer(JMSContext context, Message message) throws JMSException {
        Queue queue = queue();
        sender().createProducer(queue).send(message);
        return context.createConsumer(queue);
    }

    private JMSConsumer consumer(Message message) throws JMSException {
        return consumer(context(), message);
    }

    private Message textMessage() throws JMSException {
        return sender().createTextMessage("a");
    }

    private Message mapMessage() throws JMSException {
        MapMessage message = sender().createMapMessage();
        message.setInt("i", 1);
        return message;
    }

    private Message bytesMessage() throws JMSException {
        BytesMessage message = sender().createBytesMessage();
        message.writeBytes(new byte[] {1, 2});
        return message;
    }

    // ---- receive ----------------------------------------------------------------------------------------------

    @Test
    @Spec("8.5")
    void receiveReturnsTheMessage() throws JMSException {
        equal("the text", "a", ((TextMessage) consumer(textMessage()).receive()).getText());
    }

    @Test
    @Spec("8.5")
    void receiveWithTimeoutReturnsTheMessage() throws JMSException {
        equal("the text", "a", ((TextMessage) consumer(textMessage()).receive(WAIT)).getText());
    }

    @Test
    @Spec("8.5")
    void receiveWithTimeoutReturnsNull() throws JMSException {
        isNull(
                "receive(20) of an empty queue",
                context().createConsumer(queue()).receive(20));
    }

    @Test
    @Spec("8.5")
    void receiveNoWaitReturnsNull() throws JMSException {
        isNull(
                "receiveNoWait() of an empty queue",
                context().createConsumer(queue()).receiveNoWait());
    }

    @Test
    @Spec("8.5")
    void receiveNoWaitReturnsTheMessage() throws JMSException {
        Message message = consumer(textMessage()).receiveNoWait();
        equal("the text", "a", ((TextMessage) present("the message", message)).getText());
    }

    // ---- receiveBody ------------------------------------------------------------------------------------------

    @Test
    void bodyOfText() throws JMSException {
        equal("receiveBody(String.class)", "a", consumer(textMessage()).receiveBody(String.class));
    }

    @Test
    void bodyOfTextWithTimeout() throws JMSException {
        equal("receiveBody(String.class, timeout)", "a", consumer(textMessage()).receiveBody(String.class, WAIT));
    }

    @Test
    void bodyOfTextNoWait() throws JMSException {
        equal("receiveBodyNoWait(String.class)", "a", consumer(textMessage()).receiveBodyNoWait(String.class));
    }

    @Test
    void bodyOfTextAsSuperclass() throws JMSException {
        equal("receiveBody(Object.class)", "a", consumer(textMessage()).receiveBody(Object.class, WAIT));
        equal("receiveBody(CharSequence.class)", "a", consumer(textMessage()).receiveBody(CharSequence.class, WAIT));
    }

    @Test
    void bodyOfMap() throws JMSException {
        equal("receiveBody(Map.class)", Map.of("i", 1), consumer(mapMessage()).receiveBody(Map.class, WAIT));
    }

    @Test
    void bodyOfBytes() throws JMSException {
        bytes(
                "receiveBody(byte[].class)",
                new byte[] {1, 2},
                consumer(bytesMessage()).receiveBody(byte[].class, WAIT));
    }

    @Test
    void bodyOfObject() throws JMSException {
        ArrayList<String> list = new ArrayList<>(List.of("a"));
        equal(
                "receiveBody(Serializable.class)",
                list,
                consumer(sender().createObjectMessage(list)).receiveBody(Serializable.class, WAIT));
    }

    @Test
    void bodyWithTimeoutIsNullWithoutMessage() throws JMSException {
        isNull(
                "receiveBody(String.class, 20) of an empty queue",
                context().createConsumer(queue()).receiveBody(String.class, 20));
    }

    @Test
    void bodyNoWaitIsNullWithoutMessage() throws JMSException {
        isNull(
                "receiveBodyNoWait(String.class) of an empty queue",
                context().createConsumer(queue()).receiveBodyNoWait(String.class));
    }

    @Test
    void bodyOfAnotherClassIsRefused() throws JMSException {
        JMSConsumer consumer = consumer(textMessage());
        fails(
                MessageFormatRuntimeException.class,
                "receiveBody(Integer.class) of a text",
                () -> consumer.receiveBody(Integer.class, WAIT));
    }

    @Test
    void bodyOfAnotherClassNoWaitIsRefused() throws JMSException {
        JMSConsumer consumer = consumer(bytesMessage());
        fails(
                MessageFormatRuntimeException.class,
                "receiveBodyNoWait(String.class) of bytes",
                () -> consumer.receiveBodyNoWait(String.class));
    }

    @Test
    void bodyOfAStreamIsRefused() throws JMSException {
        StreamMessage message = sender().createStreamMessage();
        message.writeInt(1);
        JMSConsumer consumer = consumer(message);
        fails(
                MessageFormatRuntimeException.class,
                "receiveBody(Object.class) of a StreamMessage",
                () -> consumer.receiveBody(Object.class, WAIT));
    }

    @Test
    void bodyOfAMessageWithoutBodyIsRefused() throws JMSException {
        JMSConsumer consumer = consumer(sender().createMessage());
        fails(
                MessageFormatRuntimeException.class,
                "receiveBody(Object.class) of a Message without body",
                () -> consumer.receiveBody(Object.class, WAIT));
    }

    @Test
    void bodyOfATextWithoutTextIsRefused() throws JMSException {
        JMSConsumer consumer = consumer(sender().createTextMessage());
        fails(
                MessageFormatRuntimeException.class,
                "receiveBody(String.class) of a TextMessage without text",
                () -> consumer.receiveBody(String.class, WAIT));
    }

    @Test
    void autoAcknowledgeDeliversTheRefusedBodyAgain() throws JMSException {
        JMSConsumer consumer = consumer(context(AUTO), textMessage());
        fails(
                MessageFormatRuntimeException.class,
                "receiveBody(Integer.class) of a text",
                () -> consumer.receiveBody(Integer.class, WAIT));
        TextMessage message = (TextMessage) receive(consumer);
        equal("the message after the refused receiveBody()", "a", message.getText());
        no("JMSRedelivered, as it is no redelivery", message.getJMSRedelivered());
        equal("JMSXDeliveryCount, as it is no redelivery", 1, count(message));
    }

    @Test
    void dupsOkDeliversTheRefusedBodyAgain() throws JMSException {
        JMSConsumer consumer = consumer(context(DUPS), textMessage());
        fails(
                MessageFormatRuntimeException.class,
                "receiveBody(Integer.class) of a text",
                () -> consumer.receiveBody(Integer.class, WAIT));
        equal("the body after the refused receiveBody()", "a", consumer.receiveBody(String.class, WAIT));
    }

    @Test
    void refusedBodyComesBeforeLaterMessages() throws JMSException {
        Queue queue = queue();
        send(queue, "a", "b");
        JMSConsumer consumer = context(AUTO).createConsumer(queue);
        fails(
                MessageFormatRuntimeException.class,
                "receiveBody(Integer.class) of a text",
                () -> consumer.receiveBody(Integer.class, WAIT));
        equal("the first body", "a", consumer.receiveBody(String.class, WAIT));
        equal("the second body", "b", consumer.receiveBody(String.class, WAIT));
    }

    @Test
    void clientAcknowledgeDoesNotDeliverTheRefusedBodyAgain() throws JMSException {
        JMSContext context = context(CLIENT);
        JMSConsumer consumer = consumer(context, textMessage());
        fails(
                MessageFormatRuntimeException.class,
                "receiveBody(Integer.class) of a text",
                () -> consumer.receiveBody(Integer.class, WAIT));
        nothing("the message counts as delivered", consumer);
        context.recover();
        Message message = receive(consumer);
        yes("JMSRedelivered after recover()", message.getJMSRedelivered());
        equal("JMSXDeliveryCount after recover()", 2, count(message));
    }

    @Test
    void transactionDoesNotDeliverTheRefusedBodyAgain() throws JMSException {
        JMSContext context = context(TRANSACTED);
        JMSConsumer consumer = consumer(context, textMessage());
        fails(
                MessageFormatRuntimeException.class,
                "receiveBody(Integer.class) of a text",
                () -> consumer.receiveBody(Integer.class, WAIT));
        nothing("the message counts as delivered", consumer);
        context.rollback();
        Message message = receive(consumer);
        yes("JMSRedelivered after rollback()", message.getJMSRedelivered());
        equal("JMSXDeliveryCount after rollback()", 2, count(message));
    }

    @Test
    void receivedBodyIsAcknowledged() throws JMSException {
        Queue queue = queue();
        send(queue, "a");
        JMSContext context = context(AUTO);
        context.createConsumer(queue).receiveBody(String.class, WAIT);
        context.close();
        send(queue, "marker");
        equal("the first message that is left", "marker", text(session().createConsumer(queue)));
    }

    // ---- the rest ---------------------------------------------------------------------------------------------

    @Test
    @Spec("8.1")
    void selectorIsReturned() throws JMSException {
        JMSContext context = context();
        equal(
                "getMessageSelector()",
                "n = 1",
                context.createConsumer(queue(), "n = 1").getMessageSelector());
        isNull(
                "getMessageSelector() without selector",
                context.createConsumer(queue()).getMessageSelector());
    }

    @Test
    @Spec("8.7")
    void listenerIsReturned() throws JMSException {
        JMSConsumer consumer = context().createConsumer(queue());
        MessageListener listener = message -> {};
        consumer.setMessageListener(listener);
        equal("getMessageListener()", listener, consumer.getMessageListener());
    }

    @Test
    @Spec("8.8")
    void closeEndsABlockedReceive() throws Exception {
        JMSConsumer consumer = context().createConsumer(queue());
        Future<Message> receive = thread(() -> consumer.receive());
        pending("receive() of an empty queue", receive);
        consumer.close();
        isNull("receive() ended by close()", result("receive()", receive));
    }

    @Test
    @Spec("8.8")
    void closeEndsABlockedReceiveBody() throws Exception {
        JMSConsumer consumer = context().createConsumer(queue());
        Future<String> receive = thread(() -> consumer.receiveBody(String.class));
        pending("receiveBody() of an empty queue", receive);
        consumer.close();
        isNull("receiveBody() ended by close()", result("receiveBody()", receive));
    }

    @Test
    @Spec("8.8")
    void closedConsumerRefusesEachMethod() throws JMSException {
        JMSConsumer consumer = context().createConsumer(queue());
        consumer.close();
        Class<IllegalStateRuntimeException> error = IllegalStateRuntimeException.class;
        fails(error, "receive()", () -> consumer.receive());
        fails(error, "receive(timeout)", () -> consumer.receive(1));
        fails(error, "receiveNoWait()", consumer::receiveNoWait);
        fails(error, "receiveBody()", () -> consumer.receiveBody(String.class));
        fails(error, "receiveBody(timeout)", () -> consumer.receiveBody(String.class, 1));
        fails(error, "receiveBodyNoWait()", () -> consumer.receiveBodyNoWait(String.class));
        fails(error, "getMessageSelector()", consumer::getMessageSelector);
        fails(error, "setMessageListener()", () -> consumer.setMessageListener(null));
    }

    @Test
    @Spec("8.8")
    void closeIsIdempotent() throws JMSException {
        JMSConsumer consumer = context().createConsumer(queue());
        consumer.close();
        works("close() of a closed consumer", consumer::close);
    }
}
