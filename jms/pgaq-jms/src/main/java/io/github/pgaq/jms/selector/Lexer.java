package io.github.pgaq.jms.selector;

import jakarta.jms.InvalidSelectorException;

/** Divides a selector into tokens. */
final class Lexer {
    private final String text;
    private int at;

    Lexer(String text) {
        this.text = text;
    }

    Token next() throws InvalidSelectorException {
        while (at < text.length() && isBlank(text.charAt(at))) at++;
        if (at == text.length()) return new Token(Token.Kind.END, "", at + 1);

        char c = text.charAt(at);
        if (c == '\'') return string();
        if (isDigit(c) || c == '.' && at + 1 < text.length() && isDigit(text.charAt(at + 1))) return number();
        if (Character.isJavaIdentifierStart(text.codePointAt(at))) return word();
        return sign();
    }

    /** The exception for what stands at a position. */
    InvalidSelectorException invalid(int position, String problem) {
        return new InvalidSelectorException(
                "invalid selector, at position " + position + ": " + problem + ", in: " + text);
    }

    static boolean isBlank(char c) {
        return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f';
    }

    private static boolean isDigit(char c) {
        return c >= '0' && c <= '9';
    }

    private Token string() throws InvalidSelectorException {
        int start = at++;
        StringBuilder value = new StringBuilder();

        for (; ; ) {
            int quote = text.indexOf('\'', at);
            if (quote < 0) throw invalid(start + 1, "the string has no closing quote");
            value.append(text, at, quote);
            at = quote + 1;
            if (at == text.length() || text.charAt(at) != '\'')
                return new Token(Token.Kind.STRING, value.toString(), start + 1);
            value.append('\'');
            at++;
        }
    }

    /**
     * Takes everything that could belong to a number; {@link Numbers} checks it. A sign belongs to it behind the
     * exponent's letter.
     */
    private Token number() {
        int start = at;
        boolean hex = text.startsWith("0x", at) || text.startsWith("0X", at);

        while (at < text.length()) {
            int c = text.codePointAt(at);
            if (c != '.' && !Character.isJavaIdentifierPart(c)) break;
            at += Character.charCount(c);
            boolean exponent = hex ? c == 'p' || c == 'P' : c == 'e' || c == 'E';
            if (exponent && at < text.length() && (text.charAt(at) == '+' || text.charAt(at) == '-')) at++;
        }
        return new Token(Token.Kind.NUMBER, text.substring(start, at), start + 1);
    }

    private Token word() {
        int start = at;

        while (at < text.length() && Character.isJavaIdentifierPart(text.codePointAt(at)))
            at += Character.charCount(text.codePointAt(at));
        return new Token(Token.Kind.WORD, text.substring(start, at), start + 1);
    }

    private Token sign() throws InvalidSelectorException {
        int start = at;

        for (String sign : new String[] {"<>", "<=", ">=", "<", ">", "=", "+", "-", "*", "/", "(", ")", ","})
            if (text.startsWith(sign, at)) {
                at += sign.length();
                if (text.startsWith("--", start))
                    throw invalid(start + 1, "selectors have no comments; write \"- -\" for two signs");
                if (text.startsWith("/*", start)) throw invalid(start + 1, "selectors have no comments");
                return new Token(Token.Kind.SIGN, sign, start + 1);
            }

        String found = Character.toString(text.codePointAt(at));
        if (found.equals("\"")) throw invalid(start + 1, "strings stand in single quotes");
        if (text.startsWith("!=", start)) throw invalid(start + 1, "unexpected \"!=\"; not equal is written <>");
        throw invalid(start + 1, "unexpected character \"" + found + "\"");
    }
}
