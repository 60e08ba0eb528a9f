package io.github.pgaq.jms.selector;

/**
 * A token of a selector.
 *
 * @param kind its kind
 * @param text as written; of a string its value
 * @param position of its first character, from 1
 */
record Token(Kind kind, String text, int position) {
    enum Kind {
        /** An identifier, which is a name, an operator or a boolean literal. */
        WORD,
        STRING,
        /** A number without sign. */
        NUMBER,
        /** An operator, a parenthesis or a comma. */
        SIGN,
        END
    }

    boolean isSign(String sign) {
        return kind == Kind.SIGN && text.equals(sign);
    }

    /** Whether it is this keyword, given in upper case. */
    boolean isKeyword(String keyword) {
        return kind == Kind.WORD && text.equalsIgnoreCase(keyword);
    }

    /** For error messages. */
    String described() {
        return switch (kind) {
            case END -> "the end of the selector";
            case STRING -> "the string '" + text.replace("'", "''") + "'";
            default -> "\"" + text + "\"";
        };
    }
}
