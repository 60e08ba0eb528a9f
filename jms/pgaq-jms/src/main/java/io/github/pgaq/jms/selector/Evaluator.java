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
import io.github.pgaq.jms.selector.Expression.Value;
import jakarta.jms.DeliveryMode;
import jakarta.jms.JMSException;
import jakarta.jms.Message;

/** Evaluates a condition for a message. Unknown is a null Boolean. */
final class Evaluator {
    private final Message message;

    Evaluator(Message message) {
        this.message = message;
    }

    Boolean evaluate(Condition condition) throws JMSException {
        if (condition instanceof And and) return all(and.operands(), true);
        if (condition instanceof Or or) return all(or.operands(), false);
        if (condition instanceof Not not) return not(evaluate(not.operand()));
        if (condition instanceof Comparison comparison)
            return compare(value(comparison.left()), comparison.operator(), value(comparison.right()));
        if (condition instanceof Between between) return between(between);
        if (condition instanceof In in) return in(in);
        if (condition instanceof Like like) return like(like);
        if (condition instanceof IsString is) return isString(value(is.identifier()));
        return value(((IsNull) condition).identifier()) == null;
    }

    /** AND, of which a false operand decides, or OR, of which a true one does. */
    private Boolean all(Iterable<Condition> operands, boolean and) throws JMSException {
        boolean unknown = false;

        for (Condition operand : operands) {
            Boolean result = evaluate(operand);
            if (result == null) unknown = true;
            else if (result != and) return !and;
        }
        return unknown ? null : (Boolean) and;
    }

    private static Boolean not(Boolean value) {
        return value == null ? null : (Boolean) !value;
    }

    private Boolean between(Between between) throws JMSException {
        Object value = value(between.value());
        Boolean low = compare(value, Operator.GREATER_OR_EQUAL, value(between.low()));
        Boolean high = compare(value, Operator.LESS_OR_EQUAL, value(between.high()));

        if (low != null && !low || high != null && !high) return false;
        return low == null || high == null ? null : (Boolean) true;
    }

    private static Boolean isString(Object value) {
        return value == null ? null : (Boolean) (value instanceof String);
    }

    private Boolean in(In in) throws JMSException {
        Object value = value(in.identifier());

        return value == null
                ? null
                : (Boolean) (value instanceof String && in.values().contains(value));
    }

    private Boolean like(Like like) throws JMSException {
        Object value = value(like.identifier());

        return value == null
                ? null
                : (Boolean) (value instanceof String string && like.pattern().matches(string));
    }

    private static Boolean compare(Object left, Operator operator, Object right) {
        if (left == null || right == null) return null;
        if (left instanceof Number a && right instanceof Number b) return Numbers.compare(a, operator, b);
        if (left.getClass() != right.getClass() || operator.isOrdering()) return false;
        return left.equals(right) == (operator == Operator.EQUAL);
    }

    private Object value(Value value) throws JMSException {
        if (value instanceof Literal literal) return literal.value();
        if (value instanceof Identifier identifier) return identifier(identifier);
        if (value instanceof Signed signed)
            return value(signed.operand()) instanceof Number number ? signed(signed.sign(), number) : null;

        Arithmetic arithmetic = (Arithmetic) value;
        if (value(arithmetic.left()) instanceof Number a && value(arithmetic.right()) instanceof Number b)
            return Numbers.calculate(a, arithmetic.operator(), b);
        return null;
    }

    private static Number signed(char sign, Number number) {
        return sign == '-' ? Numbers.negate(number) : number;
    }

    private Object identifier(Identifier identifier) throws JMSException {
        if (identifier instanceof Property property) return message.getObjectProperty(property.name());
        return switch ((Header) identifier) {
            case JMSDeliveryMode ->
                message.getJMSDeliveryMode() == DeliveryMode.NON_PERSISTENT ? "NON_PERSISTENT" : "PERSISTENT";
            case JMSPriority -> message.getJMSPriority();
            case JMSMessageID -> message.getJMSMessageID();
            case JMSTimestamp -> message.getJMSTimestamp();
            case JMSCorrelationID -> message.getJMSCorrelationID();
            case JMSType -> message.getJMSType();
        };
    }
}
