package io.github.pgaq.jms.conformance;

import jakarta.jms.Connection;
import jakarta.jms.IllegalStateException;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.Queue;
import jakarta.jms.Session;
import jakarta.jms.TextMessage;
import jakarta.jms.Topic;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Future;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

/** Message listeners: serial calls, exceptions, acknowledgement, close within and around them. */
@Spec("8.7")
class ListenerTest extends ConformanceTest {
    private final BlockingQueue<String> texts = new LinkedBlockingQueue<>();

    private static String textOf(Message message) {
        try {
            return ((TextMessage) message).getText();
        } catch (JMSException e) {
            throw new RuntimeException(e);
        }
    }

    private String nextText() throws InterruptedException {
        return next("a message for the listener", texts);
    }

    @Test
    void listenerGetsMessagesThatWereThere() throws Exception {
        Queue queue = queue();
        send(queue, "a");
        session(AUTO).createConsumer(queue).setMessageListener(message -> texts.add(textOf(message)));
        equal("the message", "a", nextText());
    }

    @Test
    void listenerGetsMessagesThatArrive() throws Exception {
        Queue queue = queue();
        session(AUTO).createConsumer(queue).setMessageListener(message -> texts.add(textOf(message)));
        send(queue, "a");
        equal("the first message", "a", nextText());
        send(queue, "b");
        equal("the second message", "b", nextText());
    }

    @Test
    void listenerGetsMessagesInTheirOrder() throws Exception {
        Queue queue = queue();
        session(AUTO).createConsumer(queue).setMessageListener(message -> texts.add(textOf(message)));
        List<String> expected = new ArrayList<>();
        for (int i = 0; i < 50; i++) {
            expected.add(Integer.toString(i));
        }
        send(queue, expected.toArray(new String[0]));
        List<String> actual = new ArrayList<>();
        for (int i = 0; i < 50; i++) {
            actual.add(nextText());
        }
        equal("the messages", expected, actual);
    }

    @Test
    void listenerOfATopicGetsMessages() throws Exception {
        Topic topic = topic();
        session(AUTO).createConsumer(topic).setMessageListener(message -> texts.add(textOf(message)));
        send(topic, "a");
        equal("the message", "a", nextText());
    }

    @Test
    void listenerSeesOnlyWhatItsSelectorSelects() throws Exception {
        Queue queue = queue();
        session(AUTO).createConsumer(queue, "n = 2").setMessageListener(message -> texts.add(textOf(message)));
        sendWith(queue, "1", "n", 1);
        sendWith(queue, "2", "n", 2);
        equal("the message that the selector selects", "2", nextText());
    }

    @Test
    @Spec("6.2.13")
    void listenersOfASessionRunOneAtATime() throws Exception {
        Connection c = connectStopped();
        Session s = c.createSession();
        AtomicInteger running = new AtomicInteger();
        AtomicBoolean overlap = new AtomicBoolean();
        CountDownLatch done = new CountDownLatch(20);
        Queue[] queues = {queue(), queue()};
        for (Queue queue : queues) {
            s.createConsumer(queue).setMessageListener(message -> {
                if (running.incrementAndGet() > 1) {
                    overlap.set(true);
                }
                ConnectionTest.unchecked(() -> Thread.sleep(2));
                running.decrementAndGet();
                done.countDown();
            });
        }
        for (int i = 0; i < 10; i++) {
            send(queues[0], "a");
            send(queues[1], "b");
        }
        c.start();
        happens("the delivery of 20 messages", done);
        no("two listeners of a session must not run at the same time", overlap.get());
    }

    @Test
    @Spec("6.2.14")
    void listenersOfTwoSessionsRunAtTheSameTime() throws Exception {
        Queue one = queue();
        Queue two = queue();
        CountDownLatch both = new CountDownLatch(2);
        for (Queue queue : List.of(one, two)) {
            session(AUTO).createConsumer(queue).setMessageListener(message -> {
                both.countDown();
                ConnectionTest.await(both);
            });
        }
        send(one, "a");
        send(two, "b");
        happens("the meeting of the listeners of two sessions", both);
    }

    @Test
    @Spec("6.2.13")
    void listenersOfASessionRunInOneThread() throws Exception {
        Connection c = connectStopped();
        Session s = c.createSession();
        Set<Thread> threads = ConcurrentHashMap.newKeySet();
        CountDownLatch done = new CountDownLatch(4);
        Queue[] queues = {queue(), queue()};
        for (Queue queue : queues) {
            s.createConsumer(queue).setMessageListener(message -> {
                threads.add(Thread.currentThread());
                done.countDown();
            });
        }
        c.start();
        send(queues[0], "a", "b");
        send(queues[1], "c", "d");
        happens("the delivery of 4 messages", done);
        no("listeners must not run in the thread of the client", threads.contains(Thread.currentThread()));
    }

    @Test
    void eachMessageGoesToOneListener() throws Exception {
        Queue queue = queue();
        for (int i = 0; i < 3; i++) {
            session(AUTO).createConsumer(queue).setMessageListener(message -> texts.add(textOf(message)));
        }
        for (int i = 0; i < 30; i++) {
            send(queue, Integer.toString(i));
        }
        Set<String> seen = ConcurrentHashMap.newKeySet();
        for (int i = 0; i < 30; i++) {
            yes("a message must come once", seen.add(nextText()));
        }
    }

    @Test
    void listenerSendsAnswersWithItsSession() throws Exception {
        Queue queue = queue();
        Queue answers = queue();
        Connection c = connectStopped();
        Session s = c.createSession();
        jakarta.jms.MessageProducer producer = s.createProducer(answers);
        s.createConsumer(queue)
                .setMessageListener(message ->
                        ConnectionTest.unchecked(() -> producer.send(s.createTextMessage(textOf(message) + "!"))));
        c.start();
        send(queue, "a");
        equal("the answer", "a!", text(session().createConsumer(answers)));
    }

    @Test
    void listenerCanBeReplaced() throws Exception {
        Queue queue = queue();
        Connection c = connect();
        MessageConsumer consumer = c.createSession().createConsumer(queue);
        consumer.setMessageListener(message -> texts.add("first " + textOf(message)));
        send(queue, "a");
        equal("the message for the first listener", "first a", nextText());
        c.stop();
        consumer.setMessageListener(message -> texts.add("second " + textOf(message)));
        c.start();
        send(queue, "b");
        equal("the message for the second listener", "second b", nextText());
    }

    // ---- acknowledgement --------------------------------------------------------------------------------------

    @Test
    @Spec("6.2.10")
    void messageIsAcknowledgedWhenTheListenerReturns() throws Exception {
        Queue queue = queue();
        Connection c = connect();
        c.createSession().createConsumer(queue).setMessageListener(message -> texts.add(textOf(message)));
        send(queue, "a");
        nextText();
        c.close();
        send(queue, "marker");
        equal("the first message that is left", "marker", text(session().createConsumer(queue)));
    }

    @Test
    @Spec("6.2.10")
    void listenerAcknowledges() throws Exception {
        Queue queue = queue();
        Connection c = connect();
        c.createSession(CLIENT)
                .createConsumer(queue)
                .setMessageListener(message -> ConnectionTest.unchecked(() -> {
                    message.acknowledge();
                    texts.add(textOf(message));
                }));
        send(queue, "a");
        nextText();
        c.close();
        send(queue, "marker");
        equal("the first message that is left", "marker", text(session().createConsumer(queue)));
    }

    @Test
    @Spec("6.2.10")
    void messageThatTheListenerDidNotAcknowledgeComesBack() throws Exception {
        Queue queue = queue();
        Connection c = connect();
        c.createSession(CLIENT).createConsumer(queue).setMessageListener(message -> texts.add(textOf(message)));
        send(queue, "a");
        nextText();
        c.close();
        equal("the message that was not acknowledged", "a", text(session().createConsumer(queue)));
    }

    @Test
    @Spec("6.2.10")
    void listenerRecovers() throws Exception {
        Queue queue = queue();
        Connection c = connectStopped();
        Session s = c.createSession(CLIENT);
        BlockingQueue<Integer> counts = new LinkedBlockingQueue<>();
        s.createConsumer(queue)
                .setMessageListener(message -> ConnectionTest.unchecked(() -> {
                    counts.add(count(message));
                    if (count(message) == 1) {
                        s.recover();
                    } else {
                        message.acknowledge();
                    }
                }));
        c.start();
        send(queue, "a");
        equal("JMSXDeliveryCount of the first delivery", 1, next("the first delivery", counts));
        equal("JMSXDeliveryCount after recover() in the listener", 2, next("the second delivery", counts));
    }

    // ---- exceptions -------------------------------------------------------------------------------------------

    /** A listener that throws at each message's first delivery; the deliveries as "text count". */
    private Connection failing(int mode, Queue queue) throws JMSException {
        Connection c = connectStopped();
        c.createSession(mode).createConsumer(queue).setMessageListener(message -> {
            int count;
            try {
                count = count(message);
            } catch (JMSException e) {
                throw new IllegalArgumentException(e);
            }
            texts.add(textOf(message) + " " + count);
            if (count == 1 && textOf(message).equals("bad")) {
                throw new IllegalArgumentException("thrown by a listener of the suite");
            }
        });
        c.start();
        return c;
    }

    @Test
    void autoAcknowledgeRedeliversAtOnceAfterAnException() throws Exception {
        Queue queue = queue();
        send(queue, "bad", "good");
        failing(AUTO, queue);
        equal("the first delivery", "bad 1", nextText());
        equal("the redelivery, before other messages", "bad 2", nextText());
        equal("the next message", "good 1", nextText());
    }

    @Test
    void dupsOkRedeliversAfterAnException() throws Exception {
        Queue queue = queue();
        send(queue, "bad");
        failing(DUPS, queue);
        equal("the first delivery", "bad 1", nextText());
        equal("the redelivery", "bad 2", nextText());
    }

    @Test
    @Spec({"8.7", "3.4.7"})
    void redeliveryAfterAnExceptionIsMarked() throws Exception {
        Queue queue = queue();
        send(queue, "a");
        BlockingQueue<Boolean> marks = new LinkedBlockingQueue<>();
        session(AUTO).createConsumer(queue).setMessageListener(message -> {
            boolean redelivered;
            try {
                redelivered = message.getJMSRedelivered();
            } catch (JMSException e) {
                throw new IllegalArgumentException(e);
            }
            marks.add(redelivered);
            if (!redelivered) {
                throw new IllegalArgumentException("thrown by a listener of the suite");
            }
        });
        no("JMSRedelivered of the first delivery", next("the first delivery", marks));
        yes("JMSRedelivered after an exception", next("the second delivery", marks));
    }

    @Test
    void providerGivesUpOnAListenerThatAlwaysThrows() throws Exception {
        Queue queue = queue();
        send(queue, "bad", "good");
        session(AUTO).createConsumer(queue).setMessageListener(message -> {
            texts.add(textOf(message));
            if (textOf(message).equals("bad")) {
                throw new IllegalArgumentException("thrown by a listener of the suite");
            }
        });
        int bad = 0;
        String text = nextText();
        while (text.equals("bad")) {
            bad++;
            text = nextText();
        }
        equal("the message after the one that was given up", "good", text);
        yes("the message must be redelivered before the provider gives up", bad >= 2);
        yes(
                "the provider must give up after " + provider().deliveryLimit() + " deliveries, but made " + bad,
                bad <= provider().deliveryLimit() + 1);
    }

    @Test
    void clientAcknowledgeDeliversTheNextAfterAnException() throws Exception {
        Queue queue = queue();
        send(queue, "bad", "good");
        failing(CLIENT, queue);
        equal("the first delivery", "bad 1", nextText());
        equal("the next message", "good 1", nextText());
    }

    @Test
    void clientAcknowledgeKeepsTheMessageOfAnException() throws Exception {
        Queue queue = queue();
        send(queue, "bad");
        Connection c = failing(CLIENT, queue);
        nextText();
        c.close();
        equal("the message that was not acknowledged", "bad", text(session().createConsumer(queue)));
    }

    @Test
    void transactedSessionDeliversTheNextAfterAnException() throws Exception {
        Queue queue = queue();
        send(queue, "bad", "good");
        failing(TRANSACTED, queue);
        equal("the first delivery", "bad 1", nextText());
        equal("the next message", "good 1", nextText());
    }

    @Test
    void exceptionDoesNotRollBackTheTransaction() throws Exception {
        Queue queue = queue();
        Connection c = connectStopped();
        Session s = c.createSession(TRANSACTED);
        s.createConsumer(queue).setMessageListener(message -> {
            if (textOf(message).equals("bad")) {
                texts.add("bad");
                throw new IllegalArgumentException("thrown by a listener of the suite");
            }
            ConnectionTest.unchecked(s::commit);
            texts.add("committed");
        });
        c.start();
        send(queue, "bad", "good");
        equal("the message of the exception", "bad", nextText());
        equal("the next message", "committed", nextText());
        c.close();
        send(queue, "marker");
        equal(
                "the first message that is left after both were committed",
                "marker",
                text(session().createConsumer(queue)));
    }

    @Test
    void sessionGoesOnAfterAnException() throws Exception {
        Queue queue = queue();
        failing(AUTO, queue);
        send(queue, "bad");
        nextText();
        nextText();
        send(queue, "good");
        equal("a message after the exception", "good 1", nextText());
    }

    // ---- close ------------------------------------------------------------------------------------------------

    @Test
    @Spec("8.8")
    void closeOfTheConsumerWaitsForItsListener() throws Exception {
        Queue queue = queue();
        CountDownLatch entered = new CountDownLatch(1);
        CountDownLatch release = new CountDownLatch(1);
        AtomicBoolean returned = new AtomicBoolean();
        MessageConsumer consumer = session(AUTO).createConsumer(queue);
        consumer.setMessageListener(message -> {
            entered.countDown();
            ConnectionTest.await(release);
            returned.set(true);
        });
        send(queue, "a");
        happens("the call of the listener", entered);
        Future<Boolean> close = thread(() -> {
            consumer.close();
            return returned.get();
        });
        pending("close() while the listener runs", close);
        release.countDown();
        yes("close() must return after the listener", result("close()", close));
    }

    @Test
    @Spec("6.2.15")
    void closeOfTheSessionWaitsForItsListener() throws Exception {
        Queue queue = queue();
        CountDownLatch entered = new CountDownLatch(1);
        CountDownLatch release = new CountDownLatch(1);
        AtomicBoolean returned = new AtomicBoolean();
        Session s = session(AUTO);
        s.createConsumer(queue).setMessageListener(message -> {
            entered.countDown();
            ConnectionTest.await(release);
            returned.set(true);
        });
        send(queue, "a");
        happens("the call of the listener", entered);
        Future<Boolean> close = thread(() -> {
            s.close();
            return returned.get();
        });
        pending("close() while the listener runs", close);
        release.countDown();
        yes("close() must return after the listener", result("close()", close));
    }

    @Test
    @Spec("8.8")
    void listenerClosesItsConsumer() throws Exception {
        Queue queue = queue();
        MessageConsumer consumer = session(AUTO).createConsumer(queue);
        consumer.setMessageListener(message -> {
            try {
                consumer.close();
                texts.add("closed");
            } catch (JMSException e) {
                texts.add(e.toString());
            }
        });
        send(queue, "a");
        equal("close() of its consumer by a listener", "closed", nextText());
    }

    @Test
    @Spec("8.8")
    void messageIsAcknowledgedThoughTheListenerClosedItsConsumer() throws Exception {
        Queue queue = queue();
        Connection c = connectStopped();
        MessageConsumer consumer = c.createSession().createConsumer(queue);
        consumer.setMessageListener(message -> {
            ConnectionTest.unchecked(consumer::close);
            texts.add("closed");
        });
        send(queue, "a");
        c.start();
        nextText();
        c.close();
        send(queue, "marker");
        equal("the first message that is left", "marker", text(session().createConsumer(queue)));
    }

    @Test
    @Spec("8.8")
    void closedConsumerCallsItsListenerNoMore() throws Exception {
        Queue queue = queue();
        MessageConsumer consumer = session(AUTO).createConsumer(queue);
        consumer.setMessageListener(message -> texts.add(textOf(message)));
        consumer.close();
        send(queue, "a");
        equal("the message for another consumer", "a", text(session(AUTO).createConsumer(queue)));
        yes("the listener of a closed consumer must not be called", texts.isEmpty());
    }

    @Test
    @Spec("6.2.15")
    void closeOfTheSessionInItsListenerFailsOrCloses() throws Exception {
        Queue queue = queue();
        Session s = session(AUTO);
        BlockingQueue<Object> results = new LinkedBlockingQueue<>();
        s.createConsumer(queue).setMessageListener(message -> {
            try {
                s.close();
                results.add("closed");
            } catch (Throwable e) {
                results.add(e);
            }
        });
        send(queue, "a");
        Object result = next("the end of close() in a listener", results);
        yes(
                "close() of the session in its listener must close or throw IllegalStateException, but: " + result,
                result.equals("closed") || result instanceof IllegalStateException);
    }

    @Test
    @Spec("6.2.5")
    void receiveOfASessionWithAListenerIsRefusedOrWorks() throws Exception {
        Queue one = queue();
        Queue two = queue();
        Session s = session(AUTO);
        MessageConsumer receiver = s.createConsumer(two);
        s.createConsumer(one).setMessageListener(message -> texts.add(textOf(message)));
        send(one, "a");
        equal("the message of the listener", "a", nextText());
        Future<Object> receive = thread(() -> {
            try {
                return receiver.receive(50) == null ? "nothing" : "message";
            } catch (JMSException e) {
                return "refused";
            }
        });
        no(
                "receive() in a session with a listener must not return a message of the other queue",
                "message".equals(result("receive()", receive)));
    }
}
