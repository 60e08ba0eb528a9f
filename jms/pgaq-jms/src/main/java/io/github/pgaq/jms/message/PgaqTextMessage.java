package io.github.pgaq.jms.message;

import jakarta.jms.JMSException;
import jakarta.jms.TextMessage;
import java.nio.ByteBuffer;

/** A text message. */
public final class PgaqTextMessage extends PgaqMessage implements TextMessage {

    private String text;

    PgaqTextMessage() {}

    @Override
    public void setText(String text) throws JMSException {
        checkBodyWritable();
        this.text = text;
    }

    @Override
    public String getText() {
        return text;
    }

    @Override
    public void clearBody() throws JMSException {
        super.clearBody();
        text = null;
    }

    @Override
    String kind() {
        return "text";
    }

    @Override
    String storedText() {
        return text == null || !Typed.isStorable(text) ? null : text;
    }

    /** A text that PostgreSQL's text cannot hold, in UTF-16, big endian. */
    @Override
    byte[] storedBytes() {
        if (text == null || Typed.isStorable(text)) {
            return null;
        }
        ByteBuffer buffer = ByteBuffer.allocate(text.length() * 2);
        buffer.asCharBuffer().put(text);
        return buffer.array();
    }

    @Override
    void load(String storedText, byte[] bytes) {
        text = storedText != null || bytes == null
                ? storedText
                : ByteBuffer.wrap(bytes).asCharBuffer().toString();
    }

    @Override
    Object wholeBody() {
        return text;
    }
}
