package io.github.pgaq.jms.session;

import io.github.pgaq.jms.PgaqDestination;
import io.github.pgaq.jms.selector.Conditions;
import io.github.pgaq.jms.selector.Selector;
import io.github.pgaq.jms.store.QueueDescription;
import jakarta.jms.Destination;
import jakarta.jms.IllegalStateException;
import jakarta.jms.InvalidDestinationException;
import jakarta.jms.JMSException;
import jakarta.jms.Queue;
import jakarta.jms.Topic;

/** Makes the consumers and browsers of a session: checks what they are to consume, and subscribes. */
final class ConsumerMaker {
    private final ClientSession session;

    ConsumerMaker(ClientSession session) {
        this.session = session;
    }

    private ClientConnection connection() {
        return session.connection();
    }

    /** A consumer of a queue, or of a subscription of its own to a topic. */
    Consumer consumer(Destination destination, String selector, boolean noLocal) throws JMSException {
        PgaqDestination own = source(destination);
        if (own.isTopic()) {
            String rule = rule(own, selector, noLocal);
            return subscriber(
                    own, selector, noLocal, connection().subscriptions().plain(own, rule));
        }
        return receiver(own, selector);
    }

    Consumer.Receiver receiver(Queue queue, String selector) throws JMSException {
        return receiver(source(queue), selector);
    }

    private Consumer.Receiver receiver(PgaqDestination queue, String selector) throws JMSException {
        return new Consumer.Receiver(session, queue, text(selector), rule(queue, selector, false));
    }

    private Consumer.Subscriber subscriber(
            PgaqDestination topic, String selector, boolean noLocal, Subscriptions.Use use) {
        return new Consumer.Subscriber(session, topic, text(selector), noLocal, use);
    }

    /** A consumer of a subscription with a name. */
    Consumer.Subscriber named(Subscriptions.Kind kind, Topic topic, String name, String selector, boolean noLocal)
            throws JMSException {
        PgaqDestination own = source(topic);
        if (!own.isTopic()) {
            throw new InvalidDestinationException("\"" + own.getName() + "\" is not a topic");
        }
        if (name == null || name.isEmpty()) {
            throw new JMSException("name of a subscription must not be empty");
        }
        boolean unshared = kind == Subscriptions.Kind.DURABLE;
        if (unshared
                && connection().clientId() == null
                && !connection().subscriptions().arePlain()) {
            throw new IllegalStateException("a durable subscription that is not shared needs a client identifier");
        }
        String condition = rule(own, selector, noLocal);
        String rule = kind.durable ? Conditions.rule(text(selector), noLocal, condition) : condition;
        return subscriber(
                own,
                selector,
                noLocal,
                connection().subscriptions().named(kind, own, connection().clientId(), name, rule));
    }

    Browser browser(Queue queue, String selector) throws JMSException {
        PgaqDestination own = source(queue);
        return new Browser(session, own, text(selector), rule(own, selector, false));
    }

    /** Checks the destination of a new consumer. */
    private PgaqDestination source(Destination destination) throws JMSException {
        PgaqDestination own = PgaqDestination.of(destination);
        if (own.isTemporary()) {
            connection().temporaries().checkOwn(own);
        }
        connection().describe(own, session);
        return own;
    }

    /** What the messages of a consumer must meet. */
    private String rule(PgaqDestination destination, String selector, boolean noLocal) throws JMSException {
        Selector parsed = Selector.parse(selector);
        QueueDescription description = connection().describe(destination, session);
        String rule =
                parsed == null ? null : description.holdsMessages() ? parsed.toCondition() : parsed.toPlainCondition();
        if (noLocal && !description.holdsMessages()) {
            throw new JMSException("noLocal needs a topic of payload type aq.jms_message; \"" + destination.getName()
                    + "\" holds " + description.payloadType() + ", which does not identify the sender's connection");
        }
        if (noLocal) {
            rule = Conditions.and(rule, Conditions.notFrom(connection().name()));
        }
        return destination.isTemporary() ? Conditions.and(Conditions.destination(destination.address()), rule) : rule;
    }

    private static String text(String selector) {
        return selector == null || selector.isBlank() ? null : selector;
    }
}
