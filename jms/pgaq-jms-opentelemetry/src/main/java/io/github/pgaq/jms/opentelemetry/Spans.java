package io.github.pgaq.jms.opentelemetry;

import io.opentelemetry.api.OpenTelemetry;
import io.opentelemetry.api.common.AttributeKey;
import io.opentelemetry.api.trace.Span;
import io.opentelemetry.api.trace.SpanBuilder;
import io.opentelemetry.api.trace.SpanContext;
import io.opentelemetry.api.trace.SpanKind;
import io.opentelemetry.api.trace.StatusCode;
import io.opentelemetry.api.trace.Tracer;
import io.opentelemetry.api.trace.propagation.W3CTraceContextPropagator;
import io.opentelemetry.context.Context;
import io.opentelemetry.context.propagation.TextMapGetter;
import jakarta.jms.Destination;
import jakarta.jms.JMSException;
import jakarta.jms.JMSRuntimeException;
import jakarta.jms.Message;
import jakarta.jms.Queue;
import jakarta.jms.TemporaryQueue;
import jakarta.jms.TemporaryTopic;
import jakarta.jms.Topic;
import java.time.Instant;
import java.util.List;
import java.util.Map;

/** Spans, their attributes, and the trace context of messages. */
final class Spans {
    static final String PARENT = "traceparent";
    static final String STATE = "tracestate";

    private static final AttributeKey<String> SYSTEM = AttributeKey.stringKey("messaging.system");
    private static final AttributeKey<String> NAME = AttributeKey.stringKey("messaging.operation.name");
    private static final AttributeKey<String> TYPE = AttributeKey.stringKey("messaging.operation.type");
    private static final AttributeKey<String> DESTINATION = AttributeKey.stringKey("messaging.destination.name");
    private static final AttributeKey<Boolean> TEMPORARY = AttributeKey.booleanKey("messaging.destination.temporary");
    private static final AttributeKey<String> ID = AttributeKey.stringKey("messaging.message.id");
    private static final AttributeKey<String> CONVERSATION =
            AttributeKey.stringKey("messaging.message.conversation_id");
    private static final AttributeKey<Long> COUNT = AttributeKey.longKey("messaging.batch.message_count");
    private static final AttributeKey<Long> ATTEMPTS = AttributeKey.longKey("messaging.pgaq.message.attempts");
    private static final AttributeKey<String> SETTLEMENT = AttributeKey.stringKey("messaging.pgaq.settlement");
    private static final AttributeKey<String> ERROR = AttributeKey.stringKey("error.type");

    private static final TextMapGetter<Message> GETTER = new TextMapGetter<>() {
        @Override
        @SuppressWarnings("deprecation") // older versions of the API require it
        public Iterable<String> keys(Message message) {
            return List.of(PARENT, STATE);
        }

        @Override
        public String get(Message message, String key) {
            try {
                return message == null ? null : message.getStringProperty(key);
            } catch (JMSException e) {
                return null;
            }
        }
    };

    private final Tracer tracer;

    Spans(OpenTelemetry openTelemetry) {
        tracer = openTelemetry.getTracer("io.github.pgaq.jms");
    }

    /** The context in which a message was created; the root if it has none. */
    static Context creation(Message message) {
        return W3CTraceContextPropagator.getInstance().extract(Context.root(), message, GETTER);
    }

    static SpanContext spanContext(Context context) {
        return Span.fromContext(context).getSpanContext();
    }

    /** traceparent, and perhaps tracestate, of a span. */
    static void inject(Span span, Map<String, String> into) {
        W3CTraceContextPropagator.getInstance().inject(Context.root().with(span), into, Map::put);
    }

    private SpanBuilder builder(String operation, Destination destination, SpanKind kind) {
        String name = name(destination);
        boolean temporary = destination instanceof TemporaryQueue || destination instanceof TemporaryTopic;
        SpanBuilder builder = tracer.spanBuilder(name == null || temporary ? operation : operation + " " + name)
                .setSpanKind(kind)
                .setAttribute(SYSTEM, "pgaq")
                .setAttribute(NAME, operation)
                .setAttribute(TYPE, operation);
        if (name != null) {
            builder.setAttribute(DESTINATION, name);
        }
        if (temporary) {
            builder.setAttribute(TEMPORARY, true);
        }
        return builder;
    }

    /** own: the creation context that the program has given the message, if it is valid. */
    Span send(Destination destination, SpanContext own) {
        SpanBuilder builder = builder("send", destination, own.isValid() ? SpanKind.CLIENT : SpanKind.PRODUCER);
        if (own.isValid()) {
            builder.addLink(own);
        }
        return builder.startSpan();
    }

    /** began: when the call has begun that has returned the message. */
    void receive(Destination destination, Message message, Instant began) {
        SpanBuilder builder = builder("receive", destination, SpanKind.CLIENT).setStartTimestamp(began);
        SpanContext creation = spanContext(creation(message));
        if (creation.isValid()) {
            builder.addLink(creation);
        }
        Span span = builder.startSpan();
        describe(span, message);
        span.end();
    }

    /** It belongs to the trace of the current span, or, without one, to the trace of the message. */
    Span process(Destination destination, Message message) {
        SpanBuilder builder = builder("process", destination, SpanKind.CONSUMER);
        Context creation = creation(message);
        if (spanContext(creation).isValid()) {
            builder.addLink(spanContext(creation));
        }
        if (!Span.current().getSpanContext().isValid()) {
            builder.setParent(creation);
        }
        Span span = builder.startSpan();
        describe(span, message);
        return span;
    }

    Span settle(String how, int messages, List<SpanContext> creations) {
        SpanBuilder builder = builder("settle", null, SpanKind.CLIENT)
                .setAttribute(SETTLEMENT, how)
                .setAttribute(COUNT, (long) messages);
        creations.forEach(builder::addLink);
        return builder.startSpan();
    }

    /** Attributes that a message has after it was sent or received. */
    static void describe(Span span, Message message) {
        try {
            set(span, ID, message.getJMSMessageID());
            set(span, CONVERSATION, message.getJMSCorrelationID());
            if (message.propertyExists("JMSXDeliveryCount")) {
                span.setAttribute(ATTEMPTS, Math.max(0L, message.getIntProperty("JMSXDeliveryCount") - 1L));
            }
        } catch (JMSException e) {
            // the span says less
        }
    }

    private static void set(Span span, AttributeKey<String> key, String value) {
        if (value != null) {
            span.setAttribute(key, value);
        }
    }

    static void fail(Span span, Throwable error) {
        span.setAttribute(ERROR, error.getClass().getName());
        span.setStatus(StatusCode.ERROR, error.getMessage() == null ? "" : error.getMessage());
    }

    private static String name(Destination destination) {
        try {
            if (destination instanceof Queue queue) {
                return queue.getQueueName();
            }
            return destination instanceof Topic topic ? topic.getTopicName() : null;
        } catch (JMSException | JMSRuntimeException e) {
            return null;
        }
    }
}
