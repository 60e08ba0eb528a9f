package io.github.pgaq.jms;

import jakarta.jms.Topic;
import javax.naming.NamingException;
import javax.naming.Reference;
import javax.naming.Referenceable;

/** A topic of the server, by its name. */
public final class PgaqTopic extends PgaqDestination implements Topic, Referenceable {
    private static final long serialVersionUID = 1;

    /**
     * Names a topic.
     *
     * @param name its name, {@code name} or {@code schema.name}; not null or empty
     */
    public PgaqTopic(String name) {
        super(name);
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
        return false;
    }

    @Override
    public Reference getReference() throws NamingException {
        return PgaqObjectFactory.reference(this);
    }
}
