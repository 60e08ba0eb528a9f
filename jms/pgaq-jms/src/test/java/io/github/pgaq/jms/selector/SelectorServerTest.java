package io.github.pgaq.jms.selector;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.pgaq.jms.ServerTest;
import io.github.pgaq.jms.message.PgaqMessage;
import io.github.pgaq.jms.sql.SqlStore;
import io.github.pgaq.jms.store.Delivery;
import io.github.pgaq.jms.store.Outgoing;
import io.github.pgaq.jms.store.Source;
import io.github.pgaq.jms.store.Store;
import jakarta.jms.InvalidSelectorException;
import jakarta.jms.JMSException;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.TreeSet;
import java.util.UUID;
import org.junit.jupiter.api.Test;

/** The server's condition selects the messages that the evaluation in Java selects. */
class SelectorServerTest extends ServerTest {
    private static final int MOST = 10_000;

    @Test
    void aTableOfTruths() throws Exception {
        String queue = newQueue();

        try (Store store = new SqlStore(connect(), true)) {
            store.send(List.of(Samples.outgoing(queue, Samples.known())));
            List<String> wrong = new ArrayList<>();
            for (Truths.Row row : Truths.rows()) {
                if (selects(store, queue, row.selector()) != (row.truth() == 'T'))
                    wrong.add(row.truth() + " " + row.selector());
                if (selects(store, queue, "NOT (" + row.selector() + ")") != (row.truth() == 'F'))
                    wrong.add(row.truth() + " " + row.selector() + ", with NOT");
            }
            assertEquals(List.of(), wrong);
        }
    }

    private static boolean selects(Store store, String queue, String selector)
            throws SQLException, InvalidSelectorException {
        return !browse(store, queue, selector).isEmpty();
    }

    private static List<Delivery> browse(Store store, String queue, String selector)
            throws SQLException, InvalidSelectorException {
        Selector parsed = Selector.parse(selector);
        String condition = parsed == null ? null : parsed.toCondition();

        try {
            return store.browse(new Source(queue, null, condition, MOST), null);
        } catch (SQLException e) {
            throw new SQLException(selector + "\n" + condition + "\n" + e.getMessage(), e);
        }
    }

    /** Random selectors and messages; the seed is printed if they differ. */
    @Test
    void randomPairs() throws Exception {
        long seed = Long.getLong("pgaq.seed", 1913);
        int selectors = Integer.getInteger("pgaq.selectors", 800);
        Random random = new Random(seed);
        String queue = newQueue();

        try (Store store = new SqlStore(connect(), true)) {
            List<Outgoing> messages = new ArrayList<>();
            for (int i = 0; i < 60; i++) messages.add(Samples.outgoing(queue, Samples.random(random)));
            store.send(messages);
            Map<UUID, PgaqMessage> stored = new HashMap<>();
            for (Delivery delivery : browse(store, queue, null))
                stored.put(delivery.msgid(), Samples.MESSAGES.toClient(delivery, null, null));
            assertEquals(60, stored.size());

            int found = 0;
            for (int i = 0; i < selectors; i++) found += compare(store, queue, stored, anySelector(random), seed);
            assertTrue(found > selectors * 5, found + " pairs matched");
        }
    }

    private static String anySelector(Random random) {
        while (true) {
            String selector = Samples.selector(random, random.nextInt(4));
            try {
                Selector.parse(selector);
                return selector;
            } catch (InvalidSelectorException refused) {
                // such as IN for a number: another one
                continue;
            }
        }
    }

    private static int compare(Store store, String queue, Map<UUID, PgaqMessage> stored, String selector, long seed)
            throws SQLException, JMSException {
        Selector parsed = Selector.parse(selector);
        Set<UUID> server = new TreeSet<>();
        Set<UUID> here = new TreeSet<>();

        for (Delivery delivery : browse(store, queue, selector)) server.add(delivery.msgid());
        for (Map.Entry<UUID, PgaqMessage> message : stored.entrySet())
            if (parsed.matches(message.getValue())) here.add(message.getKey());
        if (!server.equals(here)) {
            Set<UUID> different = new TreeSet<>(server);
            different.addAll(here);
            different.removeIf(id -> server.contains(id) && here.contains(id));
            UUID first = different.iterator().next();
            throw new AssertionError("seed " + seed + ", selector " + selector + "\nas " + parsed.toCondition()
                    + "\nselects" + (server.contains(first) ? "" : " not") + " the message "
                    + properties(stored.get(first)));
        }
        return here.size();
    }

    private static String properties(PgaqMessage message) throws JMSException {
        return Samples.MESSAGES.toBody(message) + ", priority " + message.getJMSPriority();
    }

    /** A text that would end the literal is only text, also with standard_conforming_strings off. */
    @Test
    void noInjection() throws Exception {
        String queue = newQueue();
        String[] attacks = {
            "' OR true OR '",
            "\\' OR true --",
            "'; DROP TABLE x; --",
            "\\",
            "\\\\",
            "'",
            "''",
            "\\'",
            "$$",
            "\"",
            "\\u0027 OR true OR \\u0027",
            "E'\\x27'",
            "\n",
            "%s",
            "?",
            ":a",
            "{\"a\":1}",
            "/*",
            "*/",
            "--",
            "\u2019",
            "\u02bc"
        };

        for (String conforming : new String[] {"on", "off"})
            try (Connection connection = connect();
                    Statement statement = connection.createStatement()) {
                // from 19 on it is always on
                if (connection.getMetaData().getDatabaseMajorVersion() < 19) {
                    statement.execute("SET standard_conforming_strings = " + conforming);
                    statement.execute("SET escape_string_warning = on");
                }
                statement.execute("SET backslash_quote = off");
                Store store = new SqlStore(connection, false);
                for (String attack : attacks) {
                    PgaqMessage message = Samples.MESSAGES.createMessage();
                    message.setJMSMessageID("ID:1");
                    message.setStringProperty("a", attack);
                    message.setJMSType(attack);
                    store.send(List.of(Samples.outgoing(queue, message)));
                    String quoted = "'" + attack.replace("'", "''") + "'";
                    String escaped = "'"
                            + attack.replace("!", "!!")
                                    .replace("%", "!%")
                                    .replace("_", "!_")
                                    .replace("'", "''") + "'";
                    for (String selector : new String[] {
                        "a = " + quoted,
                        "JMSType = " + quoted,
                        "a IN (" + quoted + ")",
                        "JMSType IN (" + quoted + ", 'x')",
                        "a LIKE " + escaped + " ESCAPE '!'",
                        "JMSType LIKE " + escaped + " ESCAPE '!'",
                        "NOT a <> " + quoted
                    }) {
                        List<Delivery> found = browse(store, queue, selector);
                        assertEquals(1, found.size(), selector);
                    }
                    for (String selector :
                            new String[] {"a = 'x' AND a <> " + quoted, "b = " + quoted, "JMSCorrelationID = " + quoted
                            }) assertEquals(0, browse(store, queue, selector).size(), selector);
                    assertEquals(
                            1,
                            store.receive(
                                            List.of(new Source(
                                                    queue,
                                                    null,
                                                    Selector.parse("a = " + quoted)
                                                            .toCondition(),
                                                    1)),
                                            Duration.ZERO,
                                            null,
                                            List.of())
                                    .messages()
                                    .size());
                }
            }
    }

    /** The operators and functions are PostgreSQL's own, whatever the session's search_path. */
    @Test
    void othersOperatorsAreNotUsed() throws Exception {
        String queue = newQueue();
        String schema = newName("evil");

        execute("CREATE SCHEMA " + schema);
        execute("CREATE FUNCTION " + schema + ".evil(jsonb, jsonb) RETURNS jsonb LANGUAGE plpgsql AS "
                + "'BEGIN RAISE EXCEPTION ''evil''; END'");
        execute("CREATE FUNCTION " + schema + ".evil(jsonb, varchar) RETURNS boolean LANGUAGE plpgsql AS "
                + "'BEGIN RAISE EXCEPTION ''evil''; END'");
        execute("CREATE OPERATOR " + schema + ".-> (LEFTARG = jsonb, RIGHTARG = jsonb, FUNCTION = " + schema
                + ".evil)");
        execute("CREATE OPERATOR " + schema + ".->> (LEFTARG = jsonb, RIGHTARG = jsonb, FUNCTION = " + schema
                + ".evil)");
        execute("CREATE OPERATOR " + schema + ".= (LEFTARG = jsonb, RIGHTARG = varchar, FUNCTION = " + schema
                + ".evil)");
        try (Connection connection = connect();
                Statement statement = connection.createStatement()) {
            statement.execute("SET search_path = " + schema + ", public");
            Store store = new SqlStore(connection, false);
            store.send(List.of(Samples.outgoing(queue, Samples.known())));
            for (Truths.Row row : Truths.rows())
                assertEquals(row.truth() == 'T', selects(store, queue, row.selector()), row.selector());
        } finally {
            execute("DROP SCHEMA " + schema + " CASCADE");
        }
    }

    /** As rule of a subscriber: the same messages are delivered to it, and no rule fails. */
    @Test
    void asRules() throws Exception {
        String topic = newTopic();
        Random random = new Random(7);
        List<String> selectors = new ArrayList<>();

        try (Store store = new SqlStore(connect(), true)) {
            for (int i = 0; i < 25; i++) {
                selectors.add(anySelector(random));
                store.subscribe(topic, "s" + i, Selector.parse(selectors.get(i)).toCondition(), true);
            }
            store.subscribe(topic, "all", null, true);
            List<Outgoing> messages = new ArrayList<>();
            for (int i = 0; i < 30; i++) messages.add(Samples.outgoing(topic, Samples.random(random)));
            store.send(messages);
            List<Delivery> all = store.browse(new Source(topic, "all", null, MOST), null);
            assertEquals(30, all.size());
            for (int i = 0; i < selectors.size(); i++) {
                Set<String> expected = new TreeSet<>();
                for (Delivery delivery : all) {
                    PgaqMessage message = Samples.MESSAGES.toClient(delivery, null, null);
                    if (Selector.parse(selectors.get(i)).matches(message)) expected.add(message.getJMSMessageID());
                }
                Set<String> delivered = new TreeSet<>();
                for (Delivery delivery : store.browse(new Source(topic, "s" + i, null, MOST), null))
                    delivered.add(
                            Samples.MESSAGES.toClient(delivery, null, null).getJMSMessageID());
                assertEquals(expected, delivered, selectors.get(i));
            }
        }
        assertEquals("0", value("SELECT sum(rule_failures) FROM aq.subscribers WHERE queue_name = '" + topic + "'"));
    }

    /** What SQL puts into a payload, properties that no JMS client makes included, raises no error. */
    @Test
    void anyPayload() throws Exception {
        String queue = newQueue();
        String[] payloads = {
            "ROW(NULL, NULL, NULL, NULL, NULL, NULL)",
            "ROW('text', '[]', '[1]', '5', NULL, NULL)",
            "ROW('text', '5', '\"a\"', 'null', NULL, NULL)",
            "ROW('text', 'null', 'true', '{}', NULL, NULL)",
            "ROW('x', '{\"type\": 5, \"timestamp\": \"x\", \"delivery_mode\": {}}', "
                    + "'{\"a\": [1], \"n\": {}}', '{\"a\": 5}', NULL, NULL)",
            "ROW('x', '{}', '{\"a\": 1e400, \"n\": -1e400}', '{\"a\": \"int\", \"n\": \"float\"}', NULL, NULL)",
            "ROW('x', '{}', '{\"a\": 1e-400, \"n\": 1e30}', '{\"a\": \"double\", \"n\": \"long\"}', NULL, NULL)",
            "ROW('x', '{}', "
                    + "'{\"a\": {\"double\": \"x\"}, \"n\": {\"double\": 5}}', '{\"a\": [], \"n\": {}}', NULL, NULL)",
            "ROW('x', '{}', jsonb_build_object('a', 10::numeric ^ 20000, 'n', 0.5::numeric ^ 300), NULL, NULL, NULL)",
            "NULL"
        };
        Random random = new Random(5);

        for (String payload : payloads) execute("SELECT aq.enqueue('" + queue + "', " + payload + "::aq.jms_message)");
        try (Store store = new SqlStore(connect(), true)) {
            for (Truths.Row row : Truths.rows()) browse(store, queue, row.selector());
            for (int i = 0; i < 500; i++) browse(store, queue, anySelector(random));
            assertEquals(payloads.length, browse(store, queue, "x IS NULL").size());
            assertEquals(2, browse(store, queue, "a > 1e307 OR n < -1e307").size());
            assertEquals(
                    payloads.length,
                    browse(store, queue, "JMSMessageID LIKE 'ID:%-%' AND JMSTimestamp > 1600000000000")
                            .size());
        }
    }
}
