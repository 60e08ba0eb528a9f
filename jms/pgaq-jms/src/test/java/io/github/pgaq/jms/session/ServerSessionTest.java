package io.github.pgaq.jms.session;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.pgaq.jms.PgaqConnection;
import io.github.pgaq.jms.PgaqConnectionFactory;
import io.github.pgaq.jms.PgaqOption;
import io.github.pgaq.jms.PgaqSession;
import io.github.pgaq.jms.ServerTest;
import jakarta.jms.InvalidClientIDException;
import jakarta.jms.InvalidDestinationException;
import jakarta.jms.JMSException;
import jakarta.jms.JMSSecurityException;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.QueueBrowser;
import jakarta.jms.ResourceAllocationException;
import jakarta.jms.Session;
import jakarta.jms.TemporaryQueue;
import jakarta.jms.TextMessage;
import jakarta.jms.Topic;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Comparator;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.function.Executable;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Sessions with a server. */
class ServerSessionTest extends ServerTest {
    private static final long SOON = 1000L * SAFETY_SECONDS;

    private final PgaqConnectionFactory factory = new PgaqConnectionFactory(url());
    private PgaqConnection connection;
    private String name;

    @BeforeEach
    void open() throws Exception {
        name = newQueue();
        connection = factory.createConnection();
        connection.start();
    }

    @AfterEach
    void close() throws Exception {
        connection.close();
    }

    private static List<String> receive(MessageConsumer consumer, int count) throws JMSException {
        List<String> texts = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            Message message = consumer.receive(SOON);
            assertNotNull(message, "only " + texts + " came");
            texts.add(((TextMessage) message).getText());
        }
        return texts;
    }

    private void send(Session session, String... texts) throws JMSException {
        MessageProducer producer = session.createProducer(session.createQueue(name));
        for (String text : texts) {
            producer.send(session.createTextMessage(text));
        }
    }

    private static String left(String queue) throws Exception {
        return value("SELECT count(*) FROM aq.messages WHERE queue_name = '" + queue + "' AND state <> 'PROCESSED'");
    }

    @Test
    void sendsAndReceivesInOrder() throws Exception {
        Session session = connection.createSession();
        send(session, "a", "b", "c", "d", "e");
        MessageConsumer consumer = session.createConsumer(session.createQueue(name));
        assertEquals(List.of("a", "b", "c", "d", "e"), receive(consumer, 5));
        assertNull(consumer.receiveNoWait());
        assertNull(consumer.receive(10));
    }

    /** Each by another session of the server, as pools and templates without a pool send. */
    private void sendOneAfterAnother(String queue, PgaqConnectionFactory other, int count) throws Exception {
        for (int i = 0; i < count; i++) {
            String text = Integer.toString(i);
            switch (i % 4) {
                case 0 -> sendAlone(connection.createSession(), queue, text);
                case 1 -> sendAlone(connection.createSession(Session.SESSION_TRANSACTED), queue, text);
                case 2 -> {
                    try (PgaqConnection another = other.createConnection()) {
                        sendAlone(another.createSession(), queue, text);
                    }
                }
                default -> {
                    try (Connection jdbc = connect();
                            PgaqConnection joined = other.createConnection(jdbc)) {
                        jdbc.setAutoCommit(false);
                        sendAlone(joined.createSession(), queue, text);
                        jdbc.commit();
                    }
                }
            }
        }
    }

    private static void sendAlone(Session session, String queue, String text) throws JMSException {
        session.createProducer(session.createQueue(queue)).send(session.createTextMessage(text));
        if (session.getTransacted()) {
            session.commit();
        }
        session.close();
    }

    private void reconnect(String order) throws JMSException {
        factory.setOption(PgaqOption.SEND_ORDER, order);
        connection.close();
        connection = factory.createConnection();
        connection.start();
    }

    private static String shards(String queue) throws SQLException {
        return value("SELECT count(DISTINCT shard) FROM aq.messages WHERE queue_name = '" + queue + "'");
    }

    private static List<String> numbers(int count) {
        return IntStream.range(0, count).mapToObj(Integer::toString).toList();
    }

    @Test
    void messagesSentOneAfterAnotherKeepTheirOrder() throws Exception {
        sendOneAfterAnother(name, factory, 24);
        assertEquals("1", shards(name));
        Session session = connection.createSession();
        assertEquals(numbers(24), receive(session.createConsumer(session.createQueue(name)), 24));
        String plain = newName("plain");
        execute("SELECT aq.create_queue('" + plain + "', 'text')");
        sendOneAfterAnother(plain, factory, 24);
        assertEquals(numbers(24), receive(session.createConsumer(session.createQueue(plain)), 24));
        execute("SELECT aq.drop_queue('" + plain + "', force => true)");
    }

    @Test
    void messagesOfAClientIdentifierKeepTheirOrder() throws Exception {
        String client = newName("client");
        for (String text : numbers(12)) {
            PgaqConnectionFactory another = new PgaqConnectionFactory(url());
            another.setClientId(client);
            try (PgaqConnection one = another.createConnection()) {
                sendAlone(one.createSession(), name, text);
            }
        }
        assertEquals("1", shards(name));
        Session session = connection.createSession();
        assertEquals(numbers(12), receive(session.createConsumer(session.createQueue(name)), 12));
    }

    @Test
    void sessionsUseAllShardsIfTheyNeedNoCommonOrder() throws Exception {
        reconnect("session");
        sendOneAfterAnother(name, factory, 24);
        assertNotEquals("1", shards(name));
        Session session = connection.createSession();
        List<String> received = receive(session.createConsumer(session.createQueue(name)), 24);
        received.sort(Comparator.comparing(Integer::valueOf));
        assertEquals(numbers(24), received);
    }

    /** Shards of messages that two programs send, of eight groups and without one, each text by both. */
    private List<String> shardsOfGroups(String order) throws Exception {
        for (int program = 0; program < 2; program++) {
            PgaqConnectionFactory another = new PgaqConnectionFactory(url());
            another.setOption(PgaqOption.SEND_ORDER, order);
            try (PgaqConnection one = another.createConnection();
                    Session session = one.createSession()) {
                MessageProducer producer = session.createProducer(session.createQueue(name));
                producer.send(session.createTextMessage("-1"));
                for (String group : numbers(8)) {
                    TextMessage message = session.createTextMessage(group);
                    message.setStringProperty("JMSXGroupID", group);
                    producer.send(message);
                }
            }
        }
        String messages = " FROM aq.messages WHERE queue_name = '" + name + "'";
        String most = "SELECT max(n) FROM (SELECT count(DISTINCT shard) AS n" + messages;
        return List.of(
                value("SELECT count(DISTINCT shard)" + messages + " AND key IS NOT NULL"),
                value(most + " AND key IS NOT NULL GROUP BY key) k"),
                value(most + " GROUP BY session_id) s"));
    }

    @Test
    void messagesOfAGroupKeepTheirOrderAcrossProgramsIfAsked() throws Exception {
        List<String> shards = shardsOfGroups("group");
        assertNotEquals("1", shards.get(0), "the groups use several shards");
        assertEquals("1", shards.get(1), "each group uses one");
    }

    @ParameterizedTest
    @ValueSource(strings = {"client", "session"})
    void messagesOfASessionKeepTheirOrderWhateverTheirGroups(String order) throws Exception {
        assertEquals("1", shardsOfGroups(order).get(2));
    }

    @Test
    void higherPrioritiesComeFirst() throws Exception {
        Session session = connection.createSession();
        MessageProducer producer = session.createProducer(session.createQueue(name));
        for (int priority : new int[] {1, 9, 4}) {
            producer.send(session.createTextMessage("p" + priority), 2, priority, 0);
        }
        assertEquals(List.of("p9", "p4", "p1"), receive(session.createConsumer(session.createQueue(name)), 3));
    }

    @Test
    void rollbackRedeliversInOrder() throws Exception {
        Session session = connection.createSession(Session.SESSION_TRANSACTED);
        send(session, "a", "b", "c", "d");
        session.commit();
        MessageConsumer consumer = session.createConsumer(session.createQueue(name));
        assertEquals(List.of("a", "b", "c"), receive(consumer, 3));
        session.rollback();
        Message first = consumer.receive(SOON);
        assertEquals("a", ((TextMessage) first).getText());
        assertTrue(first.getJMSRedelivered());
        assertEquals(2, first.getIntProperty("JMSXDeliveryCount"));
        assertEquals(List.of("b", "c", "d"), receive(consumer, 3));
        session.commit();
        session.close();
        assertEquals("0", left(name));
    }

    /** The commit acknowledges the received message first, so that there is room for the one it sends. */
    @Test
    void aWorkerSendsBackIntoTheFullQueue() throws Exception {
        Session session = connection.createSession(Session.SESSION_TRANSACTED);
        send(session, "a");
        session.commit();
        execute("SELECT aq.alter_queue('" + name + "', max_depth => 1, on_full => 'error')");
        MessageConsumer consumer = session.createConsumer(session.createQueue(name));
        assertEquals(List.of("a"), receive(consumer, 1));
        send(session, "b");
        session.commit();
        assertEquals(List.of("b"), receive(consumer, 1));
        session.commit();
        assertEquals("0", left(name));
    }

    @Test
    void aFullQueueHasNoResource() throws Exception {
        execute("SELECT aq.alter_queue('" + name + "', max_depth => 1, on_full => 'error')");
        Session session = connection.createSession();
        send(session, "a");
        ResourceAllocationException error = assertThrows(ResourceAllocationException.class, () -> send(session, "b"));
        assertEquals("AQ053", error.getErrorCode());
        assertEquals("1", left(name));
    }

    /** The thread reads from a socket, which an interrupt does not end. */
    @Test
    void anInterruptEndsAWaitWithoutTimeLimit() throws Exception {
        Session session = connection.createSession();
        MessageConsumer consumer = session.createConsumer(session.createQueue(name));
        CompletableFuture<Object> result = new CompletableFuture<>();
        Thread thread = new Thread(() -> {
            try {
                result.complete(consumer.receive());
            } catch (JMSException e) {
                result.complete(Thread.interrupted() ? e : "the interrupt is lost");
            }
        });
        thread.start();
        awaitValue("t", "SELECT waiting > 0 FROM aq.subscribers WHERE queue_name = '" + name + "'");
        thread.interrupt();
        JMSException e = assertInstanceOf(JMSException.class, result.get(SAFETY_SECONDS, TimeUnit.SECONDS));
        assertInstanceOf(InterruptedException.class, e.getLinkedException());
        send(session, "a");
        assertEquals(List.of("a"), receive(consumer, 1));
    }

    /** Commits that go together do so on the connection of any of the sessions. */
    @ParameterizedTest
    @ValueSource(strings = {"client", "session"})
    void sessionsThatCommitAtTheSameTimeKeepTheirOrder(String order) throws Exception {
        reconnect(order);
        int sessions = 8;
        int each = 100;
        ExecutorService threads = Executors.newFixedThreadPool(sessions);
        try {
            List<Future<?>> senders = new ArrayList<>();
            for (int s = 0; s < sessions; s++) {
                int number = s;
                Session session = connection.createSession(Session.SESSION_TRANSACTED);
                senders.add(threads.submit(() -> {
                    for (int n = 0; n < each; n++) {
                        send(session, number + " " + n);
                        session.commit();
                    }
                    return null;
                }));
            }
            for (Future<?> sender : senders) {
                sender.get();
            }
        } finally {
            threads.shutdownNow();
        }
        Session session = connection.createSession();
        int[] next = new int[sessions];
        for (String text : receive(session.createConsumer(session.createQueue(name)), sessions * each)) {
            String[] parts = text.split(" ");
            assertEquals(next[Integer.parseInt(parts[0])]++, Integer.parseInt(parts[1]));
        }
    }

    @Test
    void recoverRedelivers() throws Exception {
        Session session = connection.createSession(Session.CLIENT_ACKNOWLEDGE);
        send(session, "a", "b", "c");
        MessageConsumer consumer = session.createConsumer(session.createQueue(name));
        assertEquals(List.of("a", "b"), receive(consumer, 2));
        session.recover();
        assertEquals(List.of("a", "b"), receive(consumer, 2));
        Message last = consumer.receive(SOON);
        assertFalse(last.getJMSRedelivered());
        last.acknowledge();
        session.close();
        assertEquals("0", left(name));
    }

    @Test
    void rowsAndMessagesCommitTogether() throws Exception {
        execute("CREATE TABLE IF NOT EXISTS jms_rows (value text)");
        PgaqSession session = connection.createSession(Session.SESSION_TRANSACTED);
        send(session, "in");
        session.commit();
        MessageConsumer consumer = session.createConsumer(session.createQueue(name));
        Connection jdbc = session.getConnection();
        for (int attempt = 0; attempt < 2; attempt++) {
            assertEquals(List.of("in"), receive(consumer, 1));
            try (Statement statement = jdbc.createStatement()) {
                statement.execute("INSERT INTO jms_rows VALUES ('" + name + "')");
            }
            send(session, "out");
            if (attempt == 0) {
                session.rollback();
                assertEquals("0", value("SELECT count(*) FROM jms_rows WHERE value = '" + name + "'"));
            } else {
                session.commit();
                assertEquals("1", value("SELECT count(*) FROM jms_rows WHERE value = '" + name + "'"));
            }
        }
        assertEquals(List.of("out"), receive(consumer, 1));
    }

    @Test
    void theConnectionOfASessionRefusesToEndItsTransaction() throws Exception {
        PgaqSession session = connection.createSession(Session.SESSION_TRANSACTED);
        Connection jdbc = session.getConnection();
        assertSame(jdbc, session.getConnection());
        assertEquals(jdbc, session.getConnection());
        for (Executable refused : List.<Executable>of(
                jdbc::commit,
                jdbc::rollback,
                jdbc::close,
                () -> jdbc.setAutoCommit(true),
                () -> jdbc.abort(Runnable::run))) {
            SQLException e = assertThrows(SQLException.class, refused);
            assertEquals("25000", e.getSQLState());
            assertTrue(e.getMessage().contains("is not allowed on the JDBC connection of a session"), e.getMessage());
        }
        java.sql.Savepoint savepoint = jdbc.setSavepoint();
        send(session, "undone");
        jdbc.rollback(savepoint);
        send(session, "a");
        SQLException own = assertThrows(
                SQLException.class,
                () -> jdbc.prepareStatement("SELECT FROM missing").execute());
        assertEquals("42P01", own.getSQLState());
        session.rollback();
        send(session, "b");
        session.commit();
        assertEquals("1", left(name));
        assertTrue(jdbc.isWrapperFor(org.postgresql.PGConnection.class));
    }

    @Test
    void withAutocommitOfTheCallerEachCallIsATransaction() throws Exception {
        try (Connection jdbc = connect();
                PgaqConnection own = factory.createConnection(jdbc)) {
            own.start();
            Session session = own.createSession();
            send(session, "a", "b");
            assertEquals("2", left(name));
            assertEquals(List.of("a"), receive(session.createConsumer(session.createQueue(name)), 1));
            assertEquals("1", left(name));
            assertTrue(jdbc.getAutoCommit());
        }
    }

    @Test
    void worksInTheCallersTransaction() throws Exception {
        try (Connection jdbc = connect()) {
            PgaqConnection own = factory.createConnection(jdbc);
            own.start();
            jdbc.setAutoCommit(false);
            Session session = own.createSession();
            send(session, "a");
            jdbc.rollback();
            send(session, "b");
            jdbc.commit();
            MessageConsumer consumer = session.createConsumer(session.createQueue(name));
            assertEquals(List.of("b"), receive(consumer, 1));
            jdbc.rollback();
            assertEquals(List.of("b"), receive(consumer, 1));
            jdbc.commit();
            own.close();
            assertFalse(jdbc.isClosed());
        }
        assertEquals("0", left(name));
    }

    @Test
    void closeWakesReceive() throws Exception {
        Session session = connection.createSession();
        MessageConsumer consumer = session.createConsumer(session.createQueue(name));
        CompletableFuture<Object> result = new CompletableFuture<>();
        new Thread(() -> {
                    try {
                        Message message = consumer.receive();
                        result.complete(message == null ? "null" : message);
                    } catch (JMSException e) {
                        result.complete(e);
                    }
                })
                .start();
        awaitListening();
        connection.close();
        assertEquals("null", result.get(SOON, TimeUnit.MILLISECONDS));
    }

    /** Waits until a session of this class waits for messages at the server. */
    private static void awaitListening() throws Exception {
        execute("DO $$ BEGIN FOR i IN 1..1000 LOOP PERFORM pg_stat_clear_snapshot(); "
                + "EXIT WHEN EXISTS (SELECT FROM pg_stat_activity WHERE application_name = 'pgaq-jms' "
                + "AND query LIKE '%receive%' AND state = 'active'); PERFORM pg_sleep(0.01); END LOOP; END $$");
    }

    @Test
    void listenersOfOneSessionTakeTurns() throws Exception {
        String other = newQueue();
        BlockingQueue<String> received = new LinkedBlockingQueue<>();
        Session session = connection.createSession();
        for (String queue : List.of(name, other)) {
            session.createConsumer(session.createQueue(queue)).setMessageListener(message -> {
                try {
                    received.add(queue + ((TextMessage) message).getText());
                } catch (JMSException e) {
                    received.add(e.toString());
                }
            });
        }
        Session sender = connection.createSession();
        for (String queue : List.of(name, other)) {
            sender.createProducer(sender.createQueue(queue)).send(sender.createTextMessage("1"));
            assertEquals(queue + "1", received.poll(SOON, TimeUnit.MILLISECONDS));
        }
        connection.stop();
        send(sender, "2");
        assertNull(received.poll());
        connection.start();
        assertEquals(name + "2", received.poll(SOON, TimeUnit.MILLISECONDS));
    }

    @Test
    void aKilledSessionsMessagesComeAgain() throws Exception {
        factory.setOption(PgaqOption.LEASE, "1000");
        Session session = connection.createSession();
        send(session, "a");
        PgaqConnection doomed = factory.createConnection();
        doomed.start();
        Session first = doomed.createSession(Session.CLIENT_ACKNOWLEDGE);
        assertEquals(List.of("a"), receive(first.createConsumer(first.createQueue(name)), 1));
        // neither acknowledged nor extended, as when the client is killed
        ((ClientConnection) doomed).keeper().close();
        Message again = session.createConsumer(session.createQueue(name)).receive(SOON);
        assertTrue(again.getJMSRedelivered());
        doomed.close();
    }

    @Test
    void aBackendThatIsTerminatedIsReplaced() throws Exception {
        factory.setOption(PgaqOption.RECONNECT_ATTEMPTS, "10").setOption(PgaqOption.RECONNECT_DELAY, "100");
        try (PgaqConnection own = factory.createConnection()) {
            own.start();
            BlockingQueue<String> received = new LinkedBlockingQueue<>();
            Session session = own.createSession();
            session.createConsumer(session.createQueue(name)).setMessageListener(message -> {
                try {
                    received.add(((TextMessage) message).getText());
                } catch (JMSException e) {
                    received.add(e.toString());
                }
            });
            awaitListening();
            execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'pgaq-jms' "
                    + "AND state = 'active' AND query LIKE '%receive%'");
            send(connection.createSession(), "a");
            assertEquals("a", received.poll(SOON, TimeUnit.MILLISECONDS));
        }
    }

    @Test
    void durableSubscriptions() throws Exception {
        String topicName = newTopic();
        try (PgaqConnection own = factory.createConnection()) {
            own.setClientID(newName("client"));
            own.start();
            Session session = own.createSession();
            Topic topic = session.createTopic(topicName);
            session.createDurableConsumer(topic, "s").close();
            session.createProducer(topic).send(session.createTextMessage("a"));
            MessageConsumer consumer = session.createDurableConsumer(topic, "s");
            assertEquals(List.of("a"), receive(consumer, 1));
            consumer.close();
            session.unsubscribe("s");
            assertThrows(InvalidDestinationException.class, () -> session.unsubscribe("s"));
        }
    }

    @Test
    void aSharedSubscriptionEndsWithTheLastConnectionThatIsKilled() throws Exception {
        String topicName = newTopic();
        String subscription = newName("shared");
        String pids = "SELECT %s FROM pg_locks WHERE locktype = 'advisory' AND (classid::bigint << 32 | objid::bigint) "
                + "= hashtextextended('pgaq.jms:subscription:shared-temporary:" + subscription + "', 0)";
        PgaqConnection first = factory.createConnection();
        first.createSession().createSharedConsumer(first.createSession().createTopic(topicName), subscription);
        String firstPid = value(String.format(pids, "pid"));
        PgaqConnection second = factory.createConnection();
        second.start();
        Session session = second.createSession();
        Topic topic = session.createTopic(topicName);
        MessageConsumer consumer = session.createSharedConsumer(topic, subscription);
        session.createProducer(topic).send(session.createTextMessage("a"));
        execute("SELECT pg_terminate_backend(" + firstPid + ")");
        awaitValue(
                "1",
                "SELECT count(*) FROM aq_internal.temporary t JOIN aq_internal.queue q USING (queue_id) "
                        + "WHERE q.queue_name = '" + topicName + "'");
        assertEquals(List.of("a"), receive(consumer, 1));
        execute(String.format(pids, "pg_terminate_backend(pid)"));
        awaitValue("0", "SELECT count(*) FROM aq.subscribers WHERE queue_name = '" + topicName + "'");
        second.close();
        first.close();
    }

    @Test
    void topicsGiveEachSubscriberItsOwn() throws Exception {
        Session session = connection.createSession();
        Topic topic = session.createTopic(newTopic());
        MessageConsumer one = session.createConsumer(topic);
        MessageConsumer other = session.createConsumer(topic);
        MessageConsumer foreign = session.createConsumer(topic, null, true);
        MessageConsumer shared = session.createSharedConsumer(topic, "s");
        session.createProducer(topic).send(session.createTextMessage("a"));
        for (MessageConsumer consumer : List.of(one, other, shared)) {
            assertEquals(List.of("a"), receive(consumer, 1));
        }
        assertNull(foreign.receiveNoWait());
        session.close();
        assertEquals(
                "0",
                value("SELECT count(*) FROM aq.subscribers WHERE queue_name = '" + topic.getTopicName()
                        + "' AND kind = 'subscriber'"));
    }

    /** Rows for queues and subscribers, and tables of the queue that holds a temporary one. */
    private static List<Integer> catalog(TemporaryQueue queue) throws Exception {
        String rows = value("SELECT (SELECT count(*) FROM aq_internal.queue) + (SELECT count(*) FROM aq_internal"
                + ".subscriber) + (SELECT count(*) FROM aq_internal.temporary)");
        String tables = value("SELECT count(*) FROM aq.partitions WHERE queue_name = '"
                + queue.getQueueName().replaceFirst("/.*", "") + "'");
        return List.of(Integer.valueOf(rows), Integer.valueOf(tables));
    }

    /** A request and its reply by a temporary queue, which is deleted then. */
    private TemporaryQueue requestAndReply(Session session, Session replier, MessageConsumer server) throws Exception {
        TemporaryQueue replies = session.createTemporaryQueue();
        MessageConsumer client = session.createConsumer(replies);
        TextMessage request = session.createTextMessage("request");
        request.setJMSReplyTo(replies);
        session.createProducer(session.createQueue(name)).send(request);
        Message received = server.receive(SOON);
        replier.createProducer(received.getJMSReplyTo()).send(replier.createTextMessage(replies.getQueueName()));
        assertEquals(List.of(replies.getQueueName()), receive(client, 1));
        client.close();
        replies.delete();
        return replies;
    }

    @Test
    void requestsAndRepliesLeaveNothing() throws Exception {
        requestsAndReplies(50);
    }

    @Test
    @Tag("long")
    @Timeout(600)
    void aThousandRequestsAndRepliesLeaveNothing() throws Exception {
        requestsAndReplies(1000);
    }

    private void requestsAndReplies(int count) throws Exception {
        Session session = connection.createSession();
        Session replier = connection.createSession();
        MessageConsumer server = replier.createConsumer(session.createQueue(name));
        TemporaryQueue replies = requestAndReply(session, replier, server);
        List<Integer> before = catalog(replies);
        for (int i = 0; i < count; i++) {
            replies = requestAndReply(session, replier, server);
        }
        List<Integer> after = catalog(replies);
        // those of connections that have ended can go meanwhile
        assertTrue(after.get(0) <= before.get(0), before + " " + after);
        assertEquals(before.get(1), after.get(1));
        assertTrue(before.get(1) > 0);
    }

    /** Sends to a temporary queue that another connection has ended, alone and in transactions. */
    private void sendsToWhatIsGone(Session alone, Session transacted, TemporaryQueue gone) throws Exception {
        InvalidDestinationException error = assertThrows(
                InvalidDestinationException.class,
                () -> alone.createProducer(null).send(gone, alone.createTextMessage("late")));
        assertEquals("42704", error.getErrorCode());
        MessageProducer producer = transacted.createProducer(null);
        producer.send(transacted.createQueue(name), transacted.createTextMessage("kept"));
        producer.send(gone, transacted.createTextMessage("late"));
        transacted.commit();
        assertEquals("1", left(name));
        assertEquals(List.of("kept"), receive(alone.createConsumer(alone.createQueue(name)), 1));
    }

    @Test
    void aSendToATemporaryQueueThatIsGoneFailsUnlessInATransaction() throws Exception {
        Session alone = connection.createSession();
        Session transacted = connection.createSession(Session.SESSION_TRANSACTED);
        TemporaryQueue closed;
        try (PgaqConnection requester = factory.createConnection()) {
            requester.start();
            Session session = requester.createSession();
            TemporaryQueue deleted = session.createTemporaryQueue();
            closed = session.createTemporaryQueue();
            for (TemporaryQueue queue : List.of(deleted, closed)) {
                alone.createProducer(queue).send(alone.createTextMessage("early"));
            }
            deleted.delete();
            sendsToWhatIsGone(alone, transacted, deleted);
            session.createProducer(closed).send(session.createTextMessage("own"));
            assertEquals(List.of("early", "own"), receive(session.createConsumer(closed), 2));
        }
        awaitValue(
                "0",
                "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objsubid > 2 AND "
                        + "(classid::bigint << 32 | objid::bigint) = hashtextextended('"
                        + closed.getQueueName() + "', 0)");
        sendsToWhatIsGone(alone, transacted, closed);
        ((PgaqSession) transacted).getConnection();
        sendsToWhatIsGone(alone, transacted, closed);
    }

    /** It knows the name of one from a request, and so those that follow. */
    /** The server believes the session only that the queue belongs to. */
    @Test
    void aStrangerCannotClaimTemporaryQueues() throws Exception {
        Session session = connection.createSession();
        TemporaryQueue deleted = session.createTemporaryQueue();
        deleted.delete();
        String gone = deleted.getQueueName();
        try (Connection stranger = connect();
                Statement statement = stranger.createStatement();
                PgaqConnection other = factory.createConnection()) {
            SQLException error = assertThrows(
                    SQLException.class,
                    () -> statement.execute("SELECT aq_jms.claim('" + gone.replaceFirst("/.*", "") + "', 1, 1)"));
            assertEquals("42704", error.getSQLState());
            statement.execute("SELECT pg_advisory_lock(hashtextextended('pgaq.jms:temporary:" + gone
                    + "', 0)), pg_advisory_lock(hashtextextended('" + gone + "', 0))");
            other.start();
            sendsToWhatIsGone(other.createSession(), other.createSession(Session.SESSION_TRANSACTED), deleted);
        }
    }

    @Test
    void messagesOfDeletedTemporaryQueuesAreConsumed() throws Exception {
        Session session = connection.createSession();
        List<TemporaryQueue> queues = new ArrayList<>();
        for (int i = 0; i < 60; i++) {
            queues.add(session.createTemporaryQueue());
        }
        String server = queues.get(0).getQueueName().replaceFirst("/.*", "");
        try (PgaqConnection other = factory.createConnection()) {
            Session replier = other.createSession();
            MessageProducer producer = replier.createProducer(null);
            producer.send(queues.get(0), replier.createTextMessage("kept"));
            for (TemporaryQueue queue : queues.subList(1, 32)) {
                producer.send(queue, replier.createTextMessage("early"));
                queue.delete();
            }
            // those beyond a number are not claimed, so that this is not known to the server
            producer.send(queues.get(31), replier.createTextMessage("late"));
            queues.get(32).delete();
        }
        assertEquals("1", left(server));
        assertEquals(List.of("kept"), receive(session.createConsumer(queues.get(0)), 1));
    }

    @Test
    void browsersTakeNothing() throws Exception {
        Session session = connection.createSession();
        send(session, "a", "b");
        try (QueueBrowser browser = session.createBrowser(session.createQueue(name))) {
            List<String> texts = new ArrayList<>();
            for (Object message : Collections.list((java.util.Enumeration<?>) browser.getEnumeration())) {
                texts.add(((TextMessage) message).getText());
            }
            assertEquals(List.of("a", "b"), texts);
        }
        assertEquals(List.of("a", "b"), receive(session.createConsumer(session.createQueue(name)), 2));
    }

    @Test
    void delayAndTimeToLive() throws Exception {
        Session session = connection.createSession();
        MessageProducer producer = session.createProducer(session.createQueue(name));
        producer.send(session.createTextMessage("short"), 2, 4, 1);
        producer.setDeliveryDelay(300);
        producer.send(session.createTextMessage("late"));
        MessageConsumer consumer = session.createConsumer(session.createQueue(name));
        long before = System.currentTimeMillis();
        Message late = consumer.receive(SOON);
        assertEquals("late", ((TextMessage) late).getText());
        assertTrue(late.getJMSDeliveryTime() <= System.currentTimeMillis());
        assertTrue(late.getJMSDeliveryTime() > before - 300);
    }

    @Test
    void errorsCarryTheSqlstate() throws Exception {
        Session session = connection.createSession();
        JMSException error = assertThrows(
                InvalidDestinationException.class, () -> session.createConsumer(session.createQueue("missing")));
        assertEquals("42704", error.getErrorCode());
        assertNotNull(error.getLinkedException());
        assertThrows(JMSSecurityException.class, () -> factory.createConnection("nobody", "wrong"));
    }

    @ParameterizedTest
    @CsvSource({"enqueue, true", "enqueue, false", "dequeue, true", "dequeue, false"})
    void aPrivilegeThatIsMissingIsASecurityException(String privilege, boolean transacted) throws Exception {
        String role = newName("role");
        execute("CREATE ROLE " + role + " LOGIN PASSWORD 'secret'");
        execute("SELECT aq.grant_queue('" + name + "', '" + role + "', '" + privilege + "')");
        send(connection.createSession(), "a");
        try (PgaqConnection limited = factory.createConnection(role, "secret")) {
            limited.start();
            Session session = limited.createSession(transacted, Session.CLIENT_ACKNOWLEDGE);
            JMSException error = assertThrows(JMSSecurityException.class, () -> {
                if (privilege.equals("enqueue")) {
                    session.createConsumer(session.createQueue(name)).receive(SOON);
                } else {
                    send(session, "b");
                }
            });
            assertTrue(error.getMessage().contains("permission denied for queue"), error.getMessage());
            execute("SELECT aq.grant_queue('" + name + "', '" + role + "', 'all')");
            send(session, "b");
        }
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void aReadOnlyTransactionRefusesToSendAndToReceive(boolean sends) throws Exception {
        try (Connection jdbc = connect()) {
            jdbc.setReadOnly(true);
            jdbc.setAutoCommit(false);
            try (PgaqConnection joined = factory.createConnection(jdbc)) {
                joined.start();
                Session session = joined.createSession();
                JMSException error = assertThrows(JMSException.class, () -> {
                    if (sends) {
                        send(session, "a");
                    } else {
                        session.createConsumer(session.createQueue(name)).receiveNoWait();
                    }
                });
                assertTrue(error.getMessage().contains("in a read-only transaction"), error.getMessage());
                assertEquals("25006", error.getErrorCode());
                jdbc.rollback();
            }
        }
    }

    @Test
    void aConnectionThatIsTakenOverEnds() throws Exception {
        String client = newName("client");
        PgaqConnectionFactory names = new PgaqConnectionFactory(url() + "&pgaq.clientId=" + client);
        PgaqConnectionFactory takes =
                new PgaqConnectionFactory(url() + "&pgaq.clientIdTakeover=true&pgaq.clientId=" + client);
        try (PgaqConnection old = names.createConnection()) {
            old.start();
            Session session = old.createSession(Session.CLIENT_ACKNOWLEDGE);
            send(session, "a", "b");
            Message first = session.createConsumer(session.createQueue(name)).receive(SOON);
            assertThrows(InvalidClientIDException.class, names::createConnection);
            try (PgaqConnection taker = takes.createConnection()) {
                taker.start();
                assertThrows(JMSException.class, first::acknowledge);
                Session other = taker.createSession();
                try (Connection jdbc = connect()) {
                    assertThrows(InvalidClientIDException.class, () -> takes.createConnection(jdbc));
                }
                assertEquals(List.of("a", "b"), receive(other.createConsumer(other.createQueue(name)), 2));
            }
        }
        assertEquals("0", left(name));
    }

    @Test
    void aConnectionOfAnotherRoleIsNotTakenOver() throws Exception {
        String client = newName("client");
        String role = newName("role");
        execute("CREATE ROLE " + role + " LOGIN PASSWORD 'secret'");
        PgaqConnectionFactory takes =
                new PgaqConnectionFactory(url() + "&pgaq.clientIdTakeover=true&pgaq.clientId=" + client);
        try (PgaqConnection old = takes.createConnection()) {
            assertThrows(JMSSecurityException.class, () -> takes.createConnection(role, "secret"));
            old.createSession();
        }
    }
}
