package io.github.pgaq.spring;

import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.Map;
import org.springframework.boot.context.properties.ConfigurationProperties;

/** The properties {@code pgaq.jms.*} of an application. */
@ConfigurationProperties("pgaq.jms")
public class PgaqJmsProperties {

    /** JDBC URL of the database; by default that of the DataSource. */
    private String url;
    /** User to connect as; by default that of the DataSource, if the URL is. */
    private String user;
    /** Password of the user. */
    private String password;
    /** Whether sends and receives of a JmsTemplate are part of the transaction of the DataSource, if there is one. */
    private boolean joinTransactions = true;
    /** How long the health indicator waits for an answer of the server. */
    private Duration healthTimeout = Duration.ofSeconds(2);
    /** Options of the provider by their names, such as prefetch or lease. */
    private Map<String, String> options = new LinkedHashMap<>();

    public String getUrl() {
        return url;
    }

    public void setUrl(String url) {
        this.url = url;
    }

    public String getUser() {
        return user;
    }

    public void setUser(String user) {
        this.user = user;
    }

    public String getPassword() {
        return password;
    }

    public void setPassword(String password) {
        this.password = password;
    }

    public boolean isJoinTransactions() {
        return joinTransactions;
    }

    public void setJoinTransactions(boolean joinTransactions) {
        this.joinTransactions = joinTransactions;
    }

    public Duration getHealthTimeout() {
        return healthTimeout;
    }

    public void setHealthTimeout(Duration healthTimeout) {
        this.healthTimeout = healthTimeout;
    }

    public Map<String, String> getOptions() {
        return options;
    }

    public void setOptions(Map<String, String> options) {
        this.options = options;
    }
}
