package io.github.pgaq.spring;

import static org.junit.jupiter.api.Assertions.assertDoesNotThrow;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.pgaq.jms.PgaqConnection;
import io.github.pgaq.jms.PgaqConnectionFactory;
import io.github.pgaq.jms.PgaqSession;
import io.github.pgaq.jms.ServerTest;
import jakarta.jms.Connection;
import jakarta.jms.ConnectionFactory;
import jakarta.jms.JMSException;
import jakarta.jms.MessageConsumer;
import jakarta.jms.QueueSession;
import jakarta.jms.Session;
import jakarta.jms.TopicSession;
import java.sql.SQLException;
import java.util.HashSet;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import javax.sql.DataSource;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.health.contributor.HealthIndicator;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.jdbc.datasource.TransactionAwareDataSourceProxy;
import org.springframework.jms.IllegalStateException;
import org.springframework.jms.config.JmsListenerContainerFactory;
import org.springframework.jms.config.JmsListenerEndpointRegistry;
import org.springframework.jms.config.SimpleJmsListenerEndpoint;
import org.springframework.jms.core.JmsTemplate;
import org.springframework.jms.core.SessionCallback;
import org.springframework.jms.listener.DefaultMessageListenerContainer;
import org.springframework.transaction.PlatformTransactionManager;
import org.springframework.transaction.TransactionStatus;
import org.springframework.transaction.TransactionTimedOutException;
import org.springframework.transaction.support.TransactionSynchronization;
import org.springframework.transaction.support.TransactionSynchronizationManager;
import org.springframework.transaction.support.TransactionTemplate;
import org.springframework.util.backoff.FixedBackOff;

/** An application that uses the starter. */
@Timeout(60)
class StarterTest extends ServerTest {

    private static final int LONG = 20;

    private ConfigurableApplicationContext application;
    private JmsTemplate jms;
    private JdbcTemplate jdbc;
    private TransactionTemplate transaction;

    @BeforeEach
    void start() throws SQLException {
        application = TestApplication.context();
        jms = application.getBean(JmsTemplate.class);
        jdbc = application.getBean(JdbcTemplate.class);
        transaction = new TransactionTemplate(application.getBean(PlatformTransactionManager.class));
    }

    private String property(String name) {
        return application.getEnvironment().getProperty(name);
    }

    @Test
    void templateAndListenerWork() throws Exception {
        jms.convertAndSend(property("test.queue"), "hello");
        String received = TestApplication.RECEIVED.poll(LONG, TimeUnit.SECONDS);
        while (received != null && !received.equals("hello")) {
            received = TestApplication.RECEIVED.poll(LONG, TimeUnit.SECONDS);
        }
        assertEquals("hello", received);
    }

    @Test
    void sendsAndListenersAreObserved() throws Exception {
        jms.convertAndSend(property("test.queue"), "observed");
        Set<String> missing = new HashSet<>(Set.of("jms.message.publish", "jms.message.process"));
        while (!missing.isEmpty()) {
            String next = TestApplication.OBSERVED.poll(LONG, TimeUnit.SECONDS);
            assertNotNull(next, missing::toString);
            missing.remove(next);
        }
    }

    @Test
    void aListenersRowsCommitWithItsMessage() throws Exception {
        jms.convertAndSend(property("test.transaction"), "work");
        // the row of the first attempt was rolled back
        awaitValue("work 2", "SELECT body || ' ' || attempt FROM " + property("test.table"));
        awaitValue(
                "0",
                "SELECT count(*) FROM aq.messages WHERE queue_name LIKE '%" + property("test.transaction")
                        + "' AND state IN ('READY', 'LOCKED')");
    }

    @Test
    void listenerContainersKeepTheirOwnConnections() {
        assertInstanceOf(
                PgaqConnectionFactory.class,
                ((DefaultMessageListenerContainer) application
                                .getBean(JmsListenerEndpointRegistry.class)
                                .getListenerContainer("plain"))
                        .getConnectionFactory());
    }

    @Test
    void aListenerThatFailsDoesNotCloseTheConnectionOfTemplates() throws Exception {
        String queue = newQueue();
        SimpleJmsListenerEndpoint endpoint = new SimpleJmsListenerEndpoint();
        endpoint.setDestination(newName("missing"));
        endpoint.setMessageListener(message -> {});
        DefaultMessageListenerContainer container = (DefaultMessageListenerContainer) application
                .getBean("jmsListenerContainerFactory", JmsListenerContainerFactory.class)
                .createListenerContainer(endpoint);
        CountDownLatch failed = new CountDownLatch(1);
        // asked when the exception listener has been told
        container.setBackOff(() -> {
            failed.countDown();
            return new FixedBackOff().start();
        });
        container.afterPropertiesSet();
        jms.execute((SessionCallback<Void>) session -> {
            container.start();
            assertDoesNotThrow(() -> assertTrue(failed.await(LONG, TimeUnit.SECONDS)));
            session.createProducer(session.createQueue(queue)).send(session.createTextMessage("order"));
            return null;
        });
        container.shutdown();
        assertEquals("1", count(queue));
    }

    @Test
    void aLostConnectionOfTemplatesIsOpenedAgainBeforeTheNextSend() throws Exception {
        String queue = newQueue();
        String name = newName("lost");
        TransactionalConnectionFactory joins = new TransactionalConnectionFactory(
                new PgaqConnectionFactory(url() + "&ApplicationName=" + name), application.getBean(DataSource.class));
        JmsTemplate template = new JmsTemplate(joins);
        template.convertAndSend(queue, "before");
        CountDownLatch told = new CountDownLatch(1);
        joins.createConnection().setExceptionListener(reason -> told.countDown());
        execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = '" + name + "'");
        assertTrue(told.await(LONG, TimeUnit.SECONDS));
        template.convertAndSend(queue, "after");
        joins.destroy();
        assertEquals("2", count(queue));
    }

    @Test
    void healthAsksTheServer() {
        HealthIndicator health = application.getBean("jmsHealthContributor", HealthIndicator.class);
        assertEquals("UP {provider=pgaq}", health.health().toString());
    }

    @Test
    void healthLeavesTheClientIdToTheApplication() {
        new ApplicationContextRunner()
                .withConfiguration(AutoConfigurations.of(PgaqJmsAutoConfiguration.class))
                .withPropertyValues(
                        "pgaq.jms.url=" + url(),
                        "pgaq.jms.options.clientId=" + newName("client"),
                        "pgaq.jms.health-timeout=20s")
                .run(context -> {
                    try (Connection used =
                            context.getBean(ConnectionFactory.class).createConnection()) {
                        used.start();
                        assertEquals(
                                "UP {provider=pgaq}",
                                context.getBean(HealthIndicator.class).health().toString());
                    }
                });
    }

    @Test
    void messagesCommitWithRows() throws Exception {
        String queue = newQueue();
        String table = newName("orders");
        execute("CREATE TABLE " + table + " (id int)");
        Consumer<Boolean> order = rollback -> transaction.executeWithoutResult(status -> {
            jdbc.update("INSERT INTO " + table + " VALUES (1)");
            jms.convertAndSend(queue, "order, rolled back: " + rollback);
            if (rollback) {
                status.setRollbackOnly();
            }
        });
        order.accept(true);
        order.accept(false);
        assertEquals("order, rolled back: false", jms.receiveAndConvert(queue));
        assertEquals("1", value("SELECT count(*) FROM " + table));
    }

    @Test
    void aSendIsNotSeenBeforeTheCommit() throws Exception {
        String queue = newQueue();
        transaction.executeWithoutResult(status -> {
            jms.convertAndSend(queue, "order");
            assertEquals("0", count(queue));
        });
        assertEquals("1", count(queue));
    }

    @Test
    void aReceivedMessageComesBackWithTheRollback() throws Exception {
        String queue = newQueue();
        jms.convertAndSend(queue, "work");
        transaction.executeWithoutResult(status -> {
            assertEquals("work", jms.receiveAndConvert(queue));
            status.setRollbackOnly();
        });
        transaction.executeWithoutResult(status -> assertEquals("work", jms.receiveAndConvert(queue)));
        JmsTemplate hasty = new JmsTemplate(jms.getConnectionFactory());
        hasty.setReceiveTimeout(JmsTemplate.RECEIVE_TIMEOUT_NO_WAIT);
        assertNull(hasty.receive(queue));
    }

    @ParameterizedTest
    @CsvSource({
        "before commit, false, false, false",
        "after commit, false, false, false",
        "after commit, false, true, false",
        "after commit, true, true, false",
        "after completion, false, false, false",
        "after completion, false, true, false",
        "after completion, true, true, false",
        "after completion, false, true, true",
        "after completion, true, true, true"
    })
    void aSendAfterTheTransactionIsCommitted(String phase, boolean transacted, boolean before, boolean rollback)
            throws Exception {
        String queue = newQueue();
        String other = newQueue();
        JmsTemplate template = new JmsTemplate(jms.getConnectionFactory());
        template.setSessionTransacted(transacted);
        transaction.executeWithoutResult(status -> {
            TransactionSynchronizationManager.registerSynchronization(new TransactionSynchronization() {
                @Override
                public void beforeCommit(boolean readOnly) {
                    send("before commit");
                }

                @Override
                public void afterCommit() {
                    send("after commit");
                }

                @Override
                public void afterCompletion(int status) {
                    send("after completion");
                }

                private void send(String now) {
                    if (now.equals(phase)) {
                        template.convertAndSend(queue, now);
                    }
                }
            });
            jdbc.queryForList("SELECT 1");
            if (before) {
                template.convertAndSend(other, "in the transaction");
            }
            if (rollback) {
                status.setRollbackOnly();
            }
        });
        assertEquals("1", count(queue));
        assertEquals(before && !rollback ? "1" : "0", count(other));
    }

    @Test
    void aSessionDoesNotCommitTheTransaction() throws Exception {
        String queue = newQueue();
        JmsTemplate template = new JmsTemplate(jms.getConnectionFactory());
        template.setSessionTransacted(true);
        transaction.executeWithoutResult(status -> {
            template.convertAndSend(queue, "order");
            assertThrows(
                    IllegalStateException.class,
                    () -> template.execute((SessionCallback<Void>) session -> {
                        session.commit();
                        return null;
                    }));
            status.setRollbackOnly();
        });
        assertEquals("0", count(queue));
    }

    @Test
    void theTimeoutOfTheTransactionLimitsAReceive() throws Exception {
        String queue = newQueue();
        TransactionTemplate brief = new TransactionTemplate(application.getBean(PlatformTransactionManager.class));
        brief.setTimeout(1);
        // waits without limit
        JmsTemplate template = new JmsTemplate(jms.getConnectionFactory());
        assertThrows(
                TransactionTimedOutException.class,
                () -> brief.executeWithoutResult(status -> template.receive(queue)));
        template.setReceiveTimeout(10);
        brief.executeWithoutResult(status -> assertNull(template.receive(queue)));
        jms.convertAndSend(queue, "work");
        brief.executeWithoutResult(status -> assertEquals("work", template.receiveAndConvert(queue)));
        assertEquals("0", count(queue));
    }

    @Test
    void theTimeoutOfTheTransactionLimitsABulkReceive() throws Exception {
        String queue = newQueue();
        TransactionTemplate brief = new TransactionTemplate(application.getBean(PlatformTransactionManager.class));
        brief.setTimeout(1);
        assertThrows(TransactionTimedOutException.class, () -> brief.executeWithoutResult(status -> bulk(queue, 0)));
        assertEquals(0, (int) brief.execute(status -> bulk(queue, 10)));
        jms.convertAndSend(queue, "one");
        jms.convertAndSend(queue, "two");
        assertEquals(2, (int) brief.execute(status -> bulk(queue, 10_000)));
        assertEquals("0", count(queue));
    }

    /** Receives several messages in the transaction; returns their number. */
    private int bulk(String queue, long timeout) {
        try (PgaqConnection connection =
                        (PgaqConnection) jms.getConnectionFactory().createConnection();
                PgaqSession session = connection.createSession()) {
            connection.start();
            MessageConsumer consumer = session.createConsumer(session.createQueue(queue));
            return session.bulkReceive(consumer, 10, timeout).size();
        } catch (JMSException e) {
            throw new AssertionError(e);
        }
    }

    @Test
    void sessionsForQueuesOrTopicsDoNotCommitTheTransaction() throws Exception {
        String queue = newQueue();
        PlatformTransactionManager manager = application.getBean(PlatformTransactionManager.class);
        TransactionStatus status = manager.getTransaction(null);
        try (PgaqConnection connection =
                (PgaqConnection) jms.getConnectionFactory().createConnection()) {
            try (QueueSession session = connection.createQueueSession(true, Session.SESSION_TRANSACTED)) {
                session.createSender(session.createQueue(queue)).send(session.createTextMessage("order"));
                assertThrows(jakarta.jms.IllegalStateException.class, session::commit);
            }
            try (TopicSession session = connection.createTopicSession(true, Session.SESSION_TRANSACTED)) {
                assertThrows(jakarta.jms.IllegalStateException.class, session::commit);
            }
        } finally {
            manager.rollback(status);
        }
        assertEquals("0", count(queue));
    }

    @Test
    void aProxyThatIsAwareOfTransactionsIsJoined() throws Exception {
        String queue = newQueue();
        TransactionalConnectionFactory joins = new TransactionalConnectionFactory(
                new PgaqConnectionFactory(url()),
                new TransactionAwareDataSourceProxy(application.getBean(DataSource.class)));
        transaction.executeWithoutResult(status -> {
            new JmsTemplate(joins).convertAndSend(queue, "order");
            status.setRollbackOnly();
        });
        joins.destroy();
        assertEquals("0", count(queue));
    }

    @Test
    void aRequestInATransactionFailsAtOnce() throws Exception {
        String queue = newQueue();
        transaction.executeWithoutResult(status -> {
            IllegalStateException refused = assertThrows(
                    IllegalStateException.class,
                    () -> jms.sendAndReceive(queue, session -> session.createTextMessage("ping")));
            assertTrue(refused.getMessage().contains("Propagation.NOT_SUPPORTED"), refused.getMessage());
        });
        assertEquals("0", count(queue));
    }

    private static String count(String queue) {
        try {
            return value("SELECT count(*) FROM aq.messages WHERE queue_name LIKE '%" + queue + "' AND state = 'READY'");
        } catch (SQLException e) {
            throw new AssertionError(e);
        }
    }
}
