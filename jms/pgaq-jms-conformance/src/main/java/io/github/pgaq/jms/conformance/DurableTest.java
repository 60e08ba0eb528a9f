package io.github.pgaq.jms.conformance;

import jakarta.jms.Connection;
import jakarta.jms.DeliveryMode;
import jakarta.jms.IllegalStateException;
import jakarta.jms.InvalidDestinationException;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.Session;
import jakarta.jms.TextMessage;
import jakarta.jms.Topic;
import jakarta.jms.TopicSubscriber;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.Test;

/** Durable subscriptions, shared or not. */
@Spec("8.3.3")
class DurableTest extends ConformanceTest {
    private final String client = unique("client");
    private Session durable;

    /** A session of a connection with a client identifier. */
    private Session durable() throws JMSException {
        if (durable == null) {
            durable = connect(client).createSession();
        }
        return durable;
    }

    @Test
    void inactiveSubscriptionCollects() throws JMSException {
        Topic topic = topic();
        durable().createDurableConsumer(topic, "sub").close();
        send(topic, "a", "b");
        equal(
                "the messages sent while it was inactive",
                List.of("a", "b"),
                texts(durable().createDurableConsumer(topic, "sub"), 2));
    }

    @Test
    void subscriptionOutlivesItsConnection() throws JMSException {
        Topic topic = topic();
        Connection first = connect(client);
        first.createSession().createDurableConsumer(topic, "sub");
        first.close();
        send(topic, "a");
        equal(
                "the message for the next connection",
                "a",
                text(connect(client).createSession().createDurableConsumer(topic, "sub")));
    }

    @Test
    void messagesBeforeTheSubscriptionDoNotCome() throws JMSException {
        Topic topic = topic();
        send(topic, "early");
        MessageConsumer consumer = durable().createDurableConsumer(topic, "sub");
        send(topic, "late");
        equal("the first message", "late", text(consumer));
    }

    @Test
    void acknowledgedMessagesDoNotComeAgain() throws JMSException {
        Topic topic = topic();
        MessageConsumer consumer = durable().createDurableConsumer(topic, "sub");
        send(topic, "a", "b");
        equal("the first message", "a", text(consumer));
        consumer.close();
        equal("the first message after it was reopened", "b", text(durable().createDurableConsumer(topic, "sub")));
    }

    @Test
    @Spec({"6.2", "4.2.8"})
    void unacknowledgedMessagesComeAgain() throws JMSException {
        Topic topic = topic();
        Connection first = connect(client);
        MessageConsumer consumer = first.createSession(CLIENT).createDurableConsumer(topic, "sub");
        send(topic, "a");
        text(consumer);
        first.close();
        Message message = receive(connect(client).createSession().createDurableConsumer(topic, "sub"));
        yes("JMSRedelivered of a message that was not acknowledged", message.getJMSRedelivered());
    }

    @Test
    void subscriberIsADurableSubscriptionToo() throws JMSException {
        Topic topic = topic();
        TopicSubscriber subscriber = durable().createDurableSubscriber(topic, "sub");
        equal("getTopic()", topic, subscriber.getTopic());
        no("getNoLocal()", subscriber.getNoLocal());
        subscriber.close();
        send(topic, "a");
        equal("the message sent while it was inactive", "a", text(durable().createDurableConsumer(topic, "sub")));
    }

    @Test
    @Spec({"8.3.3", "4.2.2", "6.1.2"})
    void clientIdIsNeeded() throws JMSException {
        Topic topic = topic();
        fails(
                IllegalStateException.class,
                "createDurableConsumer without client identifier",
                () -> session().createDurableConsumer(topic, "sub"));
        fails(
                IllegalStateException.class,
                "createDurableSubscriber without client identifier",
                () -> session().createDurableSubscriber(topic, "sub"));
        fails(
                IllegalStateException.class,
                "createDurableConsumer with a selector, without client identifier",
                () -> session().createDurableConsumer(topic, "sub", "a = 1", false));
        fails(
                IllegalStateException.class,
                "createDurableSubscriber with a selector, without client identifier",
                () -> session().createDurableSubscriber(topic, "sub", "a = 1", false));
    }

    @Test
    @Spec({"8.3.3", "4.2.2"})
    void secondConsumerIsRefused() throws JMSException {
        Topic topic = topic();
        durable().createDurableConsumer(topic, "sub");
        fails(
                JMSException.class,
                "a second consumer of a durable subscription that is not shared",
                () -> durable().createDurableConsumer(topic, "sub"));
    }

    @Test
    @Spec({"8.3.3", "4.2.2"})
    void secondConsumerOfAnotherSessionIsRefused() throws JMSException {
        Topic topic = topic();
        Connection c = connect(client);
        c.createSession().createDurableConsumer(topic, "sub");
        Session other = c.createSession();
        fails(
                JMSException.class,
                "a second consumer in another session",
                () -> other.createDurableConsumer(topic, "sub"));
    }

    @Test
    void consumerIsAllowedAfterTheFirstWasClosed() throws JMSException {
        Topic topic = topic();
        durable().createDurableConsumer(topic, "sub").close();
        works(
                "createDurableConsumer after the other was closed",
                () -> durable().createDurableConsumer(topic, "sub"));
    }

    @Test
    void clientIdsHaveSubscriptionsOfTheirOwn() throws JMSException {
        Topic topic = topic();
        MessageConsumer one = durable().createDurableConsumer(topic, "sub");
        MessageConsumer two = connect(unique("client")).createSession().createDurableConsumer(topic, "sub");
        send(topic, "a");
        equal("the subscription of the first client", "a", text(one));
        equal("the subscription of the second client", "a", text(two));
    }

    @Test
    void namesAreTold() throws JMSException {
        Topic topic = topic();
        MessageConsumer one = durable().createDurableConsumer(topic, "one");
        MessageConsumer two = durable().createDurableConsumer(topic, "two");
        send(topic, "a");
        equal("the subscription one", "a", text(one));
        equal("the subscription two", "a", text(two));
    }

    @Test
    void subscriptionSelects() throws JMSException {
        Topic topic = topic();
        durable().createDurableConsumer(topic, "sub", "color = 'blue'", false).close();
        sendWith(topic, "red", "color", "red");
        sendWith(topic, "blue", "color", "blue");
        equal(
                "the message that matches",
                "blue",
                text(durable().createDurableConsumer(topic, "sub", "color = 'blue'", false)));
    }

    @Test
    void otherSelectorMakesANewSubscription() throws JMSException {
        Topic topic = topic();
        durable().createDurableConsumer(topic, "sub", "color = 'blue'", false).close();
        sendWith(topic, "old", "color", "blue");
        MessageConsumer consumer = durable().createDurableConsumer(topic, "sub", "color = 'red'", false);
        sendWith(topic, "blue", "color", "blue");
        sendWith(topic, "red", "color", "red");
        equal("the first message of the new subscription", "red", text(consumer));
    }

    @Test
    void leavingTheSelectorOutMakesANewSubscription() throws JMSException {
        Topic topic = topic();
        durable().createDurableConsumer(topic, "sub", "color = 'blue'", false).close();
        sendWith(topic, "old", "color", "blue");
        MessageConsumer consumer = durable().createDurableConsumer(topic, "sub");
        send(topic, "new");
        equal("the first message of the new subscription", "new", text(consumer));
    }

    @Test
    void otherTopicMakesANewSubscription() throws JMSException {
        Topic one = topic();
        Topic two = topic();
        durable().createDurableConsumer(one, "sub").close();
        send(one, "old");
        MessageConsumer consumer = durable().createDurableConsumer(two, "sub");
        send(one, "of the old topic");
        send(two, "new");
        equal("the first message of the new subscription", "new", text(consumer));
    }

    @Test
    void otherNoLocalMakesANewSubscription() throws JMSException {
        Topic topic = topic();
        durable().createDurableConsumer(topic, "sub", null, false).close();
        send(topic, "old");
        MessageConsumer consumer = durable().createDurableConsumer(topic, "sub", null, true);
        send(topic, "new");
        equal("the first message of the new subscription", "new", text(consumer));
    }

    @Test
    void noLocalLeavesOutMessagesOfTheConnection() throws JMSException {
        Topic topic = topic();
        MessageConsumer consumer = durable().createDurableConsumer(topic, "sub", null, true);
        durable().createProducer(topic).send(durable().createTextMessage("own"));
        send(topic, "other");
        equal("the first message", "other", text(consumer));
    }

    @Test
    void noLocalLeavesOutMessagesOfTheClientIdWhileInactive() throws JMSException {
        Topic topic = topic();
        Connection first = connect(client);
        first.createSession().createDurableConsumer(topic, "sub", null, true);
        first.close();
        Connection second = connect(client);
        Session s = second.createSession();
        s.createProducer(topic).send(s.createTextMessage("own"));
        send(topic, "other");
        equal("the first message", "other", text(s.createDurableConsumer(topic, "sub", null, true)));
    }

    @Test
    void subscriberReportsNoLocal() throws JMSException {
        yes(
                "getNoLocal()",
                durable().createDurableSubscriber(topic(), "sub", null, true).getNoLocal());
    }

    @Test
    @Spec("7.7")
    void persistentAndNonPersistentMessagesAreKept() throws JMSException {
        Topic topic = topic();
        MessageConsumer consumer = durable().createDurableConsumer(topic, "sub");
        sender().createProducer(topic).send(sender().createTextMessage("np"), DeliveryMode.NON_PERSISTENT, 4, 0);
        equal("the message that is not persistent", "np", text(consumer));
    }

    @Test
    @Spec("10.3")
    void nullTopicIsRefused() throws JMSException {
        fails(
                InvalidDestinationException.class,
                "createDurableConsumer(null, name)",
                () -> durable().createDurableConsumer(null, "sub"));
    }

    @Test
    void nullNameIsRefused() throws JMSException {
        Topic topic = topic();
        fails(
                Exception.class,
                "createDurableConsumer(topic, null)",
                () -> durable().createDurableConsumer(topic, null));
    }

    @Test
    @Spec("10.3")
    void invalidSelectorIsRefused() throws JMSException {
        Topic topic = topic();
        fails(
                jakarta.jms.InvalidSelectorException.class,
                "createDurableConsumer with the selector \"a =\"",
                () -> durable().createDurableConsumer(topic, "sub", "a =", false));
    }

    // ---- unsubscribe ------------------------------------------------------------------------------------------

    @Test
    void unsubscribeDeletes() throws JMSException {
        Topic topic = topic();
        durable().createDurableConsumer(topic, "sub").close();
        send(topic, "old");
        durable().unsubscribe("sub");
        MessageConsumer consumer = durable().createDurableConsumer(topic, "sub");
        send(topic, "new");
        equal("the first message of a new subscription", "new", text(consumer));
    }

    @Test
    @Spec({"8.3.3", "10.3"})
    void unsubscribeOfAnUnknownNameIsRefused() throws JMSException {
        fails(
                InvalidDestinationException.class,
                "unsubscribe() of an unknown subscription",
                () -> durable().unsubscribe(unique("none")));
    }

    @Test
    void unsubscribeWithAnActiveConsumerIsRefused() throws JMSException {
        Topic topic = topic();
        durable().createDurableConsumer(topic, "sub");
        fails(
                JMSException.class,
                "unsubscribe() with an active consumer",
                () -> durable().unsubscribe("sub"));
    }

    @Test
    void unsubscribeTakesTheClientIdIntoAccount() throws JMSException {
        Topic topic = topic();
        durable().createDurableConsumer(topic, "sub").close();
        Session other = connect(unique("client")).createSession();
        fails(
                JMSException.class,
                "unsubscribe() of a subscription of another client identifier",
                () -> other.unsubscribe("sub"));
        send(topic, "a");
        equal(
                "the message of the subscription that is still there",
                "a",
                text(durable().createDurableConsumer(topic, "sub")));
    }

    @Test
    @Spec("4.2.9")
    void subscriptionsAreMadeAndDeletedAgainAndAgain() throws JMSException {
        Topic topic = topic();
        for (int i = 0; i < 5; i++) {
            MessageConsumer consumer = durable().createDurableConsumer(topic, "sub");
            send(topic, Integer.toString(i));
            equal("the message of round " + i, Integer.toString(i), text(consumer));
            consumer.close();
            durable().unsubscribe("sub");
        }
    }

    @Test
    @Spec("6.1.2")
    void attemptWithAClientIdInUseLosesAndDoublesNothing() throws JMSException {
        Topic topic = topic();
        MessageConsumer consumer = durable().createDurableConsumer(topic, "sub");
        send(topic, "a", "b");
        equal("the message before the attempt", "a", text(consumer));
        Connection second = connectStopped();
        fails(JMSException.class, "setClientID() with an identifier in use", () -> second.setClientID(client));
        second.close();
        equal("the message after the attempt", "b", text(consumer));
        nothing("both messages were received", consumer);
    }

    // ---- shared durable ---------------------------------------------------------------------------------------

    @Test
    @Spec("8.3.4")
    void sharedDurableSubscriptionNeedsNoClientId() throws JMSException {
        Topic topic = topic();
        String name = unique("sub");
        session().createSharedDurableConsumer(topic, name).close();
        send(topic, "a");
        MessageConsumer consumer = session().createSharedDurableConsumer(topic, name);
        equal("the message sent while it was inactive", "a", text(consumer));
        consumer.close();
        session().unsubscribe(name);
    }

    @Test
    @Spec("8.3.4")
    void sharedDurableSubscriptionDividesItsMessages() throws JMSException {
        Topic topic = topic();
        Connection c = connect(client);
        MessageConsumer one = c.createSession().createSharedDurableConsumer(topic, "sub");
        MessageConsumer two = c.createSession().createSharedDurableConsumer(topic, "sub");
        for (int i = 0; i < 10; i++) {
            send(topic, Integer.toString(i));
        }
        Set<String> seen = new HashSet<>();
        long end = clock() + WAIT;
        while (seen.size() < 10 && clock() < end) {
            for (MessageConsumer consumer : List.of(one, two)) {
                Message message = consumer.receive(20);
                if (message != null) {
                    yes(
                            "a message must go to one consumer of the subscription",
                            seen.add(((TextMessage) message).getText()));
                }
            }
        }
        equal("the number of messages", 10, seen.size());
    }

    @Test
    @Spec("8.3.4")
    void sharedDurableSubscriptionOutlivesItsConsumers() throws JMSException {
        Topic topic = topic();
        Connection first = connect(client);
        first.createSession().createSharedDurableConsumer(topic, "sub");
        first.close();
        send(topic, "a");
        equal(
                "the message sent while it was inactive",
                "a",
                text(connect(client).createSession().createSharedDurableConsumer(topic, "sub")));
    }

    @Test
    @Spec("8.3.4")
    void sharedDurableSubscriptionInUseRefusesAnotherTopic() throws JMSException {
        Topic topic = topic();
        Topic other = topic();
        durable().createSharedDurableConsumer(topic, "sub");
        fails(
                JMSException.class,
                "createSharedDurableConsumer for another topic",
                () -> durable().createSharedDurableConsumer(other, "sub"));
    }

    @Test
    @Spec("8.3.4")
    void sharedDurableSubscriptionInUseRefusesAnotherSelector() throws JMSException {
        Topic topic = topic();
        durable().createSharedDurableConsumer(topic, "sub", "a = 1");
        fails(
                JMSException.class,
                "createSharedDurableConsumer with another selector",
                () -> durable().createSharedDurableConsumer(topic, "sub", "a = 2"));
    }

    @Test
    @Spec("8.3.4")
    void inactiveSharedDurableSubscriptionChangesItsSelector() throws JMSException {
        Topic topic = topic();
        durable().createSharedDurableConsumer(topic, "sub", "color = 'blue'").close();
        sendWith(topic, "old", "color", "blue");
        MessageConsumer consumer = durable().createSharedDurableConsumer(topic, "sub", "color = 'red'");
        sendWith(topic, "red", "color", "red");
        equal("the first message of the new subscription", "red", text(consumer));
    }

    @Test
    @Spec("8.3.4")
    void inactiveSharedDurableSubscriptionChangesItsTopic() throws JMSException {
        Topic one = topic();
        Topic two = topic();
        durable().createSharedDurableConsumer(one, "sub").close();
        send(one, "old");
        MessageConsumer consumer = durable().createSharedDurableConsumer(two, "sub");
        send(two, "new");
        equal("the first message of the new subscription", "new", text(consumer));
    }

    @Test
    @Spec({"8.3.3", "8.3.4"})
    void durableNameCannotBeSharedToo() throws JMSException {
        Topic topic = topic();
        durable().createDurableConsumer(topic, "sub").close();
        fails(
                JMSException.class,
                "createSharedDurableConsumer with the name of an unshared durable subscription",
                () -> durable().createSharedDurableConsumer(topic, "sub"));
    }

    @Test
    @Spec({"8.3.3", "8.3.4"})
    void sharedDurableNameCannotBeUnsharedToo() throws JMSException {
        Topic topic = topic();
        durable().createSharedDurableConsumer(topic, "sub").close();
        fails(
                JMSException.class,
                "createDurableConsumer with the name of a shared durable subscription",
                () -> durable().createDurableConsumer(topic, "sub"));
    }

    @Test
    @Spec("8.3.4")
    void sharedDurableAndSharedOfOneNameAreSeparate() throws JMSException {
        Topic topic = topic();
        MessageConsumer shared = durable().createSharedConsumer(topic, "sub");
        MessageConsumer both = durable().createSharedDurableConsumer(topic, "sub");
        send(topic, "a");
        equal("the shared subscription", "a", text(shared));
        equal("the shared durable subscription of the same name", "a", text(both));
    }

    @Test
    @Spec("8.3.4")
    void unsubscribeOfASharedDurableSubscription() throws JMSException {
        Topic topic = topic();
        durable().createSharedDurableConsumer(topic, "sub").close();
        send(topic, "old");
        durable().unsubscribe("sub");
        MessageConsumer consumer = durable().createSharedDurableConsumer(topic, "sub");
        send(topic, "new");
        equal("the first message of a new subscription", "new", text(consumer));
    }

    @Test
    @Spec("8.3.4")
    void unsubscribeOfASharedDurableSubscriptionInUseIsRefused() throws JMSException {
        Topic topic = topic();
        durable().createSharedDurableConsumer(topic, "sub");
        fails(
                JMSException.class,
                "unsubscribe() with an active consumer",
                () -> durable().unsubscribe("sub"));
    }

    @Test
    @Spec("4.2.4")
    void durableNamesMayHaveAllCharacters() throws JMSException {
        Topic topic = topic();
        String name = "Aa0_.-\u00e4\u03b1\u4e2d";
        durable().createDurableConsumer(topic, name).close();
        send(topic, "a");
        equal(
                "the message of a subscription with an odd name",
                "a",
                text(durable().createDurableConsumer(topic, name)));
    }

    @Test
    @Spec("4.2.4")
    void durableNamesMayHave128Characters() throws JMSException {
        Topic topic = topic();
        String name = "x".repeat(128);
        durable().createDurableConsumer(topic, name).close();
        send(topic, "a");
        equal(
                "the message of a subscription with a name of 128 characters",
                "a",
                text(durable().createDurableConsumer(topic, name)));
    }

    @Test
    void dotsInNamesDoNotMixClientIdsUp() throws JMSException {
        Topic topic = topic();
        Session one = connect(client + ".a").createSession();
        Session two = connect(client).createSession();
        MessageConsumer first = one.createDurableConsumer(topic, "b");
        MessageConsumer second = two.createDurableConsumer(topic, "a.b");
        send(topic, "x");
        equal("the subscription b of the client X.a", "x", text(first));
        equal("the subscription a.b of the client X", "x", ((TextMessage) receive(second)).getText());
    }
}
