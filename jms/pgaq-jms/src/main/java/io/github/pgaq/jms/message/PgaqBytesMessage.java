package io.github.pgaq.jms.message;

import jakarta.jms.BytesMessage;
import jakarta.jms.JMSException;
import jakarta.jms.MessageEOFException;
import jakarta.jms.MessageFormatException;
import jakarta.jms.MessageNotReadableException;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.BufferUnderflowException;
import java.nio.ByteBuffer;
import java.util.function.Function;

/** A bytes message. */
public final class PgaqBytesMessage extends PgaqMessage implements BytesMessage {

    private ByteArrayOutputStream written = new ByteArrayOutputStream();
    private DataOutputStream output = new DataOutputStream(written);
    private ByteBuffer content;

    PgaqBytesMessage() {}

    // Reading

    @Override
    public long getBodyLength() throws JMSException {
        return readable().limit();
    }

    @Override
    public boolean readBoolean() throws JMSException {
        return read(ByteBuffer::get) != 0;
    }

    @Override
    public byte readByte() throws JMSException {
        return read(ByteBuffer::get);
    }

    @Override
    public int readUnsignedByte() throws JMSException {
        return Byte.toUnsignedInt(read(ByteBuffer::get));
    }

    @Override
    public short readShort() throws JMSException {
        return read(ByteBuffer::getShort);
    }

    @Override
    public int readUnsignedShort() throws JMSException {
        return Short.toUnsignedInt(read(ByteBuffer::getShort));
    }

    @Override
    public char readChar() throws JMSException {
        return read(ByteBuffer::getChar);
    }

    @Override
    public int readInt() throws JMSException {
        return read(ByteBuffer::getInt);
    }

    @Override
    public long readLong() throws JMSException {
        return read(ByteBuffer::getLong);
    }

    @Override
    public float readFloat() throws JMSException {
        return read(ByteBuffer::getFloat);
    }

    @Override
    public double readDouble() throws JMSException {
        return read(ByteBuffer::getDouble);
    }

    @Override
    public String readUTF() throws JMSException {
        ByteBuffer buffer = readable();
        int length = buffer.remaining() < 2 ? 0 : 2 + Short.toUnsignedInt(buffer.getShort(buffer.position()));
        if (length == 0 || buffer.remaining() < length) {
            throw new MessageEOFException("end of the body of the message");
        }
        try {
            InputStream stream = new java.io.ByteArrayInputStream(buffer.array(), buffer.position(), length);
            String value = new DataInputStream(stream).readUTF();
            buffer.position(buffer.position() + length);
            return value;
        } catch (IOException e) {
            throw Errors.with(new MessageFormatException("the bytes at position " + buffer.position()
                    + " of the message are not a string that writeUTF has written"), e);
        }
    }

    @Override
    public int readBytes(byte[] value) throws JMSException {
        return readBytes(value, value.length);
    }

    @Override
    public int readBytes(byte[] value, int length) throws JMSException {
        ByteBuffer buffer = readable();
        if (length < 0 || length > value.length) {
            throw new IndexOutOfBoundsException("length " + length + " for an array of " + value.length);
        }
        int count = Math.min(length, buffer.remaining());
        if (count == 0 && length > 0) {
            return -1;
        }
        buffer.get(value, 0, count);
        return count;
    }

    private <T> T read(Function<ByteBuffer, T> reader) throws JMSException {
        try {
            return reader.apply(readable());
        } catch (BufferUnderflowException e) {
            throw new MessageEOFException("end of the body of the message");
        }
    }

    private ByteBuffer readable() throws JMSException {
        if (!isBodyReadOnly()) {
            throw new MessageNotReadableException("the body of the message is write-only; reset() makes it readable");
        }
        if (content == null) {
            content = ByteBuffer.wrap(written.toByteArray());
            written = null;
            output = null;
        }
        return content;
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
            throw new MessageFormatException("objects of class " + value.getClass().getName()
                    + " cannot be written to a bytes message");
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
            throw Errors.with(new MessageFormatException("cannot write to the message: " + e.getMessage()), e);
        }
    }

    // Body

    @Override
    public void reset() {
        setBodyReadOnly(true);
        if (content != null) {
            content.rewind();
        }
    }

    @Override
    public void clearBody() throws JMSException {
        super.clearBody();
        content = null;
        written = new ByteArrayOutputStream();
        output = new DataOutputStream(written);
    }

    @Override
    String kind() {
        return "bytes";
    }

    @Override
    byte[] storedBytes() {
        return content == null ? written.toByteArray() : content.array();
    }

    @Override
    void load(String text, byte[] bytes) {
        content = ByteBuffer.wrap(bytes == null ? new byte[0] : bytes);
        written = null;
        output = null;
    }

    @Override
    public <T> T getBody(Class<T> c) throws JMSException {
        reset();
        return super.getBody(c);
    }

    @Override
    Object wholeBody() {
        byte[] bytes = content == null ? written.toByteArray() : content.array().clone();
        return bytes.length == 0 ? null : bytes;
    }

    @Override
    boolean isAssignable(Class<?> c, Object body) {
        return c == byte[].class || c == Object.class;
    }
}
