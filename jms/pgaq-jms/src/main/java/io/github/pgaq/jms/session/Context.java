package io.github.pgaq.jms.session;

import jakarta.jms.BytesMessage;
import jakarta.jms.ConnectionMetaData;
import jakarta.jms.Destination;
import jakarta.jms.ExceptionListener;
import jakarta.jms.IllegalStateRuntimeException;
import jakarta.jms.JMSConsumer;
import jakarta.jms.JMSContext;
import jakarta.jms.JMSException;
import jakarta.jms.JMSProducer;
import jakarta.jms.JMSRuntimeException;
import jakarta.jms.MapMessage;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.ObjectMessage;
import jakarta.jms.Queue;
import jakarta.jms.QueueBrowser;
import jakarta.jms.StreamMessage;
import jakarta.jms.TemporaryQueue;
import jakarta.jms.TemporaryTopic;
import jakarta.jms.TextMessage;
import jakarta.jms.Topic;
import java.io.Serializable;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.ReentrantLock;

/** A context: a session, made when it is first needed, and a connection that contexts share. */
public class Context implements JMSContext {
    private final ClientConnection connection;
    /** How many contexts of the connection are open. */
    private final AtomicInteger contexts;

    private final int mode;
    /** Not a monitor, because the session connects under it: see ClientConnection. */
    private final ReentrantLock lock = new ReentrantLock();

    private ClientSession session;
    private boolean closed;
    private volatile boolean autoStart = true;

    /**
     * Makes the first context of a connection; closing the last one closes the connection.
     *
     * @param mode one of the modes of JMSContext
     */
    public Context(ClientConnection connection, int mode) {
        this(connection, new AtomicInteger(1), mode);
    }

    private Context(ClientConnection connection, AtomicInteger contexts, int mode) {
        this.connection = connection;
        this.contexts = contexts;
        this.mode = mode;
        checkMode(mode);
    }

    /** Fails if there is no such mode. */
    public static void checkMode(int mode) {
        if (mode < SESSION_TRANSACTED || mode > DUPS_OK_ACKNOWLEDGE) {
            throw new JMSRuntimeException("session mode " + mode + " does not exist");
        }
    }

    /** What is done with the session. */
    protected interface Use<T> {
        /** Does it. */
        T on(ClientSession session) throws JMSException;
    }

    /** Uses the session, which is made if there is none yet. */
    protected final <T> T with(Use<T> use) {
        return Errors.unchecked(() -> use.on(session()));
    }

    private ClientSession session() throws JMSException {
        lock.lock();
        try {
            checkOpen();
            if (session == null) {
                session = newSession();
            }
            return session;
        } finally {
            lock.unlock();
        }
    }

    /** Makes the session. */
    protected ClientSession newSession() throws JMSException {
        return connection.createSession(mode);
    }

    private void checkOpen() {
        lock.lock();
        try {
            if (closed) {
                throw new IllegalStateRuntimeException("the context is closed");
            }
        } finally {
            lock.unlock();
        }
    }

    @Override
    public JMSContext createContext(int sessionMode) {
        checkOpen();
        checkMode(sessionMode);
        contexts.incrementAndGet();
        return new Context(connection, contexts, sessionMode);
    }

    @Override
    public JMSProducer createProducer() {
        return with(s -> new ContextProducer(s, (Producer) s.createProducer(null)));
    }

    @Override
    public String getClientID() {
        checkOpen();
        return Errors.unchecked(connection::getClientID);
    }

    @Override
    public void setClientID(String clientID) {
        checkOpen();
        Errors.unchecked(() -> connection.setClientID(clientID));
    }

    @Override
    public ConnectionMetaData getMetaData() {
        checkOpen();
        return Errors.unchecked(connection::getMetaData);
    }

    @Override
    public ExceptionListener getExceptionListener() {
        checkOpen();
        return Errors.unchecked(connection::getExceptionListener);
    }

    @Override
    public void setExceptionListener(ExceptionListener listener) {
        checkOpen();
        Errors.unchecked(() -> connection.setExceptionListener(listener));
    }

    @Override
    public void start() {
        checkOpen();
        Errors.unchecked(connection::start);
    }

    @Override
    public void stop() {
        checkOpen();
        Errors.unchecked(connection::stop);
    }

    @Override
    public void setAutoStart(boolean autoStart) {
        checkOpen();
        this.autoStart = autoStart;
    }

    @Override
    public boolean getAutoStart() {
        checkOpen();
        return autoStart;
    }

    @Override
    public void close() {
        ClientSession opened;
        lock.lock();
        try {
            opened = session;
        } finally {
            lock.unlock();
        }
        Errors.unchecked(() -> {
            // before the state changes: a callback that must not close leaves everything as it is
            Callbacks.refuseListener(connection, "close()");
            if (opened != null) {
                Callbacks.refuseCompletion(opened, "close()");
            }
            lock.lock();
            try {
                if (closed) {
                    return;
                }
                closed = true;
            } finally {
                lock.unlock();
            }
            try {
                if (opened != null) {
                    opened.close();
                }
            } finally {
                if (contexts.decrementAndGet() == 0) {
                    connection.close();
                }
            }
        });
    }

    @Override
    public BytesMessage createBytesMessage() {
        return with(ClientSession::createBytesMessage);
    }

    @Override
    public MapMessage createMapMessage() {
        return with(ClientSession::createMapMessage);
    }

    @Override
    public Message createMessage() {
        return with(ClientSession::createMessage);
    }

    @Override
    public ObjectMessage createObjectMessage() {
        return with(ClientSession::createObjectMessage);
    }

    @Override
    public ObjectMessage createObjectMessage(Serializable object) {
        return with(s -> s.createObjectMessage(object));
    }

    @Override
    public StreamMessage createStreamMessage() {
        return with(ClientSession::createStreamMessage);
    }

    @Override
    public TextMessage createTextMessage() {
        return with(ClientSession::createTextMessage);
    }

    @Override
    public TextMessage createTextMessage(String text) {
        return with(s -> s.createTextMessage(text));
    }

    @Override
    public boolean getTransacted() {
        checkOpen();
        return mode == SESSION_TRANSACTED;
    }

    @Override
    public int getSessionMode() {
        checkOpen();
        return mode;
    }

    @Override
    public void commit() {
        with(s -> {
            s.commit();
            return null;
        });
    }

    @Override
    public void rollback() {
        with(s -> {
            s.rollback();
            return null;
        });
    }

    @Override
    public void recover() {
        with(s -> {
            s.recover();
            return null;
        });
    }

    @Override
    public void acknowledge() {
        with(s -> {
            s.acknowledge();
            return null;
        });
    }

    private JMSConsumer consumer(Use<MessageConsumer> create) {
        return with(s -> {
            JMSConsumer consumer = new ContextConsumer(create.on(s));
            if (autoStart) {
                connection.start();
            }
            return consumer;
        });
    }

    @Override
    public JMSConsumer createConsumer(Destination destination) {
        return consumer(s -> s.createConsumer(destination));
    }

    @Override
    public JMSConsumer createConsumer(Destination destination, String selector) {
        return consumer(s -> s.createConsumer(destination, selector));
    }

    @Override
    public JMSConsumer createConsumer(Destination destination, String selector, boolean noLocal) {
        return consumer(s -> s.createConsumer(destination, selector, noLocal));
    }

    @Override
    public JMSConsumer createDurableConsumer(Topic topic, String name) {
        return consumer(s -> s.createDurableConsumer(topic, name));
    }

    @Override
    public JMSConsumer createDurableConsumer(Topic topic, String name, String selector, boolean noLocal) {
        return consumer(s -> s.createDurableConsumer(topic, name, selector, noLocal));
    }

    @Override
    public JMSConsumer createSharedDurableConsumer(Topic topic, String name) {
        return consumer(s -> s.createSharedDurableConsumer(topic, name));
    }

    @Override
    public JMSConsumer createSharedDurableConsumer(Topic topic, String name, String selector) {
        return consumer(s -> s.createSharedDurableConsumer(topic, name, selector));
    }

    @Override
    public JMSConsumer createSharedConsumer(Topic topic, String name) {
        return consumer(s -> s.createSharedConsumer(topic, name));
    }

    @Override
    public JMSConsumer createSharedConsumer(Topic topic, String name, String selector) {
        return consumer(s -> s.createSharedConsumer(topic, name, selector));
    }

    @Override
    public Queue createQueue(String name) {
        return with(s -> s.createQueue(name));
    }

    @Override
    public Topic createTopic(String name) {
        return with(s -> s.createTopic(name));
    }

    @Override
    public QueueBrowser createBrowser(Queue queue) {
        return createBrowser(queue, null);
    }

    @Override
    public QueueBrowser createBrowser(Queue queue, String selector) {
        return with(s -> {
            QueueBrowser browser = s.createBrowser(queue, selector);
            if (autoStart) {
                connection.start();
            }
            return browser;
        });
    }

    @Override
    public TemporaryQueue createTemporaryQueue() {
        return with(ClientSession::createTemporaryQueue);
    }

    @Override
    public TemporaryTopic createTemporaryTopic() {
        return with(ClientSession::createTemporaryTopic);
    }

    @Override
    public void unsubscribe(String name) {
        with(s -> {
            s.unsubscribe(name);
            return null;
        });
    }
}
