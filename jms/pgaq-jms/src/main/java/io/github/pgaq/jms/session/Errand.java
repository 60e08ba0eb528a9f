package io.github.pgaq.jms.session;

import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Function;

/**
 * A task that runs on a thread of its own, on one at a time however long it takes. If it is asked for while it runs,
 * it runs once more. It does not throw.
 */
final class Errand {
    private final Function<Runnable, Thread> threads;
    private final Runnable task;
    private final AtomicInteger requests = new AtomicInteger();

    /**
     * Makes an errand.
     *
     * @param threads makes the thread
     */
    Errand(Function<Runnable, Thread> threads, Runnable task) {
        this.threads = threads;
        this.task = task;
    }

    /** Asks for a run that begins after this. */
    void run() {
        if (requests.getAndIncrement() == 0) {
            threads.apply(this::runAll).start();
        }
    }

    private void runAll() {
        int served;
        do {
            served = requests.get();
            task.run();
        } while (requests.addAndGet(-served) > 0);
    }
}
