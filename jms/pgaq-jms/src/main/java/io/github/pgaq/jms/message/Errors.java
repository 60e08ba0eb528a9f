package io.github.pgaq.jms.message;

import jakarta.jms.JMSException;

/** Makes JMS exceptions with a cause. */
final class Errors {

    private Errors() {}

    /** Gives an exception its cause, also as linked exception. */
    static <E extends JMSException> E with(E exception, Exception cause) {
        exception.initCause(cause);
        exception.setLinkedException(cause);
        return exception;
    }
}
