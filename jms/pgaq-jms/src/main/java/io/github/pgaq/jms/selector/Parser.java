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
import jakarta.jms.InvalidSelectorException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;

/**
 * Reads a selector by recursive descent:
 *
 * <pre>
 * or         = and {OR and}
 * and        = not {AND not}
 * not        = {NOT} comparison
 * comparison = sum [("=" | "&lt;&gt;" | "&lt;" | "&lt;=" | "&gt;" | "&gt;=") sum
 *                   | [NOT] BETWEEN sum AND sum | [NOT] IN "(" string {"," string} ")"
 *                   | [NOT] LIKE string [ESCAPE string] | IS [NOT] NULL]
 * sum        = product {("+" | "-") product}
 * product    = signed {("*" | "/") signed}
 * signed     = {"+" | "-"} primary
 * primary    = identifier | literal | "(" or ")"
 * </pre>
 *
 * A parenthesis can hold a condition or a value; which one is known only behind it.
 */
final class Parser {
    /** Deeper selectors are refused: neither this program nor the server shall run out of stack. */
    static final int MAX_DEPTH = 200;

    private static final Set<String> RESERVED = new TreeSet<>(String.CASE_INSENSITIVE_ORDER);

    static {
        RESERVED.addAll(List.of("NULL", "TRUE", "FALSE", "NOT", "AND", "OR", "BETWEEN", "LIKE", "IN", "IS", "ESCAPE"));
    }

    private final Lexer lexer;
    private Token token;
    private int depth;

    /** What was read, and where it begins. */
    private record Read(Expression expression, Token first) {}

    private Parser(String text) throws InvalidSelectorException {
        lexer = new Lexer(text);
        token = lexer.next();
    }

    static Condition parse(String text) throws InvalidSelectorException {
        Parser parser = new Parser(text);
        Condition condition = parser.condition(parser.or());

        if (parser.token.kind() != Token.Kind.END) throw parser.expected("an operator or the end of the selector");
        return condition;
    }

    // --- conditions ---

    private Read or() throws InvalidSelectorException {
        Read first = and();

        if (!token.isKeyword("OR")) return first;
        List<Condition> operands = new ArrayList<>(List.of(condition(first)));
        while (accept("OR")) operands.add(condition(and()));
        return new Read(checked(new Or(List.copyOf(operands)), first.first), first.first);
    }

    private Read and() throws InvalidSelectorException {
        Read first = not();

        if (!token.isKeyword("AND")) return first;
        List<Condition> operands = new ArrayList<>(List.of(condition(first)));
        while (accept("AND")) operands.add(condition(not()));
        return new Read(checked(new And(List.copyOf(operands)), first.first), first.first);
    }

    private Read not() throws InvalidSelectorException {
        Token first = token;

        if (!accept("NOT")) return comparison();
        enter(first);
        Condition operand = condition(not());
        depth--;
        return new Read(checked(new Not(operand), first), first);
    }

    private Read comparison() throws InvalidSelectorException {
        Read left = sum();
        Operator operator = operator();

        if (operator != null) {
            next();
            Read right = sum();
            if (operator() != null) throw expected("AND, OR or the end of the comparison");
            return new Read(checked(compared(left, operator, right), left.first), left.first);
        }
        if (accept("IS")) {
            boolean negated = accept("NOT");
            expect("NULL");
            IsNull isNull = new IsNull(identifier(left, "IS NULL"));
            return found(negated ? new Not(isNull) : isNull, left.first);
        }

        boolean negated = accept("NOT");
        if (accept("BETWEEN")) return found(between(left, negated), left.first);
        if (accept("IN")) return found(ofStrings(in(left), negated, left), left.first);
        if (accept("LIKE")) return found(ofStrings(like(left), negated, left), left.first);
        if (negated) throw expected("BETWEEN, IN or LIKE");
        return left;
    }

    private Read found(Condition condition, Token first) throws InvalidSelectorException {
        return new Read(checked(condition, first), first);
    }

    /** NOT IN and NOT LIKE are false for a property that is not a string. */
    private static Condition ofStrings(Condition condition, boolean negated, Read left) {
        return negated ? new And(List.of(new IsString((Identifier) left.expression), new Not(condition))) : condition;
    }

    private Operator operator() {
        if (token.kind() == Token.Kind.SIGN)
            for (Operator operator : Operator.values()) if (operator.sign.equals(token.text())) return operator;
        return null;
    }

    private Condition compared(Read left, Operator operator, Read right) throws InvalidSelectorException {
        if (left.expression instanceof Condition condition) return comparedToBoolean(condition, operator, right);
        if (right.expression instanceof Condition condition) return comparedToBoolean(condition, operator, left);
        if (operator.isOrdering()) {
            orderable(left, operator.sign);
            orderable(right, operator.sign);
        }
        Value value = (Value) left.expression;
        if (!(value instanceof Identifier)
                && !(right.expression instanceof Identifier)
                && Arrays.stream(Type.values())
                        .noneMatch(type -> value.canBe(type) && ((Value) right.expression).canBe(type)))
            throw lexer.invalid(left.first.position(), "values of different types cannot be compared");
        return new Comparison(operator, (Value) left.expression, (Value) right.expression);
    }

    /** {@code (condition) = TRUE} and its like. */
    private Condition comparedToBoolean(Condition condition, Operator operator, Read other)
            throws InvalidSelectorException {
        if (operator.isOrdering()
                || !(other.expression instanceof Literal literal && literal.value() instanceof Boolean))
            throw lexer.invalid(
                    other.first.position(), "a condition can be compared only with TRUE or FALSE, by = or <>");
        return literal.value().equals(operator == Operator.EQUAL) ? condition : new Not(condition);
    }

    /** NOT BETWEEN is less than the one or greater than the other, so false for what is not a number. */
    private Condition between(Read left, boolean negated) throws InvalidSelectorException {
        Value value = orderable(left, "BETWEEN");
        Value low = orderable(sum(), "BETWEEN");

        expect("AND");
        Value high = orderable(sum(), "BETWEEN");
        return negated
                ? new Or(List.of(
                        new Comparison(Operator.LESS, value, low), new Comparison(Operator.GREATER, value, high)))
                : new Between(value, low, high);
    }

    private In in(Read left) throws InvalidSelectorException {
        Identifier identifier = stringIdentifier(left, "IN");
        List<String> values = new ArrayList<>();

        expectSign("(");
        do values.add(string("a string"));
        while (acceptSign(","));
        expectSign(")");
        return new In(identifier, List.copyOf(values));
    }

    private Like like(Read left) throws InvalidSelectorException {
        Identifier identifier = stringIdentifier(left, "LIKE");
        Token at = token;
        String text = string("a string, the pattern");
        int escape = -1;

        if (accept("ESCAPE")) {
            Token atEscape = token;
            String character = string("a string of one character");
            if (character.codePointCount(0, character.length()) != 1)
                throw lexer.invalid(
                        atEscape.position(), "expected a string of one character, found " + atEscape.described());
            escape = character.codePointAt(0);
        }
        Pattern pattern = Pattern.of(text, escape);
        if (pattern == null) throw lexer.invalid(at.position(), "the pattern ends with its escape character");
        return new Like(identifier, pattern);
    }

    // --- values ---

    private Read sum() throws InvalidSelectorException {
        Read left = product();

        while (token.isSign("+") || token.isSign("-")) left = arithmetic(left, next(), product());
        return left;
    }

    private Read product() throws InvalidSelectorException {
        Read left = signed();

        while (token.isSign("*") || token.isSign("/")) left = arithmetic(left, next(), signed());
        return left;
    }

    private Read arithmetic(Read left, Token operator, Read right) throws InvalidSelectorException {
        char sign = operator.text().charAt(0);
        Arithmetic made = new Arithmetic(sign, number(left, operator.text()), number(right, operator.text()));

        return new Read(checked(made, left.first), left.first);
    }

    private Read signed() throws InvalidSelectorException {
        Token first = token;

        if (!token.isSign("+") && !token.isSign("-")) return primary();
        next();
        if (token.kind() == Token.Kind.NUMBER) return new Read(literal(next(), first.isSign("-")), first);
        enter(first);
        Read operand = signed();
        depth--;
        return new Read(checked(new Signed(first.text().charAt(0), number(operand, first.text())), first), first);
    }

    private Read primary() throws InvalidSelectorException {
        Token first = token;

        switch (token.kind()) {
            case STRING:
                return new Read(new Literal(next().text()), first);
            case NUMBER:
                return new Read(literal(next(), false), first);
            case WORD:
                return new Read(word(), first);
            default:
                if (!token.isSign("(")) throw expected("an identifier, a literal or \"(\"");
                next();
                enter(first);
                Read inner = or();
                depth--;
                expectSign(")");
                return new Read(inner.expression, first);
        }
    }

    private Literal literal(Token number, boolean negative) throws InvalidSelectorException {
        try {
            return new Literal(Numbers.parse(number.text(), negative));
        } catch (Numbers.InvalidNumber e) {
            throw lexer.invalid(number.position(), e.getMessage());
        }
    }

    private Value word() throws InvalidSelectorException {
        if (token.isKeyword("TRUE") || token.isKeyword("FALSE")) return new Literal(next().isKeyword("TRUE"));
        if (RESERVED.contains(token.text())) throw expected("an identifier, a literal or \"(\"");

        String name = token.text();
        for (Header header : Header.values())
            if (header.name().equals(name)) {
                next();
                return header;
            }
        if (name.startsWith("JMS") && !name.startsWith("JMSX") && !name.startsWith("JMS_"))
            throw lexer.invalid(
                    token.position(),
                    "\"" + name
                            + "\" cannot be used in a selector; of the header fields, JMSDeliveryMode, JMSPriority,"
                            + " JMSMessageID, JMSTimestamp, JMSCorrelationID and JMSType can");
        next();
        return new Property(name);
    }

    // --- what an operator accepts ---

    /** A condition; of values, an identifier that may be a boolean, and TRUE and FALSE. */
    private Condition condition(Read read) throws InvalidSelectorException {
        if (read.expression instanceof Condition condition) return condition;

        Value value = (Value) read.expression;
        if (!value.canBe(Type.BOOLEAN))
            throw lexer.invalid(read.first.position(), "expected a condition, found a value");
        return new Comparison(Operator.EQUAL, value, new Literal(true));
    }

    /** A value that may be a number. */
    private Value number(Read read, String operator) throws InvalidSelectorException {
        return numeric(read, "operands of " + operator + " must be numbers");
    }

    private Value orderable(Read read, String operator) throws InvalidSelectorException {
        return numeric(read, operator + " compares only numbers");
    }

    private Value numeric(Read read, String problem) throws InvalidSelectorException {
        if (read.expression instanceof Value value && value.canBe(Type.NUMBER)) return value;
        throw lexer.invalid(read.first.position(), problem);
    }

    private Identifier identifier(Read read, String operator) throws InvalidSelectorException {
        if (read.expression instanceof Identifier identifier) return identifier;
        throw lexer.invalid(read.first.position(), "expected an identifier before " + operator);
    }

    private Identifier stringIdentifier(Read read, String operator) throws InvalidSelectorException {
        Identifier identifier = identifier(read, operator);

        if (!identifier.canBe(Type.STRING))
            throw lexer.invalid(read.first.position(), operator + " applies only to strings");
        return identifier;
    }

    /** Refuses what is nested too deep, also without parentheses. */
    private <T extends Expression> T checked(T expression, Token first) throws InvalidSelectorException {
        if (expression.depth() > MAX_DEPTH) throw tooDeep(first);
        return expression;
    }

    private void enter(Token first) throws InvalidSelectorException {
        if (++depth > MAX_DEPTH) throw tooDeep(first);
    }

    private InvalidSelectorException tooDeep(Token first) {
        return lexer.invalid(first.position(), "the selector is nested deeper than " + MAX_DEPTH + " levels");
    }

    // --- tokens ---

    private Token next() throws InvalidSelectorException {
        Token taken = token;

        token = lexer.next();
        return taken;
    }

    private boolean accept(String keyword) throws InvalidSelectorException {
        if (!token.isKeyword(keyword)) return false;
        next();
        return true;
    }

    private boolean acceptSign(String sign) throws InvalidSelectorException {
        if (!token.isSign(sign)) return false;
        next();
        return true;
    }

    private void expect(String keyword) throws InvalidSelectorException {
        if (!accept(keyword)) throw expected(keyword);
    }

    private void expectSign(String sign) throws InvalidSelectorException {
        if (!acceptSign(sign)) throw expected("\"" + sign + "\"");
    }

    private String string(String what) throws InvalidSelectorException {
        if (token.kind() != Token.Kind.STRING) throw expected(what);
        return next().text();
    }

    private InvalidSelectorException expected(String what) {
        return lexer.invalid(token.position(), "expected " + what + ", found " + token.described());
    }
}
