package io.github.pgaq.jms.clients;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;

import io.github.pgaq.jms.PgaqConnectionFactory;
import io.github.pgaq.jms.ServerTest;
import jakarta.jms.JMSContext;
import jakarta.jms.Queue;
import jakarta.jms.Session;
import jakarta.jms.TextMessage;
import java.util.HashSet;
import java.util.Set;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.messaginghub.pooled.jms.JmsPoolConnectionFactory;
import org.messaginghub.pooled.jms.JmsPoolSession;

/** The pool of messaginghub, which Quarkus and Spring Boot use. */
@Timeout(60)
class PooledTest extends ServerTest {

    private static final int LONG = 20_000;

    private final JmsPoolConnectionFactory pool = new JmsPoolConnectionFactory();

    @BeforeEach
    void start() {
        pool.setConnectionFactory(new PgaqConnectionFactory(url()));
        pool.setMaxConnections(1);
        pool.start();
    }

    @AfterEach
    void stop() {
        pool.stop();
    }

    @Test
    void contextsShareOneConnection() throws Exception {
        String queue = newQueue();
        for (int i = 0; i < 10; i++) {
            try (JMSContext context = pool.createContext()) {
                Queue destination = context.createQueue(queue);
                context.createProducer().send(destination, "m" + i);
                assertEquals(
                        "m" + i,
                        ((TextMessage) context.createConsumer(destination).receive(LONG)).getText());
            }
        }
        assertEquals(1, pool.getNumConnections());
    }

    /** A session that is given back is reset without an error, so the pool keeps it. */
    @Test
    void sessionsAreKept() throws Exception {
        String queue = newQueue();
        Set<Session> sessions = new HashSet<>();
        try (var connection = pool.createConnection()) {
            for (int i = 0; i < 3; i++) {
                try (Session session = connection.createSession()) {
                    session.createProducer(session.createQueue(queue)).send(session.createTextMessage("m" + i));
                    sessions.add(((JmsPoolSession) session).getInternalSession());
                }
            }
        }
        assertEquals(1, sessions.size());
    }

    @Test
    void aSessionGivenBackInTheMiddleOfATransactionIsRolledBack() throws Exception {
        String queue = newQueue();
        try (var connection = pool.createConnection()) {
            try (Session session = connection.createSession(Session.SESSION_TRANSACTED)) {
                session.createProducer(session.createQueue(queue)).send(session.createTextMessage("never"));
            }
            connection.start();
            try (Session session = connection.createSession(Session.AUTO_ACKNOWLEDGE)) {
                assertNull(session.createConsumer(session.createQueue(queue)).receiveNoWait());
            }
        }
    }

    @Test
    void aMessageNotAcknowledgedComesToTheNextSession() throws Exception {
        String queue = newQueue();
        try (var connection = pool.createConnection()) {
            connection.start();
            try (Session session = connection.createSession(Session.CLIENT_ACKNOWLEDGE)) {
                session.createProducer(session.createQueue(queue)).send(session.createTextMessage("work"));
                assertEquals(
                        "work",
                        ((TextMessage) session.createConsumer(session.createQueue(queue))
                                        .receive(LONG))
                                .getText());
            }
            try (Session session = connection.createSession(Session.CLIENT_ACKNOWLEDGE)) {
                TextMessage again = (TextMessage)
                        session.createConsumer(session.createQueue(queue)).receive(LONG);
                assertEquals("work", again.getText());
                again.acknowledge();
            }
        }
    }
}
