package io.github.pgaq.jms.sql;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.UUID;

/** Bytes in the form that {@code aq_jms.send} reads: numbers in network byte order, texts with their length. */
final class Parcel {

    private static final int FIRST_SIZE = 1024;
    private static final int NULL = -1;

    private byte[] bytes = new byte[FIRST_SIZE];
    private int length;

    void number(int value) {
        reserve(Integer.BYTES);
        for (int shift = Integer.SIZE - Byte.SIZE; shift >= 0; shift -= Byte.SIZE) {
            bytes[length++] = (byte) (value >>> shift);
        }
    }

    void number(long value) {
        number((int) (value >>> Integer.SIZE));
        number((int) value);
    }

    void id(UUID id) {
        number(id.getMostSignificantBits());
        number(id.getLeastSignificantBits());
    }

    void text(String text) {
        bytes(text == null ? null : text.getBytes(StandardCharsets.UTF_8));
    }

    void bytes(byte[] value) {
        if (value == null) {
            number(NULL);
            return;
        }
        number(value.length);
        reserve(value.length);
        System.arraycopy(value, 0, bytes, length, value.length);
        length += value.length;
    }

    byte[] toBytes() {
        return Arrays.copyOf(bytes, length);
    }

    private void reserve(int more) {
        if (more > bytes.length - length) {
            bytes = Arrays.copyOf(bytes, Math.max(2 * bytes.length, Math.addExact(length, more)));
        }
    }
}
