package io.github.pgaq.spring;

import io.github.pgaq.jms.PgaqConnection;
import io.github.pgaq.jms.PgaqSession;
import jakarta.jms.IllegalStateException;
import jakarta.jms.JMSException;
import jakarta.jms.MessageConsumer;
import jakarta.jms.Session;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.Arrays;
import java.util.Objects;
import java.util.function.Predicate;
import javax.sql.DataSource;
import org.springframework.jdbc.datasource.ConnectionHolder;
import org.springframework.transaction.support.TransactionSynchronizationManager;
import org.springframework.util.ClassUtils;

/**
 * A connection in a transaction of Spring, its sessions and their consumers. Spring alone ends the transaction:
 * sessions are not transacted themselves, and its timeout limits waits for messages. Requests are refused: they would
 * wait for a reply to what is not sent yet.
 *
 * @param target the connection, session or consumer
 * @param dataSource whose transaction it is
 */
record JoinedConnection(Object target, DataSource dataSource) implements InvocationHandler {

    private static final long LONGEST_MS = 1L << 40;

    static PgaqConnection of(PgaqConnection connection, DataSource dataSource) {
        return (PgaqConnection) new JoinedConnection(connection, dataSource).proxy();
    }

    private Object proxy() {
        return Proxy.newProxyInstance(
                JoinedConnection.class.getClassLoader(), ClassUtils.getAllInterfaces(target), this);
    }

    @Override
    public Object invoke(Object self, Method method, Object[] arguments) throws Throwable {
        String name = method.getName();
        if (name.equals("equals")) {
            return self == arguments[0];
        }
        if (name.startsWith("createTemporary")) {
            throw new IllegalStateException("cannot wait for a reply in a transaction of the DataSource: the request is"
                    + " not sent before the commit; call sendAndReceive() outside of the transaction, or in a method"
                    + " with Propagation.NOT_SUPPORTED");
        }
        if (target instanceof MessageConsumer consumer && name.equals("receive")) {
            long timeout = arguments == null ? 0 : (long) arguments[0];
            return receive(timeout, ms -> ms < 0 ? consumer.receiveNoWait() : consumer.receive(ms), Objects::nonNull);
        }
        if (target instanceof PgaqSession session && name.equals("bulkReceive")) {
            MessageConsumer consumer = (MessageConsumer) target(arguments[0]);
            int max = (int) arguments[1];
            return receive(
                    (long) arguments[2],
                    ms -> ms < 0 ? session.bulkReceiveNoWait(consumer, max) : session.bulkReceive(consumer, max, ms),
                    messages -> !messages.isEmpty());
        }
        try {
            Object result = target instanceof PgaqConnection connection
                    ? switch (name) {
                        case "createSession" -> connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
                        case "createQueueSession" -> connection.createQueueSession(false, Session.AUTO_ACKNOWLEDGE);
                        case "createTopicSession" -> connection.createTopicSession(false, Session.AUTO_ACKNOWLEDGE);
                        default -> method.invoke(target, arguments);
                    }
                    : method.invoke(target, targets(arguments));
            boolean joined = result instanceof PgaqSession || result instanceof MessageConsumer;
            return joined ? new JoinedConnection(result, dataSource).proxy() : result;
        } catch (InvocationTargetException e) {
            throw e.getCause();
        }
    }

    private static Object[] targets(Object[] arguments) {
        return arguments == null
                ? null
                : Arrays.stream(arguments).map(JoinedConnection::target).toArray();
    }

    /** The provider knows its own consumers. */
    private static Object target(Object each) {
        return each != null
                        && Proxy.isProxyClass(each.getClass())
                        && Proxy.getInvocationHandler(each) instanceof JoinedConnection joined
                ? joined.target
                : each;
    }

    /** A call that waits for messages: 0 means without limit, and less than 0 not at all. */
    private interface Waiting<T> {
        T receive(long milliseconds) throws JMSException;
    }

    /** Fails with TransactionTimedOutException when the time of the transaction is over. */
    private <T> T receive(long timeout, Waiting<T> call, Predicate<T> isDone) throws JMSException {
        long end = System.nanoTime() + Math.min(timeout, LONGEST_MS) * 1_000_000;
        while (TransactionSynchronizationManager.getResource(dataSource) instanceof ConnectionHolder holder
                && holder.hasTimeout()) {
            long left = holder.getTimeToLiveInMillis();
            long wanted = timeout <= 0 ? Long.MAX_VALUE : (end - System.nanoTime()) / 1_000_000;
            if (wanted <= left) {
                return call.receive(wanted <= 0 ? -1 : wanted);
            }
            T result = call.receive(left);
            if (isDone.test(result)) {
                return result;
            }
        }
        return call.receive(Math.max(timeout, 0));
    }
}
