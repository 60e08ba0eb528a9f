package io.github.pgaq.jms.message;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import jakarta.jms.BytesMessage;
import jakarta.jms.JMSException;
import jakarta.jms.MessageEOFException;
import jakarta.jms.MessageFormatException;
import jakarta.jms.MessageNotReadableException;
import jakarta.jms.MessageNotWriteableException;
import jakarta.jms.StreamMessage;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

class BytesAndStreamTest {

    private static BytesMessage bytes() {
        return Samples.MESSAGES.createBytesMessage();
    }

    private static StreamMessage stream() {
        return Samples.MESSAGES.createStreamMessage();
    }

    // Bytes messages

    private static void writeAll(BytesMessage message) throws JMSException {
        message.writeBoolean(true);
        message.writeByte((byte) -1);
        message.writeByte((byte) -1);
        message.writeShort((short) -2);
        message.writeShort((short) -2);
        message.writeChar('\u20ac');
        message.writeInt(Integer.MIN_VALUE);
        message.writeLong(Long.MAX_VALUE);
        message.writeFloat(Float.NaN);
        message.writeDouble(-0d);
        message.writeUTF("\u00e9\0\ud83d\ude00");
        message.writeBytes(new byte[] {1, 2, 3});
        message.writeBytes(new byte[] {1, 2, 3}, 1, 1);
    }

    private static void readAll(BytesMessage message) throws JMSException {
        assertTrue(message.readBoolean());
        assertEquals(-1, message.readByte());
        assertEquals(255, message.readUnsignedByte());
        assertEquals(-2, message.readShort());
        assertEquals(65534, message.readUnsignedShort());
        assertEquals('\u20ac', message.readChar());
        assertEquals(Integer.MIN_VALUE, message.readInt());
        assertEquals(Long.MAX_VALUE, message.readLong());
        assertEquals(Float.NaN, message.readFloat());
        assertEquals(-0d, message.readDouble());
        assertEquals("\u00e9\0\ud83d\ude00", message.readUTF());
        byte[] buffer = new byte[10];
        assertEquals(4, message.readBytes(buffer));
        assertArrayEquals(new byte[] {1, 2, 3, 2, 0, 0, 0, 0, 0, 0}, buffer);
        assertEquals(-1, message.readBytes(buffer));
    }

    @Test
    void bytesAreReadAsTheyWereWritten() throws JMSException {
        BytesMessage message = bytes();
        writeAll(message);
        message.reset();
        readAll(message);
        message.reset();
        readAll(message);
        BytesMessage received = Samples.delivered(message);
        readAll(received);
        received.reset();
        readAll(received);
    }

    @Test
    void writeObjectWritesAsTheMethodOfItsType() throws JMSException {
        BytesMessage typed = bytes();
        BytesMessage objects = bytes();
        writeAll(typed);
        for (Object value : new Object[] {
            true,
            (byte) -1,
            (byte) -1,
            (short) -2,
            (short) -2,
            '\u20ac',
            Integer.MIN_VALUE,
            Long.MAX_VALUE,
            Float.NaN,
            -0d,
            "\u00e9\0\ud83d\ude00",
            new byte[] {1, 2, 3},
            new byte[] {2}
        }) {
            objects.writeObject(value);
        }
        assertArrayEquals(typed.getBody(byte[].class), objects.getBody(byte[].class));
        assertThrows(NullPointerException.class, () -> bytes().writeObject(null));
        assertThrows(MessageFormatException.class, () -> bytes().writeObject(List.of()));
    }

    static Stream<Executable> reads() throws JMSException {
        BytesMessage b = bytes();
        StreamMessage s = stream();
        return Stream.of(
                b::getBodyLength,
                b::readBoolean,
                b::readByte,
                b::readUnsignedByte,
                b::readShort,
                b::readUnsignedShort,
                b::readChar,
                b::readInt,
                b::readLong,
                b::readFloat,
                b::readDouble,
                b::readUTF,
                () -> b.readBytes(new byte[1]),
                () -> b.readBytes(new byte[1], 1),
                s::readBoolean,
                s::readByte,
                s::readShort,
                s::readChar,
                s::readInt,
                s::readLong,
                s::readFloat,
                s::readDouble,
                s::readString,
                s::readObject,
                () -> s.readBytes(new byte[1]));
    }

    @ParameterizedTest
    @MethodSource("reads")
    void aWriteOnlyBodyCannotBeRead(Executable read) {
        assertThrows(MessageNotReadableException.class, read);
    }

    static Stream<Executable> readsAtTheEnd() throws JMSException {
        BytesMessage b = bytes();
        StreamMessage s = stream();
        b.reset();
        s.reset();
        return Stream.of(
                b::readBoolean,
                b::readByte,
                b::readUnsignedByte,
                b::readShort,
                b::readUnsignedShort,
                b::readChar,
                b::readInt,
                b::readLong,
                b::readFloat,
                b::readDouble,
                b::readUTF,
                s::readBoolean,
                s::readByte,
                s::readShort,
                s::readChar,
                s::readInt,
                s::readLong,
                s::readFloat,
                s::readDouble,
                s::readString,
                s::readObject,
                () -> s.readBytes(new byte[1]));
    }

    @ParameterizedTest
    @MethodSource("readsAtTheEnd")
    void readingBehindTheEndIsAnError(Executable read) {
        assertThrows(MessageEOFException.class, read);
    }

    static Stream<Executable> writesAfterReset() throws JMSException {
        BytesMessage b = bytes();
        StreamMessage s = stream();
        b.reset();
        s.reset();
        return Stream.of(
                () -> b.writeBoolean(true),
                () -> b.writeByte((byte) 1),
                () -> b.writeShort((short) 1),
                () -> b.writeChar('a'),
                () -> b.writeInt(1),
                () -> b.writeLong(1),
                () -> b.writeFloat(1),
                () -> b.writeDouble(1),
                () -> b.writeUTF("a"),
                () -> b.writeBytes(new byte[1]),
                () -> b.writeBytes(new byte[1], 0, 1),
                () -> b.writeObject(1),
                () -> s.writeBoolean(true),
                () -> s.writeByte((byte) 1),
                () -> s.writeShort((short) 1),
                () -> s.writeChar('a'),
                () -> s.writeInt(1),
                () -> s.writeLong(1),
                () -> s.writeFloat(1),
                () -> s.writeDouble(1),
                () -> s.writeString("a"),
                () -> s.writeBytes(new byte[1]),
                () -> s.writeBytes(new byte[1], 0, 1),
                () -> s.writeObject(1));
    }

    @ParameterizedTest
    @MethodSource("writesAfterReset")
    void aReadOnlyBodyCannotBeWritten(Executable write) {
        assertThrows(MessageNotWriteableException.class, write);
    }

    @Test
    void aShortRestIsNotConsumed() throws JMSException {
        BytesMessage message = bytes();
        message.writeShort((short) 500);
        message.reset();
        assertThrows(MessageEOFException.class, message::readInt);
        assertThrows(MessageEOFException.class, message::readUTF);
        assertEquals(500, message.readShort());
    }

    @Test
    void bytesThatAreNoStringAreRefused() throws JMSException {
        BytesMessage message = bytes();
        message.writeShort((short) 1);
        message.writeByte((byte) 0xc3);
        message.reset();
        assertThrows(MessageFormatException.class, message::readUTF);
        assertEquals(1, message.readShort());
        assertThrows(MessageFormatException.class, () -> bytes().writeUTF("x".repeat(65536)));
    }

    @Test
    void readBytesFillsItsBufferOrGivesTheRest() throws JMSException {
        BytesMessage message = bytes();
        message.writeBytes(new byte[] {1, 2, 3, 4, 5});
        message.reset();
        assertEquals(5, message.getBodyLength());
        byte[] buffer = new byte[4];
        assertEquals(0, message.readBytes(buffer, 0));
        assertEquals(2, message.readBytes(buffer, 2));
        assertArrayEquals(new byte[] {1, 2, 0, 0}, buffer);
        assertEquals(3, message.readBytes(buffer));
        assertArrayEquals(new byte[] {3, 4, 5, 0}, buffer);
        assertEquals(-1, message.readBytes(buffer));
        assertEquals(5, message.getBodyLength());
        assertThrows(IndexOutOfBoundsException.class, () -> message.readBytes(buffer, 5));
        assertThrows(IndexOutOfBoundsException.class, () -> message.readBytes(buffer, -1));
    }

    @Test
    void getBodyResetsABytesMessage() throws JMSException {
        BytesMessage message = bytes();
        message.writeBytes(new byte[] {1, 2});
        assertArrayEquals(new byte[] {1, 2}, message.getBody(byte[].class));
        assertEquals(1, message.readByte());
        byte[] copy = (byte[]) message.getBody(Object.class);
        copy[0] = 9;
        assertEquals(1, message.readByte());
        assertThrows(MessageNotWriteableException.class, () -> message.writeByte((byte) 1));
    }

    @Test
    void aSentBytesMessageCanBeWrittenFurther() throws JMSException {
        BytesMessage message = bytes();
        message.writeInt(1);
        assertEquals(4, Samples.delivered(message).getBodyLength());
        message.writeInt(2);
        assertEquals(8, Samples.delivered(message).getBodyLength());
        message.clearBody();
        assertEquals(0, Samples.delivered(message).getBodyLength());
        message.writeByte((byte) 1);
        assertEquals(1, Samples.delivered(message).getBodyLength());
    }

    // Stream messages

    @Test
    void fieldsAreReadAsTheyWereWritten() throws JMSException {
        StreamMessage message = stream();
        message.writeBoolean(false);
        message.writeByte((byte) 1);
        message.writeShort((short) 2);
        message.writeChar('c');
        message.writeInt(3);
        message.writeLong(4);
        message.writeFloat(5.5f);
        message.writeDouble(6.5);
        message.writeString(null);
        message.writeString("s");
        message.writeBytes(null);
        message.writeBytes(new byte[] {1, 2, 3}, 1, 2);
        message.writeObject(null);
        assertThrows(MessageFormatException.class, () -> message.writeObject(List.of()));
        StreamMessage received = Samples.delivered(message);
        message.reset();
        for (StreamMessage each : List.of(message, received)) {
            for (int round = 0; round < 2; round++) {
                assertFalse(each.readBoolean());
                assertEquals(1, each.readByte());
                assertEquals(2, each.readShort());
                assertEquals('c', each.readChar());
                assertEquals(3, each.readInt());
                assertEquals(4, each.readLong());
                assertEquals(5.5f, each.readFloat());
                assertEquals(6.5, each.readDouble());
                assertNull(each.readString());
                assertEquals("s", each.readString());
                assertEquals(-1, each.readBytes(new byte[1]));
                assertArrayEquals(new byte[] {2, 3}, (byte[]) each.readObject());
                assertNull(each.readObject());
                assertThrows(MessageEOFException.class, each::readObject);
                each.reset();
            }
        }
    }

    @Test
    void aByteArrayIsReadInParts() throws JMSException {
        StreamMessage message = stream();
        message.writeBytes(new byte[] {1, 2, 3, 4, 5});
        message.writeInt(7);
        message.reset();
        byte[] buffer = new byte[2];
        assertEquals(2, message.readBytes(buffer));
        assertThrows(MessageFormatException.class, message::readInt);
        assertThrows(MessageFormatException.class, message::readObject);
        assertEquals(2, message.readBytes(buffer));
        assertArrayEquals(new byte[] {3, 4}, buffer);
        assertEquals(1, message.readBytes(buffer));
        assertEquals(5, buffer[0]);
        assertEquals(7, message.readInt(), "a buffer that was not filled ends the field");
    }

    @Test
    void aFullBufferDoesNotEndTheField() throws JMSException {
        StreamMessage message = stream();
        message.writeBytes(new byte[] {1, 2});
        message.writeInt(7);
        message.reset();
        assertEquals(2, message.readBytes(new byte[2]));
        assertThrows(MessageFormatException.class, message::readInt);
        assertEquals(-1, message.readBytes(new byte[2]));
        assertEquals(7, message.readInt());
    }

    @Test
    void emptyAndMissingByteArraysAreTold() throws JMSException {
        StreamMessage message = stream();
        message.writeBytes(new byte[0]);
        message.writeBytes(null);
        message.writeInt(7);
        message.reset();
        assertEquals(0, message.readBytes(new byte[2]));
        assertEquals(-1, message.readBytes(new byte[2]));
        assertEquals(7, message.readInt());
    }

    @Test
    void resetInTheMiddleOfAByteArrayBeginsAnew() throws JMSException {
        StreamMessage message = stream();
        message.writeBytes(new byte[] {1, 2, 3});
        message.reset();
        message.readBytes(new byte[1]);
        message.reset();
        assertEquals(3, message.readBytes(new byte[4]));
    }

    @Test
    void streamsKeepTheirByteArraysToThemselves() throws JMSException {
        StreamMessage message = stream();
        byte[] bytes = {1, 2};
        message.writeBytes(bytes);
        message.writeObject(bytes);
        bytes[0] = 9;
        message.reset();
        ((byte[]) message.readObject())[1] = 9;
        message.reset();
        assertArrayEquals(new byte[] {1, 2}, (byte[]) message.readObject());
        assertArrayEquals(new byte[] {1, 2}, (byte[]) message.readObject());
        assertThrows(IndexOutOfBoundsException.class, () -> stream().writeBytes(bytes, 1, 2));
    }
}
