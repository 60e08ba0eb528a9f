package io.github.pgaq.jms.conformance;

import jakarta.jms.Connection;
import jakarta.jms.ConnectionFactory;
import jakarta.jms.ConnectionMetaData;
import jakarta.jms.ExceptionListener;
import jakarta.jms.IllegalStateException;
import jakarta.jms.InvalidClientIDException;
import jakarta.jms.JMSException;
import jakarta.jms.JMSSecurityException;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.Queue;
import jakarta.jms.QueueBrowser;
import jakarta.jms.Session;
import jakarta.jms.TextMessage;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Future;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Test;

/** Connections: client identifiers, start, stop, close, metadata, exception listeners. */
@Spec("6.1")
class ConnectionTest extends ConformanceTest {
    // ---- creation ---------------------------------------------------------------------------------------------

    @Test
    @Spec("6.1.1")
    void userAndPasswordAreAccepted() throws JMSException {
        Connection c = closeLater(provider()
                .connectionFactory()
                .createConnection(provider().user(), provider().password()));
        works("createSession() after createConnection(user, password)", c::createSession);
    }

    @Test
    @Spec({"6.1.1", "10.3"})
    void wrongPasswordIsRefused() {
        Assumptions.assumeTrue(provider().checksPasswords(), "the server trusts every password");
        fails(
                JMSSecurityException.class,
                "createConnection with a wrong password",
                () -> closeLater(provider()
                                .connectionFactory()
                                .createConnection(provider().user(), "wrong"))
                        .createSession());
    }

    @Test
    @Spec("2.14")
    void factoryIsUsedByManyThreads() throws Exception {
        ConnectionFactory factory = provider().connectionFactory();
        List<Future<Connection>> threads = List.of(
                thread(factory::createConnection),
                thread(factory::createConnection),
                thread(factory::createConnection));
        for (Future<Connection> thread : threads) {
            closeLater(result("createConnection() in a thread", thread)).createSession();
        }
    }

    @Test
    @Spec("2.14")
    void connectionCreatesSessionsInManyThreads() throws Exception {
        Connection c = connection();
        List<Future<Session>> threads =
                List.of(thread(c::createSession), thread(c::createSession), thread(c::createSession));
        for (Future<Session> thread : threads) {
            result("createSession() in a thread", thread).createTextMessage("a");
        }
    }

    // ---- client identifier ------------------------------------------------------------------------------------

    @Test
    @Spec("6.1.2")
    void clientIdIsReturned() throws JMSException {
        Connection c = connectStopped();
        String id = unique("client");
        c.setClientID(id);
        equal("getClientID()", id, c.getClientID());
    }

    @Test
    @Spec("6.1.2")
    void clientIdIsNullUnlessSet() throws JMSException {
        isNull(
                "getClientID() of a connection without client identifier",
                connectStopped().getClientID());
    }

    @Test
    @Spec("6.1.2")
    void clientIdIsRefusedAfterCreateSession() throws JMSException {
        Connection c = connectStopped();
        c.createSession();
        fails(IllegalStateException.class, "setClientID() after createSession()", () -> c.setClientID(unique("c")));
    }

    @Test
    @Spec("6.1.2")
    void clientIdIsRefusedAfterStart() throws JMSException {
        Connection c = connect();
        fails(IllegalStateException.class, "setClientID() after start()", () -> c.setClientID(unique("c")));
    }

    @Test
    @Spec("6.1.2")
    void clientIdIsRefusedASecondTime() throws JMSException {
        Connection c = connectStopped();
        c.setClientID(unique("c"));
        fails(IllegalStateException.class, "a second setClientID()", () -> c.setClientID(unique("c")));
    }

    @Test
    @Spec("6.1.2")
    void configuredClientIdIsSet() throws JMSException {
        String id = unique("client");
        ConnectionFactory factory = provider().connectionFactory(id);
        Assumptions.assumeTrue(factory != null, "the provider has no configured client identifiers");
        equal("getClientID()", id, closeLater(factory.createConnection()).getClientID());
    }

    @Test
    @Spec("6.1.2")
    void configuredClientIdCannotBeChanged() throws JMSException {
        ConnectionFactory factory = provider().connectionFactory(unique("client"));
        Assumptions.assumeTrue(factory != null, "the provider has no configured client identifiers");
        Connection c = closeLater(factory.createConnection());
        fails(
                IllegalStateException.class,
                "setClientID() of a connection with a configured identifier",
                () -> c.setClientID(unique("c")));
    }

    @Test
    @Spec({"6.1.2", "10.3"})
    void clientIdInUseIsRefused() throws JMSException {
        String id = unique("client");
        connectStopped().setClientID(id);
        Connection second = connectStopped();
        fails(InvalidClientIDException.class, "setClientID() with an identifier in use", () -> second.setClientID(id));
    }

    @Test
    @Spec("6.1.2")
    void clientIdIsFreeAfterClose() throws JMSException {
        String id = unique("client");
        Connection first = connectStopped();
        first.setClientID(id);
        first.close();
        works(
                "setClientID() with the identifier of a closed connection",
                () -> connectStopped().setClientID(id));
    }

    // ---- start and stop ---------------------------------------------------------------------------------------

    @Test
    @Spec("6.1.4")
    void newConnectionIsStopped() throws JMSException {
        Queue queue = queue();
        send(queue, "a");
        quiet(
                "a connection that was not started",
                connectStopped().createSession().createConsumer(queue));
    }

    @Test
    @Spec("6.1.4")
    void newConnectionCallsNoListener() throws Exception {
        Queue queue = queue();
        send(queue, "a");
        Connection c = connectStopped();
        BlockingQueue<Message> received = new LinkedBlockingQueue<>();
        c.createSession().createConsumer(queue).setMessageListener(received::add);
        Thread.sleep(QUIET);
        yes("a listener of a connection that was not started must not be called", received.isEmpty());
        c.start();
        next("the message after start()", received);
    }

    @Test
    @Spec("6.1.4")
    void stoppedConnectionSends() throws JMSException {
        Queue queue = queue();
        Session s = connectStopped().createSession();
        s.createProducer(queue).send(s.createTextMessage("a"));
        equal(
                "the message sent by a connection that was not started",
                "a",
                text(session().createConsumer(queue)));
    }

    @Test
    @Spec("6.1.5")
    void stoppedConnectionDoesNotReceive() throws JMSException {
        Queue queue = queue();
        Connection c = connect();
        MessageConsumer consumer = c.createSession().createConsumer(queue);
        c.stop();
        send(queue, "a");
        quiet("a stopped connection", consumer);
    }

    @Test
    @Spec("6.1.5")
    void receiveNoWaitOfAStoppedConnectionReturnsNull() throws JMSException {
        Queue queue = queue();
        send(queue, "a");
        Connection c = connect();
        MessageConsumer consumer = c.createSession().createConsumer(queue);
        c.stop();
        nothing("a stopped connection", consumer);
    }

    @Test
    @Spec("6.1.5")
    void receiveWithTimeoutEndsInAStoppedConnection() throws JMSException {
        Connection c = connectStopped();
        MessageConsumer consumer = c.createSession().createConsumer(queue());
        long before = clock();
        isNull("receive(100) of a stopped connection", consumer.receive(100));
        yes("receive(100) must not return at once", clock() - before >= 90);
    }

    @Test
    @Spec("6.1.5")
    void blockedReceiveReturnsAMessageAfterStart() throws Exception {
        Queue queue = queue();
        send(queue, "a");
        Connection c = connectStopped();
        MessageConsumer consumer = c.createSession().createConsumer(queue);
        Future<Message> receive = thread(() -> consumer.receive(WAIT));
        pending("receive() of a stopped connection", receive);
        c.start();
        equal("the message", "a", ((TextMessage) result("receive()", receive)).getText());
    }

    @Test
    @Spec("6.1.5")
    void stopDuringReceiveHoldsTheMessageBack() throws Exception {
        Queue queue = queue();
        Connection c = connect();
        MessageConsumer consumer = c.createSession().createConsumer(queue);
        Future<Message> receive = thread(() -> consumer.receive(WAIT));
        pending("receive() of an empty queue", receive);
        c.stop();
        send(queue, "a");
        pending("receive() after stop()", receive);
        c.start();
        equal("the message after start()", "a", ((TextMessage) result("receive()", receive)).getText());
    }

    @Test
    @Spec("6.1.5")
    void restartedConnectionReceives() throws JMSException {
        Queue queue = queue();
        Connection c = connect();
        MessageConsumer consumer = c.createSession().createConsumer(queue);
        c.stop();
        send(queue, "a");
        c.start();
        equal("the message after a restart", "a", text(consumer));
    }

    @Test
    @Spec("6.1.5")
    void stopAndStartAreIdempotent() throws JMSException {
        Connection c = connect();
        works("a second start()", c::start);
        c.stop();
        works("a second stop()", c::stop);
    }

    @Test
    @Spec("6.1.5")
    void stopWaitsForRunningListeners() throws Exception {
        waitsForRunningListeners("stop()", Connection::stop);
    }

    @Test
    @Spec("6.1.5")
    void listenerCanUseItsSessionDuringStop() throws Exception {
        listenerCanUseItsSessionDuring("stop()", Connection::stop);
    }

    @Test
    @Spec("6.1.5")
    void noListenerIsCalledAfterStop() throws Exception {
        Queue queue = queue();
        Connection c = connect();
        BlockingQueue<Message> received = new LinkedBlockingQueue<>();
        c.createSession().createConsumer(queue).setMessageListener(received::add);
        send(queue, "a");
        next("the first message", received);
        c.stop();
        send(queue, "b");
        Thread.sleep(QUIET);
        yes("no listener must be called after stop()", received.isEmpty());
        c.start();
        next("the second message after start()", received);
    }

    @Test
    @Spec("6.1.5")
    void stopInAListenerFailsOrStops() throws Exception {
        Queue queue = queue();
        Connection c = connectStopped();
        BlockingQueue<Object> results = new LinkedBlockingQueue<>();
        c.createSession().createConsumer(queue).setMessageListener(message -> {
            try {
                c.stop();
                results.add("stopped");
            } catch (Throwable e) {
                results.add(e);
            }
        });
        c.start();
        send(queue, "a");
        Object result = next("the end of stop() in a listener", results);
        yes(
                "stop() in a listener must stop or throw IllegalStateException, but: " + result,
                result.equals("stopped") || result instanceof IllegalStateException);
    }

    /** stop() or close(). */
    private interface ConnectionCall {
        void on(Connection c) throws JMSException;
    }

    private void waitsForRunningListeners(String call, ConnectionCall end) throws Exception {
        Queue queue = queue();
        Connection c = connectStopped();
        CountDownLatch entered = new CountDownLatch(1);
        CountDownLatch release = new CountDownLatch(1);
        AtomicBoolean returned = new AtomicBoolean();
        c.createSession().createConsumer(queue).setMessageListener(message -> {
            entered.countDown();
            await(release);
            returned.set(true);
        });
        c.start();
        send(queue, "a");
        happens("the call of the listener", entered);
        Future<Boolean> ended = thread(() -> {
            end.on(c);
            return returned.get();
        });
        pending(call + " while a listener runs", ended);
        release.countDown();
        yes(call + " must return after the listener", result(call, ended));
    }

    private void listenerCanUseItsSessionDuring(String call, ConnectionCall end) throws Exception {
        Queue queue = queue();
        Queue answers = queue();
        Connection c = connectStopped();
        Session s = c.createSession();
        MessageProducer producer = s.createProducer(answers);
        CountDownLatch entered = new CountDownLatch(1);
        CountDownLatch release = new CountDownLatch(1);
        s.createConsumer(queue).setMessageListener(message -> {
            entered.countDown();
            await(release);
            unchecked(() -> producer.send(s.createTextMessage("answer")));
        });
        c.start();
        send(queue, "a");
        happens("the call of the listener", entered);
        Future<?> ended = thread(() -> {
            end.on(c);
            return null;
        });
        pending(call + " while a listener runs", ended);
        release.countDown();
        result(call, ended);
        equal(
                "the message that the listener sent during " + call,
                "answer",
                text(session().createConsumer(answers)));
    }

    static void await(CountDownLatch latch) {
        try {
            latch.await(WAIT, java.util.concurrent.TimeUnit.MILLISECONDS);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    static void unchecked(org.junit.jupiter.api.function.Executable action) {
        try {
            action.execute();
        } catch (Throwable e) {
            throw new RuntimeException(e);
        }
    }

    // ---- metadata ---------------------------------------------------------------------------------------------

    @Test
    @Spec("6.1.6")
    void metadataNameTheVersionOfTheSpecification() throws JMSException {
        ConnectionMetaData data = connection().getMetaData();
        yes("getJMSMajorVersion() must be 2 or more", data.getJMSMajorVersion() >= 2);
        equal("getJMSVersion()", data.getJMSMajorVersion() + "." + data.getJMSMinorVersion(), data.getJMSVersion());
    }

    @Test
    @Spec("6.1.6")
    void metadataNameTheProvider() throws JMSException {
        ConnectionMetaData data = connection().getMetaData();
        no(
                "getJMSProviderName() must not be empty",
                present("its name", data.getJMSProviderName()).isEmpty());
        no(
                "getProviderVersion() must not be empty",
                present("its version", data.getProviderVersion()).isEmpty());
    }

    @Test
    @Spec({"6.1.6", "3.5.9"})
    void metadataListTheMandatoryProperties() throws JMSException {
        List<?> names = Collections.list(connection().getMetaData().getJMSXPropertyNames());
        yes("getJMSXPropertyNames() must have JMSXGroupID, but is " + names, names.contains("JMSXGroupID"));
        yes("getJMSXPropertyNames() must have JMSXGroupSeq, but is " + names, names.contains("JMSXGroupSeq"));
        yes("getJMSXPropertyNames() must have JMSXDeliveryCount, but is " + names, names.contains("JMSXDeliveryCount"));
    }

    // ---- exception listener -----------------------------------------------------------------------------------

    @Test
    @Spec("6.1.7")
    void exceptionListenerIsNullUnlessSet() throws JMSException {
        isNull("getExceptionListener()", connection().getExceptionListener());
    }

    @Test
    @Spec("6.1.7")
    void exceptionListenerIsReturned() throws JMSException {
        ExceptionListener listener = e -> {};
        connection().setExceptionListener(listener);
        equal("getExceptionListener()", listener, connection().getExceptionListener());
    }

    @Test
    @Spec("6.1.7")
    void exceptionListenerCanBeRemoved() throws JMSException {
        connection().setExceptionListener(e -> {});
        connection().setExceptionListener(null);
        isNull("getExceptionListener() after it was removed", connection().getExceptionListener());
    }

    @Test
    @Spec("6.1.7")
    void exceptionListenerLearnsOfALostConnection() throws Exception {
        Connection c = connect();
        BlockingQueue<JMSException> errors = new LinkedBlockingQueue<>();
        c.createSession().createConsumer(queue());
        c.setExceptionListener(errors::add);
        Assumptions.assumeTrue(provider().kill(c), "the provider has no way to break a connection");
        next("the call of the exception listener after the connection broke", errors);
    }

    @Test
    @Spec("6.1.7")
    void exceptionThrownByACallDoesNotReachTheExceptionListener() throws Exception {
        Connection c = connect();
        BlockingQueue<JMSException> errors = new LinkedBlockingQueue<>();
        c.setExceptionListener(errors::add);
        Session s = c.createSession();
        fails(IllegalStateException.class, "commit() of a session that is not transacted", s::commit);
        yes("an exception thrown by a call must not reach the exception listener", errors.isEmpty());
    }

    // ---- close ------------------------------------------------------------------------------------------------

    private Connection closed() throws JMSException {
        Connection c = connect();
        c.close();
        return c;
    }

    @Test
    @Spec("6.1.8")
    void closeIsIdempotent() throws JMSException {
        Connection c = closed();
        works("close() of a closed connection", c::close);
    }

    @Test
    @Spec("6.1.8")
    void closedConnectionRefusesEachMethod() throws JMSException {
        Connection c = closed();
        Class<IllegalStateException> error = IllegalStateException.class;
        fails(error, "createSession() of a closed connection", c::createSession);
        fails(error, "createSession(false, AUTO) of a closed connection", () -> c.createSession(false, AUTO));
        fails(error, "createSession(AUTO) of a closed connection", () -> c.createSession(AUTO));
        fails(error, "start() of a closed connection", c::start);
        fails(error, "stop() of a closed connection", c::stop);
        fails(error, "getClientID() of a closed connection", c::getClientID);
        fails(error, "setClientID() of a closed connection", () -> c.setClientID(unique("c")));
        fails(error, "getMetaData() of a closed connection", c::getMetaData);
        fails(error, "getExceptionListener() of a closed connection", c::getExceptionListener);
        fails(error, "setExceptionListener() of a closed connection", () -> c.setExceptionListener(null));
    }

    @Test
    @Spec("6.1.8")
    void closeClosesSessions() throws JMSException {
        Connection c = connect();
        Session s = c.createSession();
        c.close();
        fails(IllegalStateException.class, "createTextMessage() after its connection was closed", s::createTextMessage);
    }

    @Test
    @Spec("6.1.8")
    void closeClosesProducers() throws JMSException {
        Connection c = connect();
        Session s = c.createSession();
        MessageProducer producer = s.createProducer(queue());
        Message message = s.createMessage();
        c.close();
        fails(IllegalStateException.class, "send() after the connection was closed", () -> producer.send(message));
    }

    @Test
    @Spec("6.1.8")
    void closeClosesConsumers() throws JMSException {
        Connection c = connect();
        MessageConsumer consumer = c.createSession().createConsumer(queue());
        c.close();
        fails(IllegalStateException.class, "receiveNoWait() after the connection was closed", consumer::receiveNoWait);
    }

    @Test
    @Spec("6.1.8")
    void closeClosesBrowsers() throws JMSException {
        Connection c = connect();
        QueueBrowser browser = c.createSession().createBrowser(queue());
        c.close();
        fails(IllegalStateException.class, "getEnumeration() after the connection was closed", browser::getEnumeration);
    }

    @Test
    @Spec("6.1.8")
    void closeOfPartsOfAClosedConnectionIsIgnored() throws JMSException {
        Connection c = connect();
        Session s = c.createSession();
        MessageProducer producer = s.createProducer(queue());
        MessageConsumer consumer = s.createConsumer(queue());
        c.close();
        works("close() of a consumer of a closed connection", consumer::close);
        works("close() of a producer of a closed connection", producer::close);
        works("close() of a session of a closed connection", s::close);
    }

    @Test
    @Spec("6.1.8")
    void closeEndsABlockedReceive() throws Exception {
        Connection c = connect();
        MessageConsumer consumer = c.createSession().createConsumer(queue());
        Future<Message> receive = thread(() -> consumer.receive());
        pending("receive() of an empty queue", receive);
        c.close();
        isNull("receive() ended by the close of its connection", result("receive()", receive));
    }

    @Test
    @Spec("6.1.8")
    void closeWaitsForRunningListeners() throws Exception {
        waitsForRunningListeners("close()", Connection::close);
    }

    @Test
    @Spec("6.1.8")
    void listenerCanUseItsSessionDuringClose() throws Exception {
        listenerCanUseItsSessionDuring("close()", Connection::close);
    }

    @Test
    @Spec("6.1.8")
    void closeInAListenerFailsOrCloses() throws Exception {
        Queue queue = queue();
        Connection c = connectStopped();
        BlockingQueue<Object> results = new LinkedBlockingQueue<>();
        c.createSession().createConsumer(queue).setMessageListener(message -> {
            try {
                c.close();
                results.add("closed");
            } catch (Throwable e) {
                results.add(e);
            }
        });
        c.start();
        send(queue, "a");
        Object result = next("the end of close() in a listener", results);
        yes(
                "close() in a listener must close or throw IllegalStateException, but: " + result,
                result.equals("closed") || result instanceof IllegalStateException);
    }

    @Test
    @Spec("6.1.8")
    void closeRollsTransactionsBack() throws JMSException {
        Queue queue = queue();
        Connection c = connect();
        Session s = c.createSession(TRANSACTED);
        s.createProducer(queue).send(s.createTextMessage("not committed"));
        c.close();
        send(queue, "marker");
        equal(
                "the first message after the close of a transaction",
                "marker",
                text(session().createConsumer(queue)));
    }

    @Test
    @Spec("6.1.8")
    void closeGivesMessagesOfATransactionBack() throws JMSException {
        Queue queue = queue();
        send(queue, "a");
        Connection c = connect();
        text(c.createSession(TRANSACTED).createConsumer(queue));
        c.close();
        equal("the message of the transaction", "a", text(session().createConsumer(queue)));
    }

    @Test
    @Spec("6.1.8")
    void closeDoesNotAcknowledge() throws JMSException {
        Queue queue = queue();
        send(queue, "a");
        Connection c = connect();
        text(c.createSession(CLIENT).createConsumer(queue));
        c.close();
        equal("the message that was not acknowledged", "a", text(session().createConsumer(queue)));
    }

    @Test
    @Spec("6.1.8")
    void acknowledgeAfterCloseFails() throws JMSException {
        Queue queue = queue();
        send(queue, "a");
        Connection c = connect();
        Message message = receive(c.createSession(CLIENT).createConsumer(queue));
        c.close();
        fails(IllegalStateException.class, "acknowledge() after the connection was closed", message::acknowledge);
    }

    @Test
    @Spec("6.1.8")
    void receivedMessageIsUsableAfterClose() throws JMSException {
        Queue queue = queue();
        send(queue, "a");
        Connection c = connect();
        TextMessage message = (TextMessage) receive(c.createSession().createConsumer(queue));
        c.close();
        equal("the text read after the connection was closed", "a", message.getText());
        equal("JMSXDeliveryCount read after the connection was closed", 1, count(message));
    }

    @Test
    @Spec("6.1.8")
    void tryWithResourcesCloses() throws Exception {
        Connection used;
        try (Connection c = provider().connectionFactory().createConnection()) {
            used = c;
        }
        fails(IllegalStateException.class, "start() after try-with-resources", used::start);
    }
}
