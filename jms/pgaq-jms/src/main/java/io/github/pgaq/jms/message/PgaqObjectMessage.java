package io.github.pgaq.jms.message;

import jakarta.jms.JMSException;
import jakarta.jms.MessageFormatException;
import jakarta.jms.ObjectMessage;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InvalidObjectException;
import java.io.ObjectInputFilter;
import java.io.ObjectInputStream;
import java.io.ObjectOutputStream;
import java.io.ObjectStreamClass;
import java.io.Serializable;
import java.lang.reflect.Proxy;
import java.util.Arrays;
import java.util.Collection;
import java.util.IdentityHashMap;
import java.util.Map;
import java.util.Set;

/** An object message. It keeps the serial form of the object as it was when the message was made. */
public final class PgaqObjectMessage extends PgaqMessage implements ObjectMessage {

    private static final AllowedClasses ALL = AllowedClasses.parse("*");

    private final AllowedClasses allowed;
    private byte[] content;
    /** Whether the object was set in this process, so that reading it back is safe. */
    private boolean own;

    PgaqObjectMessage(AllowedClasses allowed) {
        this.allowed = allowed;
    }

    @Override
    public void setObject(Serializable object) throws JMSException {
        checkBodyWritable();
        own = true;
        if (object == null) {
            content = null;
            return;
        }
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        try (ObjectOutputStream out = new ObjectOutputStream(bytes)) {
            out.writeObject(object);
        } catch (IOException e) {
            throw Errors.with(
                    new MessageFormatException("cannot serialize an object of class "
                            + object.getClass().getName() + ": " + e),
                    e);
        }
        content = bytes.toByteArray();
    }

    @Override
    public Serializable getObject() throws JMSException {
        if (content == null) {
            return null;
        }
        AllowedClasses classes = own ? ALL : allowed;
        try (Input in = new Input(content, classes)) {
            return (Serializable) in.readObject();
        } catch (ForbiddenClassException e) {
            throw Errors.with(
                    new MessageFormatException("objects of class " + e.getMessage()
                            + " are not read from messages; add the class to the option \"" + AllowedClasses.OPTION
                            + "\" of the connection factory if you trust the senders"),
                    e);
        } catch (IOException | ClassNotFoundException | RuntimeException | StackOverflowError e) {
            Exception cause = e instanceof Exception exception ? exception : new IOException(e);
            throw Errors.with(new MessageFormatException("cannot read the object of the message: " + e), cause);
        }
    }

    @Override
    public void clearBody() throws JMSException {
        super.clearBody();
        content = null;
        own = true;
    }

    @Override
    String kind() {
        return "object";
    }

    @Override
    byte[] storedBytes() {
        return content;
    }

    @Override
    void load(String text, byte[] bytes) {
        content = bytes;
        own = false;
    }

    @Override
    Object wholeBody() throws JMSException {
        return getObject();
    }

    /** A class that is not allowed; its name is the message. */
    private static final class ForbiddenClassException extends IOException {
        ForbiddenClassException(String name) {
            super(name);
        }
    }

    /** Reads objects of allowed classes, found by the thread's class loader or else by that of this class. */
    private static final class Input extends ObjectInputStream {
        private static final int MAX_DEPTH = 500;
        /** The time limit for reading an object; each MB adds a second. */
        private static final long MAX_SECONDS = 10;

        private final AllowedClasses allowed;
        private final long size;
        private final long end;
        /** The number of steps that hashing what was read has taken. */
        private long work;
        /** For each collection that was read: the number of steps that it takes to hash it with all its elements. */
        private final Map<Object, Long> weights = new IdentityHashMap<>();

        Input(byte[] bytes, AllowedClasses allowed) throws IOException {
            super(new ByteArrayInputStream(bytes));
            this.allowed = allowed;
            this.size = bytes.length;
            this.end = System.nanoTime() + (MAX_SECONDS + (size >> 20)) * 1_000_000_000;
            if (allowed != ALL) {
                setObjectInputFilter(this::filter);
                enableResolveObject(true);
            }
        }

        /**
         * Bounds the memory that a small message can claim: elements of arrays and maps take bytes of the message. Also
         * bounds the time, because elements with the same hash are compared with each other.
         */
        private ObjectInputFilter.Status filter(ObjectInputFilter.FilterInfo info) {
            boolean refused =
                    info.depth() > MAX_DEPTH || info.arrayLength() > 8 * size + 1024 || end - System.nanoTime() < 0;
            return refused ? ObjectInputFilter.Status.REJECTED : ObjectInputFilter.Status.UNDECIDED;
        }

        /**
         * Bounds the time that a small message can claim: a set hashes its elements when it is read, and a collection
         * of collections that are in it twice takes twice the steps on each level. An object is read before those that
         * hold it, wherever in the message it is, so the check comes before the first one that would hash it. Only one
         * that holds itself is not: then it counts with what it has now, each time.
         */
        @Override
        protected Object resolveObject(Object object) throws IOException {
            Iterable<?> held = object instanceof Collection<?> collection
                    ? collection
                    : object instanceof Map<?, ?> map
                            ? map.entrySet()
                            : object instanceof Map.Entry<?, ?> entry
                                    ? Arrays.asList(entry.getKey(), entry.getValue())
                                    : null;
            if (held == null) {
                return object;
            }
            long weight = 1;
            for (Object each : held) {
                weight += object instanceof Map<?, ?> && each instanceof Map.Entry<?, ?> entry
                        ? weight(entry.getKey()) + weight(entry.getValue())
                        : weight(each);
                if (work + weight > 64 * size + 1024) {
                    throw new InvalidObjectException(
                            "collections hold each other too often for a message of " + size + " bytes");
                }
            }
            work += object instanceof Set<?> || object instanceof Map<?, ?> ? weight : 0;
            weights.put(object, weight);
            return object;
        }

        private long weight(Object object) {
            Long known = weights.get(object);
            return known != null
                    ? known
                    : object instanceof Collection<?> collection
                            ? collection.size() + 1L
                            : object instanceof Map<?, ?> map ? 2L * map.size() + 1 : 1;
        }

        @Override
        protected Class<?> resolveClass(ObjectStreamClass description) throws IOException, ClassNotFoundException {
            String name = description.getName();
            String element = name.substring(name.lastIndexOf('[') + 1);
            boolean primitive = element.length() != name.length() && !element.startsWith("L");
            if (element.length() != name.length() && element.startsWith("L")) {
                element = element.substring(1, element.length() - 1);
            }
            if (!primitive && !allowed.allows(element)) {
                throw new ForbiddenClassException(element);
            }
            try {
                ClassLoader loader = Thread.currentThread().getContextClassLoader();
                return Class.forName(name, false, loader == null ? getClass().getClassLoader() : loader);
            } catch (ClassNotFoundException e) {
                return super.resolveClass(description);
            }
        }

        @Override
        protected Class<?> resolveProxyClass(String[] interfaces) throws IOException, ClassNotFoundException {
            for (String name : interfaces) {
                if (!allowed.allows(name)) {
                    throw new ForbiddenClassException(name);
                }
            }
            if (allowed != ALL && !allowed.allows(Proxy.class.getName())) {
                throw new ForbiddenClassException(Proxy.class.getName());
            }
            return super.resolveProxyClass(interfaces);
        }
    }
}
