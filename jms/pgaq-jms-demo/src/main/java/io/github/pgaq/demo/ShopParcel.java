package io.github.pgaq.demo;

import jakarta.persistence.Entity;
import jakarta.persistence.GeneratedValue;
import jakarta.persistence.GenerationType;
import jakarta.persistence.Id;

/** A parcel for a customer. No unique index prevents a second one for the same order: {@link Shop} counts them. */
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
