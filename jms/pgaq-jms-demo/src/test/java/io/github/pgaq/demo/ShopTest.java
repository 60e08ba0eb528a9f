package io.github.pgaq.demo;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.pgaq.jms.ServerTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.springframework.boot.SpringApplication;
import org.springframework.context.ConfigurableApplicationContext;

/** Rows of JPA and messages are in one transaction. */
@Timeout(600)
class ShopTest extends ServerTest {

    @Test
    void eachOrderHasOneParcel() {
        try (ConfigurableApplicationContext shop =
                SpringApplication.run(Shop.class, "--spring.datasource.url=" + url(), "--shop.seconds=2")) {
            String checked = shop.getBean(Shop.class).check();
            assertTrue(checked.matches("Checked: each of [1-9].* orders has one parcel[.]"), checked);
        }
        // its listeners have ended
        assertEquals(Packing.ON_PURPOSE.get(), Packing.FAILURES.get());
    }
}
