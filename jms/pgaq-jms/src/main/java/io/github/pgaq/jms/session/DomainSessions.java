package io.github.pgaq.jms.session;

import io.github.pgaq.jms.store.StoreFactory;
import jakarta.jms.IllegalStateException;
import jakarta.jms.JMSException;
import jakarta.jms.MessageConsumer;
import jakarta.jms.Queue;
import jakarta.jms.QueueBrowser;
import jakarta.jms.TemporaryQueue;
import jakarta.jms.TemporaryTopic;
import jakarta.jms.Topic;
import jakarta.jms.TopicSubscriber;

/** The sessions of QueueConnection and TopicConnection, which refuse what belongs to the other kind of destinations. */
final class DomainSessions {
    private DomainSessions() {}

    private static IllegalStateException refused(String method, String kind) {
        return new IllegalStateException(method + " is not allowed in a " + kind);
    }

    /** A QueueSession. */
    static final class OfQueues extends ClientSession {
        private static final String KIND = "QueueSession";

        OfQueues(ClientConnection connection, StoreFactory factory, int mode, boolean callers) {
            super(connection, factory, mode, callers);
        }

        @Override
        public Topic createTopic(String name) throws JMSException {
            throw refused("createTopic()", KIND);
        }

        @Override
        public TemporaryTopic createTemporaryTopic() throws JMSException {
            throw refused("createTemporaryTopic()", KIND);
        }

        @Override
        public TopicSubscriber createDurableSubscriber(Topic topic, String name) throws JMSException {
            throw refused("createDurableSubscriber()", KIND);
        }

        @Override
        public TopicSubscriber createDurableSubscriber(Topic topic, String name, String selector, boolean noLocal)
                throws JMSException {
            throw refused("createDurableSubscriber()", KIND);
        }

        @Override
        public MessageConsumer createDurableConsumer(Topic topic, String name) throws JMSException {
            throw refused("createDurableConsumer()", KIND);
        }

        @Override
        public MessageConsumer createDurableConsumer(Topic topic, String name, String selector, boolean noLocal)
                throws JMSException {
            throw refused("createDurableConsumer()", KIND);
        }

        @Override
        public MessageConsumer createSharedConsumer(Topic topic, String name, String selector) throws JMSException {
            throw refused("createSharedConsumer()", KIND);
        }

        @Override
        public MessageConsumer createSharedDurableConsumer(Topic topic, String name, String selector)
                throws JMSException {
            throw refused("createSharedDurableConsumer()", KIND);
        }

        @Override
        public void unsubscribe(String name) throws JMSException {
            throw refused("unsubscribe()", KIND);
        }
    }

    /** A TopicSession. */
    static final class OfTopics extends ClientSession {
        private static final String KIND = "TopicSession";

        OfTopics(ClientConnection connection, StoreFactory factory, int mode, boolean callers) {
            super(connection, factory, mode, callers);
        }

        @Override
        public Queue createQueue(String name) throws JMSException {
            throw refused("createQueue()", KIND);
        }

        @Override
        public TemporaryQueue createTemporaryQueue() throws JMSException {
            throw refused("createTemporaryQueue()", KIND);
        }

        @Override
        public QueueBrowser createBrowser(Queue queue) throws JMSException {
            throw refused("createBrowser()", KIND);
        }

        @Override
        public QueueBrowser createBrowser(Queue queue, String selector) throws JMSException {
            throw refused("createBrowser()", KIND);
        }
    }
}
