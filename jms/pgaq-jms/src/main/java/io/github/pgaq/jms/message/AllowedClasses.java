package io.github.pgaq.jms.message;

import java.util.ArrayList;
import java.util.List;

/**
 * The classes whose objects are read from object messages.
 *
 * <p>Reading serialized objects of any class would let a sender run code in the receiver. Always allowed are arrays of
 * allowed classes, enumerations of allowed packages, and values of {@code java.lang}, {@code java.util}, {@code java.time}
 * and {@code java.math}.
 */
public final class AllowedClasses {

    /** Only the values of Java itself. */
    public static final AllowedClasses DEFAULT = parse("");

    /** Name of the option, for errors. */
    static final String OPTION = "allowedClasses";

    private final List<String> patterns = new ArrayList<>();

    private AllowedClasses() {}

    /**
     * Reads the value of the option {@code allowedClasses}.
     *
     * @param value class names, separated by commas; {@code a.b.*} stands for the classes of package {@code a.b} and of
     *     those below it, {@code *} for all classes; null and "" for none
     */
    public static AllowedClasses parse(String value) {
        AllowedClasses result = new AllowedClasses();
        if (value != null) {
            for (String pattern : value.split(",")) {
                if (!pattern.isBlank()) {
                    result.patterns.add(pattern.strip());
                }
            }
        }
        return result;
    }

    /** Whether objects of the class may be read. */
    boolean allows(String className) {
        if (isValue(className)) {
            return true;
        }
        for (String pattern : patterns) {
            if (pattern.equals("*") || pattern.equals(className) || className.startsWith(pattern + "$")
                    || pattern.endsWith(".*") && className.startsWith(pattern.substring(0, pattern.length() - 1))) {
                return true;
            }
        }
        return false;
    }

    private static boolean isValue(String name) {
        int dot = name.lastIndexOf('.');
        String rest = name.substring(dot + 1);
        return switch (dot < 0 ? "" : name.substring(0, dot)) {
            case "java.lang" -> VALUES_OF_LANG.contains(rest);
            case "java.util" -> !rest.startsWith("PriorityQueue") && !rest.startsWith("ServiceLoader")
                    && !rest.startsWith("Formatter") && !rest.startsWith("Scanner") && !rest.startsWith("Timer");
            case "java.time", "java.math" -> true;
            default -> false;
        };
    }

    private static final java.util.Set<String> VALUES_OF_LANG = java.util.Set.of("Boolean", "Byte", "Short", "Character",
            "Integer", "Long", "Float", "Double", "Number", "String", "StringBuilder", "StringBuffer", "Enum", "Object");
}
