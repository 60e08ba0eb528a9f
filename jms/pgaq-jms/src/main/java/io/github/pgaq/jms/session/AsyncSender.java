package io.github.pgaq.jms.session;

import io.github.pgaq.jms.store.Outgoing;
import jakarta.jms.BytesMessage;
import jakarta.jms.CompletionListener;
import jakarta.jms.IllegalStateException;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.StreamMessage;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Sends messages whose senders do not wait, in their order and in groups, and calls their completion listeners, one at
 * a time, on a thread of its own.
 */
final class AsyncSender implements Runnable {
    private static final Logger LOG = LoggerFactory.getLogger(AsyncSender.class);

    /** A message to send. */
    private static final class Job {
        private final Producer producer;
        private final Message message;
        private final Outgoing outgoing;
        private final CompletionListener listener;
        private Exception error;

        Job(Producer producer, Message message, Outgoing outgoing, CompletionListener listener) {
            this.producer = producer;
            this.message = message;
            this.outgoing = outgoing;
            this.listener = listener;
        }
    }

    private final ClientSession session;
    private final Gate gate;
    private final Settlement settlement;
    private final ReentrantLock lock = new ReentrantLock();
    private final Condition changed = lock.newCondition();

    // guarded by lock
    private List<Job> unsent = new ArrayList<>();
    private final List<Job> sent = new ArrayList<>();
    private Job calling;
    private int sending;
    private Thread thread;
    private boolean closed;

    AsyncSender(ClientSession session, Gate gate, Settlement settlement) {
        this.session = session;
        this.gate = gate;
        this.settlement = settlement;
    }

    /** Sends a message soon. */
    void send(Producer producer, Message message, Outgoing outgoing, CompletionListener listener)
            throws IllegalStateException {
        lock.lock();
        try {
            if (closed) {
                throw new IllegalStateException("the session is closed");
            }
            unsent.add(new Job(producer, message, outgoing, listener));
            if (thread == null) {
                thread = session.connection().thread("async", this);
                thread.start();
            }
            changed.signalAll();
        } finally {
            lock.unlock();
        }
    }

    /** Sends what was to be sent, so that what the caller sends comes behind it. The caller has entered the gate. */
    void flush() {
        List<Job> jobs;
        lock.lock();
        try {
            jobs = unsent;
            unsent = new ArrayList<>();
            sending += jobs.size();
        } finally {
            lock.unlock();
        }
        if (jobs.isEmpty()) {
            return;
        }
        sendAll(jobs);
        lock.lock();
        try {
            sent.addAll(jobs);
            sending -= jobs.size();
            changed.signalAll();
        } finally {
            lock.unlock();
        }
    }

    private void sendAll(List<Job> jobs) {
        try {
            settlement.send(jobs.stream().map(job -> job.outgoing).toList());
            return;
        } catch (JMSException | RuntimeException | Error e) {
            // an error, too: a group that one statement sends can be larger than the memory
            if (jobs.size() == 1 || settlement.isJoined()) {
                Exception error = e instanceof Exception exception ? exception : failed(e);
                jobs.forEach(job -> job.error = error);
                return;
            }
        }
        // one by one, so that each has its own result
        for (Job job : jobs) {
            sendAll(List.of(job));
        }
    }

    private static JMSException failed(Throwable cause) {
        JMSException e = new JMSException("could not send: " + cause);
        e.initCause(cause);
        return e;
    }

    /**
     * Waits until the sends of a producer, or all if it is null, are complete and their listeners have returned. Does
     * not wait for the listener that calls it.
     */
    void awaitIdle(Producer producer) {
        lock.lock();
        try {
            while (thread != Thread.currentThread() && isBusy(producer)) {
                changed.awaitUninterruptibly();
            }
        } finally {
            lock.unlock();
        }
    }

    private boolean isBusy(Producer producer) {
        return sending > 0
                || calling != null && isOf(calling, producer)
                || unsent.stream().anyMatch(job -> isOf(job, producer))
                || sent.stream().anyMatch(job -> isOf(job, producer));
    }

    private static boolean isOf(Job job, Producer producer) {
        return producer == null || job.producer == producer;
    }

    /** Refuses other sends, and ends the thread when all is sent. */
    void close() {
        lock.lock();
        try {
            closed = true;
            changed.signalAll();
        } finally {
            lock.unlock();
        }
        awaitIdle(null);
    }

    @Override
    public void run() {
        while (awaitWork()) {
            gate.enter();
            try {
                flush();
            } finally {
                gate.leave();
            }
            for (Job job = next(); job != null; job = next()) {
                call(job);
            }
        }
    }

    private boolean awaitWork() {
        lock.lock();
        try {
            while (!closed && unsent.isEmpty() && sent.isEmpty()) {
                changed.awaitUninterruptibly();
            }
            return !unsent.isEmpty() || !sent.isEmpty();
        } finally {
            lock.unlock();
        }
    }

    private Job next() {
        lock.lock();
        try {
            calling = sent.isEmpty() ? null : sent.remove(0);
            changed.signalAll();
            return calling;
        } finally {
            lock.unlock();
        }
    }

    private void call(Job job) {
        Callbacks.inCompletion(session, job.producer, () -> {
            try {
                if (job.message instanceof BytesMessage bytes) {
                    bytes.reset();
                } else if (job.message instanceof StreamMessage stream) {
                    stream.reset();
                }
                if (job.error == null) {
                    job.listener.onCompletion(job.message);
                } else {
                    job.listener.onException(job.message, job.error);
                }
            } catch (JMSException | RuntimeException | Error e) {
                LOG.warn("a completion listener failed", e);
            }
        });
        // an interrupt that it has left set ends no wait of the provider
        Thread.interrupted();
    }
}
