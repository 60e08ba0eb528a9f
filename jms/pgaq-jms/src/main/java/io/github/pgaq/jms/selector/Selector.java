package io.github.pgaq.jms.selector;

import io.github.pgaq.jms.selector.Expression.Condition;
import jakarta.jms.InvalidSelectorException;
import jakarta.jms.JMSException;
import jakarta.jms.Message;

/**
 * A message selector (Jakarta Messaging 3.1, section 3.8.1): checked, immutable, and safe to share between threads.
 *
 * <p>It can be evaluated here ({@link #matches}) or by the server ({@link #toCondition}), with the same result. Where
 * the specification leaves a choice:
 * <ul>
 * <li>A comparison with values of different types is false, also by [NOT] LIKE, [NOT] IN and [NOT] BETWEEN, and so its
 * NOT is true.
 * <li>Arithmetic with a string or a boolean, and division by zero, also of approximate numbers, are unknown.
 * <li>A boolean property alone is a condition: {@code urgent} means {@code urgent = TRUE}.
 * <li>A number is an int if it fits and has no suffix L, otherwise a long; with a point, an exponent or a suffix D it
 * is a double, with a suffix F a float.
 * <li>A property whose value is null does not exist.
 * </ul>
 */
public final class Selector {
    private final String text;
    private final Condition condition;
    private final String serverCondition;

    private Selector(String text, Condition condition) {
        this.text = text;
        this.condition = condition;
        this.serverCondition = new Translator(Columns.OF_MESSAGES).translate(condition);
    }

    /**
     * Reads a selector.
     *
     * @param text the selector, or null
     * @return the selector; null, for all messages, if the text is null, empty or blank
     * @throws InvalidSelectorException if it is not valid; the message names the position of the first problem, from 1
     */
    public static Selector parse(String text) throws InvalidSelectorException {
        if (text == null || text.chars().allMatch(c -> Lexer.isBlank((char) c))) return null;
        return new Selector(text, Parser.parse(text));
    }

    /**
     * Whether the message matches: whether the selector is true, and neither false nor unknown.
     *
     * @throws JMSException if the message does not give its headers and properties
     */
    public boolean matches(Message message) throws JMSException {
        return Boolean.TRUE.equals(new Evaluator(message).evaluate(condition));
    }

    /**
     * The condition, in SQL, that is true for the same messages: for {@code aq.dequeue}, {@code aq.receive},
     * {@code aq.browse} and subscribers' rules of queues with the payload type {@code aq.jms_message}.
     *
     * <p>The same selector always has the same condition, which the server compiles once per session.
     */
    public String toCondition() {
        return serverCondition;
    }

    /**
     * The same for queues with another payload type, whose messages have the properties of the server.
     *
     * @see Columns#OF_OTHERS
     */
    public String toPlainCondition() {
        return new Translator(Columns.OF_OTHERS).translate(condition);
    }

    /** The text as it was given. */
    @Override
    public String toString() {
        return text;
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof Selector selector && selector.text.equals(text);
    }

    @Override
    public int hashCode() {
        return text.hashCode();
    }
}
