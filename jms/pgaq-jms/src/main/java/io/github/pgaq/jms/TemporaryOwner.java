package io.github.pgaq.jms;

import jakarta.jms.JMSException;

/** The connection that temporary destinations belong to. */
public interface TemporaryOwner {
    /**
     * Deletes a temporary destination.
     *
     * @throws JMSException if it has a consumer, or the server fails
     */
    void delete(PgaqDestination destination) throws JMSException;
}
