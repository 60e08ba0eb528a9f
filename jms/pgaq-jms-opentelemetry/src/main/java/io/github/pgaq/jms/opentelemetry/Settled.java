package io.github.pgaq.jms.opentelemetry;

import io.opentelemetry.api.trace.SpanContext;
import jakarta.jms.Session;
import java.util.ArrayList;
import java.util.List;

/** The creation of the messages that a session has received and not settled yet. */
final class Settled {
    private static final int LIMIT = 128;

    private final boolean acknowledgesItself;
    private final List<SpanContext> creations = new ArrayList<>();
    private int messages;

    /** mode: of the session; in some, a message is settled when receive() or the listener returns. */
    Settled(int mode) {
        acknowledgesItself = mode == Session.AUTO_ACKNOWLEDGE || mode == Session.DUPS_OK_ACKNOWLEDGE;
    }

    synchronized void add(SpanContext creation) {
        messages++;
        if (creation.isValid() && creations.size() < LIMIT) {
            creations.add(creation);
        }
    }

    /** receive() or the listener returns. */
    synchronized void returns() {
        if (acknowledgesItself) {
            take(new ArrayList<>());
        }
    }

    /** How many there are; then there are none. */
    synchronized int take(List<SpanContext> into) {
        into.addAll(creations);
        creations.clear();
        int taken = messages;
        messages = 0;
        return taken;
    }
}
