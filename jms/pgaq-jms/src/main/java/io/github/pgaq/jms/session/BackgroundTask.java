package io.github.pgaq.jms.session;

import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Function;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A task that runs on a thread of its own, on one at a time however long it takes. If it is asked for while it runs,
 * it runs once more. What it throws is logged.
 */
final class BackgroundTask {
    private static final Logger LOG = LoggerFactory.getLogger(BackgroundTask.class);
    private final Function<Runnable, Thread> threads;
    private final Runnable task;
    private final AtomicInteger requests = new AtomicInteger();

    /**
     * Makes a task.
     *
     * @param threads makes the thread
     */
    BackgroundTask(Function<Runnable, Thread> threads, Runnable task) {
        this.threads = threads;
        this.task = task;
    }

    /** Asks for a run that begins after this. */
    void run() {
        if (requests.getAndIncrement() == 0) {
            try {
                threads.apply(this::runAll).start();
            } catch (Throwable e) {
                requests.set(0);
                throw e;
            }
        }
    }

    private void runAll() {
        int served;
        do {
            served = requests.get();
            try {
                task.run();
            } catch (Throwable e) {
                LOG.error("a task in the background failed", e);
            }
        } while (requests.addAndGet(-served) > 0);
    }
}
