package io.github.pgaq.jms.message;

import jakarta.jms.JMSException;

/** The body of a large message that was received: first at the server only, then read from there, or gone. */
final class RemoteBody {

    private final long length;
    private boolean fetched;
    private boolean gone;

    RemoteBody(long length) {
        this.length = length;
    }

    /** Reads the body from the server; null: it was read before. */
    Spool fetch(ContentReader reader) throws JMSException {
        if (fetched) {
            return null;
        }
        Spool spool = new Spool();
        reader.read(spool);
        fetched = true;
        gone = spool.length() != length;
        return spool;
    }

    /** Whether the body is in the message. */
    boolean isThere() {
        return fetched && !gone;
    }

    void checkThere() throws JMSException {
        if (gone) {
            throw new JMSException("the body of the message is no longer on the server");
        }
        if (!fetched) {
            throw new JMSException("the body of the message was not read from the server");
        }
    }
}
