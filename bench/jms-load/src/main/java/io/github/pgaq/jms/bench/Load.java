package io.github.pgaq.jms.bench;

import jakarta.jms.Connection;
import jakarta.jms.ConnectionFactory;
import jakarta.jms.Destination;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.Session;
import jakarta.jms.TextMessage;
import jakarta.jms.Topic;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.List;
import java.util.Random;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.atomic.LongAdder;

/**
 * Sends and receives for a while by one provider, and checks that each message arrives once.
 *
 * <p>It prints {@code begin} and {@code end} when the measured period begins and ends, and then a line of JSON.
 */
public final class Load {

    private static final int LENGTH = 512;
    private static final long PATIENCE_MS = 200;
    private static final long DRAIN_NS = 60_000_000_000L;

    /**
     * The options of a run.
     *
     * @param factory the class of the provider's connection factory, which has a constructor for the URL
     * @param batch messages for each commit on both sides; 0: AUTO_ACKNOWLEDGE
     * @param listener message listeners instead of receive()
     * @param subscribers durable subscribers of a topic; 0: a queue
     * @param sessions sessions that send, and, of a queue, sessions that receive
     * @param rate messages per second of all senders; 0: as many as possible
     */
    private record Shape(
            String factory,
            String url,
            String destination,
            int batch,
            boolean listener,
            int subscribers,
            int sessions,
            int rate,
            double warmUp,
            double seconds) {

        static Shape of(String[] a) {
            return new Shape(
                    a[0],
                    a[1],
                    a[2],
                    Integer.parseInt(a[3]),
                    a[4].equals("listener"),
                    Integer.parseInt(a[5]),
                    Integer.parseInt(a[6]),
                    Integer.parseInt(a[7]),
                    Double.parseDouble(a[8]),
                    Double.parseDouble(a[9]));
        }

        boolean transacted() {
            return batch > 0;
        }

        int receivers() {
            return subscribers > 0 ? subscribers : sessions;
        }

        /** How far the senders may be ahead of the average receiver. */
        long backlog() {
            return subscribers > 0 ? 4000 : 20_000;
        }
    }

    private final Shape shape;
    private final LongAdder sent = new LongAdder();
    private final LongAdder received = new LongAdder();
    private final LongAdder duplicates = new LongAdder();
    /** By subscriber and sender, the numbers that have arrived. */
    private final BitSet[][] arrived;

    private final long[] last;
    private final List<long[]> latencies = new ArrayList<>();
    private final AtomicReference<Exception> failure = new AtomicReference<>();
    private volatile boolean sending = true;
    private volatile boolean receiving = true;
    private volatile boolean measuring;

    private Load(Shape shape) {
        this.shape = shape;
        this.last = new long[shape.sessions()];
        this.arrived = new BitSet[Math.max(1, shape.subscribers())][shape.sessions()];
        for (BitSet[] row : arrived) {
            Arrays.setAll(row, i -> new BitSet());
        }
    }

    /** Arguments: the fields of Shape, in their order. */
    public static void main(String[] arguments) throws Exception {
        new Load(Shape.of(arguments)).run();
        System.exit(0);
    }

    private ConnectionFactory factory() throws ReflectiveOperationException {
        return (ConnectionFactory)
                Class.forName(shape.factory()).getConstructor(String.class).newInstance(shape.url());
    }

    private void run() throws Exception {
        try (Connection out = factory().createConnection();
                Connection in = factory().createConnection()) {
            if (shape.subscribers() > 0) {
                in.setClientID("bench");
            }
            List<Thread> receivers = receivers(in);
            in.start();
            out.start();
            List<Thread> senders = senders(out);
            senders.forEach(Thread::start);
            receivers.forEach(Thread::start);
            measure(senders);
            drain();
            receiving = false;
            for (Thread receiver : receivers) {
                receiver.join();
            }
        }
        report();
    }

    private double elapsed;
    private long sentThen;
    private long receivedThen;

    private void measure(List<Thread> senders) throws Exception {
        Thread.sleep((long) (shape.warmUp() * 1000));
        System.out.println("begin");
        long began = System.nanoTime();
        sentThen = sent.sum();
        receivedThen = received.sum();
        measuring = true;
        Thread.sleep((long) (shape.seconds() * 1000));
        measuring = false;
        sentThen = sent.sum() - sentThen;
        receivedThen = received.sum() - receivedThen;
        elapsed = (System.nanoTime() - began) / 1e9;
        System.out.println("end");
        sending = false;
        for (Thread sender : senders) {
            sender.join();
        }
    }

    private void drain() throws InterruptedException {
        long deadline = System.nanoTime() + DRAIN_NS;
        while (received.sum() < expected() && System.nanoTime() < deadline && failure.get() == null) {
            Thread.sleep(10);
        }
    }

    private long expected() {
        return Arrays.stream(last).sum() * Math.max(1, shape.subscribers());
    }

    private Destination destination(Session session) throws JMSException {
        return shape.subscribers() > 0
                ? session.createTopic(shape.destination())
                : session.createQueue(shape.destination());
    }

    private Session session(Connection connection) throws JMSException {
        return shape.transacted()
                ? connection.createSession(true, Session.SESSION_TRANSACTED)
                : connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
    }

    private List<Thread> senders(Connection connection) throws JMSException {
        List<Thread> threads = new ArrayList<>();
        for (int i = 0; i < shape.sessions(); i++) {
            int number = i;
            Session session = session(connection);
            MessageProducer producer = session.createProducer(destination(session));
            threads.add(thread("sender " + i, () -> send(number, session, producer)));
        }
        return threads;
    }

    private void send(int number, Session session, MessageProducer producer) throws Exception {
        String filling = filling(number);
        long began = System.nanoTime();
        long pause = shape.rate() == 0 ? 0 : 1_000_000_000L * shape.sessions() / shape.rate();
        long n = 0;
        while (sending) {
            if (sent.sum() * Math.max(1, shape.subscribers()) - received.sum()
                    > shape.backlog() * Math.max(1, shape.subscribers())) {
                Thread.sleep(1);
                continue;
            }
            long due = System.nanoTime();
            if (pause > 0) {
                due = began + n * pause;
                long left = due - System.nanoTime();
                if (left > 0) {
                    Thread.sleep(left / 1_000_000, (int) (left % 1_000_000));
                }
            }
            int batch = Math.max(1, shape.batch());
            for (int i = 0; i < batch; i++) {
                String head = number + ":" + n++ + ":" + due + ":";
                producer.send(session.createTextMessage(head + filling.substring(head.length())));
            }
            if (shape.transacted()) {
                session.commit();
            }
            sent.add(batch);
            last[number] = n;
        }
    }

    private static String filling(int seed) {
        Random random = new Random(seed);
        StringBuilder text = new StringBuilder(LENGTH);
        while (text.length() < LENGTH) {
            text.append((char) ('0' + random.nextInt(75)));
        }
        return text.toString();
    }

    private List<Thread> receivers(Connection connection) throws JMSException {
        List<Thread> threads = new ArrayList<>();
        for (int i = 0; i < shape.receivers(); i++) {
            int subscriber = shape.subscribers() > 0 ? i : 0;
            Session session = session(connection);
            MessageConsumer consumer = shape.subscribers() > 0
                    ? session.createDurableSubscriber((Topic) destination(session), "s" + i)
                    : session.createConsumer(destination(session));
            Book book = new Book(subscriber);
            if (shape.listener()) {
                consumer.setMessageListener(message -> {
                    try {
                        book.enter(message);
                    } catch (JMSException e) {
                        failure.compareAndSet(null, e);
                    }
                });
            } else {
                threads.add(thread("receiver " + i, () -> receive(session, consumer, book)));
            }
        }
        return threads;
    }

    private void receive(Session session, MessageConsumer consumer, Book book) throws Exception {
        int open = 0;
        while (receiving) {
            Message message = consumer.receive(PATIENCE_MS);
            if (message != null) {
                book.enter(message);
                open++;
            }
            if (shape.transacted() && (open >= shape.batch() || message == null && open > 0)) {
                session.commit();
                open = 0;
            }
        }
        if (shape.transacted()) {
            session.commit();
        }
    }

    /** A session that receives messages. */
    private final class Book {
        private final BitSet[] mine;
        private long[] latency = new long[1024];
        private int count;

        Book(int subscriber) {
            mine = arrived[subscriber];
            synchronized (latencies) {
                latencies.add(new long[0]);
            }
            number = latencies.size() - 1;
        }

        private final int number;

        void enter(Message message) throws JMSException {
            long now = System.nanoTime();
            String text = ((TextMessage) message).getText();
            int first = text.indexOf(':');
            int second = text.indexOf(':', first + 1);
            int third = text.indexOf(':', second + 1);
            BitSet set = mine[Integer.parseInt(text.substring(0, first))];
            int n = Integer.parseInt(text.substring(first + 1, second));
            synchronized (set) {
                if (set.get(n)) {
                    duplicates.increment();
                    return;
                }
                set.set(n);
            }
            if (text.length() != LENGTH) {
                throw new IllegalStateException("a message of " + text.length() + " characters");
            }
            if (measuring) {
                if (count == latency.length) {
                    latency = Arrays.copyOf(latency, 2 * count);
                }
                latency[count++] = now - Long.parseLong(text.substring(second + 1, third));
                latencies.set(number, latency);
            }
            received.increment();
        }
    }

    private interface Work {
        void run() throws Exception;
    }

    private Thread thread(String name, Work work) {
        return new Thread(
                () -> {
                    try {
                        work.run();
                    } catch (Exception e) {
                        e.printStackTrace();
                        failure.compareAndSet(null, e);
                        sending = false;
                    }
                },
                name);
    }

    private void report() {
        long[] all = latencies.stream()
                .flatMapToLong(Arrays::stream)
                .filter(l -> l != 0)
                .sorted()
                .toArray();
        long missing = expected() - received.sum();
        System.out.printf(
                "{\"sent\": %d, \"delivered\": %d, \"seconds\": %.3f, \"missing\": %d, \"duplicates\": %d, "
                        + "\"p50_us\": %d, \"p99_us\": %d, \"max_us\": %d, \"failure\": %s}%n",
                sentThen,
                receivedThen,
                elapsed,
                missing,
                duplicates.sum(),
                at(all, 0.5),
                at(all, 0.99),
                at(all, 1),
                failure.get() == null ? "null" : '"' + failure.get().toString().replaceAll("[\"\\\\\\s]+", " ") + '"');
    }

    private static long at(long[] sorted, double part) {
        return sorted.length == 0 ? 0 : sorted[(int) Math.min(sorted.length - 1, part * sorted.length)] / 1000;
    }
}
