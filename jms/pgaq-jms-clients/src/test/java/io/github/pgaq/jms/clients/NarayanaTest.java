package io.github.pgaq.jms.clients;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import com.arjuna.ats.arjuna.common.CoreEnvironmentBean;
import com.arjuna.ats.arjuna.common.ObjectStoreEnvironmentBean;
import com.arjuna.ats.arjuna.common.RecoveryEnvironmentBean;
import com.arjuna.ats.arjuna.recovery.RecoveryManager;
import com.arjuna.ats.internal.arjuna.recovery.AtomicActionRecoveryModule;
import com.arjuna.ats.internal.jta.recovery.arjunacore.XARecoveryModule;
import com.arjuna.ats.jta.common.JTAEnvironmentBean;
import com.arjuna.ats.jta.recovery.XAResourceRecoveryHelper;
import com.arjuna.common.internal.util.propertyservice.BeanPopulator;
import io.github.pgaq.jms.PgaqXAConnectionFactory;
import io.github.pgaq.jms.ServerTest;
import jakarta.jms.MessageConsumer;
import jakarta.jms.XAConnection;
import jakarta.jms.XASession;
import jakarta.transaction.RollbackException;
import jakarta.transaction.TransactionManager;
import java.nio.file.Path;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.List;
import javax.transaction.xa.XAException;
import javax.transaction.xa.XAResource;
import javax.transaction.xa.Xid;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.postgresql.xa.PGXADataSource;

/** Narayana as transaction manager: a queue of one database and a table of another. */
@Timeout(60)
class NarayanaTest extends ServerTest {
    private static final String URL = url();
    private static final String NAME = newName("narayana");
    private static final String OTHER = URL.replaceFirst("/[^/?]+(\\?|$)", "/" + NAME + "$1");

    @TempDir
    private static Path directory;

    private static TransactionManager manager;
    private static RecoveryManager recovery;
    private XAConnection connection;
    private XASession session;
    private javax.sql.XAConnection rows;

    @BeforeAll
    static void prepareManager() throws Exception {
        execute(URL, "SELECT aq.create_queue('" + NAME + "', 'aq.jms_message', retry_delay => '0')");
        execute(URL, "CREATE DATABASE " + NAME);
        execute(OTHER, "CREATE TABLE rows (text text)");

        BeanPopulator.getDefaultInstance(CoreEnvironmentBean.class).setNodeIdentifier("pgaq");
        for (String store : new String[] {null, "communicationStore", "stateStore"}) {
            BeanPopulator.getNamedInstance(ObjectStoreEnvironmentBean.class, store)
                    .setObjectStoreDir(directory.toString());
        }
        BeanPopulator.getDefaultInstance(JTAEnvironmentBean.class).setXaRecoveryNodes(List.of("pgaq"));
        BeanPopulator.getDefaultInstance(JTAEnvironmentBean.class).setOrphanSafetyInterval(1);
        RecoveryEnvironmentBean bean = BeanPopulator.getDefaultInstance(RecoveryEnvironmentBean.class);
        bean.setRecoveryBackoffPeriod(1);
        bean.setRecoveryListener(false);
        bean.setRecoveryModuleClassNames(
                List.of(AtomicActionRecoveryModule.class.getName(), XARecoveryModule.class.getName()));
        recovery = RecoveryManager.manager(RecoveryManager.DIRECT_MANAGEMENT);
        recovery.initialize();
        manager = com.arjuna.ats.jta.TransactionManager.transactionManager();
    }

    @AfterAll
    static void drop() throws Exception {
        recovery.terminate();
        execute(URL, "SELECT aq.drop_queue('" + NAME + "', force => true)");
        execute(URL, "DROP DATABASE " + NAME);
    }

    @BeforeEach
    void open() throws Exception {
        execute(OTHER, "SET lock_timeout = '10s'; TRUNCATE rows");
        execute(URL, "SELECT aq.purge_queue('" + NAME + "')");
        connection = new PgaqXAConnectionFactory(URL).createXAConnection();
        connection.start();
        session = connection.createXASession();
        PGXADataSource source = new PGXADataSource();
        source.setUrl(OTHER);
        rows = source.getXAConnection();
    }

    @AfterEach
    void close() throws Exception {
        connection.close();
        rows.close();
    }

    private static void execute(String url, String sql) throws SQLException {
        try (Connection jdbc = DriverManager.getConnection(url);
                Statement statement = jdbc.createStatement()) {
            statement.execute(sql);
        }
    }

    private static int count(String url, String from) throws SQLException {
        try (Connection jdbc = DriverManager.getConnection(url);
                Statement statement = jdbc.createStatement();
                ResultSet row = statement.executeQuery("SELECT count(*) FROM " + from)) {
            row.next();
            return row.getInt(1);
        }
    }

    private static int messages() throws SQLException {
        return count(URL, "aq.browse('" + NAME + "', NULL::aq.jms_message, max_messages => 100)");
    }

    private static int rows() throws SQLException {
        return count(OTHER, "rows");
    }

    private static int prepared() throws SQLException {
        return count(URL, "pg_prepared_xacts WHERE database IN (current_database(), '" + NAME + "')");
    }

    private void begin(XAResource messages, XAResource table) throws Exception {
        manager.begin();
        manager.getTransaction().enlistResource(messages);
        manager.getTransaction().enlistResource(table);
    }

    private void send(String text) throws Exception {
        session.createProducer(session.createQueue(NAME)).send(session.createTextMessage(text));
    }

    @Test
    void sendAndInsert() throws Exception {
        Connection jdbc = rows.getConnection();
        for (boolean commit : new boolean[] {false, true}) {
            begin(session.getXAResource(), rows.getXAResource());
            send("a");
            try (Statement statement = jdbc.createStatement()) {
                statement.execute("INSERT INTO rows VALUES ('a')");
            }
            if (commit) {
                manager.commit();
            } else {
                manager.rollback();
            }
            assertEquals(commit ? 1 : 0, messages());
            assertEquals(commit ? 1 : 0, rows());
        }
        assertEquals(0, prepared());
    }

    @Test
    void receiveAndInsert() throws Exception {
        send("a"); // without a transaction: at once
        Connection jdbc = rows.getConnection();
        try (MessageConsumer consumer = session.createConsumer(session.createQueue(NAME))) {
            for (boolean commit : new boolean[] {false, true}) {
                begin(session.getXAResource(), rows.getXAResource());
                String text = consumer.receive(10_000).getBody(String.class);
                try (Statement statement = jdbc.createStatement()) {
                    statement.execute("INSERT INTO rows VALUES ('" + text + "')");
                }
                if (commit) {
                    manager.commit();
                } else {
                    manager.rollback();
                }
            }
        }
        assertEquals(0, messages());
        assertEquals(1, rows());
    }

    /** The table refuses to prepare: the message is rolled back too. */
    @Test
    void theOtherResourceRefuses() throws Exception {
        execute(OTHER, "CREATE TABLE IF NOT EXISTS once (a int UNIQUE DEFERRABLE INITIALLY DEFERRED)");
        Connection jdbc = rows.getConnection();
        begin(session.getXAResource(), rows.getXAResource());
        send("a");
        try (Statement statement = jdbc.createStatement()) {
            statement.execute("INSERT INTO once VALUES (1), (1)");
        }
        assertThrows(RollbackException.class, manager::commit);
        assertEquals(0, messages());
        assertEquals(0, prepared());
    }

    /** A resource whose connection is lost between prepare and commit. It cannot be serialized, as the provider's. */
    private record NotCommitted(XAResource resource) implements XAResource {
        @Override
        public void commit(Xid xid, boolean onePhase) throws XAException {
            throw new XAException(XAException.XAER_RMFAIL);
        }

        @Override
        public void start(Xid xid, int flags) throws XAException {
            resource.start(xid, flags);
        }

        @Override
        public void end(Xid xid, int flags) throws XAException {
            resource.end(xid, flags);
        }

        @Override
        public int prepare(Xid xid) throws XAException {
            return resource.prepare(xid);
        }

        @Override
        public void rollback(Xid xid) throws XAException {
            resource.rollback(xid);
        }

        @Override
        public void forget(Xid xid) throws XAException {
            resource.forget(xid);
        }

        @Override
        public Xid[] recover(int flag) throws XAException {
            return resource.recover(flag);
        }

        @Override
        public boolean isSameRM(XAResource other) {
            return other == this;
        }

        @Override
        public int getTransactionTimeout() {
            return 0;
        }

        @Override
        public boolean setTransactionTimeout(int seconds) {
            return false;
        }
    }

    /** The connection is lost between prepare and commit: the recovery commits on a fresh connection. */
    @Test
    void recovery() throws Exception {
        XAResource failing = new NotCommitted(session.getXAResource());
        Connection jdbc = rows.getConnection();
        begin(failing, rows.getXAResource());
        send("a");
        try (Statement statement = jdbc.createStatement()) {
            statement.execute("INSERT INTO rows VALUES ('a')");
        }
        manager.commit();
        assertEquals(1, rows());
        assertEquals(0, messages());
        assertEquals(1, prepared());
        connection.close();

        try (XAConnection fresh = new PgaqXAConnectionFactory(URL).createXAConnection()) {
            XAResource resource = fresh.createXASession().getXAResource();
            XARecoveryModule module = XARecoveryModule.getRegisteredXARecoveryModule();
            module.addXAResourceRecoveryHelper(new XAResourceRecoveryHelper() {
                @Override
                public boolean initialise(String parameters) {
                    return true;
                }

                @Override
                public XAResource[] getXAResources() {
                    return new XAResource[] {resource};
                }
            });
            for (int i = 0; i < 5 && messages() == 0; i++) {
                recovery.scan();
            }
            assertEquals(1, messages());
            assertEquals(0, prepared());
        }
    }
}
