package io.github.pgaq.jms.message;

import jakarta.jms.MessageFormatException;
import java.util.Locale;
import java.util.Map;
import java.util.Set;

/** The names that properties can have (specification 3.5.1, 3.5.9 and 3.5.10). */
final class PropertyNames {

    static final String DELIVERY_COUNT = "JMSXDeliveryCount";

    private static final Set<String> RESERVED =
            Set.of("NULL", "TRUE", "FALSE", "NOT", "AND", "OR", "BETWEEN", "LIKE", "IN", "IS", "ESCAPE");

    private static final Map<String, Class<?>> JMSX = Map.of(
            "JMSXUserID",
            String.class,
            "JMSXAppID",
            String.class,
            DELIVERY_COUNT,
            Integer.class,
            "JMSXGroupID",
            String.class,
            "JMSXGroupSeq",
            Integer.class,
            "JMSXProducerTXID",
            String.class,
            "JMSXConsumerTXID",
            String.class,
            "JMSXRcvTimestamp",
            Long.class,
            "JMSXState",
            Integer.class);

    private PropertyNames() {}

    /** Fails with IllegalArgumentException if a client cannot set a property with this name. */
    static void check(String name) {
        if (name == null || name.isEmpty()) {
            throw new IllegalArgumentException("the name of a property cannot be null or empty");
        }
        if (!isIdentifier(name)) {
            throw new IllegalArgumentException("property name \"" + name + "\" is not a Java identifier");
        }
        if (RESERVED.contains(name.toUpperCase(Locale.ROOT))) {
            throw new IllegalArgumentException("property name \"" + name + "\" is a reserved word of selectors");
        }
        if (name.startsWith("JMS") && !name.startsWith("JMS_") && !JMSX.containsKey(name)) {
            throw new IllegalArgumentException("property name \"" + name + "\" is reserved: names that begin with JMS"
                    + " belong to the specification, except those that begin with JMS_");
        }
    }

    /** Whether a client can set a property with this name. */
    static boolean isValid(String name) {
        return name != null
                && !name.isEmpty()
                && isIdentifier(name)
                && !RESERVED.contains(name.toUpperCase(Locale.ROOT))
                && (!name.startsWith("JMS") || name.startsWith("JMS_") || JMSX.containsKey(name));
    }

    /** Fails with MessageFormatException if the property must have another type. */
    static void checkType(String name, Object value) throws MessageFormatException {
        Class<?> type = JMSX.get(name);
        if (type != null && value != null && value.getClass() != type) {
            throw new MessageFormatException("property " + name + " must be "
                    + (type == String.class ? "a String" : "of type " + (type == Long.class ? "long" : "int"))
                    + ", not " + Conversions.typeName(value));
        }
    }

    private static boolean isIdentifier(String name) {
        return Character.isJavaIdentifierStart(name.codePointAt(0))
                && name.codePoints().allMatch(c -> Character.isJavaIdentifierPart(c) && c != 0);
    }
}
