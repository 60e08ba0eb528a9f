package io.github.pgaq.jms.session;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.pgaq.jms.PgaqOption;
import io.github.pgaq.jms.PgaqOptions;
import io.github.pgaq.jms.store.Body;
import io.github.pgaq.jms.store.Delivery;
import jakarta.jms.BytesMessage;
import jakarta.jms.IllegalStateException;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.Session;
import java.util.Collections;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Future;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Receiving, acknowledgement and redelivery without listeners. */
class ReceiveTest extends SessionFixture {
    @Test
    void aMessageThatCannotBeReadComesAgainAndIsCounted() throws Exception {
        Session session = started().createSession();
        BytesMessage large = session.createBytesMessage();
        large.writeBytes(new byte[4 << 20]);
        session.createProducer(queue).send(large);
        MessageConsumer consumer = session.createConsumer(queue);
        server.fail("readContent", "53100");
        assertThrows(JMSException.class, () -> consumer.receive(10_000));
        assertEquals(2, consumer.receive(10_000).getIntProperty("JMSXDeliveryCount"));
    }

    @ParameterizedTest
    @ValueSource(ints = {Session.CLIENT_ACKNOWLEDGE, Session.SESSION_TRANSACTED})
    void aMessageThatCannotBeReadIsNotAcknowledgedWithTheOthers(int mode) throws Exception {
        server.text("q", "a");
        server.large("q");
        ClientSession session = started().createSession(mode);
        MessageConsumer consumer = session.createConsumer(queue);
        Message first = consumer.receive();
        server.fail("readContent", "53100");
        assertThrows(JMSException.class, consumer::receive);
        if (mode == Session.CLIENT_ACKNOWLEDGE) {
            first.acknowledge();
        } else {
            session.commit();
        }
        assertEquals(List.of(1), server.attempts("q"));
        assertEquals(2, consumer.receive().getIntProperty("JMSXDeliveryCount"));
    }

    @Test
    void aTransactionWithAMessageThatCannotBeReadDoesNotCommit() throws Exception {
        server.large("q");
        ClientSession session = started().createSession(Session.SESSION_TRANSACTED);
        MessageConsumer consumer = session.createConsumer(queue);
        session.getConnection();
        server.fail("readContent", "53100");
        assertThrows(JMSException.class, consumer::receive);
        assertThrows(jakarta.jms.TransactionRolledBackException.class, session::commit);
        assertEquals(List.of(1), server.attempts("q"));
        assertEquals(2, consumer.receive().getIntProperty("JMSXDeliveryCount"));
        session.commit();
        assertEquals(List.of(), server.attempts("q"));
    }

    @Test
    void autoAcknowledgesBeforeReceiveReturns() throws Exception {
        server.text("q", "a", "b");
        MessageConsumer consumer = started().createSession().createConsumer(queue);
        assertEquals("a", text(consumer.receive()));
        assertEquals(List.of("b"), server.texts("q"));
    }

    @Test
    void groupsAreAcknowledgedWithTheNextTake() throws Exception {
        options = options.with(PgaqOption.ACK_MODE, "group").with(PgaqOption.ACK_INTERVAL, "60000");
        // taken as 1, 2, 4, 8, 16
        String[] texts = IntStream.range(0, 31).mapToObj(Integer::toString).toArray(String[]::new);
        server.text("q", texts);
        MessageConsumer consumer = started().createSession().createConsumer(queue);
        assertEquals(List.of(texts), all(consumer));
        assertEquals(List.of(), server.texts("q"), "the last take acknowledged");
        assertTrue(server.count("acknowledge") <= 3);
    }

    @Test
    void smallGroupsAreLeftToTheControlConnection() throws Exception {
        options = options.with(PgaqOption.ACK_MODE, "group").with(PgaqOption.ACK_INTERVAL, "60000");
        server.text("q", "a", "b", "c");
        ClientConnection connection = started();
        assertEquals(List.of("a", "b", "c"), all(connection.createSession().createConsumer(queue)));
        assertEquals(0, server.count("acknowledge"));
        connection.keeper().flush();
        assertEquals(1, server.count("acknowledge"));
        assertEquals(List.of(), server.texts("q"));
    }

    @Test
    void aGroupIsAcknowledgedAfterItsInterval() throws Exception {
        options = options.with(PgaqOption.ACK_INTERVAL, "1");
        server.text("q", "a");
        MessageConsumer consumer =
                started().createSession(Session.DUPS_OK_ACKNOWLEDGE).createConsumer(queue);
        assertEquals("a", text(consumer.receive()));
        server.awaitCalls("acknowledge", 1);
    }

    @Test
    void clientAcknowledgesAllOfTheSession() throws Exception {
        server.text("q", "a", "b");
        server.text("r", "c");
        Session session = started().createSession(Session.CLIENT_ACKNOWLEDGE);
        MessageConsumer one = session.createConsumer(queue);
        MessageConsumer other = session.createConsumer(session.createQueue("r"));
        one.receive();
        Message last = other.receive();
        one.receive();
        last.acknowledge();
        assertEquals(List.of(), server.texts("q"));
        assertEquals(List.of(), server.texts("r"));
    }

    @Test
    void recoverRedeliversInOrderAndReturnsTheUnseenUncounted() throws Exception {
        server.text("q", "a", "b", "c", "d", "e");
        Session session = started().createSession(Session.CLIENT_ACKNOWLEDGE);
        MessageConsumer consumer = session.createConsumer(queue);
        // the windows are 1, 2, 4: d and e are ahead
        for (String expected : List.of("a", "b", "c", "d")) {
            assertEquals(expected, text(consumer.receive()));
        }
        session.recover();
        for (String expected : List.of("a", "b", "c", "d")) {
            Message again = consumer.receive();
            assertEquals(expected, text(again));
            assertTrue(again.getJMSRedelivered());
            assertEquals(2, again.getIntProperty("JMSXDeliveryCount"));
        }
        Message unseen = consumer.receive();
        assertEquals("e", text(unseen));
        assertFalse(unseen.getJMSRedelivered());
    }

    @Test
    void staleLeasesFailTheAcknowledgement() throws Exception {
        server.text("q", "a");
        Session session = started().createSession(Session.CLIENT_ACKNOWLEDGE);
        Message message = session.createConsumer(queue).receive();
        server.endLeases();
        assertThrows(JMSException.class, message::acknowledge);
        assertEquals(List.of("a"), server.texts("q"));
    }

    @Test
    void aStaleMessageOfTheBufferIsNotDelivered() throws Exception {
        server.text("q", "a", "b", "c", "d");
        ClientConnection connection = started();
        MessageConsumer consumer =
                connection.createSession(Session.CLIENT_ACKNOWLEDGE).createConsumer(queue);
        assertEquals("a", text(consumer.receive()));
        assertEquals("b", text(consumer.receive()));
        // c is in the buffer
        server.endLeases();
        MessageConsumer other = connect(consumer);
        assertEquals("a", text(other.receive()));
        assertEquals("b", text(other.receive()));
        assertEquals("c", text(other.receive()));
        connection.keeper().extend();
        assertEquals("d", text(consumer.receive()));
    }

    private MessageConsumer connect(MessageConsumer ignored) throws JMSException {
        assertNotNull(ignored);
        return started().createSession(Session.CLIENT_ACKNOWLEDGE).createConsumer(queue);
    }

    @Test
    void closingReturnsTheUnseenUncounted() throws Exception {
        server.text("q", "a", "b", "c");
        Session session = started().createSession(Session.CLIENT_ACKNOWLEDGE);
        MessageConsumer consumer = session.createConsumer(queue);
        consumer.receive();
        consumer.receive();
        session.close();
        assertEquals(List.of(1, 1, 0), server.attempts("q"));
        assertEquals(3, server.ready("q", null).size());
    }

    @Test
    void closingAConsumerKeepsItsMessagesToAcknowledge() throws Exception {
        Session session = started().createSession(Session.CLIENT_ACKNOWLEDGE);
        MessageConsumer consumer = session.createConsumer(topic);
        session.createProducer(topic).send(session.createTextMessage("a"));
        Message message = consumer.receive();
        consumer.close();
        assertEquals(1, server.subscribers.size(), "needed for the acknowledgement");
        message.acknowledge();
        assertEquals(0, server.subscribers.size());
    }

    @Test
    void closeWakesReceive() throws Exception {
        ClientConnection connection = started();
        MessageConsumer consumer = connection.createSession().createConsumer(queue);
        Future<Message> received = async(consumer::receive);
        server.awaitWaiting(1);
        consumer.close();
        assertNull(get(received));
        assertThrows(IllegalStateException.class, consumer::receive);
    }

    @Test
    void closingTheConnectionWakesReceive() throws Exception {
        ClientConnection connection = started();
        MessageConsumer consumer =
                connection.createSession(Session.SESSION_TRANSACTED).createConsumer(queue);
        Future<Message> received = async(consumer::receive);
        server.awaitWaiting(1);
        connection.close();
        assertNull(get(received));
    }

    @Test
    void stopHoldsBackAndStartDelivers() throws Exception {
        ClientConnection connection = started();
        MessageConsumer consumer = connection.createSession().createConsumer(queue);
        Future<Message> received = async(consumer::receive);
        server.awaitWaiting(1);
        connection.stop();
        server.awaitWaiting(0);
        server.text("q", "a");
        assertFalse(received.isDone());
        assertNull(connection.createSession().createConsumer(queue).receiveNoWait());
        connection.start();
        assertEquals("a", text(get(received)));
    }

    @Test
    void aTimeoutRunsOutWhileStopped() throws Exception {
        server.text("q", "a");
        ClientConnection connection = connect();
        MessageConsumer consumer = connection.createSession().createConsumer(queue);
        assertNull(consumer.receive(1));
        connection.start();
        assertEquals("a", text(consumer.receive(10_000)));
    }

    @Test
    void aSendFromAnotherThreadInterruptsTheWait() throws Exception {
        Session session = started().createSession();
        MessageConsumer consumer = session.createConsumer(queue);
        Future<Message> received = async(consumer::receive);
        server.awaitWaiting(1);
        session.createProducer(queue).send(session.createTextMessage("a"));
        assertEquals("a", text(get(received)));
    }

    @Test
    void strictWithoutPrefetch() throws Exception {
        options = options.with(PgaqOption.PREFETCH, "0");
        server.text("q", "a", "b", "c");
        Session session = started().createSession(Session.CLIENT_ACKNOWLEDGE);
        MessageConsumer consumer = session.createConsumer(queue);
        consumer.receive();
        consumer.receive();
        assertEquals(1, server.ready("q", null).size());
        server.text("q", "urgent", 9);
        assertEquals("urgent", text(consumer.receive()));
    }

    @Test
    void theWindowGrowsAndShrinksWithItsUse() {
        Window window = new Window(PgaqOptions.DEFAULTS.with(PgaqOption.PREFETCH, "5"));
        long second = 1_000_000_000;
        long now = 100 * second;
        assertEquals(1, window.next(now));
        for (int expected : new int[] {2, 4, 5, 5}) {
            window.taken(messages(window.next(now), 1), now);
            assertEquals(expected, window.next(now), "it ran dry at once");
        }
        window.taken(messages(5, 1), now);
        assertTrue(window.isBusy(now));
        assertFalse(window.isBusy(now + 2 * second));
        assertEquals(5, window.next(now + 2 * second));
        assertFalse(window.isBusy(now), "not known before the next take");
        assertEquals(5, window.next(now + 6 * second), "asked again without a take");
        window.taken(messages(5, 1), now);
        assertEquals(2, window.next(now + 6 * second));
        window.taken(messages(1, 1), now + 6 * second);
        assertEquals(2, window.next(now + 6 * second), "there were no more");
        window.reset();
        assertEquals(1, window.next(now + 6 * second));
        window.taken(messages(1, 1), now);
        assertFalse(window.isBusy(now), "it may be the only one that is wanted");
    }

    /** That many messages of a size. */
    private static List<Delivery> messages(int count, int size) {
        Body body = new Body("text", "", null, null, "x".repeat(size), null);
        return Collections.nCopies(count, new Delivery(new UUID(0, 0), 1, 0, 5, 0, 0, 0, null, body));
    }

    @Test
    void theWindowHasTheLimitOfBytes() {
        Window window = new Window(PgaqOptions.DEFAULTS.with(PgaqOption.PREFETCH_BYTES, "1000"));
        for (int expected : new int[] {2, 4, 8, 16}) {
            window.taken(messages(window.next(0), 10), 0);
            assertEquals(expected, window.next(0));
        }
        window.taken(messages(16, 50), 0);
        assertEquals(20, window.next(0), "32 would not fit");
        assertEquals(20, window.fitting(100));
        window.taken(messages(1, 5000), 0);
        assertEquals(1, window.next(0));
        window.taken(messages(1, 10), 0);
        assertEquals(64, window.next(0), "small ones again");
    }

    @Test
    void whatExceedsTheLimitOfBytesGoesBack() throws Exception {
        options = options.with(PgaqOption.PREFETCH_BYTES, "1000");
        server.text("q", "x".repeat(5000), "y".repeat(900), "z".repeat(900));
        ClientSession session = started().createSession(Session.CLIENT_ACKNOWLEDGE);
        Consumer consumer = (Consumer) session.createConsumer(queue);
        assertEquals(
                5000,
                text(session.intake().receive(consumer, Deadline.NEVER, 3, message -> message))
                        .length());
        assertEquals(0, consumer.buffer().size());
        assertEquals(2, server.ready("q", null).size());
        assertEquals(List.of(1, 0, 0), server.attempts("q"));
        assertEquals('y', text(consumer.receive()).charAt(0));
        assertEquals('z', text(consumer.receive()).charAt(0));
        assertEquals(1, server.count("release"), "the window has become smaller");
    }

    @Test
    void bulkReceiveTakesWhatIsThere() throws Exception {
        server.text("q", "a", "b", "c");
        ClientSession session = started().createSession();
        MessageConsumer consumer = session.createConsumer(queue);
        assertEquals(2, session.bulkReceive(consumer, 2, 0).size());
        assertEquals(1, session.bulkReceiveNoWait(consumer, 5).size());
        assertEquals(0, session.bulkReceiveNoWait(consumer, 5).size());
    }

    @Test
    void leasesAreExtendedWhileHeld() throws Exception {
        server.text("q", "a");
        ClientConnection connection = started();
        Message message = connection
                .createSession(Session.CLIENT_ACKNOWLEDGE)
                .createConsumer(queue)
                .receive();
        connection.keeper().extend();
        assertEquals(1, server.count("extend 1"));
        message.acknowledge();
        connection.keeper().extend();
        assertEquals(1, server.count("extend"), "no message is held now");
    }

    @Test
    void aFailedCloseGivesBackWhatWasNotUsed() throws Exception {
        options = options.with(PgaqOption.ACK_INTERVAL, "60000");
        server.text("q", "a", "b", "c");
        ClientConnection connection = started();
        ClientSession session = connection.createSession(Session.DUPS_OK_ACKNOWLEDGE);
        Consumer consumer = withTwoLeasedAhead(session);
        server.fail("acknowledge", "42501");
        assertThrows(JMSException.class, session::close);
        assertEquals(2, server.ready("q", null).size());
        connection.keeper().extend();
        assertEquals(0, server.count("extend"));
    }

    @Test
    void aFailedCloseEndsTheUseOfASubscription() throws Exception {
        ClientConnection connection = connect();
        connection.setClientID("c");
        connection.start();
        for (boolean whole : new boolean[] {true, false}) {
            ClientSession session = connection.createSession(Session.CLIENT_ACKNOWLEDGE);
            Consumer consumer = (Consumer) session.createDurableConsumer(topic, "s");
            for (int i = 0; i < 3; i++) {
                session.createProducer(topic).send(session.createTextMessage("m"));
            }
            assertNotNull(session.intake().receive(consumer, Deadline.NEVER, 3, message -> message));
            server.fail("release", "42501");
            assertThrows(JMSException.class, whole ? session::close : consumer::close);
            server.endLeases();
            if (!whole) {
                session.close();
            }
        }
        assertNotNull(connection.createSession().createDurableConsumer(topic, "s"));
    }

    @Test
    void afterAFailedRecoveryNoTransactionIsOpen() throws Exception {
        server.text("q", "a", "b", "c");
        Session session = started().createSession(Session.CLIENT_ACKNOWLEDGE);
        MessageConsumer consumer = session.createConsumer(queue);
        assertEquals("a", text(consumer.receive()));
        assertEquals("b", text(consumer.receive()));
        server.fail("release", "42501");
        assertThrows(JMSException.class, session::recover);
        server.endLeases();
        consumer.receive().acknowledge();
        assertEquals(List.of("b", "c"), server.texts("q"));
    }

    @Test
    void anAcknowledgementWaitsForAnExtension() throws Exception {
        server.text("q", "a");
        ClientConnection connection = started();
        Message message = connection
                .createSession(Session.CLIENT_ACKNOWLEDGE)
                .createConsumer(queue)
                .receive();
        CountDownLatch running = new CountDownLatch(1);
        CountDownLatch acknowledging = new CountDownLatch(1);
        server.extending = () -> {
            running.countDown();
            try {
                acknowledging.await();
                Thread.sleep(200);
            } catch (InterruptedException e) {
                throw new AssertionError(e);
            }
        };
        Future<?> extension = async(() -> {
            connection.keeper().extend();
            return null;
        });
        running.await();
        acknowledging.countDown();
        message.acknowledge();
        get(extension);
        assertEquals(
                List.of("extend 1", "acknowledge 1"),
                server.calls.stream()
                        .filter(call -> call.matches("(extend|acknowledge) .*"))
                        .toList());
    }

    @Test
    void whatIsAcknowledgedWithATakeIsNotExtended() throws Exception {
        CountDownLatch delivered = new CountDownLatch(1);
        server.text("q", "a");
        ClientConnection connection = started();
        connection.createSession().createConsumer(queue).setMessageListener(message -> delivered.countDown());
        delivered.await();
        server.awaitWaiting(1);
        connection.keeper().extend();
        assertEquals(0, server.count("extend"));
    }

    @Test
    void leasesAreExtendedAlthoughOthersCannotBeGivenBack() throws Exception {
        options = options.with(PgaqOption.PREFETCH_IDLE, "100");
        server.text("q", "a", "b", "c");
        ClientConnection connection = started();
        ClientSession session = connection.createSession(Session.CLIENT_ACKNOWLEDGE);
        // its thread does nothing meanwhile
        connection.keeper().close();
        Consumer consumer = withTwoLeasedAhead(session);
        server.fail("release", "53100");
        Thread.sleep(110);
        long before = server.count("extend");
        connection.keeper().releaseIdle();
        connection.keeper().extend();
        assertTrue(server.count("extend") > before);
        assertEquals(1, server.count("release"));
    }

    @Test
    void whatLiesUnusedGoesBackSoon() throws Exception {
        options = options.with(PgaqOption.PREFETCH_IDLE, "100");
        server.text("q", "a", "b", "c");
        ClientSession session = started().createSession(Session.CLIENT_ACKNOWLEDGE);
        Consumer consumer = withTwoLeasedAhead(session);
        server.awaitCalls("release", 1);
        // it has left
        session.gate().enter();
        session.gate().leave();
        assertEquals(2, server.ready("q", null).size());
        assertEquals(List.of(1, 0, 0), server.attempts("q"));
        assertEquals("b", text(consumer.receive()));
    }

    @Test
    void whatAConsumerIsUsingStays() throws Exception {
        server.text("q", "a", "b", "c");
        ClientSession session = started().createSession(Session.CLIENT_ACKNOWLEDGE);
        Consumer consumer = withTwoLeasedAhead(session);
        long afterTheTake = System.nanoTime();
        assertEquals("b", text(consumer.receive()));
        session.releaseIdle(afterTheTake);
        assertEquals(0, server.ready("q", null).size());
    }

    @Test
    void whatLiesUnusedGoesBackUncounted() throws Exception {
        server.text("q", "a", "b", "c");
        ClientConnection connection = started();
        ClientSession session = connection.createSession(Session.CLIENT_ACKNOWLEDGE);
        Consumer consumer = withTwoLeasedAhead(session);
        assertEquals(0, server.ready("q", null).size());
        session.releaseIdle(System.nanoTime());
        assertEquals(2, server.ready("q", null).size());
        assertEquals(List.of(1, 0, 0), server.attempts("q"));
        assertEquals("b", text(consumer.receive()));
    }

    @Test
    void aMessageWhoseAcknowledgementIsUncertainIsReturned() throws Exception {
        options = options.with(PgaqOption.RECONNECT_ATTEMPTS, "1");
        server.text("q", "a");
        MessageConsumer consumer = started().createSession().createConsumer(queue);
        server.fail("acknowledge", "08006");
        assertEquals("a", text(consumer.receive()));
    }
}
