package io.github.pgaq.spring;

import jakarta.jms.Connection;
import jakarta.jms.ConnectionFactory;
import java.time.Duration;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.springframework.boot.health.contributor.AbstractHealthIndicator;
import org.springframework.boot.health.contributor.Health;
import org.springframework.jms.connection.SingleConnectionFactory;

/** Says whether the server answers: it connects for each check, instead of using a connection that is kept. */
class PgaqHealthIndicator extends AbstractHealthIndicator {
    /** After this time a check that has no answer is given up, so that the next one connects again. */
    private static final long GIVEN_UP_NANOS = TimeUnit.SECONDS.toNanos(30);

    private final ConnectionFactory factory;
    private final Duration timeout;
    private FutureTask<String> asking;
    private long began;

    PgaqHealthIndicator(ConnectionFactory factory, Duration timeout) {
        super("pgaq did not answer");
        this.factory = factory instanceof SingleConnectionFactory kept && kept.getTargetConnectionFactory() != null
                ? kept.getTargetConnectionFactory()
                : factory;
        this.timeout = timeout;
    }

    @Override
    protected void doHealthCheck(Health.Builder builder) throws Exception {
        try {
            builder.up().withDetail("provider", asked().get(timeout.toNanos(), TimeUnit.NANOSECONDS));
        } catch (TimeoutException e) {
            builder.down().withDetail("error", "no answer from the server within " + timeout.toMillis() + " ms");
        } catch (ExecutionException e) {
            builder.down(e.getCause());
        }
    }

    /** Checks at the same time share one connection; a server that does not answer has one thread waiting. */
    private synchronized FutureTask<String> asked() {
        if (asking == null || asking.isDone() || System.nanoTime() - began > GIVEN_UP_NANOS) {
            asking = new FutureTask<>(this::ask);
            began = System.nanoTime();
            Thread thread = new Thread(asking, "pgaq-health");
            thread.setDaemon(true);
            thread.start();
        }
        return asking;
    }

    private String ask() throws Exception {
        try (Connection connection = factory.createConnection()) {
            return connection.getMetaData().getJMSProviderName();
        }
    }
}
