package io.github.pgaq.demo;

import jakarta.persistence.Entity;
import jakarta.persistence.GeneratedValue;
import jakarta.persistence.GenerationType;
import jakarta.persistence.Id;

/** An order of a customer. */
@Entity
class ShopOrder {
    @Id
    @GeneratedValue(strategy = GenerationType.IDENTITY)
    private Long id;

    private String item;

    protected ShopOrder() {}

    ShopOrder(String item) {
        this.item = item;
    }

    Long getId() {
        return id;
    }
}
