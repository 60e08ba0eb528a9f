package io.github.pgaq.jms.conformance;

import jakarta.jms.ConnectionMetaData;
import jakarta.jms.ExceptionListener;
import jakarta.jms.IllegalStateRuntimeException;
import jakarta.jms.InvalidClientIDRuntimeException;
import jakarta.jms.InvalidDestinationRuntimeException;
import jakarta.jms.InvalidSelectorRuntimeException;
import jakarta.jms.JMSConsumer;
import jakarta.jms.JMSContext;
import jakarta.jms.JMSException;
import jakarta.jms.JMSProducer;
import jakarta.jms.JMSRuntimeException;
import jakarta.jms.JMSSecurityRuntimeException;
import jakarta.jms.Message;
import jakarta.jms.Queue;
import jakarta.jms.QueueBrowser;
import jakarta.jms.TemporaryTopic;
import jakarta.jms.TextMessage;
import jakarta.jms.Topic;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.Future;
import java.util.concurrent.LinkedBlockingQueue;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Test;

/** JMSContext: modes, start, acknowledgement, transactions, close, exceptions. */
@Spec("api:JMSContext")
class ContextTest extends ConformanceTest {
    private static final Class<IllegalStateRuntimeException> ILLEGAL = IllegalStateRuntimeException.class;

    private JMSContext used;

    private JMSContext mine() {
        if (used == null) {
            used = context();
        }
        return used;
    }

    // ---- creation ---------------------------------------------------------------------------------------------

    @Test
    void defaultModeIsAutoAcknowledge() {
        equal("getSessionMode()", JMSContext.AUTO_ACKNOWLEDGE, mine().getSessionMode());
        no("getTransacted()", mine().getTransacted());
    }

    @Test
    void eachModeIsReturned() {
        for (int mode : new int[] {AUTO, CLIENT, DUPS, TRANSACTED}) {
            JMSContext context = context(mode);
            equal("getSessionMode()", mode, context.getSessionMode());
            equal("getTransacted()", mode == TRANSACTED, context.getTransacted());
        }
    }

    @Test
    @Spec("api:ConnectionFactory")
    void invalidModeIsRefused() {
        fails(JMSRuntimeException.class, "createContext(99)", () -> context(99));
    }

    @Test
    @Spec("6.1.1")
    void userAndPasswordAreAccepted() {
        JMSContext context = closeLater(provider()
                .connectionFactory()
                .createContext(provider().user(), provider().password()));
        equal("getSessionMode()", AUTO, context.getSessionMode());
        JMSContext transacted = closeLater(provider()
                .connectionFactory()
                .createContext(provider().user(), provider().password(), TRANSACTED));
        equal("getSessionMode()", TRANSACTED, transacted.getSessionMode());
    }

    @Test
    @Spec({"6.1.1", "10.3"})
    void wrongPasswordIsRefused() {
        Assumptions.assumeTrue(provider().checksPasswords(), "the server trusts every password");
        fails(
                JMSSecurityRuntimeException.class,
                "createContext with a wrong password",
                () -> closeLater(provider()
                                .connectionFactory()
                                .createContext(provider().user(), "wrong"))
                        .createTextMessage());
    }

    @Test
    void createContextSharesTheConnection() {
        JMSContext context = context();
        String id = unique("client");
        context.setClientID(id);
        equal(
                "getClientID() of the second context",
                id,
                closeLater(context.createContext(CLIENT)).getClientID());
    }

    @Test
    void createContextHasAModeOfItsOwn() {
        equal(
                "getSessionMode() of the second context",
                TRANSACTED,
                closeLater(mine().createContext(TRANSACTED)).getSessionMode());
    }

    // ---- connection -------------------------------------------------------------------------------------------

    @Test
    @Spec("6.1.2")
    void clientIdIsReturned() {
        String id = unique("client");
        mine().setClientID(id);
        equal("getClientID()", id, mine().getClientID());
    }

    @Test
    @Spec("6.1.2")
    void clientIdIsRefusedAfterOtherCalls() throws JMSException {
        Queue queue = queue();
        mine().createConsumer(queue);
        fails(ILLEGAL, "setClientID() after createConsumer()", () -> mine().setClientID(unique("client")));
    }

    @Test
    @Spec({"6.1.2", "10.3"})
    void clientIdInUseIsRefused() {
        String id = unique("client");
        mine().setClientID(id);
        JMSContext second = context();
        fails(
                InvalidClientIDRuntimeException.class,
                "setClientID() with an identifier in use",
                () -> second.setClientID(id));
    }

    @Test
    @Spec("6.1.6")
    void metadataAreReturned() throws JMSException {
        ConnectionMetaData data = mine().getMetaData();
        yes("getJMSMajorVersion() must be 2 or more", data.getJMSMajorVersion() >= 2);
    }

    @Test
    @Spec("6.1.7")
    void exceptionListenerIsReturned() {
        ExceptionListener listener = e -> {};
        isNull("getExceptionListener()", mine().getExceptionListener());
        mine().setExceptionListener(listener);
        equal("getExceptionListener()", listener, mine().getExceptionListener());
    }

    // ---- start and stop ---------------------------------------------------------------------------------------

    @Test
    @Spec({"6.1.4", "8.4"})
    void firstConsumerStartsTheConnection() throws JMSException {
        Queue queue = queue();
        send(queue, "a");
        equal("the message received without start()", "a", text(mine().createConsumer(queue)));
    }

    @Test
    @Spec({"6.1.4", "8.4"})
    void autoStartIsTheDefault() {
        yes("getAutoStart()", mine().getAutoStart());
    }

    @Test
    @Spec({"6.1.4", "8.4"})
    void withoutAutoStartStartIsNeeded() throws JMSException {
        Queue queue = queue();
        send(queue, "a");
        mine().setAutoStart(false);
        no("getAutoStart()", mine().getAutoStart());
        JMSConsumer consumer = mine().createConsumer(queue);
        isNull("a message before start()", consumer.receive(QUIET));
        mine().start();
        equal("the message after start()", "a", text(consumer));
    }

    @Test
    @Spec("8.4")
    void durableConsumerStartsTheConnection() throws JMSException {
        Topic topic = topic();
        mine().setClientID(unique("client"));
        JMSConsumer consumer = mine().createDurableConsumer(topic, "sub");
        send(topic, "a");
        equal("the message received without start()", "a", text(consumer));
    }

    @Test
    @Spec("8.4")
    void sharedConsumerStartsTheConnection() throws JMSException {
        Topic topic = topic();
        JMSConsumer consumer = mine().createSharedConsumer(topic, unique("sub"));
        send(topic, "a");
        equal("the message received without start()", "a", text(consumer));
    }

    @Test
    @Spec("8.4")
    void browserStartsTheConnection() throws JMSException {
        Queue queue = queue();
        send(queue, "a");
        equal(
                "the number of browsed messages",
                1,
                browse(mine().createBrowser(queue)).size());
    }

    @Test
    @Spec("6.1.5")
    void stoppedContextDoesNotReceive() throws JMSException {
        Queue queue = queue();
        JMSConsumer consumer = mine().createConsumer(queue);
        mine().stop();
        send(queue, "a");
        isNull("a message of a stopped context", consumer.receive(QUIET));
        mine().start();
        equal("the message after start()", "a", text(consumer));
    }

    @Test
    @Spec("6.1.5")
    void stopStopsAllContextsOfTheConnection() throws JMSException {
        Queue queue = queue();
        JMSContext second = closeLater(mine().createContext(AUTO));
        JMSConsumer consumer = second.createConsumer(queue);
        mine().stop();
        send(queue, "a");
        isNull("a message of the other context", consumer.receive(QUIET));
    }

    @Test
    @Spec("6.1.4")
    void contextSendsWithoutStart() throws JMSException {
        Queue queue = queue();
        mine().createProducer().send(queue, "a");
        equal("the message", "a", text(session().createConsumer(queue)));
    }

    // ---- messages ---------------------------------------------------------------------------------------------

    @Test
    @Spec("6.2.4")
    void eachKindOfMessageIsCreated() throws JMSException {
        JMSContext context = mine();
        present("createMessage()", context.createMessage());
        present("createBytesMessage()", context.createBytesMessage());
        present("createMapMessage()", context.createMapMessage());
        present("createStreamMessage()", context.createStreamMessage());
        isNull(
                "the object of createObjectMessage()",
                context.createObjectMessage().getObject());
        equal(
                "the object of createObjectMessage(object)",
                "o",
                context.createObjectMessage("o").getObject());
        isNull("the text of createTextMessage()", context.createTextMessage().getText());
        equal(
                "the text of createTextMessage(text)",
                "t",
                context.createTextMessage("t").getText());
    }

    @Test
    @Spec("6.2.3")
    void destinationsAreCreatedByName() throws JMSException {
        String queue = queueName();
        String topic = topicName();
        equal("createQueue()", queue, mine().createQueue(queue).getQueueName());
        equal("createTopic()", topic, mine().createTopic(topic).getTopicName());
    }

    @Test
    @Spec("6.2.2")
    void temporaryTopicIsCreated() throws JMSException {
        TemporaryTopic topic = mine().createTemporaryTopic();
        JMSConsumer consumer = mine().createConsumer(topic);
        mine().createProducer().send(topic, "a");
        equal("the message of the temporary topic", "a", text(consumer));
    }

    @Test
    @Spec("4.1.6")
    void browserIsCreated() throws JMSException {
        Queue queue = queue();
        sendWith(queue, "1", "n", 1);
        sendWith(queue, "2", "n", 2);
        QueueBrowser browser = mine().createBrowser(queue, "n = 2");
        List<Message> messages = browse(browser);
        equal("the number of browsed messages", 1, messages.size());
        equal("the browsed message", "2", ((TextMessage) messages.get(0)).getText());
    }

    // ---- acknowledgement and transactions ---------------------------------------------------------------------

    @Test
    @Spec("6.2.10")
    void acknowledgeOfTheContext() throws JMSException {
        Queue queue = queue();
        send(queue, "a", "b");
        JMSContext context = context(CLIENT);
        JMSConsumer consumer = context.createConsumer(queue);
        receive(consumer);
        receive(consumer);
        context.acknowledge();
        context.close();
        send(queue, "marker");
        equal("the first message that is left", "marker", text(session().createConsumer(queue)));
    }

    @Test
    @Spec("api:JMSContext")
    void acknowledgeIsIgnoredInOtherModes() {
        works("acknowledge() with AUTO_ACKNOWLEDGE", context(AUTO)::acknowledge);
        works("acknowledge() with DUPS_OK_ACKNOWLEDGE", context(DUPS)::acknowledge);
        works("acknowledge() in a transaction", context(TRANSACTED)::acknowledge);
    }

    @Test
    @Spec("6.2.10")
    void recoverOfTheContext() throws JMSException {
        Queue queue = queue();
        send(queue, "a");
        JMSContext context = context(CLIENT);
        JMSConsumer consumer = context.createConsumer(queue);
        receive(consumer);
        context.recover();
        Message message = receive(consumer);
        yes("JMSRedelivered after recover()", message.getJMSRedelivered());
        equal("JMSXDeliveryCount after recover()", 2, count(message));
    }

    @Test
    @Spec("6.2.7")
    void contextCommits() throws JMSException {
        Queue queue = queue();
        JMSContext context = context(TRANSACTED);
        context.createProducer().send(queue, "a");
        jakarta.jms.MessageConsumer consumer = session().createConsumer(queue);
        nothing("the transaction is not committed", consumer);
        context.commit();
        equal("the message after commit()", "a", text(consumer));
    }

    @Test
    @Spec("6.2.7")
    void contextRollsBack() throws JMSException {
        Queue queue = queue();
        send(queue, "in");
        JMSContext context = context(TRANSACTED);
        JMSConsumer consumer = context.createConsumer(queue);
        text(consumer);
        context.createProducer().send(queue, "out");
        context.rollback();
        equal("the message after rollback()", "in", text(consumer));
        nothing("the sent message was rolled back", consumer);
    }

    @Test
    @Spec("10.3")
    void commitAndRollbackAreRefusedUnlessTransacted() {
        for (int mode : new int[] {AUTO, CLIENT, DUPS}) {
            JMSContext context = context(mode);
            fails(ILLEGAL, "commit() of a context that is not transacted", context::commit);
            fails(ILLEGAL, "rollback() of a context that is not transacted", context::rollback);
        }
    }

    @Test
    void recoverIsRefusedIfTransacted() {
        JMSContext context = context(TRANSACTED);
        fails(ILLEGAL, "recover() of a transacted context", context::recover);
    }

    // ---- errors -----------------------------------------------------------------------------------------------

    @Test
    @Spec("10.3")
    void invalidSelectorIsRefused() throws JMSException {
        Queue queue = queue();
        Topic topic = topic();
        Class<InvalidSelectorRuntimeException> error = InvalidSelectorRuntimeException.class;
        fails(error, "createConsumer()", () -> mine().createConsumer(queue, "a ="));
        fails(error, "createBrowser()", () -> mine().createBrowser(queue, "a ="));
        fails(error, "createSharedConsumer()", () -> mine().createSharedConsumer(topic, unique("s"), "a ="));
        fails(
                error,
                "createSharedDurableConsumer()",
                () -> mine().createSharedDurableConsumer(topic, unique("s"), "a ="));
    }

    @Test
    @Spec("10.3")
    void nullDestinationIsRefused() {
        Class<InvalidDestinationRuntimeException> error = InvalidDestinationRuntimeException.class;
        fails(error, "createConsumer(null)", () -> mine().createConsumer(null));
        fails(error, "createBrowser(null)", () -> mine().createBrowser(null));
        fails(error, "createSharedConsumer(null)", () -> mine().createSharedConsumer(null, "s"));
        fails(error, "createSharedDurableConsumer(null)", () -> mine().createSharedDurableConsumer(null, "s"));
        fails(error, "send(null)", () -> mine().createProducer().send(null, "a"));
    }

    @Test
    @Spec("8.3.3")
    void durableConsumerNeedsAClientId() throws JMSException {
        Topic topic = topic();
        fails(
                ILLEGAL,
                "createDurableConsumer without client identifier",
                () -> mine().createDurableConsumer(topic, "sub"));
    }

    @Test
    @Spec("8.3.3")
    void durableConsumerInUseIsRefused() throws JMSException {
        Topic topic = topic();
        mine().setClientID(unique("client"));
        mine().createDurableConsumer(topic, "sub");
        fails(
                JMSRuntimeException.class,
                "a second createDurableConsumer",
                () -> mine().createDurableConsumer(topic, "sub"));
    }

    @Test
    @Spec("8.3.2")
    void sharedConsumerWithAnotherSelectorIsRefused() throws JMSException {
        Topic topic = topic();
        String name = unique("sub");
        mine().createSharedConsumer(topic, name, "a = 1");
        fails(
                JMSRuntimeException.class,
                "createSharedConsumer with another selector",
                () -> mine().createSharedConsumer(topic, name, "a = 2"));
    }

    @Test
    @Spec({"8.3.3", "10.3"})
    void unsubscribeOfTheContext() throws JMSException {
        Topic topic = topic();
        mine().setClientID(unique("client"));
        mine().createDurableConsumer(topic, "sub").close();
        send(topic, "old");
        mine().unsubscribe("sub");
        JMSConsumer consumer = mine().createDurableConsumer(topic, "sub");
        send(topic, "new");
        equal("the first message of a new subscription", "new", text(consumer));
    }

    @Test
    @Spec("10.3")
    void unsubscribeOfAnUnknownNameIsRefused() {
        mine().setClientID(unique("client"));
        fails(
                InvalidDestinationRuntimeException.class,
                "unsubscribe() of an unknown subscription",
                () -> mine().unsubscribe(unique("none")));
    }

    @Test
    @Spec("8.3.4")
    void sharedDurableConsumerOfTheContext() throws JMSException {
        Topic topic = topic();
        String name = unique("sub");
        mine().createSharedDurableConsumer(topic, name).close();
        send(topic, "a");
        JMSConsumer consumer = mine().createSharedDurableConsumer(topic, name);
        equal("the message sent while it was inactive", "a", text(consumer));
        consumer.close();
        mine().unsubscribe(name);
    }

    @Test
    @Spec("8.3.1")
    void noLocalOfTheContext() throws JMSException {
        Topic topic = topic();
        JMSConsumer consumer = mine().createConsumer(topic, null, true);
        mine().createProducer().send(topic, "own");
        send(topic, "other");
        equal("the first message", "other", text(consumer));
    }

    @Test
    @Spec("8.3.3")
    void durableNoLocalOfTheContext() throws JMSException {
        Topic topic = topic();
        mine().setClientID(unique("client"));
        JMSConsumer consumer = mine().createDurableConsumer(topic, "sub", null, true);
        mine().createProducer().send(topic, "own");
        send(topic, "other");
        equal("the first message", "other", text(consumer));
    }

    // ---- close ------------------------------------------------------------------------------------------------

    @Test
    @Spec("6.1.8")
    void closeIsIdempotent() {
        JMSContext context = context();
        context.close();
        works("close() of a closed context", context::close);
    }

    @Test
    @Spec("6.1.8")
    void closedContextRefusesEachMethod() throws JMSException {
        Queue queue = queue();
        Topic topic = topic();
        JMSContext context = context();
        JMSProducer producer = context.createProducer();
        JMSConsumer consumer = context.createConsumer(queue);
        context.close();
        fails(ILLEGAL, "createMessage()", context::createMessage);
        fails(ILLEGAL, "createTextMessage()", () -> context.createTextMessage("a"));
        fails(ILLEGAL, "createBytesMessage()", context::createBytesMessage);
        fails(ILLEGAL, "createConsumer()", () -> context.createConsumer(queue));
        fails(ILLEGAL, "createBrowser()", () -> context.createBrowser(queue));
        fails(ILLEGAL, "createSharedConsumer()", () -> context.createSharedConsumer(topic, "s"));
        fails(ILLEGAL, "createTemporaryQueue()", context::createTemporaryQueue);
        fails(ILLEGAL, "createContext()", () -> context.createContext(AUTO));
        fails(ILLEGAL, "start()", context::start);
        fails(ILLEGAL, "stop()", context::stop);
        fails(ILLEGAL, "send()", () -> producer.send(queue, "a"));
        fails(ILLEGAL, "receiveNoWait()", consumer::receiveNoWait);
    }

    @Test
    @Spec("6.1.8")
    void connectionStaysOpenForOtherContexts() throws JMSException {
        Queue queue = queue();
        JMSContext first = context();
        JMSContext second = closeLater(first.createContext(AUTO));
        first.close();
        second.createProducer().send(queue, "a");
        equal("the message of the context that is still open", "a", text(second.createConsumer(queue)));
    }

    @Test
    @Spec("6.1.8")
    void lastCloseClosesTheConnection() throws JMSException {
        JMSContext first = context();
        Queue temporary = first.createTemporaryQueue();
        JMSContext second = first.createContext(AUTO);
        first.close();
        works("a send to a temporary queue while a context is open", () -> send(temporary, "a"));
        second.close();
        fails(
                JMSException.class,
                "a send to a temporary queue after the last context was closed",
                () -> send(temporary, "a"));
    }

    @Test
    @Spec("6.1.8")
    void closeRollsBack() throws JMSException {
        Queue queue = queue();
        JMSContext context = context(TRANSACTED);
        context.createProducer().send(queue, "a");
        context.close();
        send(queue, "marker");
        equal("the first message", "marker", text(session().createConsumer(queue)));
    }

    @Test
    @Spec("6.1.8")
    void closeEndsABlockedReceive() throws Exception {
        Queue queue = queue();
        JMSContext context = context();
        JMSConsumer consumer = context.createConsumer(queue);
        Future<Message> receive = thread(() -> consumer.receive());
        pending("receive() of an empty queue", receive);
        context.close();
        isNull("receive() ended by the close of its context", result("receive()", receive));
    }

    @Test
    @Spec("6.1.8")
    void acknowledgeOfAMessageAfterCloseFails() throws JMSException {
        Queue queue = queue();
        send(queue, "a");
        JMSContext context = context(CLIENT);
        Message message = receive(context.createConsumer(queue));
        context.close();
        fails(Exception.class, "acknowledge() after the context was closed", message::acknowledge);
    }

    @Test
    @Spec("6.1.8")
    void tryWithResourcesCloses() {
        JMSContext closed;
        try (JMSContext context = provider().connectionFactory().createContext()) {
            closed = context;
        }
        fails(ILLEGAL, "createMessage() after try-with-resources", closed::createMessage);
    }

    // ---- listeners --------------------------------------------------------------------------------------------

    @Test
    @Spec("8.7")
    void listenerOfAContextGetsMessages() throws Exception {
        Queue queue = queue();
        BlockingQueue<Message> received = new LinkedBlockingQueue<>();
        mine().createConsumer(queue).setMessageListener(received::add);
        send(queue, "a");
        equal("the message", "a", ((TextMessage) next("the message", received)).getText());
    }

    @Test
    @Spec("6.2.6")
    void secondListenerIsSetWhileTheFirstRuns() throws Exception {
        Queue one = queue();
        Queue two = queue();
        BlockingQueue<Message> received = new LinkedBlockingQueue<>();
        JMSConsumer first = mine().createConsumer(one);
        JMSConsumer second = mine().createConsumer(two);
        first.setMessageListener(received::add);
        send(one, "1");
        equal("the message of the first listener", "1", ((TextMessage) next("the message", received)).getText());
        works("a second setMessageListener()", () -> second.setMessageListener(received::add));
        send(two, "2");
        equal("the message of the second listener", "2", ((TextMessage) next("the message", received)).getText());
    }

    @Test
    @Spec({"6.1.8", "6.2.15"})
    void closeInAListenerFailsOrCloses() throws Exception {
        Queue queue = queue();
        JMSContext context = context();
        BlockingQueue<Object> results = new LinkedBlockingQueue<>();
        context.createConsumer(queue).setMessageListener(message -> {
            try {
                context.close();
                results.add("closed");
            } catch (Throwable e) {
                results.add(e);
            }
        });
        send(queue, "a");
        Object result = next("the end of close() in a listener", results);
        yes(
                "close() in a listener must close or throw IllegalStateRuntimeException, but: " + result,
                result.equals("closed") || result instanceof IllegalStateRuntimeException);
    }

    @Test
    @Spec("6.1.5")
    void stopInAListenerFailsOrStops() throws Exception {
        Queue queue = queue();
        JMSContext context = context();
        BlockingQueue<Object> results = new LinkedBlockingQueue<>();
        context.createConsumer(queue).setMessageListener(message -> {
            try {
                context.stop();
                results.add("stopped");
            } catch (Throwable e) {
                results.add(e);
            }
        });
        send(queue, "a");
        Object result = next("the end of stop() in a listener", results);
        yes(
                "stop() in a listener must stop or throw IllegalStateRuntimeException, but: " + result,
                result.equals("stopped") || result instanceof IllegalStateRuntimeException);
    }

    @Test
    @Spec("3.5.9")
    void metadataNameTheMandatoryProperties() throws JMSException {
        yes(
                "getJMSXPropertyNames() must have JMSXDeliveryCount",
                Collections.list(mine().getMetaData().getJMSXPropertyNames()).contains("JMSXDeliveryCount"));
    }
}
