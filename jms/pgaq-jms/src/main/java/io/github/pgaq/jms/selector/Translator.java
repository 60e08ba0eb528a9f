package io.github.pgaq.jms.selector;

import io.github.pgaq.jms.selector.Expression.And;
import io.github.pgaq.jms.selector.Expression.Arithmetic;
import io.github.pgaq.jms.selector.Expression.Between;
import io.github.pgaq.jms.selector.Expression.Comparison;
import io.github.pgaq.jms.selector.Expression.Condition;
import io.github.pgaq.jms.selector.Expression.Header;
import io.github.pgaq.jms.selector.Expression.Identifier;
import io.github.pgaq.jms.selector.Expression.In;
import io.github.pgaq.jms.selector.Expression.IsNull;
import io.github.pgaq.jms.selector.Expression.IsString;
import io.github.pgaq.jms.selector.Expression.Like;
import io.github.pgaq.jms.selector.Expression.Literal;
import io.github.pgaq.jms.selector.Expression.Not;
import io.github.pgaq.jms.selector.Expression.Operator;
import io.github.pgaq.jms.selector.Expression.Or;
import io.github.pgaq.jms.selector.Expression.Property;
import io.github.pgaq.jms.selector.Expression.Signed;
import io.github.pgaq.jms.selector.Expression.Type;
import io.github.pgaq.jms.selector.Expression.Value;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Function;
import java.util.stream.Collectors;

/**
 * Translates a condition to SQL over a message of the server.
 *
 * <p>Only two questions are asked: is the condition true, and, below NOT, is it false? The SQL is true if the answer
 * is yes; if not, it is false or null, which the server does not distinguish. Three-valued logic is so left to the
 * few places where it matters: a comparison is false if it is not true and both sides are known.
 *
 * <p>All literals have a type, so that operators match those of pg_catalog exactly, whatever the search_path. No
 * expression raises an error for any message. Numbers are compared by the server's {@code aq_jms} functions, which
 * calculate as Java does.
 */
final class Translator {
    private static final String DELIVERY_COUNT = "JMSXDeliveryCount";
    private static final String ALWAYS = "true";
    private static final String NEVER = "false";

    private final Columns columns;

    Translator(Columns columns) {
        this.columns = columns;
    }

    String translate(Condition condition) {
        return holds(condition, true);
    }

    // --- conditions ---

    /** SQL that is true if and only if the condition has this truth value. */
    private String holds(Condition condition, boolean truth) {
        if (condition instanceof And and)
            return joined(and.operands(), operand -> holds(operand, truth), truth ? " AND " : " OR ");
        if (condition instanceof Or or)
            return joined(or.operands(), operand -> holds(operand, truth), truth ? " OR " : " AND ");
        if (condition instanceof Not not) return holds(not.operand(), !truth);
        if (condition instanceof Between between)
            return holds(
                    new And(List.of(
                            new Comparison(Operator.GREATER_OR_EQUAL, between.value(), between.low()),
                            new Comparison(Operator.LESS_OR_EQUAL, between.value(), between.high()))),
                    truth);
        if (condition instanceof IsNull isNull)
            return truth ? unknown(isNull.identifier()) : known(isNull.identifier());
        if (condition instanceof Comparison comparison)
            return truth ? compared(comparison) : isFalse(compared(comparison), comparison.left(), comparison.right());
        if (condition instanceof IsString is) {
            String isString = canBe(is.identifier(), Type.STRING) ? isString(is.identifier()) : NEVER;
            return truth ? isString : isFalse(isString, is.identifier());
        }
        if (condition instanceof In in) return truth ? in(in) : isFalse(in(in), in.identifier());
        Like like = (Like) condition;
        return truth ? like(like) : isFalse(like(like), like.identifier());
    }

    /** What is not true, although all values are known, is false. */
    private String isFalse(String isTrue, Value... values) {
        List<String> parts = new ArrayList<>();

        for (Value value : values) if (!known(value).equals(ALWAYS)) parts.add(known(value));
        if (!isTrue.equals(NEVER)) parts.add(isTrue.equals(ALWAYS) ? NEVER : "(" + isTrue + ") IS NOT TRUE");
        return all(parts);
    }

    private String compared(Comparison comparison) {
        List<String> ways = new ArrayList<>();
        Operator operator = comparison.operator();
        Value left = comparison.left();
        Value right = comparison.right();

        if (left instanceof Literal && !(right instanceof Literal))
            return compared(new Comparison(mirrored(operator), right, left));
        if (!operator.isOrdering() && canBoth(left, right, Type.STRING))
            ways.add(comparedStrings(left, operator, right));
        if (!operator.isOrdering() && canBoth(left, right, Type.BOOLEAN))
            ways.add(comparedBooleans(left, operator, right));
        if (canBoth(left, right, Type.NUMBER)) ways.add(comparedNumbers(left, operator, right));
        ways.removeIf(NEVER::equals);
        return ways.isEmpty() ? NEVER : ways.size() == 1 ? ways.get(0) : "(" + String.join(" OR ", ways) + ")";
    }

    private String comparedStrings(Value left, Operator operator, Value right) {
        if (right instanceof Literal literal) {
            String string = (String) literal.value();
            if (left instanceof Literal other)
                return constant(other.value().equals(string) == (operator == Operator.EQUAL));
            if (!Literals.isStorable(string)) // no string of a message is equal
            return operator == Operator.EQUAL ? NEVER : isString(left);
            if (left instanceof Property property)
                return operator == Operator.EQUAL
                        ? json(property) + " = " + Literals.jsonb(string)
                        : all(List.of(isString(left), json(property) + " <> " + Literals.jsonb(string)));
        }
        List<String> parts = new ArrayList<>();
        if (left instanceof Property) parts.add(isString(left));
        if (right instanceof Property) parts.add(isString(right));
        parts.add(text(left) + " " + operator.sign + " " + text(right));
        return all(parts);
    }

    private String comparedBooleans(Value left, Operator operator, Value right) {
        if (right instanceof Literal literal) {
            boolean wanted = literal.value().equals(operator == Operator.EQUAL);
            if (left instanceof Literal other) return constant(other.value().equals(wanted));
            return json(left) + " = '" + wanted + "'::jsonb";
        }
        return all(List.of(
                typeIs(left, "boolean"),
                typeIs(right, "boolean"),
                json(left) + " " + operator.sign + " " + json(right)));
    }

    private String comparedNumbers(Value left, Operator operator, Value right) {
        if (right instanceof Literal literal) {
            if (left instanceof Literal other)
                return constant(Numbers.compare((Number) other.value(), operator, (Number) literal.value()));
            if (left == Header.JMSPriority) return comparedPriority(operator, (Number) literal.value());
        }
        return "aq_jms.compare(" + number(left) + ", " + Literals.sql(operator.sign, "text") + ", " + number(right)
                + ")";
    }

    /** The priorities of the server, 0 first, that meet a comparison of the JMS priority, 9 first. */
    private String comparedPriority(Operator operator, Number literal) {
        List<String> between = new ArrayList<>();
        List<String> ways = new ArrayList<>();

        for (int priority = 1; priority <= 8; priority++)
            if (Numbers.compare(9 - priority, operator, literal)) between.add(Integer.toString(priority));
        if (Numbers.compare(9, operator, literal)) ways.add("priority <= 0");
        if (!between.isEmpty()) ways.add("priority IN (" + String.join(", ", between) + ")");
        if (Numbers.compare(0, operator, literal)) ways.add("priority >= 9");
        return ways.isEmpty()
                ? NEVER
                : ways.size() == 3 && between.size() == 8 ? ALWAYS : "(" + String.join(" OR ", ways) + ")";
    }

    private String in(In in) {
        List<String> values =
                in.values().stream().filter(Literals::isStorable).distinct().toList();

        if (values.isEmpty() || !canBe(in.identifier(), Type.STRING)) return NEVER;
        if (in.identifier() instanceof Property property)
            return json(property) + " IN ("
                    + values.stream().map(Literals::jsonb).collect(Collectors.joining(", ")) + ")";
        return text(in.identifier()) + " IN ("
                + values.stream().map(value -> Literals.sql(value, "text")).collect(Collectors.joining(", ")) + ")";
    }

    private String like(Like like) {
        String pattern = like.pattern().toServerPattern();

        if (!Literals.isStorable(pattern) || !canBe(like.identifier(), Type.STRING)) return NEVER;
        String matches = text(like.identifier()) + " LIKE " + Literals.sql(pattern, "text");
        return like.identifier() instanceof Property ? all(List.of(isString(like.identifier()), matches)) : matches;
    }

    // --- values ---

    private static boolean canBe(Value value, Type type) {
        return value instanceof Property property && property.name().equals(DELIVERY_COUNT)
                ? type == Type.NUMBER
                : value.canBe(type) && !isAbsent(value);
    }

    private static boolean canBoth(Value left, Value right, Type type) {
        return canBe(left, type) && canBe(right, type);
    }

    /** Whether no message can have the property. */
    private static boolean isAbsent(Value value) {
        return value instanceof Property property && !Literals.isStorable(property.name());
    }

    private String known(Value value) {
        if (isAbsent(value)) return NEVER;
        if (isAlwaysKnown(value)) return ALWAYS;
        return "(" + (value instanceof Identifier ? text(value) : number(value)) + ") IS NOT NULL";
    }

    private String unknown(Identifier identifier) {
        if (isAbsent(identifier)) return ALWAYS;
        return isAlwaysKnown(identifier) ? NEVER : "(" + text(identifier) + ") IS NULL";
    }

    private static boolean isAlwaysKnown(Value value) {
        return value instanceof Literal
                || value == Header.JMSDeliveryMode
                || value == Header.JMSPriority
                || value == Header.JMSMessageID
                || value == Header.JMSTimestamp
                || value instanceof Property property && property.name().equals(DELIVERY_COUNT);
    }

    private String isString(Value value) {
        return value instanceof Property ? typeIs(value, "string") : known(value);
    }

    private String typeIs(Value property, String type) {
        return "pg_catalog.jsonb_typeof(" + json(property) + ") = " + Literals.sql(type, "text");
    }

    private String json(Value property) {
        String name = ((Property) property).name();
        String value = columns.properties + " -> " + Literals.sql(name, "text");
        return isGroup(name) ? "coalesce(pg_catalog.to_jsonb(key), " + value + ")" : value;
    }

    private String textOf(Property property) {
        return columns.properties + " ->> " + Literals.sql(property.name(), "text");
    }

    /** Whether it is the group of a message that is no {@code aq.jms_message}: the server's key. */
    private boolean isGroup(String name) {
        return columns == Columns.OF_OTHERS && name.equals("JMSXGroupID");
    }

    /** A value as text; null if a property does not exist or is JSON's null. */
    private String text(Value value) {
        if (value instanceof Literal literal) return Literals.sql((String) literal.value(), "text");
        if (value instanceof Property property)
            return isGroup(property.name()) ? "coalesce(key, " + textOf(property) + ")" : textOf(property);
        return switch ((Header) value) {
            case JMSDeliveryMode ->
                "CASE WHEN " + columns.deliveryMode + " = '1'::jsonb "
                        + "THEN 'NON_PERSISTENT'::text ELSE 'PERSISTENT'::text END";
            case JMSMessageID -> "coalesce(" + columns.messageId + ", 'ID:'::text || msgid::text)";
            case JMSCorrelationID -> columns.correlationId;
            case JMSType -> columns.type;
            default -> throw new IllegalStateException(value + " is a number");
        };
    }

    /** A value as {@code aq_jms.number} makes it; null if it is not a number. */
    private String number(Value value) {
        if (value instanceof Literal literal)
            return "aq_jms.number(" + Literals.sql(literal.value().toString(), sqlType((Number) literal.value())) + ")";
        if (value instanceof Arithmetic arithmetic)
            return "aq_jms.calculate(" + number(arithmetic.left()) + ", "
                    + Literals.sql(Character.toString(arithmetic.operator()), "text") + ", "
                    + number(arithmetic.right()) + ")";
        if (value instanceof Signed signed)
            return signed.sign() == '+' ? number(signed.operand()) : "aq_jms.negate(" + number(signed.operand()) + ")";
        if (value == Header.JMSPriority)
            return "aq_jms.number(CASE WHEN priority <= 0 THEN 9 WHEN priority >= 9 THEN 0 ELSE 9 - priority END)";
        if (value == Header.JMSTimestamp) return columns.timestamp;
        String name = ((Property) value).name();
        if (name.equals(DELIVERY_COUNT))
            return "aq_jms.calculate(aq_jms.number(attempts), '+'::text, aq_jms.number('1'::integer))";
        return isAbsent(value)
                ? "NULL::bytea"
                : "aq_jms.number(" + columns.properties + ", " + columns.propertyTypes + ", "
                        + Literals.sql(name, "text") + ")";
    }

    private static String sqlType(Number number) {
        return number instanceof Integer
                ? "integer"
                : number instanceof Long ? "bigint" : number instanceof Float ? "real" : "double precision";
    }

    // --- SQL ---

    private static Operator mirrored(Operator operator) {
        return switch (operator) {
            case LESS -> Operator.GREATER;
            case LESS_OR_EQUAL -> Operator.GREATER_OR_EQUAL;
            case GREATER -> Operator.LESS;
            case GREATER_OR_EQUAL -> Operator.LESS_OR_EQUAL;
            default -> operator;
        };
    }

    private static String constant(boolean value) {
        return value ? ALWAYS : NEVER;
    }

    private static String all(List<String> parts) {
        return parts.isEmpty() ? ALWAYS : parts.size() == 1 ? parts.get(0) : "(" + String.join(" AND ", parts) + ")";
    }

    private static String joined(List<Condition> operands, Function<Condition, String> translate, String operator) {
        return operands.stream().map(translate).collect(Collectors.joining(operator, "(", ")"));
    }
}
