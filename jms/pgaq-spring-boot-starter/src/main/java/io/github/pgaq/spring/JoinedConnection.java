package io.github.pgaq.spring;

import io.github.pgaq.jms.PgaqConnection;
import io.github.pgaq.jms.PgaqSession;
import jakarta.jms.IllegalStateException;
import jakarta.jms.Session;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;

/**
 * A connection in a transaction of Spring, which alone ends the transaction: sessions are not transacted themselves.
 * Refuses requests, which would wait for a reply to what is not sent yet.
 */
final class JoinedConnection {
    private JoinedConnection() {}

    static PgaqConnection of(PgaqConnection connection) {
        return proxy(PgaqConnection.class, connection);
    }

    private static <T> T proxy(Class<T> type, T target) {
        return type.cast(Proxy.newProxyInstance(
                type.getClassLoader(),
                new Class<?>[] {type},
                (self, method, arguments) -> method.getName().equals("equals")
                        ? (Object) (self == arguments[0])
                        : call(target, method, arguments)));
    }

    private static Object call(Object target, Method method, Object[] arguments) throws Throwable {
        if (method.getName().startsWith("createTemporary")) {
            throw new IllegalStateException("cannot wait for a reply in a transaction of the DataSource: the request is"
                    + " not sent before the commit; call sendAndReceive() outside of the transaction, or in a method"
                    + " with Propagation.NOT_SUPPORTED");
        }
        try {
            Object result = target instanceof PgaqConnection connection
                    ? switch (method.getName()) {
                        case "createSession" -> connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
                        case "createQueueSession" -> connection.createQueueSession(false, Session.AUTO_ACKNOWLEDGE);
                        case "createTopicSession" -> connection.createTopicSession(false, Session.AUTO_ACKNOWLEDGE);
                        default -> method.invoke(target, arguments);
                    }
                    : method.invoke(target, arguments);
            return result instanceof PgaqSession session ? proxy(PgaqSession.class, session) : result;
        } catch (InvocationTargetException e) {
            throw e.getCause();
        }
    }
}
