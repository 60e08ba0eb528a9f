package io.github.pgaq.jms.message;

import jakarta.jms.MessageFormatException;

/**
 * The conversions of property values, map entries and stream fields (specification 3.5.4 and 3.11.3).
 *
 * <p>A value is one of Boolean, Byte, Short, Character, Integer, Long, Float, Double, String, {@code byte[]} or null.
 * Null converts as {@code valueOf((String) null)} of the wanted type does.
 */
final class Conversions {

    /** Where a value is, for errors. */
    enum Place {
        PROPERTY("property"),
        ENTRY("map entry"),
        FIELD("stream field");

        private final String text;

        Place(String text) {
            this.text = text;
        }

        MessageFormatException error(Object name, Object value, String wanted) {
            return new MessageFormatException(
                    text + " \"" + name + "\" is a " + typeName(value) + " and cannot be read as " + wanted);
        }
    }

    private Conversions() {}

    static boolean toBoolean(Place place, Object name, Object value) throws MessageFormatException {
        if (value instanceof Boolean b) {
            return b;
        }
        if (value == null || value instanceof String) {
            return Boolean.parseBoolean((String) value);
        }
        throw place.error(name, value, "boolean");
    }

    static byte toByte(Place place, Object name, Object value) throws MessageFormatException {
        if (value instanceof Byte b) {
            return b;
        }
        if (value == null || value instanceof String) {
            return Byte.parseByte((String) value);
        }
        throw place.error(name, value, "byte");
    }

    static short toShort(Place place, Object name, Object value) throws MessageFormatException {
        if (value instanceof Short || value instanceof Byte) {
            return ((Number) value).shortValue();
        }
        if (value == null || value instanceof String) {
            return Short.parseShort((String) value);
        }
        throw place.error(name, value, "short");
    }

    static char toChar(Place place, Object name, Object value) throws MessageFormatException {
        if (value instanceof Character c) {
            return c;
        }
        if (value == null) {
            throw new NullPointerException(place.text + " \"" + name + "\" is null and cannot be read as char");
        }
        throw place.error(name, value, "char");
    }

    static int toInt(Place place, Object name, Object value) throws MessageFormatException {
        if (value instanceof Integer || value instanceof Short || value instanceof Byte) {
            return ((Number) value).intValue();
        }
        if (value == null || value instanceof String) {
            return Integer.parseInt((String) value);
        }
        throw place.error(name, value, "int");
    }

    static long toLong(Place place, Object name, Object value) throws MessageFormatException {
        if (value instanceof Long || value instanceof Integer || value instanceof Short || value instanceof Byte) {
            return ((Number) value).longValue();
        }
        if (value == null || value instanceof String) {
            return Long.parseLong((String) value);
        }
        throw place.error(name, value, "long");
    }

    static float toFloat(Place place, Object name, Object value) throws MessageFormatException {
        if (value instanceof Float f) {
            return f;
        }
        if (value == null || value instanceof String) {
            return Float.parseFloat((String) value);
        }
        throw place.error(name, value, "float");
    }

    static double toDouble(Place place, Object name, Object value) throws MessageFormatException {
        if (value instanceof Double || value instanceof Float) {
            return ((Number) value).doubleValue();
        }
        if (value == null || value instanceof String) {
            return Double.parseDouble((String) value);
        }
        throw place.error(name, value, "double");
    }

    static String toText(Place place, Object name, Object value) throws MessageFormatException {
        if (value instanceof byte[]) {
            throw place.error(name, value, "String");
        }
        return value == null ? null : value.toString();
    }

    static byte[] toBytes(Place place, Object name, Object value) throws MessageFormatException {
        if (value == null) {
            return null;
        }
        if (value instanceof byte[] bytes) {
            return bytes.clone();
        }
        throw place.error(name, value, "byte[]");
    }

    /** Whether a value has a type that properties can have. */
    static boolean isPropertyValue(Object value) {
        return value == null
                || value instanceof String
                || value instanceof Boolean
                || value instanceof Integer
                || value instanceof Long
                || value instanceof Double
                || value instanceof Float
                || value instanceof Short
                || value instanceof Byte;
    }

    /** The value as a map or stream message keeps it: byte arrays are copied. */
    static Object bodyValue(Object value) throws MessageFormatException {
        if (value instanceof byte[] bytes) {
            return bytes.clone();
        }
        if (isPropertyValue(value) || value instanceof Character) {
            return value;
        }
        throw new MessageFormatException("objects of class " + value.getClass().getName()
                + " cannot be put into a message; allowed are Boolean, Byte, Short, Character, Integer, Long, Float,"
                + " Double, String and byte[]");
    }

    /** The name of a value's type, as Java writes it. */
    static String typeName(Object value) {
        if (value == null) {
            return "null";
        }
        if (value instanceof Integer) {
            return "int";
        }
        if (value instanceof Character) {
            return "char";
        }
        if (value instanceof byte[]) {
            return "byte[]";
        }
        String name = value.getClass().getSimpleName();
        return value instanceof String ? name : name.toLowerCase(java.util.Locale.ROOT);
    }
}
