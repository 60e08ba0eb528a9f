package io.github.pgaq.jms.selector;

import java.util.List;
import java.util.stream.Collectors;

/** Conditions of the server that consumers need beside their selector. */
public final class Conditions {
    private static final String COMMENT = "/* selector";
    private static final String COMMENT_END = " */ ";

    private Conditions() {}

    /**
     * The condition that the messages of a destination meet.
     *
     * @param address the destination's form in the headers
     */
    public static String destination(String address) {
        return "headers->>'destination' = " + literal(address);
    }

    /**
     * The condition that the messages of all destinations but these meet; null: of all.
     *
     * @param addresses their forms in the headers
     */
    public static String otherDestinations(List<String> addresses) {
        return addresses.isEmpty()
                ? null
                : "headers->>'destination' NOT IN ("
                        + addresses.stream().map(Conditions::literal).collect(Collectors.joining(", ")) + ")";
    }

    /**
     * The condition that the messages of other connections meet.
     *
     * @param connection the connection's name in the headers
     */
    public static String notFrom(String connection) {
        return "headers->>'connection' IS DISTINCT FROM " + literal(connection);
    }

    /** Both conditions; null stands for no condition. */
    public static String and(String one, String other) {
        if (one == null || other == null) {
            return one == null ? other : one;
        }
        return "(" + one + ") AND (" + other + ")";
    }

    /**
     * The rule of a durable subscription: the condition, and before it, as a comment, what it was translated from. The
     * subscription remains the same if another version translates that to another condition.
     *
     * @param selector the selector's text, or null
     * @param noLocal whether the condition leaves out messages of the same connection
     */
    public static String rule(String selector, boolean noLocal, String condition) {
        if (selector == null) {
            return condition;
        }
        // without asterisks the text cannot end the comment, nor begin one in it
        String text = selector.replace("\\", "\\\\").replace("*", "\\u002a");
        return COMMENT + (noLocal ? ", noLocal" : "") + ": " + text + COMMENT_END + condition;
    }

    /** Whether two rules, or null, have the same condition, or were translated from the same selector. */
    public static boolean isSameRule(String one, String other) {
        int end = commentEnd(one);
        int otherEnd = commentEnd(other);
        return one == null || other == null
                ? one == other
                : one.substring(end).equals(other.substring(otherEnd))
                        || end > 0 && one.substring(0, end).equals(other.substring(0, otherEnd));
    }

    private static int commentEnd(String rule) {
        return rule == null || !rule.startsWith(COMMENT) ? 0 : rule.indexOf(COMMENT_END) + COMMENT_END.length();
    }

    /** The form does not depend on standard_conforming_strings. */
    private static String literal(String value) {
        String quoted = value.replace("'", "''");
        return quoted.indexOf('\\') < 0 ? "'" + quoted + "'" : "E'" + quoted.replace("\\", "\\\\") + "'";
    }
}
