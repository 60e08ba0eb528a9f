package io.github.pgaq.spring;

import io.github.pgaq.jms.PgaqConnectionFactory;
import java.util.Arrays;
import java.util.Properties;
import javax.sql.DataSource;
import org.springframework.beans.BeanWrapper;
import org.springframework.beans.PropertyAccessorFactory;
import org.springframework.jdbc.datasource.DelegatingDataSource;

/** Finds the database of a DataSource, so that connections to it can be opened outside of its pool. */
final class ConnectTo {
    private ConnectTo() {}

    /** Makes a factory for a URL. User and password may be null. */
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
        BeanWrapper pool = PropertyAccessorFactory.forBeanPropertyAccess(inner);
        // Tomcat's pool itself returns a text in place of the password
        Object settings = first(pool, Object.class, "poolProperties");
        BeanWrapper bean = settings == null ? pool : PropertyAccessorFactory.forBeanPropertyAccess(settings);
        // as HikariCP, Tomcat, DBCP, Spring and pgjdbc call them
        String url = first(bean, String.class, "jdbcUrl", "url", "URL");
        if (url == null) {
            return null;
        }
        Properties more = first(bean, Properties.class, "dataSourceProperties", "dbProperties", "connectionProperties");
        return url(
                url,
                first(bean, String.class, "username", "user"),
                first(bean, String.class, "password"),
                more == null ? null : texts(more));
    }

    private static <T> T first(BeanWrapper bean, Class<T> type, String... names) {
        return Arrays.stream(names)
                .filter(bean::isReadableProperty)
                .map(bean::getPropertyValue)
                .filter(type::isInstance)
                .map(type::cast)
                .findFirst()
                .orElse(null);
    }

    /** The properties with values as text, which may be numbers or truth values. */
    private static Properties texts(Properties properties) {
        Properties texts = new Properties(properties);
        properties.forEach((name, value) -> texts.setProperty(name.toString(), value.toString()));
        return texts;
    }
}
