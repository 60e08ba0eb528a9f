package io.github.pgaq.jms.session;

import static io.github.pgaq.jms.ServerTest.SAFETY_SECONDS;
import static org.junit.jupiter.api.Assertions.assertEquals;

import io.github.pgaq.jms.PgaqOption;
import io.github.pgaq.jms.PgaqOptions;
import io.github.pgaq.jms.PgaqQueue;
import io.github.pgaq.jms.PgaqTopic;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.Queue;
import jakarta.jms.TextMessage;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;

/** A connection to a {@link FakeServer} with the queue {@code q} and the topic {@code t}. */
abstract class SessionFixture {
    final FakeServer server = new FakeServer().queue("q").queue("r").topic("t");
    final Queue queue = new PgaqQueue("q");
    final PgaqTopic topic = new PgaqTopic("t");
    private final List<ClientConnection> connections = new ArrayList<>();
    private final ExecutorService threads = Executors.newCachedThreadPool();
    PgaqOptions options =
            PgaqOptions.DEFAULTS.with(PgaqOption.RECONNECT_DELAY, "0").with(PgaqOption.PREFETCH_IDLE, "60000");

    ClientConnection connect() throws JMSException {
        ClientConnection connection = new ClientConnection(server::open, options, false, null);
        connections.add(connection);
        return connection;
    }

    ClientConnection started() throws JMSException {
        ClientConnection connection = connect();
        connection.start();
        return connection;
    }

    /** Runs something on another thread. */
    <T> Future<T> async(Callable<T> action) {
        return threads.submit(action);
    }

    static <T> T get(Future<T> future) throws Exception {
        return future.get(SAFETY_SECONDS, TimeUnit.SECONDS);
    }

    static String text(Message message) throws JMSException {
        return message == null ? null : ((TextMessage) message).getText();
    }

    /** A consumer that has received "a", the first of three messages, and has leased the others ahead. */
    Consumer withTwoLeasedAhead(ClientSession session) throws JMSException {
        Consumer consumer = (Consumer) session.createConsumer(queue);
        assertEquals("a", text(session.intake().receive(consumer, Deadline.NEVER, 3, message -> message)));
        return consumer;
    }

    /** Receives what is there, without waiting. */
    static List<String> all(MessageConsumer consumer) throws JMSException {
        List<String> texts = new ArrayList<>();
        for (String text = text(consumer.receiveNoWait()); text != null; text = text(consumer.receiveNoWait())) {
            texts.add(text);
        }
        return texts;
    }

    @AfterEach
    void closeAll() {
        for (ClientConnection connection : connections) {
            try {
                connection.close();
            } catch (JMSException e) {
                // the test has broken it
            }
        }
        threads.shutdownNow();
        assertEquals(Set.of(), server.monitors, "a monitor was held while the server was called");
    }
}
