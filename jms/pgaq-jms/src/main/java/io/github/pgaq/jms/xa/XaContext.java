package io.github.pgaq.jms.xa;

import io.github.pgaq.jms.session.ClientSession;
import io.github.pgaq.jms.session.Context;
import jakarta.jms.JMSContext;
import jakarta.jms.JMSException;
import jakarta.jms.XAJMSContext;
import javax.transaction.xa.XAResource;

/** A context whose messages are part of distributed transactions. */
public final class XaContext extends Context implements XAJMSContext {
    private final XaConnection connection;

    /** Makes the first context of a connection; closing the last one closes the connection. */
    public XaContext(XaConnection connection) {
        super(connection, SESSION_TRANSACTED);
        this.connection = connection;
    }

    @Override
    protected ClientSession newSession() throws JMSException {
        return connection.createXASession();
    }

    @Override
    public JMSContext getContext() {
        return this;
    }

    @Override
    public XAResource getXAResource() {
        return with(session -> ((XaSession) session).getXAResource());
    }
}
