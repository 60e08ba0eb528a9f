package io.github.pgaq.jms.conformance;

import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageFormatException;
import java.util.Arrays;
import java.util.Map;
import org.junit.jupiter.api.Test;

/** Values in a message's body: each cell of the table of conversions (3-7). */
abstract class BodyConversions<M extends Message> extends ConformanceTest {
    private static final byte[] BYTES = {1, 2, 3};

    /** A method that reads the value. */
    interface Getter<M> {
        Object get(M message) throws JMSException;
    }

    @Override
    boolean sharesConnection() {
        return true;
    }

    /** A message with a value, that can be read. */
    abstract M with(Object value) throws JMSException;

    /** Reads the value by the method of a type. */
    abstract Object read(M message, String type) throws JMSException;

    private void reads(M message, Map<String, Object> expected) throws JMSException {
        for (Map.Entry<String, Object> entry : expected.entrySet()) {
            Object actual = read(message, entry.getKey());
            equal("the value read as " + entry.getKey(), show(entry.getValue()), show(actual));
        }
    }

    private static Object show(Object value) {
        return value instanceof byte[] array ? Arrays.toString(array) : value;
    }

    private void refuses(M message, String... types) throws JMSException {
        for (String type : types) {
            fails(MessageFormatException.class, "reading the value as " + type, () -> read(message, type));
        }
    }

    @Test
    void booleanIsReadAsBooleanAndString() throws JMSException {
        reads(with(true), Map.of("boolean", true, "String", "true"));
    }

    @Test
    void booleanIsNotReadAsAnotherType() throws JMSException {
        refuses(with(true), "byte", "short", "char", "int", "long", "float", "double", "byte[]");
    }

    @Test
    void receivedBooleanIsConvertedAsBefore() throws JMSException {
        M message = roundTrip(with(true));
        reads(message, Map.of("boolean", true, "String", "true"));
        refuses(message, "byte", "short", "char", "int", "long", "float", "double", "byte[]");
    }

    @Test
    void byteIsReadAsByteAndShortAndIntAndLongAndString() throws JMSException {
        reads(with((byte) 5), Map.of("byte", (byte) 5, "short", (short) 5, "int", 5, "long", 5L, "String", "5"));
    }

    @Test
    void byteIsNotReadAsAnotherType() throws JMSException {
        refuses(with((byte) 5), "boolean", "char", "float", "double", "byte[]");
    }

    @Test
    void receivedByteIsConvertedAsBefore() throws JMSException {
        M message = roundTrip(with((byte) 5));
        reads(message, Map.of("byte", (byte) 5, "short", (short) 5, "int", 5, "long", 5L, "String", "5"));
        refuses(message, "boolean", "char", "float", "double", "byte[]");
    }

    @Test
    void shortIsReadAsShortAndIntAndLongAndString() throws JMSException {
        reads(with((short) 300), Map.of("short", (short) 300, "int", 300, "long", 300L, "String", "300"));
    }

    @Test
    void shortIsNotReadAsAnotherType() throws JMSException {
        refuses(with((short) 300), "boolean", "byte", "char", "float", "double", "byte[]");
    }

    @Test
    void receivedShortIsConvertedAsBefore() throws JMSException {
        M message = roundTrip(with((short) 300));
        reads(message, Map.of("short", (short) 300, "int", 300, "long", 300L, "String", "300"));
        refuses(message, "boolean", "byte", "char", "float", "double", "byte[]");
    }

    @Test
    void charIsReadAsCharAndString() throws JMSException {
        reads(with('c'), Map.of("char", 'c', "String", "c"));
    }

    @Test
    void charIsNotReadAsAnotherType() throws JMSException {
        refuses(with('c'), "boolean", "byte", "short", "int", "long", "float", "double", "byte[]");
    }

    @Test
    void receivedCharIsConvertedAsBefore() throws JMSException {
        M message = roundTrip(with('c'));
        reads(message, Map.of("char", 'c', "String", "c"));
        refuses(message, "boolean", "byte", "short", "int", "long", "float", "double", "byte[]");
    }

    @Test
    void intIsReadAsIntAndLongAndString() throws JMSException {
        reads(with(70_000), Map.of("int", 70_000, "long", 70_000L, "String", "70000"));
    }

    @Test
    void intIsNotReadAsAnotherType() throws JMSException {
        refuses(with(70_000), "boolean", "byte", "short", "char", "float", "double", "byte[]");
    }

    @Test
    void receivedIntIsConvertedAsBefore() throws JMSException {
        M message = roundTrip(with(70_000));
        reads(message, Map.of("int", 70_000, "long", 70_000L, "String", "70000"));
        refuses(message, "boolean", "byte", "short", "char", "float", "double", "byte[]");
    }

    @Test
    void longIsReadAsLongAndString() throws JMSException {
        reads(with(5_000_000_000L), Map.of("long", 5_000_000_000L, "String", "5000000000"));
    }

    @Test
    void longIsNotReadAsAnotherType() throws JMSException {
        refuses(with(5_000_000_000L), "boolean", "byte", "short", "char", "int", "float", "double", "byte[]");
    }

    @Test
    void receivedLongIsConvertedAsBefore() throws JMSException {
        M message = roundTrip(with(5_000_000_000L));
        reads(message, Map.of("long", 5_000_000_000L, "String", "5000000000"));
        refuses(message, "boolean", "byte", "short", "char", "int", "float", "double", "byte[]");
    }

    @Test
    void floatIsReadAsFloatAndDoubleAndString() throws JMSException {
        reads(with(1.5f), Map.of("float", 1.5f, "double", 1.5d, "String", "1.5"));
    }

    @Test
    void floatIsNotReadAsAnotherType() throws JMSException {
        refuses(with(1.5f), "boolean", "byte", "short", "char", "int", "long", "byte[]");
    }

    @Test
    void receivedFloatIsConvertedAsBefore() throws JMSException {
        M message = roundTrip(with(1.5f));
        reads(message, Map.of("float", 1.5f, "double", 1.5d, "String", "1.5"));
        refuses(message, "boolean", "byte", "short", "char", "int", "long", "byte[]");
    }

    @Test
    void doubleIsReadAsDoubleAndString() throws JMSException {
        reads(with(2.25d), Map.of("double", 2.25d, "String", "2.25"));
    }

    @Test
    void doubleIsNotReadAsAnotherType() throws JMSException {
        refuses(with(2.25d), "boolean", "byte", "short", "char", "int", "long", "float", "byte[]");
    }

    @Test
    void receivedDoubleIsConvertedAsBefore() throws JMSException {
        M message = roundTrip(with(2.25d));
        reads(message, Map.of("double", 2.25d, "String", "2.25"));
        refuses(message, "boolean", "byte", "short", "char", "int", "long", "float", "byte[]");
    }

    @Test
    void bytesIsReadAsBytes() throws JMSException {
        reads(with(BYTES), Map.of("byte[]", BYTES));
    }

    @Test
    void bytesIsNotReadAsAnotherType() throws JMSException {
        refuses(with(BYTES), "boolean", "byte", "short", "char", "int", "long", "float", "double", "String");
    }

    @Test
    void receivedBytesIsConvertedAsBefore() throws JMSException {
        M message = roundTrip(with(BYTES));
        reads(message, Map.of("byte[]", BYTES));
        refuses(message, "boolean", "byte", "short", "char", "int", "long", "float", "double", "String");
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
        M message = with("x1");
        fails(NumberFormatException.class, "reading the String x1 as byte", () -> read(message, "byte"));
    }

    @Test
    void nullIsNotReadAsByte() throws JMSException {
        M message = with((Object) null);
        fails(NumberFormatException.class, "reading null as byte", () -> read(message, "byte"));
    }

    @Test
    void stringBeyondTheRangeIsNotReadAsByte() throws JMSException {
        M message = with("128");
        fails(NumberFormatException.class, "reading the String 128 as byte", () -> read(message, "byte"));
    }

    @Test
    void stringIsReadAsShort() throws JMSException {
        reads(with("300"), Map.of("short", (short) 300, "String", "300"));
    }

    @Test
    void otherStringIsNotReadAsShort() throws JMSException {
        M message = with("x1");
        fails(NumberFormatException.class, "reading the String x1 as short", () -> read(message, "short"));
    }

    @Test
    void nullIsNotReadAsShort() throws JMSException {
        M message = with((Object) null);
        fails(NumberFormatException.class, "reading null as short", () -> read(message, "short"));
    }

    @Test
    void stringBeyondTheRangeIsNotReadAsShort() throws JMSException {
        M message = with("32768");
        fails(NumberFormatException.class, "reading the String 32768 as short", () -> read(message, "short"));
    }

    @Test
    void stringIsReadAsInt() throws JMSException {
        reads(with("70000"), Map.of("int", 70_000, "String", "70000"));
    }

    @Test
    void otherStringIsNotReadAsInt() throws JMSException {
        M message = with("x1");
        fails(NumberFormatException.class, "reading the String x1 as int", () -> read(message, "int"));
    }

    @Test
    void nullIsNotReadAsInt() throws JMSException {
        M message = with((Object) null);
        fails(NumberFormatException.class, "reading null as int", () -> read(message, "int"));
    }

    @Test
    void stringBeyondTheRangeIsNotReadAsInt() throws JMSException {
        M message = with("2147483648");
        fails(NumberFormatException.class, "reading the String 2147483648 as int", () -> read(message, "int"));
    }

    @Test
    void stringIsReadAsLong() throws JMSException {
        reads(with("5000000000"), Map.of("long", 5_000_000_000L, "String", "5000000000"));
    }

    @Test
    void otherStringIsNotReadAsLong() throws JMSException {
        M message = with("x1");
        fails(NumberFormatException.class, "reading the String x1 as long", () -> read(message, "long"));
    }

    @Test
    void nullIsNotReadAsLong() throws JMSException {
        M message = with((Object) null);
        fails(NumberFormatException.class, "reading null as long", () -> read(message, "long"));
    }

    @Test
    void stringBeyondTheRangeIsNotReadAsLong() throws JMSException {
        M message = with("9223372036854775808");
        fails(
                NumberFormatException.class,
                "reading the String 9223372036854775808 as long",
                () -> read(message, "long"));
    }

    @Test
    void stringIsReadAsFloat() throws JMSException {
        reads(with("1.5"), Map.of("float", 1.5f, "String", "1.5"));
    }

    @Test
    void otherStringIsNotReadAsFloat() throws JMSException {
        M message = with("x1");
        fails(NumberFormatException.class, "reading the String x1 as float", () -> read(message, "float"));
    }

    @Test
    void nullIsNotReadAsFloat() throws JMSException {
        M message = with((Object) null);
        fails(NullPointerException.class, "reading null as float", () -> read(message, "float"));
    }

    @Test
    void stringIsReadAsDouble() throws JMSException {
        reads(with("2.25"), Map.of("double", 2.25d, "String", "2.25"));
    }

    @Test
    void otherStringIsNotReadAsDouble() throws JMSException {
        M message = with("x1");
        fails(NumberFormatException.class, "reading the String x1 as double", () -> read(message, "double"));
    }

    @Test
    void nullIsNotReadAsDouble() throws JMSException {
        M message = with((Object) null);
        fails(NullPointerException.class, "reading null as double", () -> read(message, "double"));
    }

    @Test
    void stringIsNotReadAsCharOrBytes() throws JMSException {
        refuses(with("c"), "char", "byte[]");
    }

    @Test
    void nullIsNotReadAsChar() throws JMSException {
        M message = with((Object) null);
        fails(NullPointerException.class, "reading null as char", () -> read(message, "char"));
    }

    @Test
    void nullIsReadAsString() throws JMSException {
        M message = with((Object) null);
        isNull("null read as String", read(message, "String"));
    }
}
