package io.github.pgaq.jms.selector;

/** Literals of SQL and JSON for the server, whatever the value and the setting of standard_conforming_strings. */
final class Literals {
    private Literals() {}

    /** Whether the server can store the string: it has no character 0 and no half of a surrogate pair. */
    static boolean isStorable(String value) {
        return value.codePoints()
                .noneMatch(c -> c == 0 || c >= Character.MIN_SURROGATE && c <= Character.MAX_SURROGATE);
    }

    /** A literal of a type. */
    static String sql(String value, String type) {
        boolean escapes = value.chars().anyMatch(c -> c == '\\' || isControl(c));
        StringBuilder made = new StringBuilder(escapes ? "E'" : "'");

        for (int i = 0; i < value.length(); i++) {
            char c = value.charAt(i);
            if (c == '\'' || c == '\\') made.append(c).append(c);
            else if (isControl(c)) made.append(String.format("\\x%02x", (int) c));
            else made.append(c);
        }
        return made.append("'::").append(type).toString();
    }

    /** A string of JSON, as a literal of type jsonb. */
    static String jsonb(String value) {
        StringBuilder made = new StringBuilder("\"");

        for (int i = 0; i < value.length(); i++) {
            char c = value.charAt(i);
            if (c == '"' || c == '\\') made.append('\\').append(c);
            else if (isControl(c)) made.append(String.format("\\u%04x", (int) c));
            else made.append(c);
        }
        return sql(made.append('"').toString(), "jsonb");
    }

    private static boolean isControl(int c) {
        return c < ' ' || c == 0x7f;
    }
}
