package io.github.pgaq.jms.session;

import jakarta.jms.JMSConsumer;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageFormatException;
import jakarta.jms.MessageListener;

/** A consumer of a context. */
final class ContextConsumer implements JMSConsumer {
    private final MessageConsumer consumer;

    ContextConsumer(MessageConsumer consumer) {
        this.consumer = consumer;
    }

    @Override
    public String getMessageSelector() {
        return Errors.unchecked(consumer::getMessageSelector);
    }

    @Override
    public MessageListener getMessageListener() {
        return Errors.unchecked(consumer::getMessageListener);
    }

    @Override
    public void setMessageListener(MessageListener listener) {
        Errors.unchecked(() -> consumer.setMessageListener(listener));
    }

    @Override
    public Message receive() {
        return Errors.unchecked(() -> consumer.receive());
    }

    @Override
    public Message receive(long timeout) {
        return Errors.unchecked(() -> consumer.receive(timeout));
    }

    @Override
    public Message receiveNoWait() {
        return Errors.unchecked(consumer::receiveNoWait);
    }

    @Override
    public void close() {
        Errors.unchecked(consumer::close);
    }

    @Override
    public <T> T receiveBody(Class<T> type) {
        return body(type, Deadline.NEVER);
    }

    @Override
    public <T> T receiveBody(Class<T> type, long timeout) {
        return body(type, timeout <= 0 ? Deadline.NEVER : Deadline.in(timeout));
    }

    @Override
    public <T> T receiveBodyNoWait(Class<T> type) {
        return body(type, Deadline.in(0));
    }

    private <T> T body(Class<T> type, Deadline deadline) {
        return Errors.unchecked(() -> ((Consumer) consumer).receiveBody(deadline, message -> read(message, type)));
    }

    private static <T> T read(Message message, Class<T> type) throws JMSException {
        if (message instanceof jakarta.jms.StreamMessage || !message.isBodyAssignableTo(type)) {
            if (message instanceof jakarta.jms.ObjectMessage object) {
                // fails with the reason if the object cannot be read at all
                object.getObject();
            }
            throw new MessageFormatException("the body of the message is not a " + type.getName());
        }
        T body = message.getBody(type);
        if (body == null) {
            throw new MessageFormatException("the message has no body");
        }
        return body;
    }
}
