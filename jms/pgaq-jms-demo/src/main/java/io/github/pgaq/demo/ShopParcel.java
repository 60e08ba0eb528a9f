package io.github.pgaq.demo;

import jakarta.persistence.Entity;
import jakarta.persistence.GeneratedValue;
import jakarta.persistence.GenerationType;
import jakarta.persistence.Id;

/** What is sent to the customer. Two for one order would be a mistake that no unique index prevents. */
@Entity
class ShopParcel {
    @Id
    @GeneratedValue(strategy = GenerationType.IDENTITY)
    private Long id;

    private Long orderId;

    protected ShopParcel() {}

    ShopParcel(Long orderId) {
        this.orderId = orderId;
    }
}
