package io.github.pgaq.jms.message;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import jakarta.jms.BytesMessage;
import jakarta.jms.DeliveryMode;
import jakarta.jms.JMSException;
import jakarta.jms.MapMessage;
import jakarta.jms.Message;
import jakarta.jms.MessageEOFException;
import jakarta.jms.ObjectMessage;
import jakarta.jms.StreamMessage;
import jakarta.jms.TextMessage;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Messages of other providers (specification 3.12). */
class ForeignMessageTest {

    private static final Messages MESSAGES = Samples.MESSAGES;

    @Test
    void ownMessagesAreNotCopied() throws JMSException {
        PgaqMessage message = MESSAGES.createMessage();
        assertSame(message, MESSAGES.own(message));
    }

    @Test
    void headersAndPropertiesAreCopied() throws JMSException {
        PgaqMessage original = MESSAGES.createMessage();
        original.setJMSCorrelationID("c");
        original.setJMSType("t");
        original.setJMSReplyTo(new Samples.TestQueue("r"));
        original.setStringProperty("s", "x");
        original.setFloatProperty("f", 1.5f);
        original.setObjectProperty("n", null);
        original.setStringProperty("JMSXGroupID", "g");
        original.properties().put("JMSXVendor", "x");
        original.properties().put("not an identifier", "x");
        original.properties().put("JMSXGroupSeq", 5L);
        original.properties().put("o", List.of());
        Message foreign = Samples.foreign(Message.class, original);
        PgaqMessage copy = MESSAGES.own(foreign);
        assertEquals("c", copy.getJMSCorrelationID());
        assertEquals("t", copy.getJMSType());
        assertEquals(new Samples.TestQueue("r"), copy.getJMSReplyTo());
        assertEquals("x", copy.getObjectProperty("s"));
        assertEquals(1.5f, copy.getObjectProperty("f"));
        assertTrue(copy.propertyExists("n"));
        assertNull(copy.getObjectProperty("n"));
        assertEquals("g", copy.getObjectProperty("JMSXGroupID"));
        assertEquals(5L, copy.getObjectProperty("JMSXGroupSeq"));
        assertFalse(copy.propertyExists("JMSXVendor"));
        assertFalse(copy.propertyExists("not an identifier"));
        assertFalse(copy.propertyExists("o"));
        copy.setStringProperty("s", "the copy is writable");
    }

    @Test
    void receivedMessagesOfOthersAreCopied() throws JMSException {
        PgaqTextMessage original = MESSAGES.createTextMessage();
        original.setText("x");
        TextMessage foreign = Samples.foreign(TextMessage.class, Samples.delivered(original));
        TextMessage copy = (TextMessage) MESSAGES.copyOf(foreign);
        assertEquals("x", copy.getText());
        copy.setText("the copy is writable");
    }

    @Test
    void allKindsAreCopied() throws JMSException {
        assertNull(((TextMessage) MESSAGES.copyOf(Samples.foreign(TextMessage.class, MESSAGES.createTextMessage())))
                .getText());
        Message empty = Samples.foreign(Message.class, MESSAGES.createMessage());
        assertSame(PgaqMessage.class, MESSAGES.copyOf(empty).getClass());

        PgaqMapMessage map = MESSAGES.createMapMessage();
        map.setShort("s", (short) 1);
        map.setBytes("b", new byte[] {1});
        map.setString("n", null);
        MapMessage mapCopy = (MapMessage) MESSAGES.copyOf(Samples.foreign(MapMessage.class, map));
        assertEquals((short) 1, mapCopy.getObject("s"));
        assertArrayEquals(new byte[] {1}, mapCopy.getBytes("b"));
        assertTrue(mapCopy.itemExists("n"));

        PgaqObjectMessage object = MESSAGES.createObjectMessage();
        object.setObject("x");
        ObjectMessage objectCopy = (ObjectMessage) MESSAGES.copyOf(Samples.foreign(ObjectMessage.class, object));
        assertEquals("x", objectCopy.getObject());
    }

    @Test
    void bytesAreCopiedWhollyAndTheOriginalStaysReadable() throws JMSException {
        for (int size : new int[] {0, 1, 65535, 65536, 65537, 200_000}) {
            PgaqBytesMessage original = MESSAGES.createBytesMessage();
            for (int i = 0; i < size; i++) {
                original.writeByte((byte) i);
            }
            BytesMessage foreign = Samples.foreign(BytesMessage.class, original);
            BytesMessage copy = assertInstanceOf(PgaqBytesMessage.class, MESSAGES.copyOf(foreign));
            copy.writeByte((byte) 1);
            copy.reset();
            assertEquals(size + 1, copy.getBodyLength());
            for (int i = 0; i < size; i++) {
                assertEquals((byte) i, copy.readByte());
                assertEquals((byte) i, foreign.readByte());
            }
        }
    }

    @Test
    void streamsAreCopiedWhollyAndTheOriginalStaysReadable() throws JMSException {
        PgaqStreamMessage original = MESSAGES.createStreamMessage();
        original.writeInt(1);
        original.writeBytes(new byte[] {1, 2});
        original.writeString(null);
        StreamMessage foreign = Samples.foreign(StreamMessage.class, original);
        StreamMessage copy = assertInstanceOf(PgaqStreamMessage.class, MESSAGES.copyOf(foreign));
        copy.reset();
        for (StreamMessage each : List.of(foreign, copy)) {
            assertEquals(1, each.readObject());
            assertArrayEquals(new byte[] {1, 2}, (byte[]) each.readObject());
            assertNull(each.readObject());
            assertThrows(MessageEOFException.class, each::readObject);
        }
    }

    @Test
    void sendingSetsTheHeadersOfTheOriginal() throws JMSException {
        PgaqMessage original = MESSAGES.createMessage();
        Message foreign = Samples.foreign(Message.class, original);
        PgaqMessage copy = MESSAGES.copyOf(foreign);
        copy.setJMSMessageID("ID:1");
        copy.setJMSTimestamp(1);
        copy.setJMSDestination(new Samples.TestQueue("q"));
        copy.setJMSDeliveryMode(DeliveryMode.NON_PERSISTENT);
        copy.setJMSExpiration(2);
        copy.setJMSDeliveryTime(3);
        copy.setJMSPriority(7);
        Messages.copySendHeaders(copy, foreign);
        assertEquals("ID:1", original.getJMSMessageID());
        assertEquals(1, original.getJMSTimestamp());
        assertEquals(new Samples.TestQueue("q"), original.getJMSDestination());
        assertEquals(DeliveryMode.NON_PERSISTENT, original.getJMSDeliveryMode());
        assertEquals(2, original.getJMSExpiration());
        assertEquals(3, original.getJMSDeliveryTime());
        assertEquals(7, original.getJMSPriority());
    }
}
