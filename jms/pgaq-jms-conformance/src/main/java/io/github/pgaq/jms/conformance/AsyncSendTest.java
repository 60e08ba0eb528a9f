package io.github.pgaq.jms.conformance;

import jakarta.jms.BytesMessage;
import jakarta.jms.CompletionListener;
import jakarta.jms.Connection;
import jakarta.jms.DeliveryMode;
import jakarta.jms.IllegalStateException;
import jakarta.jms.IllegalStateRuntimeException;
import jakarta.jms.JMSContext;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.Queue;
import jakarta.jms.Session;
import jakarta.jms.TextMessage;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Future;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;

/** Asynchronous sends. */
@Spec("7.3")
class AsyncSendTest extends ConformanceTest {
    /** Collects what it is told; {@link #then} runs in the callback first. */
    private static final class Completions implements CompletionListener {
        final BlockingQueue<Object> results = new LinkedBlockingQueue<>();
        final Executable then;

        Completions() {
            this(() -> {});
        }

        Completions(Executable then) {
            this.then = then;
        }

        @Override
        public void onCompletion(Message message) {
            try {
                then.execute();
                results.add(message);
            } catch (Throwable e) {
                results.add(e);
            }
        }

        @Override
        public void onException(Message message, Exception e) {
            results.add(e);
        }

        Message completed() throws InterruptedException {
            Object result = next("the completion of an asynchronous send", results);
            yes("an asynchronous send must complete, but: " + result, result instanceof Message);
            return (Message) result;
        }

        Object result() throws InterruptedException {
            return next("the completion of an asynchronous send", results);
        }
    }

    @Test
    @Spec("7.3.1")
    void completionFollowsTheSend() throws Exception {
        Queue queue = queue();
        Completions completions = new Completions();
        session().createProducer(queue).send(session().createTextMessage("a"), completions);
        completions.completed();
        equal("the message sent asynchronously", "a", text(session().createConsumer(queue)));
    }

    @Test
    @Spec("7.3.1")
    void messageIsSentWhenItsCompletionIsCalled() throws Exception {
        Queue queue = queue();
        MessageConsumer consumer = session().createConsumer(queue);
        Completions completions = new Completions();
        sender().createProducer(queue).send(sender().createTextMessage("a"), completions);
        completions.completed();
        equal("the message after onCompletion()", "a", text(consumer));
    }

    @Test
    void completionHasTheMessage() throws Exception {
        Message message = session().createTextMessage("a");
        Completions completions = new Completions();
        session().createProducer(queue()).send(message, completions);
        equal("the message of the callback", message, completions.completed());
    }

    @Test
    void sendWithOptionsIsAsynchronousToo() throws Exception {
        Queue queue = queue();
        Completions completions = new Completions();
        session()
                .createProducer(queue)
                .send(session().createTextMessage("a"), DeliveryMode.NON_PERSISTENT, 7, 0, completions);
        Message message = completions.completed();
        equal("JMSPriority", 7, message.getJMSPriority());
        equal(
                "JMSPriority of the received message",
                7,
                receive(session().createConsumer(queue)).getJMSPriority());
    }

    @Test
    void anonymousSendIsAsynchronousToo() throws Exception {
        Queue queue = queue();
        Completions completions = new Completions();
        MessageProducer producer = session().createProducer(null);
        producer.send(queue, session().createTextMessage("a"), completions);
        completions.completed();
        producer.send(queue, session().createTextMessage("b"), DeliveryMode.PERSISTENT, 4, 0, completions);
        completions.completed();
        equal("the messages", List.of("a", "b"), texts(session().createConsumer(queue), 2));
    }

    @Test
    void topicSendIsAsynchronousToo() throws Exception {
        jakarta.jms.Topic topic = topic();
        MessageConsumer consumer = session().createConsumer(topic);
        Completions completions = new Completions();
        sender().createProducer(topic).send(sender().createTextMessage("a"), completions);
        completions.completed();
        equal("the message", "a", text(consumer));
    }

    @Test
    @Spec("api:MessageProducer")
    void nullListenerIsRefused() throws JMSException {
        Queue queue = queue();
        MessageProducer producer = session().createProducer(queue);
        MessageProducer anonymous = session().createProducer(null);
        Message message = session().createMessage();
        Class<IllegalArgumentException> error = IllegalArgumentException.class;
        fails(error, "send(message, null)", () -> producer.send(message, null));
        fails(error, "send(message, options, null)", () -> producer.send(message, DeliveryMode.PERSISTENT, 4, 0, null));
        fails(error, "send(destination, message, null)", () -> anonymous.send(queue, message, null));
        fails(
                error,
                "send(destination, message, options, null)",
                () -> anonymous.send(queue, message, DeliveryMode.PERSISTENT, 4, 0, null));
    }

    @Test
    @Spec("api:MessageProducer")
    void wrongKindOfProducerIsRefused() throws JMSException {
        Queue queue = queue();
        Message message = session().createMessage();
        Completions completions = new Completions();
        fails(
                UnsupportedOperationException.class,
                "an asynchronous send(message) of an anonymous producer",
                () -> session().createProducer(null).send(message, completions));
        fails(
                UnsupportedOperationException.class,
                "an asynchronous send(destination, message) of a producer with a destination",
                () -> session().createProducer(queue).send(queue, message, completions));
    }

    @Test
    @Spec("7.3.2")
    void exceptionOfTheCallIsNotGivenToTheListener() throws JMSException {
        Completions completions = new Completions();
        MessageProducer producer = session().createProducer(queue());
        producer.close();
        Message message = session().createMessage();
        fails(
                JMSException.class,
                "an asynchronous send by a closed producer",
                () -> producer.send(message, completions));
        yes("no callback must follow an exception of the call", completions.results.isEmpty());
    }

    @Test
    @Spec("7.3.6")
    void headersAreSetWhenTheListenerIsCalled() throws Exception {
        Queue queue = queue();
        Completions completions = new Completions();
        session().createProducer(queue).send(session().createTextMessage("a"), completions);
        Message message = completions.completed();
        equal("JMSDestination", queue, message.getJMSDestination());
        present("JMSMessageID", message.getJMSMessageID());
        yes("JMSTimestamp must be set", message.getJMSTimestamp() > 0);
        equal(
                "JMSMessageID of the received message",
                message.getJMSMessageID(),
                receive(session().createConsumer(queue)).getJMSMessageID());
    }

    @Test
    @Spec("api:BytesMessage")
    void bytesMessageIsResetForTheListener() throws Exception {
        BytesMessage sent = session().createBytesMessage();
        sent.writeInt(5);
        Completions completions = new Completions();
        session().createProducer(queue()).send(sent, completions);
        equal("the int read by the listener", 5, ((BytesMessage) completions.completed()).readInt());
    }

    @Test
    @Spec("7.3.8")
    void listenerIsCalledInAnotherThread() throws Exception {
        BlockingQueue<Thread> threads = new LinkedBlockingQueue<>();
        session()
                .createProducer(queue())
                .send(session().createMessage(), new Completions(() -> threads.add(Thread.currentThread())));
        no(
                "the listener must not be called in the thread of the send",
                next("the callback", threads) == Thread.currentThread());
    }

    @Test
    @Spec("7.3.8")
    void callbacksComeInTheOrderOfTheSends() throws Exception {
        MessageProducer producer = session().createProducer(queue());
        Completions completions = new Completions();
        List<String> expected = new ArrayList<>();
        for (int i = 0; i < 50; i++) {
            producer.send(session().createTextMessage(Integer.toString(i)), completions);
            expected.add(Integer.toString(i));
        }
        List<String> actual = new ArrayList<>();
        for (int i = 0; i < 50; i++) {
            actual.add(((TextMessage) completions.completed()).getText());
        }
        equal("the order of the callbacks", expected, actual);
    }

    @Test
    @Spec("7.3.8")
    void oneCallbackRunsAtATime() throws Exception {
        Session s = session(AUTO);
        MessageProducer one = s.createProducer(queue());
        MessageProducer two = s.createProducer(queue());
        AtomicInteger running = new AtomicInteger();
        AtomicBoolean overlap = new AtomicBoolean();
        Completions completions = new Completions(() -> {
            if (running.incrementAndGet() > 1) {
                overlap.set(true);
            }
            Thread.sleep(2);
            running.decrementAndGet();
        });
        for (int i = 0; i < 10; i++) {
            one.send(s.createMessage(), completions);
            two.send(s.createMessage(), completions);
        }
        for (int i = 0; i < 20; i++) {
            completions.completed();
        }
        no("two callbacks of a session must not run at the same time", overlap.get());
    }

    @Test
    @Spec("7.3.3")
    void asynchronousMessagesKeepTheirOrder() throws JMSException {
        Queue queue = queue();
        MessageProducer producer = session().createProducer(queue);
        Completions completions = new Completions();
        for (int i = 0; i < 50; i++) {
            producer.send(session().createTextMessage(Integer.toString(i)), completions);
        }
        producer.close();
        MessageConsumer consumer = session().createConsumer(queue);
        for (int i = 0; i < 50; i++) {
            equal("the next message", Integer.toString(i), text(consumer));
        }
    }

    @Test
    @Spec("7.3.3")
    void mixedSendsKeepTheirOrder() throws JMSException {
        Queue queue = queue();
        MessageProducer producer = session().createProducer(queue);
        Completions completions = new Completions();
        for (int i = 0; i < 20; i++) {
            if (i % 2 == 0) {
                producer.send(session().createTextMessage(Integer.toString(i)), completions);
            } else {
                producer.send(session().createTextMessage(Integer.toString(i)));
            }
        }
        MessageConsumer consumer = session().createConsumer(queue);
        for (int i = 0; i < 20; i++) {
            equal("the next message", Integer.toString(i), text(consumer));
        }
    }

    // ---- close, commit, rollback ------------------------------------------------------------------------------

    /** The action must wait for a callback that is held up. */
    private void waitsForCallbacks(String what, Session s, Executable action) throws Exception {
        CountDownLatch entered = new CountDownLatch(1);
        CountDownLatch release = new CountDownLatch(1);
        AtomicBoolean returned = new AtomicBoolean();
        MessageProducer producer = s.createProducer(queue());
        producer.send(s.createMessage(), new Completions(() -> {
            entered.countDown();
            ConnectionTest.await(release);
            returned.set(true);
        }));
        happens("the callback", entered);
        Executable run = action != null ? action : producer::close;
        Future<Boolean> future = thread(() -> {
            ConnectionTest.unchecked(run);
            return returned.get();
        });
        pending(what + " while a callback runs", future);
        release.countDown();
        yes(what + " must return after the callback", result(what, future));
    }

    @Test
    @Spec("7.3.4")
    void closeOfTheProducerWaitsForCallbacks() throws Exception {
        waitsForCallbacks("close() of the producer", session(AUTO), null);
    }

    @Test
    @Spec("7.3.4")
    void closeOfTheSessionWaitsForCallbacks() throws Exception {
        Session s = session(AUTO);
        waitsForCallbacks("close() of the session", s, s::close);
    }

    @Test
    @Spec("7.3.4")
    void closeOfTheConnectionWaitsForCallbacks() throws Exception {
        Connection c = connect();
        waitsForCallbacks("close() of the connection", c.createSession(), c::close);
    }

    @Test
    @Spec("7.3.4")
    void commitWaitsForCallbacks() throws Exception {
        Session s = session(TRANSACTED);
        waitsForCallbacks("commit()", s, s::commit);
    }

    @Test
    @Spec("7.3.4")
    void rollbackWaitsForCallbacks() throws Exception {
        Session s = session(TRANSACTED);
        waitsForCallbacks("rollback()", s, s::rollback);
    }

    @Test
    @Spec("7.3.4")
    void allCallbacksHaveReturnedAfterClose() throws JMSException {
        Session s = session(AUTO);
        MessageProducer producer = s.createProducer(queue());
        Completions completions = new Completions();
        for (int i = 0; i < 20; i++) {
            producer.send(s.createMessage(), completions);
        }
        s.close();
        equal("the callbacks made before close() returned", 20, completions.results.size());
    }

    @Test
    @Spec("7.3.4")
    void asynchronousMessagesCommitWithTheirTransaction() throws JMSException {
        Queue queue = queue();
        Session s = session(TRANSACTED);
        Completions completions = new Completions();
        MessageConsumer consumer = session().createConsumer(queue);
        s.createProducer(queue).send(s.createTextMessage("a"), completions);
        nothing("the transaction is not committed", consumer);
        s.commit();
        equal("the callbacks made before commit() returned", 1, completions.results.size());
        equal("the message", "a", text(consumer));
    }

    @Test
    @Spec("7.3.4")
    void asynchronousMessagesRollBackWithTheirTransaction() throws JMSException {
        Queue queue = queue();
        Session s = session(TRANSACTED);
        s.createProducer(queue).send(s.createTextMessage("a"), new Completions());
        s.rollback();
        send(queue, "marker");
        equal("the first message", "marker", text(session().createConsumer(queue)));
    }

    private void refusedInACallback(String what, Class<? extends Exception> error, Session s, Executable action)
            throws Exception {
        Completions completions = new Completions(action);
        s.createProducer(queue()).send(s.createMessage(), completions);
        Object result = completions.result();
        yes(what + " in a callback must throw " + error.getSimpleName() + ", but: " + result, error.isInstance(result));
    }

    @Test
    @Spec("7.3.4")
    void closeOfTheSessionIsRefusedInACallback() throws Exception {
        Session s = session(AUTO);
        refusedInACallback("close() of the session", IllegalStateException.class, s, s::close);
    }

    @Test
    @Spec("7.3.4")
    void closeOfTheConnectionIsRefusedInACallback() throws Exception {
        Connection c = connect();
        refusedInACallback("close() of the connection", IllegalStateException.class, c.createSession(), c::close);
    }

    @Test
    @Spec("7.3.4")
    void closeOfTheProducerIsRefusedInACallback() throws Exception {
        MessageProducer producer = session().createProducer(queue());
        Completions completions = new Completions(producer::close);
        producer.send(session().createMessage(), completions);
        Object result = completions.result();
        yes(
                "close() of the producer in a callback must throw IllegalStateException, but: " + result,
                result instanceof IllegalStateException);
    }

    @Test
    @Spec("7.3.4")
    void commitIsRefusedInACallback() throws Exception {
        Session s = session(TRANSACTED);
        refusedInACallback("commit()", IllegalStateException.class, s, s::commit);
    }

    @Test
    @Spec("7.3.4")
    void rollbackIsRefusedInACallback() throws Exception {
        Session s = session(TRANSACTED);
        refusedInACallback("rollback()", IllegalStateException.class, s, s::rollback);
    }

    // ---- JMSProducer ------------------------------------------------------------------------------------------

    @Test
    void asynchronousProducerOfAContextCompletes() throws Exception {
        Queue queue = queue();
        Completions completions = new Completions();
        context().createProducer().setAsync(completions).send(queue, "a");
        completions.completed();
        equal("the message", "a", text(session().createConsumer(queue)));
    }

    @Test
    void setAsyncNullMakesSendsSynchronous() throws Exception {
        Queue queue = queue();
        Completions completions = new Completions();
        context().createProducer().setAsync(completions).setAsync(null).send(queue, "a");
        equal("the message", "a", text(session().createConsumer(queue)));
        yes("no callback must follow a synchronous send", completions.results.isEmpty());
    }

    @Test
    @Spec("api:JMSProducer")
    void getAsyncReturnsTheListener() {
        Completions completions = new Completions();
        JMSContext context = context();
        equal(
                "getAsync()",
                completions,
                context.createProducer().setAsync(completions).getAsync());
        isNull("getAsync() of a new producer", context.createProducer().getAsync());
    }

    @Test
    @Spec("7.3.4")
    void closeOfTheContextIsRefusedInACallback() throws Exception {
        Queue queue = queue();
        JMSContext context = context();
        Completions completions = new Completions(context::close);
        context.createProducer().setAsync(completions).send(queue, "a");
        Object result = completions.result();
        yes(
                "close() of the context in a callback must throw IllegalStateRuntimeException, but: " + result,
                result instanceof IllegalStateRuntimeException);
    }

    @Test
    @Spec("7.3.4")
    void commitAndRollbackOfTheContextAreRefusedInACallback() throws Exception {
        Queue queue = queue();
        JMSContext context = context(TRANSACTED);
        List<Object> results = Collections.synchronizedList(new ArrayList<>());
        Completions completions = new Completions(() -> {
            for (Runnable action : List.<Runnable>of(context::commit, context::rollback)) {
                try {
                    action.run();
                    results.add("returned");
                } catch (RuntimeException e) {
                    results.add(e);
                }
            }
        });
        context.createProducer().setAsync(completions).send(queue, "a");
        completions.completed();
        for (Object result : results) {
            yes(
                    "commit() or rollback() of the context in a callback must throw IllegalStateRuntimeException, but: "
                            + result,
                    result instanceof IllegalStateRuntimeException);
        }
    }
}
