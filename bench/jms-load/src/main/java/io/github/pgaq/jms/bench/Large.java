package io.github.pgaq.jms.bench;

import io.github.pgaq.jms.PgaqConnectionFactory;
import jakarta.jms.BytesMessage;
import jakarta.jms.Connection;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.Queue;
import jakarta.jms.Session;
import jakarta.jms.TextMessage;
import java.io.InputStream;
import java.io.OutputStream;
import java.lang.management.ManagementFactory;
import java.lang.management.MemoryPoolMXBean;
import java.lang.management.MemoryType;
import java.util.Random;
import java.util.zip.CRC32;

/**
 * Sends one large message and receives it, as a stream or as a whole, and checks its body.
 *
 * <p>It prints {@code begin} when it is connected, and then a line of JSON: the bytes that arrived, whether they are
 * those that were sent, and the most memory that the client has used.
 */
public final class Large {

    private static final long PATIENCE_MS = 60_000;

    private Large() {}

    /** Arguments: URL, queue, megabytes, "stream" or "whole". */
    public static void main(String[] arguments) throws Exception {
        long bytes = Long.parseLong(arguments[2]) << 20;
        boolean stream = arguments[3].equals("stream");
        try (Connection connection = new PgaqConnectionFactory(arguments[0]).createConnection()) {
            Session session = connection.createSession(true, Session.SESSION_TRANSACTED);
            Queue queue = session.createQueue(arguments[1]);
            connection.start();
            System.out.println("begin");
            Body sent = new Body(bytes);
            Sink received = new Sink();
            if (stream) {
                BytesMessage message = session.createBytesMessage();
                message.setObjectProperty("JMS_PGAQ_InputStream", sent);
                session.createProducer(queue).send(message);
            } else {
                session.createProducer(queue)
                        .send(session.createTextMessage(new String(sent.readAllBytes(), "US-ASCII")));
            }
            session.commit();
            Message message = session.createConsumer(queue).receive(PATIENCE_MS);
            read(message, received);
            session.commit();
            System.out.printf(
                    "{\"bytes\": %d, \"intact\": %d, \"client\": %d}%n",
                    received.bytes,
                    received.bytes == bytes && received.sum.getValue() == sent.sum.getValue() ? 1 : 0,
                    peak());
        }
        System.exit(0);
    }

    private static void read(Message message, Sink sink) throws JMSException {
        if (message instanceof BytesMessage body) {
            body.setObjectProperty("JMS_PGAQ_OutputStream", sink);
        } else if (message instanceof TextMessage body) {
            sink.write(body.getText());
        }
    }

    /** The most bytes of the heap, by the pools of the collector. */
    private static long peak() {
        return ManagementFactory.getMemoryPoolMXBeans().stream()
                .filter(pool -> pool.getType() == MemoryType.HEAP)
                .map(MemoryPoolMXBean::getPeakUsage)
                .mapToLong(usage -> usage.getUsed())
                .sum();
    }

    /** Letters and digits in an order of their own, made while they are read. */
    private static final class Body extends InputStream {
        private final Random random = new Random(1);
        private final CRC32 sum = new CRC32();
        private long left;

        Body(long bytes) {
            left = bytes;
        }

        @Override
        public int read() {
            byte[] one = new byte[1];
            return read(one, 0, 1) < 0 ? -1 : one[0];
        }

        @Override
        public int read(byte[] into, int offset, int length) {
            if (left == 0) {
                return -1;
            }
            int count = (int) Math.min(left, length);
            for (int i = 0; i < count; i++) {
                into[offset + i] = (byte) ('0' + random.nextInt(75));
            }
            sum.update(into, offset, count);
            left -= count;
            return count;
        }
    }

    /** Counts what arrives. */
    private static final class Sink extends OutputStream {
        private final CRC32 sum = new CRC32();
        private long bytes;

        @Override
        public void write(int b) {
            write(new byte[] {(byte) b}, 0, 1);
        }

        @Override
        public void write(byte[] from, int offset, int length) {
            sum.update(from, offset, length);
            bytes += length;
        }

        void write(String text) {
            for (int i = 0; i < text.length(); i++) {
                sum.update(text.charAt(i));
            }
            bytes += text.length();
        }
    }
}
