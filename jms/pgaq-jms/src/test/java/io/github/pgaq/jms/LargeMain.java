package io.github.pgaq.jms;

import io.github.pgaq.jms.message.PgaqBytesMessage;
import jakarta.jms.BytesMessage;
import jakarta.jms.JMSConsumer;
import jakarta.jms.JMSContext;
import java.io.IOException;
import java.io.InputStream;
import java.util.zip.CRC32;

/** Sends and receives messages of many megabytes; {@link LargeMessageTest} runs it with a small heap. */
final class LargeMain {

    private LargeMain() {}

    /** Bytes that do not repeat soon. */
    private static final class Numbers extends InputStream {
        private final CRC32 sum = new CRC32();
        private long left;
        private long state = 1;

        Numbers(long length) {
            left = length;
        }

        @Override
        public int read() {
            byte[] one = new byte[1];
            return read(one, 0, 1) < 0 ? -1 : one[0] & 0xff;
        }

        @Override
        public int read(byte[] bytes, int offset, int length) {
            int count = (int) Math.min(length, left);
            for (int i = 0; i < count; i++) {
                state = state * 6364136223846793005L + 1442695040888963407L;
                bytes[offset + i] = (byte) (state >>> 56);
            }
            sum.update(bytes, offset, count);
            left -= count;
            return count == 0 && length > 0 ? -1 : count;
        }
    }

    /** Arguments: URL, queue, megabytes, and, if they are messages of 3 MB, anything else. */
    public static void main(String[] arguments) throws Exception {
        if (arguments.length > 3) {
            passMany(arguments[0], arguments[1], Integer.parseInt(arguments[2]) / 3);
        } else {
            passOne(arguments);
        }
    }

    private static void passMany(String url, String queue, int count) throws Exception {
        try (JMSContext context = new PgaqConnectionFactory(url).createContext();
                JMSConsumer consumer = context.createConsumer(context.createQueue(queue))) {
            byte[] body = new byte[3 << 20];
            for (int i = 0; i < count; i++) {
                context.createProducer().send(context.createQueue(queue), body);
            }
            for (int i = 0; i < count; i++) {
                if (((BytesMessage) consumer.receive(600_000)).getBodyLength() != body.length) {
                    throw new IOException("message " + i);
                }
            }
        }
    }

    private static void passOne(String[] arguments) throws Exception {
        long length = Long.parseLong(arguments[2]) << 20;
        try (JMSContext context = new PgaqConnectionFactory(arguments[0]).createContext();
                JMSConsumer consumer = context.createConsumer(context.createQueue(arguments[1]))) {
            Numbers numbers = new Numbers(length);
            BytesMessage message = context.createBytesMessage();
            message.setObjectProperty(PgaqBytesMessage.INPUT_STREAM, numbers);
            context.createProducer().send(context.createQueue(arguments[1]), message);
            BytesMessage received = (BytesMessage) consumer.receive(600_000);
            if (received.getBodyLength() != length) {
                throw new IOException("length " + received.getBodyLength());
            }
            CRC32 sum = new CRC32();
            byte[] buffer = new byte[100_000];
            for (int count = received.readBytes(buffer); count > 0; count = received.readBytes(buffer)) {
                sum.update(buffer, 0, count);
            }
            if (sum.getValue() != numbers.sum.getValue()) {
                throw new IOException("the bytes are not those that were sent");
            }
        }
    }
}
