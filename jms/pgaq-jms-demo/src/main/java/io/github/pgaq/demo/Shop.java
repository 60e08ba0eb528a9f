package io.github.pgaq.demo;

import jakarta.jms.ConnectionFactory;
import java.util.concurrent.atomic.AtomicInteger;
import org.springframework.beans.factory.annotation.Value;
import org.springframework.boot.CommandLineRunner;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.context.annotation.Bean;
import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.jms.annotation.JmsListener;
import org.springframework.jms.config.DefaultJmsListenerContainerFactory;
import org.springframework.jms.config.JmsListenerEndpointRegistry;
import org.springframework.jms.core.JmsTemplate;
import org.springframework.transaction.PlatformTransactionManager;
import org.springframework.transaction.support.TransactionTemplate;

/**
 * A shop: an order and the message about it are one transaction; the message and the parcel that it leads to are
 * another one. Some transactions fail on purpose. At the end each committed order has one parcel.
 *
 * <p>{@code java -jar pgaq-jms-demo.jar --spring.datasource.url=jdbc:postgresql:... [--shop.seconds=10]}
 */
@SpringBootApplication
public class Shop {
    private static final String QUEUE = "shop_orders";
    private static final AtomicInteger FAILURES = new AtomicInteger();

    private final JdbcTemplate jdbc;

    Shop(JdbcTemplate jdbc) {
        this.jdbc = jdbc;
    }

    /** Starts the shop. */
    public static void main(String[] arguments) {
        System.exit(SpringApplication.exit(SpringApplication.run(Shop.class, arguments)));
    }

    /** Listeners that take a message, and write, in one transaction of the DataSource. */
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

    @JmsListener(id = "packing", destination = QUEUE, containerFactory = "oneTransaction", concurrency = "4")
    void pack(String order) {
        jdbc.update("INSERT INTO shop_parcel (order_id) VALUES (?)", Long.valueOf(order));
        if (Math.random() < 0.05) {
            throw new IllegalStateException("the parcel broke");
        }
    }

    @Bean
    CommandLineRunner run(
            JmsTemplate jms,
            PlatformTransactionManager manager,
            JmsListenerEndpointRegistry listeners,
            @Value("${shop.seconds:10}") int seconds) {
        return arguments -> {
            open();
            listeners.start();
            long end = System.nanoTime() + seconds * 1_000_000_000L;
            int cancelled = 0;
            TransactionTemplate transaction = new TransactionTemplate(manager);
            System.out.println("     orders   cancelled     parcels   listener failures");
            for (long second = System.nanoTime(); System.nanoTime() < end; ) {
                cancelled += order(transaction, jms) ? 0 : 1;
                if (System.nanoTime() - second >= 1_000_000_000L) {
                    second = System.nanoTime();
                    show(cancelled);
                }
            }
            awaitParcels();
            show(cancelled);
            System.out.println(check());
        };
    }

    private void open() {
        jdbc.execute("DROP TABLE IF EXISTS shop_parcel, shop_order");
        jdbc.execute("CREATE TABLE shop_order (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, item text)");
        // no unique index: a message that came twice would be seen
        jdbc.execute("CREATE TABLE shop_parcel (order_id bigint)");
        jdbc.queryForList("SELECT aq.drop_queue(queue_name, true) FROM aq.queues WHERE queue_name = '" + QUEUE + "'");
        jdbc.queryForList(
                "SELECT aq.create_queue('" + QUEUE + "', 'aq.jms_message', retry_delay => '0', max_retries => 100)");
    }

    /** One order; every twentieth is cancelled, and its message with it. */
    private boolean order(TransactionTemplate transaction, JmsTemplate jms) {
        return Boolean.TRUE.equals(transaction.execute(status -> {
            Long id = jdbc.queryForObject("INSERT INTO shop_order (item) VALUES ('book') RETURNING id", Long.class);
            jms.convertAndSend(QUEUE, id.toString());
            if (id % 20 == 0) {
                status.setRollbackOnly();
            }
            return id % 20 != 0;
        }));
    }

    private long count(String table) {
        return jdbc.queryForObject("SELECT count(*) FROM " + table, Long.class);
    }

    private void awaitParcels() throws InterruptedException {
        long end = System.nanoTime() + 60_000_000_000L;
        while (count("shop_parcel") < count("shop_order") && System.nanoTime() < end) {
            Thread.sleep(100);
        }
    }

    private void show(int cancelled) {
        System.out.printf(
                "%,11d %,11d %,11d %,19d%n", count("shop_order"), cancelled, count("shop_parcel"), FAILURES.get());
    }

    private String check() {
        long wrong = jdbc.queryForObject("""
            SELECT count(*) FROM (
                SELECT o.id, count(p.order_id) AS parcels
                FROM shop_order o FULL JOIN shop_parcel p ON p.order_id = o.id
                GROUP BY o.id) counted
            WHERE id IS NULL OR parcels <> 1\
            """, Long.class);
        return wrong == 0
                ? String.format("Checked: each of %,d orders has one parcel.", count("shop_order"))
                : "CHECK FAILED: " + wrong + " orders or parcels have no or several counterparts.";
    }
}
