package io.github.pgaq.jms.message;

import java.util.Base64;
import java.util.List;
import java.util.Map;

/** The JSON forms of typed values; see "How messages lie in the database" in jms/README.md. */
final class Typed {

    private Typed() {}

    /** Whether PostgreSQL's text and jsonb can hold a string: they lack U+0000 and unpaired surrogates. */
    static boolean isStorable(String value) {
        int length = value.length();
        for (int i = 0; i < length; i++) {
            char c = value.charAt(i);
            if (c == 0) {
                return false;
            }
            if (Character.isSurrogate(c)) {
                if (!Character.isHighSurrogate(c)
                        || i + 1 == length
                        || !Character.isLowSurrogate(value.charAt(i + 1))) {
                    return false;
                }
                i++;
            }
        }
        return true;
    }

    /** Whether numeric, and so JSON in PostgreSQL, lacks the value: NaN, infinities, negative zero. */
    private static boolean isSpecial(Object value) {
        if (value instanceof Double || value instanceof Float) {
            double d = ((Number) value).doubleValue();
            return !Double.isFinite(d) || d == 0 && Double.doubleToRawLongBits(d) != 0;
        }
        return false;
    }

    /** Appends the value of a property. */
    static void property(StringBuilder out, Object value) {
        if (value instanceof String s) {
            Json.string(out, s);
        } else if (isSpecial(value)) {
            out.append("{\"")
                    .append(Conversions.typeName(value))
                    .append("\": \"")
                    .append(value)
                    .append("\"}");
        } else {
            out.append(value);
        }
    }

    /**
     * The type of a property if its value in jsonb does not show it, or null. Jsonb writes numbers without exponent, so
     * a large double would come back as an integer.
     */
    static String propertyType(Object value) {
        if (value == null
                || value instanceof String
                || value instanceof Boolean
                || value instanceof Integer
                || isSpecial(value)) {
            return null;
        }
        if (value instanceof Double) {
            return value.toString().indexOf('E') < 0 ? null : "double";
        }
        if (value instanceof Long l) {
            return l == l.intValue() ? "long" : null;
        }
        return Conversions.typeName(value);
    }

    /** Reads the value of a property. */
    static Object readProperty(Object json, Object type) {
        Object value = json;
        if (json instanceof Map<?, ?> map && map.size() == 1) {
            Map.Entry<?, ?> entry = map.entrySet().iterator().next();
            value = read((String) entry.getKey(), entry.getValue());
        } else if (type instanceof String name) {
            value = read(name, json);
        }
        return value != null && Conversions.isPropertyValue(value) ? value : plain(json);
    }

    /** Appends a map entry's or stream field's value. */
    static void value(StringBuilder out, Object value) {
        if (value == null) {
            out.append("null");
            return;
        }
        if (value instanceof byte[] bytes) {
            out.append("{\"bytes\": \"")
                    .append(Base64.getEncoder().encodeToString(bytes))
                    .append("\"}");
            return;
        }
        out.append("{\"")
                .append(value instanceof String ? "string" : Conversions.typeName(value))
                .append("\": ");
        if (value instanceof Character) {
            Json.string(out, value.toString());
        } else if (isSpecial(value)) {
            out.append('"').append(value).append('"');
        } else {
            property(out, value);
        }
        out.append('}');
    }

    /** Reads a map entry's or stream field's value; fails with IllegalArgumentException. */
    static Object readValue(Object json) {
        if (json instanceof Map<?, ?> map && map.size() == 1) {
            Map.Entry<?, ?> entry = map.entrySet().iterator().next();
            Object value = read((String) entry.getKey(), entry.getValue());
            if (value != null) {
                return value;
            }
        }
        if (json instanceof Map || json instanceof List) {
            throw new IllegalArgumentException("not a value of a message: " + plain(json));
        }
        return plain(json);
    }

    /** A JSON value of the named type; null if it is not one. */
    private static Object read(String type, Object json) {
        try {
            String text = json instanceof Json.Number n ? n.text() : json instanceof String s ? s : null;
            if (json instanceof Boolean) {
                return type.equals("boolean") ? json : null;
            }
            if (text == null) {
                return null;
            }
            boolean number = json instanceof Json.Number;
            return switch (type) {
                case "double" -> Double.valueOf(text);
                case "float" -> Float.valueOf(text);
                case "string" -> number ? null : text;
                case "bytes" -> number ? null : Base64.getDecoder().decode(text);
                case "char" -> number || text.length() != 1 ? null : text.charAt(0);
                case "byte" -> number ? Byte.valueOf(text) : null;
                case "short" -> number ? Short.valueOf(text) : null;
                case "int" -> number ? Integer.valueOf(text) : null;
                case "long" -> number ? Long.valueOf(text) : null;
                default -> null;
            };
        } catch (IllegalArgumentException e) {
            return null;
        }
    }

    /** A JSON value without a type: a String, Boolean, Integer, Long, Double, null, or else its JSON text. */
    static Object plain(Object json) {
        if (json instanceof Json.Number n) {
            return n.value();
        }
        if (json instanceof Map || json instanceof List) {
            StringBuilder out = new StringBuilder();
            Json.value(out, json);
            return out.toString();
        }
        return json;
    }

    /** Writes a map as the text of a map message. */
    static String write(Map<String, Object> map) {
        StringBuilder out = new StringBuilder("{");
        String separator = "";
        for (Map.Entry<String, Object> entry : map.entrySet()) {
            out.append(separator);
            Json.string(out, entry.getKey());
            out.append(": ");
            value(out, entry.getValue());
            separator = ", ";
        }
        return out.append('}').toString();
    }

    /** Writes a list as the text of a stream message. */
    static String write(List<Object> list) {
        StringBuilder out = new StringBuilder("[");
        String separator = "";
        for (Object value : list) {
            out.append(separator);
            value(out, value);
            separator = ", ";
        }
        return out.append(']').toString();
    }

    /** Reads a JSON object; fails with IllegalArgumentException. */
    static Map<String, Object> readObject(String text) {
        if (Json.parse(text) instanceof Map<?, ?> map) {
            // the parser's maps have strings as keys
            @SuppressWarnings("unchecked")
            Map<String, Object> object = (Map<String, Object>) map;
            return object;
        }
        throw new IllegalArgumentException("JSON object expected");
    }
}
