package io.github.pgaq.spring;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.pgaq.jms.PgaqConnectionFactory;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.time.Duration;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.springframework.boot.health.contributor.Health;
import org.springframework.boot.health.contributor.Status;
import org.springframework.jms.connection.CachingConnectionFactory;

/** Health during outages. */
@Timeout(60)
class HealthTest {

    private static Health health(ServerSocket server) {
        CachingConnectionFactory connections = new CachingConnectionFactory(
                new PgaqConnectionFactory("jdbc:postgresql://127.0.0.1:" + server.getLocalPort() + "/shop?user=me"));
        return new PgaqHealthIndicator(connections, Duration.ofMillis(200)).health();
    }

    @Test
    void aServerThatDoesNotAnswerIsDownAfterTheTimeout() throws Exception {
        // the kernel accepts the connection, and nothing reads from it
        try (ServerSocket silent = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            Health health = health(silent);
            assertEquals(Status.DOWN, health.getStatus());
            assertEquals(
                    "no answer from the server within 200 ms",
                    health.getDetails().get("error"));
        }
    }

    @Test
    void aServerThatIsGoneIsDown() throws Exception {
        ServerSocket gone = new ServerSocket(0, 1, InetAddress.getLoopbackAddress());
        gone.close();
        Health health = new PgaqHealthIndicator(
                        new PgaqConnectionFactory(
                                "jdbc:postgresql://127.0.0.1:" + gone.getLocalPort() + "/shop?user=me"),
                        Duration.ofSeconds(20))
                .health();
        assertEquals(Status.DOWN, health.getStatus());
        assertTrue(health.getDetails().get("error").toString().contains("refused"), health::toString);
    }
}
