package io.github.pgaq.jms.session;

import jakarta.jms.IllegalStateException;

/** Which callback of the client the calling thread is in, for the calls that are forbidden there. */
final class Callbacks {
    private static final ThreadLocal<ClientSession> LISTENER = new ThreadLocal<>();
    private static final ThreadLocal<ClientSession> COMPLETION = new ThreadLocal<>();
    private static final ThreadLocal<Object> PRODUCER = new ThreadLocal<>();

    private Callbacks() {}

    /** Runs a message listener of the session. */
    static void inListener(ClientSession session, Runnable callback) {
        LISTENER.set(session);
        try {
            callback.run();
        } finally {
            LISTENER.remove();
        }
    }

    /** Runs a completion listener of a send by the producer of the session. */
    static void inCompletion(ClientSession session, Object producer, Runnable callback) {
        COMPLETION.set(session);
        PRODUCER.set(producer);
        try {
            callback.run();
        } finally {
            COMPLETION.remove();
            PRODUCER.remove();
        }
    }

    /** Fails in a message listener of the session. */
    static void refuseListener(ClientSession session, String method) throws IllegalStateException {
        if (LISTENER.get() == session) {
            throw new IllegalStateException("a message listener must not call " + method + " of its own session");
        }
    }

    /** Fails in a message listener of the connection. */
    static void refuseListener(ClientConnection connection, String method) throws IllegalStateException {
        if (LISTENER.get() != null && LISTENER.get().connection() == connection) {
            throw new IllegalStateException("a message listener must not call " + method + " of its own connection");
        }
    }

    /** Fails in a completion listener of the session. */
    static void refuseCompletion(ClientSession session, String method) throws IllegalStateException {
        if (COMPLETION.get() == session) {
            throw new IllegalStateException("a completion listener must not call " + method + " of its own session");
        }
    }

    /** Fails in a completion listener of the connection. */
    static void refuseCompletion(ClientConnection connection, String method) throws IllegalStateException {
        if (COMPLETION.get() != null && COMPLETION.get().connection() == connection) {
            throw new IllegalStateException("a completion listener must not call " + method + " of its own connection");
        }
    }

    /** Fails in a completion listener of the producer. */
    static void refuseCompletionOf(Object producer) throws IllegalStateException {
        if (PRODUCER.get() == producer) {
            throw new IllegalStateException("a completion listener must not close its own producer");
        }
    }

    /** Whether the thread runs a completion listener of the session. */
    static boolean inCompletion(ClientSession session) {
        return COMPLETION.get() == session;
    }
}
