package io.github.pgaq.jms.conformance;

import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageFormatException;
import jakarta.jms.MessageNotWriteableException;
import jakarta.jms.TextMessage;
import java.util.Collections;
import java.util.Date;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import org.junit.jupiter.api.Test;

/** Properties of messages, except for the conversions of their types. */
@Spec("3.5")
class PropertyTest extends ConformanceTest {
    @Override
    boolean sharesConnection() {
        return true;
    }

    private Message message() throws JMSException {
        return session().createMessage();
    }

    private Message received() throws JMSException {
        Message message = sender().createMessage();
        message.setIntProperty("p", 1);
        return roundTrip(message);
    }

    private static Set<String> names(Message message) throws JMSException {
        Set<String> names = new TreeSet<>();
        for (Object name : Collections.list(message.getPropertyNames())) {
            if (!((String) name).startsWith("JMS")) {
                names.add((String) name);
            }
        }
        return names;
    }

    // ---- each type arrives as it was set ----------------------------------------------------------------------

    @Test
    @Spec("3.5.2")
    void booleanArrives() throws JMSException {
        Message message = message();
        message.setBooleanProperty("p", true);
        equal("the boolean property", true, roundTrip(message).getBooleanProperty("p"));
    }

    @Test
    @Spec("3.5.2")
    void byteArrives() throws JMSException {
        Message message = message();
        message.setByteProperty("p", Byte.MIN_VALUE);
        equal("the byte property", Byte.MIN_VALUE, roundTrip(message).getByteProperty("p"));
    }

    @Test
    @Spec("3.5.2")
    void shortArrives() throws JMSException {
        Message message = message();
        message.setShortProperty("p", Short.MAX_VALUE);
        equal("the short property", Short.MAX_VALUE, roundTrip(message).getShortProperty("p"));
    }

    @Test
    @Spec("3.5.2")
    void intArrives() throws JMSException {
        Message message = message();
        message.setIntProperty("p", Integer.MIN_VALUE);
        equal("the int property", Integer.MIN_VALUE, roundTrip(message).getIntProperty("p"));
    }

    @Test
    @Spec("3.5.2")
    void longArrives() throws JMSException {
        Message message = message();
        message.setLongProperty("p", Long.MAX_VALUE);
        equal("the long property", Long.MAX_VALUE, roundTrip(message).getLongProperty("p"));
    }

    @Test
    @Spec("3.5.2")
    void smallestLongArrives() throws JMSException {
        Message message = message();
        message.setLongProperty("p", Long.MIN_VALUE);
        equal("the long property", Long.MIN_VALUE, roundTrip(message).getLongProperty("p"));
    }

    @Test
    @Spec("3.5.2")
    void floatArrives() throws JMSException {
        Message message = message();
        message.setFloatProperty("p", 3.1415927f);
        equal("the float property", 3.1415927f, roundTrip(message).getFloatProperty("p"));
    }

    @Test
    @Spec("3.5.2")
    void doubleArrives() throws JMSException {
        Message message = message();
        message.setDoubleProperty("p", Math.PI);
        equal("the double property", Math.PI, roundTrip(message).getDoubleProperty("p"));
    }

    @Test
    @Spec("3.5.2")
    void extremeDoublesArrive() throws JMSException {
        Message message = message();
        message.setDoubleProperty("min", Double.MIN_VALUE);
        message.setDoubleProperty("max", Double.MAX_VALUE);
        message.setDoubleProperty("whole", 5.0d);
        Message received = roundTrip(message);
        equal("the smallest double", Double.MIN_VALUE, received.getDoubleProperty("min"));
        equal("the largest double", Double.MAX_VALUE, received.getDoubleProperty("max"));
        equal("a double without fraction", 5.0d, received.getObjectProperty("whole"));
    }

    @Test
    @Spec("3.5.2")
    void infiniteAndUndefinedDoublesArrive() throws JMSException {
        Message message = message();
        message.setDoubleProperty("inf", Double.NEGATIVE_INFINITY);
        message.setFloatProperty("nan", Float.NaN);
        Message received = roundTrip(message);
        equal("the infinite double", Double.NEGATIVE_INFINITY, received.getDoubleProperty("inf"));
        yes("the float NaN must arrive as NaN", Float.isNaN(received.getFloatProperty("nan")));
    }

    @Test
    @Spec("3.5.2")
    void stringArrives() throws JMSException {
        Message message = message();
        message.setStringProperty("p", "größe 'x' \"y\" \\ \n\t \u20ac \uD83D\uDE00");
        equal(
                "the String property",
                "größe 'x' \"y\" \\ \n\t \u20ac \uD83D\uDE00",
                roundTrip(message).getStringProperty("p"));
    }

    @Test
    @Spec("3.5.2")
    void emptyStringArrives() throws JMSException {
        Message message = message();
        message.setStringProperty("p", "");
        equal("the empty String property", "", roundTrip(message).getStringProperty("p"));
    }

    @Test
    @Spec({"3.5.2", "3.12"})
    void nullStringArrives() throws JMSException {
        Message message = message();
        message.setStringProperty("p", null);
        Message received = roundTrip(message);
        isNull("the null String property", received.getStringProperty("p"));
        yes("a property with a null value exists", received.propertyExists("p"));
    }

    // ---- objects ----------------------------------------------------------------------------------------------

    @Test
    @Spec("3.5.5")
    void objectPropertiesKeepTheirTypes() throws JMSException {
        Map<String, Object> values = Map.of(
                "boolean", false, "byte", (byte) 1, "short", (short) 2, "int", 3, "long", 4L, "float", 5.5f, "double",
                6.5d, "string", "7");
        Message message = message();
        for (Map.Entry<String, Object> entry : values.entrySet()) {
            message.setObjectProperty(entry.getKey(), entry.getValue());
        }
        Message received = roundTrip(message);
        for (Map.Entry<String, Object> entry : values.entrySet()) {
            equal(
                    "getObjectProperty of a " + entry.getKey(),
                    entry.getValue(),
                    received.getObjectProperty(entry.getKey()));
        }
    }

    @Test
    @Spec("3.5.5")
    void objectPropertyIsReadableAsPrimitive() throws JMSException {
        Message message = message();
        message.setObjectProperty("p", 42);
        equal("an Integer property read as int", 42, message.getIntProperty("p"));
    }

    @Test
    @Spec("3.5.5")
    void primitivePropertyIsReadableAsObject() throws JMSException {
        Message message = message();
        message.setShortProperty("p", (short) 42);
        equal("a short property read as object", (short) 42, message.getObjectProperty("p"));
    }

    @Test
    @Spec("3.5.5")
    void nullObjectPropertyIsAllowed() throws JMSException {
        Message message = message();
        message.setObjectProperty("p", null);
        isNull("the null object property", message.getObjectProperty("p"));
    }

    @Test
    @Spec({"3.5.5", "10.3"})
    void otherClassesAreRefused() throws JMSException {
        Message message = message();
        fails(
                MessageFormatException.class,
                "setObjectProperty with a Date",
                () -> message.setObjectProperty("p", new Date()));
    }

    @Test
    @Spec("3.5.5")
    void byteArraysAreRefused() throws JMSException {
        Message message = message();
        fails(
                MessageFormatException.class,
                "setObjectProperty with a byte[]",
                () -> message.setObjectProperty("p", new byte[1]));
    }

    @Test
    @Spec("3.5.5")
    void charactersAreRefused() throws JMSException {
        Message message = message();
        fails(
                MessageFormatException.class,
                "setObjectProperty with a Character",
                () -> message.setObjectProperty("p", 'c'));
    }

    @Test
    @Spec("3.5.5")
    void listsAreRefused() throws JMSException {
        Message message = message();
        fails(
                MessageFormatException.class,
                "setObjectProperty with a List",
                () -> message.setObjectProperty("p", java.util.List.of("a")));
    }

    // ---- names ------------------------------------------------------------------------------------------------

    @Test
    @Spec("api:Message")
    void nullNameIsRefused() throws JMSException {
        Message message = message();
        fails(IllegalArgumentException.class, "setIntProperty(null, 1)", () -> message.setIntProperty(null, 1));
    }

    @Test
    @Spec("api:Message")
    void emptyNameIsRefusedByEachSetter() throws JMSException {
        Message message = message();
        fails(IllegalArgumentException.class, "setBooleanProperty(\"\")", () -> message.setBooleanProperty("", true));
        fails(IllegalArgumentException.class, "setByteProperty(\"\")", () -> message.setByteProperty("", (byte) 1));
        fails(IllegalArgumentException.class, "setShortProperty(\"\")", () -> message.setShortProperty("", (short) 1));
        fails(IllegalArgumentException.class, "setIntProperty(\"\")", () -> message.setIntProperty("", 1));
        fails(IllegalArgumentException.class, "setLongProperty(\"\")", () -> message.setLongProperty("", 1));
        fails(IllegalArgumentException.class, "setFloatProperty(\"\")", () -> message.setFloatProperty("", 1));
        fails(IllegalArgumentException.class, "setDoubleProperty(\"\")", () -> message.setDoubleProperty("", 1));
        fails(IllegalArgumentException.class, "setStringProperty(\"\")", () -> message.setStringProperty("", "1"));
        fails(IllegalArgumentException.class, "setObjectProperty(\"\")", () -> message.setObjectProperty("", 1));
    }

    @Test
    @Spec("3.5.1")
    void identifiersOfAllKindsAreAllowed() throws JMSException {
        Message message = message();
        String[] names = {"a", "_a", "$a", "a1", "größe", "A_very_long_name_of_a_property_that_is_still_valid"};
        for (String name : names) {
            message.setStringProperty(name, name);
        }
        Message received = roundTrip(message);
        for (String name : names) {
            equal("the property " + name, name, received.getStringProperty(name));
        }
    }

    @Test
    @Spec({"3.5.1", "3.8.1.1"})
    void namesAreCaseSensitive() throws JMSException {
        Message message = message();
        message.setIntProperty("color", 1);
        message.setIntProperty("Color", 2);
        Message received = roundTrip(message);
        equal("the property color", 1, received.getIntProperty("color"));
        equal("the property Color", 2, received.getIntProperty("Color"));
    }

    @Test
    @Spec({"3.5.1", "3.8.1.1"})
    void namesThatAreNoIdentifiersAreRefused() throws JMSException {
        Message message = message();
        fails(Exception.class, "setIntProperty(\"1a\")", () -> message.setIntProperty("1a", 1));
    }

    @Test
    @Spec({"3.5.1", "3.8.1.1"})
    void reservedWordsAreRefusedAsNames() throws JMSException {
        Message message = message();
        for (String name :
                new String[] {"NULL", "TRUE", "FALSE", "NOT", "AND", "OR", "BETWEEN", "LIKE", "IN", "IS", "ESCAPE"}) {
            fails(Exception.class, "setIntProperty(\"" + name + "\")", () -> message.setIntProperty(name, 1));
        }
    }

    // ---- non-existent properties ------------------------------------------------------------------------------

    @Test
    @Spec("3.5.8")
    void missingStringIsNull() throws JMSException {
        isNull("getStringProperty of a property that does not exist", message().getStringProperty("none"));
    }

    @Test
    @Spec({"3.5.5", "3.5.8"})
    void missingObjectIsNull() throws JMSException {
        isNull("getObjectProperty of a property that does not exist", message().getObjectProperty("none"));
    }

    @Test
    @Spec({"3.5.4", "3.5.8"})
    void missingBooleanIsFalse() throws JMSException {
        no(
                "getBooleanProperty of a property that does not exist must be Boolean.valueOf(null), false,",
                message().getBooleanProperty("none"));
    }

    @Test
    @Spec({"3.5.4", "3.5.8"})
    void missingByteFails() throws JMSException {
        Message message = message();
        fails(
                NumberFormatException.class,
                "getByteProperty of a missing property",
                () -> message.getByteProperty("none"));
    }

    @Test
    @Spec({"3.5.4", "3.5.8"})
    void missingShortFails() throws JMSException {
        Message message = message();
        fails(
                NumberFormatException.class,
                "getShortProperty of a missing property",
                () -> message.getShortProperty("none"));
    }

    @Test
    @Spec({"3.5.4", "3.5.8"})
    void missingIntFails() throws JMSException {
        Message message = message();
        fails(
                NumberFormatException.class,
                "getIntProperty of a missing property",
                () -> message.getIntProperty("none"));
    }

    @Test
    @Spec({"3.5.4", "3.5.8"})
    void missingLongFails() throws JMSException {
        Message message = message();
        fails(
                NumberFormatException.class,
                "getLongProperty of a missing property",
                () -> message.getLongProperty("none"));
    }

    @Test
    @Spec({"3.5.4", "3.5.8"})
    void missingFloatFails() throws JMSException {
        Message message = message();
        fails(
                NullPointerException.class,
                "getFloatProperty of a missing property, which is Float.valueOf(null),",
                () -> message.getFloatProperty("none"));
    }

    @Test
    @Spec({"3.5.4", "3.5.8"})
    void missingDoubleFails() throws JMSException {
        Message message = message();
        fails(
                NullPointerException.class,
                "getDoubleProperty of a missing property, which is Double.valueOf(null),",
                () -> message.getDoubleProperty("none"));
    }

    @Test
    @Spec("3.5.8")
    void propertyExistsTellsWhatIsSet() throws JMSException {
        Message message = message();
        message.setIntProperty("p", 1);
        yes("propertyExists of a property that was set", message.propertyExists("p"));
        no("propertyExists of a property that was not set", message.propertyExists("q"));
    }

    // ---- iteration --------------------------------------------------------------------------------------------

    @Test
    @Spec("3.5.6")
    void namesAreEnumerated() throws JMSException {
        Message message = message();
        message.setIntProperty("a", 1);
        message.setStringProperty("b", "2");
        equal("getPropertyNames()", Set.of("a", "b"), names(message));
        equal("getPropertyNames() of the received message", Set.of("a", "b"), names(roundTrip(message)));
    }

    @Test
    @Spec("3.5.6")
    void headerFieldsAreNotEnumerated() throws JMSException {
        Message message = sender().createMessage();
        message.setJMSType("t");
        message.setJMSCorrelationID("c");
        message.setJMSReplyTo(queue());
        for (Object name : Collections.list(roundTrip(message).getPropertyNames())) {
            yes(
                    "getPropertyNames() must not return the header field " + name,
                    ((String) name).startsWith("JMSX") || ((String) name).startsWith("JMS_"));
        }
    }

    @Test
    @Spec("3.5.6")
    void newMessageHasNoProperties() throws JMSException {
        equal("properties of a new message", Set.of(), names(message()));
    }

    @Test
    @Spec("3.5.2")
    void settingAPropertyAgainReplacesIt() throws JMSException {
        Message message = message();
        message.setIntProperty("p", 1);
        message.setStringProperty("p", "two");
        equal("the property that was set twice", "two", roundTrip(message).getObjectProperty("p"));
        equal("its names", Set.of("p"), names(message));
    }

    @Test
    @Spec("3.5.2")
    void manyPropertiesArrive() throws JMSException {
        Message message = message();
        Set<String> expected = new HashSet<>();
        for (int i = 0; i < 200; i++) {
            message.setIntProperty("p" + i, i);
            expected.add("p" + i);
        }
        Message received = roundTrip(message);
        equal("the names of 200 properties", new TreeSet<>(expected), names(received));
        equal("the last of them", 199, received.getIntProperty("p199"));
    }

    // ---- read-only mode and clearing --------------------------------------------------------------------------

    @Test
    @Spec({"3.5.3", "10.3"})
    void receivedPropertiesAreReadOnlyForEachSetter() throws JMSException {
        Message message = received();
        Class<MessageNotWriteableException> error = MessageNotWriteableException.class;
        fails(error, "setBooleanProperty of a received message", () -> message.setBooleanProperty("q", true));
        fails(error, "setByteProperty of a received message", () -> message.setByteProperty("q", (byte) 1));
        fails(error, "setShortProperty of a received message", () -> message.setShortProperty("q", (short) 1));
        fails(error, "setIntProperty of a received message", () -> message.setIntProperty("q", 1));
        fails(error, "setLongProperty of a received message", () -> message.setLongProperty("q", 1));
        fails(error, "setFloatProperty of a received message", () -> message.setFloatProperty("q", 1));
        fails(error, "setDoubleProperty of a received message", () -> message.setDoubleProperty("q", 1));
        fails(error, "setStringProperty of a received message", () -> message.setStringProperty("q", "1"));
        fails(error, "setObjectProperty of a received message", () -> message.setObjectProperty("q", 1));
    }

    @Test
    @Spec("3.5.3")
    void existingPropertyOfAReceivedMessageIsReadOnly() throws JMSException {
        Message message = received();
        fails(
                MessageNotWriteableException.class,
                "setIntProperty of an existing property of a received message",
                () -> message.setIntProperty("p", 2));
        equal("the property", 1, message.getIntProperty("p"));
    }

    @Test
    @Spec("3.5.7")
    void clearPropertiesDeletesAll() throws JMSException {
        Message message = received();
        message.clearProperties();
        equal("properties after clearProperties()", Set.of(), names(message));
    }

    @Test
    @Spec("3.5.7")
    void clearPropertiesMakesThemWritable() throws JMSException {
        Message message = received();
        message.clearProperties();
        works("setIntProperty after clearProperties()", () -> message.setIntProperty("q", 2));
        equal("the new property", 2, message.getIntProperty("q"));
    }

    @Test
    @Spec("3.5.7")
    void clearPropertiesKeepsTheBody() throws JMSException {
        TextMessage message = roundTrip(session().createTextMessage("body"));
        message.clearProperties();
        equal("the body after clearProperties()", "body", message.getText());
    }

    @Test
    @Spec("3.5.7")
    void clearPropertiesDoesNotMakeTheBodyWritable() throws JMSException {
        TextMessage message = roundTrip(session().createTextMessage("body"));
        message.clearProperties();
        fails(MessageNotWriteableException.class, "setText after clearProperties()", () -> message.setText("x"));
    }

    @Test
    @Spec("3.11.1")
    void clearBodyKeepsTheProperties() throws JMSException {
        Message message = received();
        message.clearBody();
        equal("the property after clearBody()", 1, message.getIntProperty("p"));
    }

    @Test
    @Spec("3.11.1")
    void clearBodyDoesNotMakeThePropertiesWritable() throws JMSException {
        Message message = received();
        message.clearBody();
        fails(
                MessageNotWriteableException.class,
                "setIntProperty after clearBody() of a received message",
                () -> message.setIntProperty("q", 1));
    }

    @Test
    @Spec("3.5.3")
    void propertiesStayWritableAfterSend() throws JMSException {
        Message message = sender().createMessage();
        sender().createProducer(queue()).send(message);
        works("setIntProperty of a message that was sent", () -> message.setIntProperty("p", 1));
    }

    // ---- JMSX -------------------------------------------------------------------------------------------------

    @Test
    @Spec("3.5.9")
    void groupIdAndSequenceArrive() throws JMSException {
        Message message = sender().createMessage();
        message.setStringProperty("JMSXGroupID", "g");
        message.setIntProperty("JMSXGroupSeq", 3);
        Message received = roundTrip(message);
        equal("JMSXGroupID", "g", received.getStringProperty("JMSXGroupID"));
        equal("JMSXGroupSeq", 3, received.getIntProperty("JMSXGroupSeq"));
    }

    @Test
    @Spec("3.5.9")
    void groupPropertiesAreEnumerated() throws JMSException {
        Message message = sender().createMessage();
        message.setStringProperty("JMSXGroupID", "g");
        yes(
                "getPropertyNames() must name JMSXGroupID",
                Collections.list(roundTrip(message).getPropertyNames()).contains("JMSXGroupID"));
    }

    @Test
    @Spec("3.5.9")
    void groupMessagesOfOneProducerKeepTheirOrder() throws JMSException {
        jakarta.jms.Queue queue = queue();
        jakarta.jms.MessageProducer producer = sender().createProducer(queue);
        for (int i = 1; i <= 5; i++) {
            Message message = sender().createMessage();
            message.setStringProperty("JMSXGroupID", "g");
            message.setIntProperty("JMSXGroupSeq", i);
            producer.send(message);
        }
        jakarta.jms.MessageConsumer consumer = session().createConsumer(queue);
        for (int i = 1; i <= 5; i++) {
            equal("JMSXGroupSeq of the next message", i, receive(consumer).getIntProperty("JMSXGroupSeq"));
        }
    }

    @Test
    @Spec({"3.5.9", "3.5.11"})
    void deliveryCountIsOneAtFirst() throws JMSException {
        equal("JMSXDeliveryCount at the first delivery", 1, count(received()));
    }

    @Test
    @Spec("3.5.9")
    void deliveryCountIsAnInt() throws JMSException {
        equal("getObjectProperty(\"JMSXDeliveryCount\")", 1, received().getObjectProperty("JMSXDeliveryCount"));
    }

    @Test
    @Spec("3.5.9")
    void deliveryCountSetByTheSenderIsReplaced() throws JMSException {
        Message message = sender().createMessage();
        try {
            message.setIntProperty("JMSXDeliveryCount", 17);
        } catch (JMSException e) {
            return;
        }
        equal("JMSXDeliveryCount at the first delivery", 1, count(roundTrip(message)));
    }
}
