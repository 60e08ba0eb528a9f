package io.github.pgaq.jms.conformance;

import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageFormatException;
import java.util.HashMap;
import java.util.Map;
import org.junit.jupiter.api.Test;

/** Properties: each cell of the table of conversions (3-2). */
@Spec("3.5.4")
class PropertyConversionTest extends ConformanceTest {
    @Override
    boolean sharesConnection() {
        return true;
    }

    private interface Getter {
        Object get(Message message) throws JMSException;
    }

    private static final Map<String, Getter> GETTERS = new HashMap<>();

    static {
        GETTERS.put("boolean", message -> message.getBooleanProperty("p"));
        GETTERS.put("byte", message -> message.getByteProperty("p"));
        GETTERS.put("short", message -> message.getShortProperty("p"));
        GETTERS.put("int", message -> message.getIntProperty("p"));
        GETTERS.put("long", message -> message.getLongProperty("p"));
        GETTERS.put("float", message -> message.getFloatProperty("p"));
        GETTERS.put("double", message -> message.getDoubleProperty("p"));
        GETTERS.put("String", message -> message.getStringProperty("p"));
    }

    private Message with(Object value) throws JMSException {
        Message message = session().createMessage();
        message.setObjectProperty("p", value);
        return message;
    }

    private static void reads(Message message, Map<String, Object> expected) throws JMSException {
        for (Map.Entry<String, Object> entry : expected.entrySet()) {
            Object actual = GETTERS.get(entry.getKey()).get(message);
            equal("the value read as " + entry.getKey(), show(entry.getValue()), show(actual));
        }
    }

    private static Object show(Object value) {
        return value;
    }

    private static void refuses(Message message, String... types) throws JMSException {
        for (String type : types) {
            fails(
                    MessageFormatException.class,
                    "reading the value as " + type,
                    () -> GETTERS.get(type).get(message));
        }
    }

    @Test
    void booleanIsReadAsBooleanAndString() throws JMSException {
        reads(with(true), Map.of("boolean", true, "String", "true"));
    }

    @Test
    void booleanIsNotReadAsAnotherType() throws JMSException {
        refuses(with(true), "byte", "short", "int", "long", "float", "double");
    }

    @Test
    void receivedBooleanIsConvertedAsBefore() throws JMSException {
        Message message = roundTrip(with(true));
        reads(message, Map.of("boolean", true, "String", "true"));
        refuses(message, "byte", "short", "int", "long", "float", "double");
    }

    @Test
    void byteIsReadAsByteAndShortAndIntAndLongAndString() throws JMSException {
        reads(with((byte) 5), Map.of("byte", (byte) 5, "short", (short) 5, "int", 5, "long", 5L, "String", "5"));
    }

    @Test
    void byteIsNotReadAsAnotherType() throws JMSException {
        refuses(with((byte) 5), "boolean", "float", "double");
    }

    @Test
    void receivedByteIsConvertedAsBefore() throws JMSException {
        Message message = roundTrip(with((byte) 5));
        reads(message, Map.of("byte", (byte) 5, "short", (short) 5, "int", 5, "long", 5L, "String", "5"));
        refuses(message, "boolean", "float", "double");
    }

    @Test
    void shortIsReadAsShortAndIntAndLongAndString() throws JMSException {
        reads(with((short) 300), Map.of("short", (short) 300, "int", 300, "long", 300L, "String", "300"));
    }

    @Test
    void shortIsNotReadAsAnotherType() throws JMSException {
        refuses(with((short) 300), "boolean", "byte", "float", "double");
    }

    @Test
    void receivedShortIsConvertedAsBefore() throws JMSException {
        Message message = roundTrip(with((short) 300));
        reads(message, Map.of("short", (short) 300, "int", 300, "long", 300L, "String", "300"));
        refuses(message, "boolean", "byte", "float", "double");
    }

    @Test
    void intIsReadAsIntAndLongAndString() throws JMSException {
        reads(with(70_000), Map.of("int", 70_000, "long", 70_000L, "String", "70000"));
    }

    @Test
    void intIsNotReadAsAnotherType() throws JMSException {
        refuses(with(70_000), "boolean", "byte", "short", "float", "double");
    }

    @Test
    void receivedIntIsConvertedAsBefore() throws JMSException {
        Message message = roundTrip(with(70_000));
        reads(message, Map.of("int", 70_000, "long", 70_000L, "String", "70000"));
        refuses(message, "boolean", "byte", "short", "float", "double");
    }

    @Test
    void longIsReadAsLongAndString() throws JMSException {
        reads(with(5_000_000_000L), Map.of("long", 5_000_000_000L, "String", "5000000000"));
    }

    @Test
    void longIsNotReadAsAnotherType() throws JMSException {
        refuses(with(5_000_000_000L), "boolean", "byte", "short", "int", "float", "double");
    }

    @Test
    void receivedLongIsConvertedAsBefore() throws JMSException {
        Message message = roundTrip(with(5_000_000_000L));
        reads(message, Map.of("long", 5_000_000_000L, "String", "5000000000"));
        refuses(message, "boolean", "byte", "short", "int", "float", "double");
    }

    @Test
    void floatIsReadAsFloatAndDoubleAndString() throws JMSException {
        reads(with(1.5f), Map.of("float", 1.5f, "double", 1.5d, "String", "1.5"));
    }

    @Test
    void floatIsNotReadAsAnotherType() throws JMSException {
        refuses(with(1.5f), "boolean", "byte", "short", "int", "long");
    }

    @Test
    void receivedFloatIsConvertedAsBefore() throws JMSException {
        Message message = roundTrip(with(1.5f));
        reads(message, Map.of("float", 1.5f, "double", 1.5d, "String", "1.5"));
        refuses(message, "boolean", "byte", "short", "int", "long");
    }

    @Test
    void doubleIsReadAsDoubleAndString() throws JMSException {
        reads(with(2.25d), Map.of("double", 2.25d, "String", "2.25"));
    }

    @Test
    void doubleIsNotReadAsAnotherType() throws JMSException {
        refuses(with(2.25d), "boolean", "byte", "short", "int", "long", "float");
    }

    @Test
    void receivedDoubleIsConvertedAsBefore() throws JMSException {
        Message message = roundTrip(with(2.25d));
        reads(message, Map.of("double", 2.25d, "String", "2.25"));
        refuses(message, "boolean", "byte", "short", "int", "long", "float");
    }

    @Test
    void stringIsReadAsBoolean() throws JMSException {
        reads(with("true"), Map.of("boolean", true, "String", "true"));
    }

    @Test
    void otherStringIsFalse() throws JMSException {
        reads(with("yes"), Map.of("boolean", false));
    }

    @Test
    void trueInCapitalsIsTrue() throws JMSException {
        reads(with("TRUE"), Map.of("boolean", true));
    }

    @Test
    void nullIsReadAsFalse() throws JMSException {
        reads(with((Object) null), Map.of("boolean", false));
    }

    @Test
    void stringIsReadAsByte() throws JMSException {
        reads(with("5"), Map.of("byte", (byte) 5, "String", "5"));
    }

    @Test
    void otherStringIsNotReadAsByte() throws JMSException {
        Message message = with("x1");
        fails(
                NumberFormatException.class,
                "reading the String x1 as byte",
                () -> GETTERS.get("byte").get(message));
    }

    @Test
    void nullIsNotReadAsByte() throws JMSException {
        Message message = with((Object) null);
        fails(
                NumberFormatException.class,
                "reading null as byte",
                () -> GETTERS.get("byte").get(message));
    }

    @Test
    void stringBeyondTheRangeIsNotReadAsByte() throws JMSException {
        Message message = with("128");
        fails(
                NumberFormatException.class,
                "reading the String 128 as byte",
                () -> GETTERS.get("byte").get(message));
    }

    @Test
    void stringIsReadAsShort() throws JMSException {
        reads(with("300"), Map.of("short", (short) 300, "String", "300"));
    }

    @Test
    void otherStringIsNotReadAsShort() throws JMSException {
        Message message = with("x1");
        fails(
                NumberFormatException.class,
                "reading the String x1 as short",
                () -> GETTERS.get("short").get(message));
    }

    @Test
    void nullIsNotReadAsShort() throws JMSException {
        Message message = with((Object) null);
        fails(
                NumberFormatException.class,
                "reading null as short",
                () -> GETTERS.get("short").get(message));
    }

    @Test
    void stringBeyondTheRangeIsNotReadAsShort() throws JMSException {
        Message message = with("32768");
        fails(
                NumberFormatException.class,
                "reading the String 32768 as short",
                () -> GETTERS.get("short").get(message));
    }

    @Test
    void stringIsReadAsInt() throws JMSException {
        reads(with("70000"), Map.of("int", 70_000, "String", "70000"));
    }

    @Test
    void otherStringIsNotReadAsInt() throws JMSException {
        Message message = with("x1");
        fails(
                NumberFormatException.class,
                "reading the String x1 as int",
                () -> GETTERS.get("int").get(message));
    }

    @Test
    void nullIsNotReadAsInt() throws JMSException {
        Message message = with((Object) null);
        fails(
                NumberFormatException.class,
                "reading null as int",
                () -> GETTERS.get("int").get(message));
    }

    @Test
    void stringBeyondTheRangeIsNotReadAsInt() throws JMSException {
        Message message = with("2147483648");
        fails(
                NumberFormatException.class,
                "reading the String 2147483648 as int",
                () -> GETTERS.get("int").get(message));
    }

    @Test
    void stringIsReadAsLong() throws JMSException {
        reads(with("5000000000"), Map.of("long", 5_000_000_000L, "String", "5000000000"));
    }

    @Test
    void otherStringIsNotReadAsLong() throws JMSException {
        Message message = with("x1");
        fails(
                NumberFormatException.class,
                "reading the String x1 as long",
                () -> GETTERS.get("long").get(message));
    }

    @Test
    void nullIsNotReadAsLong() throws JMSException {
        Message message = with((Object) null);
        fails(
                NumberFormatException.class,
                "reading null as long",
                () -> GETTERS.get("long").get(message));
    }

    @Test
    void stringBeyondTheRangeIsNotReadAsLong() throws JMSException {
        Message message = with("9223372036854775808");
        fails(
                NumberFormatException.class,
                "reading the String 9223372036854775808 as long",
                () -> GETTERS.get("long").get(message));
    }

    @Test
    void stringIsReadAsFloat() throws JMSException {
        reads(with("1.5"), Map.of("float", 1.5f, "String", "1.5"));
    }

    @Test
    void otherStringIsNotReadAsFloat() throws JMSException {
        Message message = with("x1");
        fails(
                NumberFormatException.class,
                "reading the String x1 as float",
                () -> GETTERS.get("float").get(message));
    }

    @Test
    void nullIsNotReadAsFloat() throws JMSException {
        Message message = with((Object) null);
        fails(
                NullPointerException.class,
                "reading null as float",
                () -> GETTERS.get("float").get(message));
    }

    @Test
    void stringIsReadAsDouble() throws JMSException {
        reads(with("2.25"), Map.of("double", 2.25d, "String", "2.25"));
    }

    @Test
    void otherStringIsNotReadAsDouble() throws JMSException {
        Message message = with("x1");
        fails(
                NumberFormatException.class,
                "reading the String x1 as double",
                () -> GETTERS.get("double").get(message));
    }

    @Test
    void nullIsNotReadAsDouble() throws JMSException {
        Message message = with((Object) null);
        fails(
                NullPointerException.class,
                "reading null as double",
                () -> GETTERS.get("double").get(message));
    }

    @Test
    void nullIsReadAsString() throws JMSException {
        Message message = with((Object) null);
        isNull("null read as String", GETTERS.get("String").get(message));
    }
}
