package io.github.pgaq.jms.session;

import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.Test;

/** Entering a gate while another thread waits at the server. */
class GateTest {
    private static final int CANCELS = 10;

    @Test
    void anInterruptedThreadCancelsNoMoreOften() throws Exception {
        CountDownLatch waiting = new CountDownLatch(1);
        CountDownLatch cancelled = new CountDownLatch(CANCELS);
        Gate gate = new Gate(cancelled::countDown);
        gate.setStarted(true);
        Thread waiter = new Thread(() -> {
            gate.enter();
            gate.beginWait(() -> true);
            waiting.countDown();
            try {
                cancelled.await();
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
            gate.endWaiting();
            gate.leave();
        });
        waiter.start();
        waiting.await();
        Thread.currentThread().interrupt();
        long began = System.nanoTime();
        gate.enter();
        long took = System.nanoTime() - began;
        assertTrue(Thread.interrupted(), "the interrupt is kept for the caller");
        // 20 ms lie between two of them
        assertTrue(took >= (CANCELS - 2) * 20_000_000L, took + " ns");
        gate.leave();
        waiter.join();
    }
}
