package io.github.pgaq.jms.message;

import java.util.ArrayList;
import java.util.List;
import java.util.Set;

/**
 * The classes whose objects are read from object messages.
 *
 * <p>Reading serialized objects of any class would let a sender run code in the receiver. Always allowed are the values
 * and collections of {@code java.lang} and {@code java.util}, the values of {@code java.time}, {@code java.math} and
 * {@code java.sql}, and arrays of primitive types. Arrays are allowed if their elements are.
 */
public final class AllowedClasses {

    /** Only the values of Java itself. */
    public static final AllowedClasses DEFAULT = parse("");

    /** Name of the option, for errors. */
    static final String OPTION = "allowedClasses";

    private static final Set<String> LANG = Set.of(
            "Boolean",
            "Byte",
            "Short",
            "Character",
            "Integer",
            "Long",
            "Float",
            "Double",
            "Number",
            "String",
            "StringBuilder",
            "StringBuffer",
            "Enum",
            "Object");

    private static final Set<String> UTIL = Set.of(
            "ArrayList",
            "LinkedList",
            "Vector",
            "Stack",
            "ArrayDeque",
            "HashMap",
            "LinkedHashMap",
            "TreeMap",
            "Hashtable",
            "Properties",
            "IdentityHashMap",
            "HashSet",
            "LinkedHashSet",
            "TreeSet",
            "EnumMap",
            "EnumSet",
            "EnumSet$SerializationProxy",
            "BitSet",
            "Arrays$ArrayList",
            "CollSer",
            "Date",
            "UUID",
            "Locale",
            "Currency",
            "Calendar",
            "GregorianCalendar",
            "TimeZone",
            "SimpleTimeZone",
            "Map$Entry");

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
            if (pattern.equals("*")
                    || pattern.equals(className)
                    || className.startsWith(pattern + "$")
                    || pattern.endsWith(".*") && className.startsWith(pattern.substring(0, pattern.length() - 1))) {
                return true;
            }
        }
        return false;
    }

    private static boolean isValue(String name) {
        int dot = name.lastIndexOf('.');
        String simple = name.substring(dot + 1);
        return switch (dot < 0 ? "" : name.substring(0, dot)) {
            case "java.lang" -> LANG.contains(simple);
            case "java.util" ->
                UTIL.contains(simple) || simple.startsWith("Collections$") || simple.startsWith("AbstractMap$Simple");
            case "java.time", "java.math" -> true;
            case "java.sql" -> simple.equals("Date") || simple.equals("Time") || simple.equals("Timestamp");
            default -> name.equals("sun.util.calendar.ZoneInfo");
        };
    }
}
