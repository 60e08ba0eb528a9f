package io.github.pgaq.jms.opentelemetry;

import io.opentelemetry.api.trace.Span;
import io.opentelemetry.api.trace.SpanContext;
import io.opentelemetry.context.Scope;
import jakarta.jms.CompletionListener;
import jakarta.jms.Destination;
import jakarta.jms.JMSConsumer;
import jakarta.jms.JMSContext;
import jakarta.jms.JMSException;
import jakarta.jms.JMSProducer;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageListener;
import jakarta.jms.MessageProducer;
import jakarta.jms.Session;
import java.io.Serializable;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.WeakHashMap;

/**
 * An object of Jakarta Messaging whose calls make spans, and whose objects are wrapped, too. Messages and destinations
 * are those of the provider.
 */
@SuppressWarnings("try") // scopes are only closed
final class Wrapper<T> implements InvocationHandler {
    private static final Set<String> SETTLE = Set.of("commit", "rollback", "recover", "acknowledge");
    /** Messages that a program sends again have the context of the send before: it is replaced. */
    private static final Map<Message, String> GIVEN = Collections.synchronizedMap(new WeakHashMap<>());

    private final T target;
    private final Class<T> type;
    private final Spans spans;
    private final Settled settled;
    private final Destination destination;
    private final JMSContext context;
    private final T proxy;
    private MessageListener listener;

    /** settled: of a session or context and its consumers; destination: of a consumer. */
    Wrapper(T target, Class<T> type, Spans spans, Settled settled, Destination destination) {
        this(target, type, spans, settled, destination, null);
    }

    private Wrapper(
            T target, Class<T> type, Spans spans, Settled settled, Destination destination, JMSContext context) {
        this.target = target;
        this.type = type;
        this.spans = spans;
        this.settled = settled;
        this.destination = destination;
        this.context = context;
        this.proxy = type.cast(Proxy.newProxyInstance(type.getClassLoader(), new Class<?>[] {type}, this));
    }

    T proxy() {
        return proxy;
    }

    @Override
    public Object invoke(Object self, Method method, Object[] arguments) throws Throwable {
        String name = method.getName();
        Object[] given = arguments == null ? new Object[0] : arguments;
        if (name.equals("equals") && given.length == 1) {
            return self == given[0];
        }
        if (name.equals("send")) {
            return target instanceof JMSProducer producer
                    ? send(producer, method.getParameterTypes()[1], given)
                    : send(method, given);
        }
        if (name.startsWith("receive") && isConsumer()) {
            return receive(method, given);
        }
        if (name.equals("setMessageListener") && isConsumer()) {
            listener = (MessageListener) given[0];
            MessageListener told = listener;
            return call(method, told == null ? null : (MessageListener) message -> process(message, told));
        }
        if (name.equals("getMessageListener") && isConsumer()) {
            return listener;
        }
        if (SETTLE.contains(name) && given.length == 0 && settled != null) {
            return settle(method, name);
        }
        return wrapped(call(method, given), given);
    }

    private boolean isConsumer() {
        return type == MessageConsumer.class || type == JMSConsumer.class;
    }

    private Object call(Method method, Object... given) throws Throwable {
        try {
            return method.invoke(target, given);
        } catch (InvocationTargetException e) {
            throw e.getCause();
        }
    }

    private Object wrapped(Object made, Object[] given) throws JMSException {
        if (made == target) {
            return proxy;
        }
        Destination from = given.length > 0 && given[0] instanceof Destination first ? first : null;
        if (made instanceof Session session) {
            return new Wrapper<>(session, Session.class, spans, new Settled(session.getAcknowledgeMode()), null)
                    .proxy();
        }
        if (made instanceof JMSContext other) {
            return new Wrapper<>(other, JMSContext.class, spans, new Settled(other.getSessionMode()), null).proxy();
        }
        if (made instanceof MessageProducer producer) {
            return new Wrapper<>(producer, MessageProducer.class, spans, null, null).proxy();
        }
        if (made instanceof JMSProducer producer) {
            return new Wrapper<>(producer, JMSProducer.class, spans, null, null, (JMSContext) target).proxy();
        }
        if (made instanceof MessageConsumer consumer) {
            return new Wrapper<>(consumer, MessageConsumer.class, spans, settled, from).proxy();
        }
        if (made instanceof JMSConsumer consumer) {
            return new Wrapper<>(consumer, JMSConsumer.class, spans, settled, from).proxy();
        }
        return made;
    }

    // --- sending

    private interface Sending {
        Object send(Span span) throws Throwable;
    }

    /** ends: the span ends with the call; otherwise a completion listener ends it. */
    private Object within(Span span, boolean ends, Message message, Sending sending) throws Throwable {
        boolean done = false;
        try (Scope scope = span.makeCurrent()) {
            Object result = sending.send(span);
            done = true;
            return result;
        } catch (Throwable e) {
            Spans.fail(span, e);
            throw e;
        } finally {
            if (ends || !done) {
                if (done) {
                    Spans.describe(span, message);
                }
                span.end();
            }
        }
    }

    /** All forms of MessageProducer.send. */
    private Object send(Method method, Object[] given) throws Throwable {
        Destination to = ((MessageProducer) target).getDestination();
        Message message = null;
        for (Object each : given) {
            if (each instanceof Destination named) {
                to = named;
            } else if (each instanceof Message found) {
                message = found;
            }
        }
        int last = given.length - 1;
        boolean asynchronous = last >= 0 && given[last] instanceof CompletionListener;
        return within(begin(to, message), !asynchronous, message, span -> {
            if (asynchronous) {
                given[last] = ending(span, (CompletionListener) given[last]);
            }
            return call(method, given);
        });
    }

    private static CompletionListener ending(Span span, CompletionListener listener) {
        return new CompletionListener() {
            @Override
            public void onCompletion(Message message) {
                Spans.describe(span, message);
                span.end();
                listener.onCompletion(message);
            }

            @Override
            public void onException(Message message, Exception exception) {
                Spans.fail(span, exception);
                span.end();
                listener.onException(message, exception);
            }
        };
    }

    /** All forms of JMSProducer.send: a body is sent as a message, as the provider would. */
    private Object send(JMSProducer producer, Class<?> kind, Object[] given) throws Throwable {
        Message message = kind == Message.class ? (Message) given[1] : message(kind, given[1]);
        CompletionListener listener = producer.getAsync();
        Span begun = producer.propertyExists(Spans.PARENT)
                ? spans.send((Destination) given[0], SpanContext.getInvalid())
                : begin((Destination) given[0], message);
        return within(begun, listener == null, message, span -> {
            if (listener != null) {
                producer.setAsync(ending(span, listener));
            }
            try {
                producer.send((Destination) given[0], message);
            } finally {
                if (listener != null) {
                    producer.setAsync(listener);
                }
            }
            return proxy;
        });
    }

    /** kind: the type of the parameter, which decides, also for null. */
    private Message message(Class<?> kind, Object body) throws JMSException {
        if (kind == byte[].class) {
            var message = context.createBytesMessage();
            if (body != null) {
                message.writeBytes((byte[]) body);
            }
            return message;
        }
        if (kind == Map.class) {
            var message = context.createMapMessage();
            if (body != null) {
                for (Map.Entry<?, ?> entry : ((Map<?, ?>) body).entrySet()) {
                    message.setObject((String) entry.getKey(), entry.getValue());
                }
            }
            return message;
        }
        return kind == String.class
                ? context.createTextMessage((String) body)
                : context.createObjectMessage((Serializable) body);
    }

    /** The span, whose context the message gets if it has none of its own. */
    private Span begin(Destination to, Message message) throws JMSException {
        String before = message == null ? null : message.getStringProperty(Spans.PARENT);
        boolean own = before != null && !before.equals(GIVEN.get(message));
        Span span = spans.send(to, own ? Spans.spanContext(Spans.creation(message)) : SpanContext.getInvalid());
        if (message != null && !own && span.getSpanContext().isValid()) {
            give(message, span);
        }
        return span;
    }

    private static void give(Message message, Span span) {
        Map<String, String> carrier = new HashMap<>();
        Spans.inject(span, carrier);
        try {
            if (message.propertyExists(Spans.STATE) && !carrier.containsKey(Spans.STATE)) {
                carrier.put(Spans.STATE, "");
            }
            for (Map.Entry<String, String> each : carrier.entrySet()) {
                message.setStringProperty(each.getKey(), each.getValue());
            }
            GIVEN.put(message, carrier.get(Spans.PARENT));
        } catch (JMSException e) {
            // a message that was received is sent on as it is: its properties are read-only
        }
    }

    // --- receiving

    private Object receive(Method method, Object[] given) throws Throwable {
        Instant began = Instant.now();
        Object received = call(method, given);
        if (received instanceof Message message) {
            spans.receive(from(message), message, began);
            settled.add(Spans.spanContext(Spans.creation(message)));
            settled.returns();
        }
        return received;
    }

    private void process(Message message, MessageListener told) {
        Span span = spans.process(from(message), message);
        settled.add(Spans.spanContext(Spans.creation(message)));
        try (Scope scope = span.makeCurrent()) {
            told.onMessage(message);
        } catch (RuntimeException | Error e) {
            Spans.fail(span, e);
            throw e;
        } finally {
            settled.returns();
            span.end();
        }
    }

    private Destination from(Message message) {
        if (destination != null) {
            return destination;
        }
        try {
            return message.getJMSDestination();
        } catch (JMSException e) {
            return null;
        }
    }

    private Object settle(Method method, String how) throws Throwable {
        List<SpanContext> creations = new ArrayList<>();
        int messages = settled.take(creations);
        if (messages == 0) {
            return call(method);
        }
        Span span = spans.settle(how, messages, creations);
        try (Scope scope = span.makeCurrent()) {
            return call(method);
        } catch (Throwable e) {
            Spans.fail(span, e);
            throw e;
        } finally {
            span.end();
        }
    }
}
