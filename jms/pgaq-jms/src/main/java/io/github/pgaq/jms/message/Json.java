package io.github.pgaq.jms.message;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Reads and writes JSON (RFC 8259), strictly.
 *
 * <p>Objects are {@link LinkedHashMap}s, arrays {@link ArrayList}s, numbers {@link Number}s that keep their text.
 */
final class Json {

    /** Nesting that {@link #parse} accepts. */
    static final int MAX_DEPTH = 200;

    /** A number as it was written: JSON does not limit its size or precision. */
    record Number(String text) {

        /** Whether it has neither fraction nor exponent. */
        boolean isInteger() {
            for (int i = 0; i < text.length(); i++) {
                char c = text.charAt(i);
                if (c == '.' || c == 'e' || c == 'E') {
                    return false;
                }
            }
            return true;
        }

        /** An Integer, or a Long if it is larger, or a Double if it is larger still or has a fraction. */
        Object value() {
            if (isInteger()) {
                try {
                    long value = Long.parseLong(text);
                    if (value == (int) value) {
                        return (int) value;
                    }
                    return value;
                } catch (NumberFormatException tooLarge) {
                    return Double.valueOf(text);
                }
            }
            return Double.valueOf(text);
        }
    }

    private final String text;
    private int at;
    private int depth;

    private Json(String text) {
        this.text = text;
    }

    /**
     * Reads a JSON value.
     *
     * @return a Map, a List, a String, a {@link Number}, a Boolean or null
     * @throws IllegalArgumentException if the text is not JSON; the message says where
     */
    static Object parse(String text) {
        Json reader = new Json(text);
        reader.skipSpace();
        Object value = reader.value();
        reader.skipSpace();
        if (reader.at < text.length()) {
            throw reader.error("end of text expected");
        }
        return value;
    }

    private Object value() {
        if (at >= text.length()) {
            throw error("value expected");
        }
        char c = text.charAt(at);
        switch (c) {
            case '{':
                return object();
            case '[':
                return array();
            case '"':
                return string();
            case 't':
                return word("true", Boolean.TRUE);
            case 'f':
                return word("false", Boolean.FALSE);
            case 'n':
                return word("null", null);
            default:
                if (c == '-' || isDigit(c)) {
                    return number();
                }
                throw error("value expected");
        }
    }

    private Map<String, Object> object() {
        enter();
        Map<String, Object> map = new LinkedHashMap<>();
        if (!closes('}')) {
            do {
                skipSpace();
                if (at >= text.length() || text.charAt(at) != '"') {
                    throw error("name expected");
                }
                String name = string();
                skipSpace();
                if (at >= text.length() || text.charAt(at) != ':') {
                    throw error("\":\" expected");
                }
                at++;
                skipSpace();
                map.put(name, value());
            } while (continues('}'));
        }
        depth--;
        return map;
    }

    private List<Object> array() {
        enter();
        List<Object> list = new ArrayList<>();
        if (!closes(']')) {
            do {
                skipSpace();
                list.add(value());
            } while (continues(']'));
        }
        depth--;
        return list;
    }

    private void enter() {
        if (++depth > MAX_DEPTH) {
            throw error("nested deeper than " + MAX_DEPTH);
        }
        at++;
    }

    private boolean closes(char close) {
        skipSpace();
        if (at < text.length() && text.charAt(at) == close) {
            at++;
            return true;
        }
        return false;
    }

    private boolean continues(char close) {
        if (closes(close)) {
            return false;
        }
        if (at < text.length() && text.charAt(at) == ',') {
            at++;
            return true;
        }
        throw error("\",\" or \"" + close + "\" expected");
    }

    private Object word(String word, Object value) {
        if (!text.startsWith(word, at)) {
            throw error("value expected");
        }
        at += word.length();
        return value;
    }

    private Number number() {
        int start = at;
        if (text.charAt(at) == '-') {
            at++;
        }
        if (at < text.length() && text.charAt(at) == '0') {
            at++;
        } else {
            digits();
        }
        if (at < text.length() && text.charAt(at) == '.') {
            at++;
            digits();
        }
        if (at < text.length() && (text.charAt(at) == 'e' || text.charAt(at) == 'E')) {
            at++;
            if (at < text.length() && (text.charAt(at) == '+' || text.charAt(at) == '-')) {
                at++;
            }
            digits();
        }
        return new Number(text.substring(start, at));
    }

    private void digits() {
        int start = at;
        while (at < text.length() && isDigit(text.charAt(at))) {
            at++;
        }
        if (at == start) {
            throw error("digit expected");
        }
    }

    private String string() {
        int start = ++at;
        while (at < text.length()) {
            char c = text.charAt(at);
            if (c == '"') {
                return text.substring(start, at++);
            }
            if (c == '\\') {
                return escapedString(start);
            }
            if (c < ' ') {
                throw error("control character in a string");
            }
            at++;
        }
        throw error("string without end");
    }

    private String escapedString(int start) {
        StringBuilder result = new StringBuilder(text.length() - start < 64 ? 64 : 256).append(text, start, at);
        while (at < text.length()) {
            char c = text.charAt(at++);
            if (c == '"') {
                return result.toString();
            }
            if (c < ' ') {
                at--;
                throw error("control character in a string");
            }
            result.append(c == '\\' ? escape() : c);
        }
        throw error("string without end");
    }

    private char escape() {
        if (at >= text.length()) {
            throw error("string without end");
        }
        char c = text.charAt(at++);
        switch (c) {
            case '"':
            case '\\':
            case '/':
                return c;
            case 'b':
                return '\b';
            case 'f':
                return '\f';
            case 'n':
                return '\n';
            case 'r':
                return '\r';
            case 't':
                return '\t';
            case 'u':
                return hex();
            default:
                at--;
                throw error("unknown escape");
        }
    }

    private char hex() {
        int code = 0;
        for (int i = 0; i < 4; i++, at++) {
            char c = at < text.length() ? text.charAt(at) : 0;
            int digit = c < 128 ? Character.digit(c, 16) : -1;
            if (digit < 0) {
                throw error("four hexadecimal digits expected");
            }
            code = code * 16 + digit;
        }
        return (char) code;
    }

    private void skipSpace() {
        while (at < text.length()) {
            char c = text.charAt(at);
            if (c != ' ' && c != '\n' && c != '\r' && c != '\t') {
                return;
            }
            at++;
        }
    }

    private static boolean isDigit(char c) {
        return c >= '0' && c <= '9';
    }

    private IllegalArgumentException error(String what) {
        return new IllegalArgumentException("invalid JSON at character " + (at + 1) + ": " + what);
    }

    /** Appends a string with its quotes. Unpaired surrogates, which UTF-8 lacks, become escapes. */
    static void string(StringBuilder out, String value) {
        out.append('"');
        int length = value.length();
        int plain = 0;
        while (plain < length && isPlain(value.charAt(plain))) {
            plain++;
        }
        out.append(value, 0, plain);
        for (int i = plain; i < length; i++) {
            char c = value.charAt(i);
            if (isPlain(c)) {
                out.append(c);
            } else if (Character.isHighSurrogate(c)
                    && i + 1 < length
                    && Character.isLowSurrogate(value.charAt(i + 1))) {
                out.append(c).append(value.charAt(++i));
            } else {
                escape(out, c);
            }
        }
        out.append('"');
    }

    private static boolean isPlain(char c) {
        return c >= ' ' && c != '"' && c != '\\' && !Character.isSurrogate(c);
    }

    private static void escape(StringBuilder out, char c) {
        switch (c) {
            case '"' -> out.append("\\\"");
            case '\\' -> out.append("\\\\");
            case '\n' -> out.append("\\n");
            case '\r' -> out.append("\\r");
            case '\t' -> out.append("\\t");
            default -> out.append(String.format("\\u%04x", (int) c));
        }
    }

    /** Appends any value that {@link #parse} returns. */
    static void value(StringBuilder out, Object value) {
        if (value instanceof String s) {
            string(out, s);
        } else if (value instanceof Number n) {
            out.append(n.text);
        } else if (value instanceof Map<?, ?> map) {
            String separator = "{";
            for (Map.Entry<?, ?> entry : map.entrySet()) {
                out.append(separator);
                string(out, (String) entry.getKey());
                out.append(": ");
                value(out, entry.getValue());
                separator = ", ";
            }
            out.append(map.isEmpty() ? "{}" : "}");
        } else if (value instanceof List<?> list) {
            String separator = "[";
            for (Object element : list) {
                out.append(separator);
                value(out, element);
                separator = ", ";
            }
            out.append(list.isEmpty() ? "[]" : "]");
        } else {
            out.append(value);
        }
    }
}
