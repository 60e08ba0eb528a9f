// Every documented call form through pgjdbc: untyped and typed parameters, arrays,
// nulls, CallableStatement for aq.wait; autocommit on and off.
//
// java -cp postgresql.jar:. CallForms jdbc:postgresql://host:port/database user password
// prints what failed and, last, "N passed, N failed"; exit status 1 when something failed.

import java.sql.Array;
import java.sql.CallableStatement;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.SQLXML;
import java.sql.Statement;
import java.sql.Types;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Properties;
import java.util.UUID;
import org.postgresql.util.PGInterval;
import org.postgresql.util.PGobject;

public final class CallForms {
    private interface Check {
        void run(Connection db) throws Exception;
    }

    private final String url;
    private final Properties login = new Properties();
    private int passed;
    private int failed;

    private CallForms(String url, String user, String password) {
        this.url = url;
        login.setProperty("user", user);
        login.setProperty("password", password);
    }

    public static void main(String[] arguments) throws Exception {
        CallForms tests = new CallForms(arguments[0], arguments[1], arguments.length > 2 ? arguments[2] : "");
        // simple and extended protocol, server-side prepared from the first call on, strings untyped or varchar
        for (String mode : new String[] {"extended", "simple", "extendedForPrepared"}) {
            for (String stringtype : new String[] {"unspecified", "varchar"}) {
                for (boolean autocommit : new boolean[] {true, false}) {
                    tests.round(mode, stringtype, autocommit);
                }
            }
        }
        System.out.println(tests.passed + " passed, " + tests.failed + " failed");
        System.exit(tests.failed == 0 ? 0 : 1);
    }

    private void round(String mode, String stringtype, boolean autocommit) throws Exception {
        String name = mode + ", " + stringtype + " strings, autocommit " + (autocommit ? "on" : "off");
        Properties settings = new Properties();
        settings.putAll(login);
        settings.setProperty("preferQueryMode", mode);
        settings.setProperty("stringtype", stringtype);
        settings.setProperty("prepareThreshold", "2");
        try (Connection db = DriverManager.getConnection(url, settings)) {
            setUp(db);
            db.setAutoCommit(autocommit);
            check(name, "enqueue setString", db, CallForms::enqueueString);
            check(name, "enqueue setObject", db, CallForms::enqueueObject);
            check(name, "enqueue with every property", db, CallForms::enqueueProperties);
            check(name, "enqueue setNull", db, CallForms::enqueueNulls);
            // pgjdbc 42.5 has no literal for setBytes, which the simple protocol would need
            if (!mode.equals("simple")) check(name, "enqueue bytes", db, CallForms::bytes);
            check(name, "enqueue text", db, CallForms::text);
            check(name, "enqueue xml", db, CallForms::xml);
            check(name, "enqueue composite", db, CallForms::composite);
            check(name, "enqueue_array text", db, CallForms::arrayOfText);
            check(name, "enqueue_array bytea", db, CallForms::arrayOfBytes);
            check(name, "topic", db, CallForms::topic);
            check(name, "dequeue by id and correlation", db, CallForms::choose);
            check(name, "prepared again and again", db, CallForms::repeated);
            check(name, "batch", db, CallForms::batch);
            check(name, "wait by CALL", db, CallForms::waitByCall);
            check(name, "wait by CallableStatement", db, CallForms::waitCallable);
            check(name, "receive", db, CallForms::receive);
            check(name, "listen by CALL", db, CallForms::listen);
            check(name, "errors", db, CallForms::errors);
            check(name, "cursor fetch size", db, CallForms::fetchSize);
            if (mode.equals("extended")) {
                check(name, "cancel while waiting", db, CallForms::cancel);
            }
            if (!autocommit) {
                check(name, "wait sees own uncommitted messages", db, CallForms::waitOwn);
                check(name, "rollback and savepoint", db, CallForms::rollback);
            }
        }
    }

    private void check(String round, String what, Connection db, Check body) throws SQLException {
        try {
            body.run(db);
            commit(db);
            passed++;
        } catch (Exception | AssertionError error) {
            failed++;
            System.out.println("FAILED " + what + " (" + round + "): " + error);
            if (!db.getAutoCommit()) {
                db.rollback();
            }
        }
        try (Statement s = db.createStatement()) {
            for (String queue : QUEUES) {
                s.execute("SELECT aq.purge_queue('" + queue + "')");
            }
        }
        commit(db);
    }

    private static final String[] QUEUES = {"j", "j_bytea", "j_text", "j_xml", "j_row", "j_topic"};

    private static void setUp(Connection db) throws SQLException {
        try (Statement s = db.createStatement()) {
            s.execute("CREATE EXTENSION IF NOT EXISTS pgaq_oracle CASCADE");
            s.execute("SELECT aq.drop_queue(queue_name, true) FROM aq_internal.queue WHERE queue_name LIKE 'j%' AND"
                    + " queue_type = 'normal'");
            s.execute("DROP TYPE IF EXISTS parcel");
            s.execute("CREATE TYPE parcel AS (id integer, destination text)");
            s.execute("SELECT aq.create_queue('j', retry_delay => '0'), aq.create_queue('j_bytea', 'bytea'),"
                    + " aq.create_queue('j_text', 'text'), aq.create_queue('j_xml', 'xml'),"
                    + " aq.create_queue('j_row', 'parcel'), aq.create_queue('j_topic', multiple_consumers =>"
                    + " true)");
            s.execute("SELECT aq.subscribe('j_topic', 'ann'), aq.subscribe('j_topic', 'bob', 'priority = 0')");
        }
    }

    private static void require(boolean condition, String what) {
        if (!condition) {
            throw new AssertionError(what);
        }
    }

    private static void same(Object wanted, Object got) {
        require(wanted == null ? got == null : wanted.equals(got), "wanted " + wanted + ", got " + got);
    }

    /** All first columns of a query's result, as strings. */
    private static List<String> column(Connection db, String query, Object... parameters) throws SQLException {
        List<String> found = new ArrayList<>();
        try (PreparedStatement p = db.prepareStatement(query)) {
            for (int i = 0; i < parameters.length; i++) {
                if (parameters[i] instanceof String) {
                    p.setString(i + 1, (String) parameters[i]);
                } else {
                    p.setObject(i + 1, parameters[i]);
                }
            }
            try (ResultSet r = p.executeQuery()) {
                while (r.next()) {
                    found.add(r.getString(1));
                }
            }
        }
        return found;
    }

    private static void commit(Connection db) throws SQLException {
        if (!db.getAutoCommit()) {
            db.commit();
        }
    }

    private static UUID enqueue(Connection db, String payload) throws SQLException {
        try (PreparedStatement p = db.prepareStatement("SELECT aq.enqueue(?, ?)")) {
            p.setString(1, "j");
            p.setString(2, payload);
            try (ResultSet r = p.executeQuery()) {
                require(r.next(), "no row");
                return (UUID) r.getObject(1);
            }
        }
    }

    private static PGobject typed(String type, String value) throws SQLException {
        PGobject object = new PGobject();
        object.setType(type);
        object.setValue(value);
        return object;
    }

    private static void enqueueString(Connection db) throws SQLException {
        require(enqueue(db, "{\"n\": 1}") != null, "no id");
        same(List.of("{\"n\": 1}"), column(db, "SELECT payload FROM aq.dequeue(?)", "j"));
        same(List.of(), column(db, "SELECT payload FROM aq.dequeue(?, max_messages => ?)", "j", 10));
    }

    private static void enqueueObject(Connection db) throws SQLException {
        for (Object payload : new Object[] {typed("jsonb", "{\"n\": 2}"), "{\"n\": 2}"}) {
            try (PreparedStatement p = db.prepareStatement("SELECT aq.enqueue(?, ?, priority => ?)")) {
                p.setObject(1, "j");
                p.setObject(2, payload);
                p.setObject(3, 4);
                p.executeQuery().close();
            }
            try (PreparedStatement p = db.prepareStatement("SELECT * FROM aq.dequeue(?, max_messages => ?)")) {
                p.setObject(1, "j");
                p.setObject(2, 10);
                try (ResultSet r = p.executeQuery()) {
                    require(r.next(), "no row");
                    require(r.getObject("msgid") instanceof UUID, "msgid is no uuid");
                    same("{\"n\": 2}", r.getString("payload"));
                    same(4, r.getInt("priority"));
                    same(0, r.getInt("attempts"));
                    require(r.getTimestamp("enqueue_time") != null, "no enqueue_time");
                    require(r.getString("correlation") == null && r.wasNull(), "correlation");
                }
            }
        }
    }

    private static void enqueueProperties(Connection db) throws SQLException {
        try (PreparedStatement p = db.prepareStatement(
                "SELECT aq.enqueue(queue_name => ?, payload => ?, priority => ?, delay => ?, expiration => ?,"
                        + " correlation => ?, recipients => ?, sender => ?, exception_queue => ?, properties => ?)")) {
            p.setString(1, "j");
            p.setObject(2, typed("jsonb", "3"));
            p.setInt(3, 2);
            p.setObject(4, new PGInterval("0 seconds"));
            p.setObject(5, new PGInterval("1 hour"));
            p.setString(6, "corr");
            p.setNull(7, Types.ARRAY);
            p.setString(8, "me");
            p.setNull(9, Types.VARCHAR);
            p.setObject(10, typed("jsonb", "{\"k\": 1}"));
            p.executeQuery().close();
        }
        try (PreparedStatement p = db.prepareStatement("SELECT * FROM aq.dequeue_full(?, NULL::jsonb)")) {
            p.setString(1, "j");
            try (ResultSet r = p.executeQuery()) {
                require(r.next(), "no row");
                same("corr", r.getString("correlation"));
                same("me", r.getString("sender"));
                same("{\"k\": 1}", r.getString("properties"));
                require(r.getTimestamp("expires_at") != null, "no expires_at");
            }
        }
    }

    private static void enqueueNulls(Connection db) throws SQLException {
        for (int type : new int[] {Types.NULL, Types.VARCHAR}) {
            try (PreparedStatement p = db.prepareStatement("SELECT aq.enqueue(?, ?, correlation => ?, sender => ?)")) {
                p.setString(1, "j");
                p.setString(2, "4");
                p.setNull(3, type);
                p.setNull(4, type);
                p.executeQuery().close();
            }
            try (PreparedStatement p =
                    db.prepareStatement("SELECT payload FROM aq.dequeue(?, consumer => ?, correlation => ?)")) {
                p.setString(1, "j");
                p.setNull(2, type);
                p.setNull(3, type);
                try (ResultSet r = p.executeQuery()) {
                    require(r.next(), "no row");
                    same("4", r.getString(1));
                }
            }
        }
    }

    private static void bytes(Connection db) throws SQLException {
        byte[] payload = new byte[300];
        for (int i = 0; i < payload.length; i++) {
            payload[i] = (byte) i;
        }
        try (PreparedStatement p = db.prepareStatement("SELECT aq.enqueue('j_bytea', ?)")) {
            p.setBytes(1, payload);
            p.executeQuery().close();
            p.setBytes(1, new byte[0]);
            p.executeQuery().close();
        }
        try (Statement s = db.createStatement();
                ResultSet r = s.executeQuery(
                        "SELECT payload FROM aq.dequeue('j_bytea', as_type => NULL::bytea, max_messages => 2)")) {
            require(r.next() && Arrays.equals(payload, r.getBytes(1)), "first payload");
            require(r.next() && r.getBytes(1).length == 0, "empty payload");
        }
    }

    private static void text(Connection db) throws SQLException {
        for (String payload : new String[] {"", "hello", "two\nlines \u00fc \ud83d\ude00"}) {
            try (PreparedStatement p = db.prepareStatement("SELECT aq.enqueue('j_text', ?)")) {
                p.setString(1, payload);
                p.executeQuery().close();
            }
            same(List.of(payload), column(db, "SELECT payload FROM aq.dequeue(?, as_type => NULL::text)", "j_text"));
        }
    }

    private static void xml(Connection db) throws SQLException {
        SQLXML document = db.createSQLXML();
        document.setString("<a>1</a>");
        try (PreparedStatement p = db.prepareStatement("SELECT aq.enqueue('j_xml', ?)")) {
            p.setSQLXML(1, document);
            p.executeQuery().close();
            p.setString(1, "<b/>");
            p.executeQuery().close();
        }
        same(
                List.of("<a>1</a>", "<b/>"),
                column(db, "SELECT payload FROM aq.dequeue('j_xml', as_type => NULL::xml, max_messages => 10)"));
    }

    private static void composite(Connection db) throws SQLException {
        try (PreparedStatement p = db.prepareStatement("SELECT aq.enqueue('j_row', ROW(?, ?)::parcel)")) {
            p.setInt(1, 7);
            p.setString(2, "Oslo");
            p.executeQuery().close();
        }
        try (PreparedStatement p = db.prepareStatement("SELECT aq.enqueue('j_row', ?)")) {
            p.setObject(1, typed("parcel", "(8,Rome)"));
            p.executeQuery().close();
            p.setString(1, "(9,Bern)");
            p.executeQuery().close();
        }
        same(
                List.of("Oslo", "Rome", "Bern"),
                column(db, "SELECT (payload).destination FROM aq.dequeue('j_row', NULL::parcel, max_messages => 10)"));
    }

    private static void arrayOfText(Connection db) throws SQLException {
        Array payloads = db.createArrayOf("text", new String[] {"1", "{\"a\": [1, \"x,y\"]}", "3"});
        try (PreparedStatement p = db.prepareStatement("SELECT aq.enqueue_array(?, ?)")) {
            p.setString(1, "j");
            p.setArray(2, payloads);
            try (ResultSet r = p.executeQuery()) {
                require(r.next(), "no row");
                same(3, ((UUID[]) r.getArray(1).getArray()).length);
            }
        }
        same(
                List.of("1", "{\"a\": [1, \"x,y\"]}", "3"),
                column(db, "SELECT payload FROM aq.dequeue(?, max_messages => ?)", "j", 10));
        try (PreparedStatement p = db.prepareStatement("SELECT aq.enqueue_array(?, ?)")) {
            p.setString(1, "j");
            p.setArray(2, db.createArrayOf("jsonb", new String[] {"4", "5"}));
            p.executeQuery().close();
            p.setObject(2, new String[] {"6"});
            p.executeQuery().close();
        }
        same(List.of("4", "5", "6"), column(db, "SELECT payload FROM aq.dequeue('j', max_messages => 10)"));
    }

    private static void arrayOfBytes(Connection db) throws SQLException {
        try (PreparedStatement p = db.prepareStatement("SELECT aq.enqueue_array('j_bytea', ?)")) {
            p.setArray(1, db.createArrayOf("bytea", new byte[][] {{1, 2}, {}, {(byte) 255}}));
            p.executeQuery().close();
        }
        same(
                List.of("\\x0102", "\\x", "\\xff"),
                column(
                        db,
                        "SELECT payload::text FROM aq.dequeue('j_bytea', as_type => NULL::bytea, max_messages => 10)"));
    }

    private static void topic(Connection db) throws SQLException {
        same(
                1,
                column(db, "SELECT aq.enqueue(?, ?, priority => ?)", "j_topic", "1", 0)
                        .size());
        try (PreparedStatement p = db.prepareStatement("SELECT aq.enqueue('j_topic', ?, recipients => ?)")) {
            p.setString(1, "2");
            p.setArray(2, db.createArrayOf("text", new String[] {"ann", "guest"}));
            p.executeQuery().close();
        }
        same(List.of("1", "2"), column(db, "SELECT payload FROM aq.dequeue(?, ?, ?)", "j_topic", "ann", 10));
        same(
                List.of("1"),
                column(
                        db,
                        "SELECT payload FROM aq.dequeue(?, consumer => ?, max_messages => ?)",
                        "j_topic",
                        "bob",
                        10));
        same(List.of("2"), column(db, "SELECT payload FROM aq.dequeue(?, NULL::jsonb, ?)", "j_topic", "guest"));
    }

    private static void choose(Connection db) throws SQLException {
        UUID first = enqueue(db, "1");
        UUID second = enqueue(db, "2");
        same(List.of("2"), column(db, "SELECT payload FROM aq.dequeue(?, msgid => ?)", "j", second));
        same(List.of(), column(db, "SELECT payload FROM aq.dequeue(?, correlation => ?)", "j", "x%"));
        same(List.of("1"), column(db, "SELECT payload FROM aq.dequeue(?, mode => ?)", "j", "browse"));
        same(List.of(first.toString()), column(db, "SELECT msgid FROM aq.browse(?)", "j"));
        same(List.of("1"), column(db, "SELECT payload FROM aq.dequeue(?, condition => ?)", "j", "payload = '1'"));
    }

    private static void repeated(Connection db) throws SQLException {
        try (PreparedStatement put = db.prepareStatement("SELECT aq.enqueue(?, ?)");
                PreparedStatement take = db.prepareStatement("SELECT payload FROM aq.dequeue(?)")) {
            take.setString(1, "j");
            for (int i = 0; i < 20; i++) {
                put.setString(1, "j");
                put.setString(2, Integer.toString(i));
                put.executeQuery().close();
                try (ResultSet r = take.executeQuery()) {
                    require(r.next(), "no row in round " + i);
                    same(Integer.toString(i), r.getString(1));
                }
            }
        }
    }

    /** A batch discards results, so the call stands in a DO-like statement that returns none. */
    private static void batch(Connection db) throws SQLException {
        try (Statement s = db.createStatement()) {
            s.execute("CREATE TEMP TABLE IF NOT EXISTS sent (id uuid)");
            s.execute("TRUNCATE sent");
        }
        try (PreparedStatement p = db.prepareStatement("INSERT INTO sent SELECT aq.enqueue(?, ?)")) {
            for (int i = 0; i < 50; i++) {
                p.setString(1, "j");
                p.setString(2, Integer.toString(i));
                p.addBatch();
            }
            same(50, p.executeBatch().length);
        }
        List<String> got = column(db, "SELECT payload FROM aq.dequeue('j', max_messages => 100)");
        same(50, got.size());
        for (int i = 0; i < 50; i++) {
            same(Integer.toString(i), got.get(i));
        }
    }

    private static void waitByCall(Connection db) throws SQLException {
        try (PreparedStatement p = db.prepareStatement("CALL aq.wait(?, NULL, '10 ms', NULL)")) {
            p.setString(1, "j");
            require(p.execute(), "no result");
            try (ResultSet r = p.getResultSet()) {
                require(r.next() && !r.getBoolean("ready"), "ready");
            }
        }
        enqueue(db, "1");
        commit(db);
        try (Statement s = db.createStatement();
                ResultSet r = s.executeQuery("CALL aq.wait('j', NULL, '10 s', NULL)")) {
            require(r.next() && r.getBoolean(1), "not ready");
        }
        same(List.of("1"), column(db, "SELECT payload FROM aq.dequeue('j')"));
    }

    private static void receive(Connection db) throws SQLException {
        enqueue(db, "1");
        enqueue(db, "{\"a\": 2}");
        commit(db);
        try (PreparedStatement p = db.prepareStatement("CALL aq.receive(?, max_messages => ?, timeout => ?)")) {
            p.setString(1, "j");
            p.setInt(2, 10);
            p.setObject(3, new PGInterval("10 seconds"));
            require(p.execute(), "no result");
            try (ResultSet r = p.getResultSet()) {
                require(r.next(), "no row");
                String messages = r.getString("messages");
                require(
                        messages.startsWith("[{")
                                && messages.contains("\"payload\": 1,")
                                && messages.contains("\"payload\": {\"a\": 2},"),
                        messages);
            }
        }
        commit(db);
        try (Statement s = db.createStatement();
                ResultSet r = s.executeQuery("CALL aq.receive('j', timeout => '10 ms')")) {
            require(r.next(), "no row");
            same("[]", r.getString(1));
        }
    }

    private static void waitCallable(Connection db) throws SQLException {
        enqueue(db, "1");
        commit(db);
        try (CallableStatement c = db.prepareCall("CALL aq.wait(?, ?, ?, ?)")) {
            c.setString(1, "j");
            c.setNull(2, Types.VARCHAR);
            c.setObject(3, new PGInterval("10 seconds"));
            c.setNull(4, Types.BIT);
            c.registerOutParameter(4, Types.BIT);
            c.execute();
            require(c.getBoolean(4), "not ready");
        }
        same(List.of("1"), column(db, "SELECT payload FROM aq.dequeue('j')"));
    }

    private static void waitOwn(Connection db) throws SQLException {
        enqueue(db, "1");
        try (Statement s = db.createStatement();
                ResultSet r = s.executeQuery("CALL aq.wait('j', NULL, '1 s', NULL)")) {
            require(r.next() && r.getBoolean(1), "not ready");
        }
    }

    private static void listen(Connection db) throws SQLException {
        enqueue(db, "1");
        commit(db);
        try (PreparedStatement p = db.prepareStatement("CALL aq.listen(?, ?, '10 s', NULL, NULL)")) {
            p.setArray(1, db.createArrayOf("text", new String[] {"j_topic", "j"}));
            p.setArray(2, db.createArrayOf("text", new String[] {"ann", null}));
            try (ResultSet r = p.executeQuery()) {
                require(r.next(), "no row");
                same("j", r.getString("queue_name"));
                same(null, r.getString("consumer"));
            }
        }
        same(List.of("1"), column(db, "SELECT payload FROM aq.dequeue('j')"));
    }

    private static void errors(Connection db) throws SQLException {
        String[][] calls = {
            {"SELECT aq.enqueue('no such queue', '1')", "42704"},
            {"SELECT * FROM aq.dequeue('j_topic')", "22004"},
            {"SELECT aq.enqueue('j', '1', priority => 10)", "22023"},
            {"SELECT aq.enqueue('j', '1', delay => '200000 years')", "22023"},
        };
        for (String[] call : calls) {
            try (Statement s = db.createStatement()) {
                s.execute(call[0]);
                throw new AssertionError("no error: " + call[0]);
            } catch (SQLException error) {
                same(call[1], error.getSQLState());
            }
            if (!db.getAutoCommit()) {
                db.rollback();
            }
        }
    }

    private static void fetchSize(Connection db) throws SQLException {
        for (int i = 0; i < 30; i++) {
            enqueue(db, Integer.toString(i));
        }
        try (Statement s = db.createStatement()) {
            s.setFetchSize(7);
            try (ResultSet r = s.executeQuery("SELECT payload FROM aq.dequeue('j', max_messages => 30)")) {
                for (int i = 0; i < 30; i++) {
                    require(r.next(), "row " + i + " is missing");
                    same(Integer.toString(i), r.getString(1));
                }
                require(!r.next(), "too many rows");
            }
        }
    }

    /** Cancel from another thread, as setQueryTimeout and Statement.cancel do; the session goes on. */
    private static void cancel(Connection db) throws SQLException {
        try (Statement s = db.createStatement()) {
            s.setQueryTimeout(1);
            s.execute("CALL aq.wait('j', NULL, NULL, NULL)");
            throw new AssertionError("not cancelled");
        } catch (SQLException error) {
            same("57014", error.getSQLState());
        }
        if (!db.getAutoCommit()) {
            db.rollback();
        }
        enqueue(db, "1");
        same(List.of("1"), column(db, "SELECT payload FROM aq.dequeue('j')"));
    }

    private static void rollback(Connection db) throws SQLException {
        enqueue(db, "1");
        db.commit();
        same(List.of("1"), column(db, "SELECT payload FROM aq.dequeue('j')"));
        enqueue(db, "2");
        db.rollback();
        same(List.of("1"), column(db, "SELECT attempts FROM aq.dequeue('j', max_messages => 10)"));
        enqueue(db, "3");
        java.sql.Savepoint here = db.setSavepoint();
        enqueue(db, "4");
        db.rollback(here);
        db.commit();
        same(List.of("3"), column(db, "SELECT payload FROM aq.dequeue('j', max_messages => 10)"));
    }
}
