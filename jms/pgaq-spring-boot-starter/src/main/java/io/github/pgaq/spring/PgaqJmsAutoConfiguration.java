package io.github.pgaq.spring;

import io.github.pgaq.jms.PgaqConnectionFactory;
import jakarta.jms.ConnectionFactory;
import javax.sql.DataSource;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.boot.context.properties.EnableConfigurationProperties;
import org.springframework.context.annotation.Bean;
import org.springframework.core.env.Environment;
import org.springframework.jms.connection.CachingConnectionFactory;

/**
 * Makes pgaq the {@link ConnectionFactory} of an application that has no other one.
 *
 * <p>It connects with {@code pgaq.jms.url}, or {@code spring.datasource.url}, outside of the pool of the DataSource:
 * each listener keeps a connection while it waits, which would empty the pool. Without either it takes the connections
 * of the DataSource. Connections and sessions of templates are kept by a {@link CachingConnectionFactory}.
 */
@AutoConfiguration(
        beforeName = {
            "org.springframework.boot.jms.autoconfigure.JmsAutoConfiguration",
            "org.springframework.boot.autoconfigure.jms.JmsAutoConfiguration"
        },
        afterName = {
            "org.springframework.boot.jdbc.autoconfigure.DataSourceAutoConfiguration",
            "org.springframework.boot.autoconfigure.jdbc.DataSourceAutoConfiguration"
        })
@ConditionalOnMissingBean(ConnectionFactory.class)
@EnableConfigurationProperties(PgaqJmsProperties.class)
public class PgaqJmsAutoConfiguration {

    @Bean
    ConnectionFactory pgaqConnectionFactory(
            PgaqJmsProperties properties, Environment environment, ObjectProvider<DataSource> dataSources) {
        DataSource dataSource = dataSources.getIfUnique();
        PgaqConnectionFactory factory = connectTo(properties, environment, dataSource);
        factory.setOptions(properties.getOptions());
        CachingConnectionFactory cached = new CachingConnectionFactory(factory);
        return dataSource != null && properties.isJoinTransactions()
                ? new TransactionalConnectionFactory(cached, factory, dataSource)
                : cached;
    }

    private static PgaqConnectionFactory connectTo(
            PgaqJmsProperties properties, Environment environment, DataSource dataSource) {
        boolean own = properties.getUrl() != null;
        String url = own ? properties.getUrl() : environment.getProperty("spring.datasource.url");
        if (url == null && dataSource == null) {
            throw new IllegalStateException("pgaq has no database: set pgaq.jms.url or spring.datasource.url");
        }
        if (url == null) {
            return new PgaqConnectionFactory(dataSource);
        }
        PgaqConnectionFactory factory = new PgaqConnectionFactory(url);
        String user = own || properties.getUser() != null
                ? properties.getUser()
                : environment.getProperty("spring.datasource.username");
        String password = own || properties.getPassword() != null
                ? properties.getPassword()
                : environment.getProperty("spring.datasource.password");
        if (user != null) {
            factory.setUser(user);
        }
        if (password != null) {
            factory.setPassword(password);
        }
        return factory;
    }
}
