package io.github.pgaq.jms.session;

import static io.github.pgaq.jms.ServerTest.SAFETY_SECONDS;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.pgaq.jms.PgaqOption;
import jakarta.jms.BytesMessage;
import jakarta.jms.CompletionListener;
import jakarta.jms.IllegalStateException;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageListener;
import jakarta.jms.MessageProducer;
import jakarta.jms.Session;
import jakarta.jms.TransactionRolledBackException;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Future;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Delivery to listeners. */
class ListenerTest extends SessionFixture {
    private final BlockingQueue<Object> results = new LinkedBlockingQueue<>();
    private final CountDownLatch running = new CountDownLatch(1);
    private final CountDownLatch proceed = new CountDownLatch(1);

    private Object next() throws InterruptedException {
        Object result = results.poll(SAFETY_SECONDS, TimeUnit.SECONDS);
        assertTrue(result != null, "nothing was delivered");
        return result;
    }

    private MessageListener collector() {
        return message -> attempt(() -> results.add(text(message)));
    }

    private interface Action {
        void run() throws Exception;
    }

    private void attempt(Action action) {
        try {
            action.run();
        } catch (Exception e) {
            results.add(e);
        }
    }

    /** A listener that waits until the test lets it proceed. */
    private void block(Message message) {
        attempt(() -> {
            running.countDown();
            proceed.await();
            results.add(text(message));
        });
    }

    /** Pools do it before they keep a session for its next user. */
    @Test
    void aSessionWithoutAListenerOfItsOwnHasNothingToAcknowledge() throws Exception {
        server.text("q", "a");
        Session session = started().createSession(Session.CLIENT_ACKNOWLEDGE);
        MessageConsumer consumer = session.createConsumer(queue);
        Message first = consumer.receive();
        session.setMessageListener(null);
        first.acknowledge();
        assertEquals("a", text(consumer.receive()));
        assertThrows(JMSException.class, () -> session.setMessageListener(message -> {}));
    }

    @Test
    void aSessionWithListenersOfConsumersNeedsNoneOfItsOwn() throws Exception {
        Session session = started().createSession(Session.CLIENT_ACKNOWLEDGE);
        session.createConsumer(queue).setMessageListener(collector());
        session.setMessageListener(null);
    }

    @Test
    void deliversInOrderAndAcknowledgesAfterwards() throws Exception {
        server.text("q", "a", "b", "c");
        started().createSession().createConsumer(queue).setMessageListener(collector());
        assertEquals(List.of("a", "b", "c"), List.of(next(), next(), next()));
        server.awaitWaiting(1);
        assertEquals(List.of(), server.texts("q"));
    }

    @Test
    void doesNotAcknowledgeBeforeTheListenerReturns() throws Exception {
        server.text("q", "a");
        started().createSession().createConsumer(queue).setMessageListener(this::block);
        running.await();
        assertEquals(List.of("a"), server.texts("q"));
        proceed.countDown();
        next();
        server.awaitWaiting(1);
        assertEquals(List.of(), server.texts("q"));
    }

    @Test
    void redeliversInOrderWhenTheListenerThrows() throws Exception {
        server.text("q", "a", "b", "c", "d");
        started().createSession().createConsumer(queue).setMessageListener(message -> {
            String seen;
            try {
                seen = text(message) + message.getIntProperty("JMSXDeliveryCount");
            } catch (JMSException e) {
                seen = e.toString();
            }
            results.add(seen);
            if (seen.equals("b1")) {
                throw new IllegalArgumentException("made to fail");
            }
        });
        assertEquals(List.of("a1", "b1", "b2", "c1", "d1"), List.of(next(), next(), next(), next(), next()));
    }

    @Test
    void aListenerAddedToAWaitingSessionGetsMessages() throws Exception {
        Session session = started().createSession();
        session.createConsumer(queue).setMessageListener(collector());
        server.awaitWaiting(1);
        MessageConsumer second = session.createConsumer(session.createQueue("r"));
        second.setMessageListener(collector());
        server.text("r", "b");
        assertEquals("b", next());
        server.text("q", "a");
        assertEquals("a", next());
    }

    @Test
    void stopReturnsWhenNoListenerRuns() throws Exception {
        server.text("q", "a", "b");
        ClientConnection connection = started();
        connection.createSession().createConsumer(queue).setMessageListener(this::block);
        running.await();
        Future<Boolean> stopped = async(() -> {
            connection.stop();
            return results.isEmpty();
        });
        while (stopping(connection)) {
            Thread.onSpinWait();
        }
        assertFalse(stopped.isDone());
        proceed.countDown();
        assertFalse(get(stopped), "stop() returned before the listener");
        assertEquals("a", next());
        assertEquals(0, results.size());
        connection.start();
        assertEquals("b", next());
    }

    private static boolean stopping(ClientConnection connection) {
        return connection.sessions().stream().anyMatch(session -> session.gate().isStarted());
    }

    @Test
    void closeReturnsWhenNoListenerRuns() throws Exception {
        server.text("q", "a", "b");
        ClientConnection connection = started();
        Session session = connection.createSession();
        session.createConsumer(queue).setMessageListener(this::block);
        running.await();
        Future<Boolean> closed = async(() -> {
            session.close();
            return results.isEmpty();
        });
        while (connection.sessions().stream().anyMatch(each -> !each.gate().isClosed())) {
            Thread.onSpinWait();
        }
        assertFalse(closed.isDone());
        proceed.countDown();
        assertFalse(get(closed));
        assertEquals(List.of("b"), server.texts("q"), "a was acknowledged");
        assertEquals(List.of(0), server.attempts("q"), "b was not seen");
    }

    @Test
    void aListenerMayCloseItsConsumerOnly() throws Exception {
        server.text("q", "a");
        ClientConnection connection = started();
        Session session = connection.createSession();
        MessageConsumer consumer = session.createConsumer(queue);
        consumer.setMessageListener(message -> {
            for (Action action : List.<Action>of(session::close, connection::close, connection::stop)) {
                attempt(action);
            }
            attempt(consumer::close);
            results.add("end");
        });
        for (int i = 0; i < 3; i++) {
            assertInstanceOf(IllegalStateException.class, next());
        }
        assertEquals("end", next());
        session.close();
        assertEquals(List.of(), server.texts("q"));
    }

    @Test
    void theSessionBelongsToItsListener() throws Exception {
        ClientConnection connection = started();
        Session session = connection.createSession(Session.SESSION_TRANSACTED);
        session.createConsumer(queue).setMessageListener(collector());
        MessageConsumer other = session.createConsumer(session.createQueue("r"));
        assertThrows(IllegalStateException.class, other::receiveNoWait);
        assertThrows(IllegalStateException.class, session::commit);
        assertThrows(IllegalStateException.class, session::rollback);
        connection.stop();
        session.commit();
    }

    @Test
    void theListenerCommits() throws Exception {
        server.text("q", "a", "b");
        Session session = started().createSession(Session.SESSION_TRANSACTED);
        session.createConsumer(queue)
                .setMessageListener(message -> attempt(() -> {
                    boolean again = message.getJMSRedelivered();
                    if (text(message).equals("a") && !again) {
                        session.rollback();
                    } else {
                        session.commit();
                    }
                    results.add(text(message) + again);
                }));
        assertEquals(List.of("afalse", "atrue", "bfalse"), List.of(next(), next(), next()));
    }

    @Test
    void recoverInAListenerRedelivers() throws Exception {
        server.text("q", "a", "b");
        Session session = started().createSession();
        session.createConsumer(queue)
                .setMessageListener(message -> attempt(() -> {
                    results.add(text(message) + message.getJMSRedelivered());
                    if (!message.getJMSRedelivered() && text(message).equals("a")) {
                        session.recover();
                    }
                }));
        assertEquals(List.of("afalse", "atrue", "bfalse"), List.of(next(), next(), next()));
    }

    @Test
    void groupsAcknowledgeWithTheNextTake() throws Exception {
        options = options.with(PgaqOption.ACK_MODE, "group").with(PgaqOption.ACK_INTERVAL, "60000");
        // taken as 1, 2, 4, 8, 16
        String[] texts = IntStream.range(0, 31).mapToObj(Integer::toString).toArray(String[]::new);
        server.text("q", texts);
        started().createSession().createConsumer(queue).setMessageListener(collector());
        for (String text : texts) {
            assertEquals(text, next());
        }
        server.awaitWaiting(1);
        assertEquals(List.of(), server.texts("q"));
        assertTrue(server.count("acknowledge") <= server.count("receive"));
    }

    @Test
    void tenFailuresWithAheadTakenMessagesCountNothingUnseen() throws Exception {
        String[] texts = new String[100];
        java.util.Arrays.setAll(texts, i -> "m" + i);
        server.text("q", texts);
        Session session = started().createSession(Session.SESSION_TRANSACTED);
        MessageConsumer consumer = session.createConsumer(queue);
        for (int i = 0; i < 10; i++) {
            for (int j = 0; j < 5; j++) {
                assertEquals("m" + j, text(consumer.receive()));
            }
            session.rollback();
        }
        assertEquals(10, server.attempts("q").get(4));
        assertEquals(
                95, server.attempts("q").stream().filter(count -> count == 0).count());
    }

    @Test
    void removingTheListenerLetsReceiveWork() throws Exception {
        Session session = started().createSession();
        MessageConsumer consumer = session.createConsumer(queue);
        consumer.setMessageListener(collector());
        server.awaitWaiting(1);
        consumer.setMessageListener(null);
        assertNull(consumer.receiveNoWait());
        server.text("q", "a");
        assertEquals("a", text(consumer.receive()));
        assertEquals(0, results.size());
    }

    @Test
    void aListenerFinishesItsWorkWhileTheConnectionCloses() throws Exception {
        server.text("q", "a");
        ClientConnection connection = started();
        Session session = connection.createSession();
        MessageProducer producer = session.createProducer(session.createQueue("r"));
        session.createConsumer(queue).setMessageListener(message -> {
            block(message);
            attempt(() -> producer.send(session.createTextMessage("answer")));
        });
        running.await();
        Future<?> closed = async(() -> {
            connection.close();
            return null;
        });
        while (connection.sessions().stream().anyMatch(each -> !each.gate().isClosed())) {
            Thread.onSpinWait();
        }
        proceed.countDown();
        get(closed);
        assertEquals(List.of("answer"), server.texts("r"));
    }

    @ParameterizedTest
    @ValueSource(ints = {Session.AUTO_ACKNOWLEDGE, Session.CLIENT_ACKNOWLEDGE, Session.SESSION_TRANSACTED})
    void aMessageWhoseBodyCannotBeReadComesAgain(int mode) throws Exception {
        server.large("q");
        server.text("q", "b");
        server.fail("readContent", "53100");
        Session session = started().createSession(mode);
        session.createConsumer(queue)
                .setMessageListener(message -> attempt(() -> {
                    results.add(
                            message instanceof BytesMessage
                                    ? "large" + message.getIntProperty("JMSXDeliveryCount")
                                    : "b");
                    if (mode == Session.CLIENT_ACKNOWLEDGE) {
                        message.acknowledge();
                    } else if (mode == Session.SESSION_TRANSACTED) {
                        session.commit();
                    }
                }));
        assertEquals(List.of("large2", "b"), List.of(next(), next()));
        server.awaitWaiting(1);
        assertEquals(List.of(), server.attempts("q"));
    }

    /** A session in the transaction of its JDBC connection, stopped with a consumed message that no listener got. */
    private ClientSession stoppedWithConsumedMessage(ClientConnection connection) throws Exception {
        server.large("q");
        ClientSession session = connection.createSession(Session.SESSION_TRANSACTED);
        session.getConnection();
        CountDownLatch stopped = new CountDownLatch(1);
        server.reading = () -> attempt(() -> {
            server.reading = () -> {};
            get(async(() -> {
                connection.stop();
                return null;
            }));
            stopped.countDown();
        });
        session.createConsumer(queue)
                .setMessageListener(message -> attempt(() -> {
                    session.commit();
                    results.add(message.getIntProperty("JMSXDeliveryCount"));
                }));
        assertTrue(stopped.await(SAFETY_SECONDS, TimeUnit.SECONDS));
        return session;
    }

    @Test
    void aConsumedMessageThatNoListenerGotIsNotCommitted() throws Exception {
        ClientConnection connection = started();
        Session session = stoppedWithConsumedMessage(connection);
        assertThrows(TransactionRolledBackException.class, session::commit);
        assertEquals(List.of(1), server.attempts("q"));
        session.commit();
        connection.start();
        assertEquals(2, next());
        assertEquals(List.of(), server.attempts("q"));
    }

    @Test
    void aConsumedMessageThatNoListenerGotIsRolledBack() throws Exception {
        ClientConnection connection = started();
        Session session = stoppedWithConsumedMessage(connection);
        session.rollback();
        connection.start();
        assertEquals(2, next());
        assertEquals(List.of(), server.attempts("q"));
    }

    @Test
    void aConsumedMessageThatNoListenerGotIsDeliveredWhenTheSessionGoesOn() throws Exception {
        ClientConnection connection = started();
        stoppedWithConsumedMessage(connection);
        connection.start();
        assertEquals(1, next());
        assertEquals(List.of(), server.attempts("q"));
    }

    /** A listener that runs while the session closes can send asynchronously, too. */
    @Test
    void anAsynchronousSendBesideCloseCompletes() throws Exception {
        server.text("q", "a");
        ClientConnection connection = started();
        ClientSession session = connection.createSession();
        CountDownLatch running = new CountDownLatch(1);
        CountDownLatch proceed = new CountDownLatch(1);
        MessageProducer producer = session.createProducer(session.createQueue("r"));
        Message answer = session.createTextMessage("answer");
        session.createConsumer(queue)
                .setMessageListener(message -> attempt(() -> {
                    running.countDown();
                    proceed.await();
                    producer.send(answer, new CompletionListener() {
                        @Override
                        public void onCompletion(Message sent) {
                            results.add("complete");
                        }

                        @Override
                        public void onException(Message sent, Exception exception) {
                            results.add(exception);
                        }
                    });
                }));
        running.await();
        Future<Object> closed = async(() -> {
            session.close();
            return null;
        });
        while (!session.gate().isClosed()) {
            Thread.onSpinWait();
        }
        proceed.countDown();
        get(closed);
        assertEquals("complete", next());
        assertEquals(List.of("answer"), server.texts("r"));
        // what comes later is refused
        assertThrows(IllegalStateException.class, () -> session.async().send(null, answer, null, null));
    }

    @Test
    void anErrorInAListenerIsAFailure() throws Exception {
        server.text("q", "a");
        started().createSession().createConsumer(queue).setMessageListener(message -> {
            attempt(() -> results.add(text(message) + message.getIntProperty("JMSXDeliveryCount")));
            if (results.size() == 1) {
                throw new StackOverflowError("made to fail");
            }
        });
        server.awaitWaiting(1);
        assertEquals(List.of("a1", "a2"), List.of(next(), next()));
        assertEquals(List.of(), server.texts("q"));
    }

    @Test
    void anErrorInACompletionListenerDoesNotKeepTheSessionOpen() throws Exception {
        Session session = started().createSession();
        session.createProducer(queue).send(session.createTextMessage("a"), new CompletionListener() {
            @Override
            public void onCompletion(Message message) {
                throw new StackOverflowError("made to fail");
            }

            @Override
            public void onException(Message message, Exception exception) {
                results.add(exception);
            }
        });
        session.close();
        assertEquals(0, results.size());
    }
}
