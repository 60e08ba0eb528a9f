package io.github.pgaq.jms.message;

import java.io.BufferedInputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;

/**
 * The fields of a large stream message, one behind the other in a spool; only the field that is being read is in
 * memory. Form of a field: the index of its type in {@link #TYPES} as a byte, and the value as DataOutput writes it. A
 * string, a byte array: its length in bytes as an int, and the bytes; a string in UTF-8, or, if it has half of a
 * surrogate pair, in UTF-16.
 */
final class FieldFile {

    /** The types of fields. Messages at the server have these numbers, so new types go to the end. */
    private enum Type {
        NULL,
        BOOLEAN,
        BYTE,
        SHORT,
        CHAR,
        INT,
        LONG,
        FLOAT,
        DOUBLE,
        UTF8,
        BYTES,
        UTF16
    }

    private static final Type[] TYPES = Type.values();

    private static final int BUFFER = 1 << 16;

    private final Spool spool;
    private final DataOutputStream output;
    private DataInputStream input;
    private long position;
    /** The field at the position, and where the next one begins; if {@link #isRead}. */
    private Object current;

    private long next;
    private boolean isRead;

    /** The fields that are in the spool, or, if it is empty, are going to be. */
    FieldFile(Spool spool) {
        this.spool = spool;
        this.output = new DataOutputStream(spool);
    }

    Spool spool() {
        return spool;
    }

    void add(Object value) throws IOException {
        if (value == null) {
            output.writeByte(Type.NULL.ordinal());
        } else if (value instanceof Boolean v) {
            type(Type.BOOLEAN).writeBoolean(v);
        } else if (value instanceof Byte v) {
            type(Type.BYTE).writeByte(v);
        } else if (value instanceof Short v) {
            type(Type.SHORT).writeShort(v);
        } else if (value instanceof Character v) {
            type(Type.CHAR).writeChar(v);
        } else if (value instanceof Integer v) {
            type(Type.INT).writeInt(v);
        } else if (value instanceof Long v) {
            type(Type.LONG).writeLong(v);
        } else if (value instanceof Float v) {
            type(Type.FLOAT).writeInt(Float.floatToRawIntBits(v));
        } else if (value instanceof Double v) {
            type(Type.DOUBLE).writeLong(Double.doubleToRawLongBits(v));
        } else if (value instanceof byte[] v) {
            bytes(Type.BYTES, v);
        } else {
            String text = (String) value;
            byte[] utf8 = text.getBytes(StandardCharsets.UTF_8);
            boolean whole = new String(utf8, StandardCharsets.UTF_8).equals(text);
            bytes(whole ? Type.UTF8 : Type.UTF16, whole ? utf8 : utf16(text));
        }
    }

    /** The length of a field, about; what it takes in memory is not much more. */
    static long lengthOf(Object value) {
        return value instanceof byte[] bytes ? bytes.length : value instanceof String text ? text.length() : Long.BYTES;
    }

    private DataOutputStream type(Type type) throws IOException {
        output.writeByte(type.ordinal());
        return output;
    }

    private void bytes(Type type, byte[] bytes) throws IOException {
        type(type).writeInt(bytes.length);
        output.write(bytes);
    }

    /** The encoder for UTF-16 replaces half of a surrogate pair, too. */
    private static byte[] utf16(String text) {
        byte[] bytes = new byte[2 * text.length()];
        for (int i = 0; i < text.length(); i++) {
            bytes[2 * i] = (byte) (text.charAt(i) >> 8);
            bytes[2 * i + 1] = (byte) text.charAt(i);
        }
        return bytes;
    }

    private static String fromUtf16(byte[] bytes) {
        char[] chars = new char[bytes.length / 2];
        for (int i = 0; i < chars.length; i++) {
            chars[i] = (char) ((bytes[2 * i] & 0xff) << 8 | bytes[2 * i + 1] & 0xff);
        }
        return new String(chars);
    }

    boolean isAtEnd() {
        return position >= spool.length();
    }

    /** The field at the position. */
    Object get() throws IOException {
        if (!isRead) {
            if (input == null) {
                input = new DataInputStream(new BufferedInputStream(spool.open(), BUFFER));
            }
            current = read();
            isRead = true;
        }
        return current;
    }

    private Object read() throws IOException {
        int number = input.readUnsignedByte();
        if (number >= TYPES.length) {
            throw new IOException("type " + number + " of a field is not known");
        }
        next = position + 1;
        return switch (TYPES[number]) {
            case NULL -> null;
            case BOOLEAN -> passed(1, input.readBoolean());
            case BYTE -> passed(Byte.BYTES, input.readByte());
            case SHORT -> passed(Short.BYTES, input.readShort());
            case CHAR -> passed(Character.BYTES, input.readChar());
            case INT -> passed(Integer.BYTES, input.readInt());
            case LONG -> passed(Long.BYTES, input.readLong());
            case FLOAT -> passed(Float.BYTES, Float.intBitsToFloat(input.readInt()));
            case DOUBLE -> passed(Double.BYTES, Double.longBitsToDouble(input.readLong()));
            case UTF8 -> new String(readBytes(), StandardCharsets.UTF_8);
            case UTF16 -> fromUtf16(readBytes());
            case BYTES -> readBytes();
        };
    }

    private Object passed(int bytes, Object value) {
        next += bytes;
        return value;
    }

    private byte[] readBytes() throws IOException {
        int length = input.readInt();
        next += Integer.BYTES + (long) length;
        if (length < 0 || next > spool.length()) {
            throw new IOException("a field is longer than the body");
        }
        byte[] bytes = new byte[length];
        input.readFully(bytes);
        return bytes;
    }

    /** To the next field; the one at the position was got. */
    void advance() {
        position = next;
        isRead = false;
        current = null;
    }

    /** To the first field. */
    void rewind() {
        position = 0;
        isRead = false;
        current = null;
        input = null;
    }
}
