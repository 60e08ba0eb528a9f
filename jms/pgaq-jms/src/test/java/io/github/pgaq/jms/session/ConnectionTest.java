package io.github.pgaq.jms.session;

import static io.github.pgaq.jms.ServerTest.SAFETY_SECONDS;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.pgaq.jms.PgaqOption;
import io.github.pgaq.jms.PgaqQueue;
import io.github.pgaq.jms.PgaqTopic;
import io.github.pgaq.jms.store.Subscription;
import jakarta.jms.IllegalStateException;
import jakarta.jms.InvalidClientIDException;
import jakarta.jms.InvalidDestinationException;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.Queue;
import jakarta.jms.QueueSession;
import jakarta.jms.Session;
import jakarta.jms.TemporaryQueue;
import jakarta.jms.TextMessage;
import jakarta.jms.TopicSession;
import jakarta.jms.TransactionRolledBackException;
import java.util.List;
import java.util.Set;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Client identifiers, subscriptions, temporary destinations, lost connections. */
class ConnectionTest extends SessionFixture {
    private ClientConnection named(String id) throws JMSException {
        ClientConnection connection = connect();
        connection.setClientID(id);
        connection.start();
        return connection;
    }

    @Test
    void clientIdentifiers() throws Exception {
        ClientConnection one = named("one");
        assertEquals("one", one.getClientID());
        assertThrows(IllegalStateException.class, () -> one.setClientID("two"));
        ClientConnection other = connect();
        assertThrows(InvalidClientIDException.class, () -> other.setClientID("one"));
        assertThrows(InvalidClientIDException.class, () -> other.setClientID(""));
        other.createSession();
        assertThrows(IllegalStateException.class, () -> other.setClientID("two"));
        one.close();
        named("one");
        assertThrows(IllegalStateException.class, one::getClientID);
    }

    @Test
    void aPoolSetsAnExceptionListenerBeforeTheClientIdentifier() throws Exception {
        ClientConnection connection = connect();
        connection.setExceptionListener(reason -> {});
        connection.setClientID("one");
        assertEquals("one", connection.getClientID());
    }

    @Test
    void aSessionThatIsBeingOpenedIsTheOneOfACallersConnection() throws Exception {
        ClientConnection[] connection = new ClientConnection[1];
        connection[0] = new ClientConnection(
                () -> {
                    if (connection[0] != null) {
                        assertThrows(IllegalStateException.class, connection[0]::createSession);
                    }
                    return server.open();
                },
                options,
                true,
                null);
        connection[0].createSession().close();
        connection[0].createSession();
        connection[0].close();
    }

    @Test
    void theFactorysClientIdentifierCannotBeChanged() throws Exception {
        options = options.with(PgaqOption.CLIENT_ID, "one");
        ClientConnection connection = connect();
        assertThrows(IllegalStateException.class, () -> connection.setClientID("two"));
        assertThrows(InvalidClientIDException.class, this::connect);
    }

    @Test
    void closedConnectionsAndTheirSessionsRefuse() throws Exception {
        ClientConnection connection = started();
        Session session = connection.createSession();
        MessageProducer producer = session.createProducer(queue);
        MessageConsumer consumer = session.createConsumer(queue);
        Message message = session.createMessage();
        connection.close();
        connection.close();
        session.close();
        producer.close();
        consumer.close();
        assertThrows(IllegalStateException.class, connection::createSession);
        assertThrows(IllegalStateException.class, connection::start);
        assertThrows(IllegalStateException.class, session::createMessage);
        assertThrows(IllegalStateException.class, () -> producer.send(message));
        assertThrows(IllegalStateException.class, consumer::receive);
        assertTrue(server.stores.stream().allMatch(store -> store.closed));
    }

    @Test
    void durableSubscriptionsOutliveTheirConsumer() throws Exception {
        ClientConnection connection = named("c");
        Session session = connection.createSession();
        MessageConsumer consumer = session.createDurableConsumer(topic, "s");
        assertThrows(JMSException.class, () -> session.createDurableConsumer(topic, "s"));
        assertThrows(IllegalStateException.class, () -> session.unsubscribe("s"));
        consumer.close();
        session.createProducer(topic).send(session.createTextMessage("a"));
        MessageConsumer again = session.createDurableConsumer(topic, "s");
        assertEquals("a", text(again.receive()));
        again.close();
        session.unsubscribe("s");
        assertEquals(0, server.subscribers.size());
        assertThrows(InvalidDestinationException.class, () -> session.unsubscribe("s"));
    }

    @Test
    void anotherTopicChangesADurableSubscription() throws Exception {
        server.topic("u");
        Session session = named("c").createSession();
        session.createDurableConsumer(topic, "s").close();
        session.createDurableConsumer(new PgaqTopic("u"), "s");
        assertEquals("u", server.subscribers.get("c.s").topic());
    }

    @Test
    void aDurableSubscriptionRemainsIfItsSelectorIsTranslatedOtherwise() throws Exception {
        Session session = named("c").createSession();
        String selector = "a * 2 = 4 AND s <> '*/ \\'";
        session.createDurableConsumer(topic, "s", selector, false).close();
        Subscription made = server.subscribers.get("c.s");
        String rule = made.rule();
        assertTrue(rule.startsWith("/* selector: a \\u002a 2 = 4 AND s <> '\\u002a/ \\\\' */ "), rule);
        for (String there :
                List.of(rule.substring(0, rule.indexOf(" */ ") + 4) + "false", rule.split(" \\*/ ", 2)[1])) {
            server.subscribers.put("c.s", new Subscription(made.topic(), "c.s", there));
            session.createDurableConsumer(topic, "s", selector, false).close();
            assertEquals(there, server.subscribers.get("c.s").rule());
        }
        session.createDurableConsumer(topic, "s", selector, true).close();
        assertTrue(server.subscribers.get("c.s").rule().startsWith("/* selector, noLocal: "));
        session.createDurableConsumer(topic, "s", selector + " ", false).close();
        assertTrue(server.subscribers.get("c.s").rule().startsWith("/* selector: "));
        session.createDurableConsumer(topic, "s").close();
        assertNull(server.subscribers.get("c.s").rule());
    }

    @Test
    void aDurableSubscriptionNeedsAClientIdentifierUnlessShared() throws Exception {
        Session session = started().createSession();
        assertThrows(IllegalStateException.class, () -> session.createDurableConsumer(topic, "s"));
        MessageConsumer one = session.createSharedDurableConsumer(topic, "s");
        MessageConsumer other = started().createSession().createSharedDurableConsumer(topic, "s");
        session.createProducer(topic).send(session.createTextMessage("a"));
        assertEquals("a", text(other.receive()));
        assertNull(one.receiveNoWait());
        // in use elsewhere
        server.topic("u");
        assertThrows(JMSException.class, () -> session.createSharedDurableConsumer(new PgaqTopic("u"), "s"));
    }

    @Test
    void aSharedSubscriptionEndsWithItsLastConsumer() throws Exception {
        MessageConsumer one = started().createSession().createSharedConsumer(topic, "s");
        MessageConsumer other = started().createSession().createSharedConsumer(topic, "s");
        one.close();
        assertEquals(1, server.subscribers.size());
        other.close();
        assertEquals(0, server.subscribers.size());
    }

    @Test
    void aPlainSubscriptionEndsWithItsConsumer() throws Exception {
        Session session = started().createSession();
        MessageConsumer consumer = session.createConsumer(topic);
        assertEquals(1, server.subscribers.size());
        consumer.close();
        session.createConsumer(topic);
        session.close();
        assertEquals(0, server.subscribers.size());
    }

    @Test
    void noLocalLeavesOutTheMessagesOfTheConnection() throws Exception {
        Session session = started().createSession();
        MessageConsumer consumer = session.createConsumer(topic, null, true);
        session.createProducer(topic).send(session.createTextMessage("own"));
        Session other = started().createSession();
        other.createProducer(topic).send(other.createTextMessage("other"));
        assertEquals(List.of("other"), all(consumer));
    }

    @Test
    void temporaryQueuesShareOneQueueOfTheServer() throws Exception {
        ClientConnection connection = started();
        Session session = connection.createSession();
        TemporaryQueue one = session.createTemporaryQueue();
        TemporaryQueue other = session.createTemporaryQueue();
        assertEquals(1, server.count("createTemporary"));
        MessageConsumer ofOne = session.createConsumer(one);
        MessageConsumer ofOther = session.createConsumer(other);
        TextMessage request = session.createTextMessage("request");
        request.setJMSReplyTo(other);
        session.createProducer(queue).send(request);
        Session replier = started().createSession();
        Message received = replier.createConsumer(queue).receive();
        replier.createProducer(received.getJMSReplyTo()).send(replier.createTextMessage("reply"));
        assertNull(ofOne.receiveNoWait());
        assertEquals("reply", text(ofOther.receive()));
        assertThrows(InvalidDestinationException.class, () -> replier.createConsumer((Queue) received.getJMSReplyTo()));
        assertThrows(JMSException.class, other::delete);
        ofOther.close();
        other.delete();
        assertThrows(InvalidDestinationException.class, () -> session.createConsumer(other));
        assertThrows(InvalidDestinationException.class, () -> session.createProducer(other));
    }

    @Test
    void domainSessionsRefuseTheOtherDomain() throws Exception {
        ClientConnection connection = started();
        QueueSession queues = connection.createQueueSession(false, Session.AUTO_ACKNOWLEDGE);
        assertThrows(IllegalStateException.class, () -> queues.createTopic("t"));
        assertThrows(IllegalStateException.class, queues::createTemporaryTopic);
        assertThrows(IllegalStateException.class, () -> queues.unsubscribe("s"));
        TopicSession topics = connection.createTopicSession(false, Session.AUTO_ACKNOWLEDGE);
        assertThrows(IllegalStateException.class, () -> topics.createQueue("q"));
        assertThrows(IllegalStateException.class, () -> topics.createBrowser(queue));
        assertThrows(JMSException.class, () -> connection.createConnectionConsumer(queue, null, null, 1));
    }

    @Test
    void aLostConnectionIsReported() throws Exception {
        BlockingQueue<JMSException> reports = new LinkedBlockingQueue<>();
        ClientConnection connection = connect();
        connection.setExceptionListener(reports::add);
        connection.start();
        Session session = connection.createSession();
        MessageConsumer consumer = session.createConsumer(queue);
        server.kill(server.stores.get(1));
        assertThrows(JMSException.class, consumer::receive);
        assertThrows(JMSException.class, consumer::receive);
        assertTrue(reports.poll(SAFETY_SECONDS, TimeUnit.SECONDS).getErrorCode().startsWith("08"));
        assertTrue(reports.isEmpty());
    }

    @Test
    void aLostControlConnectionIsReported() throws Exception {
        BlockingQueue<JMSException> reports = new LinkedBlockingQueue<>();
        ClientConnection connection = connect();
        connection.setExceptionListener(reports::add);
        server.kill(server.stores.get(0));
        assertThrows(JMSException.class, () -> connection.control().ping());
        assertTrue(reports.poll(SAFETY_SECONDS, TimeUnit.SECONDS).getErrorCode().startsWith("08"));
    }

    /** Notes what the exception listener is told. */
    private static BlockingQueue<JMSException> reports(ClientConnection connection) throws JMSException {
        BlockingQueue<JMSException> reports = new LinkedBlockingQueue<>();
        connection.setExceptionListener(reports::add);
        return reports;
    }

    private static JMSException next(BlockingQueue<JMSException> reports) throws InterruptedException {
        return reports.poll(SAFETY_SECONDS, TimeUnit.SECONDS);
    }

    /** Fails if the listener is told of something else first. */
    private static void assertNoMore(BlockingQueue<JMSException> reports, ClientConnection connection)
            throws InterruptedException {
        JMSException last = new JMSException("the last report");
        connection.report(last);
        assertSame(last, next(reports));
    }

    @Test
    void anExceptionListenerThatHangsHasOneThread() throws Exception {
        ClientConnection connection = connect();
        BlockingQueue<JMSException> reports = new LinkedBlockingQueue<>();
        Set<Thread> threads = ConcurrentHashMap.newKeySet();
        CountDownLatch hangs = new CountDownLatch(1);
        Semaphore returns = new Semaphore(0);
        connection.setExceptionListener(problem -> {
            threads.add(Thread.currentThread());
            hangs.countDown();
            returns.acquireUninterruptibly();
            reports.add(problem);
            throw new java.lang.IllegalStateException("made to fail");
        });
        connection.report(new JMSException("0"));
        assertTrue(hangs.await(SAFETY_SECONDS, TimeUnit.SECONDS));
        long others = exceptionThreads();
        for (int i = 1; i < 200; i++) {
            connection.report(new JMSException(Integer.toString(i)));
        }
        assertEquals(others, exceptionThreads());
        returns.release(1000);
        // what comes while many wait is in the log
        for (int i = 0; i <= 100; i++) {
            assertEquals(Integer.toString(i), next(reports).getMessage());
        }
        assertNoMore(reports, connection);
        assertTrue(threads.size() <= 2, threads.toString());
    }

    private static long exceptionThreads() {
        return Thread.getAllStackTraces().keySet().stream()
                .filter(thread -> thread.getName().startsWith("pgaq-jms-exception-"))
                .count();
    }

    @ParameterizedTest
    @ValueSource(strings = {"0", "-1"})
    void aConnectionWithoutASessionFindsThatItIsLost(String attempts) throws Exception {
        options = options.with(PgaqOption.RECONNECT_ATTEMPTS, attempts).with(PgaqOption.LEASE, "1000");
        ClientConnection connection = connect();
        BlockingQueue<JMSException> reports = reports(connection);
        server.kill(server.stores.get(0));
        assertTrue(next(reports).getErrorCode().startsWith("08"));
        assertNoMore(reports, connection);
    }

    @ParameterizedTest
    @ValueSource(strings = {"0", "-1"})
    void whatEndsAllConnectionsToTheServerIsReportedOnce(String attempts) throws Exception {
        options = options.with(PgaqOption.RECONNECT_ATTEMPTS, attempts);
        ClientConnection connection = started();
        BlockingQueue<JMSException> reports = reports(connection);
        Session one = connection.createSession();
        MessageConsumer consumer = one.createConsumer(queue);
        connection.createSession().createConsumer(queue).setMessageListener(message -> {});
        server.awaitWaiting(1);
        List.copyOf(server.stores).forEach(server::kill);
        assertThrows(JMSException.class, consumer::receiveNoWait);
        if (attempts.equals("0")) {
            assertThrows(JMSException.class, () -> connection.control().ping());
            assertThrows(JMSException.class, consumer::receiveNoWait);
        } else {
            connection.control().ping();
            server.awaitWaiting(1);
        }
        assertTrue(next(reports).getErrorCode().startsWith("08"));
        assertNoMore(reports, connection);
    }

    @Test
    void eachLossOfAConnectionThatWorkedAgainIsReported() throws Exception {
        options = options.with(PgaqOption.RECONNECT_ATTEMPTS, "-1");
        ClientConnection connection = started();
        BlockingQueue<JMSException> reports = reports(connection);
        for (int i = 0; i < 3; i++) {
            server.kill(server.stores.get(i));
            connection.control().ping();
            assertTrue(next(reports).getErrorCode().startsWith("08"));
        }
        assertNoMore(reports, connection);
    }

    @ParameterizedTest
    @ValueSource(strings = {"42704", "42501"})
    void aQueueThatAListenerCannotUseIsNoLossOfTheConnection(String state) throws Exception {
        ClientConnection connection = started();
        BlockingQueue<JMSException> reports = reports(connection);
        BlockingQueue<Message> received = new LinkedBlockingQueue<>();
        server.fail("receive", state);
        server.text("q", "a");
        connection.createSession().createConsumer(queue).setMessageListener(received::add);
        assertEquals("a", text(received.poll(SAFETY_SECONDS, TimeUnit.SECONDS)));
        assertNoMore(reports, connection);
    }

    @Test
    void aTemporaryQueueCanBeDeletedAfterItsConnection() throws Exception {
        ClientConnection connection = started();
        TemporaryQueue one = connection.createSession().createTemporaryQueue();
        connection.close();
        one.delete();
        ClientConnection lost = started();
        TemporaryQueue other = lost.createSession().createTemporaryQueue();
        server.stores.forEach(server::kill);
        other.delete();
        other.delete();
    }

    @Test
    void aSessionConnectsAgainAtItsNextCall() throws Exception {
        options = options.with(PgaqOption.RECONNECT_ATTEMPTS, "3");
        server.text("q", "a", "b");
        Session session = started().createSession(Session.CLIENT_ACKNOWLEDGE);
        MessageConsumer consumer = session.createConsumer(queue);
        Message first = consumer.receive();
        server.kill(server.stores.get(1));
        assertThrows(JMSException.class, consumer::receive);
        // its lease has ended with the connection
        Message again = consumer.receive();
        assertEquals("a", text(again));
        assertTrue(again.getJMSRedelivered());
        assertEquals("b", text(consumer.receive()));
        JMSException late = assertThrows(JMSException.class, first::acknowledge);
        assertTrue(late.getMessage().contains("1 of 3"), late.getMessage());
        assertEquals(List.of(), server.texts("q"));
    }

    @Test
    void whatWasLeasedAheadFromALostConnectionIsForgotten() throws Exception {
        options = options.with(PgaqOption.RECONNECT_ATTEMPTS, "3");
        server.text("q", "a", "b", "c");
        ClientConnection connection = started();
        ClientSession session = connection.createSession(Session.SESSION_TRANSACTED);
        Consumer consumer = withTwoLeasedAhead(session);
        server.kill(server.stores.get(1));
        // another session gets what this one still has in its buffer
        Session other = connection.createSession();
        MessageConsumer taker = other.createConsumer(queue);
        assertEquals("a", text(taker.receive()));
        assertThrows(JMSException.class, () -> session.browse(consumer.source(1), null));
        assertThrows(TransactionRolledBackException.class, session::commit);
        assertEquals(List.of("b", "c"), all(consumer));
        session.commit();
        assertEquals(List.of(), server.texts("q"));
    }

    @Test
    void leasesThatHaveOutlivedTheConnectionAreGivenBack() throws Exception {
        options = options.with(PgaqOption.RECONNECT_ATTEMPTS, "3");
        server.text("q", "a", "b", "c");
        ClientSession session = started().createSession();
        Consumer consumer = withTwoLeasedAhead(session);
        // the server does not notice that the connection is lost
        server.messages.get("q").forEach(message -> message.leasedBy = null);
        server.kill(server.stores.get(1));
        assertThrows(JMSException.class, () -> session.browse(consumer.source(1), null));
        assertEquals(List.of("b", "c"), all(consumer));
        assertEquals(List.of(), server.texts("q"));
    }

    @Test
    void aQueueThatIsGoneDoesNotKeepASessionFromConnectingAgain() throws Exception {
        options = options.with(PgaqOption.RECONNECT_ATTEMPTS, "3");
        server.text("q", "a", "b");
        ClientSession session = started().createSession();
        Consumer consumer = (Consumer) session.createConsumer(queue);
        assertEquals("a", text(session.intake().receive(consumer, Deadline.NEVER, 2, message -> message)));
        server.kill(server.stores.get(1));
        server.fail("release", "42704");
        assertThrows(JMSException.class, () -> session.browse(consumer.source(1), null));
        assertEquals(List.of("b"), all(consumer));
    }

    @Test
    void aListenerGoesOnAfterReconnection() throws Exception {
        options = options.with(PgaqOption.RECONNECT_ATTEMPTS, "3");
        BlockingQueue<String> received = new LinkedBlockingQueue<>();
        started().createSession().createConsumer(queue).setMessageListener(message -> {
            try {
                received.add(text(message));
            } catch (JMSException e) {
                received.add(e.toString());
            }
        });
        server.awaitWaiting(1);
        server.kill(server.stores.get(1));
        server.text("q", "a");
        assertEquals("a", received.poll(SAFETY_SECONDS, TimeUnit.SECONDS));
    }

    @Test
    void aTransactionOfALostConnectionIsRolledBack() throws Exception {
        options = options.with(PgaqOption.RECONNECT_ATTEMPTS, "3");
        server.text("q", "a");
        ClientSession session = started().createSession(Session.SESSION_TRANSACTED);
        MessageConsumer consumer = session.createConsumer(queue);
        session.getConnection();
        consumer.receive();
        server.kill(server.stores.get(1));
        assertThrows(TransactionRolledBackException.class, session::commit);
        assertEquals("a", text(consumer.receive()));
        session.commit();
        assertEquals(List.of(), server.texts("q"));
    }

    @Test
    void theControlConnectionRestoresWhatBelongsToIt() throws Exception {
        options = options.with(PgaqOption.RECONNECT_ATTEMPTS, "3");
        ClientConnection connection = named("c");
        connection.createSession().createConsumer(topic);
        server.subscribers.clear();
        server.kill(server.stores.get(0));
        connection.control().ping();
        assertEquals(1, server.subscribers.size());
        assertThrows(InvalidClientIDException.class, () -> named("c"));
    }

    @Test
    void aClientIdentifierThatAnotherConnectionHasClaimedIsReported() throws Exception {
        options = options.with(PgaqOption.RECONNECT_ATTEMPTS, "2");
        BlockingQueue<JMSException> reports = new LinkedBlockingQueue<>();
        ClientConnection connection = named("c");
        connection.setExceptionListener(reports::add);
        Session session = connection.createSession();
        server.kill(server.stores.get(0));
        ClientConnection other = named("c");
        assertThrows(JMSException.class, () -> session.createDurableConsumer(topic, "s"));
        for (int i = 0; i < 2; i++) {
            JMSException reason = assertThrows(JMSException.class, () -> session.createDurableConsumer(topic, "s"));
            assertTrue(reason.getMessage().contains("client identifier \"c\" is in use"), reason.getMessage());
        }
        assertTrue(reports.take().getErrorCode().startsWith("08"));
        assertTrue(reports.take().getMessage().contains("client identifier \"c\" is in use"));
        assertTrue(reports.isEmpty());
        other.createSession().createDurableConsumer(topic, "s");
    }

    @Test
    void aSubscriptionThatAnotherConnectionHasClaimedIsReported() throws Exception {
        options = options.with(PgaqOption.RECONNECT_ATTEMPTS, "1");
        BlockingQueue<JMSException> reports = new LinkedBlockingQueue<>();
        ClientConnection connection = started();
        connection.setExceptionListener(reports::add);
        connection.createSession().createSharedDurableConsumer(topic, "s");
        server.kill(server.stores.get(0));
        assertTrue(server.open().claim("subscription:shared:s", false));
        assertThrows(JMSException.class, () -> connection.control().ping());
        assertTrue(reports.take().getErrorCode().startsWith("08"));
        assertTrue(reports.take().getMessage().contains("subscription \"shared:s\" is in use"));
    }

    @Test
    void attemptsWithoutLimitTellOfAClaimOnceAndGoOn() throws Exception {
        options = options.with(PgaqOption.RECONNECT_ATTEMPTS, "-1")
                .with(PgaqOption.RECONNECT_WAIT, "1")
                .with(PgaqOption.RECONNECT_DELAY, "5");
        BlockingQueue<JMSException> reports = new LinkedBlockingQueue<>();
        ClientConnection connection = named("c");
        connection.setExceptionListener(reports::add);
        Session session = connection.createSession();
        server.kill(server.stores.get(0));
        ClientConnection other = named("c");
        Future<Object> reconnection = async(() -> {
            connection.control().ping();
            return null;
        });
        assertTrue(reports.take().getErrorCode().startsWith("08"));
        assertTrue(reports.take().getMessage().contains("client identifier \"c\" is in use"));
        // another thread tries; this one does not wait for it
        JMSException lost = assertThrows(JMSException.class, () -> session.createConsumer(topic));
        assertTrue(lost.getMessage().contains("client identifier \"c\" is in use"), lost.getMessage());
        other.close();
        get(reconnection);
        session.createDurableConsumer(topic, "s");
        assertTrue(reports.isEmpty());
    }

    @Test
    void sessionsWaitWhileAnotherConnectionHasTheClientIdentifier() throws Exception {
        options = options.with(PgaqOption.RECONNECT_ATTEMPTS, "-1").with(PgaqOption.RECONNECT_DELAY, "5");
        ClientConnection connection = named("c");
        connection.start();
        BlockingQueue<String> listened = new LinkedBlockingQueue<>();
        connection
                .createSession()
                .createConsumer(queue)
                .setMessageListener(m -> Errors.unchecked(() -> {
                    listened.add(text(m));
                    return null;
                }));
        Session session = connection.createSession();
        MessageProducer producer = session.createProducer(queue);
        MessageConsumer consumer = session.createConsumer(new PgaqQueue("r"));
        Future<Message> received = async(consumer::receive);
        server.awaitWaiting(2);
        server.kill(server.stores.get(0));
        ClientConnection other = named("c");
        Future<Object> reconnection = async(() -> {
            connection.control().ping();
            return null;
        });
        assertTrue(assertThrows(ExecutionException.class, () -> get(received))
                .getMessage()
                .contains("client identifier \"c\" is in use"));
        server.awaitWaiting(0);
        server.text("q", "a");
        assertThrows(JMSException.class, consumer::receiveNoWait);
        assertThrows(JMSException.class, () -> producer.send(session.createMessage()));
        assertThrows(JMSException.class, () -> session.createBrowser(queue));
        assertTrue(listened.isEmpty());
        other.close();
        get(reconnection);
        assertEquals("a", listened.poll(SAFETY_SECONDS, TimeUnit.SECONDS));
        server.text("r", "b");
        assertEquals("b", text(consumer.receive()));
    }

    @Test
    void whatWasLeasedAheadGoesBackWhenTheClientIdentifierIsLost() throws Exception {
        options = options.with(PgaqOption.RECONNECT_ATTEMPTS, "1");
        server.text("q", "a", "b", "c");
        ClientConnection connection = named("c");
        connection.start();
        ClientSession session = connection.createSession(Session.CLIENT_ACKNOWLEDGE);
        Consumer consumer = (Consumer) session.createConsumer(queue);
        Message first = session.intake().receive(consumer, Deadline.NEVER, 3, message -> message);
        server.kill(server.stores.get(0));
        ClientConnection other = named("c");
        other.start();
        assertThrows(JMSException.class, () -> connection.control().ping());
        server.awaitCalls("release", 1);
        assertEquals(List.of("b", "c"), all(other.createSession().createConsumer(queue)));
        first.acknowledge();
        assertEquals(List.of(), server.texts("q"));
        assertThrows(JMSException.class, consumer::receiveNoWait);
    }

    @Test
    void sessionsEndWithTheControlConnection() throws Exception {
        BlockingQueue<JMSException> reports = new LinkedBlockingQueue<>();
        ClientConnection connection = named("c");
        connection.setExceptionListener(reports::add);
        connection.start();
        MessageConsumer consumer = connection.createSession().createConsumer(queue);
        server.kill(server.stores.get(0));
        assertThrows(JMSException.class, () -> connection.control().ping());
        server.text("q", "a");
        JMSException reason = assertThrows(JMSException.class, consumer::receiveNoWait);
        assertTrue(reason.getMessage().contains("connection to the server is lost"), reason.getMessage());
        assertTrue(reports.take().getMessage().contains("connection to the server is lost"));
        assertEquals(List.of("a"), all(started().createSession().createConsumer(queue)));
    }

    @ParameterizedTest
    @ValueSource(strings = {"0", "60"})
    void aCallWaitsForALostConnectionAsLongAsTheOptionsSay(String delay) throws Exception {
        options = options.with(PgaqOption.RECONNECT_ATTEMPTS, "-1")
                .with(PgaqOption.RECONNECT_WAIT, "20")
                .with(PgaqOption.RECONNECT_DELAY, delay);
        ClientConnection connection = started();
        Session session = connection.createSession();
        MessageConsumer consumer = session.createConsumer(queue);
        server.refusing = true;
        server.kill(server.stores.get(0));
        server.kill(server.stores.get(1));
        for (int i = 0; i < 3; i++) {
            assertThrows(JMSException.class, consumer::receive);
            assertThrows(JMSException.class, session::createTemporaryQueue);
        }
        server.refusing = false;
        server.text("q", "a");
        Message message = null;
        while (message == null) {
            try {
                message = consumer.receive();
            } catch (JMSException e) {
                assertTrue(e.getMessage().contains("tried again"), e.getMessage());
            }
        }
        assertEquals("a", text(message));
    }

    @Test
    void theLossOfTemporaryDestinationsIsReported() throws Exception {
        options = options.with(PgaqOption.RECONNECT_ATTEMPTS, "3");
        BlockingQueue<JMSException> reports = new LinkedBlockingQueue<>();
        ClientConnection connection = started();
        connection.setExceptionListener(reports::add);
        Session session = connection.createSession();
        Queue temporary = session.createTemporaryQueue();
        server.kill(server.stores.get(0));
        connection.control().ping();
        JMSException reason = reports.poll(SAFETY_SECONDS, TimeUnit.SECONDS);
        assertTrue(reason.getMessage().contains("1 temporary destinations"), reason.getMessage());
        assertThrows(InvalidDestinationException.class, () -> session.createConsumer(temporary));
        session.createConsumer(session.createTemporaryQueue());
    }

    @Test
    void closeEndsAReconnectionWithoutLimit() throws Exception {
        options = options.with(PgaqOption.RECONNECT_ATTEMPTS, "-1").with(PgaqOption.RECONNECT_DELAY, "3600000");
        ClientConnection connection = started();
        Session session = connection.createSession();
        CountDownLatch tried = new CountDownLatch(1);
        server.refusing = true;
        server.refused = tried::countDown;
        server.kill(server.stores.get(0));
        Future<Object> reconnection = async(() -> {
            connection.control().ping();
            return null;
        });
        tried.await();
        connection.close();
        assertThrows(ExecutionException.class, () -> get(reconnection));
        assertThrows(IllegalStateException.class, session::getTransacted);
    }

    @Test
    void aServerThatRefusesIsGivenUp() throws Exception {
        options = options.with(PgaqOption.RECONNECT_ATTEMPTS, "3");
        Session session = started().createSession();
        MessageConsumer consumer = session.createConsumer(queue);
        server.refusing = true;
        server.kill(server.stores.get(1));
        assertThrows(JMSException.class, consumer::receive);
        assertThrows(JMSException.class, consumer::receive);
        server.refusing = false;
        JMSException last = assertThrows(JMSException.class, consumer::receive);
        assertFalse(last instanceof IllegalStateException);
    }

    @Test
    void namesOfSubscribersDiffer() {
        Subscriptions.Kind durable = Subscriptions.Kind.DURABLE;
        assertEquals("c.s", Subscriptions.subscriber(durable, "c", "s"));
        assertEquals("a\\.b.c", Subscriptions.subscriber(durable, "a.b", "c"));
        assertEquals("a.b\\.c", Subscriptions.subscriber(durable, "a", "b.c"));
        assertEquals("shared:s", Subscriptions.subscriber(Subscriptions.Kind.SHARED_DURABLE, null, "s"));
        String one = Subscriptions.subscriber(durable, "c", "\u00e9".repeat(128) + "1");
        String other = Subscriptions.subscriber(durable, "c", "\u00e9".repeat(128) + "2");
        assertFalse(one.equals(other));
        assertTrue(one.getBytes(java.nio.charset.StandardCharsets.UTF_8).length <= 127);
    }

    @Test
    void aDurableSubscriptionIsSharedOrNot() throws Exception {
        Session session = named("c").createSession();
        session.createDurableConsumer(topic, "s").close();
        assertThrows(JMSException.class, () -> session.createSharedDurableConsumer(topic, "s"));
        session.unsubscribe("s");
        session.createSharedDurableConsumer(topic, "s").close();
        assertThrows(JMSException.class, () -> session.createDurableConsumer(topic, "s"));
        session.unsubscribe("s");
        assertEquals(0, server.subscribers.size());
    }

    @ParameterizedTest
    @ValueSource(strings = {"", "c"})
    void aSessionThatIsMadeWhileTheConnectionClosesIsClosed(String client) throws Exception {
        options = options.with(PgaqOption.CLIENT_ID, client);
        ClientConnection[] made = new ClientConnection[1];
        made[0] = new ClientConnection(
                () -> {
                    FakeStore store = server.open();
                    if (server.stores.size() > 1) {
                        Errors.unchecked(() -> made[0].close());
                    }
                    return store;
                },
                options,
                false,
                null);
        assertThrows(IllegalStateException.class, made[0]::createSession);
        assertTrue(server.stores.stream().allMatch(store -> store.closed), "each store is closed");
    }

    @Test
    void aSessionThatCannotBeOpenedIsNoLossOfItsOwn() throws Exception {
        ClientConnection connection = named("c");
        BlockingQueue<JMSException> reports = reports(connection);
        server.kill(server.stores.get(0));
        assertThrows(JMSException.class, () -> connection.control().ping());
        for (int i = 0; i < 3; i++) {
            assertThrows(JMSException.class, connection::createSession);
        }
        // after what was reported before
        connection.report(new JMSException("last"));
        assertTrue(next(reports).getErrorCode().startsWith("08"));
        assertEquals("last", next(reports).getMessage());
    }

    @Test
    void aSessionThatCannotBeOpenedKeepsNoConnection() throws Exception {
        options = options.with(PgaqOption.RECONNECT_ATTEMPTS, "-1")
                .with(PgaqOption.RECONNECT_WAIT, "1")
                .with(PgaqOption.RECONNECT_DELAY, "5");
        ClientConnection connection = named("c");
        server.kill(server.stores.get(0));
        ClientConnection other = named("c");
        for (int i = 0; i < 3; i++) {
            assertThrows(JMSException.class, connection::createSession);
        }
        assertEquals(1, server.stores.stream().filter(store -> !store.closed).count());
        other.close();
        connection.control().ping();
        connection.createSession();
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void threadsLetTheProgramEndUnlessTheOptionsSayNo(boolean daemon) throws Exception {
        options = options.with(PgaqOption.DAEMON_THREADS, Boolean.toString(daemon));
        server.text("q", "a");
        BlockingQueue<Thread> threads = new LinkedBlockingQueue<>();
        started()
                .createSession()
                .createConsumer(queue)
                .setMessageListener(message -> threads.add(Thread.currentThread()));
        assertEquals(daemon, threads.poll(SAFETY_SECONDS, TimeUnit.SECONDS).isDaemon());
    }

    @ParameterizedTest
    @ValueSource(strings = {"0", "-1"})
    void aConnectionThatIsTakenOverNeitherAcknowledgesNorReceives(String attempts) throws Exception {
        options = options.with(PgaqOption.RECONNECT_ATTEMPTS, attempts)
                .with(PgaqOption.RECONNECT_WAIT, "1")
                .with(PgaqOption.RECONNECT_DELAY, "5");
        server.text("q", "a", "b", "c");
        ClientConnection old = named("c");
        BlockingQueue<JMSException> reports = reports(old);
        ClientSession session = old.createSession(Session.CLIENT_ACKNOWLEDGE);
        Consumer consumer = (Consumer) session.createConsumer(queue);
        Message first = session.intake().receive(consumer, Deadline.NEVER, 2, message -> message);
        options = options.with(PgaqOption.CLIENT_ID_TAKEOVER, "true");
        ClientConnection other = named("c");
        assertThrows(JMSException.class, first::acknowledge);
        for (int i = 0; i < 2; i++) {
            assertThrows(JMSException.class, consumer::receiveNoWait);
            assertThrows(JMSException.class, old::createSession);
        }
        assertEquals(List.of("a", "b", "c"), server.texts("q"));
        assertEquals(List.of("a", "b", "c"), all(other.createSession().createConsumer(queue)));
        assertTrue(next(reports).getErrorCode().startsWith("08"));
        // the one that was taken over does not take it back
        assertEquals("c", other.getClientID());
        other.createSession();
    }

    @Test
    void aProcessThatWasStoppedFindsThatItIsTakenOverBeforeItDelivers() throws Exception {
        server.text("q", "a", "b");
        ClientConnection old = named("c");
        ClientSession session = old.createSession();
        Consumer consumer = (Consumer) session.createConsumer(queue);
        assertEquals("a", text(session.intake().receive(consumer, Deadline.NEVER, 2, message -> message)));
        options = options.with(PgaqOption.CLIENT_ID_TAKEOVER, "true");
        ClientConnection other = named("c");
        old.control().staleNanos = -1;
        assertThrows(JMSException.class, consumer::receiveNoWait);
        assertTrue(all(other.createSession().createConsumer(queue)).contains("b"));
    }

    @Test
    void sessionsThatOutliveTheirControlConnectionAreTakenOver() throws Exception {
        ClientConnection old = named("c");
        Session session = old.createSession();
        server.kill(server.stores.get(0));
        options = options.with(PgaqOption.CLIENT_ID_TAKEOVER, "true");
        named("c");
        assertThrows(JMSException.class, () -> session.createProducer(queue).send(session.createMessage()));
        assertTrue(server.stores.get(1).dead);
    }

    @Test
    void aSessionThatATakeoverWouldNotFindIsNotOpened() throws Exception {
        ClientConnection named = named("c");
        FakeStore stranger = server.open();
        assertTrue(stranger.claim("session:c", false));
        assertThrows(JMSException.class, named::createSession);
        stranger.unclaim("session:c", false);
        named.createSession();
    }
}
