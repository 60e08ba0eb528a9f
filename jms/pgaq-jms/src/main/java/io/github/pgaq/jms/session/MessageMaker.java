package io.github.pgaq.jms.session;

import io.github.pgaq.jms.PgaqSession;
import jakarta.jms.BytesMessage;
import jakarta.jms.JMSException;
import jakarta.jms.MapMessage;
import jakarta.jms.Message;
import jakarta.jms.MessageListener;
import jakarta.jms.ObjectMessage;
import jakarta.jms.StreamMessage;
import jakarta.jms.TextMessage;
import java.io.Serializable;

/** The part of a session that makes messages, and the parts that are not supported. */
abstract class MessageMaker implements PgaqSession {
    /** The connection of the session. */
    abstract ClientConnection connection();

    /** Fails if the session is closed. */
    abstract void checkOpen() throws JMSException;

    @Override
    public Message createMessage() throws JMSException {
        checkOpen();
        return connection().messages().createMessage();
    }

    @Override
    public TextMessage createTextMessage() throws JMSException {
        checkOpen();
        return connection().messages().createTextMessage();
    }

    @Override
    public TextMessage createTextMessage(String text) throws JMSException {
        TextMessage message = createTextMessage();
        message.setText(text);
        return message;
    }

    @Override
    public BytesMessage createBytesMessage() throws JMSException {
        checkOpen();
        return connection().messages().createBytesMessage();
    }

    @Override
    public MapMessage createMapMessage() throws JMSException {
        checkOpen();
        return connection().messages().createMapMessage();
    }

    @Override
    public StreamMessage createStreamMessage() throws JMSException {
        checkOpen();
        return connection().messages().createStreamMessage();
    }

    @Override
    public ObjectMessage createObjectMessage() throws JMSException {
        checkOpen();
        return connection().messages().createObjectMessage();
    }

    @Override
    public ObjectMessage createObjectMessage(Serializable object) throws JMSException {
        ObjectMessage message = createObjectMessage();
        message.setObject(object);
        return message;
    }

    // The parts for application servers, which are optional

    /** Returns null: the session has no listener of its own. */
    @Override
    public MessageListener getMessageListener() throws JMSException {
        checkOpen();
        return null;
    }

    /** Accepts only null: only a ConnectionConsumer would use a listener, and these are not supported. */
    @Override
    public void setMessageListener(MessageListener listener) throws JMSException {
        checkOpen();
        if (listener == null) {
            return;
        }
        throw new JMSException("message listeners of sessions are not supported; set one on a consumer");
    }

    /** Does nothing: only a ConnectionConsumer would have given it messages. */
    @Override
    public void run() {}
}
