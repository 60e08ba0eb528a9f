package io.github.pgaq.jms.conformance;

import jakarta.jms.DeliveryMode;
import jakarta.jms.InvalidSelectorException;
import jakarta.jms.InvalidSelectorRuntimeException;
import jakarta.jms.JMSException;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.Queue;
import jakarta.jms.TextMessage;
import jakarta.jms.Topic;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Selectors as consumers use them. Their grammar has tests of its own in the provider. */
@Spec("3.8.1")
class SelectorTest extends ConformanceTest {
    /** The message "other" never matches, the message "match" must. */
    private void selects(String selector, String property, Object match, Object other) throws JMSException {
        Queue queue = queue();
        MessageConsumer consumer = session().createConsumer(queue, selector);
        sendWith(queue, "other", property, other);
        sendWith(queue, "match", property, match);
        equal("the message that the selector \"" + selector + "\" selects", "match", text(consumer));
        nothing("only one message matches \"" + selector + "\"", consumer);
    }

    @Test
    void equalityOfStrings() throws JMSException {
        selects("color = 'blue'", "color", "blue", "red");
    }

    @Test
    void inequality() throws JMSException {
        selects("color <> 'red'", "color", "blue", "red");
    }

    @Test
    void comparisonOfIntegers() throws JMSException {
        selects("size > 10 AND size <= 20", "size", 20, 10);
    }

    @Test
    void comparisonOfApproximateNumbers() throws JMSException {
        selects("weight >= 1.5", "weight", 1.5d, 1.25d);
    }

    @Test
    @Spec({"3.8.1", "3.8.1.1"})
    void integerAndApproximateNumbersAreComparable() throws JMSException {
        selects("weight = 2.0", "weight", 2, 3);
    }

    @Test
    void booleanProperty() throws JMSException {
        selects("urgent = TRUE", "urgent", true, false);
    }

    @Test
    void booleanPropertyAlone() throws JMSException {
        selects("urgent", "urgent", true, false);
    }

    @Test
    void betweenIncludesItsBounds() throws JMSException {
        selects("size BETWEEN 5 AND 7", "size", 7, 8);
    }

    @Test
    void inListsStrings() throws JMSException {
        selects("country IN ('UK', 'US', 'France')", "country", "US", "Peru");
    }

    @Test
    void likeWithPercentAndUnderscore() throws JMSException {
        selects("phone LIKE '12%3_'", "phone", "129930", "1234x5");
    }

    @Test
    void likeWithEscape() throws JMSException {
        selects("name LIKE '\\_%' ESCAPE '\\'", "name", "_foo", "bar");
    }

    @Test
    void isNullMatchesAnAbsentProperty() throws JMSException {
        selects("gone IS NULL", "here", 1, 1, "gone");
    }

    private void selects(String selector, String property, Object match, Object other, String onlyInOther)
            throws JMSException {
        Queue queue = queue();
        MessageConsumer consumer = session().createConsumer(queue, selector);
        sendWith(queue, "other", onlyInOther, other);
        sendWith(queue, "match", property, match);
        equal("the message that the selector \"" + selector + "\" selects", "match", text(consumer));
    }

    @Test
    @Spec("3.8.1.2")
    void comparisonWithAnAbsentPropertyIsUnknown() throws JMSException {
        Queue queue = queue();
        MessageConsumer consumer = session().createConsumer(queue, "NOT (size = 1)");
        send(queue, "no size");
        sendWith(queue, "size 2", "size", 2);
        equal(
                "NOT of an unknown value is unknown, so the message without the property is not selected",
                "size 2",
                text(consumer));
    }

    @Test
    void stringAndNumberAreNotConverted() throws JMSException {
        Queue queue = queue();
        MessageConsumer consumer = session().createConsumer(queue, "size = 1");
        sendWith(queue, "string", "size", "1");
        sendWith(queue, "number", "size", 1);
        equal("a property set as a String does not match a number", "number", text(consumer));
    }

    @Test
    @Spec({"3.8.1", "3.8.1.1"})
    void arithmetic() throws JMSException {
        selects("size * 2 + 1 = 7", "size", 3, 4);
    }

    @Test
    @Spec("3.8.1.1")
    void arithmeticPromotesNumbers() throws JMSException {
        selects("size / 2 = 2", "size", 5, 6);
        selects("size / 2.0 = 2.5", "size", 5, 4);
    }

    @Test
    @Spec("3.8.1.1")
    void identifiersAreAnyJavaIdentifiers() throws JMSException {
        selects("_a$1 = 7", "_a$1", 7, 8);
        selects("größe = 7", "größe", 7, 8);
    }

    @Test
    @Spec("3.8.1.1")
    void whatIsNoIdentifierIsRefused() throws JMSException {
        Queue queue = queue();
        for (String selector : List.of("1a = 7", "a#b = 7", "NULL = 7", "a = TRUE AND not = 7")) {
            fails(
                    InvalidSelectorException.class,
                    "createConsumer with the selector \"" + selector + "\"",
                    () -> session().createConsumer(queue, selector));
        }
    }

    @Test
    void headerJMSType() throws JMSException {
        Queue queue = queue();
        MessageConsumer consumer = session().createConsumer(queue, "JMSType = 'car'");
        for (String type : new String[] {"bike", "car"}) {
            TextMessage message = sender().createTextMessage(type);
            message.setJMSType(type);
            sender().createProducer(queue).send(message);
        }
        equal("the message whose JMSType is 'car'", "car", text(consumer));
    }

    @Test
    void headerJMSPriority() throws JMSException {
        Queue queue = queue();
        MessageConsumer consumer = session().createConsumer(queue, "JMSPriority < 5");
        MessageProducer producer = sender().createProducer(queue);
        producer.send(sender().createTextMessage("urgent"), DeliveryMode.PERSISTENT, 9, 0);
        producer.send(sender().createTextMessage("normal"), DeliveryMode.PERSISTENT, 4, 0);
        equal("the message whose priority is below 5", "normal", text(consumer));
    }

    @Test
    @Spec("3.8.1.3")
    void headerJMSDeliveryModeIsAString() throws JMSException {
        Queue queue = queue();
        MessageConsumer consumer = session().createConsumer(queue, "JMSDeliveryMode = 'NON_PERSISTENT'");
        MessageProducer producer = sender().createProducer(queue);
        producer.send(sender().createTextMessage("persistent"), DeliveryMode.PERSISTENT, 4, 0);
        producer.send(sender().createTextMessage("not persistent"), DeliveryMode.NON_PERSISTENT, 4, 0);
        equal("the message whose delivery mode is NON_PERSISTENT", "not persistent", text(consumer));
    }

    @Test
    void headerJMSCorrelationID() throws JMSException {
        Queue queue = queue();
        MessageConsumer consumer = session().createConsumer(queue, "JMSCorrelationID = 'b'");
        for (String id : new String[] {"a", "b"}) {
            TextMessage message = sender().createTextMessage(id);
            message.setJMSCorrelationID(id);
            sender().createProducer(queue).send(message);
        }
        equal("the message whose correlation id is b", "b", text(consumer));
    }

    @Test
    void headerJMSMessageID() throws JMSException {
        Queue queue = queue();
        TextMessage first = sender().createTextMessage("first");
        TextMessage second = sender().createTextMessage("second");
        MessageProducer producer = sender().createProducer(queue);
        producer.send(first);
        producer.send(second);
        MessageConsumer consumer = session().createConsumer(queue, "JMSMessageID = '" + second.getJMSMessageID() + "'");
        equal("the message with that JMSMessageID", "second", text(consumer));
    }

    @Test
    void headerJMSTimestamp() throws JMSException {
        Queue queue = queue();
        MessageConsumer none = session().createConsumer(queue, "JMSTimestamp < 1000000");
        MessageConsumer all = session().createConsumer(queue, "JMSTimestamp >= 1000000");
        send(queue, "now");
        equal("the message sent now", "now", text(all));
        nothing("no message was sent in 1970", none);
    }

    @Test
    @Spec("3.5.9")
    void groupIdIsSelectable() throws JMSException {
        selects("JMSXGroupID = 'g'", "JMSXGroupID", "g", "h");
    }

    @Test
    @Spec("4.1.2")
    void messagesThatAreNotSelectedStayOnTheQueue() throws JMSException {
        Queue queue = queue();
        sendWith(queue, "red", "color", "red");
        sendWith(queue, "blue", "color", "blue");
        try (MessageConsumer blue = session().createConsumer(queue, "color = 'blue'")) {
            equal("the selected message", "blue", text(blue));
        }
        equal(
                "the message that the other consumer did not select",
                "red",
                text(session().createConsumer(queue)));
    }

    @Test
    @Spec("4.1.2")
    void twoSelectorsShareOneQueue() throws JMSException {
        Queue queue = queue();
        MessageConsumer red = session().createConsumer(queue, "color = 'red'");
        MessageConsumer blue = session().createConsumer(queue, "color = 'blue'");
        sendWith(queue, "b", "color", "blue");
        sendWith(queue, "r", "color", "red");
        equal("the consumer of red messages", "r", text(red));
        equal("the consumer of blue messages", "b", text(blue));
    }

    @Test
    @Spec("4.2.2")
    void topicSubscriptionGetsOnlyWhatItSelects() throws JMSException {
        Topic topic = topic();
        MessageConsumer blue = session().createConsumer(topic, "color = 'blue'");
        sendWith(topic, "red", "color", "red");
        sendWith(topic, "blue", "color", "blue");
        equal("the message that matches the selector of the subscription", "blue", text(blue));
        nothing("the other message is not added to the subscription", blue);
    }

    @Test
    void emptySelectorMeansNone() throws JMSException {
        Queue queue = queue();
        MessageConsumer consumer = session().createConsumer(queue, "");
        send(queue, "a");
        equal("an empty selector selects every message", "a", text(consumer));
        isNull("getMessageSelector() of a consumer with an empty selector", consumer.getMessageSelector());
    }

    @Test
    void nullSelectorMeansNone() throws JMSException {
        Queue queue = queue();
        MessageConsumer consumer = session().createConsumer(queue, null);
        send(queue, "a");
        equal("a null selector selects every message", "a", text(consumer));
        isNull("getMessageSelector() of a consumer with a null selector", consumer.getMessageSelector());
    }

    @Test
    void getMessageSelectorReturnsTheSelector() throws JMSException {
        MessageConsumer consumer = session().createConsumer(queue(), "size > 1");
        equal("getMessageSelector()", "size > 1", consumer.getMessageSelector());
    }

    @Test
    @Spec({"10.3", "3.8.1.1"})
    void invalidSelectorIsRefusedAtCreation() throws JMSException {
        Queue queue = queue();
        fails(
                InvalidSelectorException.class,
                "createConsumer with the selector \"size >\"",
                () -> session().createConsumer(queue, "size >"));
    }

    @Test
    @Spec({"10.3", "3.8.1.1"})
    void invalidSelectorOfABrowserIsRefusedAtCreation() throws JMSException {
        Queue queue = queue();
        fails(
                InvalidSelectorException.class,
                "createBrowser with the selector \"= 1\"",
                () -> session().createBrowser(queue, "= 1"));
    }

    @Test
    @Spec({"10.3", "3.8.1.1"})
    void invalidSelectorOfATopicConsumerIsRefused() throws JMSException {
        Topic topic = topic();
        fails(
                InvalidSelectorException.class,
                "createConsumer with the selector \"a AND\"",
                () -> session().createConsumer(topic, "a AND"));
    }

    @Test
    @Spec({"10.3", "3.8.1.1"})
    void invalidSelectorOfASharedConsumerIsRefused() throws JMSException {
        Topic topic = topic();
        fails(
                InvalidSelectorException.class,
                "createSharedConsumer with the selector \"(a = 1\"",
                () -> session().createSharedConsumer(topic, unique("s"), "(a = 1"));
    }

    @Test
    @Spec({"10.3", "3.8.1.1"})
    void invalidSelectorInAContextIsRefused() throws JMSException {
        Queue queue = queue();
        fails(
                InvalidSelectorRuntimeException.class,
                "JMSContext.createConsumer with the selector \"a LIKE\"",
                () -> context().createConsumer(queue, "a LIKE"));
    }
}
