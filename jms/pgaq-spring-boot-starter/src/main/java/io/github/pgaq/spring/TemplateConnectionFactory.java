package io.github.pgaq.spring;

import jakarta.jms.Connection;
import jakarta.jms.ConnectionFactory;
import jakarta.jms.ExceptionListener;
import jakarta.jms.JMSException;
import org.springframework.jms.connection.CachingConnectionFactory;

/**
 * Keeps a connection for templates. Only errors of this connection close it.
 *
 * <p>Spring Boot gives listener containers the only bean that is an {@link ExceptionListener}, which is this one. What
 * fails in a container, such as a listener of a queue that does not exist, must not close the connection that others
 * send on.
 */
class TemplateConnectionFactory extends CachingConnectionFactory {

    TemplateConnectionFactory(ConnectionFactory target) {
        super(target);
    }

    /** Does nothing: listener containers call it. */
    @Override
    public void onException(JMSException reason) {}

    @Override
    protected void prepareConnection(Connection connection) throws JMSException {
        super.prepareConnection(connection);
        ExceptionListener others = connection.getExceptionListener();
        connection.setExceptionListener(reason -> {
            super.onException(reason);
            if (others != null) {
                others.onException(reason);
            }
        });
    }
}
