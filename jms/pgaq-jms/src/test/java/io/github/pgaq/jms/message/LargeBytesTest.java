package io.github.pgaq.jms.message;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.pgaq.jms.store.Body;
import jakarta.jms.JMSException;
import jakarta.jms.MessageEOFException;
import jakarta.jms.MessageNotWriteableException;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.util.Arrays;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Bytes messages whose bodies lie in a file and are sent in chunks. */
class LargeBytesTest {

    private static final int LARGE = Spool.LARGE;

    private static byte[] random(int length) {
        byte[] bytes = new byte[length];
        new Random(length).nextBytes(bytes);
        return bytes;
    }

    private static PgaqBytesMessage message(byte[] body) throws JMSException {
        PgaqBytesMessage message = Samples.MESSAGES.createBytesMessage();
        message.writeBytes(body);
        return message;
    }

    @ParameterizedTest
    @ValueSource(ints = {0, 1, LARGE - 1, LARGE, LARGE + 1, LARGE + 70_000, 2 * LARGE + 3})
    void aBodyComesBack(int length) throws JMSException {
        byte[] body = random(length);
        PgaqBytesMessage message = message(body);
        assertEquals(length >= LARGE, Samples.MESSAGES.toBody(message).content() != null);
        PgaqBytesMessage received = Samples.delivered(message);
        assertEquals(length, received.getBodyLength());
        byte[] read = new byte[length + 1];
        assertEquals(length == 0 ? -1 : length, received.readBytes(read));
        assertArrayEquals(body, Arrays.copyOf(read, length));
        assertEquals(-1, received.readBytes(read));
        assertArrayEquals(length == 0 ? null : body, received.getBody(byte[].class));
        // passed on
        PgaqBytesMessage again = Samples.delivered(received);
        assertArrayEquals(length == 0 ? null : body, again.getBody(byte[].class));
    }

    @Test
    void typedValuesComeBackAcrossAllBorders() throws JMSException {
        PgaqBytesMessage message = Samples.MESSAGES.createBytesMessage();
        String text = "\u20ac".repeat(1000);
        int rounds = 2 * LARGE / 3030;
        for (int i = 0; i < rounds; i++) {
            message.writeByte((byte) i);
            message.writeInt(i);
            message.writeUTF(text);
            message.writeDouble(i);
            message.writeBytes(new byte[] {1, 2, 3}, 1, 2);
        }
        message.writeShort((short) 7);
        PgaqBytesMessage received = Samples.delivered(message);
        for (int round = 0; round < 2; round++) {
            byte[] two = new byte[2];
            for (int i = 0; i < rounds; i++) {
                assertEquals((byte) i, received.readByte());
                assertEquals(i, received.readInt());
                assertEquals(text, received.readUTF());
                assertEquals(i, received.readDouble());
                assertEquals(2, received.readBytes(two));
                assertArrayEquals(new byte[] {2, 3}, two);
            }
            assertThrows(MessageEOFException.class, received::readInt);
            assertThrows(MessageEOFException.class, received::readUTF);
            assertEquals(7, received.readShort());
            assertThrows(MessageEOFException.class, received::readByte);
            received.reset();
        }
    }

    @Test
    void whatIsSentDoesNotChangeWithTheMessage() throws JMSException, IOException {
        byte[] body = random(LARGE);
        PgaqBytesMessage message = message(body);
        Body first = Samples.MESSAGES.toBody(message);
        message.writeBytes(new byte[] {1, 2, 3});
        Body second = Samples.MESSAGES.toBody(message);
        message.clearBody();
        message.writeByte((byte) 1);
        assertArrayEquals(body, first.content().open().readAllBytes());
        assertEquals(LARGE + 3, second.content().open().readAllBytes().length);
        assertNull(Samples.MESSAGES.toBody(message).content());
        String headers = "\"content_length\": " + LARGE;
        assertTrue(first.headers().contains(headers), first.headers());
        assertNull(first.bytes());
    }

    @ParameterizedTest
    @ValueSource(ints = {10, LARGE + 10})
    void streamsAreWrittenAndSaved(int length) throws JMSException {
        byte[] body = random(length);
        PgaqBytesMessage message = Samples.MESSAGES.createBytesMessage();
        message.setObjectProperty(PgaqBytesMessage.INPUT_STREAM, new ByteArrayInputStream(body));
        assertFalse(message.propertyExists(PgaqBytesMessage.INPUT_STREAM));
        PgaqBytesMessage received = Samples.delivered(message);
        ByteArrayOutputStream saved = new ByteArrayOutputStream();
        received.setObjectProperty(PgaqBytesMessage.OUTPUT_STREAM, saved);
        assertArrayEquals(body, saved.toByteArray());
        assertThrows(
                MessageNotWriteableException.class,
                () -> received.setObjectProperty(PgaqBytesMessage.INPUT_STREAM, new ByteArrayInputStream(body)));
    }

    @Test
    void aStreamThatFailsIsAnError() {
        PgaqBytesMessage message = Samples.MESSAGES.createBytesMessage();
        JMSException e = assertThrows(
                JMSException.class,
                () -> message.setObjectProperty(PgaqBytesMessage.INPUT_STREAM, new InputStream() {
                    @Override
                    public int read() throws IOException {
                        throw new IOException("broken");
                    }
                }));
        assertEquals("cannot write to the message: broken", e.getMessage());
    }

    @Test
    void aBodyThatIsGoneFailsWhenItIsRead() throws JMSException {
        PgaqBytesMessage sent = message(random(LARGE));
        sent.setStringProperty("p", "x");
        Body body = Samples.MESSAGES.toBody(sent);
        assertNotNull(body.content());
        PgaqBytesMessage browsed = (PgaqBytesMessage) Samples.MESSAGES.toClient(Samples.delivery(body), null, null);
        assertEquals("x", browsed.getStringProperty("p"));
        assertThrows(JMSException.class, browsed::getBodyLength);
        assertThrows(JMSException.class, browsed::readByte);
        assertFalse(browsed.isBodyAssignableTo(byte[].class));
        browsed.fetch(to -> {});
        JMSException e = assertThrows(JMSException.class, browsed::readByte);
        assertEquals("the body of the message is no longer on the server", e.getMessage());
        assertThrows(JMSException.class, () -> Samples.MESSAGES.toBody(browsed));
        browsed.clearBody();
        browsed.writeByte((byte) 1);
        assertEquals(1, Samples.delivered(browsed).readByte());
    }
}
