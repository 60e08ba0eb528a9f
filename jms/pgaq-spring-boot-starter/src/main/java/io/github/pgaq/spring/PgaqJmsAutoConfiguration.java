package io.github.pgaq.spring;

import io.github.pgaq.jms.PgaqConnectionFactory;
import jakarta.jms.ConnectionFactory;
import javax.sql.DataSource;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnClass;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.boot.context.properties.EnableConfigurationProperties;
import org.springframework.boot.health.autoconfigure.contributor.ConditionalOnEnabledHealthIndicator;
import org.springframework.boot.health.contributor.HealthIndicator;
import org.springframework.boot.jdbc.autoconfigure.DataSourceAutoConfiguration;
import org.springframework.boot.jdbc.autoconfigure.JdbcConnectionDetails;
import org.springframework.boot.jms.autoconfigure.JmsAutoConfiguration;
import org.springframework.boot.jms.autoconfigure.JmsProperties;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.core.env.Environment;
import org.springframework.jms.connection.CachingConnectionFactory;

/**
 * Makes pgaq the {@link ConnectionFactory} of an application that has no other one.
 *
 * <p>It connects to {@code pgaq.jms.url}, or to the database of the DataSource, outside of its pool: each listener
 * keeps a connection while it waits, which would empty the pool. If its URL is not known, the
 * connections come from it. Connections and sessions of templates are kept, as {@code spring.jms.cache} says.
 */
@AutoConfiguration(before = JmsAutoConfiguration.class, after = DataSourceAutoConfiguration.class)
@ConditionalOnMissingBean(ConnectionFactory.class)
@EnableConfigurationProperties({PgaqJmsProperties.class, JmsProperties.class})
public class PgaqJmsAutoConfiguration {

    @Bean
    ConnectionFactory pgaqConnectionFactory(
            PgaqJmsProperties properties,
            JmsProperties jms,
            ObjectProvider<JdbcConnectionDetails> details,
            ObjectProvider<DataSource> dataSources,
            Environment environment) {
        DataSource dataSource = dataSources.getIfUnique();
        PgaqConnectionFactory factory = connectTo(properties, details.getIfUnique(), dataSource, environment);
        JmsProperties.Cache cache = jms.getCache();
        if (dataSource == null || !properties.isJoinTransactions()) {
            return cache.isEnabled() ? cached(new TemplateConnectionFactory(factory), cache) : factory;
        }
        TransactionalConnectionFactory joins = new TransactionalConnectionFactory(factory, dataSource);
        joins.setCached(cache.isEnabled());
        return cached(joins, cache);
    }

    private static CachingConnectionFactory cached(CachingConnectionFactory factory, JmsProperties.Cache cache) {
        factory.setCacheConsumers(cache.isConsumers());
        factory.setCacheProducers(cache.isProducers());
        factory.setSessionCacheSize(cache.getSessionCacheSize());
        return factory;
    }

    private static PgaqConnectionFactory connectTo(
            PgaqJmsProperties properties,
            JdbcConnectionDetails details,
            DataSource dataSource,
            Environment environment) {
        PgaqConnectionFactory factory = properties.getUrl() != null
                ? new PgaqConnectionFactory(properties.getUrl())
                : sameAs(details, dataSource, environment);
        if (properties.getUser() != null) {
            factory.setUser(properties.getUser());
        }
        if (properties.getPassword() != null) {
            factory.setPassword(properties.getPassword());
        }
        factory.setOptions(properties.getOptions());
        return factory;
    }

    private static PgaqConnectionFactory sameAs(
            JdbcConnectionDetails details, DataSource dataSource, Environment environment) {
        PgaqConnectionFactory same = dataSource == null ? null : ConnectTo.sameAs(dataSource);
        if (same != null) {
            return same;
        }
        if (details != null) {
            return ConnectTo.url(details.getJdbcUrl(), details.getUsername(), details.getPassword(), null);
        }
        if (dataSource != null) {
            return new PgaqConnectionFactory(dataSource);
        }
        String configured = environment.getProperty("spring.datasource.url");
        if (configured == null) {
            throw new IllegalStateException("pgaq has no database: set pgaq.jms.url or spring.datasource.url");
        }
        return ConnectTo.url(
                configured,
                environment.getProperty("spring.datasource.username"),
                environment.getProperty("spring.datasource.password"),
                null);
    }

    /** With the actuator. */
    @Configuration(proxyBeanMethods = false)
    @ConditionalOnClass({HealthIndicator.class, ConditionalOnEnabledHealthIndicator.class})
    @ConditionalOnEnabledHealthIndicator("jms")
    static class HealthConfiguration {
        @Bean
        @ConditionalOnMissingBean(name = {"jmsHealthIndicator", "jmsHealthContributor"})
        HealthIndicator jmsHealthContributor(
                PgaqJmsProperties properties,
                ObjectProvider<JdbcConnectionDetails> details,
                ObjectProvider<DataSource> dataSources,
                Environment environment) {
            PgaqConnectionFactory factory =
                    connectTo(properties, details.getIfUnique(), dataSources.getIfUnique(), environment);
            return new PgaqHealthIndicator(factory, properties.getHealthTimeout());
        }
    }
}
