package io.github.pgaq.spring;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.github.pgaq.jms.ServerTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.jms.core.JmsClient;
import org.springframework.transaction.PlatformTransactionManager;
import org.springframework.transaction.support.TransactionTemplate;

/** JmsClient, which Spring Boot 4 configures. */
@Timeout(60)
class JmsClientTest extends ServerTest {

    @Test
    void sendsAndReceivesInTheTransaction() throws Exception {
        String queue = newQueue();
        ConfigurableApplicationContext application = TestApplication.context();
        JmsClient jms = application.getBean(JmsClient.class);
        TransactionTemplate transaction =
                new TransactionTemplate(application.getBean(PlatformTransactionManager.class));
        transaction.executeWithoutResult(status -> {
            jms.destination(queue).send("rolled back");
            status.setRollbackOnly();
        });
        transaction.executeWithoutResult(status -> jms.destination(queue).send("committed"));
        assertEquals(
                "committed",
                jms.destination(queue)
                        .withReceiveTimeout(20_000)
                        .receive(String.class)
                        .orElse(null));
    }
}
