import io.github.pgaq.jms.PgaqConnectionFactory;
import io.github.pgaq.jms.PgaqXAConnectionFactory;
import jakarta.jms.Connection;
import jakarta.jms.JMSConsumer;
import jakarta.jms.JMSContext;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.Queue;
import jakarta.jms.Session;
import jakarta.jms.XAJMSContext;
import java.nio.charset.StandardCharsets;
import javax.transaction.xa.XAException;
import javax.transaction.xa.XAResource;
import javax.transaction.xa.Xid;

/**
 * Connects to the server of a URL. "pass URL" sends a message and receives it, says so, and ends with its input; "xa
 * URL" does it in a distributed transaction, and once more without one; "hold URL" receives a message and leases
 * others ahead, waits for its input, and says what it can still do.
 */
public final class JmsConnection {
    private record Id(int getFormatId, byte[] getGlobalTransactionId, byte[] getBranchQualifier) implements Xid {}

    private JmsConnection() {}

    public static void main(String[] arguments) throws Exception {
        if (arguments[0].equals("xa")) {
            try (XAJMSContext context = new PgaqXAConnectionFactory(arguments[1]).createXAContext()) {
                branch(context);
                pass(context);
            }
            return;
        }
        if (arguments[0].equals("hold")) {
            hold(arguments[1]);
            return;
        }
        try (JMSContext context = new PgaqConnectionFactory(arguments[1]).createContext()) {
            pass(context);
            System.in.read();
        }
    }

    private static void pass(JMSContext context) {
        Queue queue = context.createQueue("q");
        try (JMSConsumer consumer = context.createConsumer(queue)) {
            context.createProducer().send(queue, "hello");
            System.out.println("received: " + consumer.receiveBody(String.class, 60_000));
        }
    }

    private static void hold(String url) throws Exception {
        try (Connection connection = new PgaqConnectionFactory(url).createConnection();
                Session session = connection.createSession(Session.CLIENT_ACKNOWLEDGE);
                Session transacted = connection.createSession(Session.SESSION_TRANSACTED)) {
            connection.start();
            Queue queue = session.createQueue("q");
            MessageConsumer consumer = session.createConsumer(queue);
            Message first = consumer.receive(60_000);
            // the more it uses, the more it leases ahead
            Message second = consumer.receive(60_000);
            transacted.createProducer(queue).send(transacted.createTextMessage("sent by the stopped client"));
            System.out.println("holds: " + first.getBody(String.class) + " " + second.getBody(String.class));
            System.in.read();
            attempt("receive", () -> consumer.receive(60_000));
            attempt("acknowledge", first::acknowledge);
            attempt("commit", transacted::commit);
            attempt("send", () -> session.createProducer(queue).send(session.createTextMessage("sent too late")));
        }
    }

    private interface Action {
        void run() throws JMSException;
    }

    private static void attempt(String what, Action action) {
        try {
            action.run();
            System.out.println(what + ": succeeded");
        } catch (JMSException e) {
            System.out.println(what + ": failed");
        }
    }

    private static void branch(XAJMSContext context) throws XAException {
        Xid xid = new Id(7, "one".getBytes(StandardCharsets.US_ASCII), new byte[] {1});
        XAResource resource = context.getXAResource();
        resource.start(xid, XAResource.TMNOFLAGS);
        context.createProducer().send(context.createQueue("q"), "in the branch");
        resource.end(xid, XAResource.TMSUCCESS);
        try {
            resource.prepare(xid);
        } catch (XAException e) {
            System.out.println(e.errorCode + ": " + e.getMessage());
        }
    }
}
