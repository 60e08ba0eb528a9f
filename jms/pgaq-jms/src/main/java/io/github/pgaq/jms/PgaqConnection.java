package io.github.pgaq.jms;

import jakarta.jms.JMSException;
import jakarta.jms.QueueConnection;
import jakarta.jms.TopicConnection;

/** A connection to pgaq: queues and topics. */
public interface PgaqConnection extends QueueConnection, TopicConnection {
    @Override
    PgaqSession createSession(boolean transacted, int acknowledgeMode) throws JMSException;

    @Override
    PgaqSession createSession(int sessionMode) throws JMSException;

    @Override
    PgaqSession createSession() throws JMSException;
}
