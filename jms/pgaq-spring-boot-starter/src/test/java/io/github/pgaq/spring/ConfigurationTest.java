package io.github.pgaq.spring;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.zaxxer.hikari.HikariDataSource;
import io.github.pgaq.jms.PgaqConnectionFactory;
import jakarta.jms.ConnectionFactory;
import java.util.Collections;
import java.util.Map;
import java.util.TreeMap;
import javax.naming.NamingException;
import javax.sql.DataSource;
import org.apache.tomcat.jdbc.pool.PoolProperties;
import org.junit.jupiter.api.Test;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.jdbc.autoconfigure.DataSourceAutoConfiguration;
import org.springframework.boot.jdbc.autoconfigure.JdbcConnectionDetails;
import org.springframework.boot.jms.autoconfigure.JmsAutoConfiguration;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.jdbc.datasource.LazyConnectionDataSourceProxy;
import org.springframework.jms.connection.CachingConnectionFactory;

/** The beans that the starter makes from an application's properties and beans. No test connects to a server. */
class ConfigurationTest {

    private static final String PROPERTY = "spring.datasource.url=jdbc:postgresql://property/shop";

    private final ApplicationContextRunner application = new ApplicationContextRunner()
            .withConfiguration(AutoConfigurations.of(
                    DataSourceAutoConfiguration.class, PgaqJmsAutoConfiguration.class, JmsAutoConfiguration.class));

    /** The factory that connects, for messages that are sent outside of transactions. */
    private static PgaqConnectionFactory target(ConnectionFactory connections) {
        return (PgaqConnectionFactory) ((CachingConnectionFactory) connections).getTargetConnectionFactory();
    }

    private void assertUrl(String expected, ApplicationContextRunner runner) {
        runner.run(context -> assertEquals(
                expected, target(context.getBean(ConnectionFactory.class)).getUrl()));
    }

    private static JdbcConnectionDetails details() {
        return new JdbcConnectionDetails() {
            @Override
            public String getUsername() {
                return "me";
            }

            @Override
            public String getPassword() {
                return "secret";
            }

            @Override
            public String getJdbcUrl() {
                return "jdbc:postgresql://container/test";
            }
        };
    }

    private static DataSource handMade() {
        HikariDataSource pool = new HikariDataSource();
        pool.setJdbcUrl("jdbc:postgresql://made-by-hand/shop");
        return new LazyConnectionDataSourceProxy(pool);
    }

    @Test
    void messagesAreInTheDatabaseOfTheDataSource() {
        assertUrl("jdbc:postgresql://property/shop", application.withPropertyValues(PROPERTY));
        assertUrl(
                "jdbc:postgresql://container/test",
                application
                        .withPropertyValues(PROPERTY)
                        .withBean(JdbcConnectionDetails.class, ConfigurationTest::details));
        assertUrl(
                "jdbc:postgresql://made-by-hand/shop",
                application.withPropertyValues(PROPERTY).withBean(DataSource.class, ConfigurationTest::handMade));
        assertUrl(
                "jdbc:postgresql://own/messages",
                application.withPropertyValues(PROPERTY, "pgaq.jms.url=jdbc:postgresql://own/messages"));
    }

    private static String reference(PgaqConnectionFactory factory) throws NamingException {
        Map<String, Object> values = new TreeMap<>();
        Collections.list(factory.getReference().getAll())
                .forEach(address -> values.put(address.getType(), address.getContent()));
        return values.toString();
    }

    @Test
    void poolsSayHowTheyConnect() throws Exception {
        String url = "jdbc:postgresql://pool/shop";
        HikariDataSource hikari = new HikariDataSource();
        hikari.setJdbcUrl(url);
        hikari.setUsername("me");
        hikari.setPassword("secret");
        hikari.addDataSourceProperty("ssl", true);
        org.apache.tomcat.jdbc.pool.DataSource tomcat = new org.apache.tomcat.jdbc.pool.DataSource();
        tomcat.setUrl(url);
        tomcat.setUsername("me");
        tomcat.setPassword("secret");
        PoolProperties settings = new PoolProperties();
        settings.setUrl(url);
        settings.setUsername("me");
        settings.setPassword("secret");
        settings.setConnectionProperties("ssl=true");
        String same = "{password=secret, url=jdbc:postgresql://pool/shop, user=me}";
        String ssl = same.replace("url", "ssl=true, url");
        assertEquals(ssl, reference(ConnectTo.sameAs(hikari)));
        assertEquals(same, reference(ConnectTo.sameAs(tomcat)));
        assertEquals(ssl, reference(ConnectTo.sameAs(new org.apache.tomcat.jdbc.pool.DataSource(settings))));
    }

    @Test
    void withoutADataSourceTheConnectionDetailsSayWhere() {
        ApplicationContextRunner bare = new ApplicationContextRunner()
                .withConfiguration(AutoConfigurations.of(PgaqJmsAutoConfiguration.class, JmsAutoConfiguration.class));
        assertUrl(
                "jdbc:postgresql://container/test",
                bare.withPropertyValues(PROPERTY).withBean(JdbcConnectionDetails.class, ConfigurationTest::details));
        assertUrl("jdbc:postgresql://property/shop", bare.withPropertyValues(PROPERTY));
    }

    @Test
    void cachePropertiesAreEffective() {
        application.withPropertyValues(PROPERTY).run(context -> {
            CachingConnectionFactory cache = context.getBean(CachingConnectionFactory.class);
            assertFalse(cache.isCacheConsumers());
            assertTrue(cache.isCacheProducers());
            assertEquals(1, cache.getSessionCacheSize());
        });
        for (String joins : new String[] {"true", "false"}) {
            application
                    .withPropertyValues(
                            PROPERTY,
                            "pgaq.jms.join-transactions=" + joins,
                            "spring.jms.cache.consumers=true",
                            "spring.jms.cache.producers=false",
                            "spring.jms.cache.session-cache-size=7")
                    .run(context -> {
                        CachingConnectionFactory cache = context.getBean(CachingConnectionFactory.class);
                        assertTrue(cache.isCacheConsumers());
                        assertFalse(cache.isCacheProducers());
                        assertEquals(7, cache.getSessionCacheSize());
                    });
        }
        application
                .withPropertyValues(PROPERTY, "pgaq.jms.join-transactions=false", "spring.jms.cache.enabled=false")
                .run(context ->
                        assertInstanceOf(PgaqConnectionFactory.class, context.getBean(ConnectionFactory.class)));
    }

    @Test
    void optionsReachTheProvider() {
        application
                .withPropertyValues(PROPERTY, "pgaq.jms.options.prefetch=7")
                .run(context -> assertEquals(
                        7,
                        target(context.getBean(ConnectionFactory.class))
                                .getOptions()
                                .prefetch()));
        application.withPropertyValues(PROPERTY, "pgaq.jms.options.prefetsch=7").run(context -> {
            Throwable error = context.getStartupFailure();
            while (error.getCause() != null) {
                error = error.getCause();
            }
            assertTrue(error.getMessage().contains("did you mean \"prefetch\""), error.getMessage());
        });
    }
}
