package io.github.pgaq.jms.message;

import jakarta.jms.JMSException;
import java.io.OutputStream;
import java.util.UUID;

/** Reads the bodies of large messages from the server. */
@FunctionalInterface
public interface ContentReader {

    /** Reads a content; nothing if it is gone. */
    void read(UUID content, OutputStream to) throws JMSException;
}
