package io.github.pgaq.jms.selector;

import java.math.BigInteger;
import java.util.regex.Pattern;

/** Numeric literals, and Java's arithmetic on numbers whose types are known only at run time. */
final class Numbers {
    private static final Pattern EXACT = Pattern.compile(
            "(0[xX][0-9a-fA-F](?:_*[0-9a-fA-F])*|0[bB][01](?:_*[01])*|0(?:_*[0-7])*|[1-9](?:_*[0-9])*)([lL]?)");
    private static final String DIGITS = "[0-9](?:_*[0-9])*";
    private static final Pattern APPROXIMATE = Pattern.compile("(?:" + DIGITS + "\\.(?:" + DIGITS + ")?|\\." + DIGITS
            + "|" + DIGITS + "(?=[eEfFdD]))(?:[eE][+-]?" + DIGITS + ")?[fFdD]?");
    private static final String HEX = "[0-9a-fA-F](?:_*[0-9a-fA-F])*";
    private static final Pattern APPROXIMATE_HEX =
            Pattern.compile("0[xX](?:" + HEX + "\\.?|(?:" + HEX + ")?\\." + HEX + ")[pP][+-]?" + DIGITS + "[fFdD]?");

    private Numbers() {}

    /** A literal that is not valid; the message says why. */
    static final class InvalidNumber extends Exception {
        private static final long serialVersionUID = 1;

        InvalidNumber(String message) {
            super(message);
        }
    }

    /** The value of a literal; {@code negative} if a minus stands before it. */
    static Number parse(String literal, boolean negative) throws InvalidNumber {
        var exact = EXACT.matcher(literal);

        if (exact.matches())
            return parseExact(exact.group(1).replace("_", ""), !exact.group(2).isEmpty(), negative, literal);
        if (APPROXIMATE.matcher(literal).matches()
                || APPROXIMATE_HEX.matcher(literal).matches())
            return parseApproximate(literal.replace("_", ""), negative);
        throw new InvalidNumber("\"" + literal + "\" is not a number");
    }

    /** An int if it is one and has no L, otherwise a long. */
    private static Number parseExact(String digits, boolean isLong, boolean negative, String literal)
            throws InvalidNumber {
        BigInteger value;

        if (digits.startsWith("0x") || digits.startsWith("0X")) value = new BigInteger(digits.substring(2), 16);
        else if (digits.startsWith("0b") || digits.startsWith("0B")) value = new BigInteger(digits.substring(2), 2);
        else value = new BigInteger(digits, digits.startsWith("0") ? 8 : 10);
        if (negative) value = value.negate();
        if (value.bitLength() > 63)
            throw new InvalidNumber((negative ? "-" : "") + literal + " is out of the range of long");
        if (!isLong && value.bitLength() <= 31) return value.intValue();
        return value.longValue();
    }

    private static Number parseApproximate(String literal, boolean negative) throws InvalidNumber {
        char last = literal.charAt(literal.length() - 1);
        boolean hex = literal.startsWith("0x") || literal.startsWith("0X");
        boolean isFloat = last == 'f' || last == 'F';
        double value = isFloat ? Float.parseFloat(literal) : Double.parseDouble(literal);

        if (Double.isInfinite(value) || value == 0 && !isZero(literal, hex))
            throw new InvalidNumber(literal + " is out of the range of " + (isFloat ? "float" : "double"));
        if (negative) value = -value;
        if (isFloat) return (float) value;
        return value;
    }

    /** Whether all digits before the exponent are 0. */
    private static boolean isZero(String literal, boolean hex) {
        String mantissa = hex ? literal.substring(2).split("[pP]")[0] : literal.split("[eEfFdD]")[0];

        return mantissa.chars().allMatch(c -> c == '0' || c == '.');
    }

    /** The result, in the type that Java's numeric promotion gives; null for a division by zero. */
    static Number calculate(Number left, char operator, Number right) {
        if (left instanceof Double || right instanceof Double)
            return calculate(left.doubleValue(), operator, right.doubleValue());
        if (left instanceof Float || right instanceof Float)
            return calculate(left.floatValue(), operator, right.floatValue());
        if (left instanceof Long || right instanceof Long)
            return calculate(left.longValue(), operator, right.longValue());
        return calculate(left.intValue(), operator, right.intValue());
    }

    private static Number calculate(double left, char operator, double right) {
        return switch (operator) {
            case '+' -> left + right;
            case '-' -> left - right;
            case '*' -> left * right;
            default -> right == 0 ? null : (Number) (left / right);
        };
    }

    private static Number calculate(float left, char operator, float right) {
        return switch (operator) {
            case '+' -> left + right;
            case '-' -> left - right;
            case '*' -> left * right;
            default -> right == 0 ? null : (Number) (left / right);
        };
    }

    private static Number calculate(long left, char operator, long right) {
        return switch (operator) {
            case '+' -> left + right;
            case '-' -> left - right;
            case '*' -> left * right;
            default -> right == 0 ? null : (Number) (left / right);
        };
    }

    private static Number calculate(int left, char operator, int right) {
        return switch (operator) {
            case '+' -> left + right;
            case '-' -> left - right;
            case '*' -> left * right;
            default -> right == 0 ? null : (Number) (left / right);
        };
    }

    static Number negate(Number value) {
        if (value instanceof Double) return -value.doubleValue();
        if (value instanceof Float) return -value.floatValue();
        if (value instanceof Long) return -value.longValue();
        return -value.intValue();
    }

    static boolean compare(Number left, Expression.Operator operator, Number right) {
        if (left instanceof Double || right instanceof Double)
            return compare(left.doubleValue(), operator, right.doubleValue());
        if (left instanceof Float || right instanceof Float)
            return compare(left.floatValue(), operator, right.floatValue());
        return holds(Long.compare(left.longValue(), right.longValue()), operator);
    }

    /** Floats are compared as doubles, which changes no result. With NaN only {@code <>} is true, and 0.0 = -0.0. */
    private static boolean compare(double left, Expression.Operator operator, double right) {
        if (Double.isNaN(left) || Double.isNaN(right)) return operator == Expression.Operator.NOT_EQUAL;
        return holds(left < right ? -1 : left > right ? 1 : 0, operator);
    }

    private static boolean holds(int order, Expression.Operator operator) {
        return switch (operator) {
            case EQUAL -> order == 0;
            case NOT_EQUAL -> order != 0;
            case LESS -> order < 0;
            case LESS_OR_EQUAL -> order <= 0;
            case GREATER -> order > 0;
            case GREATER_OR_EQUAL -> order >= 0;
        };
    }
}
