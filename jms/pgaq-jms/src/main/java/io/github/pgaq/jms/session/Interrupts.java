package io.github.pgaq.jms.session;

import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;

/**
 * Ends the waits for messages of threads that are interrupted: a thread that waits at the server reads from a socket,
 * which an interrupt does not end. One thread checks all waiting threads, and ends when none has waited for a second.
 */
final class Interrupts implements Runnable {
    private static final long LOOK_NANOS = 50_000_000;
    private static final int IDLE_LOOKS = 20;
    private static final Interrupts ALL = new Interrupts();

    private final ReentrantLock lock = new ReentrantLock();
    private final Condition never = lock.newCondition();
    // guarded by lock
    private final Map<Thread, Gate> waiting = new HashMap<>();
    private boolean running;

    private Interrupts() {}

    /** The calling thread waits at the gate's server until {@link #end}. */
    static void begin(Gate gate) {
        ALL.add(gate);
    }

    /** The calling thread no longer waits. */
    static void end() {
        ALL.remove();
    }

    private void add(Gate gate) {
        lock.lock();
        try {
            if (!running) {
                start("pgaq-jms-interrupts", this);
                running = true;
            }
            waiting.put(Thread.currentThread(), gate);
        } finally {
            lock.unlock();
        }
    }

    private void remove() {
        lock.lock();
        try {
            waiting.remove(Thread.currentThread());
        } finally {
            lock.unlock();
        }
    }

    private static void start(String name, Runnable task) {
        Thread thread = new Thread(null, task, name, 0, false);
        thread.setDaemon(true);
        // keeps no application in memory
        thread.setContextClassLoader(null);
        thread.start();
    }

    @Override
    public void run() {
        int idle = 0;
        while (idle < IDLE_LOOKS) {
            lock.lock();
            try {
                never.awaitNanos(LOOK_NANOS);
                idle = waiting.isEmpty() ? idle + 1 : 0;
                waiting.entrySet().removeIf(entry -> entry.getKey().isInterrupted() && wake(entry.getValue()));
            } catch (InterruptedException | OutOfMemoryError e) {
                // a program interrupts all threads, or no thread can be started now: try again at the next check
                idle = 0;
            } finally {
                running = idle < IDLE_LOOKS;
                lock.unlock();
            }
        }
    }

    /** Ends a wait, which is watched no longer. On a thread of its own: a server may not answer. */
    private static boolean wake(Gate gate) {
        start("pgaq-jms-interrupt", gate::wake);
        return true;
    }
}
