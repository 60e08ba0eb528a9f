package io.github.pgaq.jms.opentelemetry;

import io.opentelemetry.api.OpenTelemetry;
import jakarta.jms.Connection;
import jakarta.jms.ConnectionFactory;
import jakarta.jms.JMSContext;
import jakarta.jms.JMSException;

/**
 * A connection factory whose connections and contexts make spans of OpenTelemetry, by its semantic conventions of
 * messaging, and give each message the trace context of its span, as its properties {@code traceparent} and
 * {@code tracestate}.
 *
 * <p>Spans are {@code send} (PRODUCER) for each message, {@code receive} (CLIENT) for each call that returns one,
 * {@code process} (CONSUMER) for each that a listener gets, and {@code settle} (CLIENT) for a commit, rollback,
 * recovery or acknowledgement of a session or context; the latter three have links to the creation of their messages.
 *
 * <p>The Java agent of OpenTelemetry does the same without this class. Use one of them.
 */
public final class TracingConnectionFactory implements ConnectionFactory {
    private final ConnectionFactory target;
    private final Spans spans;

    /**
     * Wraps a connection factory.
     *
     * @param target such as a {@code PgaqConnectionFactory}
     * @param openTelemetry the SDK that gets the spans
     */
    public TracingConnectionFactory(ConnectionFactory target, OpenTelemetry openTelemetry) {
        this.target = target;
        this.spans = new Spans(openTelemetry);
    }

    @Override
    public Connection createConnection() throws JMSException {
        return wrap(target.createConnection());
    }

    @Override
    public Connection createConnection(String userName, String password) throws JMSException {
        return wrap(target.createConnection(userName, password));
    }

    @Override
    public JMSContext createContext() {
        return wrap(target.createContext());
    }

    @Override
    public JMSContext createContext(String userName, String password) {
        return wrap(target.createContext(userName, password));
    }

    @Override
    public JMSContext createContext(String userName, String password, int sessionMode) {
        return wrap(target.createContext(userName, password, sessionMode));
    }

    @Override
    public JMSContext createContext(int sessionMode) {
        return wrap(target.createContext(sessionMode));
    }

    private Connection wrap(Connection connection) {
        return new Wrapper<>(connection, Connection.class, spans, null, null).proxy();
    }

    private JMSContext wrap(JMSContext context) {
        return new Wrapper<>(context, JMSContext.class, spans, new Settled(context.getSessionMode()), null).proxy();
    }
}
