package io.github.pgaq.jms;

import jakarta.jms.ConnectionFactory;
import jakarta.jms.Queue;
import jakarta.jms.QueueConnectionFactory;
import jakarta.jms.Topic;
import jakarta.jms.TopicConnectionFactory;
import jakarta.jms.XAConnectionFactory;
import jakarta.jms.XAQueueConnectionFactory;
import jakarta.jms.XATopicConnectionFactory;
import java.util.Collections;
import java.util.Hashtable;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Set;
import javax.naming.Context;
import javax.naming.Name;
import javax.naming.RefAddr;
import javax.naming.Reference;
import javax.naming.StringRefAddr;
import javax.naming.spi.ObjectFactory;

/**
 * Makes connection factories and destinations of the references that JNDI keeps. The type can also be an interface,
 * such as {@code jakarta.jms.ConnectionFactory}, as resources of Tomcat have it.
 */
public final class PgaqObjectFactory implements ObjectFactory {
    private static final String NAME = "name";
    private static final String PHYSICAL_NAME = "physicalName";
    private static final Set<Class<?>> QUEUES = Set.of(PgaqQueue.class, Queue.class);
    private static final Set<Class<?>> TOPICS = Set.of(PgaqTopic.class, Topic.class);
    private static final Set<Class<?>> FACTORIES = Set.of(
            PgaqConnectionFactory.class,
            ConnectionFactory.class,
            QueueConnectionFactory.class,
            TopicConnectionFactory.class);
    private static final Set<Class<?>> XA_FACTORIES = Set.of(
            PgaqXAConnectionFactory.class,
            XAConnectionFactory.class,
            XAQueueConnectionFactory.class,
            XATopicConnectionFactory.class);
    /** Attributes of a reference that Tomcat uses itself. */
    private static final Set<String> NOT_OURS = Set.of("factory", "scope", "auth", "singleton", "description");

    /** For JNDI. */
    public PgaqObjectFactory() {}

    /** Returns the reference of a destination. */
    static Reference reference(PgaqDestination destination) {
        return reference(destination.getClass(), Map.of(NAME, destination.getName()));
    }

    /** Returns the reference of an object that the given values make. */
    static Reference reference(Class<?> type, Map<String, String> values) {
        Reference reference = new Reference(type.getName(), PgaqObjectFactory.class.getName(), null);
        values.forEach((name, value) -> reference.add(new StringRefAddr(name, value)));
        return reference;
    }

    @Override
    public Object getObjectInstance(Object object, Name name, Context context, Hashtable<?, ?> environment)
            throws Exception {
        if (!(object instanceof Reference reference)) {
            return null;
        }
        if (isOneOf(QUEUES, reference)) {
            return new PgaqQueue(destination(reference));
        }
        if (isOneOf(TOPICS, reference)) {
            return new PgaqTopic(destination(reference));
        }
        PgaqConnectionFactory factory = null;
        if (isOneOf(FACTORIES, reference)) {
            factory = new PgaqConnectionFactory();
        } else if (isOneOf(XA_FACTORIES, reference)) {
            factory = new PgaqXAConnectionFactory();
        }
        if (factory != null) {
            Map<String, String> values = new LinkedHashMap<>();
            Collections.list(reference.getAll())
                    .forEach(address -> values.put(address.getType(), (String) address.getContent()));
            values.keySet().removeAll(NOT_OURS);
            factory.set(values);
        }
        return factory;
    }

    private static boolean isOneOf(Set<Class<?>> types, Reference reference) {
        return types.stream().anyMatch(type -> type.getName().equals(reference.getClassName()));
    }

    /** In a resource of Tomcat, "name" is the name in JNDI. */
    private static String destination(Reference reference) {
        RefAddr address = reference.get(PHYSICAL_NAME) == null ? reference.get(NAME) : reference.get(PHYSICAL_NAME);
        return address == null ? null : (String) address.getContent();
    }
}
