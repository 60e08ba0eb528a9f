package io.github.pgaq.jms;

import jakarta.jms.Queue;
import javax.naming.NamingException;
import javax.naming.Reference;
import javax.naming.Referenceable;

/** A queue of the server, by its name. */
public final class PgaqQueue extends PgaqDestination implements Queue, Referenceable {
    private static final long serialVersionUID = 1;

    /**
     * Names a queue.
     *
     * @param name its name, {@code name} or {@code schema.name}; not null or empty
     */
    public PgaqQueue(String name) {
        super(name);
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
        return false;
    }

    @Override
    public Reference getReference() throws NamingException {
        return PgaqObjectFactory.reference(this);
    }
}
