package io.github.pgaq.jms.clients;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.pgaq.jms.PgaqConnectionFactory;
import io.github.pgaq.jms.ServerTest;
import java.util.List;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.camel.Exchange;
import org.apache.camel.Processor;
import org.apache.camel.ProducerTemplate;
import org.apache.camel.builder.RouteBuilder;
import org.apache.camel.component.jms.JmsComponent;
import org.apache.camel.impl.DefaultCamelContext;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Routes of Apache Camel. */
@Timeout(60)
class CamelTest extends ServerTest {

    private static final int LONG = 20;

    private final DefaultCamelContext camel = new DefaultCamelContext();
    private final BlockingQueue<String> bodies = new LinkedBlockingQueue<>();

    @AfterEach
    void stop() {
        camel.stop();
    }

    private ProducerTemplate start(String from, Processor processor) throws Exception {
        JmsComponent jms = JmsComponent.jmsComponentAutoAcknowledge(new PgaqConnectionFactory(url()));
        camel.addComponent("jms", jms);
        camel.addRoutes(new RouteBuilder() {
            @Override
            public void configure() {
                from(from).process(processor);
            }
        });
        camel.start();
        return camel.createProducerTemplate();
    }

    private String next() throws InterruptedException {
        return bodies.poll(LONG, TimeUnit.SECONDS);
    }

    @Test
    void transactedRouteRetriesAfterAnError() throws Exception {
        String queue = newQueue();
        AtomicInteger attempts = new AtomicInteger();
        ProducerTemplate producer =
                start("jms:" + queue + "?transacted=true&lazyCreateTransactionManager=false", exchange -> {
                    if (attempts.incrementAndGet() < 3) {
                        throw new IllegalStateException("fails on purpose");
                    }
                    bodies.add(exchange.getMessage().getBody(String.class));
                });
        producer.sendBody("jms:" + queue, "order");
        assertEquals("order", next());
        assertEquals(3, attempts.get());
    }

    @Test
    void requestGetsItsReply() throws Exception {
        String queue = newQueue();
        ProducerTemplate producer = start(
                "jms:" + queue,
                exchange -> exchange.getMessage().setBody(exchange.getMessage().getBody(String.class) + " too"));
        for (String text : List.of("a", "b", "c")) {
            assertEquals(text + " too", producer.requestBody("jms:" + queue, text, String.class));
        }
    }

    @Test
    void groupsAndHeadersArrive() throws Exception {
        String queue = newQueue();
        ProducerTemplate producer = start(
                "jms:" + queue,
                (Exchange exchange) -> bodies.add(exchange.getMessage().getHeader("JMSXGroupID") + " "
                        + exchange.getMessage().getHeader("weight") + " "
                        + exchange.getMessage().getBody(String.class)));
        producer.sendBodyAndHeaders("jms:" + queue, "parcel", Map.of("JMSXGroupID", "north", "weight", 5));
        assertEquals("north 5 parcel", next());
    }

    @Test
    void concurrentConsumersTakeEachMessageOnce() throws Exception {
        String queue = newQueue();
        ProducerTemplate producer = start(
                "jms:" + queue + "?concurrentConsumers=3",
                exchange -> bodies.add(exchange.getMessage().getBody(String.class)));
        for (int i = 0; i < 60; i++) {
            producer.sendBody("jms:" + queue, "m" + i);
        }
        for (int i = 0; i < 60; i++) {
            assertTrue(next() != null, "a message is missing after " + i);
        }
        camel.stop();
        assertTrue(bodies.isEmpty(), "a message came twice");
    }

    @Test
    void durableSubscriptionGetsWhatWasSentWhileAway() throws Exception {
        String topic = newTopic();
        String endpoint = "jms:topic:" + topic + "?clientId=" + newName("client") + "&durableSubscriptionName=news";
        ProducerTemplate producer =
                start(endpoint, exchange -> bodies.add(exchange.getMessage().getBody(String.class)));
        awaitValue(
                "1",
                "SELECT count(*) FROM aq.subscribers WHERE queue_name LIKE '%" + topic + "' AND consumer IS NOT NULL");
        String route = camel.getRoutes().get(0).getId();
        producer.sendBody("jms:topic:" + topic, "first");
        assertEquals("first", next());
        camel.getRouteController().stopRoute(route);
        producer.sendBody("jms:topic:" + topic, "while away");
        camel.getRouteController().startRoute(route);
        assertEquals("while away", next());
    }
}
