package io.github.pgaq.jms.selector;

import java.util.Arrays;

/**
 * A pattern of LIKE: {@code _} is any character, {@code %} any sequence of characters. A character is a Unicode code
 * point, as in the server. The character after an escape character stands for itself.
 */
final class Pattern {
    private static final int ONE = -1;
    private static final int ANY = -2;

    /** Code points, ONE and ANY. */
    private final int[] elements;

    private Pattern(int[] elements) {
        this.elements = elements;
    }

    /**
     * @param escape the escape character; negative: none
     * @return null if the pattern ends with the escape character
     */
    static Pattern of(String text, int escape) {
        int[] source = text.codePoints().toArray();
        int[] made = new int[source.length];
        int count = 0;

        for (int i = 0; i < source.length; i++) {
            if (source[i] == escape) {
                if (++i == source.length) return null;
                made[count++] = source[i];
            } else made[count++] = source[i] == '_' ? ONE : source[i] == '%' ? ANY : source[i];
        }
        return new Pattern(Arrays.copyOf(made, count));
    }

    boolean matches(String string) {
        int[] text = string.codePoints().toArray();
        int at = 0;
        int element = 0;
        int afterAny = -1; // the element behind the last ANY, and the place of the text that it was tried at
        int tried = 0;

        while (at < text.length) {
            if (element < elements.length && elements[element] == ANY) {
                afterAny = ++element;
                tried = at;
            } else if (element < elements.length && (elements[element] == ONE || elements[element] == text[at])) {
                element++;
                at++;
            } else if (afterAny >= 0) {
                element = afterAny;
                at = ++tried;
            } else return false;
        }
        while (element < elements.length && elements[element] == ANY) element++;
        return element == elements.length;
    }

    /** The pattern for the server, whose escape character is the backslash. */
    String toServerPattern() {
        StringBuilder made = new StringBuilder();

        for (int element : elements) {
            if (element == ONE) made.append('_');
            else if (element == ANY) made.append('%');
            else {
                if (element == '_' || element == '%' || element == '\\') made.append('\\');
                made.appendCodePoint(element);
            }
        }
        return made.toString();
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof Pattern pattern && Arrays.equals(elements, pattern.elements);
    }

    @Override
    public int hashCode() {
        return Arrays.hashCode(elements);
    }

    @Override
    public String toString() {
        return toServerPattern();
    }
}
