package io.github.pgaq.jms;

import jakarta.jms.IllegalStateException;
import jakarta.jms.JMSException;
import jakarta.jms.TemporaryQueue;

/** A temporary queue. It lives as long as the connection that created it; only that connection can consume from it. */
public final class PgaqTemporaryQueue extends PgaqDestination implements TemporaryQueue {
    private static final long serialVersionUID = 1;

    private final transient TemporaryOwner owner;

    /**
     * Names a temporary queue; sessions call this.
     *
     * @param name its name
     * @param owner what deletes it; null if it belongs to another connection
     */
    public PgaqTemporaryQueue(String name, TemporaryOwner owner) {
        super(name);
        this.owner = owner;
    }

    @Override
    public String getQueueName() {
        return getName();
    }

    @Override
    public boolean isTopic() {
        return false;
    }

    @Override
    public boolean isTemporary() {
        return true;
    }

    /** Returns the connection that it belongs to; null if it came in a message of another connection. */
    public TemporaryOwner owner() {
        return owner;
    }

    /**
     * Deletes it with its messages.
     *
     * @throws IllegalStateException if it belongs to another connection
     * @throws JMSException if it has a consumer
     */
    @Override
    public void delete() throws JMSException {
        if (owner == null) {
            throw new IllegalStateException("temporary queue \"" + getName() + "\" belongs to another connection");
        }
        owner.delete(this);
    }
}
