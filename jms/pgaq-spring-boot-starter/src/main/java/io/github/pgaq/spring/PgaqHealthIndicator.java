package io.github.pgaq.spring;

import io.github.pgaq.jms.PgaqConnectionFactory;
import jakarta.jms.Connection;
import jakarta.jms.ConnectionFactory;
import java.time.Duration;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.springframework.boot.health.contributor.AbstractHealthIndicator;
import org.springframework.boot.health.contributor.Health;

/** Reports whether the server answers. Each check opens a connection, instead of using one that is kept. */
class PgaqHealthIndicator extends AbstractHealthIndicator {
    /** After this time a check that has no answer is given up, so that the next one connects again. */
    static final Duration PATIENCE = Duration.ofSeconds(30);

    private final ConnectionFactory factory;
    private final Duration timeout;
    private final Duration patience;
    private FutureTask<String> asking;
    private FutureTask<String> givenUp;
    private long began;

    /**
     * Makes an indicator with a factory of its own, whose connections take no client ID and do not wait for the server
     * without limit.
     */
    PgaqHealthIndicator(PgaqConnectionFactory factory, Duration timeout) {
        this((ConnectionFactory) factory, timeout, PATIENCE);
        factory.setClientId(null);
        String url = factory.getUrl();
        if (url != null && !url.contains("socketTimeout=")) {
            factory.setUrl(url + (url.contains("?") ? "&" : "?") + "socketTimeout=" + PATIENCE.toSeconds());
        }
    }

    PgaqHealthIndicator(ConnectionFactory factory, Duration timeout, Duration patience) {
        super("pgaq did not answer");
        this.factory = factory;
        this.timeout = timeout;
        this.patience = patience;
    }

    @Override
    protected void doHealthCheck(Health.Builder builder) throws Exception {
        try {
            builder.up().withDetail("provider", asked().get(timeout.toNanos(), TimeUnit.NANOSECONDS));
        } catch (TimeoutException e) {
            builder.down().withDetail("error", "no answer from the server within " + timeout.toMillis() + " ms");
        } catch (ExecutionException e) {
            builder.down(e.getCause());
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw e;
        }
    }

    /** Checks at the same time share one connection; a server that does not answer has two threads waiting at most. */
    private synchronized FutureTask<String> asked() {
        boolean idle = asking == null || asking.isDone();
        boolean late = !idle && System.nanoTime() - began > patience.toNanos();
        if (idle || late && (givenUp == null || givenUp.isDone())) {
            givenUp = late ? asking : givenUp;
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
