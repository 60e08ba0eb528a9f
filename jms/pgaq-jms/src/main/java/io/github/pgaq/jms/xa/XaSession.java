package io.github.pgaq.jms.xa;

import io.github.pgaq.jms.session.ClientSession;
import io.github.pgaq.jms.store.StoreFactory;
import jakarta.jms.IllegalStateException;
import jakarta.jms.JMSException;
import jakarta.jms.QueueSession;
import jakarta.jms.Session;
import jakarta.jms.TopicSession;
import jakarta.jms.TransactionInProgressException;
import jakarta.jms.XAQueueSession;
import jakarta.jms.XASession;
import jakarta.jms.XATopicSession;
import javax.transaction.xa.XAResource;

/**
 * A session whose messages are part of distributed transactions. Between {@code start} and {@code end} of its resource
 * it sends and consumes in that transaction; outside, each call is a transaction of its own.
 */
final class XaSession extends ClientSession implements XASession, XAQueueSession, XATopicSession {
    private final XaResource resource;

    XaSession(XaConnection connection, StoreFactory factory, XaResource resource) {
        super(connection, factory, AUTO_ACKNOWLEDGE, true);
        this.resource = resource;
        resource.setPending(this::awaitSends);
    }

    @Override
    public Session getSession() throws JMSException {
        return self();
    }

    @Override
    public QueueSession getQueueSession() throws JMSException {
        return self();
    }

    @Override
    public TopicSession getTopicSession() throws JMSException {
        return self();
    }

    private XaSession self() throws JMSException {
        getAcknowledgeMode();
        return this;
    }

    @Override
    public XAResource getXAResource() {
        return resource;
    }

    @Override
    public boolean getTransacted() throws JMSException {
        super.getTransacted();
        return true;
    }

    @Override
    public int getAcknowledgeMode() throws JMSException {
        super.getAcknowledgeMode();
        return SESSION_TRANSACTED;
    }

    @Override
    public void commit() throws JMSException {
        throw refused("commit()");
    }

    @Override
    public void rollback() throws JMSException {
        throw refused("rollback()");
    }

    private JMSException refused(String method) throws JMSException {
        getAcknowledgeMode();
        return new TransactionInProgressException(
                method + " is not allowed: the transaction manager ends the transactions of an XASession");
    }

    @Override
    public void recover() throws JMSException {
        getAcknowledgeMode();
        throw new IllegalStateException("recover() is not allowed: the session is transacted");
    }

    @Override
    public void close() throws JMSException {
        try {
            super.close();
        } finally {
            resource.close();
        }
    }
}
