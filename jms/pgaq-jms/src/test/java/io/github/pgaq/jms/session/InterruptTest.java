package io.github.pgaq.jms.session;

import static io.github.pgaq.jms.ServerTest.SAFETY_SECONDS;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.pgaq.jms.PgaqOption;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.Session;
import jakarta.jms.TextMessage;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Future;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.Test;

/** Interrupted threads: a wait of theirs ends, and nothing else does. */
class InterruptTest extends SessionFixture {
    /** Runs a call on another thread, and interrupts that as soon as the event has come; the result of the call. */
    private <T> Future<T> interrupted(Callable<T> call, Event event) throws Exception {
        CompletableFuture<Thread> thread = new CompletableFuture<>();
        Future<T> result = async(() -> {
            thread.complete(Thread.currentThread());
            return interrupted(call);
        });
        event.await();
        thread.get().interrupt();
        return result;
    }

    /** A call during which the thread is interrupted. */
    private static <T> T interrupted(Callable<T> call) throws Exception {
        try {
            return call.call();
        } finally {
            assertTrue(Thread.interrupted(), "the interrupt is kept for the caller");
        }
    }

    private interface Event {
        void await() throws Exception;
    }

    private interface Action {
        void run() throws JMSException;
    }

    /** Calls with the interrupt of the thread set; it is kept. */
    private static void withInterrupt(Action action) throws JMSException {
        Thread.currentThread().interrupt();
        try {
            action.run();
        } finally {
            assertTrue(Thread.interrupted(), "the interrupt is kept for the caller");
        }
    }

    private static JMSException failure(Future<?> call) throws Exception {
        Exception e = assertThrows(java.util.concurrent.ExecutionException.class, () -> get(call));
        return assertInstanceOf(JMSException.class, e.getCause());
    }

    /** The server refuses connections, and says when the first one is refused. */
    private CompletableFuture<Void> refuse() {
        CompletableFuture<Void> tried = new CompletableFuture<>();
        server.refused = () -> tried.complete(null);
        server.refusing = true;
        return tried;
    }

    private void reconnectSlowly() {
        options = options.with(PgaqOption.RECONNECT_ATTEMPTS, "-1").with(PgaqOption.RECONNECT_DELAY, "500");
    }

    @Test
    void anInterruptWhileAConnectionIsOpenedAgainEndsTheCallOnly() throws Exception {
        reconnectSlowly();
        ClientConnection connection = started();
        Session session = connection.createSession();
        CompletableFuture<Void> tried = refuse();
        server.kill(server.stores.get(0));
        assertThrows(JMSException.class, session::createTemporaryQueue);
        JMSException failure = failure(interrupted(session::createTemporaryQueue, tried::get));
        assertTrue(failure.getMessage().contains("interrupted"), failure.getMessage());
        server.refusing = false;
        session.createTemporaryQueue();
    }

    @Test
    void aSessionGoesOnAfterAnInterruptWhileItConnectsAgain() throws Exception {
        reconnectSlowly();
        MessageConsumer consumer = started().createSession().createConsumer(queue);
        CompletableFuture<Void> tried = refuse();
        server.kill(server.stores.get(1));
        assertThrows(JMSException.class, consumer::receive);
        failure(interrupted(consumer::receive, tried::get));
        server.refusing = false;
        server.text("q", "a");
        assertEquals("a", text(consumer.receive()));
    }

    @Test
    void aCallDoesNotWaitForAConnectionThatAnotherThreadOpensAgainIfItIsInterrupted() throws Exception {
        reconnectSlowly();
        ClientConnection connection = named();
        MessageConsumer consumer = connection.createSession().createDurableConsumer(topic, "d");
        CompletableFuture<Void> tried = refuse();
        server.kill(server.stores.get(0));
        Future<Object> reconnection = async(() -> {
            connection.control().ping();
            return null;
        });
        tried.get();
        // what its closing leaves is done when the connection is open again
        withInterrupt(consumer::close);
        server.refusing = false;
        get(reconnection);
        connection.createSession().createDurableConsumer(topic, "d");
    }

    @Test
    void callsThatDoNotWaitForMessagesAreNotInterrupted() throws Exception {
        ClientConnection connection = connect();
        withInterrupt(() -> connection.setClientID("c"));
        connection.start();
        Session session = connection.createSession();
        withInterrupt(() -> session.createConsumer(queue).close());
        withInterrupt(session::createTemporaryQueue);
        MessageConsumer durable = session.createDurableConsumer(topic, "d");
        withInterrupt(durable::close);
        session.createDurableConsumer(topic, "d");
        withInterrupt(session::close);
        connection.createSession().createDurableConsumer(topic, "d");
    }

    private ClientConnection named() throws JMSException {
        ClientConnection connection = connect();
        connection.setClientID("c");
        connection.start();
        return connection;
    }

    /** The caller interrupts it while the control connection is in use, so that it has to wait for that. */
    @Test
    void aCallThatWaitsForTheControlConnectionIsNotInterrupted() throws Exception {
        ClientConnection connection = started();
        Session session = connection.createSession();
        CompletableFuture<Void> done = new CompletableFuture<>();
        CompletableFuture<Void> entered = new CompletableFuture<>();
        Future<Object> user = async(() -> connection.control().exclusively(() -> {
            entered.complete(null);
            return done.join();
        }));
        entered.get();
        Future<Object> call = async(() -> {
            Thread.currentThread().interrupt();
            return session.createTemporaryQueue();
        });
        try {
            assertThrows(java.util.concurrent.TimeoutException.class, () -> call.get(50, TimeUnit.MILLISECONDS));
        } finally {
            done.complete(null);
        }
        get(user);
        get(call);
    }

    @Test
    void anInterruptEndsAWaitOfAStoppedConnection() throws Exception {
        MessageConsumer consumer = connect().createSession().createConsumer(queue);
        failure(interrupted(consumer::receive, () -> {}));
        failure(interrupted(() -> consumer.receive(60_000), () -> {}));
    }

    /** The interrupt is found when there is no wait to cancel yet, and then no longer looked for. */
    @Test
    void anInterruptJustBeforeTheWaitEndsTheCall() throws Exception {
        AtomicBoolean next = new AtomicBoolean();
        ClientConnection connection = started();
        Session session = connection.add(new ClientSession(connection, server::open, Session.AUTO_ACKNOWLEDGE, false) {
            @Override
            int mode() {
                if (next.getAndSet(false)) {
                    Thread.currentThread().interrupt();
                    Interrupts.end();
                }
                return super.mode();
            }
        });
        MessageConsumer consumer = session.createConsumer(queue);
        next.set(true);
        failure(async(() -> interrupted(consumer::receive)));
    }

    @Test
    void anInterruptedThreadReceivesWhatIsThere() throws Exception {
        server.text("q", "a", "b");
        MessageConsumer consumer = started().createSession().createConsumer(queue);
        withInterrupt(() -> assertEquals("a", text(consumer.receive())));
        withInterrupt(() -> assertEquals("b", text(consumer.receive(60_000))));
        withInterrupt(() -> assertEquals(null, consumer.receiveNoWait()));
        withInterrupt(() -> assertThrows(JMSException.class, consumer::receive));
    }

    @Test
    void acknowledgingWaitsForAnExtensionAlthoughTheThreadIsInterrupted() throws Exception {
        server.text("q", "a");
        ClientConnection connection = started();
        Session session = connection.createSession(Session.CLIENT_ACKNOWLEDGE);
        Message message = session.createConsumer(queue).receive();
        CompletableFuture<Void> begun = new CompletableFuture<>();
        CompletableFuture<Void> ends = new CompletableFuture<>();
        server.extending = () -> {
            begun.complete(null);
            ends.join();
        };
        Future<Object> extension = async(() -> {
            connection.keeper().extend();
            return null;
        });
        begun.get();
        Future<Object> acknowledgement = interrupted(
                () -> {
                    message.acknowledge();
                    return null;
                },
                () -> {});
        try {
            assertThrows(
                    java.util.concurrent.TimeoutException.class, () -> acknowledgement.get(50, TimeUnit.MILLISECONDS));
            assertEquals(0, server.count("acknowledge"));
        } finally {
            ends.complete(null);
        }
        get(extension);
        get(acknowledgement);
        assertEquals(1, server.count("acknowledge"));
    }

    @Test
    void anInterruptBetweenTwoMessagesDoesNotReachTheListener() throws Exception {
        CompletableFuture<Thread> thread = new CompletableFuture<>();
        BlockingQueue<Boolean> interrupted = new LinkedBlockingQueue<>();
        started().createSession().createConsumer(queue).setMessageListener(message -> {
            thread.complete(Thread.currentThread());
            interrupted.add(Thread.currentThread().isInterrupted());
        });
        server.text("q", "a");
        assertEquals(false, interrupted.poll(SAFETY_SECONDS, TimeUnit.SECONDS));
        // the wait for the next message has begun
        server.awaitCalls("receive", 2);
        server.awaitWaiting(1);
        thread.get().interrupt();
        server.text("q", "b");
        assertEquals(false, interrupted.poll(SAFETY_SECONDS, TimeUnit.SECONDS));
    }

    @Test
    void anInterruptThatAListenerLeavesIsForgotten() throws Exception {
        reconnectSlowly();
        BlockingQueue<String> received = new LinkedBlockingQueue<>();
        CompletableFuture<Boolean> tried = new CompletableFuture<>();
        server.refused = () -> tried.complete(Thread.currentThread().isInterrupted());
        server.text("q", "a");
        started().createSession().createConsumer(queue).setMessageListener(message -> {
            try {
                received.add(((TextMessage) message).getText());
                // its acknowledgement finds the connection lost
                server.refusing = true;
                server.kill(server.stores.get(1));
                Thread.currentThread().interrupt();
            } catch (JMSException e) {
                received.add(e.toString());
            }
        });
        assertEquals("a", received.poll(SAFETY_SECONDS, TimeUnit.SECONDS));
        assertFalse(tried.get(), "the interrupt is left to the attempt to connect");
        server.refusing = false;
        assertEquals("a", received.poll(SAFETY_SECONDS, TimeUnit.SECONDS));
    }
}
