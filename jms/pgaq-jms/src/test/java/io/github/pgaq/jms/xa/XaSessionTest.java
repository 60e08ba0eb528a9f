package io.github.pgaq.jms.xa;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.pgaq.jms.PgaqConnectionFactory;
import io.github.pgaq.jms.PgaqXAConnectionFactory;
import io.github.pgaq.jms.ServerTest;
import jakarta.jms.CompletionListener;
import jakarta.jms.Connection;
import jakarta.jms.IllegalStateException;
import jakarta.jms.JMSConsumer;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageFormatRuntimeException;
import jakarta.jms.Queue;
import jakarta.jms.Session;
import jakarta.jms.TextMessage;
import jakarta.jms.TransactionInProgressException;
import jakarta.jms.XAConnection;
import jakarta.jms.XAJMSContext;
import jakarta.jms.XASession;
import java.lang.reflect.Proxy;
import java.nio.charset.StandardCharsets;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.Arrays;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import javax.transaction.xa.XAException;
import javax.transaction.xa.XAResource;
import javax.transaction.xa.Xid;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.postgresql.xa.PGXADataSource;

/** XA sessions with the server's prepared transactions. */
class XaSessionTest extends ServerTest {
    private record Id(int getFormatId, byte[] getGlobalTransactionId, byte[] getBranchQualifier) implements Xid {}

    private XAConnection connection;
    private String queue;

    @BeforeEach
    void open() throws Exception {
        queue = newQueue();
        connection = new PgaqXAConnectionFactory(url()).createXAConnection();
        connection.start();
    }

    @AfterEach
    void close() throws JMSException {
        connection.close();
    }

    private static Xid xid() {
        return new Id(7, newName("xid").getBytes(StandardCharsets.US_ASCII), new byte[] {1});
    }

    private interface Work {
        void run() throws Exception;
    }

    /** Does something in a branch, which is then ended. */
    private static Xid branch(XASession session, Work work) throws Exception {
        Xid xid = xid();

        session.getXAResource().start(xid, XAResource.TMNOFLAGS);
        work.run();
        session.getXAResource().end(xid, XAResource.TMSUCCESS);
        return xid;
    }

    private void send(XASession session, String text) throws JMSException {
        session.createProducer(session.createQueue(queue)).send(session.createTextMessage(text));
    }

    private String receive(Session session) throws JMSException {
        try (MessageConsumer consumer = session.createConsumer(session.createQueue(queue))) {
            Message message = consumer.receive(10_000);
            return message == null ? null : ((TextMessage) message).getText();
        }
    }

    /** The texts that are in the queue, in order. */
    private String texts() throws SQLException {
        return value("SELECT coalesce(string_agg((payload).text, ',' ORDER BY enqueue_time, msgid), '') FROM"
                + " aq.browse('" + queue + "', NULL::aq.jms_message, max_messages => 100)");
    }

    @Test
    void sendIsVisibleAfterTheCommit() throws Exception {
        XASession session = connection.createXASession();
        Xid xid = branch(session, () -> send(session, "a"));

        assertEquals("", texts());
        assertEquals(XAResource.XA_OK, session.getXAResource().prepare(xid));
        assertEquals("", texts());
        session.getXAResource().commit(xid, false);
        assertEquals("a", texts());
    }

    @Test
    void aConnectionThatCannotBeUsedIsClosed() {
        CountDownLatch closed = new CountDownLatch(1);
        PGXADataSource source = new PGXADataSource() {
            @Override
            public javax.sql.XAConnection getXAConnection() throws SQLException {
                javax.sql.XAConnection opened = super.getXAConnection();
                return on(
                        javax.sql.XAConnection.class,
                        opened,
                        Map.of("getConnection", () -> useless(opened), "close", () -> {
                            closed.countDown();
                            opened.close();
                            return null;
                        }));
            }
        };
        source.setUrl(url());
        assertThrows(JMSException.class, new PgaqXAConnectionFactory(source)::createConnection);
        assertEquals(0, closed.getCount());
    }

    private static java.sql.Connection useless(javax.sql.XAConnection opened) throws SQLException {
        return on(java.sql.Connection.class, opened.getConnection(), Map.of("createStatement", () -> {
            throw new SQLException("made to fail", "57014");
        }));
    }

    /** An object with some methods of its own. */
    private static <T> T on(Class<T> type, T object, Map<String, Callable<Object>> own) {
        return type.cast(Proxy.newProxyInstance(
                type.getClassLoader(),
                new Class<?>[] {type},
                (proxy, method, args) -> own.containsKey(method.getName())
                        ? own.get(method.getName()).call()
                        : method.invoke(object, args)));
    }

    @Test
    void onePhase() throws Exception {
        XASession session = connection.createXASession();

        session.getXAResource().commit(branch(session, () -> send(session, "a")), true);
        assertEquals("a", texts());
        session.getXAResource().commit(branch(session, () -> assertEquals("a", receive(session))), true);
        assertEquals("", texts());
        session.getXAResource().rollback(branch(session, () -> send(session, "b")));
        assertEquals("", texts());
    }

    @Test
    void consumedMessageComesBackWithTheRollback() throws Exception {
        XASession session = connection.createXASession();
        send(session, "a");
        for (boolean prepared : new boolean[] {false, true}) {
            Xid xid = branch(session, () -> assertEquals("a", receive(session)));
            if (prepared) session.getXAResource().prepare(xid);
            session.getXAResource().rollback(xid);
        }
        Xid xid = branch(session, () -> {
            Queue destination = session.createQueue(queue);
            try (MessageConsumer consumer = session.createConsumer(destination)) {
                Message message = consumer.receive(10_000);
                assertTrue(message.getJMSRedelivered());
                assertEquals(3, message.getIntProperty("JMSXDeliveryCount"));
            }
        });
        session.getXAResource().prepare(xid);
        session.getXAResource().commit(xid, false);
        assertEquals("", texts());
    }

    @Test
    void rowsAndMessagesAreOneBranch() throws Exception {
        String table = newName("rows");
        execute("CREATE TABLE " + table + " (a int)");
        XaSession session = (XaSession) connection.createXASession();
        for (boolean commit : new boolean[] {false, true}) {
            Xid xid = branch(session, () -> {
                send(session, "a");
                try (Statement statement = session.getConnection().createStatement()) {
                    statement.execute("INSERT INTO " + table + " VALUES (1)");
                }
            });
            session.getXAResource().prepare(xid);
            if (commit) session.getXAResource().commit(xid, false);
            else session.getXAResource().rollback(xid);
        }
        assertEquals("1", value("SELECT count(*) FROM " + table));
        assertEquals("a", texts());
    }

    @Test
    void aFreshConnectionRecovers() throws Exception {
        Xid commit = prepared("a");
        Xid rollback = prepared("b");
        XAResource fresh = connection.createXASession().getXAResource();
        Xid[] found = fresh.recover(XAResource.TMSTARTRSCAN | XAResource.TMENDRSCAN);

        fresh.commit(found(found, commit), false);
        fresh.rollback(found(found, rollback));
        assertEquals("a", texts());
        assertEquals(
                XAException.XAER_NOTA, assertThrows(XAException.class, () -> fresh.commit(commit, false)).errorCode);
        assertThrows(XAException.class, () -> fresh.forget(commit));
    }

    /** A prepared branch whose connection is closed. */
    private Xid prepared(String text) throws Exception {
        try (XAConnection other = new PgaqXAConnectionFactory(url()).createXAConnection()) {
            XASession session = other.createXASession();
            Xid xid = branch(session, () -> send(session, text));
            session.getXAResource().prepare(xid);
            return xid;
        }
    }

    private static Xid found(Xid[] found, Xid wanted) {
        return Arrays.stream(found)
                .filter(xid -> Arrays.equals(xid.getGlobalTransactionId(), wanted.getGlobalTransactionId())
                        && Arrays.equals(xid.getBranchQualifier(), wanted.getBranchQualifier()))
                .findFirst()
                .orElseThrow();
    }

    @Test
    void theSessionWorksAfterAPrepareThatFailed() throws Exception {
        XaSession session = (XaSession) connection.createXASession();
        String pid = backend(session);
        for (int i = 0; i < 2; i++) {
            Xid xid = branch(session, () -> {
                send(session, "a");
                try (Statement statement = session.getConnection().createStatement()) {
                    statement.execute("CREATE TEMPORARY TABLE cannot_be_prepared (a int)");
                }
            });
            XAException e = assertThrows(
                    XAException.class, () -> session.getXAResource().prepare(xid));
            assertEquals(XAException.XA_RBROLLBACK, e.errorCode);
        }
        send(session, "b");
        assertEquals("b", texts());
        Xid last = branch(session, () -> assertEquals("b", receive(session)));
        session.getXAResource().prepare(last);
        session.getXAResource().commit(last, false);
        assertEquals("", texts());
        assertEquals(pid, backend(session));
        assertEquals("idle", value("SELECT state FROM pg_stat_activity WHERE pid = " + pid));
    }

    private static String backend(XaSession session) throws Exception {
        try (Statement statement = session.getConnection().createStatement();
                ResultSet row = statement.executeQuery("SELECT pg_backend_pid()")) {
            row.next();
            return row.getString(1);
        }
    }

    @Test
    void aConnectionWhoseStoreCannotBeMadeIsClosed() throws Exception {
        javax.sql.XAConnection[] opened = new javax.sql.XAConnection[1];
        PGXADataSource source = new PGXADataSource();
        source.setUrl(url());
        XaResource resource = new XaResource();
        assertThrows(
                SQLException.class,
                () -> resource.use(() -> opened[0] = source.getXAConnection(), jdbc -> {
                    throw new SQLException("made to fail");
                }));
        assertThrows(SQLException.class, opened[0]::getConnection);
    }

    /** Containers close the session before the transaction manager commits. */
    @Test
    void aClosedSessionCanBeCommitted() throws Exception {
        for (boolean onePhase : new boolean[] {true, false}) {
            XASession session = connection.createXASession();
            XAResource resource = session.getXAResource();
            Xid xid = branch(session, () -> send(session, "a"));
            session.close();
            if (!onePhase) resource.prepare(xid);
            resource.commit(xid, onePhase);
            assertEquals(
                    XAException.XAER_RMFAIL,
                    assertThrows(XAException.class, () -> resource.start(xid(), XAResource.TMNOFLAGS)).errorCode);
        }
        assertEquals("a,a", texts());
        connection.close();
        assertEquals(
                "0",
                value("SELECT count(*) FROM pg_stat_activity WHERE state LIKE 'idle in transaction%'"
                        + " AND application_name = 'pgaq-jms'"));
    }

    @Test
    void withoutATransactionEachCallIsOne() throws Exception {
        XASession session = connection.createXASession();

        send(session, "a");
        assertEquals("a", texts());
        assertEquals("a", receive(session));
        assertEquals("", texts());
    }

    @Test
    void theSessionEndsNoTransaction() throws Exception {
        XASession session = connection.createXASession();

        assertTrue(session.getTransacted());
        assertEquals(Session.SESSION_TRANSACTED, session.getAcknowledgeMode());
        assertThrows(TransactionInProgressException.class, session::commit);
        assertThrows(TransactionInProgressException.class, session::rollback);
        assertThrows(IllegalStateException.class, session::recover);
        MessageConsumer consumer = session.createConsumer(session.createQueue(queue));
        assertThrows(IllegalStateException.class, () -> consumer.setMessageListener(message -> {}));
        assertTrue(session.getXAResource().isSameRM(session.getXAResource()));
        assertFalse(
                session.getXAResource().isSameRM(connection.createXASession().getXAResource()));
        session.close();
        assertThrows(IllegalStateException.class, session::getTransacted);
        assertThrows(IllegalStateException.class, session::getSession);
    }

    /** Turned off in a branch, autocommit could not be turned on again before its end. */
    @Test
    void autocommitIsLeftAsItIs() throws Exception {
        XaSession session = (XaSession) connection.createXASession();
        Queue destination = session.createQueue(queue);
        for (int i = 0; i < 3; i++) {
            send(session, "a");
        }
        MessageConsumer outside = session.createConsumer(destination);
        assertNotNull(outside.receive(10_000));
        boolean[] before = new boolean[1];
        Xid xid = branch(session, () -> {
            before[0] = session.getConnection().getAutoCommit();
            assertNotNull(outside.receive(10_000));
            send(session, "b");
            assertEquals("a", receive(session));
            try (MessageConsumer none = session.createConsumer(destination, "JMSType = 'none'")) {
                assertEquals(null, none.receive(50));
            }
            outside.close();
            assertEquals(before[0], session.getConnection().getAutoCommit());
        });
        session.getXAResource().prepare(xid);
        session.getXAResource().commit(xid, false);
        assertTrue(session.getConnection().getAutoCommit());
        assertEquals("b", texts());
    }

    @Test
    void asynchronousSendsBelongToTheBranch() throws Exception {
        XASession session = connection.createXASession();
        CountDownLatch completed = new CountDownLatch(20);
        Xid xid = branch(session, () -> {
            for (int i = 0; i < 20; i++)
                session.createProducer(session.createQueue(queue))
                        .send(session.createTextMessage("a"), new CompletionListener() {
                            @Override
                            public void onCompletion(Message message) {
                                completed.countDown();
                            }

                            @Override
                            public void onException(Message message, Exception exception) {
                                exception.printStackTrace();
                            }
                        });
        });

        assertTrue(completed.await(10, TimeUnit.SECONDS));
        assertEquals("", texts());
        session.getXAResource().commit(xid, true);
        assertEquals(39, texts().length());
    }

    /** After the loss of its connection, what a branch has yet to send must not be sent outside of it. */
    @Test
    void aLostBranchSendsNothing() throws Exception {
        XaSession session = (XaSession) connection.createXASession();
        Xid xid = xid();
        session.getXAResource().start(xid, XAResource.TMNOFLAGS);
        send(session, "a");
        try (Statement statement = session.getConnection().createStatement()) {
            statement.execute("SELECT pg_terminate_backend(pg_backend_pid())");
        } catch (SQLException expected) {
            assertNotNull(expected.getSQLState());
        }
        assertThrows(JMSException.class, () -> send(session, "b"));
        assertThrows(JMSException.class, () -> send(session, "c"));
        assertThrows(XAException.class, () -> {
            session.getXAResource().end(xid, XAResource.TMFAIL);
            session.getXAResource().rollback(xid);
        });
        try {
            session.getXAResource().rollback(xid);
        } catch (XAException lost) {
            assertTrue(lost.errorCode != 0);
        }
        assertEquals("", texts());
    }

    @Test
    void aContext() throws Exception {
        try (XAJMSContext context = new PgaqXAConnectionFactory(url()).createXAContext()) {
            Xid xid = xid();
            context.getXAResource().start(xid, XAResource.TMNOFLAGS);
            context.getContext().createProducer().send(context.createQueue(queue), "a");
            context.getXAResource().end(xid, XAResource.TMSUCCESS);
            context.getXAResource().prepare(xid);
            context.getXAResource().commit(xid, false);
            assertEquals("a", texts());
            assertTrue(context.getTransacted());
        }
    }

    @Test
    void ordinarySessionsAndDataSources() throws Exception {
        PGXADataSource source = new PGXADataSource();
        source.setUrl(url());
        int before = connections();
        try (XAConnection other = new PgaqXAConnectionFactory(source).createXAConnection();
                Connection ordinary = new PgaqXAConnectionFactory(source).createConnection();
                Connection plain = new PgaqConnectionFactory(url()).createConnection()) {
            for (Session session : new Session[] {
                other.createSession(true, 0),
                ordinary.createSession(true, 0),
                plain.createSession(true, 0),
                other.createXASession().getSession()
            }) {
                session.createProducer(session.createQueue(queue)).send(session.createTextMessage("a"));
                if (!(session instanceof XASession)) session.commit();
            }
            assertEquals("a,a,a,a", texts());
        }
        // less, if those of an earlier test were still ending
        for (int i = 0; i < 600 && connections() > before; i++) Thread.sleep(50);
        assertTrue(connections() <= before);
    }

    private static int connections() throws SQLException {
        return Integer.parseInt(value("SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'"));
    }

    /** What the server refuses to prepare is rolled back, and the session still works. */
    @Test
    void aRefusedPrepare() throws Exception {
        XaSession session = (XaSession) connection.createXASession();
        String twice = "SELECT count(*) FROM pg_prepared_xacts";
        String before = value(twice);
        Xid xid = branch(session, () -> {
            send(session, "a");
            try (Statement statement = session.getConnection().createStatement()) {
                statement.execute("CREATE TEMP TABLE x (a int)");
            }
        });
        XAException refused =
                assertThrows(XAException.class, () -> session.getXAResource().prepare(xid));

        assertEquals(XAException.XA_RBROLLBACK, refused.errorCode);
        assertTrue(
                refused.getMessage().startsWith("the transaction was rolled back: ERROR: cannot PREPARE"),
                refused.getMessage());
        assertEquals(before, value(twice));
        assertEquals("", texts());
        send(session, "b");
        assertEquals("b", texts());
        assertArrayEquals(new Xid[0], session.getXAResource().recover(XAResource.TMNOFLAGS));
    }

    /** The chunks of a large message are part of the branch. */
    @Test
    void aLargeMessageIsSentAndConsumedInItsBranch() throws Exception {
        byte[] body = new byte[5 << 20];
        Arrays.fill(body, (byte) 7);
        try (XAJMSContext context = new PgaqXAConnectionFactory(url()).createXAContext()) {
            XAResource resource = context.getXAResource();
            JMSConsumer consumer = context.createConsumer(context.createQueue(queue));
            for (boolean commits : new boolean[] {false, true}) {
                Xid xid = xid();
                resource.start(xid, XAResource.TMNOFLAGS);
                context.createProducer().send(context.createQueue(queue), body);
                resource.end(xid, XAResource.TMSUCCESS);
                if (commits) {
                    resource.commit(xid, true);
                } else {
                    resource.rollback(xid);
                    assertNull(consumer.receiveNoWait());
                }
            }
            for (boolean commits : new boolean[] {false, true}) {
                Xid xid = xid();
                resource.start(xid, XAResource.TMNOFLAGS);
                assertArrayEquals(body, consumer.receiveBody(byte[].class, 10_000));
                resource.end(xid, XAResource.TMSUCCESS);
                if (commits) {
                    resource.commit(xid, true);
                    assertNull(consumer.receiveNoWait());
                } else {
                    resource.rollback(xid);
                }
            }
        }
    }

    /** close() ends a wait, and not the branch: what was sent before is committed. */
    @Test
    void aWaitThatIsEndedLeavesItsBranch() throws Exception {
        XASession session = connection.createXASession();
        String other = newQueue();
        Xid xid = branch(session, () -> {
            MessageConsumer consumer = session.createConsumer(session.createQueue(other));
            send(session, "a");
            CompletableFuture<Message> received = new CompletableFuture<>();
            new Thread(() -> {
                        try {
                            received.complete(consumer.receive());
                        } catch (JMSException e) {
                            received.completeExceptionally(e);
                        }
                    })
                    .start();
            awaitValue(
                    "1",
                    "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Extension' AND"
                            + " query ~ 'aq_jms.receive' AND backend_xid IS NOT NULL");
            consumer.close();
            assertNull(received.get(30, TimeUnit.SECONDS));
            send(session, "b");
        });
        session.getXAResource().commit(xid, true);
        assertEquals("a,b", texts());
    }

    /** Specification 8.6: as a transacted session does. Nothing is kept here that the branch has consumed. */
    @Test
    void aRefusedBodyCountsAsDeliveredInItsBranch() throws Exception {
        try (XAJMSContext context = new PgaqXAConnectionFactory(url()).createXAContext()) {
            XAResource resource = context.getXAResource();
            JMSConsumer consumer = context.createConsumer(context.createQueue(queue));
            context.createProducer().send(context.createQueue(queue), "a").send(context.createQueue(queue), "b");
            Xid first = xid();
            resource.start(first, XAResource.TMNOFLAGS);
            assertThrows(MessageFormatRuntimeException.class, () -> consumer.receiveBody(Integer.class, 10_000));
            assertEquals("b", consumer.receiveBody(String.class, 10_000));
            resource.end(first, XAResource.TMSUCCESS);
            resource.rollback(first);
            Xid second = xid();
            resource.start(second, XAResource.TMNOFLAGS);
            assertThrows(MessageFormatRuntimeException.class, () -> consumer.receiveBody(Integer.class, 10_000));
            resource.end(second, XAResource.TMSUCCESS);
            resource.commit(second, true);
            assertEquals("b", consumer.receiveBody(String.class, 10_000));
            assertNull(consumer.receiveBodyNoWait(String.class));
        }
    }

    /** Specification 8.6: as AUTO_ACKNOWLEDGE does, which is what the session is without a transaction. */
    @Test
    void aRefusedBodyStaysInTheQueueOutsideOfBranches() throws Exception {
        try (XAJMSContext context = new PgaqXAConnectionFactory(url()).createXAContext()) {
            context.createProducer().send(context.createQueue(queue), "a").send(context.createQueue(queue), "b");
            try (JMSConsumer consumer = context.createConsumer(context.createQueue(queue))) {
                assertThrows(MessageFormatRuntimeException.class, () -> consumer.receiveBodyNoWait(Integer.class));
                assertEquals("a,b", texts());
                Message message = consumer.receive(10_000);
                assertEquals("a", message.getBody(String.class));
                assertFalse(message.getJMSRedelivered());
                assertEquals(1, message.getIntProperty("JMSXDeliveryCount"));
                assertThrows(MessageFormatRuntimeException.class, () -> consumer.receiveBodyNoWait(Integer.class));
            }
            assertEquals("b", texts());
        }
    }

    /** The server of the tests has prepared transactions: the sentence for one that has none is tested alone. */
    @Test
    void withoutPreparedTransactions() {
        assertTrue(XaResource.reason(new SQLException("ERROR: prepared transactions are disabled", "55000"))
                .contains("max_prepared_transactions is 0"));
        assertFalse(
                XaResource.reason(new SQLException("ERROR: another", "55000")).contains("max_prepared"));
    }
}
