package io.github.pgaq.jms.message;

import io.github.pgaq.jms.message.Conversions.Place;
import io.github.pgaq.jms.store.Content;
import jakarta.jms.JMSException;
import jakarta.jms.MessageEOFException;
import jakarta.jms.MessageFormatException;
import jakarta.jms.MessageNotReadableException;
import jakarta.jms.StreamMessage;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;

/**
 * A stream message. A body of 4 MB or more lies in a temporary file and is sent and received in chunks, so it can be
 * larger than the memory; a field cannot.
 */
public final class PgaqStreamMessage extends PgaqMessage implements StreamMessage {

    /** The fields of a message that is not large. */
    private List<Object> fields = new ArrayList<>();
    /** Their length, about. */
    private long length;
    /** The fields of a large message, else null. */
    private FieldFile file;
    /** Of a received large message, else null. */
    private RemoteBody remote;
    /** The fields' JSON text, until they are read. */
    private String unread;

    private int position;
    /** The byte array that {@link #readBytes} has begun to read, or null. */
    private byte[] partial;

    private int partialPosition;

    PgaqStreamMessage() {}

    /** A conversion of a field. */
    private interface Reader<T> {
        T read(Place place, Object name, Object value) throws MessageFormatException;
    }

    // Reading

    private List<Object> fields() throws JMSException {
        if (unread != null) {
            try {
                if (!(Json.parse(unread) instanceof List<?> list)) {
                    throw new IllegalArgumentException("JSON array expected");
                }
                List<Object> values = new ArrayList<>(list.size());
                list.forEach(json -> values.add(Typed.readValue(json)));
                fields = values;
                unread = null;
            } catch (IllegalArgumentException e) {
                throw Errors.with(new MessageFormatException("invalid body of a stream message: " + e.getMessage()), e);
            }
        }
        return fields;
    }

    private Object field() throws JMSException {
        if (!isBodyReadOnly()) {
            throw new MessageNotReadableException("the body of the message is write-only; reset() makes it readable");
        }
        if (remote != null) {
            remote.checkThere();
        }
        if (file != null ? file.isAtEnd() : position == fields().size()) {
            throw new MessageEOFException("end of the body of the message");
        }
        try {
            return file != null ? file.get() : fields.get(position);
        } catch (IOException e) {
            throw Errors.with(new MessageFormatException("cannot read the body of the message: " + e.getMessage()), e);
        }
    }

    private void advance() {
        position++;
        if (file != null) {
            file.advance();
        }
    }

    /** Reads a field. If that fails, the position stays, so that the field can be read as another type. */
    private <T> T read(Reader<T> reader) throws JMSException {
        Object value = field();
        if (partial != null) {
            throw new MessageFormatException(
                    "stream field \"" + position + "\" was not read to its end: readBytes() has not returned -1 yet");
        }
        T result = reader.read(Place.FIELD, position, value);
        advance();
        return result;
    }

    @Override
    public boolean readBoolean() throws JMSException {
        return read(Conversions::toBoolean);
    }

    @Override
    public byte readByte() throws JMSException {
        return read(Conversions::toByte);
    }

    @Override
    public short readShort() throws JMSException {
        return read(Conversions::toShort);
    }

    @Override
    public char readChar() throws JMSException {
        return read(Conversions::toChar);
    }

    @Override
    public int readInt() throws JMSException {
        return read(Conversions::toInt);
    }

    @Override
    public long readLong() throws JMSException {
        return read(Conversions::toLong);
    }

    @Override
    public float readFloat() throws JMSException {
        return read(Conversions::toFloat);
    }

    @Override
    public double readDouble() throws JMSException {
        return read(Conversions::toDouble);
    }

    @Override
    public String readString() throws JMSException {
        return read(Conversions::toText);
    }

    @Override
    public Object readObject() throws JMSException {
        return read((place, name, value) -> Conversions.bodyValue(value));
    }

    @Override
    public int readBytes(byte[] value) throws JMSException {
        Objects.requireNonNull(value);
        Object field = field();
        if (partial == null) {
            if (field == null) {
                advance();
                return -1;
            }
            if (!(field instanceof byte[] bytes)) {
                throw Place.FIELD.error(position, field, "byte[]");
            }
            partial = bytes;
            partialPosition = 0;
        } else if (partialPosition == partial.length) {
            endField();
            return -1;
        }
        int count = Math.min(value.length, partial.length - partialPosition);
        System.arraycopy(partial, partialPosition, value, 0, count);
        partialPosition += count;
        if (count < value.length) {
            endField();
        }
        return count;
    }

    private void endField() {
        partial = null;
        advance();
    }

    // Writing

    @Override
    public void writeBoolean(boolean value) throws JMSException {
        write(value);
    }

    @Override
    public void writeByte(byte value) throws JMSException {
        write(value);
    }

    @Override
    public void writeShort(short value) throws JMSException {
        write(value);
    }

    @Override
    public void writeChar(char value) throws JMSException {
        write(value);
    }

    @Override
    public void writeInt(int value) throws JMSException {
        write(value);
    }

    @Override
    public void writeLong(long value) throws JMSException {
        write(value);
    }

    @Override
    public void writeFloat(float value) throws JMSException {
        write(value);
    }

    @Override
    public void writeDouble(double value) throws JMSException {
        write(value);
    }

    @Override
    public void writeString(String value) throws JMSException {
        write(value);
    }

    @Override
    public void writeBytes(byte[] value) throws JMSException {
        write(value);
    }

    @Override
    public void writeBytes(byte[] value, int offset, int length) throws JMSException {
        Objects.checkFromIndexSize(offset, length, value.length);
        write(Arrays.copyOfRange(value, offset, offset + length));
    }

    @Override
    public void writeObject(Object value) throws JMSException {
        write(value);
    }

    private void write(Object value) throws JMSException {
        checkBodyWritable();
        Object field = Conversions.bodyValue(value);
        length += FieldFile.lengthOf(field);
        try {
            if (file == null && length >= Spool.LARGE) {
                fields().add(field);
                toFile();
            } else if (file != null) {
                file.add(field);
            } else {
                fields().add(field);
            }
        } catch (IOException e) {
            throw Errors.with(new JMSException("cannot write to the message: " + e.getMessage()), e);
        }
    }

    private void toFile() throws IOException {
        FieldFile large = new FieldFile(new Spool());
        for (Object field : fields) {
            large.add(field);
        }
        file = large;
        fields = new ArrayList<>();
    }

    // Body

    @Override
    public void reset() {
        setBodyReadOnly(true);
        position = 0;
        partial = null;
        if (file != null) {
            file.rewind();
        }
    }

    @Override
    public void clearBody() throws JMSException {
        super.clearBody();
        fields = new ArrayList<>();
        length = 0;
        file = null;
        remote = null;
        unread = null;
        position = 0;
        partial = null;
    }

    @Override
    String kind() {
        return "stream";
    }

    @Override
    String storedText() throws JMSException {
        if (remote != null) {
            remote.checkThere();
        }
        return file != null ? null : unread != null ? unread : Typed.write(fields);
    }

    @Override
    Content content() {
        return file != null ? file.spool().content() : null;
    }

    @Override
    long contentLength() {
        return file.spool().length();
    }

    @Override
    void loadContent(long length) {
        remote = new RemoteBody(length);
    }

    @Override
    public void fetch(ContentReader reader) throws JMSException {
        Spool fetched = remote == null ? null : remote.fetch(reader);
        if (fetched != null) {
            file = new FieldFile(fetched);
        }
    }

    @Override
    void load(String text, byte[] bytes) {
        unread = text;
    }

    @Override
    public <T> T getBody(Class<T> c) throws JMSException {
        throw new MessageFormatException("the body of a stream message cannot be read by getBody()");
    }

    @Override
    @SuppressWarnings("rawtypes")
    public boolean isBodyAssignableTo(Class c) {
        return false;
    }
}
