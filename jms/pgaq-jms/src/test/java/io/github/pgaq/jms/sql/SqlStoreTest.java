package io.github.pgaq.jms.sql;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.pgaq.jms.ServerTest;
import io.github.pgaq.jms.store.Ahead;
import io.github.pgaq.jms.store.Body;
import io.github.pgaq.jms.store.Content;
import io.github.pgaq.jms.store.Delivery;
import io.github.pgaq.jms.store.Lease;
import io.github.pgaq.jms.store.Outgoing;
import io.github.pgaq.jms.store.Received;
import io.github.pgaq.jms.store.Source;
import io.github.pgaq.jms.store.Store;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.nio.charset.StandardCharsets;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.function.Executable;

@Timeout(60)
class SqlStoreTest extends ServerTest {

    private static final Duration LEASE = Duration.ofMinutes(1);

    private final List<SqlStore> stores = new ArrayList<>();
    private String queue;
    private SqlStore store;

    @BeforeEach
    void open() throws SQLException {
        queue = newQueue();
        store = newStore();
    }

    @AfterEach
    void close() throws SQLException {
        for (SqlStore each : stores) {
            each.close();
        }
    }

    private SqlStore newStore() throws SQLException {
        SqlStore made = new SqlStore(connect(), true);
        stores.add(made);
        return made;
    }

    private static Outgoing text(String queue, String text) {
        return new Outgoing(queue, new Body("text", "{}", null, null, text, null), 4, 0, 0, null, null, null);
    }

    private static Outgoing colored(String queue, String text, String color) {
        Body body = new Body("text", "{}", "{\"color\": \"" + color + "\"}", null, text, null);
        return new Outgoing(queue, body, 4, 0, 0, null, null, null);
    }

    private static Outgoing urgent(String queue, String text, int priority) {
        return new Outgoing(queue, text(queue, text).body(), priority, 0, 0, null, null, null);
    }

    private static Source all(String queue) {
        return new Source(queue, null, null, 100);
    }

    private static List<String> texts(Received received) {
        return received.messages().stream().map(m -> m.body().text()).toList();
    }

    private Received take(Source... sources) throws SQLException {
        return store.receive(List.of(sources), Duration.ZERO, null, List.of());
    }

    private Received lease(SqlStore by, Source... sources) throws SQLException {
        return by.receive(List.of(sources), Duration.ZERO, LEASE, List.of());
    }

    private static List<Lease> leases(String queue, Received received) {
        return received.messages().stream()
                .map(m -> new Lease(queue, null, m.msgid(), m.receipt()))
                .toList();
    }

    /** A receive in another thread. */
    private CompletableFuture<Received> waiting(SqlStore by, Duration timeout, Duration lease, Source... sources)
            throws SQLException {
        return CompletableFuture.supplyAsync(() -> {
            try {
                return by.receive(List.of(sources), timeout, lease, List.of());
            } catch (SQLException e) {
                throw new IllegalStateException(e);
            }
        });
    }

    /** Another transaction, of a session that is lost, say, still has the lease; it ends soon. */
    @Test
    void busyLeasesAreNotLost() throws Exception {
        store.send(List.of(text(queue, "one"), text(queue, "two")));
        List<Lease> leases = leases(queue, lease(store, all(queue)));
        try (Connection other = connect()) {
            other.setAutoCommit(false);
            extend(other, leases.get(1));
            assertEquals(List.of(), store.extend(leases, LEASE), "extended, or busy");
            CompletableFuture<List<Lease>> ended = CompletableFuture.supplyAsync(() -> {
                try {
                    return store.acknowledge(leases);
                } catch (SQLException e) {
                    throw new IllegalStateException(e);
                }
            });
            until("SELECT count(*) = 1 FROM aq.messages WHERE queue_name = '" + queue + "' AND state = 'PROCESSED'");
            other.commit();
            assertEquals(List.of(), ended.get(20, TimeUnit.SECONDS));
        }
        assertEquals(leases, store.acknowledge(leases));
    }

    /** The wait for messages begins when they are acknowledged. */
    @Test
    void busyLeasesAreAcknowledgedBeforeTheWait() throws Exception {
        store.send(List.of(text(queue, "one")));
        List<Lease> leases = leases(queue, lease(store, all(queue)));
        String next = newQueue();
        try (Connection other = connect()) {
            other.setAutoCommit(false);
            extend(other, leases.get(0));
            String pid = pid(store);
            CompletableFuture<Received> received = CompletableFuture.supplyAsync(() -> {
                try {
                    return store.receive(List.of(all(next)), null, LEASE, leases);
                } catch (SQLException e) {
                    throw new IllegalStateException(e);
                }
            });
            until("SELECT query LIKE '%aq_jms.acknowledge%' FROM pg_stat_activity WHERE pid = " + pid);
            other.rollback();
            until("SELECT wait_event_type = 'Extension' FROM pg_stat_activity WHERE pid = " + pid);
            assertEquals(
                    "0",
                    value("SELECT count(*) FROM aq.messages WHERE queue_name = '" + queue + "' AND state = 'LEASED'"));
            newStore().send(List.of(text(next, "news")));
            Received got = received.get(20, TimeUnit.SECONDS);
            assertEquals(List.of("news"), texts(got));
            assertEquals(List.of(), got.stale());
        }
    }

    /** One that stays busy is an error, not a lease that has ended. */
    @Test
    void leasesThatStayBusyAreAnError() throws Exception {
        store.send(List.of(text(queue, "one")));
        List<Lease> leases = leases(queue, lease(store, all(queue)));
        try (Connection other = connect()) {
            other.setAutoCommit(false);
            extend(other, leases.get(0));
            assertEquals(
                    "55P03",
                    assertThrows(SQLException.class, () -> store.acknowledge(leases))
                            .getSQLState());
        }
        assertEquals(List.of(), store.acknowledge(leases));
    }

    private static void extend(Connection by, Lease lease) throws SQLException {
        try (Statement statement = by.createStatement()) {
            statement.execute("SELECT aq.extend('" + lease.queue() + "', ARRAY['" + lease.msgid() + "']::uuid[], "
                    + lease.receipt() + ", '1 hour')");
        }
    }

    @Test
    void describesQueues() throws SQLException {
        assertEquals(queue, store.describe(queue).name());
        assertFalse(store.describe(queue).topic());
        assertTrue(store.describe(newTopic()).topic());
        assertEquals("aq.jms_message", store.describe(queue).payloadType());
        assertEquals(5, store.describe(queue).maxRetries());
        assertEquals(
                "42704",
                assertThrows(SQLException.class, () -> store.describe("absent")).getSQLState());
    }

    @Test
    void sendsEachFieldAndReceivesIt() throws SQLException {
        byte[] bytes = new byte[256];
        IntStream.range(0, 256).forEach(i -> bytes[i] = (byte) i);
        Body body =
                new Body("bytes", "{\"message_id\": \"ID:1\"}", "{\"a\": 1}", "{\"a\": \"short\"}", "ä\"\\\n", bytes);
        long before = System.currentTimeMillis();
        store.send(List.of(new Outgoing(queue, body, 7, 0, 60_000, "c", null, null)));
        Delivery got = take(all(queue)).messages().get(0);
        assertEquals("bytes", got.body().type());
        assertEquals(body.headers(), got.body().headers());
        assertEquals(body.properties(), got.body().properties());
        assertEquals(body.propertyTypes(), got.body().propertyTypes());
        assertEquals(body.text(), got.body().text());
        assertArrayEquals(bytes, got.body().bytes());
        assertEquals(7, got.priority());
        assertEquals(0, got.attempts());
        assertEquals(0, got.receipt());
        assertEquals(0, got.readyTime());
        assertTrue(Math.abs(got.enqueueTime() - before) < 20_000);
        assertTrue(Math.abs(got.expireTime() - before - 60_000) < 20_000);
        assertNull(got.sender());
    }

    @Test
    void sendsManyInTheirOrder() throws SQLException {
        List<String> wanted = IntStream.range(0, 50).mapToObj(i -> "m" + i).toList();
        store.send(wanted.stream().map(t -> text(queue, t)).toList());
        assertEquals(wanted, texts(take(all(queue))));
    }

    @Test
    void sendsMixedMessagesInTheirOrder() throws SQLException {
        String other = newQueue();
        List<Outgoing> messages = new ArrayList<>();
        for (int i = 0; i < 12; i++) {
            Body body = new Body(
                    "bytes", "{}", null, null, i % 2 == 0 ? null : "t" + i, ("b" + i).getBytes(StandardCharsets.UTF_8));
            messages.add(new Outgoing(i % 3 == 0 ? other : queue, body, i < 6 ? 4 : 1, 0, 0, null, null, null));
        }
        store.send(messages);
        assertEquals(
                List.of("b6", "b9", "b0", "b3"),
                take(all(other)).messages().stream()
                        .map(m -> new String(m.body().bytes(), StandardCharsets.UTF_8))
                        .toList());
        assertEquals(
                List.of("b7", "b8", "b10", "b11", "b1", "b2", "b4", "b5"),
                take(all(queue)).messages().stream()
                        .map(m -> new String(m.body().bytes(), StandardCharsets.UTF_8))
                        .toList());
    }

    @Test
    void sendsWithADelay() throws SQLException {
        store.send(List.of(new Outgoing(queue, text(queue, "much later").body(), 4, 3_600_000, 0, null, null, null)));
        assertEquals(List.of(), take(all(queue)).messages());
        store.send(List.of(new Outgoing(queue, text(queue, "later").body(), 4, 300, 0, null, null, null)));
        Received received = store.receive(List.of(all(queue)), Duration.ofSeconds(20), null, List.of());
        assertEquals(List.of("later"), texts(received));
        assertTrue(received.messages().get(0).readyTime()
                > received.messages().get(0).enqueueTime());
    }

    @Test
    void ordersByPriority() throws SQLException {
        store.send(List.of(urgent(queue, "c", 9), urgent(queue, "b", 4), urgent(queue, "a", 0)));
        assertEquals(List.of("a", "b", "c"), texts(take(all(queue))));
    }

    @Test
    void takesFromTheFirstSourceThatHasSome() throws SQLException {
        String other = newQueue();
        store.send(List.of(text(other, "x")));
        Received received = take(all(queue), all(other));
        assertEquals(1, received.source());
        assertEquals(List.of("x"), texts(received));
        assertEquals(-1, take(all(queue), all(other)).source());
    }

    @Test
    void takesWhatMeetsTheCondition() throws SQLException {
        store.send(List.of(colored(queue, "1", "red"), colored(queue, "2", "blue")));
        Source blue = new Source(queue, null, "payload.properties->>'color' = 'blue'", 10);
        assertEquals(List.of("2"), texts(take(blue)));
        assertEquals(List.of(), texts(take(blue)));
        assertEquals(List.of("1"), texts(take(all(queue))));
    }

    @Test
    void waitsForAMessageThatMeetsTheCondition() throws Exception {
        store.send(List.of(colored(queue, "1", "red")));
        Source blue = new Source(queue, null, "payload.properties->>'color' = 'blue'", 10);
        CompletableFuture<Received> result = waiting(newStore(), null, null, blue);
        store.send(List.of(colored(queue, "2", "green"), colored(queue, "3", "blue")));
        assertEquals(List.of("3"), texts(result.get(30, TimeUnit.SECONDS)));
    }

    @Test
    void waitsForAMessageOfAnySource() throws Exception {
        String other = newQueue();
        CompletableFuture<Received> result = waiting(newStore(), null, LEASE, all(queue), all(other));
        store.send(List.of(text(other, "x")));
        assertEquals(1, result.get(30, TimeUnit.SECONDS).source());
    }

    @Test
    void theWaitEndsAtItsTimeout() throws SQLException {
        long began = System.nanoTime();
        Received received = store.receive(List.of(all(queue)), Duration.ofMillis(200), null, List.of());
        assertEquals(-1, received.source());
        assertTrue(System.nanoTime() - began >= 200_000_000L);
    }

    @Test
    void leasesAndAcknowledges() throws SQLException {
        store.send(List.of(text(queue, "a"), text(queue, "b")));
        Received first = lease(store, all(queue));
        assertTrue(first.messages().get(0).receipt() != 0);
        assertEquals(List.of(), lease(newStore(), all(queue)).messages());
        assertEquals(List.of(), store.extend(leases(queue, first), LEASE));
        assertEquals(List.of(), store.acknowledge(leases(queue, first)));
        assertEquals(2, store.acknowledge(leases(queue, first)).size());
        assertEquals(2, store.extend(leases(queue, first), LEASE).size());
        assertEquals(2, store.release(leases(queue, first), null, null, true).size());
    }

    @Test
    void acknowledgesAndTakesInOneCall() throws SQLException {
        store.send(List.of(text(queue, "a"), text(queue, "b")));
        Source one = new Source(queue, null, null, 1);
        Received first = lease(store, one);
        Received second = store.receive(List.of(one), Duration.ZERO, LEASE, leases(queue, first));
        assertEquals(List.of("b"), texts(second));
        assertEquals(List.of(), second.stale());
        Received third = store.receive(List.of(one), Duration.ZERO, LEASE, leases(queue, first));
        assertEquals(leases(queue, first), third.stale());
        assertEquals(leases(queue, second).size(), 1);
        assertEquals(
                List.of(),
                store.receive(List.of(), null, LEASE, leases(queue, second)).stale());
    }

    @Test
    void releasedMessagesComeAgain() throws SQLException {
        store.send(List.of(text(queue, "a")));
        Received first = lease(store, all(queue));
        store.release(leases(queue, first), Duration.ZERO, "failed", true);
        Received second = lease(store, all(queue));
        assertEquals(1, second.messages().get(0).attempts());
        store.release(leases(queue, second), null, null, false);
        Received third = lease(store, all(queue));
        assertEquals(1, third.messages().get(0).attempts());
    }

    @Test
    void browsesWithoutTaking() throws SQLException {
        store.send(List.of(text(queue, "a"), text(queue, "b"), text(queue, "c")));
        List<Delivery> two = store.browse(new Source(queue, null, null, 2), null);
        assertEquals(List.of("a", "b"), two.stream().map(m -> m.body().text()).toList());
        List<Delivery> rest =
                store.browse(new Source(queue, null, null, 2), two.get(1).msgid());
        assertEquals(List.of("c"), rest.stream().map(m -> m.body().text()).toList());
        assertEquals(3, take(all(queue)).messages().size());
    }

    @Test
    void moreThanACallCanHaveIsSentInOneTransaction() throws SQLException {
        List<Integer> sizes = new ArrayList<>();
        store = new SqlStore(recorded(connect(), sizes), true);
        stores.add(store);
        store.mostInCall = 1000;
        List<Outgoing> messages = List.of(
                text(queue, "a".repeat(2000)),
                text(queue, "b".repeat(600)),
                text(queue, "c".repeat(600)),
                text(queue, "d"));
        store.send(messages);
        List<String> expected = messages.stream().map(m -> m.body().text()).toList();
        assertEquals(expected, texts(take(all(queue))));
        store.commit(messages, List.of(), () -> {});
        assertEquals(expected, texts(take(all(queue))));
        // a, b, and c with d, each time
        assertEquals(
                List.of(2, 0, 0, 2, 0, 0),
                sizes.stream().map(size -> size / 1000).toList());
        List<Outgoing> failing = List.of(text(queue, "a".repeat(2000)), text("no_such_queue", "b".repeat(2000)));
        assertThrows(SQLException.class, () -> store.send(failing));
        assertThrows(SQLException.class, () -> store.commit(failing, List.of(), () -> {}));
        store.rollback();
        assertEquals(List.of(), texts(take(all(queue))));
    }

    /** A connection that notes the size of each value of bytes that is passed to a statement. */
    private static Connection recorded(Connection connection, List<Integer> sizes) {
        return proxy(
                Connection.class,
                connection,
                (method, arguments, result) -> result instanceof PreparedStatement statement
                        ? proxy(PreparedStatement.class, statement, (setter, values, nothing) -> {
                            if (setter.equals("setBytes") && values[1] != null) {
                                sizes.add(((byte[]) values[1]).length);
                            }
                            return nothing;
                        })
                        : result);
    }

    /** What comes of a call. */
    private interface After {
        Object result(String method, Object[] arguments, Object result);
    }

    private static <T> T proxy(Class<T> type, T object, After after) {
        return type.cast(Proxy.newProxyInstance(
                type.getClassLoader(), new Class<?>[] {type}, (self, method, arguments) -> {
                    try {
                        return after.result(method.getName(), arguments, method.invoke(object, arguments));
                    } catch (InvocationTargetException e) {
                        throw e.getCause();
                    }
                }));
    }

    @Test
    void aCallThatRunsOutOfMemoryLeavesNoTransaction() throws SQLException {
        Content content = () -> {
            throw new OutOfMemoryError("made to fail");
        };
        Body body = new Body("bytes", "{\"content_length\": 5000000}", null, null, null, null, content);
        Outgoing large = new Outgoing(queue, body, 4, 0, 0, null, null, null);
        assertThrows(OutOfMemoryError.class, () -> store.send(List.of(text(queue, "a"), large)));
        store.send(List.of(text(queue, "b")));
        assertEquals(List.of("b"), texts(lease(newStore(), all(queue))));
    }

    @Test
    void messagesBehindTheLimitOfBytesComeWithoutBody() throws SQLException {
        store.send(List.of(text(queue, "a".repeat(2000)), text(queue, "b".repeat(2000)), text(queue, "c")));
        Source limited = new Source(queue, null, null, 100, 3000);
        List<Integer> bodies = List.of(2000, -1, -1);
        assertEquals(
                bodies,
                store.browse(limited, null).stream().map(SqlStoreTest::length).toList());
        Received first = lease(store, limited);
        assertEquals(bodies, first.messages().stream().map(SqlStoreTest::length).toList());
        List<Lease> leases = leases(queue, first);
        store.release(leases.subList(1, 3), null, null, false);
        // with acknowledgements it is another statement
        Received second = store.receive(List.of(limited), Duration.ZERO, LEASE, leases.subList(0, 1));
        assertEquals(List.of(), second.stale());
        assertEquals(
                List.of(2000, 1),
                second.messages().stream().map(SqlStoreTest::length).toList());
        assertEquals(0, second.messages().get(0).attempts());
    }

    private static int length(Delivery delivery) {
        return delivery.body() == null ? -1 : delivery.body().text().length();
    }

    @Test
    void subscribersGetTheirMessages() throws SQLException {
        String topic = newTopic();
        String durable = newName("durable");
        store.subscribe(topic, durable, "payload.properties->>'color' = 'red'", true);
        assertEquals(topic, store.subscriptions(durable).get(0).topic());
        assertEquals(
                "payload.properties->>'color' = 'red'",
                store.subscriptions(durable).get(0).rule());
        assertEquals(List.of(), store.subscriptions("absent"));
        store.send(List.of(colored(topic, "1", "red"), colored(topic, "2", "blue")));
        assertEquals(List.of("1"), texts(take(new Source(topic, durable, null, 10))));
        store.unsubscribe(topic, durable);
        assertEquals(List.of(), store.subscriptions(durable));
    }

    @Test
    void aRuleWithDeprecatedNamesIsTheSame() throws SQLException {
        String topic = newTopic();
        String durable = newName("durable");
        String rule = "%1$scompare(%1$snumber(5), '<'::text, %1$snumber(attempts)) OR payload.text = 'aq.jms_message'";
        store.subscribe(topic, durable, rule.formatted("aq.jms_"), true);
        assertEquals(
                rule.formatted("aq_jms."), store.subscriptions(durable).get(0).rule());
        store.unsubscribe(topic, durable);
    }

    @Test
    void temporaryQueuesEndWithTheConnection() throws SQLException {
        String temporary = store.createTemporary(false);
        String topic = store.createTemporary(true);
        assertFalse(store.describe(temporary).topic());
        assertTrue(store.describe(topic).topic());
        store.send(List.of(text(temporary, "x")));
        assertEquals(List.of("x"), texts(take(all(temporary))));
        store.dropTemporary(temporary);
        assertThrows(SQLException.class, () -> store.describe(temporary));
        store.close();
        assertThrows(SQLException.class, () -> newStore().describe(topic));
    }

    @Test
    void aDatabaseWithoutTheExtensionIsNamedAsSuch() throws Exception {
        try (Connection plain = connect();
                Statement statement = plain.createStatement()) {
            plain.setAutoCommit(false);
            statement.execute("ALTER VIEW aq.queues RENAME TO hidden");
            SQLException e = assertThrows(SQLException.class, () -> new SqlStore(plain, false).describe("q"));
            assertTrue(e.getMessage().contains("CREATE EXTENSION pgaq"), e.getMessage());
            plain.rollback();
        }
    }

    @Test
    void anOlderExtensionIsNamedAsSuch() throws Exception {
        try (Connection older = connect();
                Statement statement = older.createStatement()) {
            older.setAutoCommit(false);
            statement.execute("ALTER SCHEMA aq_jms RENAME TO hidden");
            SQLException e = assertThrows(SQLException.class, () -> new SqlStore(older, false).describe("q"));
            assertTrue(e.getMessage().contains("ALTER EXTENSION pgaq UPDATE"), e.getMessage());
            older.rollback();
        }
    }

    @Test
    void whatIsTemporaryEndsWithASessionThatIsKilled() throws Exception {
        String topic = newTopic();
        String subscriber = newName("subscriber");
        SqlStore other = newStore();
        String temporary = other.createTemporary(false);
        other.subscribe(topic, subscriber, null, false);
        other.subscribe(topic, subscriber, null, false);
        assertEquals(temporary, store.describe(temporary).name());
        assertEquals(topic, store.subscriptions(subscriber).get(0).topic());
        store.send(List.of(text(topic, "x"), text(temporary, "y")));
        execute("SELECT pg_terminate_backend(" + pid(other) + ")");
        until("SELECT count(*) = 0 FROM aq.queues WHERE queue_name = '" + temporary + "'");
        until("SELECT count(*) = 0 FROM aq.subscribers WHERE consumer = '" + subscriber + "'");
    }

    @Test
    void claimsAreExclusive() throws SQLException {
        SqlStore other = newStore();
        String name = newName("client");
        assertTrue(store.claim(name, false));
        assertTrue(store.claim(name, false));
        assertFalse(other.claim(name, false));
        assertFalse(other.claim(name, true));
        store.unclaim(name, false);
        assertFalse(other.claim(name, false));
        store.unclaim(name, false);
        store.unclaim(name, false);
        assertTrue(other.claim(name, true));
        assertTrue(store.claim(name, true));
        assertFalse(other.claim(name, false));
        store.unclaim(name, true);
        assertTrue(other.claim(name, false));
        other.close();
        assertTrue(store.claim(name, false));
    }

    @Test
    void aCommitSendsAndAcknowledgesAllOrNothing() throws SQLException {
        store.send(List.of(text(queue, "a"), text(queue, "b")));
        List<Lease> leased = leases(queue, lease(store, all(queue)));
        Lease never = new Lease(queue, null, UUID.randomUUID(), leased.get(0).receipt());
        SQLException e = assertThrows(
                SQLException.class,
                () -> store.commit(List.of(text(queue, "c")), List.of(leased.get(0), never), () -> {}));
        assertEquals(Store.LEASE_ENDED, e.getSQLState());
        assertTrue(e.getMessage().contains("the leases of 1 of 1 messages have ended"), e.getMessage());
        store.rollback();
        assertEquals(List.of(), texts(take(all(queue))));
        store.commit(List.of(text(queue, "c"), urgent(queue, "d", 0)), leased, () -> {});
        assertEquals(List.of("d", "c"), texts(take(all(queue))));
        assertEquals(leased, store.acknowledge(leased));
    }

    @Test
    void aCommitTakesMessagesInItsTransaction() throws SQLException {
        store.send(List.of(text(queue, "a"), text(queue, "b"), text(queue, "c")));
        List<Lease> leased = leases(queue, lease(store, new Source(queue, null, null, 1)));
        Ahead ahead = new Ahead(new Source(queue, null, "payload.text <> 'c'", 5), Duration.ofMinutes(1));
        Received received = store.commitAtOnce(List.of(text(queue, "d")), leased, ahead, () -> {});
        assertEquals(List.of("b"), texts(received));
        assertEquals(0, received.source());
        assertEquals(List.of(), store.acknowledge(leases(queue, received)));
        assertNull(store.commitAtOnce(List.of(text(queue, "e")), leased, ahead, () -> {}), "the lease has ended");
        assertEquals(
                -1,
                store.commitAtOnce(
                                List.of(),
                                List.of(),
                                new Ahead(new Source(queue, null, "false", 1), Duration.ofMinutes(1)),
                                () -> {})
                        .source());
        assertEquals(List.of("c", "d"), texts(take(all(queue))));
    }

    @Test
    void theOutcomeIsOpenOnlyWhileTheServerCommits() throws Exception {
        List<String> decided = new ArrayList<>();
        store.commit(List.of(text(queue, "fresh")), List.of(), () -> decided.add("fresh"));
        store.freshNanos = 0;
        value("SELECT pg_terminate_backend(" + pid(store) + ", 10000)");
        SQLException e = assertThrows(
                SQLException.class,
                () -> store.commit(List.of(text(queue, "later")), List.of(), () -> decided.add("later")));
        assertTrue(e.getSQLState().startsWith("57P") || e.getSQLState().startsWith("08"), e.getSQLState());
        assertEquals(List.of("fresh"), decided);
        assertEquals(List.of("fresh"), texts(newStore().receive(List.of(all(queue)), Duration.ZERO, null, List.of())));
    }

    @Test
    void transactionsCommitAndRollBackTogether() throws SQLException {
        store.send(List.of(text(queue, "in")));
        String out = newQueue();
        store.begin();
        assertEquals(List.of("in"), texts(take(all(queue))));
        store.send(List.of(text(out, "out")));
        store.rollback();
        assertEquals(List.of(), texts(lease(newStore(), all(out))));
        store.begin();
        assertEquals(1, take(all(queue)).messages().get(0).attempts());
        store.send(List.of(text(out, "out")));
        store.commit();
        assertTrue(store.connection().getAutoCommit());
        assertEquals(List.of("out"), texts(lease(newStore(), all(out))));
    }

    @Test
    void aFreshTransactionHoldsNoSnapshotWhileItWaits() throws Exception {
        SqlStore other = newStore();
        other.begin();
        String pid = pid(other);
        CompletableFuture<Received> result = waiting(other, null, null, all(queue));
        until("SELECT wait_event_type = 'Extension' FROM pg_stat_activity WHERE pid = " + pid);
        assertNull(value("SELECT backend_xmin FROM pg_stat_activity WHERE pid = " + pid));
        store.send(List.of(text(queue, "x")));
        assertEquals(List.of("x"), texts(result.get(30, TimeUnit.SECONDS)));
        other.rollback();
        assertEquals(1, take(all(queue)).messages().size());
    }

    private static String pid(SqlStore of) throws SQLException {
        return String.valueOf(
                of.connection().unwrap(org.postgresql.PGConnection.class).getBackendPID());
    }

    private static void until(String condition) throws Exception {
        long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(30);
        while (!"t".equals(value(condition))) {
            assertTrue(System.nanoTime() < deadline, condition);
            Thread.sleep(5);
        }
    }

    @Test
    void cancelEndsAWait() throws Exception {
        CompletableFuture<Received> result = waiting(store, null, LEASE, all(queue));
        until("SELECT wait_event_type = 'Extension' FROM pg_stat_activity WHERE pid = " + pid(store));
        store.cancel();
        assertEquals(-1, result.get(30, TimeUnit.SECONDS).source());
        store.send(List.of(text(queue, "x")));
        assertEquals(List.of("x"), texts(take(all(queue))));
    }

    @Test
    void cancelInATransactionLosesNothing() throws Exception {
        String other = newQueue();
        store.send(List.of(text(queue, "x")));
        store.begin();
        assertEquals(1, take(all(queue)).messages().size());
        CompletableFuture<Received> result = waiting(store, null, null, all(other));
        until("SELECT wait_event_type = 'Extension' FROM pg_stat_activity WHERE pid = " + pid(store));
        store.cancel();
        assertEquals(-1, result.get(30, TimeUnit.SECONDS).source());
        store.commit();
        assertEquals(List.of(), texts(take(all(queue))));
    }

    /** Cancels again and again while the steps run. */
    private void whileCancelled(Executable steps) throws Throwable {
        Thread canceller = new Thread(() -> {
            while (!Thread.interrupted()) {
                store.cancel();
            }
        });
        canceller.start();
        try {
            steps.execute();
        } finally {
            canceller.interrupt();
            canceller.join();
        }
    }

    @Test
    void cancelHitsNoOtherStatement() throws Throwable {
        whileCancelled(() -> {
            for (int i = 0; i < 300; i++) {
                assertEquals(
                        -1,
                        store.receive(List.of(all(queue)), null, LEASE, List.of())
                                .source());
                try (Statement statement = store.connection().createStatement()) {
                    statement.execute("SELECT pg_sleep(0.0005)");
                }
            }
        });
    }

    @Test
    void cancelHitsNoOtherStatementOfATransaction() throws Throwable {
        String out = newQueue();
        whileCancelled(() -> {
            for (int i = 0; i < 100; i++) {
                store.begin();
                assertEquals(
                        -1,
                        store.receive(List.of(all(queue)), null, null, List.of())
                                .source());
                store.send(List.of(text(out, "t" + i)));
                assertEquals(
                        -1,
                        store.receive(List.of(all(queue)), null, null, List.of())
                                .source());
                store.commit();
            }
        });
        assertEquals(100, take(all(out)).messages().size());
    }

    @Test
    void cancelLosesNoAcknowledgement() throws Throwable {
        List<String> wanted = IntStream.range(0, 200).mapToObj(i -> "m" + i).toList();
        Set<String> got = new HashSet<>();
        SqlStore sender = newStore();
        whileCancelled(() -> {
            List<Lease> taken = List.of();
            for (String next : wanted) {
                sender.send(List.of(text(queue, next)));
                Received received;
                do {
                    received = store.receive(List.of(all(queue)), Duration.ofSeconds(10), LEASE, taken);
                    assertEquals(List.of(), received.stale());
                    taken = leases(queue, received);
                } while (taken.isEmpty());
                got.addAll(texts(received));
            }
            store.acknowledge(taken);
        });
        assertEquals(Set.copyOf(wanted), got);
        assertEquals("0", value("SELECT lag FROM aq.metrics() WHERE queue_name = '" + queue + "'"));
    }

    @Test
    void cancelWithoutAReceiveDoesNothing() throws SQLException {
        store.cancel();
        store.send(List.of(text(queue, "x")));
        assertEquals(List.of("x"), texts(take(all(queue))));
    }

    @Test
    void theCallersConnectionIsLeftAsItWas() throws SQLException {
        try (Connection callers = connect();
                Statement statement = callers.createStatement()) {
            callers.setAutoCommit(false);
            statement.execute("CREATE TEMPORARY TABLE orders (id int)");
            callers.commit();
            SqlStore shared = new SqlStore(callers, false);
            shared.begin();
            statement.execute("INSERT INTO orders VALUES (1)");
            shared.send(List.of(text(queue, "x")));
            shared.close();
            assertFalse(callers.isClosed());
            assertFalse(callers.getAutoCommit());
            assertEquals(List.of(), texts(take(all(queue))));
            callers.commit();
            assertEquals(List.of("x"), texts(take(all(queue))));
        }
    }

    @Test
    void theCallersTransactionCommitsByTheStore() throws SQLException {
        try (Connection callers = connect()) {
            SqlStore shared = new SqlStore(callers, false);
            shared.begin();
            shared.send(List.of(text(queue, "x")));
            shared.commit();
            shared.begin();
            shared.send(List.of(text(queue, "y")));
            shared.close();
            assertTrue(callers.getAutoCommit());
            assertEquals(List.of("x"), texts(take(all(queue))));
        }
    }

    @Test
    void aLostConnectionIsNotAlive() throws Exception {
        assertTrue(store.isAlive());
        SqlStore other = newStore();
        execute("SELECT pg_terminate_backend(" + pid(other) + ")");
        until("SELECT count(*) = 0 FROM pg_stat_activity WHERE pid = " + pid(other));
        assertFalse(other.isAlive());
    }
}
