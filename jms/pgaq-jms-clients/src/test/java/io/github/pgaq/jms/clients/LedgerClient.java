package io.github.pgaq.jms.clients;

import io.github.pgaq.jms.PgaqConnectionFactory;
import jakarta.jms.Connection;
import jakarta.jms.Destination;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.Session;
import jakarta.jms.TextMessage;
import jakarta.jms.Topic;
import jakarta.jms.TransactionRolledBackException;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;

/**
 * A program that sends or receives until its standard input ends, and records what it knows, line by line, in a
 * ledger: it is meant to be killed. tests/clients/test_jms_faults.py starts it and reads the ledgers.
 *
 * <p>Arguments: {@code send|receive transacted|auto|client|dups queue|topic DESTINATION NAME LEDGER SEED SESSIONS}: the
 * connection has that number of sessions, each with a thread. The URL is in the environment, as PGAQ_URL. A ledger's
 * line is a time that all processes share, an event, the message's id and other data. Events: begin, sent, undone;
 * got, committing, committed, undone; acknowledging, acknowledged; ready.
 */
public final class LedgerClient {
    private static final String SUBSCRIPTION = "ledger";

    private final String mode;
    private final boolean topic;
    private final String destination;
    private final String name;
    private final OutputStream ledger;
    private final long seed;
    /** How many messages each session has sent. */
    private final int[] sent;

    private volatile boolean ending;

    private LedgerClient(String[] args) throws IOException {
        mode = args[1];
        topic = args[2].equals("topic");
        destination = args[3];
        name = args[4];
        ledger = new FileOutputStream(args[5], true);
        seed = Long.parseLong(args[6]);
        sent = new int[Integer.parseInt(args[7])];
    }

    /** Runs one client; the class describes the arguments. */
    public static void main(String[] args) throws Exception {
        LedgerClient client = new LedgerClient(args);
        Thread watch = new Thread(client::awaitEnd, "awaits the end");
        watch.setDaemon(true);
        watch.start();
        while (!client.ending) {
            try (Connection connection = client.connect()) {
                client.run(connection, args[0].equals("send"));
            } catch (JMSException e) {
                // a fault has hit the first steps: the provider connects again what was connected before
                e.printStackTrace();
                Thread.sleep(100);
            }
        }
    }

    /** Work that one session does until the end. */
    private interface Work {
        void run() throws Exception;
    }

    private void run(Connection connection, boolean sends) throws Exception {
        List<Work> works = new ArrayList<>();
        for (int i = 0; i < sent.length; i++) {
            works.add(work(connection, i, sends));
        }
        connection.start();
        note("ready", name);
        List<Thread> threads = works.stream().map(LedgerClient::thread).toList();
        threads.forEach(Thread::start);
        for (Thread thread : threads) {
            thread.join();
        }
    }

    private static Thread thread(Work work) {
        return new Thread(() -> {
            try {
                work.run();
            } catch (Exception e) {
                e.printStackTrace();
                Runtime.getRuntime().halt(3);
            }
        });
    }

    private Work work(Connection connection, int number, boolean sends) throws JMSException {
        Session session = connection.createSession(sessionMode());
        Random random = new Random(seed + number);
        Destination to = topic ? session.createTopic(destination) : session.createQueue(destination);
        if (sends) {
            MessageProducer producer = session.createProducer(to);
            return () -> send(session, producer, number, random);
        }
        MessageConsumer consumer =
                topic ? session.createSharedDurableConsumer((Topic) to, SUBSCRIPTION) : session.createConsumer(to);
        if (session.getAcknowledgeMode() == Session.AUTO_ACKNOWLEDGE
                || session.getAcknowledgeMode() == Session.DUPS_OK_ACKNOWLEDGE) {
            // receive() acknowledges before the client can write anything down
            consumer.setMessageListener(this::got);
            return this::awaitListener;
        }
        return () -> {
            while (!ending) {
                receiveSome(session, consumer, random);
            }
        };
    }

    private void awaitListener() throws InterruptedException {
        while (!ending) {
            Thread.sleep(50);
        }
    }

    /** The first connection may be wanted while there is no server. */
    private Connection connect() throws Exception {
        PgaqConnectionFactory factory = new PgaqConnectionFactory(System.getenv("PGAQ_URL"));
        while (true) {
            try {
                return factory.createConnection();
            } catch (JMSException e) {
                e.printStackTrace();
                Thread.sleep(100);
            }
        }
    }

    private int sessionMode() {
        return switch (mode) {
            case "transacted" -> Session.SESSION_TRANSACTED;
            case "client" -> Session.CLIENT_ACKNOWLEDGE;
            case "dups" -> Session.DUPS_OK_ACKNOWLEDGE;
            case "auto" -> Session.AUTO_ACKNOWLEDGE;
            default -> throw new IllegalArgumentException(mode);
        };
    }

    private void awaitEnd() {
        try {
            while (System.in.read() >= 0) {
                continue;
            }
        } catch (IOException e) {
            e.printStackTrace();
        }
        ending = true;
    }

    /** One write for each line: what is written is not lost with the process. */
    private synchronized void note(String event, String what) {
        try {
            ledger.write((System.nanoTime() + " " + event + " " + what + "\n").getBytes(StandardCharsets.UTF_8));
        } catch (IOException e) {
            e.printStackTrace();
            Runtime.getRuntime().halt(2);
        }
    }

    private void note(String event, List<String> ids) {
        ids.forEach(id -> note(event, id));
    }

    private void send(Session session, MessageProducer producer, int number, Random random) throws Exception {
        while (!ending) {
            List<String> ids = new ArrayList<>();
            int size = session.getTransacted() ? 1 + random.nextInt(4) : 1;
            try {
                for (int i = 0; i < size; i++) {
                    ids.add(name + "." + number + ":" + sent[number]++);
                    note("begin", ids.get(i));
                    producer.send(session.createTextMessage(ids.get(i)));
                }
                if (session.getTransacted()) {
                    session.commit();
                }
                note("sent", ids);
            } catch (TransactionRolledBackException e) {
                note("undone", ids);
            } catch (JMSException e) {
                e.printStackTrace();
                undo(session);
            }
            Thread.sleep(random.nextInt(12)); // the rate
        }
    }

    private void receiveSome(Session session, MessageConsumer consumer, Random random) {
        List<String> ids = new ArrayList<>();
        try {
            Message last = null;
            for (int size = 1 + random.nextInt(5); ids.size() < size; ) {
                Message message = consumer.receive(200);
                if (message == null) {
                    break;
                }
                last = message;
                ids.add(got(message));
            }
            if (session.getTransacted()) {
                note("committing", ids);
                session.commit();
                note("committed", ids);
            } else if (last != null) {
                note("acknowledging", ids);
                last.acknowledge();
                note("acknowledged", ids);
            }
        } catch (TransactionRolledBackException e) {
            note("undone", ids);
        } catch (JMSException e) {
            e.printStackTrace();
            undo(session);
        }
    }

    private String got(Message message) {
        try {
            String id = ((TextMessage) message).getText();
            note("got", id + " " + message.getJMSRedelivered() + " " + message.getIntProperty("JMSXDeliveryCount"));
            return id;
        } catch (JMSException e) {
            throw new IllegalStateException(e);
        }
    }

    private void undo(Session session) {
        try {
            if (session.getTransacted()) {
                session.rollback();
            } else {
                session.recover();
            }
        } catch (JMSException e) {
            e.printStackTrace();
        }
    }
}
