package io.github.pgaq.jms.conformance;

import jakarta.jms.Connection;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.Session;
import jakarta.jms.TextMessage;
import jakarta.jms.Topic;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.Test;

/** Topics with subscriptions that are not durable, shared or not. */
@Spec("8.3.1")
class TopicTest extends ConformanceTest {
    private final String sub = unique("sub");

    @Test
    @Spec("4.2.2")
    void eachSubscriptionGetsACopy() throws JMSException {
        Topic topic = topic();
        MessageConsumer one = session().createConsumer(topic);
        MessageConsumer two = session().createConsumer(topic);
        MessageConsumer three = connect().createSession().createConsumer(topic);
        send(topic, "a");
        equal("the copy of the first subscription", "a", text(one));
        equal("the copy of the second subscription", "a", text(two));
        equal("the copy of another connection", "a", text(three));
    }

    @Test
    @Spec("4.2.2")
    void copiesAreAcknowledgedEachForItself() throws JMSException {
        Topic topic = topic();
        Session one = session(CLIENT);
        Session two = session(CLIENT);
        MessageConsumer first = one.createConsumer(topic);
        MessageConsumer second = two.createConsumer(topic);
        send(topic, "a");
        receive(first).acknowledge();
        receive(second);
        two.recover();
        equal("the copy that was not acknowledged", "a", text(second));
    }

    @Test
    @Spec("4.2.2")
    void messageBeforeTheSubscriptionIsNotReceived() throws JMSException {
        Topic topic = topic();
        send(topic, "early");
        MessageConsumer consumer = session().createConsumer(topic);
        send(topic, "late");
        equal("the first message after the subscription was made", "late", text(consumer));
    }

    @Test
    void messageWithoutSubscriptionIsDropped() throws JMSException {
        Topic topic = topic();
        works("a send to a topic without subscriptions", () -> send(topic, "a"));
        nothing("the message was sent before", session().createConsumer(topic));
    }

    @Test
    void closedConsumerLosesItsMessages() throws JMSException {
        Topic topic = topic();
        MessageConsumer consumer = session().createConsumer(topic);
        send(topic, "a");
        consumer.close();
        nothing(
                "a new subscription does not have the messages of the old one",
                session().createConsumer(topic));
    }

    @Test
    @Spec("6.1.4")
    void subscriptionOfAStoppedConnectionCollects() throws JMSException {
        Topic topic = topic();
        Connection c = connectStopped();
        MessageConsumer consumer = c.createSession().createConsumer(topic);
        send(topic, "a");
        c.start();
        equal("the message sent before start()", "a", text(consumer));
    }

    @Test
    void selectorsAreSeparate() throws JMSException {
        Topic topic = topic();
        MessageConsumer red = session().createConsumer(topic, "color = 'red'");
        MessageConsumer all = session().createConsumer(topic);
        sendWith(topic, "blue", "color", "blue");
        sendWith(topic, "red", "color", "red");
        equal("the subscription with a selector", "red", text(red));
        equal("the subscription without", List.of("blue", "red"), texts(all, 2));
    }

    @Test
    void closedSubscriptionDoesNotDisturbOthers() throws JMSException {
        Topic topic = topic();
        MessageConsumer one = session().createConsumer(topic);
        MessageConsumer two = session().createConsumer(topic);
        one.close();
        send(topic, "a");
        equal("the message of the other subscription", "a", text(two));
    }

    @Test
    void recoveredMessageStaysInItsSubscription() throws JMSException {
        Topic topic = topic();
        Session s = session(TRANSACTED);
        MessageConsumer one = s.createConsumer(topic);
        MessageConsumer two = session().createConsumer(topic);
        send(topic, "a");
        receive(one);
        s.rollback();
        equal("the message after rollback()", "a", text(one));
        equal("the copy of the other subscription", "a", text(two));
        nothing("the other subscription has one copy", two);
    }

    // ---- noLocal ----------------------------------------------------------------------------------------------

    @Test
    void noLocalLeavesOutOwnMessages() throws JMSException {
        Topic topic = topic();
        MessageConsumer consumer = session().createConsumer(topic, null, true);
        send(topic, "own");
        Session other = connect().createSession();
        other.createProducer(topic).send(other.createTextMessage("other"));
        equal("the first message", "other", text(consumer));
    }

    @Test
    void withoutNoLocalOwnMessagesCome() throws JMSException {
        Topic topic = topic();
        MessageConsumer consumer = session().createConsumer(topic, null, false);
        send(topic, "own");
        equal("the message of the own connection", "own", text(consumer));
    }

    @Test
    void noLocalHoldsForAllSessionsOfTheConnection() throws JMSException {
        Topic topic = topic();
        MessageConsumer consumer = session(AUTO).createConsumer(topic, null, true);
        Session s = session(AUTO);
        s.createProducer(topic).send(s.createTextMessage("own"));
        Session other = connect().createSession();
        other.createProducer(topic).send(other.createTextMessage("other"));
        equal("the first message", "other", text(consumer));
    }

    @Test
    void noLocalWorksWithASelector() throws JMSException {
        Topic topic = topic();
        MessageConsumer consumer = session().createConsumer(topic, "n = 2", true);
        sendWith(topic, "own", "n", 2);
        Session other = connect().createSession();
        for (int n = 1; n <= 2; n++) {
            TextMessage message = other.createTextMessage("other " + n);
            message.setIntProperty("n", n);
            other.createProducer(topic).send(message);
        }
        equal("the first message", "other 2", text(consumer));
    }

    // ---- shared, not durable ----------------------------------------------------------------------------------

    @Test
    @Spec("8.3.2")
    void sharedSubscriptionDividesItsMessages() throws JMSException {
        Topic topic = topic();
        MessageConsumer one = session(AUTO).createSharedConsumer(topic, sub);
        MessageConsumer two = session(AUTO).createSharedConsumer(topic, sub);
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
    @Spec("8.3.2")
    void sharedSubscriptionSpansConnections() throws JMSException {
        Topic topic = topic();
        MessageConsumer one = connect().createSession().createSharedConsumer(topic, sub);
        MessageConsumer two = connect().createSession().createSharedConsumer(topic, sub);
        send(topic, "a");
        Message first = one.receive(QUIET);
        Message second = first == null ? receive(two) : two.receiveNoWait();
        yes("one of two consumers of a shared subscription must get the message", (first == null) != (second == null));
    }

    @Test
    @Spec("8.3.2")
    void sharedSubscriptionsOfOtherNamesGetCopies() throws JMSException {
        Topic topic = topic();
        MessageConsumer one = session().createSharedConsumer(topic, sub + "1");
        MessageConsumer two = session().createSharedConsumer(topic, sub + "2");
        send(topic, "a");
        equal("the copy of the first subscription", "a", text(one));
        equal("the copy of the second subscription", "a", text(two));
    }

    @Test
    @Spec("8.3.2")
    void sharedAndUnsharedSubscriptionsGetCopies() throws JMSException {
        Topic topic = topic();
        MessageConsumer shared = session().createSharedConsumer(topic, sub);
        MessageConsumer unshared = session().createConsumer(topic);
        send(topic, "a");
        equal("the copy of the shared subscription", "a", text(shared));
        equal("the copy of the unshared subscription", "a", text(unshared));
    }

    @Test
    @Spec("8.3.2")
    void sharedSubscriptionEndsWithItsLastConsumer() throws JMSException {
        Topic topic = topic();
        MessageConsumer one = session().createSharedConsumer(topic, sub);
        send(topic, "old");
        one.close();
        MessageConsumer two = session().createSharedConsumer(topic, sub);
        send(topic, "new");
        equal("the first message of a new subscription", "new", text(two));
    }

    @Test
    @Spec("8.3.2")
    void sharedSubscriptionLivesUntilItsLastConsumerCloses() throws JMSException {
        Topic topic = topic();
        MessageConsumer one = session(AUTO).createSharedConsumer(topic, sub);
        MessageConsumer two = session(AUTO).createSharedConsumer(topic, sub);
        send(topic, "a");
        one.close();
        equal("the message for the other consumer", "a", text(two));
    }

    @Test
    @Spec("8.3.2")
    void sharedSubscriptionSurvivesTheConnectionThatMadeIt() throws JMSException {
        Topic topic = topic();
        Connection first = connect();
        first.createSession().createSharedConsumer(topic, sub);
        MessageConsumer two = session(AUTO).createSharedConsumer(topic, sub);
        first.close();
        send(topic, "a");
        equal("the message for the consumer of the other connection", "a", text(two));
    }

    @Test
    @Spec("8.3.2")
    void sharedSubscriptionSelects() throws JMSException {
        Topic topic = topic();
        MessageConsumer consumer = session().createSharedConsumer(topic, sub, "color = 'blue'");
        sendWith(topic, "red", "color", "red");
        sendWith(topic, "blue", "color", "blue");
        equal("the message that matches", "blue", text(consumer));
        equal("getMessageSelector()", "color = 'blue'", consumer.getMessageSelector());
    }

    @Test
    @Spec("8.3.2")
    void sharedSubscriptionInUseRefusesAnotherTopic() throws JMSException {
        Topic topic = topic();
        Topic other = topic();
        String name = unique("sub");
        session().createSharedConsumer(topic, name);
        fails(
                JMSException.class,
                "createSharedConsumer with the name of a subscription of another topic",
                () -> session().createSharedConsumer(other, name));
    }

    @Test
    @Spec("8.3.2")
    void sharedSubscriptionInUseRefusesAnotherSelector() throws JMSException {
        Topic topic = topic();
        String name = unique("sub");
        session().createSharedConsumer(topic, name, "a = 1");
        fails(
                JMSException.class,
                "createSharedConsumer with another selector",
                () -> session().createSharedConsumer(topic, name, "a = 2"));
        fails(
                JMSException.class,
                "createSharedConsumer without the selector",
                () -> session().createSharedConsumer(topic, name));
    }

    @Test
    @Spec("8.3.2")
    void sharedSubscriptionsOfOtherClientIdsAreSeparate() throws JMSException {
        Topic topic = topic();
        MessageConsumer one = connect(unique("client")).createSession().createSharedConsumer(topic, sub);
        MessageConsumer two = connect(unique("client")).createSession().createSharedConsumer(topic, sub);
        MessageConsumer none = session().createSharedConsumer(topic, sub);
        send(topic, "a");
        equal("the subscription of the first client identifier", "a", text(one));
        equal("the subscription of the second client identifier", "a", text(two));
        equal("the subscription without client identifier", "a", text(none));
    }

    @Test
    @Spec("8.3.2")
    void sharedSubscriptionMayHaveTheNameOfADurableOne() throws JMSException {
        Topic topic = topic();
        Session s = connect(unique("client")).createSession();
        MessageConsumer shared = s.createSharedConsumer(topic, sub);
        MessageConsumer durable = s.createDurableConsumer(topic, sub);
        send(topic, "a");
        equal("the shared subscription", "a", text(shared));
        equal("the durable subscription of the same name", "a", text(durable));
    }

    @Test
    @Spec("8.3.2")
    void nullNameOfASharedSubscriptionIsRefused() throws JMSException {
        Topic topic = topic();
        fails(
                Exception.class,
                "createSharedConsumer(topic, null)",
                () -> session().createSharedConsumer(topic, null));
    }

    @Test
    @Spec("10.3")
    void nullTopicOfASharedSubscriptionIsRefused() throws JMSException {
        fails(
                jakarta.jms.InvalidDestinationException.class,
                "createSharedConsumer(null, name)",
                () -> session().createSharedConsumer(null, sub));
    }

    @Test
    @Spec("4.2.4")
    void subscriptionNamesMayHaveAllCharacters() throws JMSException {
        Topic topic = topic();
        String name = unique("Aa0") + "_.-\u00e4\u03b1\u4e2d$";
        MessageConsumer consumer = session().createSharedConsumer(topic, name);
        send(topic, "a");
        equal("the message of a subscription with an odd name", "a", text(consumer));
    }

    @Test
    @Spec("4.2.4")
    void subscriptionNamesMayHave128Characters() throws JMSException {
        Topic topic = topic();
        String prefix = unique("n");
        String name = prefix + "x".repeat(128 - prefix.length());
        MessageConsumer consumer = session().createSharedConsumer(topic, name);
        send(topic, "a");
        equal("the message of a subscription with a name of 128 characters", "a", text(consumer));
    }

    @Test
    @Spec("4.2.4")
    void longSubscriptionNamesAreTold() throws JMSException {
        Topic topic = topic();
        String prefix = unique("n");
        String name = prefix + "x".repeat(127 - prefix.length());
        MessageConsumer one = session().createSharedConsumer(topic, name + "1");
        MessageConsumer two = session().createSharedConsumer(topic, name + "2");
        send(topic, "a");
        equal("the subscription whose name ends with 1", "a", text(one));
        equal("the subscription whose name ends with 2", "a", text(two));
    }
}
