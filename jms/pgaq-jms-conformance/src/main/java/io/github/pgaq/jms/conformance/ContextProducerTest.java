package io.github.pgaq.jms.conformance;

import jakarta.jms.BytesMessage;
import jakarta.jms.DeliveryMode;
import jakarta.jms.InvalidDestinationRuntimeException;
import jakarta.jms.JMSConsumer;
import jakarta.jms.JMSContext;
import jakarta.jms.JMSException;
import jakarta.jms.JMSProducer;
import jakarta.jms.JMSRuntimeException;
import jakarta.jms.MapMessage;
import jakarta.jms.Message;
import jakarta.jms.MessageFormatRuntimeException;
import jakarta.jms.MessageNotWriteableRuntimeException;
import jakarta.jms.ObjectMessage;
import jakarta.jms.Queue;
import jakarta.jms.TextMessage;
import java.io.Serializable;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Date;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.junit.jupiter.api.Test;

/** JMSProducer: bodies, options, headers, properties. */
@Spec("api:JMSProducer")
class ContextProducerTest extends ConformanceTest {
    private final JMSContext context = context();
    private final JMSProducer producer = context.createProducer();

    private interface Sending {
        void send(Queue queue);
    }

    /** The message that the action sends. */
    @SuppressWarnings("unchecked")
    private <M extends Message> M sent(Sending action) throws JMSException {
        Queue queue = queue();
        action.send(queue);
        try (JMSConsumer consumer = context.createConsumer(queue)) {
            return (M) receive(consumer);
        }
    }

    // ---- bodies -----------------------------------------------------------------------------------------------

    @Test
    @Spec("7.2")
    void stringIsSentAsText() throws JMSException {
        TextMessage message = sent(queue -> producer.send(queue, "a"));
        equal("the text", "a", message.getText());
    }

    @Test
    @Spec("7.2")
    void bytesAreSentAsBytesMessage() throws JMSException {
        BytesMessage message = sent(queue -> producer.send(queue, new byte[] {1, 2}));
        bytes("the bytes", new byte[] {1, 2}, message.getBody(byte[].class));
    }

    @Test
    @Spec("7.2")
    void mapIsSentAsMapMessage() throws JMSException {
        Map<String, Object> map = new HashMap<>();
        map.put("i", 1);
        map.put("s", "two");
        MapMessage message = sent(queue -> producer.send(queue, map));
        equal("the map", map, message.getBody(Map.class));
    }

    @Test
    @Spec("7.2")
    void serializableIsSentAsObjectMessage() throws JMSException {
        ArrayList<String> list = new ArrayList<>(List.of("a"));
        ObjectMessage message = sent(queue -> producer.send(queue, (Serializable) list));
        equal("the object", list, message.getObject());
    }

    @Test
    @Spec("7.2")
    void messageIsSent() throws JMSException {
        TextMessage message = sent(queue -> producer.send(queue, context.createTextMessage("a")));
        equal("the text", "a", message.getText());
    }

    @Test
    void nullStringIsSentAsTextWithoutBody() throws JMSException {
        TextMessage message = sent(queue -> producer.send(queue, (String) null));
        isNull("the text", message.getText());
    }

    @Test
    void nullMapIsSentAsMapWithoutEntries() throws JMSException {
        MapMessage message = sent(queue -> producer.send(queue, (Map<String, Object>) null));
        no("the map must have no entries", message.getMapNames().hasMoreElements());
    }

    @Test
    void nullBytesAreSentAsBytesWithoutBody() throws JMSException {
        BytesMessage message = sent(queue -> producer.send(queue, (byte[]) null));
        equal("the length", 0L, message.getBodyLength());
    }

    @Test
    void nullSerializableIsSentAsObjectWithoutBody() throws JMSException {
        ObjectMessage message = sent(queue -> producer.send(queue, (Serializable) null));
        isNull("the object", message.getObject());
    }

    @Test
    @Spec("10.3")
    void mapWithAnUnsupportedValueIsRefused() throws JMSException {
        Queue queue = queue();
        fails(
                MessageFormatRuntimeException.class,
                "send() of a map with a Date",
                () -> producer.send(queue, Map.of("d", (Object) new Date())));
    }

    @Test
    @Spec("10.3")
    void nullMessageIsRefused() throws JMSException {
        Queue queue = queue();
        fails(
                MessageFormatRuntimeException.class,
                "send(queue, (Message) null)",
                () -> producer.send(queue, (Message) null));
    }

    @Test
    @Spec("10.3")
    void missingQueueIsRefused() throws JMSException {
        fails(
                InvalidDestinationRuntimeException.class,
                "a send to a queue that does not exist",
                () -> producer.send(context.createQueue(unique("missing")), "a"));
    }

    // ---- options ----------------------------------------------------------------------------------------------

    @Test
    void defaultsAreAsSpecified() {
        equal("getDeliveryMode()", DeliveryMode.PERSISTENT, producer.getDeliveryMode());
        equal("getPriority()", 4, producer.getPriority());
        equal("getTimeToLive()", 0L, producer.getTimeToLive());
        equal("getDeliveryDelay()", 0L, producer.getDeliveryDelay());
        no("getDisableMessageID()", producer.getDisableMessageID());
        no("getDisableMessageTimestamp()", producer.getDisableMessageTimestamp());
        isNull("getAsync()", producer.getAsync());
        isNull("getJMSCorrelationID()", producer.getJMSCorrelationID());
        isNull("getJMSType()", producer.getJMSType());
        isNull("getJMSReplyTo()", producer.getJMSReplyTo());
    }

    @Test
    @Spec("7.10")
    void settersReturnTheProducer() throws JMSException {
        JMSProducer chained = producer.setDeliveryMode(DeliveryMode.NON_PERSISTENT)
                .setPriority(9)
                .setTimeToLive(60_000)
                .setDeliveryDelay(1)
                .setDisableMessageID(true)
                .setDisableMessageTimestamp(true)
                .setAsync(null)
                .setProperty("p", 1)
                .setJMSCorrelationID("c")
                .setJMSType("t")
                .setJMSReplyTo(queue())
                .clearProperties();
        equal("the result of the chain", producer, chained);
    }

    @Test
    @Spec("7.10")
    void sendReturnsTheProducer() throws JMSException {
        equal("the result of send()", producer, producer.send(queue(), "a"));
    }

    @Test
    @Spec("7.4")
    void optionsAreReturned() {
        producer.setDeliveryMode(DeliveryMode.NON_PERSISTENT)
                .setPriority(9)
                .setTimeToLive(1000)
                .setDeliveryDelay(2000)
                .setDisableMessageID(true)
                .setDisableMessageTimestamp(true);
        equal("getDeliveryMode()", DeliveryMode.NON_PERSISTENT, producer.getDeliveryMode());
        equal("getPriority()", 9, producer.getPriority());
        equal("getTimeToLive()", 1000L, producer.getTimeToLive());
        equal("getDeliveryDelay()", 2000L, producer.getDeliveryDelay());
        yes("getDisableMessageID()", producer.getDisableMessageID());
        yes("getDisableMessageTimestamp()", producer.getDisableMessageTimestamp());
    }

    @Test
    @Spec("7.4")
    void optionsArrive() throws JMSException {
        Message message = sent(queue -> producer.setDeliveryMode(DeliveryMode.NON_PERSISTENT)
                .setPriority(7)
                .setTimeToLive(60_000)
                .send(queue, "a"));
        equal("JMSDeliveryMode", DeliveryMode.NON_PERSISTENT, message.getJMSDeliveryMode());
        equal("JMSPriority", 7, message.getJMSPriority());
        yes("JMSExpiration must be set", message.getJMSExpiration() > clock());
    }

    @Test
    @Spec("7.9")
    void deliveryDelayHoldsTheMessageBack() throws JMSException {
        long before = clock();
        sent(queue -> producer.setDeliveryDelay(300).send(queue, "a"));
        yes("the message must not come before its delivery time", clock() >= before + 300);
    }

    @Test
    void invalidPriorityIsRefused() {
        fails(JMSRuntimeException.class, "setPriority(10)", () -> producer.setPriority(10));
        fails(JMSRuntimeException.class, "setPriority(-1)", () -> producer.setPriority(-1));
    }

    @Test
    void invalidDeliveryModeIsRefused() {
        fails(JMSRuntimeException.class, "setDeliveryMode(7)", () -> producer.setDeliveryMode(7));
    }

    // ---- headers ----------------------------------------------------------------------------------------------

    @Test
    @Spec("7.6")
    void headersArrive() throws JMSException {
        Queue reply = queue();
        Message message = sent(queue -> producer.setJMSCorrelationID("c")
                .setJMSType("t")
                .setJMSReplyTo(reply)
                .send(queue, "a"));
        equal("JMSCorrelationID", "c", message.getJMSCorrelationID());
        equal("JMSType", "t", message.getJMSType());
        equal("JMSReplyTo", reply, message.getJMSReplyTo());
    }

    @Test
    @Spec("7.6")
    void headersOfTheProducerOverrideTheMessage() throws JMSException {
        Message original = context.createMessage();
        original.setJMSCorrelationID("old");
        original.setJMSType("old");
        Message message = sent(
                queue -> producer.setJMSCorrelationID("new").setJMSType("new").send(queue, original));
        equal("JMSCorrelationID", "new", message.getJMSCorrelationID());
        equal("JMSType", "new", message.getJMSType());
    }

    @Test
    @Spec("7.6")
    void headersOfTheMessageStayIfTheProducerHasNone() throws JMSException {
        Message original = context.createMessage();
        original.setJMSCorrelationID("old");
        Message message = sent(queue -> producer.setJMSType("new").send(queue, original));
        equal("JMSCorrelationID", "old", message.getJMSCorrelationID());
        equal("JMSType", "new", message.getJMSType());
    }

    @Test
    void headersAreReturned() throws JMSException {
        Queue reply = queue();
        producer.setJMSCorrelationID("c").setJMSType("t").setJMSReplyTo(reply);
        equal("getJMSCorrelationID()", "c", producer.getJMSCorrelationID());
        equal("getJMSType()", "t", producer.getJMSType());
        equal("getJMSReplyTo()", reply, producer.getJMSReplyTo());
    }

    @Test
    @Spec("3.4.5")
    void correlationIdAsBytesArrivesOrIsUnsupported() throws JMSException {
        byte[] id = "order".getBytes(StandardCharsets.UTF_8);
        try {
            producer.setJMSCorrelationIDAsBytes(id);
        } catch (UnsupportedOperationException e) {
            return;
        }
        bytes("getJMSCorrelationIDAsBytes()", id, producer.getJMSCorrelationIDAsBytes());
        Message message = sent(queue -> producer.send(queue, "a"));
        bytes("JMSCorrelationIDAsBytes of the received message", id, message.getJMSCorrelationIDAsBytes());
    }

    // ---- properties -------------------------------------------------------------------------------------------

    @Test
    @Spec("7.5")
    void propertiesOfEachTypeArrive() throws JMSException {
        Message message = sent(queue -> producer.setProperty("boolean", true)
                .setProperty("byte", (byte) 1)
                .setProperty("short", (short) 2)
                .setProperty("int", 3)
                .setProperty("long", 4L)
                .setProperty("float", 5.5f)
                .setProperty("double", 6.5d)
                .setProperty("string", "7")
                .setProperty("object", (Object) 8)
                .send(queue, "a"));
        equal("the boolean", true, message.getObjectProperty("boolean"));
        equal("the byte", (byte) 1, message.getObjectProperty("byte"));
        equal("the short", (short) 2, message.getObjectProperty("short"));
        equal("the int", 3, message.getObjectProperty("int"));
        equal("the long", 4L, message.getObjectProperty("long"));
        equal("the float", 5.5f, message.getObjectProperty("float"));
        equal("the double", 6.5d, message.getObjectProperty("double"));
        equal("the String", "7", message.getObjectProperty("string"));
        equal("the object", 8, message.getObjectProperty("object"));
    }

    @Test
    void propertiesAreReturned() {
        producer.setProperty("boolean", true)
                .setProperty("byte", (byte) 1)
                .setProperty("short", (short) 2)
                .setProperty("int", 3)
                .setProperty("long", 4L)
                .setProperty("float", 5.5f)
                .setProperty("double", 6.5d)
                .setProperty("string", "7");
        equal("getBooleanProperty()", true, producer.getBooleanProperty("boolean"));
        equal("getByteProperty()", (byte) 1, producer.getByteProperty("byte"));
        equal("getShortProperty()", (short) 2, producer.getShortProperty("short"));
        equal("getIntProperty()", 3, producer.getIntProperty("int"));
        equal("getLongProperty()", 4L, producer.getLongProperty("long"));
        equal("getFloatProperty()", 5.5f, producer.getFloatProperty("float"));
        equal("getDoubleProperty()", 6.5d, producer.getDoubleProperty("double"));
        equal("getStringProperty()", "7", producer.getStringProperty("string"));
        equal("getObjectProperty()", 3, producer.getObjectProperty("int"));
    }

    @Test
    void propertiesAreConverted() {
        producer.setProperty("p", (byte) 5).setProperty("b", true);
        equal("a byte read as long", 5L, producer.getLongProperty("p"));
        equal("a byte read as String", "5", producer.getStringProperty("p"));
        fails(MessageFormatRuntimeException.class, "reading a byte as boolean", () -> producer.getBooleanProperty("p"));
        fails(MessageFormatRuntimeException.class, "reading a boolean as int", () -> producer.getIntProperty("b"));
    }

    @Test
    void missingPropertiesAreNull() {
        isNull("getStringProperty() of a missing property", producer.getStringProperty("none"));
        isNull("getObjectProperty() of a missing property", producer.getObjectProperty("none"));
        no("propertyExists() of a missing property", producer.propertyExists("none"));
    }

    @Test
    void propertyNamesAreReturned() {
        producer.setProperty("a", 1).setProperty("b", "2");
        equal("getPropertyNames()", Set.of("a", "b"), producer.getPropertyNames());
        yes("propertyExists()", producer.propertyExists("a"));
    }

    @Test
    void propertyNamesCannotBeChanged() {
        producer.setProperty("a", 1);
        fails(
                UnsupportedOperationException.class,
                "adding to getPropertyNames()",
                () -> producer.getPropertyNames().add("b"));
    }

    @Test
    void clearPropertiesDeletesAll() throws JMSException {
        producer.setProperty("a", 1).clearProperties();
        equal("getPropertyNames() after clearProperties()", Set.of(), producer.getPropertyNames());
        Message message = sent(queue -> producer.send(queue, "a"));
        no("the property must not arrive", message.propertyExists("a"));
    }

    @Test
    @Spec("7.5")
    void propertiesOfTheProducerOverrideTheMessage() throws JMSException {
        Message original = context.createMessage();
        original.setStringProperty("both", "old");
        original.setStringProperty("message", "old");
        Message message = sent(queue -> producer.setProperty("both", "new").send(queue, original));
        equal("the property of both", "new", message.getStringProperty("both"));
        equal("the property of the message", "old", message.getStringProperty("message"));
    }

    @Test
    void propertiesHoldForEachMessage() throws JMSException {
        producer.setProperty("p", 1);
        for (int i = 0; i < 2; i++) {
            Message message = sent(queue -> producer.send(queue, "a"));
            equal("the property of message " + i, 1, message.getIntProperty("p"));
        }
    }

    @Test
    @Spec({"api:JMSProducer", "10.3"})
    void propertyOfAReadOnlyMessageIsRefused() throws JMSException {
        Queue queue = queue();
        Message received = sent(other -> producer.send(other, "a"));
        producer.setProperty("p", 1);
        fails(
                MessageNotWriteableRuntimeException.class,
                "send() of a received message by a producer with a property",
                () -> producer.send(queue, received));
    }

    @Test
    void invalidPropertiesAreRefused() {
        fails(
                MessageFormatRuntimeException.class,
                "setProperty() with a Date",
                () -> producer.setProperty("d", new Date()));
        fails(IllegalArgumentException.class, "setProperty() with an empty name", () -> producer.setProperty("", 1));
        fails(IllegalArgumentException.class, "setProperty() with a null name", () -> producer.setProperty(null, "a"));
    }
}
