package io.github.pgaq.jms.message;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import jakarta.jms.JMSException;
import jakarta.jms.MapMessage;
import jakarta.jms.Message;
import jakarta.jms.MessageFormatException;
import jakarta.jms.StreamMessage;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.api.Assertions;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * The tables of conversions: properties (specification 3.5.4), map and stream messages (3.11.3). Each value is read as
 * each type, from a message just made and from one that went through the database's form.
 */
class ConversionTest {

    /** Where the values lie: one column of methods for each. */
    enum Place {
        PROPERTY {
            @Override
            Message with(Object value) throws JMSException {
                Message message = Samples.MESSAGES.createMessage();
                message.setObjectProperty("v", value);
                return message;
            }

            @Override
            Object read(Message message, String type) throws JMSException {
                return switch (type) {
                    case "boolean" -> message.getBooleanProperty("v");
                    case "byte" -> message.getByteProperty("v");
                    case "short" -> message.getShortProperty("v");
                    case "int" -> message.getIntProperty("v");
                    case "long" -> message.getLongProperty("v");
                    case "float" -> message.getFloatProperty("v");
                    case "double" -> message.getDoubleProperty("v");
                    case "String" -> message.getStringProperty("v");
                    default -> message.getObjectProperty("v");
                };
            }
        },
        MAP {
            @Override
            Message with(Object value) throws JMSException {
                MapMessage message = Samples.MESSAGES.createMapMessage();
                message.setObject("v", value);
                return message;
            }

            @Override
            Object read(Message message, String type) throws JMSException {
                MapMessage map = (MapMessage) message;
                return switch (type) {
                    case "boolean" -> map.getBoolean("v");
                    case "byte" -> map.getByte("v");
                    case "short" -> map.getShort("v");
                    case "char" -> map.getChar("v");
                    case "int" -> map.getInt("v");
                    case "long" -> map.getLong("v");
                    case "float" -> map.getFloat("v");
                    case "double" -> map.getDouble("v");
                    case "String" -> map.getString("v");
                    case "byte[]" -> map.getBytes("v");
                    default -> map.getObject("v");
                };
            }
        },
        STREAM {
            @Override
            Message with(Object value) throws JMSException {
                StreamMessage message = Samples.MESSAGES.createStreamMessage();
                message.writeObject(value);
                message.reset();
                return message;
            }

            @Override
            Object read(Message message, String type) throws JMSException {
                StreamMessage stream = (StreamMessage) message;
                return switch (type) {
                    case "boolean" -> stream.readBoolean();
                    case "byte" -> stream.readByte();
                    case "short" -> stream.readShort();
                    case "char" -> stream.readChar();
                    case "int" -> stream.readInt();
                    case "long" -> stream.readLong();
                    case "float" -> stream.readFloat();
                    case "double" -> stream.readDouble();
                    case "String" -> stream.readString();
                    case "byte[]" -> {
                        byte[] buffer = new byte[100];
                        int count = stream.readBytes(buffer);
                        yield count < 0 ? null : java.util.Arrays.copyOf(buffer, count);
                    }
                    default -> stream.readObject();
                };
            }
        };

        abstract Message with(Object value) throws JMSException;

        abstract Object read(Message message, String type) throws JMSException;
    }

    record Case(Place place, Object value, String type, Object expected) {
        @Override
        public String toString() {
            return place + " " + Conversions.typeName(value) + " " + value + " as " + type;
        }
    }

    /** For each type of value: what it is read as; a type that is missing must fail with MessageFormatException. */
    private static final Map<Object, Map<String, Object>> TABLE = Map.of(
            true,
            Map.of("boolean", true, "String", "true"),
            (byte) -5,
            Map.of("byte", (byte) -5, "short", (short) -5, "int", -5, "long", -5L, "String", "-5"),
            (short) 300,
            Map.of("short", (short) 300, "int", 300, "long", 300L, "String", "300"),
            '\u20ac',
            Map.of("char", '\u20ac', "String", "\u20ac"),
            70000,
            Map.of("int", 70000, "long", 70000L, "String", "70000"),
            5_000_000_000L,
            Map.of("long", 5_000_000_000L, "String", "5000000000"),
            0.1f,
            Map.of("float", 0.1f, "double", (double) 0.1f, "String", "0.1"),
            1e300,
            Map.of("double", 1e300, "String", "1.0E300"),
            new byte[] {1, -2},
            Map.of("byte[]", new byte[] {1, -2}));

    private static final List<String> TYPES =
            List.of("boolean", "byte", "short", "char", "int", "long", "float", "double", "String", "byte[]");

    private static boolean has(Place place, String type) {
        return place != Place.PROPERTY || !type.equals("char") && !type.equals("byte[]");
    }

    static Stream<Case> table() {
        List<Case> cases = new ArrayList<>();
        for (Place place : Place.values()) {
            TABLE.forEach((value, conversions) -> {
                if (place != Place.PROPERTY || Conversions.isPropertyValue(value)) {
                    for (String type : TYPES) {
                        if (has(place, type)) {
                            Object expected = conversions.get(type);
                            cases.add(new Case(
                                    place, value, type, expected == null ? MessageFormatException.class : expected));
                        }
                    }
                    cases.add(new Case(place, value, "Object", value));
                }
            });
        }
        return cases.stream();
    }

    static Stream<Case> strings() {
        List<Case> cases = new ArrayList<>();
        for (Place place : Place.values()) {
            cases.add(new Case(place, "true", "boolean", true));
            cases.add(new Case(place, "TRUE", "boolean", true));
            cases.add(new Case(place, "yes", "boolean", false));
            cases.add(new Case(place, "-128", "byte", (byte) -128));
            cases.add(new Case(place, "128", "byte", NumberFormatException.class));
            cases.add(new Case(place, "32767", "short", (short) 32767));
            cases.add(new Case(place, "32768", "short", NumberFormatException.class));
            cases.add(new Case(place, "2147483647", "int", Integer.MAX_VALUE));
            cases.add(new Case(place, "2147483648", "int", NumberFormatException.class));
            cases.add(new Case(place, "-9223372036854775808", "long", Long.MIN_VALUE));
            cases.add(new Case(place, "9223372036854775808", "long", NumberFormatException.class));
            cases.add(new Case(place, " 1", "long", NumberFormatException.class));
            cases.add(new Case(place, "1.5", "int", NumberFormatException.class));
            cases.add(new Case(place, "1.5", "float", 1.5f));
            cases.add(new Case(place, "NaN", "float", Float.NaN));
            cases.add(new Case(place, "1e400", "double", Double.POSITIVE_INFINITY));
            cases.add(new Case(place, "-Infinity", "double", Double.NEGATIVE_INFINITY));
            cases.add(new Case(place, "one", "double", NumberFormatException.class));
            cases.add(new Case(place, "", "float", NumberFormatException.class));
            cases.add(new Case(place, "", "int", NumberFormatException.class));
            cases.add(new Case(place, "", "boolean", false));
            cases.add(new Case(place, "", "String", ""));
            cases.add(new Case(place, "a", "Object", "a"));
            if (place != Place.PROPERTY) {
                cases.add(new Case(place, "a", "char", MessageFormatException.class));
                cases.add(new Case(place, "a", "byte[]", MessageFormatException.class));
            }
        }
        return cases.stream();
    }

    static Stream<Case> nulls() {
        List<Case> cases = new ArrayList<>();
        for (Place place : Place.values()) {
            cases.add(new Case(place, null, "boolean", false));
            for (String type : List.of("byte", "short", "int", "long")) {
                cases.add(new Case(place, null, type, NumberFormatException.class));
            }
            // as Float.valueOf(null) and Double.valueOf(null)
            cases.add(new Case(place, null, "float", NullPointerException.class));
            cases.add(new Case(place, null, "double", NullPointerException.class));
            cases.add(new Case(place, null, "String", null));
            cases.add(new Case(place, null, "Object", null));
            if (place != Place.PROPERTY) {
                cases.add(new Case(place, null, "char", NullPointerException.class));
                cases.add(new Case(place, null, "byte[]", null));
            }
        }
        return cases.stream();
    }

    /** Values that must come back as they were, type included. */
    static Stream<Case> extremes() {
        List<Case> cases = new ArrayList<>();
        Object[] values = {
            false,
            Byte.MIN_VALUE,
            Byte.MAX_VALUE,
            (byte) 0,
            Short.MIN_VALUE,
            Short.MAX_VALUE,
            (short) 1,
            Integer.MIN_VALUE,
            Integer.MAX_VALUE,
            0,
            -1,
            Long.MIN_VALUE,
            Long.MAX_VALUE,
            0L,
            5L,
            2147483648L,
            Float.MIN_VALUE,
            Float.MAX_VALUE,
            -Float.MAX_VALUE,
            Float.MIN_NORMAL,
            Float.NaN,
            Float.POSITIVE_INFINITY,
            Float.NEGATIVE_INFINITY,
            0f,
            -0f,
            1f,
            1e10f,
            3.4f,
            Double.MIN_VALUE,
            Double.MAX_VALUE,
            -Double.MAX_VALUE,
            Double.MIN_NORMAL,
            Double.NaN,
            Double.POSITIVE_INFINITY,
            Double.NEGATIVE_INFINITY,
            0d,
            -0d,
            1d,
            1e7,
            1e-5,
            0.1,
            123456789.123456789,
            "",
            "\u00e9\ud83d\ude00\"\\\n\t/",
            "true",
            "5",
            "NaN",
            "{\"int\": 5}"
        };
        Object[] bodyValues = {'a', '\0', '\ud800', '"', '\uffff', new byte[0], new byte[1000], "a\0b", "\udc00\ud800"};
        for (Place place : Place.values()) {
            for (Object value : values) {
                cases.add(new Case(place, value, "Object", value));
            }
            if (place != Place.PROPERTY) {
                for (Object value : bodyValues) {
                    cases.add(new Case(place, value, "Object", value));
                }
            }
        }
        return cases.stream();
    }

    @ParameterizedTest
    @MethodSource({"table", "strings", "nulls", "extremes"})
    void isReadAsTheTableSays(Case c) throws JMSException {
        check(c, c.place.with(c.value));
    }

    @ParameterizedTest
    @MethodSource({"table", "strings", "nulls", "extremes"})
    void isReadAsTheTableSaysAfterDelivery(Case c) throws JMSException {
        check(c, Samples.delivered(c.place.with(c.value)));
    }

    @SuppressWarnings("unchecked")
    private static void check(Case c, Message message) throws JMSException {
        if (c.expected instanceof Class<?> exception) {
            assertThrows((Class<? extends Throwable>) exception, () -> c.place.read(message, c.type));
            // a failed conversion leaves the value where it is
            sameValue(c.value, c.place.read(message, "Object"));
        } else {
            sameValue(c.expected, c.place.read(message, c.type));
        }
    }

    private static void sameValue(Object expected, Object actual) {
        if (expected instanceof byte[] bytes) {
            assertArrayEquals(bytes, (byte[]) actual);
        } else {
            assertEquals(expected, actual);
            if (expected != null) {
                Assertions.assertSame(expected.getClass(), actual.getClass());
            }
        }
    }
}
