package io.github.pgaq.jms.session;

import jakarta.jms.IllegalStateException;
import jakarta.jms.InvalidClientIDException;
import jakarta.jms.InvalidDestinationException;
import jakarta.jms.InvalidSelectorException;
import jakarta.jms.JMSException;
import jakarta.jms.JMSRuntimeException;
import jakarta.jms.JMSSecurityException;
import jakarta.jms.ResourceAllocationException;
import jakarta.jms.TransactionInProgressException;
import jakarta.jms.TransactionRolledBackException;
import java.sql.SQLException;
import java.util.function.BiFunction;

/** Makes JMS exceptions of the server's errors, and the unchecked exceptions of the simplified API of the others. */
final class Errors {
    private static final String QUEUE_FULL = "AQ053";
    private static final String UNDEFINED_OBJECT = "42704";
    private static final String UNDEFINED_TABLE = "42P01";
    private static final String WRONG_OBJECT_TYPE = "42809";
    static final String NO_PRIVILEGE = "42501";

    /** An action that calls the server. */
    interface Action<T> {
        T run() throws SQLException, JMSException;
    }

    /** An action of the interface with checked exceptions. */
    interface Checked<T> {
        T run() throws JMSException;
    }

    /** An action without a result. */
    interface CheckedVoid {
        void run() throws JMSException;
    }

    private Errors() {}

    /**
     * Makes a JMSException of an error of the server: the SQLSTATE is its error code, and the error its cause and
     * linked exception.
     *
     * @param what what failed, such as {@code could not send}
     */
    static JMSException of(String what, SQLException e) {
        String state = e.getSQLState() == null ? "" : e.getSQLState();
        BiFunction<String, String, JMSException> make = JMSException::new;
        if (state.startsWith("28") || state.equals(NO_PRIVILEGE)) {
            make = JMSSecurityException::new;
        } else if (state.equals(UNDEFINED_OBJECT) || state.equals(UNDEFINED_TABLE) || state.equals(WRONG_OBJECT_TYPE)) {
            make = InvalidDestinationException::new;
        } else if (state.startsWith("53") || state.equals(QUEUE_FULL)) {
            make = ResourceAllocationException::new;
        }
        return linked(make.apply(what + ": " + e.getMessage(), e.getSQLState()), e);
    }

    /** Makes the exception of a transaction that was rolled back. */
    static TransactionRolledBackException rolledBack(String what, SQLException e) {
        return linked(new TransactionRolledBackException(what + ": " + e.getMessage(), e.getSQLState()), e);
    }

    private static <E extends JMSException> E linked(E exception, Exception cause) {
        exception.setLinkedException(cause);
        exception.initCause(cause);
        return exception;
    }

    /** Makes the exception of a wait that an interrupt has ended, which stays set for the caller's code. */
    static JMSException interrupted(String what, InterruptedException e) {
        Thread.currentThread().interrupt();
        return linked(new JMSException(what), e);
    }

    /** Whether the error means that the connection to the server is lost. */
    static boolean isLost(SQLException e) {
        return isLost(e.getSQLState());
    }

    /** Whether an SQLSTATE, or null, means that the connection to the server is lost. */
    static boolean isLost(String state) {
        return state != null && (state.startsWith("08") || state.startsWith("57P"));
    }

    /** Runs an action of the simplified API. */
    static <T> T unchecked(Checked<T> action) {
        try {
            return action.run();
        } catch (JMSException e) {
            throw runtime(e);
        }
    }

    /** Runs an action of the simplified API. */
    static void unchecked(CheckedVoid action) {
        unchecked(() -> {
            action.run();
            return null;
        });
    }

    /** Makes the unchecked exception of the same meaning. */
    static JMSRuntimeException runtime(JMSException e) {
        String message = e.getMessage();
        String code = e.getErrorCode();
        if (e instanceof IllegalStateException) {
            return new jakarta.jms.IllegalStateRuntimeException(message, code, e);
        } else if (e instanceof InvalidClientIDException) {
            return new jakarta.jms.InvalidClientIDRuntimeException(message, code, e);
        } else if (e instanceof InvalidDestinationException) {
            return new jakarta.jms.InvalidDestinationRuntimeException(message, code, e);
        } else if (e instanceof InvalidSelectorException) {
            return new jakarta.jms.InvalidSelectorRuntimeException(message, code, e);
        } else if (e instanceof JMSSecurityException) {
            return new jakarta.jms.JMSSecurityRuntimeException(message, code, e);
        } else if (e instanceof jakarta.jms.MessageFormatException) {
            return new jakarta.jms.MessageFormatRuntimeException(message, code, e);
        } else if (e instanceof jakarta.jms.MessageNotWriteableException) {
            return new jakarta.jms.MessageNotWriteableRuntimeException(message, code, e);
        } else if (e instanceof ResourceAllocationException) {
            return new jakarta.jms.ResourceAllocationRuntimeException(message, code, e);
        } else if (e instanceof TransactionInProgressException) {
            return new jakarta.jms.TransactionInProgressRuntimeException(message, code, e);
        } else if (e instanceof TransactionRolledBackException) {
            return new jakarta.jms.TransactionRolledBackRuntimeException(message, code, e);
        }
        return new JMSRuntimeException(message, code, e);
    }
}
