// A job worker: Java, pgjdbc.
//
//     java -cp /usr/share/java/postgresql.jar WorkerPgjdbc.java
//
// Copy it, and replace handle(), save() and the settings.  examples/README.md explains the parts, which have the same
// names in every language.

import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.locks.ReentrantLock;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

public final class WorkerPgjdbc {
    // through PgBouncer: transaction pooling, and a pool of its own for the connection that waits, see
    // docs/pgbouncer.md
    static final String DATABASE_URL = setting("DATABASE_URL", "jdbc:postgresql://localhost/shop");
    static final String WAIT_URL = setting("WAIT_URL", DATABASE_URL);
    static final String QUEUE = setting("QUEUE", "jobs");
    static final int WORKERS = Integer.parseInt(setting("WORKERS", "4")); // threads, each with a connection
    static final int BATCH = Integer.parseInt(setting("BATCH", "1")); // messages that a worker takes at a time
    static final double LEASE =
            Double.parseDouble(setting("LEASE", "60")); // seconds; how soon a dead worker's come back
    static final long FIRST_PAUSE = 100, LAST_PAUSE = 5000; // milliseconds between attempts to connect, growing

    static volatile boolean stopping;

    /** The message can never succeed: no more attempts. */
    static final class Reject extends Exception {
        Reject(String reason) {
            super(reason);
        }
    }

    record Message(UUID msgid, int attempts, String payload) {
        /** A field of the payload; use your JSON library instead. */
        double number(String name) {
            Matcher found = Pattern.compile("\"" + name + "\": (true|[0-9.]+)").matcher(payload);
            return !found.find() ? 0 : found.group(1).equals("true") ? 1 : Double.parseDouble(found.group(1));
        }
    }

    /** Your work, outside of any transaction. An exception is the message's error: it is tried again later. */
    static long handle(Message message) throws Exception {
        Thread.sleep((long) (1000 * message.number("seconds")));
        if (message.number("reject") == 1) throw new Reject("no such job");
        if (message.attempts() < message.number("failures"))
            throw new IllegalStateException("failure " + (message.attempts() + 1));
        return 2 * (long) message.number("n");
    }

    /** Your results, in the transaction of the acknowledgement: they are saved exactly once. */
    static void save(Connection db, Message message, long result) throws SQLException {
        try (PreparedStatement insert =
                db.prepareStatement("INSERT INTO job_result (msgid, attempts, result) VALUES (?, ?, ?)")) {
            insert.setObject(1, message.msgid());
            insert.setInt(2, message.attempts());
            insert.setLong(3, result);
            insert.executeUpdate();
        }
    }

    static String setting(String name, String otherwise) {
        return System.getenv().getOrDefault(name, otherwise);
    }

    static double now() {
        return System.currentTimeMillis() / 1000.0;
    }

    static void log(String event, Object... details) {
        StringBuilder line = new StringBuilder("%.3f %s".formatted(now(), event));
        for (Object detail : details) line.append(detail instanceof Double ? " %.3f".formatted(detail) : " " + detail);
        System.out.println(line);
    }

    static void pause(long milliseconds) {
        try {
            Thread.sleep(milliseconds);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    /** Messages that were taken together, until they are settled. */
    static final class Batch {
        final Map<UUID, Message> open = new ConcurrentHashMap<>();
        final List<Message> taken = new ArrayList<>();
        long receipt;
        volatile double until = now() + LEASE;

        /** Calls a function that ends or extends leases; the result of each message. */
        Map<UUID, String> ask(Connection db, String call, List<UUID> msgids, Object... more) throws SQLException {
            Map<UUID, String> answers = new LinkedHashMap<>();
            try (PreparedStatement asked = db.prepareStatement("SELECT msgid, result FROM aq." + call)) {
                asked.setString(1, QUEUE);
                asked.setArray(2, db.createArrayOf("uuid", msgids.toArray()));
                asked.setLong(3, receipt);
                for (int i = 0; i < more.length; i++) asked.setObject(4 + i, more[i]);
                ResultSet rows = asked.executeQuery();
                while (rows.next()) answers.put(rows.getObject(1, UUID.class), rows.getString(2));
            }
            return answers;
        }
    }

    interface Work<T> {
        T run(Connection db) throws SQLException;
    }

    /** A connection that is made again when it is lost. */
    static final class Database {
        final String url;
        Connection db;

        Database(String url) {
            this.url = url + (url.contains("?") ? "&" : "?") + "prepareThreshold=0&loginTimeout=10&tcpKeepAlive=true"
                    + "&ApplicationName=worker%20" + ProcessHandle.current().pid();
        }

        /**
         * Calls work(connection), again after a lost connection: so it must be safe to repeat. When the worker stops,
         * only what must be done is tried again.
         */
        <T> T run(boolean untilDone, Work<T> work) throws SQLException {
            for (long pause = FIRST_PAUSE; ; pause = Math.min(2 * pause, LAST_PAUSE)) {
                try {
                    if (db == null || db.isClosed()) db = DriverManager.getConnection(url);
                    return work.run(db);
                } catch (SQLException error) {
                    if ((db != null && !db.isClosed()) || (stopping && !untilDone)) throw error;
                    log("reconnect", error.getMessage());
                }
                pause(pause);
            }
        }

        <T> T transaction(Work<T> work) throws SQLException {
            return run(true, db -> {
                db.setAutoCommit(false);
                try {
                    T result = work.run(db);
                    db.commit();
                    return result;
                } catch (SQLException | RuntimeException error) {
                    if (!db.isClosed()) db.rollback();
                    throw error;
                } finally {
                    if (!db.isClosed()) db.setAutoCommit(true);
                }
            });
        }
    }

    /** One connection on which a worker waits for messages. The other workers without messages queue for the turn. */
    static final class Waiting {
        final ReentrantLock turn = new ReentrantLock();
        final Database database = new Database(WAIT_URL);
        volatile Statement waits;

        /** The next messages, or null when the worker stops. */
        Batch take(Worker worker) throws SQLException {
            turn.lock();
            try {
                while (!stopping) {
                    Batch batch = worker.take();
                    if (batch != null) return batch;
                    database.run(false, db -> {
                        try (PreparedStatement call = db.prepareStatement("CALL aq.wait(?, '30 seconds')")) {
                            call.setString(1, QUEUE);
                            waits = call;
                            return stopping || call.execute();
                        }
                    });
                }
            } catch (SQLException error) {
                if (!stopping) // otherwise by stop()
                throw error;
            } finally {
                turn.unlock();
            }
            return null;
        }

        void stop() {
            try {
                if (waits != null) waits.cancel();
            } catch (SQLException error) {
                // nothing is left to release
            }
        }
    }

    static final class Worker extends Thread {
        final Waiting waiting;
        final Database database = new Database(DATABASE_URL);
        volatile Batch batch;

        Worker(Waiting waiting) {
            this.waiting = waiting;
        }

        @Override
        public void run() {
            while (!stopping) {
                try {
                    batch = waiting.take(this);
                    if (batch != null) work(batch);
                } catch (SQLException
                        | RuntimeException error) { // for instance a stopped queue, or a missing privilege
                    log("error", error.getMessage());
                    pause(stopping ? 0 : LAST_PAUSE);
                } finally {
                    batch = null; // the heartbeat extends its leases no longer
                }
            }
        }

        Batch take() throws SQLException {
            return database.run(false, db -> {
                Batch batch = new Batch();
                try (PreparedStatement dequeue = db.prepareStatement("SELECT receipt, msgid, attempts, payload"
                        + " FROM aq.dequeue(?, max_messages => ?, lease => make_interval(secs => ?))")) {
                    dequeue.setString(1, QUEUE);
                    dequeue.setInt(2, BATCH);
                    dequeue.setDouble(3, LEASE);
                    ResultSet rows = dequeue.executeQuery();
                    while (rows.next()) {
                        Message message = new Message(rows.getObject(2, UUID.class), rows.getInt(3), rows.getString(4));
                        batch.receipt = rows.getLong(1);
                        batch.taken.add(message);
                        batch.open.put(message.msgid(), message);
                    }
                }
                return batch.taken.isEmpty() ? null : batch;
            });
        }

        void work(Batch batch) throws SQLException {
            Map<Message, Long> results = new LinkedHashMap<>();
            for (Message message : batch.taken) {
                if (stopping || now() > batch.until) break;
                if (!batch.open.containsKey(message.msgid())) // the heartbeat has found that the lease is over
                continue;
                log("begin", message.msgid(), message.attempts(), batch.until);
                try {
                    results.put(message, handle(message));
                } catch (Reject error) {
                    settle(batch, "reject(?, ?, ?, error => ?)", List.of(message), null, error.toString());
                } catch (Throwable error) {
                    fail(batch, message, error);
                }
            }
            finish(batch, results);
            settle(batch, "release(?, ?, ?, count => ?)", batch.taken, null, false); // not begun: given back unseen
        }

        /** Saves results and acknowledges their messages. */
        void finish(Batch batch, Map<Message, Long> results) throws SQLException {
            try {
                settle(batch, "acknowledge(?, ?, ?)", new ArrayList<>(results.keySet()), results);
            } catch (SQLException | RuntimeException error) { // of save(): for which message?
                for (Map.Entry<Message, Long> entry : results.entrySet()) {
                    if (results.size() > 1) finish(batch, Map.of(entry.getKey(), entry.getValue()));
                    else fail(batch, entry.getKey(), error);
                }
            }
        }

        /** Gives the message back; it rests for the queue's retry delay. */
        void fail(Batch batch, Message message, Throwable error) throws SQLException {
            settle(batch, "release(?, ?, ?, error => ?)", List.of(message), null, error.toString());
        }

        /** Ends leases by aq.acknowledge, aq.release or aq.reject, and saves results in the same transaction. */
        void settle(Batch batch, String call, List<Message> messages, Map<Message, Long> results, Object... more)
                throws SQLException {
            while (true) {
                List<UUID> msgids = messages.stream()
                        .map(Message::msgid)
                        .filter(batch.open::containsKey)
                        .toList();
                if (msgids.isEmpty()) return;
                Map<UUID, String> answers = database.transaction(db -> {
                    Map<UUID, String> found = batch.ask(db, call, msgids, more);
                    for (Message message : messages)
                        if (results != null && "done".equals(found.get(message.msgid())))
                            save(db, message, results.get(message));
                    return found;
                });
                answers.forEach((msgid, answer) -> {
                    if (!answer.equals("busy")) {
                        log(answer, call.substring(0, call.indexOf('(')), msgid);
                        batch.open.remove(msgid);
                    }
                });
                if (answers.containsValue("busy")) // the heartbeat, or a transaction that a lost connection has left
                pause(FIRST_PAUSE);
            }
        }
    }

    /** Extends the leases of all workers. */
    static final class Heartbeat extends Thread {
        final List<Worker> workers;
        final Database database = new Database(DATABASE_URL);

        Heartbeat(List<Worker> workers) {
            this.workers = workers;
            setDaemon(true);
        }

        @Override
        public void run() {
            while (true) {
                pause((long) (1000 * LEASE / 3));
                for (Worker worker : workers) {
                    Batch batch = worker.batch;
                    try {
                        if (batch != null) extend(batch);
                    } catch (SQLException | RuntimeException error) {
                        log("error", error.getMessage());
                    }
                }
            }
        }

        void extend(Batch batch) throws SQLException {
            database.run(false, db -> {
                double until = now() + LEASE;
                List<UUID> msgids = new ArrayList<>(batch.open.keySet());
                batch.ask(db, "extend(?, ?, ?, make_interval(secs => ?))", msgids, LEASE)
                        .forEach((msgid, answer) -> {
                            if (answer.equals("stale")) {
                                log("stale extend", msgid);
                                batch.open.remove(msgid);
                            } else if (answer.equals("done")) {
                                batch.until = until;
                                log("extended", msgid, until);
                            }
                        });
                return null;
            });
        }
    }

    public static void main(String[] arguments) throws Exception {
        Waiting waiting = new Waiting();
        List<Worker> workers = new ArrayList<>();
        for (int i = 0; i < WORKERS; i++) workers.add(new Worker(waiting));
        Heartbeat heartbeat = new Heartbeat(workers);
        workers.forEach(Thread::start);
        heartbeat.start();
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            log("stopping");
            stopping = true;
            while (workers.stream().anyMatch(Thread::isAlive)) {
                waiting.stop();
                pause(FIRST_PAUSE);
            }
            log("stopped");
            Runtime.getRuntime().halt(0);
        }));
        log("started");
    }
}
