package io.github.pgaq.jms.message;

import jakarta.jms.Destination;

/** Makes destinations of their form in the database. */
@FunctionalInterface
public interface DestinationResolver {

    /**
     * Makes a destination.
     *
     * @param name {@code queue:NAME} or {@code topic:NAME}, as {@link Messages#nameOf} makes it
     * @return the destination, or null if the name has neither form
     */
    Destination resolve(String name);
}
