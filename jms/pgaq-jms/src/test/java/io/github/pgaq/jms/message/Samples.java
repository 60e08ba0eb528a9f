package io.github.pgaq.jms.message;

import io.github.pgaq.jms.store.Body;
import io.github.pgaq.jms.store.Delivery;
import jakarta.jms.Destination;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.Queue;
import jakarta.jms.Topic;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.util.Collections;
import java.util.Enumeration;
import java.util.List;
import java.util.UUID;

/** Destinations and messages for the tests of this package. */
final class Samples {

    static final Messages MESSAGES = new Messages(AllowedClasses.DEFAULT, Samples::destination);
    static final UUID MSGID = UUID.fromString("01234567-89ab-cdef-0123-456789abcdef");
    static final long ENQUEUED = 1_700_000_000_123L;

    record TestQueue(String getQueueName) implements Queue {
        @Override
        public String getQueueName() {
            return getQueueName;
        }
    }

    record TestTopic(String getTopicName) implements Topic {
        @Override
        public String getTopicName() {
            return getTopicName;
        }
    }

    private Samples() {}

    static Destination destination(String name) {
        return name.startsWith("queue:")
                ? new TestQueue(name.substring(6))
                : name.startsWith("topic:") ? new TestTopic(name.substring(6)) : null;
    }

    /** A message of a provider whose classes are not known: shows only the interface. */
    static <T extends Message> T foreign(Class<T> type, T message) {
        return type.cast(Proxy.newProxyInstance(
                Samples.class.getClassLoader(), new Class<?>[] {type}, (proxy, method, arguments) -> {
                    try {
                        return method.invoke(message, arguments);
                    } catch (InvocationTargetException e) {
                        throw e.getCause();
                    }
                }));
    }

    static Delivery delivery(Body body) {
        return new Delivery(MSGID, 0, 0, 5, ENQUEUED, 0, 0, null, body);
    }

    /** The message as a consumer gets it. */
    @SuppressWarnings("unchecked")
    static <T extends Message> T delivered(T message) throws JMSException {
        Body body = MESSAGES.toBody((PgaqMessage) message);
        PgaqMessage received = MESSAGES.toClient(delivery(body), null, null);
        received.fetch(to -> {
            try {
                body.content().open().transferTo(to);
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            }
        });
        return (T) received;
    }

    /** The elements of an enumeration; the interfaces of JMS have raw ones. */
    static List<?> list(Enumeration<?> enumeration) {
        return Collections.list(enumeration);
    }
}
