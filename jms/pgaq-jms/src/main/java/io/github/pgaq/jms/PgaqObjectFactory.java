package io.github.pgaq.jms;

import java.util.Collections;
import java.util.Hashtable;
import java.util.LinkedHashMap;
import java.util.Map;
import javax.naming.Context;
import javax.naming.Name;
import javax.naming.RefAddr;
import javax.naming.Reference;
import javax.naming.StringRefAddr;
import javax.naming.spi.ObjectFactory;

/** Makes connection factories and destinations of the references that JNDI keeps. */
public final class PgaqObjectFactory implements ObjectFactory {
    private static final String NAME = "name";

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
        if (reference.getClassName().equals(PgaqQueue.class.getName())) {
            return new PgaqQueue(value(reference, NAME));
        }
        if (reference.getClassName().equals(PgaqTopic.class.getName())) {
            return new PgaqTopic(value(reference, NAME));
        }
        PgaqConnectionFactory factory = null;
        if (reference.getClassName().equals(PgaqConnectionFactory.class.getName())) {
            factory = new PgaqConnectionFactory();
        } else if (reference.getClassName().equals(PgaqXAConnectionFactory.class.getName())) {
            factory = new PgaqXAConnectionFactory();
        }
        if (factory != null) {
            Map<String, String> values = new LinkedHashMap<>();
            Collections.list(reference.getAll())
                    .forEach(address -> values.put(address.getType(), (String) address.getContent()));
            factory.set(values);
        }
        return factory;
    }

    private static String value(Reference reference, String name) {
        RefAddr address = reference.get(name);
        return address == null ? null : (String) address.getContent();
    }
}
