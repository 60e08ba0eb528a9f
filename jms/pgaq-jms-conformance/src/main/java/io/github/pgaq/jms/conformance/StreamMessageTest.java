package io.github.pgaq.jms.conformance;

import jakarta.jms.JMSException;
import jakarta.jms.MessageEOFException;
import jakarta.jms.MessageFormatException;
import jakarta.jms.MessageNotReadableException;
import jakarta.jms.MessageNotWriteableException;
import jakarta.jms.StreamMessage;
import java.util.Date;
import org.junit.jupiter.api.Test;

/** StreamMessage, except for the table of conversions. */
@Spec("3.11")
class StreamMessageTest extends ConformanceTest {
    @Override
    boolean sharesConnection() {
        return true;
    }

    private StreamMessage stream(Object... values) throws JMSException {
        StreamMessage message = session().createStreamMessage();
        for (Object value : values) {
            message.writeObject(value);
        }
        return message;
    }

    @Test
    void everyTypeArrivesInOrder() throws JMSException {
        StreamMessage sent = session().createStreamMessage();
        sent.writeBoolean(true);
        sent.writeByte((byte) -1);
        sent.writeShort((short) -2);
        sent.writeChar('\u20ac');
        sent.writeInt(-3);
        sent.writeLong(-4L);
        sent.writeFloat(-5.5f);
        sent.writeDouble(-6.5d);
        sent.writeString("größe");
        sent.writeBytes(new byte[] {1, -1});
        StreamMessage message = roundTrip(sent);
        equal("the boolean", true, message.readBoolean());
        equal("the byte", (byte) -1, message.readByte());
        equal("the short", (short) -2, message.readShort());
        equal("the char", '\u20ac', message.readChar());
        equal("the int", -3, message.readInt());
        equal("the long", -4L, message.readLong());
        equal("the float", -5.5f, message.readFloat());
        equal("the double", -6.5d, message.readDouble());
        equal("the String", "größe", message.readString());
        bytes("the bytes", new byte[] {1, -1}, (byte[]) message.readObject());
    }

    @Test
    void objectsKeepTheirTypes() throws JMSException {
        Object[] values = {true, (byte) 1, (short) 2, 'c', 3, 4L, 5.5f, 6.5d, "seven"};
        StreamMessage message = roundTrip(stream(values));
        for (Object value : values) {
            equal("readObject()", value, message.readObject());
        }
    }

    @Test
    void writtenPrimitivesAreReadAsObjects() throws JMSException {
        StreamMessage message = session().createStreamMessage();
        message.writeShort((short) 9);
        message.reset();
        equal("readObject() of a short", (short) 9, message.readObject());
    }

    @Test
    @Spec("3.12")
    void nullArrives() throws JMSException {
        isNull("readObject() of a null", roundTrip(stream((Object) null)).readObject());
    }

    @Test
    @Spec("3.12")
    void nullStringArrives() throws JMSException {
        StreamMessage message = session().createStreamMessage();
        message.writeString(null);
        isNull("readString() of a null", roundTrip(message).readString());
    }

    @Test
    @Spec("3.12")
    void nullBytesArrive() throws JMSException {
        StreamMessage message = session().createStreamMessage();
        message.writeBytes(null);
        equal("readBytes() of a null array", -1, roundTrip(message).readBytes(new byte[4]));
    }

    @Test
    void emptyStringArrives() throws JMSException {
        equal("readString() of an empty String", "", roundTrip(stream("")).readString());
    }

    @Test
    @Spec({"3.11", "3.11.4"})
    void typeIsKept() throws JMSException {
        yes("a StreamMessage must arrive as StreamMessage", (Object) roundTrip(stream(1)) instanceof StreamMessage);
    }

    @Test
    @Spec("3.12")
    void writtenBytesAreCopied() throws JMSException {
        byte[] array = {1, 2};
        StreamMessage message = session().createStreamMessage();
        message.writeBytes(array);
        array[0] = 9;
        message.reset();
        bytes("the bytes as they were written", new byte[] {1, 2}, (byte[]) message.readObject());
    }

    @Test
    void partOfAnArrayIsWritten() throws JMSException {
        StreamMessage message = session().createStreamMessage();
        message.writeBytes(new byte[] {1, 2, 3, 4}, 1, 2);
        bytes("the written part", new byte[] {2, 3}, (byte[]) roundTrip(message).readObject());
    }

    @Test
    @Spec("10.3")
    void unsupportedClassIsRefused() throws JMSException {
        StreamMessage message = session().createStreamMessage();
        fails(MessageFormatException.class, "writeObject with a Date", () -> message.writeObject(new Date()));
    }

    // ---- readBytes --------------------------------------------------------------------------------------------

    @Test
    @Spec("api:StreamMessage")
    void readBytesReturnsTheCount() throws JMSException {
        StreamMessage message = roundTrip(stream((Object) new byte[] {1, 2, 3}));
        byte[] buffer = new byte[10];
        equal("the count of bytes", 3, message.readBytes(buffer));
        equal("the last byte", (byte) 3, buffer[2]);
    }

    @Test
    @Spec("api:StreamMessage")
    void readBytesOfAnEmptyArrayReturnsZero() throws JMSException {
        equal(
                "readBytes() of an empty array",
                0,
                roundTrip(stream((Object) new byte[0])).readBytes(new byte[4]));
    }

    @Test
    @Spec("api:StreamMessage")
    void readBytesContinues() throws JMSException {
        StreamMessage message = roundTrip(stream((Object) new byte[] {1, 2, 3}));
        byte[] buffer = new byte[2];
        equal("the first part", 2, message.readBytes(buffer));
        equal("the rest", 1, message.readBytes(buffer));
        equal("its byte", (byte) 3, buffer[0]);
    }

    @Test
    @Spec("api:StreamMessage")
    void readBytesReturnsMinusOneAtTheEndOfAFieldThatFilledTheBuffer() throws JMSException {
        StreamMessage message = roundTrip(stream((Object) new byte[] {1, 2}));
        byte[] buffer = new byte[2];
        equal("the whole field", 2, message.readBytes(buffer));
        equal("readBytes() at the end of the field", -1, message.readBytes(buffer));
    }

    @Test
    @Spec("api:StreamMessage")
    void nextFieldFollowsAFieldReadToItsEnd() throws JMSException {
        StreamMessage message = roundTrip(stream(new byte[] {1, 2}, 7));
        message.readBytes(new byte[4]);
        equal("the field behind the bytes", 7, message.readInt());
    }

    @Test
    @Spec("api:StreamMessage")
    void nextFieldIsRefusedWithinABytesField() throws JMSException {
        StreamMessage message = roundTrip(stream(new byte[] {1, 2, 3}, 7));
        message.readBytes(new byte[2]);
        fails(MessageFormatException.class, "readInt() before the bytes were read to their end", message::readInt);
    }

    @Test
    @Spec("api:StreamMessage")
    void readObjectIsRefusedWithinABytesField() throws JMSException {
        StreamMessage message = roundTrip(stream((Object) new byte[] {1, 2, 3}));
        message.readBytes(new byte[2]);
        fails(
                MessageFormatException.class,
                "readObject() before the bytes were read to their end",
                message::readObject);
    }

    @Test
    @Spec("3.12")
    void readObjectReturnsACopyOfTheBytes() throws JMSException {
        StreamMessage message = stream((Object) new byte[] {1});
        message.reset();
        ((byte[]) message.readObject())[0] = 9;
        message.reset();
        bytes("the bytes read again", new byte[] {1}, (byte[]) message.readObject());
    }

    // ---- modes ------------------------------------------------------------------------------------------------

    @Test
    @Spec("10.3")
    void newMessageIsNotReadable() throws JMSException {
        StreamMessage message = session().createStreamMessage();
        fails(MessageNotReadableException.class, "readInt() of a new StreamMessage", message::readInt);
    }

    @Test
    @Spec("10.3")
    void newMessageIsNotReadableByAnyMethod() throws JMSException {
        StreamMessage message = stream("1", "2");
        Class<MessageNotReadableException> error = MessageNotReadableException.class;
        fails(error, "readBoolean()", message::readBoolean);
        fails(error, "readByte()", message::readByte);
        fails(error, "readShort()", message::readShort);
        fails(error, "readChar()", message::readChar);
        fails(error, "readLong()", message::readLong);
        fails(error, "readFloat()", message::readFloat);
        fails(error, "readDouble()", message::readDouble);
        fails(error, "readString()", message::readString);
        fails(error, "readBytes()", () -> message.readBytes(new byte[1]));
        fails(error, "readObject()", message::readObject);
    }

    @Test
    @Spec("3.11.2")
    void receivedMessageIsReadOnly() throws JMSException {
        StreamMessage message = roundTrip(stream(1));
        Class<MessageNotWriteableException> error = MessageNotWriteableException.class;
        fails(error, "writeBoolean()", () -> message.writeBoolean(true));
        fails(error, "writeByte()", () -> message.writeByte((byte) 1));
        fails(error, "writeShort()", () -> message.writeShort((short) 1));
        fails(error, "writeChar()", () -> message.writeChar('c'));
        fails(error, "writeInt()", () -> message.writeInt(1));
        fails(error, "writeLong()", () -> message.writeLong(1));
        fails(error, "writeFloat()", () -> message.writeFloat(1));
        fails(error, "writeDouble()", () -> message.writeDouble(1));
        fails(error, "writeString()", () -> message.writeString("1"));
        fails(error, "writeBytes()", () -> message.writeBytes(new byte[1]));
        fails(error, "writeBytes(offset, length)", () -> message.writeBytes(new byte[1], 0, 1));
        fails(error, "writeObject()", () -> message.writeObject(1));
    }

    @Test
    @Spec("api:StreamMessage")
    void resetMakesReadOnly() throws JMSException {
        StreamMessage message = stream(1);
        message.reset();
        fails(MessageNotWriteableException.class, "writeInt() after reset()", () -> message.writeInt(2));
        equal("the value", 1, message.readInt());
    }

    @Test
    @Spec("api:StreamMessage")
    void resetGoesBackToTheBeginning() throws JMSException {
        StreamMessage message = roundTrip(stream(1, 2));
        message.readInt();
        message.reset();
        equal("the value read after reset()", 1, message.readInt());
    }

    @Test
    @Spec("3.11.1")
    void clearBodyMakesWritable() throws JMSException {
        StreamMessage message = roundTrip(stream(1));
        message.clearBody();
        works("writeInt() after clearBody()", () -> message.writeInt(2));
        fails(MessageNotReadableException.class, "readInt() after clearBody()", message::readInt);
        message.reset();
        equal("the new value", 2, message.readInt());
    }

    @Test
    @Spec("3.11.1")
    void clearBodyRemovesTheContent() throws JMSException {
        StreamMessage message = stream(1);
        message.clearBody();
        message.reset();
        fails(MessageEOFException.class, "readInt() of a cleared StreamMessage", message::readInt);
    }

    @Test
    @Spec("10.3")
    void readingBeyondTheEndFails() throws JMSException {
        StreamMessage message = roundTrip(stream(1));
        message.readInt();
        fails(MessageEOFException.class, "readInt() at the end", message::readInt);
        fails(MessageEOFException.class, "readString() at the end", message::readString);
        fails(MessageEOFException.class, "readObject() at the end", message::readObject);
        fails(MessageEOFException.class, "readBytes() at the end", () -> message.readBytes(new byte[1]));
    }

    @Test
    void emptyMessageArrives() throws JMSException {
        StreamMessage message = roundTrip(session().createStreamMessage());
        fails(MessageEOFException.class, "readInt() of an empty StreamMessage", message::readInt);
    }

    @Test
    @Spec("3.11.3")
    void formatErrorDoesNotMoveThePosition() throws JMSException {
        StreamMessage message = roundTrip(stream(true));
        fails(MessageFormatException.class, "readInt() of a boolean", message::readInt);
        equal("the value read after the error", true, message.readBoolean());
    }

    @Test
    @Spec("3.11.3")
    void numberFormatErrorDoesNotMoveThePosition() throws JMSException {
        StreamMessage message = roundTrip(stream("abc"));
        fails(NumberFormatException.class, "readInt() of the String abc", message::readInt);
        equal("the value read after the error", "abc", message.readString());
    }

    @Test
    @Spec("3.11.3")
    void nullErrorDoesNotMoveThePosition() throws JMSException {
        StreamMessage message = roundTrip(stream(null, 5));
        fails(NumberFormatException.class, "readInt() of a null", message::readInt);
        isNull("the value read after the error", message.readString());
        equal("the value behind it", 5, message.readInt());
    }

    @Test
    @Spec("3.9")
    void messageCanBeSentTwice() throws JMSException {
        StreamMessage message = stream(1);
        roundTrip(message);
        equal("the value of the second copy", 1, roundTrip(message).readInt());
    }

    @Test
    void manyValuesArrive() throws JMSException {
        StreamMessage message = session().createStreamMessage();
        for (int i = 0; i < 2_000; i++) {
            message.writeInt(i);
        }
        StreamMessage received = roundTrip(message);
        for (int i = 0; i < 2_000; i++) {
            equal("value " + i, i, received.readInt());
        }
    }
}
