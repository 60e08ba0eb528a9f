package io.github.pgaq.demo;

import jakarta.persistence.EntityManager;
import org.springframework.jms.core.JmsTemplate;
import org.springframework.stereotype.Service;
import org.springframework.transaction.annotation.Transactional;

/** Takes orders. */
@Service
class Counter {
    private final EntityManager entities;
    private final JmsTemplate jms;

    Counter(EntityManager entities, JmsTemplate jms) {
        this.entities = entities;
        this.jms = jms;
    }

    /** The row and the message are committed together, or neither. Every twentieth order is cancelled. */
    @Transactional
    public void order(String item) {
        ShopOrder order = new ShopOrder(item);
        entities.persist(order);
        jms.convertAndSend(Shop.QUEUE, order.getId().toString());
        if (order.getId() % 20 == 0) {
            throw new IllegalStateException("the customer has thought better of it");
        }
    }
}
