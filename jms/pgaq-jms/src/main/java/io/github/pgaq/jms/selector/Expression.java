package io.github.pgaq.jms.selector;

import java.util.List;

/**
 * A selector as a tree: conditions, which are true, false or unknown, and the values that they compare. All of it is
 * immutable.
 */
sealed interface Expression {

    /** Nesting, the node itself included. */
    int depth();

    /** The types that a value can have, as far as the selector alone tells. */
    enum Type {
        STRING,
        BOOLEAN,
        NUMBER
    }

    // --- conditions ---

    sealed interface Condition extends Expression {}

    /** All operands are true. */
    record And(List<Condition> operands) implements Condition {
        @Override
        public int depth() {
            return 1 + deepest(operands);
        }
    }

    /** At least one operand is true. */
    record Or(List<Condition> operands) implements Condition {
        @Override
        public int depth() {
            return 1 + deepest(operands);
        }
    }

    record Not(Condition operand) implements Condition {
        @Override
        public int depth() {
            return 1 + operand.depth();
        }
    }

    enum Operator {
        EQUAL("="),
        NOT_EQUAL("<>"),
        LESS("<"),
        LESS_OR_EQUAL("<="),
        GREATER(">"),
        GREATER_OR_EQUAL(">=");

        final String sign;

        Operator(String sign) {
            this.sign = sign;
        }

        boolean isOrdering() {
            return this != EQUAL && this != NOT_EQUAL;
        }
    }

    record Comparison(Operator operator, Value left, Value right) implements Condition {
        @Override
        public int depth() {
            return 1 + Math.max(left.depth(), right.depth());
        }
    }

    /** {@code BETWEEN}. */
    record Between(Value value, Value low, Value high) implements Condition {
        @Override
        public int depth() {
            return 1 + Math.max(value.depth(), Math.max(low.depth(), high.depth()));
        }
    }

    record In(Identifier identifier, List<String> values) implements Condition {
        @Override
        public int depth() {
            return 2;
        }
    }

    record Like(Identifier identifier, Pattern pattern) implements Condition {
        @Override
        public int depth() {
            return 2;
        }
    }

    /** The value is a string; no syntax of its own. */
    record IsString(Identifier identifier) implements Condition {
        @Override
        public int depth() {
            return 2;
        }
    }

    record IsNull(Identifier identifier) implements Condition {
        @Override
        public int depth() {
            return 2;
        }
    }

    // --- values ---

    sealed interface Value extends Expression {
        /** Whether the value may turn out to have this type. */
        boolean canBe(Type type);
    }

    /** A String, Boolean, Integer, Long, Float or Double. */
    record Literal(Object value) implements Value {
        @Override
        public int depth() {
            return 1;
        }

        @Override
        public boolean canBe(Type type) {
            return type
                    == (value instanceof String ? Type.STRING : value instanceof Boolean ? Type.BOOLEAN : Type.NUMBER);
        }
    }

    sealed interface Identifier extends Value {
        @Override
        default int depth() {
            return 1;
        }
    }

    /** A property; also those whose names begin with JMSX or JMS_. */
    record Property(String name) implements Identifier {
        @Override
        public boolean canBe(Type type) {
            return true;
        }
    }

    /** The header fields that selectors may use. */
    enum Header implements Identifier {
        JMSDeliveryMode(Type.STRING),
        JMSPriority(Type.NUMBER),
        JMSMessageID(Type.STRING),
        JMSTimestamp(Type.NUMBER),
        JMSCorrelationID(Type.STRING),
        JMSType(Type.STRING);

        final Type type;

        Header(Type type) {
            this.type = type;
        }

        @Override
        public boolean canBe(Type other) {
            return type == other;
        }
    }

    /** {@code left operator right}, with one of + - * /. */
    record Arithmetic(char operator, Value left, Value right) implements Value {
        @Override
        public int depth() {
            return 1 + Math.max(left.depth(), right.depth());
        }

        @Override
        public boolean canBe(Type type) {
            return type == Type.NUMBER;
        }
    }

    /** {@code sign operand}, with + or -. */
    record Signed(char sign, Value operand) implements Value {
        @Override
        public int depth() {
            return 1 + operand.depth();
        }

        @Override
        public boolean canBe(Type type) {
            return type == Type.NUMBER;
        }
    }

    private static int deepest(List<? extends Expression> operands) {
        return operands.stream().mapToInt(Expression::depth).max().orElse(0);
    }
}
