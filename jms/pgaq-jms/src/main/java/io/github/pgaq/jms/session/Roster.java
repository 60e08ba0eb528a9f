package io.github.pgaq.jms.session;

import io.github.pgaq.jms.PgaqDestination;
import io.github.pgaq.jms.store.Lease;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.function.Predicate;

/** The consumers of a session, and what their buffers hold. A thread that uses buffers has entered the gate. */
final class Roster {
    private final List<Consumer> open = new CopyOnWriteArrayList<>();
    /** Closed consumers whose subscription is still needed for acknowledgements. Used by who has entered the gate. */
    private final List<Consumer> retired = new ArrayList<>();

    void add(Consumer consumer) {
        open.add(consumer);
    }

    void remove(Consumer consumer) {
        open.remove(consumer);
    }

    /** The consumers that are not closed. */
    List<Consumer> open() {
        return open;
    }

    boolean hasListeners() {
        return open.stream().anyMatch(consumer -> consumer.listener() != null);
    }

    /** The consumers with listeners. */
    List<Consumer> listening() {
        return open.stream().filter(consumer -> consumer.listener() != null).toList();
    }

    /** Whether a consumer consumes from the queue. */
    boolean consumesFrom(PgaqDestination destination) {
        return open.stream().anyMatch(consumer -> consumer.destination().equals(destination));
    }

    /** Keeps a closed consumer, until {@link #endRetired}. */
    void retire(Consumer consumer) {
        retired.add(consumer);
    }

    /** Removes a closed consumer that meets the condition, and returns it; null: there is none. */
    Consumer endRetired(Predicate<Consumer> condition) {
        Consumer ended = retired.stream().filter(condition).findFirst().orElse(null);
        retired.remove(ended);
        return ended;
    }

    /** Empties the buffers; returns the leases. */
    List<Lease> drain() {
        List<Lease> leases = new ArrayList<>();
        open.forEach(consumer -> leases.addAll(Intake.drain(consumer)));
        return leases;
    }

    /** Empties the buffers that were not used since this time, by System.nanoTime(); returns the leases. */
    List<Lease> drainIdle(long before) {
        List<Lease> leases = new ArrayList<>();
        for (Consumer consumer : open) {
            if (consumer.window().used() - before < 0 && !Intake.hasConsumed(consumer)) {
                leases.addAll(Intake.drain(consumer));
            }
        }
        return leases;
    }

    /** Whether a buffer has a message that the open transaction has consumed. */
    boolean hasConsumed() {
        return open.stream().anyMatch(Intake::hasConsumed);
    }

    /** The transaction that has consumed such messages is rolled back: the queue redelivers them. */
    void forgetConsumed() {
        open.forEach(consumer -> consumer.buffer().removeIf(taken -> taken.lease() == null));
    }
}
