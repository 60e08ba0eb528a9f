package io.github.pgaq.jms.message;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class JsonTest {

    private static String write(Object value) {
        StringBuilder out = new StringBuilder();
        Json.value(out, value);
        return out.toString();
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "0",
                "-0",
                "-0.0",
                "1",
                "-12",
                "1.5",
                "1e5",
                "1E+5",
                "1.25e-7",
                "123456789012345678901234567890",
                "\"\"",
                "\"a\"",
                "\"\u00e9\u20ac\"",
                "\"\ud83d\ude00\"",
                "\"\\\"\\\\\\n\\r\\t\"",
                "\"\\u0000\"",
                "\"\\ud800\"",
                "true",
                "false",
                "null",
                "[]",
                "{}",
                "[1, [2, {}]]",
                "{\"a\": {\"b\": [null, true]}, \"\": 1}"
            })
    void whatItReadsItWritesAgain(String json) {
        assertEquals(json, write(Json.parse(json)));
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "",
                " ",
                "+1",
                "01",
                "-",
                ".5",
                "1.",
                "1e",
                "1e+",
                "0x1",
                "NaN",
                "Infinity",
                "tru",
                "nul",
                "True",
                "truex",
                "\"",
                "\"\\\"",
                "\"\\x\"",
                "\"\\u12\"",
                "\"\\u12g4\"",
                "\"\\u\uff11\uff11\uff11\uff11\"",
                "\"a\nb\"",
                "\"\\n\u0001\"",
                "'a'",
                "[",
                "]",
                "[1",
                "[1,",
                "[1,]",
                "[,1]",
                "[1 2]",
                "{",
                "{\"a\"",
                "{\"a\":",
                "{\"a\":1",
                "{\"a\":1,}",
                "{a:1}",
                "{1:1}",
                "{\"a\" 1}",
                "1 2",
                "[] []",
                "\u00a01",
                "\ufeff1",
                "// x\n1"
            })
    void whatIsNotJsonIsRefused(String json) {
        assertThrows(IllegalArgumentException.class, () -> Json.parse(json));
    }

    @Test
    void errorsTellThePlace() {
        IllegalArgumentException e = assertThrows(IllegalArgumentException.class, () -> Json.parse("{\"a\": tru}"));
        assertEquals("invalid JSON at character 7: value expected", e.getMessage());
    }

    @Test
    void spaceIsAllowedBetweenTokens() {
        Object value = Json.parse(" \t\r\n{ \"a\" : [ 1 , 2 ] , \"b\" : { } , \"c\" : [ ] } \n");
        assertEquals("{\"a\": [1, 2], \"b\": {}, \"c\": []}", write(value));
    }

    @Test
    void escapesAreRead() {
        assertEquals(
                "\"\\/\b\f\n\r\t\u00e9\ud83d\ude00\0",
                Json.parse("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\\uD83d\\uDE00\\u0000\""));
    }

    @Test
    void numbersHaveTheSmallestTypeThatHoldsThem() {
        List<Object> values = Arrays.asList(
                0,
                -1,
                Integer.MAX_VALUE,
                Integer.MIN_VALUE,
                Integer.MAX_VALUE + 1L,
                Long.MAX_VALUE,
                Long.MIN_VALUE,
                9.223372036854775807e18,
                1.0,
                100.0,
                0.1,
                1e300,
                Double.POSITIVE_INFINITY);
        String text = "[0, -1, 2147483647, -2147483648, 2147483648, 9223372036854775807, -9223372036854775808,"
                + " 9223372036854775808, 1.0, 1e2, 0.1, 1E+300, 1e999999999]";
        List<?> numbers = (List<?>) Json.parse(text);
        assertEquals(
                values, numbers.stream().map(n -> ((Json.Number) n).value()).toList());
    }

    @Test
    void depthIsBounded() {
        String open = "[".repeat(Json.MAX_DEPTH);
        Json.parse(open + "]".repeat(Json.MAX_DEPTH));
        assertThrows(IllegalArgumentException.class, () -> Json.parse(open + "[]" + "]".repeat(Json.MAX_DEPTH)));
        assertThrows(IllegalArgumentException.class, () -> Json.parse("{\"a\":".repeat(1_000_000)));
        StringBuilder siblings = new StringBuilder("[[]");
        siblings.append(",[]".repeat(10 * Json.MAX_DEPTH)).append(']');
        assertEquals(10 * Json.MAX_DEPTH + 1, ((List<?>) Json.parse(siblings.toString())).size());
    }

    @Test
    void theLastOfTwoMembersWithTheSameNameCounts() {
        assertEquals("{\"a\": 2}", write(Json.parse("{\"a\": 1, \"a\": 2}")));
    }

    @Test
    void eachCharacterSurvivesAsAString() {
        StringBuilder all = new StringBuilder();
        for (int c = 0; c <= Character.MAX_VALUE; c++) {
            all.append((char) c).append('x');
        }
        all.appendCodePoint(0x10ffff).appendCodePoint(0x1f600);
        String text = write(all.toString());
        assertEquals(all.toString(), Json.parse(text));
        assertTrue(Typed.isStorable(text), "PostgreSQL's text can hold all JSON that is written");
    }

    @Test
    void randomStringsSurvive() {
        Random random = new Random(5);
        for (int i = 0; i < 2000; i++) {
            Map<String, Object> map = new LinkedHashMap<>();
            for (int j = random.nextInt(5); j > 0; j--) {
                map.put(randomString(random), randomString(random));
            }
            assertEquals(map, Json.parse(write(map)));
        }
    }

    private static String randomString(Random random) {
        StringBuilder s = new StringBuilder();
        for (int i = random.nextInt(12); i > 0; i--) {
            switch (random.nextInt(4)) {
                case 0 -> s.append((char) random.nextInt(0x10000));
                case 1 -> s.append("\"\\/bfnrtu{}[]:,".charAt(random.nextInt(15)));
                case 2 -> s.appendCodePoint(0x10000 + random.nextInt(0x100000));
                default -> s.append((char) ('a' + random.nextInt(26)));
            }
        }
        return s.toString();
    }
}
