package io.github.pgaq.jms;

import jakarta.jms.IllegalStateException;
import jakarta.jms.JMSException;
import jakarta.jms.TemporaryTopic;

/** A temporary topic. It lives as long as the connection that created it; only that connection can consume from it. */
public final class PgaqTemporaryTopic extends PgaqDestination implements TemporaryTopic {
    private static final long serialVersionUID = 1;

    private final transient TemporaryOwner owner;

    /**
     * Names a temporary topic; sessions call this.
     *
     * @param name its name
     * @param owner what deletes it; null if it belongs to another connection
     */
    public PgaqTemporaryTopic(String name, TemporaryOwner owner) {
        super(name);
        this.owner = owner;
    }

    @Override
    public String getTopicName() {
        return getName();
    }

    @Override
    public boolean isTopic() {
        return true;
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
            throw new IllegalStateException("temporary topic \"" + getName() + "\" belongs to another connection");
        }
        owner.delete(this);
    }
}
