package io.github.pgaq.jms.message;

import io.github.pgaq.jms.store.Content;
import jakarta.jms.BytesMessage;
import jakarta.jms.JMSException;
import jakarta.jms.MessageEOFException;
import jakarta.jms.MessageFormatException;
import jakarta.jms.MessageNotReadableException;
import java.io.ByteArrayInputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.UTFDataFormatException;
import java.nio.BufferUnderflowException;
import java.nio.ByteBuffer;
import java.util.function.Function;

/**
 * A bytes message. A body of 4 MB or more lies in a temporary file and is sent and received in chunks, so it can be
 * larger than the memory.
 *
 * <p>Setting the object property {@link #INPUT_STREAM} writes all of an {@link InputStream} to the body; setting
 * {@link #OUTPUT_STREAM} writes the body to an {@link OutputStream}. Neither becomes a property.
 */
public final class PgaqBytesMessage extends PgaqMessage implements BytesMessage {

    /** Name of a property that can be set to an InputStream. */
    public static final String INPUT_STREAM = "JMS_PGAQ_InputStream";

    /** Name of a property that can be set to an OutputStream, also in a received message. */
    public static final String OUTPUT_STREAM = "JMS_PGAQ_OutputStream";

    /** Bytes of a large body that are kept in memory, more than a string of writeUTF has. */
    private static final int WINDOW = 1 << 17;

    private Spool spool = new Spool();
    private DataOutputStream output = new DataOutputStream(spool);
    /** The body, or a part of a large one; null: not being read. */
    private ByteBuffer window;
    /** Where the window begins in the body. */
    private long windowStart;
    /** Of a received large message, else null. */
    private RemoteBody remote;

    PgaqBytesMessage() {}

    @Override
    public void setObjectProperty(String name, Object value) throws JMSException {
        if (INPUT_STREAM.equals(name) && value instanceof InputStream in) {
            write(in::transferTo);
        } else if (OUTPUT_STREAM.equals(name) && value instanceof OutputStream out) {
            writeTo(out);
        } else {
            super.setObjectProperty(name, value);
        }
    }

    private void writeTo(OutputStream out) throws JMSException {
        checkThere();
        try (InputStream in = spool.open()) {
            in.transferTo(out);
        } catch (IOException e) {
            throw failed("cannot copy the body of the message", e);
        }
    }

    // Reading

    @Override
    public long getBodyLength() throws JMSException {
        readable(0);
        return spool.length();
    }

    @Override
    public boolean readBoolean() throws JMSException {
        return read(1, ByteBuffer::get) != 0;
    }

    @Override
    public byte readByte() throws JMSException {
        return read(1, ByteBuffer::get);
    }

    @Override
    public int readUnsignedByte() throws JMSException {
        return Byte.toUnsignedInt(read(1, ByteBuffer::get));
    }

    @Override
    public short readShort() throws JMSException {
        return read(2, ByteBuffer::getShort);
    }

    @Override
    public int readUnsignedShort() throws JMSException {
        return Short.toUnsignedInt(read(2, ByteBuffer::getShort));
    }

    @Override
    public char readChar() throws JMSException {
        return read(2, ByteBuffer::getChar);
    }

    @Override
    public int readInt() throws JMSException {
        return read(4, ByteBuffer::getInt);
    }

    @Override
    public long readLong() throws JMSException {
        return read(8, ByteBuffer::getLong);
    }

    @Override
    public float readFloat() throws JMSException {
        return read(4, ByteBuffer::getFloat);
    }

    @Override
    public double readDouble() throws JMSException {
        return read(8, ByteBuffer::getDouble);
    }

    @Override
    public String readUTF() throws JMSException {
        ByteBuffer buffer = readable(2);
        int length = buffer.remaining() < 2 ? 0 : 2 + Short.toUnsignedInt(buffer.getShort(buffer.position()));
        buffer = readable(length);
        if (length == 0 || buffer.remaining() < length) {
            throw new MessageEOFException("end of the body of the message");
        }
        try {
            InputStream stream = new ByteArrayInputStream(buffer.array(), buffer.position(), length);
            String value = new DataInputStream(stream).readUTF();
            buffer.position(buffer.position() + length);
            return value;
        } catch (IOException e) {
            throw failed("the bytes at this position of the message are not a string that writeUTF has written", e);
        }
    }

    @Override
    public int readBytes(byte[] value) throws JMSException {
        return readBytes(value, value.length);
    }

    @Override
    public int readBytes(byte[] value, int length) throws JMSException {
        ByteBuffer buffer = readable(0);
        if (length < 0 || length > value.length) {
            throw new IndexOutOfBoundsException("length " + length + " for an array of " + value.length);
        }
        int count = Math.min(length, buffer.remaining());
        buffer.get(value, 0, count);
        while (count < length) {
            buffer = readable(1);
            if (!buffer.hasRemaining()) {
                return count == 0 ? -1 : count;
            }
            int more = Math.min(length - count, buffer.remaining());
            buffer.get(value, count, more);
            count += more;
        }
        return count;
    }

    private <T> T read(int bytes, Function<ByteBuffer, T> reader) throws JMSException {
        try {
            return reader.apply(readable(bytes));
        } catch (BufferUnderflowException e) {
            throw new MessageEOFException("end of the body of the message");
        }
    }

    /** The window, with at least that many bytes from the position on, if the body has them. */
    private ByteBuffer readable(int bytes) throws JMSException {
        if (!isBodyReadOnly()) {
            throw new MessageNotReadableException("the body of the message is write-only; reset() makes it readable");
        }
        checkThere();
        if (!spool.isLarge()) {
            if (window == null) {
                window = ByteBuffer.wrap(spool.toByteArray());
            }
            return window;
        }
        if (window == null) {
            window = ByteBuffer.allocate(WINDOW).limit(0);
            windowStart = 0;
        }
        if (window.remaining() < bytes) {
            try {
                windowStart += window.position();
                window.clear();
                int count = spool.read(windowStart, window.array(), 0, WINDOW);
                window.limit(Math.max(count, 0));
            } catch (IOException e) {
                window = null;
                throw failed("cannot read the body of the message", e);
            }
        }
        return window;
    }

    private void checkThere() throws JMSException {
        if (remote != null) {
            remote.checkThere();
        }
    }

    private static JMSException failed(String what, IOException e) {
        String message = what + ": " + e.getMessage();
        return Errors.with(
                e instanceof UTFDataFormatException ? new MessageFormatException(message) : new JMSException(message),
                e);
    }

    // Writing

    @Override
    public void writeBoolean(boolean value) throws JMSException {
        write(out -> out.writeBoolean(value));
    }

    @Override
    public void writeByte(byte value) throws JMSException {
        write(out -> out.writeByte(value));
    }

    @Override
    public void writeShort(short value) throws JMSException {
        write(out -> out.writeShort(value));
    }

    @Override
    public void writeChar(char value) throws JMSException {
        write(out -> out.writeChar(value));
    }

    @Override
    public void writeInt(int value) throws JMSException {
        write(out -> out.writeInt(value));
    }

    @Override
    public void writeLong(long value) throws JMSException {
        write(out -> out.writeLong(value));
    }

    @Override
    public void writeFloat(float value) throws JMSException {
        write(out -> out.writeFloat(value));
    }

    @Override
    public void writeDouble(double value) throws JMSException {
        write(out -> out.writeDouble(value));
    }

    @Override
    public void writeUTF(String value) throws JMSException {
        write(out -> out.writeUTF(value));
    }

    @Override
    public void writeBytes(byte[] value) throws JMSException {
        write(out -> out.write(value));
    }

    @Override
    public void writeBytes(byte[] value, int offset, int length) throws JMSException {
        write(out -> out.write(value, offset, length));
    }

    @Override
    public void writeObject(Object value) throws JMSException {
        checkBodyWritable();
        if (value == null) {
            throw new NullPointerException("null cannot be written to a bytes message");
        }
        if (value instanceof Boolean b) {
            writeBoolean(b);
        } else if (value instanceof Byte b) {
            writeByte(b);
        } else if (value instanceof Short s) {
            writeShort(s);
        } else if (value instanceof Character c) {
            writeChar(c);
        } else if (value instanceof Integer i) {
            writeInt(i);
        } else if (value instanceof Long l) {
            writeLong(l);
        } else if (value instanceof Float f) {
            writeFloat(f);
        } else if (value instanceof Double d) {
            writeDouble(d);
        } else if (value instanceof String s) {
            writeUTF(s);
        } else if (value instanceof byte[] bytes) {
            writeBytes(bytes);
        } else {
            throw new MessageFormatException(
                    "objects of class " + value.getClass().getName() + " cannot be written to a bytes message");
        }
    }

    private interface Writer {
        void write(DataOutputStream out) throws IOException;
    }

    private void write(Writer writer) throws JMSException {
        checkBodyWritable();
        try {
            writer.write(output);
        } catch (IOException e) {
            throw failed("cannot write to the message", e);
        }
    }

    // Body

    @Override
    public void reset() {
        setBodyReadOnly(true);
        if (window != null && spool.isLarge()) {
            window = null;
        } else if (window != null) {
            window.rewind();
        }
    }

    @Override
    public void clearBody() throws JMSException {
        super.clearBody();
        window = null;
        spool = new Spool();
        output = new DataOutputStream(spool);
        remote = null;
    }

    @Override
    String kind() {
        return "bytes";
    }

    @Override
    byte[] storedBytes() throws JMSException {
        checkThere();
        return spool.isLarge() ? null : spool.toByteArray();
    }

    @Override
    Content content() {
        return spool.isLarge() ? spool.content() : null;
    }

    @Override
    long contentLength() {
        return spool.length();
    }

    @Override
    void load(String text, byte[] bytes) {
        if (bytes != null) {
            spool = new Spool(bytes);
        }
    }

    @Override
    void loadContent(long length) {
        remote = new RemoteBody(length);
    }

    @Override
    public void fetch(ContentReader reader) throws JMSException {
        Spool fetched = remote == null ? null : remote.fetch(reader);
        if (fetched != null) {
            spool = fetched;
        }
    }

    @Override
    public <T> T getBody(Class<T> c) throws JMSException {
        reset();
        return super.getBody(c);
    }

    @Override
    @SuppressWarnings("rawtypes")
    public boolean isBodyAssignableTo(Class c) throws JMSException {
        return (remote == null || remote.isThere()) && (spool.length() == 0 || isAssignable(c, null));
    }

    @Override
    Object wholeBody() throws JMSException {
        checkThere();
        if (spool.length() == 0) {
            return null;
        }
        if (spool.length() > Integer.MAX_VALUE - 8) {
            throw new MessageFormatException(
                    "the body of the message has " + spool.length() + " bytes, too many for an array; use readBytes()");
        }
        try (InputStream in = spool.open()) {
            return in.readNBytes((int) spool.length());
        } catch (IOException e) {
            throw failed("cannot read the body of the message", e);
        }
    }

    @Override
    boolean isAssignable(Class<?> c, Object body) {
        return c == byte[].class || c == Object.class;
    }
}
