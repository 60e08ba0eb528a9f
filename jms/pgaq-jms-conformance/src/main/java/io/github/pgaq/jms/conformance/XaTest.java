package io.github.pgaq.jms.conformance;

import jakarta.jms.JMSException;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.Queue;
import jakarta.jms.TransactionInProgressException;
import jakarta.jms.TransactionInProgressRuntimeException;
import jakarta.jms.XAConnection;
import jakarta.jms.XAConnectionFactory;
import jakarta.jms.XAJMSContext;
import jakarta.jms.XASession;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import javax.transaction.xa.XAException;
import javax.transaction.xa.XAResource;
import javax.transaction.xa.Xid;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Test;

/** Distributed transactions, which are optional. */
@Spec("11.3.5")
class XaTest extends ConformanceTest {
    private record TestXid(int getFormatId, byte[] getGlobalTransactionId, byte[] getBranchQualifier) implements Xid {
        @Override
        public int getFormatId() {
            return getFormatId;
        }

        @Override
        public byte[] getGlobalTransactionId() {
            return getGlobalTransactionId;
        }

        @Override
        public byte[] getBranchQualifier() {
            return getBranchQualifier;
        }

        boolean is(Xid other) {
            return getFormatId == other.getFormatId()
                    && Arrays.equals(getGlobalTransactionId, other.getGlobalTransactionId())
                    && Arrays.equals(getBranchQualifier, other.getBranchQualifier());
        }
    }

    private static TestXid xid() {
        return new TestXid(7, unique("gtrid").getBytes(StandardCharsets.US_ASCII), new byte[] {1});
    }

    private XAConnectionFactory factory() {
        XAConnectionFactory factory = provider().xaConnectionFactory();
        Assumptions.assumeTrue(factory != null, "the provider has no distributed transactions");
        return factory;
    }

    private XASession xaSession() throws JMSException {
        XAConnection c = closeLater(factory().createXAConnection());
        c.start();
        return c.createXASession();
    }

    private static void send(XASession s, Queue queue, String text) throws JMSException {
        try (MessageProducer producer = s.getSession().createProducer(queue)) {
            producer.send(s.getSession().createTextMessage(text));
        }
    }

    /** Sends a text in a branch of its own, which is ended, and not prepared yet. */
    private static TestXid sendInBranch(XASession s, Queue queue, String text) throws Exception {
        TestXid xid = xid();
        s.getXAResource().start(xid, XAResource.TMNOFLAGS);
        send(s, queue, text);
        s.getXAResource().end(xid, XAResource.TMSUCCESS);
        return xid;
    }

    @Test
    void sentMessageComesWithTheCommit() throws Exception {
        Queue queue = queue();
        MessageConsumer consumer = session().createConsumer(queue);
        XASession s = xaSession();
        XAResource xa = s.getXAResource();
        Xid xid = sendInBranch(s, queue, "a");
        equal("prepare()", XAResource.XA_OK, xa.prepare(xid));
        nothing("the transaction is prepared, not committed", consumer);
        xa.commit(xid, false);
        equal("the message after commit()", "a", text(consumer));
    }

    @Test
    void onePhaseCommit() throws Exception {
        Queue queue = queue();
        XASession s = xaSession();
        Xid xid = sendInBranch(s, queue, "a");
        s.getXAResource().commit(xid, true);
        equal("the message after commit() in one phase", "a", text(session().createConsumer(queue)));
    }

    @Test
    void rollbackBeforePrepare() throws Exception {
        Queue queue = queue();
        XASession s = xaSession();
        Xid xid = sendInBranch(s, queue, "a");
        s.getXAResource().rollback(xid);
        send(queue, "marker");
        equal("the first message", "marker", text(session().createConsumer(queue)));
    }

    @Test
    void rollbackAfterPrepare() throws Exception {
        Queue queue = queue();
        XASession s = xaSession();
        Xid xid = sendInBranch(s, queue, "a");
        s.getXAResource().prepare(xid);
        s.getXAResource().rollback(xid);
        send(queue, "marker");
        equal("the first message", "marker", text(session().createConsumer(queue)));
    }

    @Test
    void receivedMessageIsGoneWithTheCommit() throws Exception {
        Queue queue = queue();
        send(queue, "a");
        XASession s = xaSession();
        Xid xid = xid();
        s.getXAResource().start(xid, XAResource.TMNOFLAGS);
        try (MessageConsumer consumer = s.getSession().createConsumer(queue)) {
            equal("the message", "a", text(consumer));
        }
        s.getXAResource().end(xid, XAResource.TMSUCCESS);
        s.getXAResource().prepare(xid);
        s.getXAResource().commit(xid, false);
        send(queue, "marker");
        equal("the first message that is left", "marker", text(session().createConsumer(queue)));
    }

    @Test
    void receivedMessageComesBackWithTheRollback() throws Exception {
        Queue queue = queue();
        send(queue, "a");
        XASession s = xaSession();
        Xid xid = xid();
        s.getXAResource().start(xid, XAResource.TMNOFLAGS);
        try (MessageConsumer consumer = s.getSession().createConsumer(queue)) {
            text(consumer);
        }
        s.getXAResource().end(xid, XAResource.TMSUCCESS);
        s.getXAResource().prepare(xid);
        s.getXAResource().rollback(xid);
        jakarta.jms.Message message = receive(session().createConsumer(queue));
        yes("JMSRedelivered after rollback()", message.getJMSRedelivered());
    }

    @Test
    void preparedTransactionIsFoundByRecover() throws Exception {
        Queue queue = queue();
        XASession s = xaSession();
        TestXid xid = sendInBranch(s, queue, "a");
        s.getXAResource().prepare(xid);
        XAResource fresh = xaSession().getXAResource();
        Xid[] found = fresh.recover(XAResource.TMSTARTRSCAN | XAResource.TMENDRSCAN);
        yes(
                "recover() of a fresh connection must return the prepared transaction",
                Arrays.stream(found).anyMatch(xid::is));
        fresh.commit(xid, false);
        equal("the message committed by a fresh connection", "a", text(session().createConsumer(queue)));
    }

    @Test
    void preparedTransactionOutlivesItsConnection() throws Exception {
        Queue queue = queue();
        XAConnection c = closeLater(factory().createXAConnection());
        XASession s = c.createXASession();
        TestXid xid = sendInBranch(s, queue, "a");
        s.getXAResource().prepare(xid);
        c.close();
        xaSession().getXAResource().commit(xid, false);
        equal(
                "the message committed after its connection was closed",
                "a",
                text(session().createConsumer(queue)));
    }

    @Test
    void oneSessionHasManyTransactions() throws Exception {
        Queue queue = queue();
        XASession s = xaSession();
        for (int i = 0; i < 3; i++) {
            Xid xid = sendInBranch(s, queue, Integer.toString(i));
            s.getXAResource().prepare(xid);
            s.getXAResource().commit(xid, false);
        }
        equal(
                "the messages of three transactions",
                java.util.List.of("0", "1", "2"),
                texts(session().createConsumer(queue), 3));
    }

    @Test
    void unknownTransactionIsRefused() throws Exception {
        XAResource xa = xaSession().getXAResource();
        fails(XAException.class, "commit() of an unknown transaction", () -> xa.commit(xid(), false));
    }

    @Test
    void resourcesOfOneSessionAreTheSame() throws Exception {
        XASession s = xaSession();
        yes("isSameRM() of the resource itself", s.getXAResource().isSameRM(s.getXAResource()));
    }

    @Test
    @Spec({"6.2.7", "api:XASession"})
    void commitOfTheSessionIsRefused() throws JMSException {
        XASession s = xaSession();
        fails(TransactionInProgressException.class, "commit() of an XASession", s::commit);
    }

    @Test
    @Spec({"6.2.7", "api:XASession"})
    void rollbackOfTheSessionIsRefused() throws JMSException {
        XASession s = xaSession();
        fails(TransactionInProgressException.class, "rollback() of an XASession", s::rollback);
    }

    @Test
    @Spec("api:XASession")
    void sessionIsTransacted() throws JMSException {
        yes("getTransacted() of an XASession", xaSession().getTransacted());
    }

    @Test
    @Spec("11.3.2")
    void connectionMakesOrdinarySessionsToo() throws JMSException {
        Queue queue = queue();
        XAConnection c = closeLater(factory().createXAConnection());
        c.start();
        jakarta.jms.Session s = c.createSession(false, AUTO);
        s.createProducer(queue).send(s.createTextMessage("a"));
        equal("the message of an ordinary session", "a", text(session().createConsumer(queue)));
    }

    @Test
    @Spec("11.3.1")
    void factoryTakesUserAndPassword() throws JMSException {
        XAConnection c = closeLater(
                factory().createXAConnection(provider().user(), provider().password()));
        works("createXASession()", c::createXASession);
    }

    @Test
    @Spec("11.3.4")
    void contextCommits() throws Exception {
        Queue queue = queue();
        XAJMSContext context = closeLater(factory().createXAContext());
        Xid xid = xid();
        context.getXAResource().start(xid, XAResource.TMNOFLAGS);
        context.getContext().createProducer().send(queue, "a");
        context.getXAResource().end(xid, XAResource.TMSUCCESS);
        context.getXAResource().prepare(xid);
        context.getXAResource().commit(xid, false);
        equal("the message of the transaction", "a", text(session().createConsumer(queue)));
    }

    @Test
    @Spec({"11.3.4", "api:XAJMSContext"})
    void commitAndRollbackOfTheContextAreRefused() {
        XAJMSContext context = closeLater(factory().createXAContext());
        fails(TransactionInProgressRuntimeException.class, "commit() of an XAJMSContext", context::commit);
        fails(TransactionInProgressRuntimeException.class, "rollback() of an XAJMSContext", context::rollback);
    }

    @Test
    void failedEndRollsBack() throws Exception {
        Queue queue = queue();
        XASession s = xaSession();
        Xid xid = xid();
        s.getXAResource().start(xid, XAResource.TMNOFLAGS);
        send(s, queue, "a");
        s.getXAResource().end(xid, XAResource.TMFAIL);
        try {
            s.getXAResource().rollback(xid);
        } catch (XAException e) {
            yes(
                    "rollback() after a failed end may only report a rollback",
                    e.errorCode >= XAException.XA_RBBASE && e.errorCode <= XAException.XA_RBEND);
        }
        send(queue, "marker");
        equal("the first message", "marker", text(session().createConsumer(queue)));
    }
}
