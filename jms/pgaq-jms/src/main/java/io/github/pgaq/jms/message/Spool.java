package io.github.pgaq.jms.message;

import io.github.pgaq.jms.store.Content;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.RandomAccessFile;
import java.nio.file.Files;
import java.nio.file.Path;

/**
 * Bytes that are only appended to: in memory, or in a temporary file once they are {@link #LARGE}. The file has no name
 * as soon as it is open, so that it goes with the process.
 */
final class Spool extends OutputStream {

    /** So many bytes make a message large. */
    static final int LARGE = 4 << 20;

    private static final int BUFFER = 1 << 16;

    /** The bytes that the spool was made with; null: it was made empty. */
    private final byte[] initial;
    /** The bytes while they are few; null: they are in the file. */
    private ByteArrayOutputStream memory = new ByteArrayOutputStream(0);

    private RandomAccessFile file;
    /** The last bytes, which are not in the file yet. */
    private byte[] tail;

    private int tailLength;
    private long length;

    Spool() {
        initial = null;
    }

    /** Makes a spool of bytes that do not change; nothing is appended to it. */
    Spool(byte[] bytes) {
        initial = bytes;
        length = bytes.length;
    }

    long length() {
        return length;
    }

    boolean isLarge() {
        return file != null;
    }

    /** All bytes, of a spool that is not large; not to be changed. */
    byte[] toByteArray() {
        return initial != null ? initial : memory.toByteArray();
    }

    @Override
    public void write(int b) throws IOException {
        write(new byte[] {(byte) b}, 0, 1);
    }

    @Override
    public synchronized void write(byte[] bytes, int offset, int count) throws IOException {
        if (file == null && length + count >= LARGE) {
            file = create();
            file.write(memory.toByteArray());
            memory = null;
            tail = new byte[BUFFER];
        }
        if (file == null) {
            memory.write(bytes, offset, count);
        } else {
            append(bytes, offset, count);
        }
        length += count;
    }

    private void append(byte[] bytes, int offset, int count) throws IOException {
        if (tailLength + count > BUFFER) {
            writeTail();
        }
        if (count > BUFFER) {
            file.seek(length);
            file.write(bytes, offset, count);
        } else {
            System.arraycopy(bytes, offset, tail, tailLength, count);
            tailLength += count;
        }
    }

    private void writeTail() throws IOException {
        file.seek(length - tailLength);
        file.write(tail, 0, tailLength);
        tailLength = 0;
    }

    private static RandomAccessFile create() throws IOException {
        Path path = Files.createTempFile("pgaq-jms-", ".body");
        try {
            return new RandomAccessFile(path.toFile(), "rw");
        } finally {
            try {
                Files.delete(path);
            } catch (IOException stillOpen) {
                // systems that keep the name of an open file
                path.toFile().deleteOnExit();
            }
        }
    }

    /** Reads bytes of a large spool from a position; returns how many, or -1 at the end. */
    synchronized int read(long position, byte[] bytes, int offset, int count) throws IOException {
        if (position >= length) {
            return count == 0 ? 0 : -1;
        }
        writeTail();
        int most = (int) Math.min(count, length - position);
        file.seek(position);
        file.readFully(bytes, offset, most);
        return most;
    }

    /** Reads the bytes that are there now. */
    InputStream open() {
        return isLarge() ? new Reader(length) : new ByteArrayInputStream(toByteArray());
    }

    /** The bytes that are there now, as the content of a message to send. */
    Content content() {
        if (!isLarge()) {
            byte[] bytes = toByteArray();
            return () -> new ByteArrayInputStream(bytes);
        }
        long end = length;
        return () -> new Reader(end);
    }

    /** Reads the file up to an end. */
    private final class Reader extends InputStream {
        private final long end;
        private long position;

        Reader(long end) {
            this.end = end;
        }

        @Override
        public int read() throws IOException {
            byte[] one = new byte[1];
            return read(one, 0, 1) < 0 ? -1 : one[0] & 0xff;
        }

        @Override
        public int read(byte[] bytes, int offset, int count) throws IOException {
            if (position == end && count > 0) {
                return -1;
            }
            int read = Spool.this.read(position, bytes, offset, (int) Math.min(count, end - position));
            position += Math.max(read, 0);
            return read;
        }
    }
}
