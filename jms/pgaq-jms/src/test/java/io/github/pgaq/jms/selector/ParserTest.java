package io.github.pgaq.jms.selector;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import jakarta.jms.InvalidSelectorException;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** The grammar: what is accepted, and where and how the rest is refused. */
class ParserTest {

    @Test
    void anEmptySelectorIsNone() throws InvalidSelectorException {
        assertNull(Selector.parse(null));
        assertNull(Selector.parse(""));
        assertNull(Selector.parse(" \t\n\r\f"));
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "a = 1",
                "a=1",
                "a<>'x'",
                "urgent",
                "NOT urgent",
                "TRUE",
                "false",
                "not not a",
                "(a = 1)",
                "((a)) = 1",
                "a = 1 AND b = 2 OR NOT c = 3",
                "a between 1 and 2",
                "a NOT BETWEEN -1 AND +1 and b",
                "a IN ('x')",
                "a NOT in ('x', 'y','z''')",
                "a LIKE '%'",
                "a not like '_' ESCAPE '!'",
                "a IS NULL",
                "a is not null",
                "-a < - b",
                "- -a < 1",
                "+a = 1",
                "a + b * c - d / e > 0",
                "(a + b) * c > 0",
                "1 + 1 = 2",
                "'a' = 'b'",
                "$a = 1",
                "_a = 1",
                "über = 'x'",
                "ΑΒΓ IS NULL",
                "JMSXGroupID = 'g'",
                "JMS_Vendor = 1",
                "jmsFoo = 1",
                "JMSDeliveryMode = 'PERSISTENT'",
                "JMSPriority >= 4",
                "JMSMessageID = 'ID:1'",
                "JMSTimestamp > 0",
                "JMSCorrelationID LIKE 'c%'",
                "JMSType IN ('a', 'b')",
                "a = 0x1F",
                "a = 017",
                "a = 0",
                "a = 00",
                "a = 0b101",
                "a = 1_000",
                "a = 9223372036854775807",
                "a = -9223372036854775808",
                "a = 5L",
                "a = 5l",
                "a = 7.",
                "a = .5",
                "a = 1e3",
                "a = 1E-3",
                "a = -57.9e2",
                "a = 1d",
                "a = 1.5F",
                "a = 0x1.8p3",
                "a = 09.5",
                "a = 0e0",
                "a = 0.0f",
                "(a = 1) = TRUE",
                "FALSE <> (a = 1)",
                "a = TRUE",
                "TRUE = a",
                "1 < a",
                "'x' = a",
                "a = 'x'AND b='y'",
                "a\n=\t1\fAND\rb",
                "a = 'it''s'",
                "a = ''",
                "a = ''''",
                "(a) IS NULL",
                "a LIKE 'x!!' ESCAPE '!'",
                "a LIKE 'x😀_' ESCAPE '😀'",
                "a = 4.9E-324",
                "a = 1.7976931348623157E308"
            })
    void isAccepted(String selector) throws InvalidSelectorException {
        Selector parsed = Selector.parse(selector);

        assertEquals(selector, parsed.toString());
        assertEquals(parsed, Selector.parse(selector));
        assertEquals(parsed.hashCode(), Selector.parse(selector).hashCode());
        assertEquals(parsed.toCondition(), Selector.parse(selector).toCondition());
    }

    @ParameterizedTest
    @CsvSource(delimiter = '|', quoteCharacter = '`', textBlock = """
        a =                 | 4  | expected an identifier, a literal or "(", found the end of the selector
        = 1                 | 1  | expected an identifier, a literal or "(", found "="
        a = 1 b             | 7  | expected an operator or the end of the selector, found "b"
        a = 1 AND           | 10 | expected an identifier, a literal or "(", found the end of the selector
        a = 1 OR OR b       | 10 | expected an identifier, a literal or "(", found "OR"
        (a = 1              | 7  | expected ")", found the end of the selector
        a = 1)              | 6  | expected an operator or the end of the selector, found ")"
        a = 'x              | 5  | the string has no closing quote
        a = "x"             | 5  | strings stand in single quotes
        a != 1              | 3  | unexpected "!="; not equal is written <>
        a == 1              | 4  | expected an identifier, a literal or "(", found "="
        a # 1               | 3  | unexpected character "#"
        a = 1; DROP         | 6  | unexpected character ";"
        a = ?               | 5  | unexpected character "?"
        a = 1 -- b          | 7  | selectors have no comments
        a = 1 /* b */       | 7  | selectors have no comments
        5                   | 1  | expected a condition, found a value
        'x'                 | 1  | expected a condition, found a value
        a + 1               | 1  | expected a condition, found a value
        a = 1 AND 5         | 11 | expected a condition, found a value
        NOT 5               | 5  | expected a condition, found a value
        JMSType             | 1  | expected a condition, found a value
        a < b < c           | 7  | expected AND, OR or the end of the comparison, found "<"
        a = b = c           | 7  | expected AND, OR or the end of the comparison, found "="
        a < 'x'             | 5  | < compares only numbers
        'x' >= a            | 1  | >= compares only numbers
        a > TRUE            | 5  | > compares only numbers
        JMSType < a         | 1  | < compares only numbers
        a BETWEEN 'a' AND b | 11 | BETWEEN compares only numbers
        a BETWEEN 1 OR 2    | 13 | expected AND, found "OR"
        a BETWEEN 1 AND     | 16 | expected an identifier, a literal or "(", found the end of the selector
        a NOT = 1           | 7  | expected BETWEEN, IN or LIKE, found "="
        a + 'x' = 1         | 5  | operands of + must be numbers
        TRUE * a = 1        | 1  | operands of * must be numbers
        -'x' = 1            | 2  | operands of - must be numbers
        (a = 1) + 1 = 2     | 1  | operands of + must be numbers
        TRUE = 0            | 1  | values of different types cannot be compared
        1 = 'a'             | 1  | values of different types cannot be compared
        a = 1 OR 'x' <> TRUE| 10 | values of different types cannot be compared
        1 + a = 'x'         | 1  | values of different types cannot be compared
        (a = 1) = b         | 11 | a condition can be compared only with TRUE or FALSE, by = or <>
        (a = 1) < TRUE      | 11 | a condition can be compared only with TRUE or FALSE, by = or <>
        a IN ()             | 7  | expected a string, found ")"
        a IN ('x' 'y')      | 11 | expected ")", found the string 'y'
        a IN ('x',)         | 11 | expected a string, found ")"
        a IN (1)            | 7  | expected a string, found "1"
        a IN 'x'            | 6  | expected "(", found the string 'x'
        'x' IN ('x')        | 1  | expected an identifier before IN
        JMSPriority IN ('4')| 1  | IN applies only to strings
        JMSTimestamp LIKE '4'|1  | LIKE applies only to strings
        a LIKE 5            | 8  | expected a string, the pattern, found "5"
        a LIKE b            | 8  | expected a string, the pattern, found "b"
        5 LIKE 'x'          | 1  | expected an identifier before LIKE
        a LIKE 'x' ESCAPE   | 18 | expected a string of one character, found the end of the selector
        a LIKE 'x' ESCAPE ''| 19 | expected a string of one character, found the string ''
        a LIKE 'x' ESCAPE 'ab'|19| expected a string of one character, found the string 'ab'
        a LIKE 'x!' ESCAPE '!'|8 | the pattern ends with its escape character
        a IS 5              | 6  | expected NULL, found "5"
        a IS NOT 5          | 10 | expected NULL, found "5"
        (a + 1) IS NULL     | 1  | expected an identifier before IS NULL
        5 IS NULL           | 1  | expected an identifier before IS NULL
        NULL = a            | 1  | expected an identifier, a literal or "(", found "NULL"
        a = null            | 5  | expected an identifier, a literal or "(", found "null"
        like = 1            | 1  | expected an identifier, a literal or "(", found "like"
        JMSReplyTo = 'x'    | 1  | "JMSReplyTo" cannot be used in a selector
        JMSDestination = 'x'| 1  | "JMSDestination" cannot be used in a selector
        JMSExpiration > 1   | 1  | "JMSExpiration" cannot be used in a selector
        JMSRedelivered      | 1  | "JMSRedelivered" cannot be used in a selector
        JMSFoo = 1          | 1  | "JMSFoo" cannot be used in a selector
        a = 9223372036854775808  | 5 | 9223372036854775808 is out of the range of long
        a = -9223372036854775809 | 6 | -9223372036854775809 is out of the range of long
        a = 1e400           | 5  | 1e400 is out of the range of double
        a = 1e-400          | 5  | 1e-400 is out of the range of double
        a = 1e40f           | 5  | 1e40f is out of the range of float
        a = 09              | 5  | "09" is not a number
        a = 0x              | 5  | "0x" is not a number
        a = 0b2             | 5  | "0b2" is not a number
        a = 1__             | 5  | "1__" is not a number
        a = 5abc            | 5  | "5abc" is not a number
        a = 1.2.3           | 5  | "1.2.3" is not a number
        a = 1e              | 5  | "1e" is not a number
        a = 1 = TRUE        | 7  | expected AND, OR or the end of the comparison, found "="
        a.b = 1             | 2  | unexpected character "."
        """)
    void isRefused(String selector, int position, String problem) {
        var e = assertThrows(InvalidSelectorException.class, () -> Selector.parse(selector));

        assertTrue(
                e.getMessage().startsWith("invalid selector, at position " + position + ": " + problem),
                e.getMessage());
        assertTrue(e.getMessage().endsWith(", in: " + selector), e.getMessage());
    }

    @Test
    void nestingIsBounded() throws InvalidSelectorException {
        for (String[] nesting :
                new String[][] {{"(", "a", ")"}, {"NOT ", "a", ""}, {"NOT (", "a", ")"}, {"- ", "a", "= 1"}}) {
            assertNotNull(Selector.parse(nested(nesting, 90)).toCondition());
            for (int depth : new int[] {250, 100_000})
                assertThrows(InvalidSelectorException.class, () -> Selector.parse(nested(nesting, depth)));
        }
        assertThrows(InvalidSelectorException.class, () -> Selector.parse("a" + " + a".repeat(100_000) + " = 1"));
        assertNotNull(Selector.parse("a" + " + a".repeat(150) + " = 1"));
        // wide is not deep
        assertNotNull(
                Selector.parse("a = 1" + " OR a = 1 AND b = 2".repeat(10_000)).toCondition());
    }

    private static String nested(String[] nesting, int depth) {
        String end = nesting[2].startsWith("=") ? nesting[2] : nesting[2].repeat(depth);
        return nesting[0].repeat(depth) + nesting[1] + end;
    }

    /** Whatever the text, it is parsed or refused by InvalidSelectorException. */
    @Test
    void anyTextIsParsedOrRefused() {
        Random random = new Random(13);
        List<String> tokens = List.of(
                "a",
                "b",
                "JMSType",
                "JMSPriority",
                "JMSFoo",
                "NOT",
                "AND",
                "OR",
                "BETWEEN",
                "LIKE",
                "IN",
                "IS",
                "NULL",
                "ESCAPE",
                "TRUE",
                "FALSE",
                "=",
                "<>",
                "<",
                ">=",
                "+",
                "-",
                "*",
                "/",
                "(",
                ")",
                ",",
                "'x'",
                "'%'",
                "'!'",
                "''",
                "5",
                "0x",
                "1e5",
                ".5",
                "5L",
                "'",
                "\"",
                "\\",
                "\0",
                "\ud800",
                "😀",
                "é",
                ".");
        int parsed = 0;

        for (int i = 0; i < 50_000; i++) {
            StringBuilder text = new StringBuilder();
            for (int n = random.nextInt(12); n >= 0; n--)
                text.append(
                                random.nextInt(20) == 0
                                        ? (char) random.nextInt(0x10000)
                                        : tokens.get(random.nextInt(tokens.size())))
                        .append(random.nextInt(4) == 0 ? "" : " ");
            try {
                Selector.parse(text.toString()).toCondition();
                parsed++;
            } catch (InvalidSelectorException e) {
                assertTrue(e.getMessage().startsWith("invalid selector, at position "), e.getMessage());
            }
        }
        assertTrue(parsed > 25, parsed + " were valid");
    }
}
