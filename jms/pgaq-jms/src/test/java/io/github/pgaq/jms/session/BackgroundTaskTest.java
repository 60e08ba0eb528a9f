package io.github.pgaq.jms.session;

import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.Test;

/** Tasks that run on a thread of their own. */
class BackgroundTaskTest {
    private final Semaphore runs = new Semaphore(0);

    private void assertRuns() throws InterruptedException {
        assertTrue(runs.tryAcquire(60, TimeUnit.SECONDS));
    }

    /** An error ends one run, not those that are asked for later. */
    @Test
    void aTaskThatThrowsRunsAgain() throws InterruptedException {
        BackgroundTask background = new BackgroundTask(Thread::new, () -> {
            runs.release();
            throw new AssertionError("thrown by the test");
        });
        for (int i = 0; i < 3; i++) {
            background.run();
            assertRuns();
        }
    }

    /** There was no thread for it once. */
    @Test
    void aTaskWhoseThreadDoesNotStartRunsLater() throws InterruptedException {
        AtomicBoolean first = new AtomicBoolean(true);
        BackgroundTask background = new BackgroundTask(
                task -> {
                    if (first.getAndSet(false)) {
                        throw new OutOfMemoryError("thrown by the test");
                    }
                    return new Thread(task);
                },
                runs::release);
        assertThrows(OutOfMemoryError.class, background::run);
        background.run();
        assertRuns();
    }
}
