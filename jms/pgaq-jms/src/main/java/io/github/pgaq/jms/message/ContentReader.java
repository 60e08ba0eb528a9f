package io.github.pgaq.jms.message;

import jakarta.jms.JMSException;
import java.io.OutputStream;

/** Reads the body of a large message from the server. */
@FunctionalInterface
public interface ContentReader {

    /** Reads the body; nothing if it is gone. */
    void read(OutputStream to) throws JMSException;
}
