package io.github.pgaq.jms.xa;

import io.github.pgaq.jms.PgaqOptions;
import io.github.pgaq.jms.session.ClientConnection;
import io.github.pgaq.jms.store.StoreFactory;
import jakarta.jms.JMSException;
import jakarta.jms.XAQueueConnection;
import jakarta.jms.XATopicConnection;

/** A connection that makes sessions for distributed transactions, and ordinary ones. */
public final class XaConnection extends ClientConnection implements XAQueueConnection, XATopicConnection {
    private final XaSource source;
    private final XaStores stores;

    /**
     * Connects.
     *
     * @param factory opens the connections of ordinary sessions, and for control
     * @param source opens the connections of XA sessions
     * @param stores makes the stores of XA sessions
     * @param origin names the connection factory
     */
    public XaConnection(StoreFactory factory, PgaqOptions options, XaSource source, XaStores stores, String origin)
            throws JMSException {
        super(factory, options, false, origin);
        this.source = source;
        this.stores = stores;
    }

    @Override
    public XaSession createXASession() throws JMSException {
        XaResource resource = new XaResource();
        return add(new XaSession(this, () -> resource.use(source, stores), resource));
    }

    @Override
    public XaSession createXAQueueSession() throws JMSException {
        return createXASession();
    }

    @Override
    public XaSession createXATopicSession() throws JMSException {
        return createXASession();
    }
}
