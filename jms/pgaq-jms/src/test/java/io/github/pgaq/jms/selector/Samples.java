package io.github.pgaq.jms.selector;

import io.github.pgaq.jms.message.AllowedClasses;
import io.github.pgaq.jms.message.Messages;
import io.github.pgaq.jms.message.PgaqMessage;
import io.github.pgaq.jms.store.Delivery;
import io.github.pgaq.jms.store.Outgoing;
import jakarta.jms.DeliveryMode;
import jakarta.jms.JMSException;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.UUID;

/** Messages and selectors to evaluate. */
final class Samples {
    static final Messages MESSAGES = new Messages(AllowedClasses.DEFAULT, name -> null);

    private static final List<String> NAMES = List.of("a", "b", "c", "d", "n", "x_1", "über", "$p");
    private static final List<Object> VALUES = List.of(
            "",
            "red",
            "it's",
            "\\",
            "\\\\",
            "a\\'b",
            "100%",
            "a_b",
            "_",
            "5",
            "true",
            "null",
            "\"",
            "{}",
            "é",
            "😀",
            "x😀y",
            "\n\t\u0001\u007f",
            "E'",
            "$$",
            "RED",
            " red",
            "PERSISTENT",
            true,
            false,
            (byte) 5,
            (byte) -128,
            (short) 5,
            (short) -32768,
            0,
            1,
            -1,
            5,
            7,
            16777217,
            Integer.MAX_VALUE,
            Integer.MIN_VALUE,
            0L,
            5L,
            9007199254740993L,
            Long.MAX_VALUE,
            Long.MIN_VALUE,
            0.1f,
            5f,
            -0.0f,
            16777216f,
            Float.MAX_VALUE,
            Float.MIN_VALUE,
            Float.NaN,
            Float.POSITIVE_INFINITY,
            0.1,
            5.0,
            -0.0,
            0.30000000000000004,
            2.5,
            1e22,
            1e23,
            9007199254740992.0,
            Double.MAX_VALUE,
            Double.MIN_VALUE,
            Double.NaN,
            Double.POSITIVE_INFINITY,
            Double.NEGATIVE_INFINITY,
            1e300,
            1e-300);
    private static final List<String> NUMBERS = List.of(
            "0",
            "1",
            "5",
            "7",
            "5L",
            "2147483647",
            "2147483648",
            "-2147483648",
            "9223372036854775807",
            "-9223372036854775808",
            "0x10",
            "017",
            "5.0",
            "0.1",
            "0.1f",
            "0.2",
            "0.3",
            "2.5",
            "1e22",
            "1e23",
            "1e300",
            "1.7976931348623157e308",
            "4.9e-324",
            "16777216",
            "16777217",
            "16777216f",
            "9007199254740993",
            "9007199254740992.0",
            "-0.0",
            "3.4028235e38f",
            "1e-300",
            "-1",
            "2",
            "3");
    private static final List<String> OPERATORS = List.of("=", "<>", "<", "<=", ">", ">=");
    private static final List<String> PATTERNS = List.of(
            "%",
            "_", "%e%", "r_d", "\\", "%\\\\%", "a!_b", "100!%", "%!_%", "x_y", "", "%''%", "_%_", "%\n%", "%😀%", "E''",
            "!!%", "red", "%d");

    private Samples() {}

    /** A message with properties of all types. */
    static PgaqMessage known() throws JMSException {
        PgaqMessage message = MESSAGES.createMessage();
        Map<String, Object> properties = new LinkedHashMap<>();

        properties.put("s", "red");
        properties.put("quote", "it's");
        properties.put("bs", "a\\b");
        properties.put("pct", "50%_x");
        properties.put("u", "üñ😀");
        properties.put("num", "5");
        properties.put("yes", true);
        properties.put("no", false);
        properties.put("by", (byte) 5);
        properties.put("sh", (short) 7);
        properties.put("i", 10);
        properties.put("maxi", Integer.MAX_VALUE);
        properties.put("l", 10L);
        properties.put("maxl", Long.MAX_VALUE);
        properties.put("minl", Long.MIN_VALUE);
        properties.put("fl", 0.1f);
        properties.put("d", 0.1);
        properties.put("e22", 1e22);
        properties.put("maxd", Double.MAX_VALUE);
        properties.put("nan", Double.NaN);
        properties.put("inf", Double.POSITIVE_INFINITY);
        properties.put("ninf", Float.NEGATIVE_INFINITY);
        properties.put("nzero", -0.0);
        properties.put("zero", 0);
        properties.put("nothing", null);
        properties.put("JMSXGroupID", "g1");
        properties.put("JMSXGroupSeq", 3);
        properties.put("JMS_vendor", "v");
        for (Map.Entry<String, Object> property : properties.entrySet())
            message.setObjectProperty(property.getKey(), property.getValue());
        message.setJMSType("order");
        message.setJMSCorrelationID("c-1");
        message.setJMSPriority(7);
        message.setJMSDeliveryMode(DeliveryMode.NON_PERSISTENT);
        message.setJMSTimestamp(1700000000123L);
        message.setJMSMessageID("ID:11111111-2222-3333-4444-555555555555");
        return message;
    }

    static PgaqMessage random(Random random) throws JMSException {
        PgaqMessage message = MESSAGES.createMessage();

        for (String name : NAMES)
            if (random.nextInt(5) > 0)
                message.setObjectProperty(
                        name, random.nextInt(12) == 0 ? null : VALUES.get(random.nextInt(VALUES.size())));
        if (random.nextBoolean()) message.setJMSType(random.nextBoolean() ? "red" : "it's");
        if (random.nextBoolean()) message.setJMSCorrelationID(random.nextBoolean() ? "red" : "a\\'b");
        message.setJMSPriority(random.nextInt(10));
        message.setJMSDeliveryMode(random.nextBoolean() ? DeliveryMode.PERSISTENT : DeliveryMode.NON_PERSISTENT);
        message.setJMSTimestamp(random.nextBoolean() ? 5 : System.currentTimeMillis());
        message.setJMSMessageID("ID:" + new UUID(random.nextLong(), random.nextLong()));
        return message;
    }

    /** The message as a client receives it at its first delivery. */
    static PgaqMessage received(PgaqMessage message) throws JMSException {
        return MESSAGES.toClient(
                new Delivery(
                        UUID.randomUUID(), 0, 0, 9 - message.getJMSPriority(), 1, 0, 0, null, MESSAGES.toBody(message)),
                null,
                null);
    }

    static Outgoing outgoing(String queue, PgaqMessage message) throws JMSException {
        return new Outgoing(queue, MESSAGES.toBody(message), 9 - message.getJMSPriority(), 0, 0, null, null, null);
    }

    // --- selectors ---

    static String selector(Random random, int depth) {
        switch (depth == 0 ? 2 + random.nextInt(8) : random.nextInt(10)) {
            case 0:
                return "(" + selector(random, depth - 1) + (random.nextBoolean() ? " AND " : " OR ")
                        + selector(random, depth - 1) + ")";
            case 1:
                return "NOT (" + selector(random, depth - 1) + ")";
            case 2:
                return identifier(random, true) + not(random) + " IN (" + string(random) + ", " + string(random) + ")";
            case 3:
                return identifier(random, true) + not(random) + " LIKE '" + pick(random, PATTERNS)
                        + (random.nextBoolean() ? "'" : "a' ESCAPE '!'");
            case 4:
                return identifier(random, false) + " IS" + not(random) + " NULL";
            case 5:
                return number(random, 1) + not(random) + " BETWEEN " + number(random, 1) + " AND " + number(random, 0);
            case 6:
                return random.nextBoolean() ? pick(random, NAMES) : pick(random, NAMES) + equal(random) + "TRUE";
            case 7:
                return identifier(random, false)
                        + equal(random)
                        + (random.nextBoolean() ? string(random) : identifier(random, false));
            case 8:
                return string(random) + equal(random) + identifier(random, false);
            default:
                return number(random, 2) + " " + pick(random, OPERATORS) + " " + number(random, 2);
        }
    }

    private static String number(Random random, int depth) {
        switch (depth == 0 ? random.nextInt(4) : random.nextInt(7)) {
            case 0:
                return pick(random, NUMBERS);
            case 1:
                return pick(random, List.of("JMSPriority", "JMSTimestamp", "JMSXDeliveryCount"));
            case 2, 3:
                return pick(random, NAMES);
            case 4:
                return "- " + number(random, depth - 1);
            default:
                return "(" + number(random, depth - 1) + " " + pick(random, List.of("+", "-", "*", "/")) + " "
                        + number(random, depth - 1) + ")";
        }
    }

    private static String identifier(Random random, boolean string) {
        if (random.nextInt(3) > 0) return pick(random, NAMES);
        return pick(
                random,
                string
                        ? List.of("JMSType", "JMSCorrelationID", "JMSMessageID", "JMSDeliveryMode")
                        : List.of(
                                "JMSType",
                                "JMSCorrelationID",
                                "JMSMessageID",
                                "JMSDeliveryMode",
                                "JMSPriority",
                                "JMSXDeliveryCount"));
    }

    private static String string(Random random) {
        Object value = VALUES.get(random.nextInt(VALUES.size()));

        return random.nextInt(40) == 0 ? "'\0'" : "'" + value.toString().replace("'", "''") + "'";
    }

    private static String equal(Random random) {
        return random.nextBoolean() ? " = " : " <> ";
    }

    private static String not(Random random) {
        return random.nextInt(3) == 0 ? " NOT" : "";
    }

    private static String pick(Random random, List<String> from) {
        return from.get(random.nextInt(from.size()));
    }
}
