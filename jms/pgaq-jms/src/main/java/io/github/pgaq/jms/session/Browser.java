package io.github.pgaq.jms.session;

import io.github.pgaq.jms.PgaqDestination;
import io.github.pgaq.jms.message.PgaqMessage;
import io.github.pgaq.jms.store.Delivery;
import io.github.pgaq.jms.store.Source;
import jakarta.jms.IllegalStateException;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.Queue;
import jakarta.jms.QueueBrowser;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.Enumeration;
import java.util.List;
import java.util.NoSuchElementException;
import java.util.UUID;

/** Reads the messages of a queue, some at a time, without taking them. */
final class Browser implements QueueBrowser {
    private static final int PAGE = 100;

    private final ClientSession session;
    private final PgaqDestination queue;
    private final String selector;
    private final Source source;
    private volatile boolean closed;

    Browser(ClientSession session, PgaqDestination queue, String selector, String condition) {
        this.session = session;
        this.queue = queue;
        this.selector = selector;
        this.source = new Source(
                queue.serverName(),
                null,
                condition,
                PAGE,
                session.connection().options().prefetchBytes());
    }

    @Override
    public Queue getQueue() throws JMSException {
        checkOpen();
        return (Queue) queue;
    }

    @Override
    public String getMessageSelector() throws JMSException {
        checkOpen();
        return selector;
    }

    /** Returns the messages as they are now and, behind them, those that come while it is read. */
    @Override
    public Enumeration<?> getEnumeration() throws JMSException {
        checkOpen();
        Pages pages = new Pages();
        pages.load();
        return pages;
    }

    @Override
    public void close() {
        closed = true;
    }

    private void checkOpen() throws JMSException {
        session.checkOpen();
        if (closed) {
            throw new IllegalStateException("the browser is closed");
        }
    }

    private final class Pages implements Enumeration<Message> {
        private final Deque<Delivery> page = new ArrayDeque<>();
        private UUID last;
        private boolean more = true;

        private void load() throws JMSException {
            List<Delivery> read = session.browse(source, last);
            more = read.size() == PAGE;
            for (Delivery delivery : read) {
                if (delivery.body() == null) {
                    // behind the limit of bytes: of the next page
                    more = true;
                    break;
                }
                page.add(delivery);
                last = delivery.msgid();
            }
        }

        @Override
        public boolean hasMoreElements() {
            if (page.isEmpty() && more) {
                Errors.unchecked(() -> {
                    checkOpen();
                    load();
                });
            }
            return !page.isEmpty();
        }

        @Override
        public Message nextElement() {
            if (!hasMoreElements()) {
                throw new NoSuchElementException("no more messages");
            }
            Delivery delivery = page.remove();
            return Errors.unchecked(() -> {
                PgaqMessage message = session.connection().messages().toClient(delivery, queue, null);
                session.readBody(message, source, delivery.msgid());
                return message;
            });
        }
    }
}
