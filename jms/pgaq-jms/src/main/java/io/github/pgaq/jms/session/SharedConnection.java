package io.github.pgaq.jms.session;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.sql.Connection;
import java.sql.SQLException;

/** The JDBC connection of a session, as the client gets it: the session alone ends its transactions and closes it. */
final class SharedConnection {
    private static final String INVALID_TRANSACTION_STATE = "25000";

    private final Connection connection;
    private final Connection proxy;

    SharedConnection(Connection connection) {
        this.connection = connection;
        this.proxy = (Connection) Proxy.newProxyInstance(
                SharedConnection.class.getClassLoader(),
                new Class<?>[] {Connection.class},
                (self, method, arguments) -> call(self, method, arguments));
    }

    /** Whether it stands for this connection. */
    boolean isOf(Connection other) {
        return connection == other;
    }

    /** Returns the connection to give to the client. */
    Connection proxy() {
        return proxy;
    }

    private Object call(Object self, Method method, Object[] arguments) throws Throwable {
        switch (method.getName()) {
            case "commit", "close", "abort", "setAutoCommit":
                throw refused(method.getName());
            case "rollback":
                if (arguments == null) {
                    throw refused("rollback");
                }
                break;
            case "equals":
                return self == arguments[0];
            case "hashCode":
                return System.identityHashCode(self);
            default:
                break;
        }
        try {
            return method.invoke(connection, arguments);
        } catch (InvocationTargetException e) {
            throw e.getCause();
        }
    }

    private static SQLException refused(String method) {
        String instead = switch (method) {
            case "commit", "rollback" -> "call " + method + "() of the session, which ends the transaction";
            case "setAutoCommit" -> "the session begins and ends the transactions";
            default -> "it is closed with the session";
        };
        return new SQLException(
                method + "() is not allowed on the JDBC connection of a session: " + instead,
                INVALID_TRANSACTION_STATE);
    }
}
