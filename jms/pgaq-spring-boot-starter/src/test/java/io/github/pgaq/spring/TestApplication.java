package io.github.pgaq.spring;

import io.github.pgaq.jms.ServerTest;
import io.micrometer.observation.Observation;
import io.micrometer.observation.ObservationHandler;
import jakarta.jms.ConnectionFactory;
import java.sql.SQLException;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import org.springframework.boot.WebApplicationType;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.builder.SpringApplicationBuilder;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.jms.annotation.JmsListener;
import org.springframework.jms.config.DefaultJmsListenerContainerFactory;
import org.springframework.messaging.handler.annotation.Header;
import org.springframework.transaction.PlatformTransactionManager;

/** An application of Spring Boot that has the starter and a DataSource, whose pool does not commit by itself. */
@Configuration
@EnableAutoConfiguration
class TestApplication {
    static final BlockingQueue<String> RECEIVED = new LinkedBlockingQueue<>();
    static final BlockingQueue<String> OBSERVED = new LinkedBlockingQueue<>();

    private static ConfigurableApplicationContext context;

    private final JdbcTemplate jdbc;

    TestApplication(JdbcTemplate jdbc) {
        this.jdbc = jdbc;
    }

    /** The application, started by the first test that asks for it. */
    static synchronized ConfigurableApplicationContext context() throws SQLException {
        if (context == null) {
            String table = ServerTest.newName("done");
            ServerTest.execute("CREATE TABLE " + table + " (body text, attempt int)");
            context = new SpringApplicationBuilder(TestApplication.class)
                    .web(WebApplicationType.NONE)
                    .properties(
                            "spring.datasource.url=" + ServerTest.url(),
                            "spring.datasource.hikari.auto-commit=false",
                            "spring.main.banner-mode=off",
                            "spring.jms.template.receive-timeout=20s",
                            "pgaq.jms.health-timeout=20s",
                            "test.queue=" + ServerTest.newQueue(),
                            "test.transaction=" + ServerTest.newQueue(),
                            "test.table=" + table)
                    .run();
        }
        return context;
    }

    @JmsListener(id = "plain", destination = "${test.queue}")
    void receive(String text) {
        RECEIVED.add(text);
    }

    @Bean
    static DefaultJmsListenerContainerFactory oneTransaction(
            ConnectionFactory connections, PlatformTransactionManager manager) {
        DefaultJmsListenerContainerFactory factory = new DefaultJmsListenerContainerFactory();
        factory.setConnectionFactory(connections);
        factory.setTransactionManager(manager);
        return factory;
    }

    /** Takes messages in the transactions of the DataSource. */
    @JmsListener(destination = "${test.transaction}", containerFactory = "oneTransaction")
    void write(String text, @Header("JMSXDeliveryCount") int count) {
        jdbc.update(
                "INSERT INTO " + context.getEnvironment().getProperty("test.table") + " VALUES (?, ?)", text, count);
        if (count == 1) {
            throw new IllegalStateException("fails on purpose");
        }
    }

    @Bean
    static ObservationHandler<Observation.Context> observations() {
        return new ObservationHandler<>() {
            @Override
            public void onStop(Observation.Context observed) {
                OBSERVED.add(observed.getName());
            }

            @Override
            public boolean supportsContext(Observation.Context observed) {
                return true;
            }
        };
    }
}
