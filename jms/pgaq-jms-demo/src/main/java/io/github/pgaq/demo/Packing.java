package io.github.pgaq.demo;

import jakarta.jms.ConnectionFactory;
import jakarta.persistence.EntityManager;
import java.util.concurrent.atomic.AtomicInteger;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.jms.annotation.JmsListener;
import org.springframework.jms.config.DefaultJmsListenerContainerFactory;
import org.springframework.transaction.PlatformTransactionManager;

/** Makes a parcel of each order. */
@Configuration
class Packing {
    static final AtomicInteger FAILURES = new AtomicInteger();
    static final AtomicInteger ON_PURPOSE = new AtomicInteger();

    private final EntityManager entities;

    Packing(EntityManager entities) {
        this.entities = entities;
    }

    /** Listeners that take a message, and write, in one transaction. */
    @Bean
    static DefaultJmsListenerContainerFactory oneTransaction(
            ConnectionFactory connections, PlatformTransactionManager manager) {
        DefaultJmsListenerContainerFactory factory = new DefaultJmsListenerContainerFactory();
        factory.setConnectionFactory(connections);
        factory.setTransactionManager(manager);
        factory.setErrorHandler(error -> FAILURES.incrementAndGet());
        factory.setAutoStartup(false);
        return factory;
    }

    /** The row and the receipt of the message are committed together, or neither: then it is delivered again. */
    @JmsListener(id = "packing", destination = Shop.QUEUE, containerFactory = "oneTransaction", concurrency = "4")
    void pack(String order) {
        entities.persist(new ShopParcel(Long.valueOf(order)));
        if (Math.random() < 0.05) {
            ON_PURPOSE.incrementAndGet();
            throw new IllegalStateException("the parcel broke");
        }
    }
}
