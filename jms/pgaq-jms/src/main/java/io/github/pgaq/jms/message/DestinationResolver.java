package io.github.pgaq.jms.message;

import jakarta.jms.Destination;

/** Makes destinations of their form in the database. */
@FunctionalInterface
public interface DestinationResolver {

    /**
     * Makes a destination.
     *
     * @param name a destination's name with its kind, as {@link Messages#nameOf} makes it
     * @return the destination, or null if the name has no such form
     */
    Destination resolve(String name);
}
