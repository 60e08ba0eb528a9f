package io.github.pgaq.spring;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.pgaq.jms.ServerTest;
import jakarta.jms.ConnectionFactory;
import java.sql.SQLException;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.springframework.beans.factory.BeanCreationException;
import org.springframework.beans.factory.annotation.Value;
import org.springframework.boot.WebApplicationType;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.builder.SpringApplicationBuilder;
import org.springframework.boot.health.contributor.HealthIndicator;
import org.springframework.boot.health.contributor.Status;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.jms.annotation.JmsListener;
import org.springframework.jms.config.DefaultJmsListenerContainerFactory;
import org.springframework.jms.core.JmsTemplate;
import org.springframework.messaging.handler.annotation.Header;
import org.springframework.transaction.PlatformTransactionManager;
import org.springframework.transaction.support.TransactionTemplate;

/** An application of Spring Boot that has the starter and a DataSource. */
@Timeout(60)
class StarterTest extends ServerTest {

    private static final int LONG = 20;
    private static final BlockingQueue<String> RECEIVED = new LinkedBlockingQueue<>();

    private ConfigurableApplicationContext application;
    private JmsTemplate jms;
    private JdbcTemplate jdbc;
    private TransactionTemplate transaction;

    /** An application without listeners. */
    @Configuration
    @EnableAutoConfiguration
    static class Application {}

    /** An application with a listener. */
    @Configuration
    @EnableAutoConfiguration
    static class Listening {
        @JmsListener(destination = "${test.queue}")
        void receive(String text) {
            RECEIVED.add(text);
        }
    }

    /** An application whose listener takes messages in the transactions of the DataSource. */
    @Configuration
    @EnableAutoConfiguration
    static class OneTransaction {
        private final JdbcTemplate jdbc;
        private final String table;

        OneTransaction(JdbcTemplate jdbc, @Value("${test.table}") String table) {
            this.jdbc = jdbc;
            this.table = table;
        }

        @Bean
        static DefaultJmsListenerContainerFactory oneTransaction(
                ConnectionFactory connections, PlatformTransactionManager manager) {
            DefaultJmsListenerContainerFactory factory = new DefaultJmsListenerContainerFactory();
            factory.setConnectionFactory(connections);
            factory.setTransactionManager(manager);
            return factory;
        }

        @JmsListener(destination = "${test.queue}", containerFactory = "oneTransaction")
        void receive(String text, @Header("JMSXDeliveryCount") int count) {
            jdbc.update("INSERT INTO " + table + " VALUES (?, ?)", text, count);
            if (count == 1) {
                throw new IllegalStateException("fails on purpose");
            }
        }
    }

    private void run(Class<?> configuration, String... properties) {
        application = new SpringApplicationBuilder(configuration)
                .web(WebApplicationType.NONE)
                .properties(
                        "spring.datasource.url=" + url(),
                        "spring.main.banner-mode=off",
                        "spring.jms.template.receive-timeout=20s")
                .properties(properties)
                .run();
        jms = application.getBean(JmsTemplate.class);
        jdbc = application.getBean(JdbcTemplate.class);
        transaction = new TransactionTemplate(application.getBean(PlatformTransactionManager.class));
    }

    @AfterEach
    void close() {
        application.close();
    }

    @Test
    void templateAndListenerWork() throws Exception {
        String queue = newQueue();
        run(Listening.class, "test.queue=" + queue);
        jms.convertAndSend(queue, "hello");
        assertEquals("hello", RECEIVED.poll(LONG, TimeUnit.SECONDS));
    }

    @Test
    void aListenersRowsCommitWithItsMessage() throws Exception {
        String queue = newQueue();
        String table = newName("done");
        execute("CREATE TABLE " + table + " (body text, attempt int)");
        run(OneTransaction.class, "test.queue=" + queue, "test.table=" + table);
        jms.convertAndSend(queue, "work");
        // the row of the first attempt was rolled back
        awaitValue("work 2", "SELECT body || ' ' || attempt FROM " + table);
        awaitValue(
                "0",
                "SELECT count(*) FROM aq.messages WHERE queue_name LIKE '%" + queue
                        + "' AND state IN ('READY', 'LOCKED')");
    }

    @Test
    void healthAsksTheServer() {
        run(Application.class);
        HealthIndicator health = application.getBean("jmsHealthContributor", HealthIndicator.class);
        assertEquals(Status.UP, health.health().getStatus());
        assertEquals("pgaq", health.health().getDetails().get("provider"));
    }

    @Test
    void messagesCommitWithRows() throws Exception {
        String queue = newQueue();
        String table = newName("orders");
        execute("CREATE TABLE " + table + " (id int)");
        run(Application.class);
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
        run(Application.class);
        transaction.executeWithoutResult(status -> {
            jms.convertAndSend(queue, "order");
            assertEquals("0", count(queue));
        });
        assertEquals("1", count(queue));
    }

    @Test
    void aReceivedMessageComesBackWithTheRollback() throws Exception {
        String queue = newQueue();
        run(Application.class);
        jms.convertAndSend(queue, "work");
        transaction.executeWithoutResult(status -> {
            assertEquals("work", jms.receiveAndConvert(queue));
            status.setRollbackOnly();
        });
        transaction.executeWithoutResult(status -> assertEquals("work", jms.receiveAndConvert(queue)));
        jms.setReceiveTimeout(JmsTemplate.RECEIVE_TIMEOUT_NO_WAIT);
        assertNull(jms.receive(queue));
    }

    @Test
    void optionsReachTheProvider() {
        run(Application.class, "pgaq.jms.options.prefetch=7");
        SpringApplicationBuilder wrong = new SpringApplicationBuilder(Application.class)
                .web(WebApplicationType.NONE)
                .properties("spring.datasource.url=" + url(), "pgaq.jms.options.prefetsch=7");
        Throwable error = assertThrows(BeanCreationException.class, wrong::run);
        while (error.getCause() != null) {
            error = error.getCause();
        }
        assertTrue(error.getMessage().contains("did you mean \"prefetch\""), error.getMessage());
    }

    private static String count(String queue) {
        try {
            return value("SELECT count(*) FROM aq.messages WHERE queue_name LIKE '%" + queue + "' AND state = 'READY'");
        } catch (SQLException e) {
            throw new AssertionError(e);
        }
    }
}
