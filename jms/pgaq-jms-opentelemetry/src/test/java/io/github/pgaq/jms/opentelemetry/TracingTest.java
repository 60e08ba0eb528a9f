package io.github.pgaq.jms.opentelemetry;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.pgaq.jms.PgaqConnectionFactory;
import io.github.pgaq.jms.ServerTest;
import io.opentelemetry.api.OpenTelemetry;
import io.opentelemetry.api.common.AttributeKey;
import io.opentelemetry.api.trace.Span;
import io.opentelemetry.api.trace.SpanKind;
import io.opentelemetry.api.trace.StatusCode;
import io.opentelemetry.sdk.OpenTelemetrySdk;
import io.opentelemetry.sdk.testing.exporter.InMemorySpanExporter;
import io.opentelemetry.sdk.trace.SdkTracerProvider;
import io.opentelemetry.sdk.trace.data.LinkData;
import io.opentelemetry.sdk.trace.data.SpanData;
import io.opentelemetry.sdk.trace.export.SimpleSpanProcessor;
import jakarta.jms.BytesMessage;
import jakarta.jms.CompletionListener;
import jakarta.jms.Connection;
import jakarta.jms.ConnectionFactory;
import jakarta.jms.InvalidDestinationException;
import jakarta.jms.JMSContext;
import jakarta.jms.MapMessage;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageFormatRuntimeException;
import jakarta.jms.MessageListener;
import jakarta.jms.MessageProducer;
import jakarta.jms.ObjectMessage;
import jakarta.jms.Queue;
import jakarta.jms.Session;
import jakarta.jms.TextMessage;
import java.io.Serializable;
import java.sql.ResultSet;
import java.sql.Statement;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Collectors;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

@SuppressWarnings("try")
class TracingTest extends ServerTest {
    private final InMemorySpanExporter exporter = InMemorySpanExporter.create();
    private final OpenTelemetrySdk sdk = OpenTelemetrySdk.builder()
            .setTracerProvider(SdkTracerProvider.builder()
                    .addSpanProcessor(SimpleSpanProcessor.create(exporter))
                    .build())
            .build();
    private final ConnectionFactory factory = new TracingConnectionFactory(new PgaqConnectionFactory(url()), sdk);
    private String queue;

    @BeforeEach
    void makeQueue() throws Exception {
        queue = newQueue();
    }

    @AfterEach
    void close() {
        sdk.close();
    }

    private List<SpanData> spans(String operation) {
        return exporter.getFinishedSpanItems().stream()
                .filter(span -> operation.equals(text(span, "messaging.operation.type")))
                .collect(Collectors.toList());
    }

    private SpanData span(String operation) {
        List<SpanData> found = spans(operation);
        assertEquals(1, found.size(), () -> exporter.getFinishedSpanItems().toString());
        SpanData span = found.get(0);
        assertEquals("pgaq", text(span, "messaging.system"));
        assertEquals(operation, text(span, "messaging.operation.name"));
        return span;
    }

    private static String text(SpanData span, String key) {
        return span.getAttributes().get(AttributeKey.stringKey(key));
    }

    private static Long number(SpanData span, String key) {
        return span.getAttributes().get(AttributeKey.longKey(key));
    }

    private static List<String> linked(SpanData span) {
        return span.getLinks().stream()
                .map(LinkData::getSpanContext)
                .map(context -> context.getSpanId())
                .collect(Collectors.toList());
    }

    private static String header(SpanData span) {
        return "00-" + span.getTraceId() + "-" + span.getSpanId() + "-"
                + span.getSpanContext().getTraceFlags().asHex();
    }

    @Test
    void sendReceiveSettle() throws Exception {
        try (Connection connection = factory.createConnection()) {
            connection.start();
            Session session = connection.createSession(true, Session.SESSION_TRANSACTED);
            Queue destination = session.createQueue(queue);
            MessageProducer producer = session.createProducer(destination);
            MessageConsumer consumer = session.createConsumer(destination);
            TextMessage sent = session.createTextMessage("one");
            sent.setJMSCorrelationID("c-1");
            producer.send(sent);
            session.commit();
            assertNull(exporter.getFinishedSpanItems().stream()
                    .filter(each -> each.getName().startsWith("settle"))
                    .findAny()
                    .orElse(null));
            Message received = consumer.receive(SAFETY_SECONDS * 1000L);
            session.commit();
            assertNull(consumer.receiveNoWait());

            SpanData send = span("send");
            assertEquals("send " + queue, send.getName());
            assertEquals(SpanKind.PRODUCER, send.getKind());
            assertEquals(queue, text(send, "messaging.destination.name"));
            assertEquals(sent.getJMSMessageID(), text(send, "messaging.message.id"));
            assertEquals("c-1", text(send, "messaging.message.conversation_id"));
            assertEquals(header(send), received.getStringProperty("traceparent"));
            SpanData receive = span("receive");
            assertEquals(SpanKind.CLIENT, receive.getKind());
            assertEquals(List.of(send.getSpanId()), linked(receive));
            assertEquals(sent.getJMSMessageID(), text(receive, "messaging.message.id"));
            assertEquals(0, number(receive, "messaging.pgaq.message.attempts"));
            SpanData settle = span("settle");
            assertEquals(SpanKind.CLIENT, settle.getKind());
            assertEquals("commit", text(settle, "messaging.pgaq.settlement"));
            assertEquals(1, number(settle, "messaging.batch.message_count"));
            assertEquals(List.of(send.getSpanId()), linked(settle));
        }
    }

    /** The trace of the sender continues in the listener; an attempt that rolls back is in it, too. */
    @Test
    void listenerThatRollsBack() throws Exception {
        Span order = sdk.getTracer("test").spanBuilder("order").startSpan();
        try (Connection connection = factory.createConnection()) {
            Session session = connection.createSession(true, Session.SESSION_TRANSACTED);
            AtomicInteger attempt = new AtomicInteger();
            CountDownLatch done = new CountDownLatch(1);
            MessageConsumer consumer = session.createConsumer(session.createQueue(queue));
            MessageListener listener = message -> {
                try {
                    assertTrue(Span.current().getSpanContext().isValid());
                    if (attempt.incrementAndGet() == 1) {
                        session.rollback();
                        throw new IllegalStateException("first");
                    }
                    session.commit();
                    done.countDown();
                } catch (jakarta.jms.JMSException e) {
                    throw new IllegalArgumentException(e);
                }
            };
            consumer.setMessageListener(listener);
            assertSame(listener, consumer.getMessageListener());
            try (JMSContext context = factory.createContext();
                    var scope = order.makeCurrent()) {
                context.createProducer().send(context.createQueue(queue), "one");
            } finally {
                order.end();
            }
            connection.start();
            assertTrue(done.await(SAFETY_SECONDS, TimeUnit.SECONDS));
        }
        SpanData send = span("send");
        assertEquals(order.getSpanContext().getSpanId(), send.getParentSpanId());
        List<SpanData> attempts = spans("process");
        assertEquals(
                List.of("process " + queue, "process " + queue),
                attempts.stream().map(SpanData::getName).collect(Collectors.toList()));
        for (SpanData each : attempts) {
            assertEquals(SpanKind.CONSUMER, each.getKind());
            assertEquals(List.of(send.getSpanId()), linked(each));
            assertEquals(send.getSpanId(), each.getParentSpanId());
            assertEquals(send.getTraceId(), each.getTraceId());
        }
        assertEquals(StatusCode.ERROR, attempts.get(0).getStatus().getStatusCode());
        assertEquals("java.lang.IllegalStateException", text(attempts.get(0), "error.type"));
        assertEquals(1, number(attempts.get(1), "messaging.pgaq.message.attempts"));
        assertEquals(
                List.of("rollback", "commit"),
                spans("settle").stream()
                        .map(each -> text(each, "messaging.pgaq.settlement"))
                        .collect(Collectors.toList()));
    }

    /** Messages that a session acknowledges by itself are settled, except the one that a listener is processing. */
    @Test
    void recoverInASessionThatAcknowledgesItself() throws Exception {
        try (JMSContext context = factory.createContext(JMSContext.AUTO_ACKNOWLEDGE)) {
            Queue destination = context.createQueue(queue);
            context.createProducer()
                    .send(destination, "a")
                    .send(destination, "b")
                    .send(destination, "c");
            var consumer = context.createConsumer(destination);
            for (String text : List.of("a", "b")) {
                assertEquals(text, consumer.receive(SAFETY_SECONDS * 1000L).getBody(String.class));
            }
            context.recover();
            context.acknowledge();
            assertEquals(List.of(), spans("settle"));
            CountDownLatch twice = new CountDownLatch(2);
            consumer.setMessageListener(message -> {
                if (twice.getCount() == 2) {
                    context.recover();
                }
                twice.countDown();
            });
            assertTrue(twice.await(SAFETY_SECONDS, TimeUnit.SECONDS));
        }
        assertEquals(1, number(span("settle"), "messaging.batch.message_count"));
        assertEquals("recover", text(span("settle"), "messaging.pgaq.settlement"));
    }

    /** Messages of a transaction that rolls back do not arrive, but their spans remain. */
    @Test
    void senderThatRollsBack() throws Exception {
        try (JMSContext context = factory.createContext(JMSContext.SESSION_TRANSACTED)) {
            Queue destination = context.createQueue(queue);
            context.createProducer().send(destination, "never");
            context.rollback();
            context.createProducer().send(destination, "once");
            context.commit();
            Message received = context.createConsumer(destination).receive(SAFETY_SECONDS * 1000L);
            assertEquals("once", received.getBody(String.class));
            assertEquals(2, spans("send").size());
            assertEquals(List.of(spans("send").get(1).getSpanId()), linked(span("receive")));
        }
    }

    @Test
    void bodiesOfContexts() throws Exception {
        try (JMSContext context = factory.createContext(JMSContext.CLIENT_ACKNOWLEDGE)) {
            Queue destination = context.createQueue(queue);
            var producer = context.createProducer();
            assertSame(producer, producer.setPriority(3));
            assertSame(producer, producer.send(destination, "text"));
            producer.send(destination, Map.of("a", 1)).send(destination, new byte[] {1, 2});
            producer.send(destination, (Serializable) Integer.valueOf(7)).send(destination, (String) null);
            producer.setProperty("traceparent", "00-11111111111111111111111111111111-2222222222222222-01");
            producer.send(destination, "own");
            assertEquals(6, spans("send").size());
            var consumer = context.createConsumer(destination);
            assertEquals("text", consumer.receiveBody(String.class, SAFETY_SECONDS * 1000L));
            assertEquals(
                    Map.of("a", 1), consumer.receive(SAFETY_SECONDS * 1000L).getBody(Map.class));
            assertEquals(2, consumer.receive(SAFETY_SECONDS * 1000L).getBody(byte[].class).length);
            assertInstanceOf(ObjectMessage.class, consumer.receive(SAFETY_SECONDS * 1000L));
            consumer.receive(SAFETY_SECONDS * 1000L);
            assertEquals(
                    "00-11111111111111111111111111111111-2222222222222222-01",
                    consumer.receive(SAFETY_SECONDS * 1000L).getStringProperty("traceparent"));
            context.acknowledge();
            assertEquals(5, number(span("settle"), "messaging.batch.message_count"));
        }
    }

    /** The parameter's type decides, as without spans. */
    @Test
    void bodiesThatAreNull() throws Exception {
        try (JMSContext context = factory.createContext()) {
            Queue destination = context.createQueue(queue);
            var producer = context.createProducer();
            producer.send(destination, (String) null).send(destination, (Map<String, Object>) null);
            producer.send(destination, (byte[]) null).send(destination, (Serializable) null);
            producer.send(destination, (Serializable) new byte[] {1});
            assertThrows(MessageFormatRuntimeException.class, () -> producer.send(destination, (Message) null));
            var consumer = context.createConsumer(destination);
            for (Class<?> kind : List.of(
                    TextMessage.class,
                    MapMessage.class,
                    BytesMessage.class,
                    ObjectMessage.class,
                    ObjectMessage.class)) {
                assertInstanceOf(kind, consumer.receive(SAFETY_SECONDS * 1000L));
            }
        }
    }

    /** A message that is sent twice has two contexts; one that the program has given one keeps it. */
    @Test
    void sameMessageAgain() throws Exception {
        String given = "00-11111111111111111111111111111111-2222222222222222-01";
        try (Connection connection = factory.createConnection()) {
            connection.start();
            Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
            Queue destination = session.createQueue(queue);
            MessageProducer producer = session.createProducer(null);
            Message message = session.createTextMessage("again");
            producer.send(destination, message);
            producer.send(destination, message, 2, 4, 0);
            Message own = session.createTextMessage("own");
            own.setStringProperty("traceparent", given);
            producer.send(destination, own);
            List<SpanData> sends = spans("send");
            assertEquals(SpanKind.CLIENT, sends.get(2).getKind());
            assertEquals(List.of("2222222222222222"), linked(sends.get(2)));
            MessageConsumer consumer = session.createConsumer(destination);
            String first = consumer.receive(SAFETY_SECONDS * 1000L).getStringProperty("traceparent");
            Message second = consumer.receive(SAFETY_SECONDS * 1000L);
            assertEquals(header(sends.get(0)), first);
            assertEquals(header(sends.get(1)), second.getStringProperty("traceparent"));
            assertNotEquals(first, second.getStringProperty("traceparent"));
            Message third = consumer.receive(SAFETY_SECONDS * 1000L);
            assertEquals(given, third.getStringProperty("traceparent"));
            // a message that was received is sent on with its context
            producer.send(destination, third);
            assertEquals(given, consumer.receive(SAFETY_SECONDS * 1000L).getStringProperty("traceparent"));
        }
    }

    @Test
    void completionListener() throws Exception {
        try (Connection connection = factory.createConnection()) {
            Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
            CompletableFuture<Message> sent = new CompletableFuture<>();
            session.createProducer(session.createQueue(queue)).send(session.createTextMessage("x"), completing(sent));
            Message message = sent.get(SAFETY_SECONDS, TimeUnit.SECONDS);
            assertEquals(message.getJMSMessageID(), text(span("send"), "messaging.message.id"));
        }
    }

    private static CompletionListener completing(CompletableFuture<Message> sent) {
        return new CompletionListener() {
            @Override
            public void onCompletion(Message message) {
                sent.complete(message);
            }

            @Override
            public void onException(Message message, Exception exception) {
                sent.completeExceptionally(exception);
            }
        };
    }

    @Test
    void failureAndTemporaryDestinations() throws Exception {
        try (Connection connection = factory.createConnection()) {
            connection.start();
            Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
            MessageProducer producer = session.createProducer(null);
            assertThrows(
                    InvalidDestinationException.class,
                    () -> producer.send(session.createQueue("no such queue"), session.createTextMessage("x")));
            SpanData failed = span("send");
            assertEquals(StatusCode.ERROR, failed.getStatus().getStatusCode());
            assertEquals(InvalidDestinationException.class.getName(), text(failed, "error.type"));
            exporter.reset();
            producer.send(session.createTemporaryQueue(), session.createTextMessage("x"));
            assertEquals("send", span("send").getName());
            assertEquals(
                    true, span("send").getAttributes().get(AttributeKey.booleanKey("messaging.destination.temporary")));
        }
    }

    /** SQL sees what the client sends, and a session's parameter reaches the client. */
    @Test
    void acrossSql() throws Exception {
        String given = "00-11111111111111111111111111111111-2222222222222222-01";
        try (JMSContext context = factory.createContext();
                java.sql.Connection sql = connect();
                Statement statement = sql.createStatement()) {
            context.createProducer().send(context.createQueue(queue), "from Java");
            try (ResultSet rows =
                    statement.executeQuery("SELECT (payload).properties ->> 'traceparent' FROM aq.dequeue('" + queue
                            + "', as_type => NULL::aq.jms_message)")) {
                assertTrue(rows.next());
                assertEquals(header(span("send")), rows.getString(1));
            }
            statement.execute("SET pgaq.traceparent = '" + given + "'");
            statement.execute("SELECT aq.enqueue('" + queue + "', payload => aq_jms.text('from SQL'))");
            Message received =
                    context.createConsumer(context.createQueue(queue)).receive(SAFETY_SECONDS * 1000L);
            assertEquals(given, received.getStringProperty("traceparent"));
            assertEquals(List.of("2222222222222222"), linked(span("receive")));
        }
    }

    /** Without an SDK nothing is added to messages. */
    @Test
    void withoutSdk() throws Exception {
        ConnectionFactory idle = new TracingConnectionFactory(new PgaqConnectionFactory(url()), OpenTelemetry.noop());
        try (JMSContext context = idle.createContext()) {
            Queue destination = context.createQueue(queue);
            context.createProducer().send(destination, "x");
            Message received = context.createConsumer(destination).receive(SAFETY_SECONDS * 1000L);
            assertFalse(received.propertyExists("traceparent"));
        }
    }
}
