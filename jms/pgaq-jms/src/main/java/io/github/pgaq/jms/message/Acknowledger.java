package io.github.pgaq.jms.message;

import jakarta.jms.JMSException;

/** What a session does when a client calls {@link jakarta.jms.Message#acknowledge()}. */
@FunctionalInterface
public interface Acknowledger {

    /** Acknowledges all messages that the session of the message has delivered so far, or does nothing. */
    void acknowledge() throws JMSException;
}
