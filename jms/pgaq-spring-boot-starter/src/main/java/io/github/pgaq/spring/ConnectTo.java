package io.github.pgaq.spring;

import io.github.pgaq.jms.PgaqConnectionFactory;
import java.util.Arrays;
import java.util.Objects;
import java.util.Properties;
import javax.sql.DataSource;
import org.springframework.beans.BeanWrapper;
import org.springframework.beans.PropertyAccessorFactory;
import org.springframework.jdbc.datasource.DelegatingDataSource;

/** Finds out where a DataSource connects to, so that connections to the same place can be opened past its pool. */
final class ConnectTo {
    private ConnectTo() {}

    /** Makes a factory of a URL; without user or password it has none. */
    static PgaqConnectionFactory url(String url, String user, String password, Properties more) {
        PgaqConnectionFactory factory = new PgaqConnectionFactory(url, more == null ? new Properties() : more);
        if (user != null) {
            factory.setUser(user);
        }
        if (password != null) {
            factory.setPassword(password);
        }
        return factory;
    }

    /** Makes a factory for the database of a DataSource, or returns null if its URL is not known. */
    static PgaqConnectionFactory sameAs(DataSource dataSource) {
        DataSource inner = dataSource;
        while (inner instanceof DelegatingDataSource outer && outer.getTargetDataSource() != null) {
            inner = outer.getTargetDataSource();
        }
        BeanWrapper bean = PropertyAccessorFactory.forBeanPropertyAccess(inner);
        // as HikariCP, Tomcat, DBCP, Spring and pgjdbc call them
        Object url = first(bean, "jdbcUrl", "url", "URL");
        return url == null
                ? null
                : url(
                        url.toString(),
                        (String) first(bean, "username", "user"),
                        (String) first(bean, "password"),
                        (Properties) first(bean, "dataSourceProperties", "connectionProperties"));
    }

    private static Object first(BeanWrapper bean, String... names) {
        return Arrays.stream(names)
                .filter(bean::isReadableProperty)
                .map(bean::getPropertyValue)
                .filter(Objects::nonNull)
                .findFirst()
                .orElse(null);
    }
}
