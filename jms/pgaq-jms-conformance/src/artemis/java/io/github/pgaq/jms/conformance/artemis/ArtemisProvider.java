package io.github.pgaq.jms.conformance.artemis;

import io.github.pgaq.jms.conformance.Provider;
import jakarta.jms.Connection;
import jakarta.jms.ConnectionFactory;
import jakarta.jms.QueueConnectionFactory;
import jakarta.jms.TopicConnectionFactory;
import jakarta.jms.XAConnectionFactory;
import java.util.Set;
import org.apache.activemq.artemis.api.core.ActiveMQNotConnectedException;
import org.apache.activemq.artemis.api.core.QueueConfiguration;
import org.apache.activemq.artemis.api.core.RoutingType;
import org.apache.activemq.artemis.api.core.SimpleString;
import org.apache.activemq.artemis.core.client.impl.ClientSessionInternal;
import org.apache.activemq.artemis.core.config.Configuration;
import org.apache.activemq.artemis.core.config.impl.ConfigurationImpl;
import org.apache.activemq.artemis.core.config.impl.SecurityConfiguration;
import org.apache.activemq.artemis.core.security.Role;
import org.apache.activemq.artemis.core.server.embedded.EmbeddedActiveMQ;
import org.apache.activemq.artemis.core.server.impl.AddressInfo;
import org.apache.activemq.artemis.core.settings.impl.AddressSettings;
import org.apache.activemq.artemis.jms.client.ActiveMQConnection;
import org.apache.activemq.artemis.jms.client.ActiveMQConnectionFactory;
import org.apache.activemq.artemis.jms.client.ActiveMQJMSConnectionFactory;
import org.apache.activemq.artemis.jms.client.ActiveMQQueueConnectionFactory;
import org.apache.activemq.artemis.jms.client.ActiveMQTopicConnectionFactory;
import org.apache.activemq.artemis.jms.client.ActiveMQXAConnectionFactory;
import org.apache.activemq.artemis.spi.core.security.ActiveMQJAASSecurityManager;
import org.apache.activemq.artemis.spi.core.security.jaas.InVMLoginModule;

/** Apache ActiveMQ Artemis in this process, without a journal: to test the tests. */
public final class ArtemisProvider implements Provider {
    private static final String URL = "vm://0";
    private final EmbeddedActiveMQ broker = new EmbeddedActiveMQ();

    public ArtemisProvider() throws Exception {
        Configuration configuration = new ConfigurationImpl()
                .setPersistenceEnabled(false)
                .setSecurityEnabled(true)
                .setJournalDirectory("target/artemis/journal")
                .setMessageExpiryScanPeriod(50)
                .addAcceptorConfiguration("vm", URL);
        configuration.addAddressSetting(
                "#",
                new AddressSettings()
                        .setMaxDeliveryAttempts(deliveryLimit())
                        .setRedeliveryDelay(0)
                        .setAutoCreateQueues(false)
                        .setAutoCreateAddresses(false)
                        .setAutoDeleteQueues(false)
                        .setAutoDeleteAddresses(false));
        configuration.putSecurityRoles(
                "#", Set.of(new Role("all", true, true, true, true, true, true, true, true, true, true, true, true)));
        SecurityConfiguration users = new SecurityConfiguration();
        users.addUser(user(), password());
        users.addRole(user(), "all");
        broker.setConfiguration(configuration);
        broker.setSecurityManager(new ActiveMQJAASSecurityManager(InVMLoginModule.class.getName(), users));
        broker.start();
    }

    private <T extends ActiveMQConnectionFactory> T configured(T factory) {
        factory.setUser(user());
        factory.setPassword(password());
        factory.setReconnectAttempts(0);
        return factory;
    }

    @Override
    public String name() {
        return "artemis";
    }

    @Override
    public ConnectionFactory connectionFactory() {
        return configured(new ActiveMQJMSConnectionFactory(URL));
    }

    @Override
    public ConnectionFactory connectionFactory(String clientId) {
        ActiveMQConnectionFactory factory = configured(new ActiveMQJMSConnectionFactory(URL));
        factory.setClientID(clientId);
        return (ConnectionFactory) factory;
    }

    @Override
    public QueueConnectionFactory queueConnectionFactory() {
        return configured(new ActiveMQQueueConnectionFactory(URL));
    }

    @Override
    public TopicConnectionFactory topicConnectionFactory() {
        return configured(new ActiveMQTopicConnectionFactory(URL));
    }

    @Override
    public XAConnectionFactory xaConnectionFactory() {
        return configured(new ActiveMQXAConnectionFactory(URL));
    }

    @Override
    public String user() {
        return "scott";
    }

    @Override
    public String password() {
        return "tiger";
    }

    @Override
    public void createQueue(String name) throws Exception {
        broker.getActiveMQServer()
                .createQueue(QueueConfiguration.of(name)
                        .setRoutingType(RoutingType.ANYCAST)
                        .setAutoCreateAddress(true)
                        .setAutoDelete(false));
    }

    @Override
    public void dropQueue(String name) throws Exception {
        broker.getActiveMQServer().destroyQueue(SimpleString.of(name), null, false, true);
    }

    @Override
    public void createTopic(String name) throws Exception {
        broker.getActiveMQServer()
                .addAddressInfo(new AddressInfo(SimpleString.of(name), RoutingType.MULTICAST).setAutoCreated(false));
    }

    @Override
    public void dropTopic(String name) throws Exception {
        broker.getActiveMQServer().removeAddressInfo(SimpleString.of(name), null, true);
    }

    @Override
    public boolean kill(Connection connection) {
        ((ClientSessionInternal) ((ActiveMQConnection) connection).getInitialSession())
                .getConnection()
                .fail(new ActiveMQNotConnectedException("the suite broke the connection"));
        return true;
    }

    @Override
    public void close() throws Exception {
        broker.stop();
    }
}
