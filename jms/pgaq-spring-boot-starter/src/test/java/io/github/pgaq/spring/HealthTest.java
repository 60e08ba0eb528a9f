package io.github.pgaq.spring;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.pgaq.jms.PgaqConnectionFactory;
import jakarta.jms.ConnectionFactory;
import jakarta.jms.JMSException;
import java.lang.reflect.Proxy;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.time.Duration;
import java.util.Set;
import java.util.concurrent.CountDownLatch;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.springframework.boot.health.contributor.Health;
import org.springframework.boot.health.contributor.Status;

/** Health during outages. */
@Timeout(60)
class HealthTest {

    private static PgaqConnectionFactory factory(ServerSocket server) {
        return new PgaqConnectionFactory("jdbc:postgresql://127.0.0.1:" + server.getLocalPort() + "/shop?user=me");
    }

    @Test
    void aServerThatDoesNotAnswerIsDownAfterTheTimeout() throws Exception {
        // the kernel accepts the connection, and nothing reads from it
        try (ServerSocket silent = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            Health health = new PgaqHealthIndicator(factory(silent), Duration.ofMillis(200)).health();
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
        Health health = new PgaqHealthIndicator(factory(gone), Duration.ofSeconds(20)).health();
        assertEquals(Status.DOWN, health.getStatus());
        assertTrue(health.getDetails().get("error").toString().contains("refused"), health::toString);
    }

    private static Set<Thread> waiting() {
        return Thread.getAllStackTraces().keySet().stream()
                .filter(thread -> thread.getName().equals("pgaq-health"))
                .collect(Collectors.toSet());
    }

    private static PgaqHealthIndicator silentUntil(CountDownLatch end, Duration timeout) {
        ConnectionFactory silent = (ConnectionFactory) Proxy.newProxyInstance(
                HealthTest.class.getClassLoader(),
                new Class<?>[] {ConnectionFactory.class},
                (self, method, arguments) -> {
                    end.await();
                    throw new JMSException("the server is gone");
                });
        return new PgaqHealthIndicator(silent, timeout, Duration.ZERO);
    }

    @Test
    void twoThreadsAtMostWaitForAServerThatDoesNotAnswer() {
        Set<Thread> before = waiting();
        CountDownLatch end = new CountDownLatch(1);
        PgaqHealthIndicator indicator = silentUntil(end, Duration.ofMillis(1));
        for (int i = 0; i < 5; i++) {
            assertEquals(Status.DOWN, indicator.health().getStatus());
        }
        Set<Thread> started = waiting();
        started.removeAll(before);
        end.countDown();
        assertEquals(2, started.size());
    }

    @Test
    void aThreadThatWaitsForTheServerGivesUp() {
        PgaqConnectionFactory factory = new PgaqConnectionFactory("jdbc:postgresql://silent/shop");
        new PgaqHealthIndicator(factory, Duration.ofSeconds(2));
        assertEquals("jdbc:postgresql://silent/shop?socketTimeout=30", factory.getUrl());
    }

    @Test
    void anInterruptIsKept() {
        CountDownLatch end = new CountDownLatch(1);
        Thread.currentThread().interrupt();
        Health health = silentUntil(end, Duration.ofSeconds(20)).health();
        assertTrue(Thread.interrupted());
        end.countDown();
        assertEquals(Status.DOWN, health.getStatus());
    }
}
