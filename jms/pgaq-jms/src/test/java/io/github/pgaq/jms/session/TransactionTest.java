package io.github.pgaq.jms.session;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.pgaq.jms.PgaqOption;
import io.github.pgaq.jms.store.Body;
import io.github.pgaq.jms.store.Delivery;
import jakarta.jms.IllegalStateException;
import jakarta.jms.InvalidDestinationException;
import jakarta.jms.JMSContext;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.Session;
import jakarta.jms.TransactionRolledBackException;
import jakarta.jms.TransactionRolledBackRuntimeException;
import java.sql.SQLException;
import java.time.Duration;
import java.util.List;
import java.util.UUID;
import org.junit.jupiter.api.Test;

/** Transacted sessions. */
class TransactionTest extends SessionFixture {
    private ClientSession transacted() throws JMSException {
        return started().createSession(Session.SESSION_TRANSACTED);
    }

    @Test
    void sendsWithTheCommitInOneCall() throws Exception {
        Session session = transacted();
        MessageProducer producer = session.createProducer(queue);
        producer.send(session.createTextMessage("a"));
        producer.send(session.createTextMessage("b"));
        assertEquals(List.of(), server.texts("q"));
        session.commit();
        assertEquals(List.of("a", "b"), server.texts("q"));
        assertEquals(1, server.count("send"));
    }

    @Test
    void rollbackForgetsWhatWasSent() throws Exception {
        Session session = transacted();
        session.createProducer(queue).send(session.createTextMessage("a"));
        session.rollback();
        session.commit();
        assertEquals(List.of(), server.texts("q"));
    }

    @Test
    void theOpenTransactionEndsWhenTooMuchIsSent() throws Exception {
        Session session = transacted();
        MessageProducer producer = session.createProducer(queue);
        Message message = session.createTextMessage("a");
        for (int i = 0; i < 1500; i++) {
            producer.send(message);
        }
        assertTrue(server.count("send") > 0);
        assertEquals(0, server.texts("q").size());
        session.commit();
        assertEquals(1500, server.texts("q").size());
        producer.send(message);
        session.rollback();
        assertEquals(1500, server.texts("q").size());
    }

    @Test
    void commitAcknowledgesAndSendsTogether() throws Exception {
        server.text("q", "a");
        Session session = transacted();
        MessageConsumer consumer = session.createConsumer(queue);
        assertEquals("a", text(consumer.receive()));
        session.createProducer(session.createQueue("r")).send(session.createTextMessage("reply"));
        session.commit();
        assertEquals(List.of(), server.texts("q"));
        assertEquals(List.of("reply"), server.texts("r"));
        assertEquals(1, server.count("begin"));
        assertEquals(1, server.count("commit"));
    }

    /** A consumer that has received the first message, and uses messages quickly, however slow the machine is. */
    private MessageConsumer busyConsumer(Session session) throws JMSException {
        Consumer consumer = (Consumer) session.createConsumer(queue);
        receives(consumer, "a");
        Body body = new Body("text", "{}", null, null, "a", null);
        Delivery delivery = new Delivery(UUID.randomUUID(), 0, 0, 5, 0, 0, 0, null, body);
        long later = System.nanoTime() + Duration.ofHours(1).toNanos();
        consumer.window().taken(List.of(delivery), later);
        consumer.window().next(later);
        consumer.window().taken(List.of(delivery, delivery), later);
        return consumer;
    }

    private static void receives(MessageConsumer consumer, String... texts) throws JMSException {
        for (String expected : texts) {
            assertEquals(expected, text(consumer.receive()));
        }
    }

    @Test
    void aCommitTakesMoreForAConsumerThatUsesMessagesQuickly() throws Exception {
        server.text("q", "a", "b", "c", "d", "e", "f");
        Session session = transacted();
        MessageConsumer consumer = busyConsumer(session);
        session.commit();
        assertEquals(1, server.count("ahead 4"));
        assertEquals(List.of("b", "c", "d", "e", "f"), server.texts("q"));
        receives(consumer, "b", "c", "d", "e");
        assertEquals(1, server.count("receive"), "the commit has taken them");
        session.rollback();
        receives(consumer, "b", "c", "d", "e", "f");
        session.commit();
        assertEquals(List.of(), server.texts("q"));
        assertNull(consumer.receiveNoWait());
    }

    @Test
    void aCommitTakesNothingBesideOthersOrAfterTheFirstMessage() throws Exception {
        server.text("q", "a", "b", "c");
        ClientSession session = transacted();
        withTwoLeasedAhead(session);
        session.commit();
        assertEquals(0, server.count("ahead"), "others are leased already");
        session.close();
        Session next = transacted();
        receives(next.createConsumer(queue), "b");
        next.commit();
        assertEquals(0, server.count("ahead"), "it may be the only one that is wanted");
    }

    @Test
    void whatACommitHasTakenGoesBackUncounted() throws Exception {
        server.text("q", "a", "b", "c");
        Session session = transacted();
        busyConsumer(session);
        session.commit();
        assertEquals(1, server.count("ahead"));
        session.close();
        assertEquals(List.of(0, 0), server.attempts("q"));
        assertEquals(2, server.ready("q", null).size());
    }

    @Test
    void aCommitTakesNothingForASessionThatIsStopped() throws Exception {
        server.text("q", "a", "b");
        ClientConnection connection = started();
        Session session = connection.createSession(Session.SESSION_TRANSACTED);
        busyConsumer(session);
        connection.stop();
        session.commit();
        assertEquals(0, server.count("ahead"));
    }

    @Test
    void aCommitTakesNothingForAConsumerThatIsClosed() throws Exception {
        server.text("q", "a", "b");
        Session session = transacted();
        busyConsumer(session).close();
        session.commit();
        assertEquals(0, server.count("ahead"));
        assertEquals(List.of("b"), server.texts("q"));
    }

    @Test
    void withoutPrefetchACommitTakesNothing() throws Exception {
        options = options.with(PgaqOption.PREFETCH, "0");
        server.text("q", "a", "b");
        Session session = transacted();
        busyConsumer(session);
        session.commit();
        assertEquals(0, server.count("ahead"));
    }

    @Test
    void aTakeThatFailsDoesNotFailTheCommit() throws Exception {
        server.text("q", "a", "b");
        Session session = transacted();
        MessageConsumer consumer = busyConsumer(session);
        server.fail("ahead", "42501");
        session.commit();
        assertEquals(List.of("b"), server.texts("q"));
        receives(consumer, "b");
    }

    @Test
    void rollbackRedeliversInOrder() throws Exception {
        server.text("q", "a", "b", "c", "d");
        Session session = transacted();
        MessageConsumer consumer = session.createConsumer(queue);
        assertEquals("a", text(consumer.receive()));
        assertEquals("b", text(consumer.receive()));
        session.rollback();
        Message again = consumer.receive();
        assertEquals("a", text(again));
        assertTrue(again.getJMSRedelivered());
        assertEquals(List.of("b", "c", "d"), all(consumer));
        assertEquals(List.of(2, 2, 1, 1), server.attempts("q"));
    }

    @Test
    void staleLeasesRollTheCommitBack() throws Exception {
        server.text("q", "a");
        Session session = transacted();
        session.createConsumer(queue).receive();
        session.createProducer(session.createQueue("r")).send(session.createTextMessage("reply"));
        server.endLeases();
        assertThrows(TransactionRolledBackException.class, session::commit);
        assertEquals(List.of(), server.texts("r"));
        assertEquals(List.of("a"), server.texts("q"));
    }

    @Test
    void aFailedCommitRollsBackAndRedelivers() throws Exception {
        server.text("q", "a");
        Session session = transacted();
        MessageConsumer consumer = session.createConsumer(queue);
        consumer.receive();
        server.fail("send", "40001");
        session.createProducer(queue).send(session.createTextMessage("b"));
        JMSException error = assertThrows(TransactionRolledBackException.class, session::commit);
        assertEquals("40001", error.getErrorCode());
        assertTrue(error.getLinkedException() instanceof SQLException);
        assertEquals(List.of("a"), all(consumer));
    }

    @Test
    void aFailedCommitOfAContextRollsBack() throws Exception {
        Context context = new Context(connect(), JMSContext.SESSION_TRANSACTED);
        server.fail("send", "40001");
        context.createProducer().send(queue, "a");
        assertThrows(TransactionRolledBackRuntimeException.class, context::commit);
        assertEquals(List.of(), server.texts("q"));
    }

    @Test
    void aCommitWithoutMemoryRollsBackAndRedelivers() throws Exception {
        server.text("q", "a");
        Session session = transacted();
        MessageConsumer consumer = session.createConsumer(queue);
        consumer.receive();
        server.exhaust("send");
        session.createProducer(session.createQueue("r")).send(session.createTextMessage("b"));
        assertThrows(OutOfMemoryError.class, session::commit);
        session.commit();
        assertEquals(List.of(), server.texts("r"));
        assertEquals(List.of("a"), all(consumer));
    }

    @Test
    void largeBodiesAreNotKeptUntilTheCommit() throws Exception {
        Session session = transacted();
        MessageProducer producer = session.createProducer(queue);
        Message message = session.createTextMessage("a".repeat(3_000_000));
        for (int i = 0; i < 6; i++) {
            assertEquals(0, server.count("send"));
            producer.send(message);
        }
        assertEquals(1, server.count("send"));
        session.commit();
        assertEquals(6, server.texts("q").size());
    }

    @Test
    void closeRollsBack() throws Exception {
        server.text("q", "a");
        Session session = transacted();
        session.createConsumer(queue).receive();
        session.createProducer(queue).send(session.createTextMessage("b"));
        session.close();
        assertEquals(List.of("a"), server.texts("q"));
        assertEquals(1, server.ready("q", null).size());
    }

    @Test
    void withTheJdbcConnectionEverythingIsInTheTransactionThere() throws Exception {
        server.text("q", "a");
        ClientSession session = transacted();
        MessageConsumer consumer = session.createConsumer(queue);
        session.getConnection();
        session.createProducer(queue).send(session.createTextMessage("b"));
        assertEquals(1, server.count("send"), "at once");
        assertEquals("a", text(consumer.receive()));
        session.rollback();
        assertEquals(List.of(1), server.attempts("q"));
        assertEquals("a", text(consumer.receive()));
        session.commit();
        assertEquals(List.of(), server.texts("q"));
    }

    @Test
    void onTheCallersConnectionTheSessionHasNoLeases() throws Exception {
        server.text("q", "a");
        FakeStore store = server.open();
        try (ClientConnection connection = new ClientConnection(() -> store, options, true, null)) {
            connection.start();
            ClientSession session = connection.createSession();
            store.begin();
            session.createProducer(queue).send(session.createTextMessage("b"));
            MessageConsumer consumer = session.createConsumer(queue);
            assertEquals("a", text(consumer.receive()));
            assertEquals(List.of("a"), server.texts("q"));
            store.commit();
            assertEquals(List.of("b"), server.texts("q"));
            assertThrows(IllegalStateException.class, () -> consumer.setMessageListener(message -> {}));
            assertThrows(IllegalStateException.class, connection::createSession);
        }
    }

    @Test
    void whatIsNotTransactedIsRefused() throws Exception {
        ClientConnection connection = started();
        Session session = connection.createSession();
        assertThrows(IllegalStateException.class, session::commit);
        assertThrows(IllegalStateException.class, session::rollback);
        assertThrows(IllegalStateException.class, connection.createSession()::getConnection);
        Session transacted = connection.createSession(Session.SESSION_TRANSACTED);
        assertThrows(IllegalStateException.class, transacted::recover);
        assertFalse(session.getTransacted());
        assertNull(session.getMessageListener());
    }

    @Test
    void aMissingQueueIsAnErrorOfTheSend() throws Exception {
        Session session = transacted();
        MessageProducer producer = session.createProducer(null);
        Message message = session.createTextMessage("a");
        InvalidDestinationException error = assertThrows(
                InvalidDestinationException.class, () -> producer.send(session.createQueue("missing"), message));
        assertEquals("42704", error.getErrorCode());
        assertThrows(InvalidDestinationException.class, () -> producer.send(session.createTopic("q"), message));
        assertThrows(InvalidDestinationException.class, () -> producer.send(null, message));
    }
}
