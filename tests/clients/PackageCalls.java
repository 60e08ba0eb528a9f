// Oracle's packages through pgjdbc, as a Java program that called them in Oracle does: CallableStatement with the
// JDBC escape syntax (escapeSyntaxCallMode=call), OUT parameters, option records as SQL in the call.
//
// java -cp postgresql.jar:. PackageCalls jdbc:postgresql://host:port/database user password
// prints what failed and, last, "N passed, N failed"; exit status 1 when something failed.

import java.sql.CallableStatement;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.SQLException;
import java.sql.Statement;
import java.sql.Types;
import java.util.Arrays;
import java.util.Properties;
import java.util.UUID;
import org.postgresql.util.PGobject;

public final class PackageCalls {
    private interface Check {
        void run(Connection db) throws Exception;
    }

    private static int passed;
    private static int failed;

    private PackageCalls() {}

    public static void main(String[] arguments) throws Exception {
        for (String mode : new String[] {"extended", "extendedForPrepared", "simple"}) {
            for (String stringtype : new String[] {"unspecified", "varchar"}) {
                for (boolean autocommit : new boolean[] {true, false}) {
                    Properties settings = new Properties();
                    settings.setProperty("user", arguments[1]);
                    settings.setProperty("password", arguments[2]);
                    settings.setProperty("escapeSyntaxCallMode", "call");
                    settings.setProperty("preferQueryMode", mode);
                    settings.setProperty("stringtype", stringtype);
                    settings.setProperty("prepareThreshold", "2");
                    try (Connection db = DriverManager.getConnection(arguments[0], settings)) {
                        setUp(db);
                        db.setAutoCommit(autocommit);
                        String name = mode + ", " + stringtype + " strings, autocommit " + autocommit;
                        check(name, "enqueue and dequeue text", db, PackageCalls::text);
                        check(name, "enqueue and dequeue a composite payload", db, PackageCalls::composite);
                        check(name, "no message", db, PackageCalls::nothing);
                        check(name, "listen", db, PackageCalls::listen);
                        if (!mode.equals("simple")) { // pgjdbc does not write bytes into the text of a call
                            check(name, "bytes, empty, null and long", db, PackageCalls::bytes);
                        }
                        check(name, "a list of recipients", db, PackageCalls::recipients);
                        check(name, "a rollback gives the message back", db, PackageCalls::rollback);
                        check(name, "administration", db, PackageCalls::administration);
                    }
                }
            }
        }
        System.out.println(passed + " passed, " + failed + " failed");
        System.exit(failed == 0 ? 0 : 1);
    }

    private static void check(String round, String what, Connection db, Check body) throws SQLException {
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
    }

    private static void commit(Connection db) throws SQLException {
        if (!db.getAutoCommit()) {
            db.commit();
        }
    }

    private static void setUp(Connection db) throws SQLException {
        try (Statement s = db.createStatement()) {
            s.execute("DO $$ BEGIN IF to_regnamespace('jp') IS NOT NULL THEN CALL dbms_aqadm.drop_queue_table('jp.tab',"
                    + " true); CALL dbms_aqadm.drop_queue_table('jp.texts_tab', true); CALL"
                    + " dbms_aqadm.drop_queue_table('jp.raw_tab', true); CALL"
                    + " dbms_aqadm.drop_sharded_queue('jp.news', true); DROP SCHEMA jp CASCADE; END IF; END $$");
            s.execute("CREATE SCHEMA jp");
            s.execute("CREATE TYPE jp.parcel AS (id integer, destination text)");
            s.execute("CALL dbms_aqadm.create_queue_table('jp.tab', 'jp.parcel')");
            s.execute("CALL dbms_aqadm.create_queue('jp.q', 'jp.tab')");
            s.execute("CALL dbms_aqadm.create_queue_table('jp.texts_tab', 'JSON')");
            s.execute("CALL dbms_aqadm.create_queue('jp.texts', 'jp.texts_tab')");
            s.execute("CALL dbms_aqadm.start_queue('jp.q')");
            s.execute("CALL dbms_aqadm.start_queue('jp.texts')");
            s.execute("CALL dbms_aqadm.create_queue_table('jp.raw_tab', 'RAW')");
            s.execute("CALL dbms_aqadm.create_queue('jp.raw', 'jp.raw_tab')");
            s.execute("CALL dbms_aqadm.start_queue('jp.raw')");
            s.execute("CALL dbms_aqadm.create_sharded_queue('jp.news', queue_payload_type => 'JSON', multiple_consumers"
                    + " => true)");
            s.execute("CALL dbms_aqadm.start_queue('jp.news')");
        }
    }

    private static void same(Object wanted, Object got) {
        if (!wanted.equals(got)) {
            throw new AssertionError("wanted " + wanted + ", got " + got);
        }
    }

    /** {call dbms_aq.enqueue(queue, options, properties, payload, OUT msgid)}. */
    private static UUID enqueue(Connection db, String queue, Object payload) throws SQLException {
        try (CallableStatement c = db.prepareCall(
                "{call dbms_aq.enqueue(?, NULL, dbms_aq.message_properties_t(correlation => ?), ?, ?)}")) {
            c.setString(1, queue);
            c.setString(2, "from java");
            if (payload instanceof String) {
                c.setString(3, (String) payload);
            } else {
                c.setObject(3, payload);
            }
            c.setNull(4, Types.OTHER);
            c.registerOutParameter(4, Types.OTHER);
            c.execute();
            return (UUID) c.getObject(4);
        }
    }

    /** {call dbms_aq.dequeue(queue, options, OUT properties, INOUT payload, OUT msgid)}, the payload as text. */
    private static String[] dequeue(Connection db, String queue, int wait) throws SQLException {
        try (CallableStatement c =
                db.prepareCall("{call dbms_aq.dequeue(?, dbms_aq.dequeue_options_t(wait => ?), ?, ?, ?)}")) {
            c.setString(1, queue);
            c.setInt(2, wait);
            c.setNull(3, Types.OTHER);
            c.registerOutParameter(3, Types.STRUCT);
            c.setNull(4, Types.VARCHAR);
            c.registerOutParameter(4, Types.VARCHAR);
            c.setNull(5, Types.OTHER);
            c.registerOutParameter(5, Types.OTHER);
            c.execute();
            return new String[] {
                c.getString(4), c.getObject(5).toString(), c.getObject(3).toString()
            };
        }
    }

    private static void text(Connection db) throws SQLException {
        for (int i = 0; i < 4; i++) {
            UUID id = enqueue(db, "JP.TEXTS", "{\"n\": " + i + "}");
            String[] got = dequeue(db, "jp.texts", 5);
            same("{\"n\": " + i + "}", got[0]);
            same(id.toString(), got[1]);
            same(true, got[2].contains("from java"));
        }
    }

    private static void composite(Connection db) throws SQLException {
        PGobject parcel = new PGobject();
        parcel.setType("jp.parcel");
        parcel.setValue("(7,Oslo)");
        enqueue(db, "jp.q", parcel);
        enqueue(db, "jp.q", "(8,Rome)");
        same("(7,Oslo)", dequeue(db, "jp.q", 5)[0]);
        same("(8,Rome)", dequeue(db, "jp.q", 5)[0]);
    }

    private static void bytes(Connection db) throws SQLException {
        for (byte[] payload : new byte[][] {{0, 1, -1}, {}, null, new byte[100000]}) {
            try (CallableStatement c = db.prepareCall("{call dbms_aq.enqueue('jp.raw', NULL, NULL, ?, ?)}")) {
                c.setBytes(1, payload);
                c.setNull(2, Types.OTHER);
                c.registerOutParameter(2, Types.OTHER);
                c.execute();
            }
            try (CallableStatement c = db.prepareCall(
                    "{call dbms_aq.dequeue('jp.raw', dbms_aq.dequeue_options_t(wait => 5), ?, ?::bytea, ?)}")) {
                c.setNull(1, Types.OTHER);
                c.registerOutParameter(1, Types.STRUCT);
                c.setNull(2, Types.BINARY);
                c.registerOutParameter(2, Types.BINARY);
                c.setNull(3, Types.OTHER);
                c.registerOutParameter(3, Types.OTHER);
                c.execute();
                same(Arrays.toString(payload), Arrays.toString(c.getBytes(2)));
            }
        }
    }

    private static void recipients(Connection db) throws SQLException {
        try (CallableStatement c = db.prepareCall(
                "{call dbms_aq.enqueue('jp.news', NULL, dbms_aq.message_properties_t(recipient_list => ?), '{\"n\":"
                        + " 1}', ?)}")) {
            c.setArray(1, db.createArrayOf("sys.aq$_agent", new String[] {"(ANN,,)", "(BOB,,)"}));
            c.setNull(2, Types.OTHER);
            c.registerOutParameter(2, Types.OTHER);
            c.execute();
        }
        for (String consumer : new String[] {"ann", "BOB"}) {
            try (CallableStatement c =
                    db.prepareCall("{call dbms_aq.dequeue('jp.news', dbms_aq.dequeue_options_t(wait => 5, navigation =>"
                            + " dbms_aq.first_message(), consumer_name => ?), ?, ?, ?)}")) {
                c.setString(1, consumer);
                c.setNull(2, Types.OTHER);
                c.registerOutParameter(2, Types.STRUCT);
                c.setNull(3, Types.VARCHAR);
                c.registerOutParameter(3, Types.VARCHAR);
                c.setNull(4, Types.OTHER);
                c.registerOutParameter(4, Types.OTHER);
                c.execute();
                same("{\"n\": 1}", c.getString(3));
            }
        }
    }

    /** In a transaction of its own, whatever the round. */
    private static void rollback(Connection db) throws SQLException {
        boolean autocommit = db.getAutoCommit();
        UUID id = enqueue(db, "jp.q", "(10,Kiel)");
        commit(db);
        db.setAutoCommit(false);
        same("(10,Kiel)", dequeue(db, "jp.q", 5)[0]);
        db.rollback();
        String[] again = dequeue(db, "jp.q", 5);
        same(id.toString(), again[1]);
        same(
                true,
                again[2].startsWith("(1,0,-1,\"from java\",1,")); // priority, delay, expiration, correlation, attempts
        db.commit();
        db.setAutoCommit(autocommit);
    }

    private static void nothing(Connection db) throws SQLException {
        try {
            dequeue(db, "jp.q", 0);
            throw new AssertionError("a message from nowhere");
        } catch (SQLException error) {
            same("AQ063", error.getSQLState());
            same(true, error.getMessage().contains("ORA-25228"));
            if (!db.getAutoCommit()) {
                db.rollback();
            }
        }
    }

    private static void listen(Connection db) throws SQLException {
        enqueue(db, "jp.q", "(9,Bern)");
        commit(db);
        try (CallableStatement c = db.prepareCall(
                "{call dbms_aq.listen(ARRAY[sys.aq$_agent(NULL, 'jp.texts', NULL), sys.aq$_agent(NULL, 'jp.q', NULL)],"
                        + " ?, ?)}")) {
            c.setInt(1, 10);
            c.setNull(2, Types.OTHER);
            c.registerOutParameter(2, Types.STRUCT);
            c.execute();
            same("(,jp.q,)", c.getObject(2).toString());
        }
        same("(9,Bern)", dequeue(db, "jp.q", 5)[0]);
    }

    private static void administration(Connection db) throws SQLException {
        try (CallableStatement c = db.prepareCall("{call dbms_aqadm.stop_queue(queue_name => ?, enqueue => ?)}")) {
            c.setString(1, "jp.q");
            c.setBoolean(2, true);
            c.execute();
        }
        try (CallableStatement c = db.prepareCall("{call dbms_aqadm.start_queue(?)}")) {
            c.setString(1, "jp.q");
            c.execute();
        }
    }
}
