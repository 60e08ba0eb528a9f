package io.github.pgaq.demo;

import org.springframework.beans.factory.annotation.Value;
import org.springframework.boot.CommandLineRunner;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.context.annotation.Bean;
import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.jms.config.JmsListenerEndpointRegistry;

/**
 * A shop with JPA: an order and the message about it are one transaction ({@link Counter}); the message and the parcel
 * that it leads to are another one ({@link Packing}). Some transactions fail on purpose, and the program can be killed
 * at any time. At the end each committed order has one parcel.
 *
 * <p>{@code java -jar pgaq-jms-demo.jar --spring.datasource.url=jdbc:postgresql:... [--shop.seconds=10]}; with
 * {@code --shop.continue=true} it continues with the orders that another run has left.
 */
@SpringBootApplication
public class Shop {
    static final String QUEUE = "shop_orders";

    private final JdbcTemplate jdbc;

    Shop(JdbcTemplate jdbc) {
        this.jdbc = jdbc;
    }

    /** Starts the shop. */
    public static void main(String[] arguments) {
        System.exit(SpringApplication.exit(SpringApplication.run(Shop.class, arguments)));
    }

    @Bean
    CommandLineRunner run(
            Counter counter,
            JmsListenerEndpointRegistry listeners,
            @Value("${shop.seconds:10}") int seconds,
            @Value("${shop.continue:false}") boolean goesOn) {
        return arguments -> {
            if (!goesOn) {
                open();
            }
            listeners.start();
            long end = System.nanoTime() + seconds * 1_000_000_000L;
            int cancelled = 0;
            System.out.println("     orders   cancelled     parcels   listener failures");
            for (long second = System.nanoTime(); System.nanoTime() < end; ) {
                try {
                    counter.order("book");
                } catch (IllegalStateException e) {
                    cancelled++;
                }
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
        jdbc.execute("CREATE TABLE shop_parcel (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, order_id bigint)");
        jdbc.queryForList("SELECT aq.drop_queue(queue_name, true) FROM aq.queues WHERE queue_name = '" + QUEUE + "'");
        jdbc.queryForList(
                "SELECT aq.create_queue('" + QUEUE + "', 'aq.jms_message', retry_delay => '0', max_retries => 100)");
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
                "%,11d %,11d %,11d %,19d%n",
                count("shop_order"), cancelled, count("shop_parcel"), Packing.FAILURES.get());
    }

    /** Compares orders and parcels. */
    String check() {
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
