package io.github.pgaq.jms.message;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.pgaq.jms.store.Body;
import jakarta.jms.JMSException;
import jakarta.jms.MessageEOFException;
import jakarta.jms.MessageFormatException;
import java.util.Random;
import org.junit.jupiter.api.Test;

/** Stream messages whose bodies lie in a file and are sent in chunks. */
class LargeStreamTest {

    private static final Object[] VALUES = {
        null,
        true,
        (byte) -3,
        (short) 300,
        'x',
        '\ud800',
        1 << 30,
        1L << 60,
        -0.0f,
        Float.NaN,
        1e300,
        Double.NEGATIVE_INFINITY,
        "",
        "text \u20ac \ud83d\ude00",
        "\u0000",
        "half \ud800"
    };

    private static byte[] random(int length) {
        byte[] bytes = new byte[length];
        new Random(length).nextBytes(bytes);
        return bytes;
    }

    private static PgaqStreamMessage large() throws JMSException {
        PgaqStreamMessage message = Samples.MESSAGES.createStreamMessage();
        for (Object value : VALUES) {
            message.writeObject(value);
        }
        message.writeBytes(random(Spool.LARGE));
        for (Object value : VALUES) {
            message.writeObject(value);
        }
        message.writeBytes(random(10));
        return message;
    }

    private static void check(PgaqStreamMessage received) throws JMSException {
        for (int size : new int[] {Spool.LARGE, 10}) {
            for (Object value : VALUES) {
                assertEquals(value, received.readObject());
            }
            assertArrayEquals(random(size), (byte[]) received.readObject());
        }
        assertThrows(MessageEOFException.class, received::readObject);
    }

    @Test
    void allFieldsComeBack() throws JMSException {
        PgaqStreamMessage message = large();
        Body body = Samples.MESSAGES.toBody(message);
        assertNotNull(body.content());
        assertNull(body.text());
        PgaqStreamMessage received = Samples.delivered(message);
        check(received);
        received.reset();
        check(received);
        // passed on
        check(Samples.delivered(received));
        message.reset();
        check(message);
    }

    @Test
    void aMessageBecomesLargeByManySmallFields() throws JMSException {
        PgaqStreamMessage message = Samples.MESSAGES.createStreamMessage();
        int count = Spool.LARGE / Long.BYTES;
        for (int i = 0; i < count - 1; i++) {
            message.writeInt(i);
        }
        assertNull(Samples.MESSAGES.toBody(message).content());
        message.writeInt(count - 1);
        assertNotNull(Samples.MESSAGES.toBody(message).content());
        message.writeInt(count);
        PgaqStreamMessage received = Samples.delivered(message);
        for (int i = 0; i <= count; i++) {
            assertEquals(i, received.readInt());
        }
        assertThrows(MessageEOFException.class, received::readInt);
    }

    @Test
    void aFailedConversionLeavesThePosition() throws JMSException {
        PgaqStreamMessage message = Samples.MESSAGES.createStreamMessage();
        message.writeString("12x");
        message.writeBytes(random(Spool.LARGE));
        PgaqStreamMessage received = Samples.delivered(message);
        assertThrows(NumberFormatException.class, received::readInt);
        assertEquals("12x", received.readString());
        assertThrows(MessageFormatException.class, received::readString);
        byte[] part = new byte[Spool.LARGE - 1];
        assertEquals(part.length, received.readBytes(part));
        assertThrows(MessageFormatException.class, received::readString);
        assertEquals(1, received.readBytes(part));
        assertThrows(MessageEOFException.class, received::readInt);
    }

    @Test
    void clearBodyMakesItSmall() throws JMSException {
        PgaqStreamMessage message = large();
        message.clearBody();
        message.writeInt(1);
        assertNull(Samples.MESSAGES.toBody(message).content());
        assertEquals(1, Samples.delivered(message).readInt());
    }

    @Test
    void aBodyThatIsGoneOrDamagedFailsWhenItIsRead() throws JMSException {
        Body body = Samples.MESSAGES.toBody(large());
        PgaqStreamMessage received = (PgaqStreamMessage) Samples.MESSAGES.toClient(Samples.delivery(body), null, null);
        assertThrows(JMSException.class, received::readObject);
        received.fetch(to -> {});
        JMSException gone = assertThrows(JMSException.class, received::readObject);
        assertTrue(gone.getMessage().contains("no longer on the server"));
        PgaqStreamMessage damaged = (PgaqStreamMessage) Samples.MESSAGES.toClient(Samples.delivery(body), null, null);
        damaged.fetch(to -> {
            try {
                to.write(new byte[Math.toIntExact(lengthOf(body))]);
                to.write(new byte[0]);
            } catch (java.io.IOException e) {
                throw new java.io.UncheckedIOException(e);
            }
        });
        assertNull(damaged.readObject());
    }

    private static long lengthOf(Body body) {
        String key = "\"content_length\": ";
        String rest = body.headers().substring(body.headers().indexOf(key) + key.length());
        return Long.parseLong(rest.replaceAll("[^0-9].*", ""));
    }
}
