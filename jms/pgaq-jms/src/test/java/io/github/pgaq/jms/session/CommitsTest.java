package io.github.pgaq.jms.session;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.pgaq.jms.store.Ahead;
import io.github.pgaq.jms.store.Body;
import io.github.pgaq.jms.store.Content;
import io.github.pgaq.jms.store.Lease;
import io.github.pgaq.jms.store.Outgoing;
import io.github.pgaq.jms.store.Received;
import io.github.pgaq.jms.store.Source;
import io.github.pgaq.jms.store.Store;
import jakarta.jms.JMSException;
import jakarta.jms.Session;
import java.io.InputStream;
import java.sql.SQLException;
import java.time.Duration;
import java.util.AbstractList;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.UUID;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

/** Commits of several sessions at the same time. */
class CommitsTest extends SessionFixture {
    private static final long LONG = Long.MAX_VALUE / 4;

    private final Commits commits = new Commits(LONG);
    private final CountDownLatch begun = new CountDownLatch(1);
    private final CountDownLatch held = new CountDownLatch(1);
    private final AtomicInteger undecided = new AtomicInteger();

    private Link link() throws JMSException {
        Link link = new Link(server::open, options, new Link.Watcher() {
            @Override
            public void lost(SQLException cause, long worked) {}

            @Override
            public void restored(Store store) {}

            @Override
            public void failed(JMSException reason) {}

            @Override
            public boolean isClosed() {
                return false;
            }
        });
        link.open();
        return link;
    }

    private static Outgoing message(String text, Content content) {
        Body body = new Body("text", "{}", null, null, text, null, content);
        return new Outgoing("q", body, 5, 0, 0, null, null, null);
    }

    private Future<Void> commit(Commits to, String text, List<Lease> leases, Runnable deciding) throws JMSException {
        Link link = link();
        return async(() -> {
            to.commit(link, List.of(message(text, null)), leases, null, deciding);
            return null;
        });
    }

    /** A commit that is under way until held is counted down. */
    private Future<Void> hold() throws Exception {
        Future<Void> first = commit(commits, "first", List.of(), () -> {
            begun.countDown();
            try {
                held.await();
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
        });
        begun.await();
        return first;
    }

    private void awaitWaiting(int sessions) {
        while (commits.waiting() < sessions) {
            Thread.onSpinWait();
        }
    }

    /** Three that wait for the first one; the last of them with a lease. */
    private List<Future<Void>> three(List<Lease> leases) throws Exception {
        List<Future<Void>> others = new ArrayList<>();
        for (String text : List.of("a", "b", "c")) {
            others.add(commit(commits, text, text.equals("c") ? leases : List.of(), undecided::incrementAndGet));
            awaitWaiting(others.size());
        }
        return others;
    }

    private static Throwable cause(Future<Void> commit) {
        return assertThrows(ExecutionException.class, () -> get(commit)).getCause();
    }

    private static String state(Future<Void> commit) {
        return assertInstanceOf(SQLException.class, cause(commit)).getSQLState();
    }

    private Set<String> texts() {
        return new TreeSet<>(server.texts("q"));
    }

    @Test
    void thoseThatWaitGoTogether() throws Exception {
        Future<Void> first = hold();
        List<Future<Void>> others = three(List.of());
        held.countDown();
        get(first);
        for (Future<Void> other : others) {
            get(other);
        }
        assertEquals(List.of("first", "a", "b", "c"), server.texts("q"));
        assertEquals(List.of("begin", "send 1", "commit", "commitAtOnce 3 0", "decide"), server.calls);
        assertEquals(0, commits.waiting());
        get(commit(commits, "later", List.of(), () -> {}));
        assertEquals(2, server.count("commit"), "the first and the last one, alone");
    }

    @Test
    void aLeaseThatHasEndedConcernsItsSessionOnly() throws Exception {
        Future<Void> first = hold();
        List<Future<Void>> others = three(List.of(new Lease("q", null, UUID.randomUUID(), 7)));
        held.countDown();
        get(first);
        get(others.get(0));
        get(others.get(1));
        assertEquals(Store.LEASE_ENDED, state(others.get(2)));
        assertEquals(Set.of("first", "a", "b"), texts());
    }

    @Test
    void afterAnErrorEachCommitsAlone() throws Exception {
        Future<Void> first = hold();
        List<Future<Void>> others = three(List.of());
        server.fail("commitAtOnce", "40P01");
        held.countDown();
        get(first);
        for (Future<Void> other : others) {
            get(other);
        }
        assertEquals(1, server.count("commitAtOnce"));
        assertEquals(4, server.count("commit"));
        assertEquals(Set.of("first", "a", "b", "c"), texts());
    }

    @Test
    void aLostConnectionLeavesAllOutcomesOpen() throws Exception {
        Future<Void> first = hold();
        List<Future<Void>> others = three(List.of());
        server.fail("decide", "08006");
        held.countDown();
        get(first);
        assertEquals("08006", state(others.get(0)));
        assertEquals("08007", state(others.get(1)));
        assertEquals("08007", state(others.get(2)));
        assertEquals(3, undecided.get());
        assertEquals(1, server.count("commit"), "none is repeated");
        assertEquals(List.of("first"), server.texts("q"));
        get(commit(commits, "later", List.of(), () -> {}));
    }

    @Test
    void aConnectionLostBeforeTheCallConcernsItsSessionOnly() throws Exception {
        Future<Void> first = hold();
        List<Future<Void>> others = three(List.of());
        server.kill(server.stores.get(1));
        held.countDown();
        get(first);
        assertEquals("08006", state(others.get(0)));
        get(others.get(1));
        get(others.get(2));
        assertEquals(Set.of("first", "b", "c"), texts());
    }

    @Test
    void withoutMemoryTheOthersAreNotLeftWaiting() throws Exception {
        Future<Void> first = hold();
        List<Future<Void>> others = three(List.of());
        server.exhaust("decide");
        held.countDown();
        get(first);
        assertInstanceOf(OutOfMemoryError.class, cause(others.get(0)));
        assertEquals("08007", state(others.get(1)));
        assertEquals("08007", state(others.get(2)));
        get(commit(commits, "later", List.of(), () -> {}));
    }

    @Test
    void withoutMemoryForWhatGoesTogetherTheOthersCommitByThemselves() throws Exception {
        AtomicBoolean exhausted = new AtomicBoolean(true);
        List<Outgoing> without = new AbstractList<>() {
            private final Outgoing only = message("a", null);

            @Override
            public Outgoing get(int index) {
                return only;
            }

            @Override
            public int size() {
                return 1;
            }

            @Override
            public Object[] toArray() {
                if (exhausted.getAndSet(false)) {
                    throw new OutOfMemoryError("made to fail");
                }
                return super.toArray();
            }
        };
        Future<Void> first = hold();
        Future<Void> leads = commit(commits, "b", List.of(), () -> {});
        awaitWaiting(1);
        Link link = link();
        Future<Void> other = async(() -> {
            commits.commit(link, without, List.of(), null, () -> {});
            return null;
        });
        awaitWaiting(2);
        held.countDown();
        get(first);
        assertInstanceOf(OutOfMemoryError.class, cause(leads));
        get(other);
        assertFalse(exhausted.get());
        get(commit(commits, "later", List.of(), () -> {}));
        assertEquals(Set.of("first", "a", "later"), texts());
    }

    @Test
    void noneWaitsLongForACallThatHangs() throws Exception {
        Commits impatient = new Commits(1);
        Link link = link();
        impatient.commit(link, List.of(message("first", null)), List.of(), null, () -> {
            try {
                get(commit(impatient, "other", List.of(), () -> {}));
            } catch (Exception e) {
                throw new IllegalStateException(e);
            }
        });
        assertEquals(List.of("other", "first"), server.texts("q"));
    }

    @Test
    void whatIsLongGoesAtOnce() throws Exception {
        Future<Void> first = hold();
        Content content = InputStream::nullInputStream;
        commits.commit(link(), List.of(message("large", content)), List.of(), null, () -> {});
        commits.commit(link(), List.of(message("x".repeat(5 << 20), null)), List.of(), null, () -> {});
        assertEquals(2, server.texts("q").size());
        held.countDown();
        get(first);
    }

    @Test
    void aSessionThatIsToTakeMessagesGoesAtOnceAndTakesOthersAlong() throws Exception {
        Future<Void> first = hold();
        List<Future<Void>> others = three(List.of());
        server.text("r", "x", "y");
        Ahead ahead = new Ahead(new Source("r", null, null, 1), Duration.ofMinutes(1));
        Received received = commits.commit(link(), List.of(message("d", null)), List.of(), ahead, () -> {});
        assertEquals("x", received.messages().get(0).body().text());
        for (Future<Void> other : others) {
            get(other);
        }
        assertEquals(Set.of("a", "b", "c", "d"), texts());
        assertEquals(1, server.count("commitAtOnce"));
        Future<Void> later = commit(commits, "later", List.of(), () -> {});
        awaitWaiting(1);
        held.countDown();
        get(first);
        get(later);
    }

    @Test
    void aTakeThatFailsDoesNotKeepOthersFromCommitting() throws Exception {
        Future<Void> first = hold();
        List<Future<Void>> others = three(List.of());
        server.text("r", "x");
        server.fail("ahead", "42501");
        Ahead ahead = new Ahead(new Source("r", null, null, 1), Duration.ofMinutes(1));
        assertNull(commits.commit(link(), List.of(message("d", null)), List.of(), ahead, () -> {}));
        held.countDown();
        for (Future<Void> other : others) {
            get(other);
        }
        get(first);
        assertEquals(Set.of("a", "b", "c", "d", "first"), texts());
        assertEquals(0, server.attempts("r").get(0));
    }

    @Test
    void anInterruptedThreadLearnsTheOutcome() throws Exception {
        Future<Void> first = hold();
        Link link = link();
        Thread[] thread = new Thread[1];
        Future<Boolean> other = async(() -> {
            thread[0] = Thread.currentThread();
            commits.commit(link, List.of(message("other", null)), List.of(), null, () -> {});
            return Thread.interrupted();
        });
        awaitWaiting(1);
        thread[0].interrupt();
        assertFalse(other.isDone());
        held.countDown();
        get(first);
        assertTrue(get(other), "the interrupt is not lost");
        assertEquals(List.of("first", "other"), server.texts("q"));
    }

    @Test
    void theOrderOfATransactedSessionDoesNotDependOnTheConnection() throws Exception {
        ClientConnection connection = started();
        String one = connection.createSession(Session.SESSION_TRANSACTED).producer();
        String other = connection.createSession(Session.SESSION_TRANSACTED).producer();
        assertNotNull(one);
        assertNotEquals(one, other);
        assertNull(connection.createSession(Session.AUTO_ACKNOWLEDGE).producer(), "its own connection sends");
        FakeStore store = server.open();
        try (ClientConnection callers = new ClientConnection(() -> store, options, true, null)) {
            assertNull(callers.createSession(Session.SESSION_TRANSACTED).producer());
        }
    }
}
