package io.github.pgaq.jms.session;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

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
import java.util.List;
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
        try (ClientConnection connection = new ClientConnection(() -> store, options, true)) {
            connection.start();
            ClientSession session = connection.createSession();
            store.begin();
            session.createProducer(queue).send(session.createTextMessage("b"));
            MessageConsumer consumer = session.createConsumer(queue);
            assertEquals("a", text(consumer.receive()));
            assertEquals(List.of("a"), server.texts("q"));
            store.commit();
            assertEquals(List.of("b"), server.texts("q"));
            assertThrows(IllegalStateException.class, () -> consumer.setMessageListener(message -> { }));
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
        InvalidDestinationException error = assertThrows(InvalidDestinationException.class,
                () -> producer.send(session.createQueue("missing"), message));
        assertEquals("42704", error.getErrorCode());
        assertThrows(InvalidDestinationException.class, () -> producer.send(session.createTopic("q"), message));
        assertThrows(InvalidDestinationException.class, () -> producer.send(null, message));
    }
}
