package io.github.pgaq.jms.selector;

/** Conditions of the server that consumers need beside their selector. */
public final class Conditions {
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

    /** The form does not depend on standard_conforming_strings. */
    private static String literal(String value) {
        String quoted = value.replace("'", "''");
        return quoted.indexOf('\\') < 0 ? "'" + quoted + "'" : "E'" + quoted.replace("\\", "\\\\") + "'";
    }
}
