package io.github.pgaq.jms.conformance;

import jakarta.jms.BytesMessage;
import jakarta.jms.JMSException;
import jakarta.jms.MessageEOFException;
import jakarta.jms.MessageFormatException;
import jakarta.jms.MessageNotReadableException;
import jakarta.jms.MessageNotWriteableException;
import java.util.Date;
import java.util.Random;
import org.junit.jupiter.api.Test;

/** BytesMessage. */
@Spec("3.11")
class BytesMessageTest extends ConformanceTest {
    @Override
    boolean sharesConnection() {
        return true;
    }

    private BytesMessage bytes(byte... content) throws JMSException {
        BytesMessage message = session().createBytesMessage();
        message.writeBytes(content);
        return message;
    }

    @Test
    void everyTypeArrivesInOrder() throws JMSException {
        BytesMessage sent = session().createBytesMessage();
        sent.writeBoolean(true);
        sent.writeByte((byte) -1);
        sent.writeByte((byte) 200);
        sent.writeShort((short) -2);
        sent.writeShort((short) 65535);
        sent.writeChar('\u20ac');
        sent.writeInt(-3);
        sent.writeLong(-4L);
        sent.writeFloat(-5.5f);
        sent.writeDouble(-6.5d);
        sent.writeUTF("größe");
        BytesMessage message = roundTrip(sent);
        equal("readBoolean()", true, message.readBoolean());
        equal("readByte()", (byte) -1, message.readByte());
        equal("readUnsignedByte()", 200, message.readUnsignedByte());
        equal("readShort()", (short) -2, message.readShort());
        equal("readUnsignedShort()", 65535, message.readUnsignedShort());
        equal("readChar()", '\u20ac', message.readChar());
        equal("readInt()", -3, message.readInt());
        equal("readLong()", -4L, message.readLong());
        equal("readFloat()", -5.5f, message.readFloat());
        equal("readDouble()", -6.5d, message.readDouble());
        equal("readUTF()", "größe", message.readUTF());
    }

    @Test
    @Spec("api:BytesMessage")
    void numbersAreWrittenHighByteFirst() throws JMSException {
        BytesMessage message = session().createBytesMessage();
        message.writeInt(0x01020304);
        message.reset();
        byte[] content = new byte[4];
        message.readBytes(content);
        bytes("the bytes of an int", new byte[] {1, 2, 3, 4}, content);
    }

    @Test
    @Spec("api:BytesMessage")
    void booleanIsOneByte() throws JMSException {
        BytesMessage message = session().createBytesMessage();
        message.writeBoolean(true);
        message.writeBoolean(false);
        message.reset();
        equal("the byte of true", (byte) 1, message.readByte());
        equal("the byte of false", (byte) 0, message.readByte());
    }

    @Test
    @Spec("api:BytesMessage")
    void utfHasItsLengthFirst() throws JMSException {
        BytesMessage message = session().createBytesMessage();
        message.writeUTF("ab");
        message.reset();
        equal("the length before the characters", 2, message.readUnsignedShort());
        equal("the first character", (byte) 'a', message.readByte());
    }

    @Test
    void objectsAreWrittenAsTheirPrimitives() throws JMSException {
        BytesMessage message = session().createBytesMessage();
        message.writeObject(true);
        message.writeObject((byte) 1);
        message.writeObject((short) 2);
        message.writeObject('c');
        message.writeObject(3);
        message.writeObject(4L);
        message.writeObject(5.5f);
        message.writeObject(6.5d);
        message.writeObject("seven");
        message.writeObject(new byte[] {8});
        message.reset();
        message.readBoolean();
        message.readByte();
        message.readShort();
        equal("the char", 'c', message.readChar());
        equal("the int", 3, message.readInt());
        equal("the long", 4L, message.readLong());
        equal("the float", 5.5f, message.readFloat());
        equal("the double", 6.5d, message.readDouble());
        equal("the String", "seven", message.readUTF());
        equal("the bytes", (byte) 8, message.readByte());
    }

    @Test
    @Spec("10.3")
    void unsupportedClassIsRefused() throws JMSException {
        BytesMessage message = session().createBytesMessage();
        fails(MessageFormatException.class, "writeObject with a Date", () -> message.writeObject(new Date()));
    }

    @Test
    @Spec("3.12")
    void nullObjectIsRefused() throws JMSException {
        BytesMessage message = session().createBytesMessage();
        fails(NullPointerException.class, "writeObject(null)", () -> message.writeObject(null));
    }

    @Test
    @Spec("3.12")
    void nullBytesAreRefused() throws JMSException {
        BytesMessage message = session().createBytesMessage();
        fails(NullPointerException.class, "writeBytes(null)", () -> message.writeBytes(null));
    }

    @Test
    @Spec("3.12")
    void nullUTFIsRefused() throws JMSException {
        BytesMessage message = session().createBytesMessage();
        fails(NullPointerException.class, "writeUTF(null)", () -> message.writeUTF(null));
    }

    @Test
    @Spec("3.12")
    void writtenBytesAreCopied() throws JMSException {
        byte[] content = {1};
        BytesMessage message = bytes(content);
        content[0] = 9;
        message.reset();
        equal("the byte as it was written", (byte) 1, message.readByte());
    }

    @Test
    void partOfAnArrayIsWritten() throws JMSException {
        BytesMessage message = session().createBytesMessage();
        message.writeBytes(new byte[] {1, 2, 3, 4}, 1, 2);
        BytesMessage received = roundTrip(message);
        equal("the length", 2L, received.getBodyLength());
        equal("the first byte", (byte) 2, received.readByte());
    }

    // ---- getBodyLength ----------------------------------------------------------------------------------------

    @Test
    @Spec("api:BytesMessage")
    void bodyLengthIsTheWholeLength() throws JMSException {
        BytesMessage message = roundTrip(bytes((byte) 1, (byte) 2, (byte) 3));
        message.readByte();
        equal("getBodyLength() after a read", 3L, message.getBodyLength());
    }

    @Test
    @Spec("api:BytesMessage")
    void bodyLengthOfAnEmptyMessageIsZero() throws JMSException {
        equal("getBodyLength() of an empty message", 0L, roundTrip(bytes()).getBodyLength());
    }

    @Test
    @Spec("api:BytesMessage")
    void bodyLengthIsNotReadableInWriteMode() throws JMSException {
        BytesMessage message = bytes((byte) 1);
        fails(MessageNotReadableException.class, "getBodyLength() before reset()", message::getBodyLength);
    }

    // ---- readBytes --------------------------------------------------------------------------------------------

    @Test
    @Spec("api:BytesMessage")
    void readBytesReturnsTheCount() throws JMSException {
        BytesMessage message = roundTrip(bytes((byte) 1, (byte) 2));
        equal("readBytes() into a larger buffer", 2, message.readBytes(new byte[5]));
    }

    @Test
    @Spec("api:BytesMessage")
    void readBytesAtTheEndReturnsMinusOne() throws JMSException {
        BytesMessage message = roundTrip(bytes((byte) 1));
        message.readByte();
        equal("readBytes() at the end", -1, message.readBytes(new byte[5]));
    }

    @Test
    @Spec("api:BytesMessage")
    void readBytesContinues() throws JMSException {
        BytesMessage message = roundTrip(bytes((byte) 1, (byte) 2, (byte) 3));
        byte[] buffer = new byte[2];
        equal("the first part", 2, message.readBytes(buffer));
        equal("the rest", 1, message.readBytes(buffer));
        equal("its byte", (byte) 3, buffer[0]);
        equal("the end", -1, message.readBytes(buffer));
    }

    @Test
    @Spec("api:BytesMessage")
    void readBytesWithALengthReadsNoMore() throws JMSException {
        BytesMessage message = roundTrip(bytes((byte) 1, (byte) 2, (byte) 3));
        equal("readBytes() with a length of 2", 2, message.readBytes(new byte[5], 2));
        equal("the next byte", (byte) 3, message.readByte());
    }

    @Test
    @Spec("api:BytesMessage")
    void readBytesWithANegativeLengthFails() throws JMSException {
        BytesMessage message = roundTrip(bytes((byte) 1));
        fails(
                IndexOutOfBoundsException.class,
                "readBytes() with a length of -1",
                () -> message.readBytes(new byte[5], -1));
        equal("the byte that was not read", (byte) 1, message.readByte());
    }

    @Test
    @Spec("api:BytesMessage")
    void readBytesBeyondTheBufferFails() throws JMSException {
        BytesMessage message = roundTrip(bytes((byte) 1));
        fails(
                IndexOutOfBoundsException.class,
                "readBytes() with a length beyond the buffer",
                () -> message.readBytes(new byte[5], 6));
    }

    // ---- modes ------------------------------------------------------------------------------------------------

    @Test
    @Spec("10.3")
    void newMessageIsNotReadableByAnyMethod() throws JMSException {
        BytesMessage message = bytes((byte) 1);
        Class<MessageNotReadableException> error = MessageNotReadableException.class;
        fails(error, "readBoolean()", message::readBoolean);
        fails(error, "readByte()", message::readByte);
        fails(error, "readUnsignedByte()", message::readUnsignedByte);
        fails(error, "readShort()", message::readShort);
        fails(error, "readUnsignedShort()", message::readUnsignedShort);
        fails(error, "readChar()", message::readChar);
        fails(error, "readInt()", message::readInt);
        fails(error, "readLong()", message::readLong);
        fails(error, "readFloat()", message::readFloat);
        fails(error, "readDouble()", message::readDouble);
        fails(error, "readUTF()", message::readUTF);
        fails(error, "readBytes()", () -> message.readBytes(new byte[1]));
        fails(error, "readBytes(length)", () -> message.readBytes(new byte[1], 1));
    }

    @Test
    @Spec("3.11.2")
    void receivedMessageIsReadOnly() throws JMSException {
        BytesMessage message = roundTrip(bytes((byte) 1));
        Class<MessageNotWriteableException> error = MessageNotWriteableException.class;
        fails(error, "writeBoolean()", () -> message.writeBoolean(true));
        fails(error, "writeByte()", () -> message.writeByte((byte) 1));
        fails(error, "writeShort()", () -> message.writeShort((short) 1));
        fails(error, "writeChar()", () -> message.writeChar('c'));
        fails(error, "writeInt()", () -> message.writeInt(1));
        fails(error, "writeLong()", () -> message.writeLong(1));
        fails(error, "writeFloat()", () -> message.writeFloat(1));
        fails(error, "writeDouble()", () -> message.writeDouble(1));
        fails(error, "writeUTF()", () -> message.writeUTF("1"));
        fails(error, "writeBytes()", () -> message.writeBytes(new byte[1]));
        fails(error, "writeBytes(offset, length)", () -> message.writeBytes(new byte[1], 0, 1));
        fails(error, "writeObject()", () -> message.writeObject(1));
    }

    @Test
    @Spec("api:BytesMessage")
    void resetMakesReadOnly() throws JMSException {
        BytesMessage message = bytes((byte) 1);
        message.reset();
        fails(MessageNotWriteableException.class, "writeByte() after reset()", () -> message.writeByte((byte) 2));
    }

    @Test
    @Spec("api:BytesMessage")
    void resetGoesBackToTheBeginning() throws JMSException {
        BytesMessage message = roundTrip(bytes((byte) 1, (byte) 2));
        message.readByte();
        message.reset();
        equal("the byte read after reset()", (byte) 1, message.readByte());
    }

    @Test
    @Spec("3.11.1")
    void clearBodyMakesWritable() throws JMSException {
        BytesMessage message = roundTrip(bytes((byte) 1));
        message.clearBody();
        works("writeByte() after clearBody()", () -> message.writeByte((byte) 2));
        fails(MessageNotReadableException.class, "readByte() after clearBody()", message::readByte);
        message.reset();
        equal("the length of the new body", 1L, message.getBodyLength());
    }

    @Test
    @Spec("10.3")
    void readingBeyondTheEndFails() throws JMSException {
        BytesMessage message = roundTrip(bytes());
        Class<MessageEOFException> error = MessageEOFException.class;
        fails(error, "readBoolean() at the end", message::readBoolean);
        fails(error, "readByte() at the end", message::readByte);
        fails(error, "readUnsignedByte() at the end", message::readUnsignedByte);
        fails(error, "readShort() at the end", message::readShort);
        fails(error, "readUnsignedShort() at the end", message::readUnsignedShort);
        fails(error, "readChar() at the end", message::readChar);
        fails(error, "readInt() at the end", message::readInt);
        fails(error, "readLong() at the end", message::readLong);
        fails(error, "readFloat() at the end", message::readFloat);
        fails(error, "readDouble() at the end", message::readDouble);
        fails(error, "readUTF() at the end", message::readUTF);
    }

    @Test
    @Spec("10.3")
    void readingAnIntFromTwoBytesFails() throws JMSException {
        BytesMessage message = roundTrip(bytes((byte) 1, (byte) 2));
        fails(MessageEOFException.class, "readInt() from 2 bytes", message::readInt);
    }

    @Test
    @Spec("3.9")
    void messageCanBeSentTwice() throws JMSException {
        BytesMessage message = bytes((byte) 1);
        roundTrip(message);
        equal("the byte of the second copy", (byte) 1, roundTrip(message).readByte());
    }

    @Test
    void largeContentArrives() throws JMSException {
        byte[] content = new byte[1_000_000];
        new Random(7).nextBytes(content);
        BytesMessage received = roundTrip(bytes(content));
        equal("the length", 1_000_000L, received.getBodyLength());
        byte[] actual = new byte[1_000_000];
        received.readBytes(actual);
        bytes("a million bytes", content, actual);
    }

    @Test
    @Spec("3.11.4")
    void typeIsKept() throws JMSException {
        yes("a BytesMessage must arrive as BytesMessage", (Object) roundTrip(bytes()) instanceof BytesMessage);
    }
}
