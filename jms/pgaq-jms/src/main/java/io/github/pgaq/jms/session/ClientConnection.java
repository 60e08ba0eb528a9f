package io.github.pgaq.jms.session;

import io.github.pgaq.jms.PgaqConnection;
import io.github.pgaq.jms.PgaqDestination;
import io.github.pgaq.jms.PgaqOption;
import io.github.pgaq.jms.PgaqOptions;
import io.github.pgaq.jms.message.AllowedClasses;
import io.github.pgaq.jms.message.Messages;
import io.github.pgaq.jms.store.QueueDescription;
import io.github.pgaq.jms.store.Store;
import io.github.pgaq.jms.store.StoreFactory;
import jakarta.jms.ConnectionConsumer;
import jakarta.jms.ConnectionMetaData;
import jakarta.jms.Destination;
import jakarta.jms.ExceptionListener;
import jakarta.jms.IllegalStateException;
import jakarta.jms.InvalidClientIDException;
import jakarta.jms.InvalidDestinationException;
import jakarta.jms.JMSException;
import jakarta.jms.JMSSecurityException;
import jakarta.jms.Queue;
import jakarta.jms.QueueSession;
import jakarta.jms.ServerSessionPool;
import jakarta.jms.Session;
import jakarta.jms.Topic;
import jakarta.jms.TopicSession;
import java.sql.SQLException;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.ReentrantLock;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** A connection: its sessions, and a control connection for what they have in common. */
public class ClientConnection implements PgaqConnection {
    private static final Logger LOG = LoggerFactory.getLogger(ClientConnection.class);
    private static final int MOST_DESCRIBED = 1000;
    private static final int TAKEOVER_ATTEMPTS = 5;
    /** The most reports that wait for an exception listener that does not return. */
    private static final int MOST_UNTOLD = 100;

    private static final String CLAIM_CLIENT = "could not claim the client identifier";

    private final StoreFactory factory;
    private final PgaqOptions options;
    private final boolean callers;
    private final String origin;
    private final String id = UUID.randomUUID().toString();
    private final Control control;
    private final LeaseKeeper keeper;
    private final Commits commits = new Commits();
    private final Subscriptions subscriptions;
    private final Temporaries temporaries;
    private final Messages messages;
    private final List<ClientSession> sessions = new CopyOnWriteArrayList<>();
    private final Map<String, QueueDescription> described = new ConcurrentHashMap<>();
    private final AtomicInteger threads = new AtomicInteger();
    private final AtomicBoolean closed = new AtomicBoolean();

    /** Not a monitor, because the server is called under it: in one, a virtual thread of Java 21 keeps its carrier. */
    private final ReentrantLock lock = new ReentrantLock();
    // guarded by lock
    private boolean started;
    private boolean used;
    private boolean administered;
    private boolean keeping;
    /** A session on the caller's JDBC connection is being opened, and not in the list yet. */
    private boolean opening;

    private volatile String clientId;
    private volatile ExceptionListener exceptionListener;
    /** Reports that the exception listener has not got yet. */
    private final java.util.Queue<JMSException> untold = new ArrayBlockingQueue<>(MOST_UNTOLD);

    private final BackgroundTask telling = new BackgroundTask(task -> thread("exception", task), this::tell);
    private final BackgroundTask suspending = new BackgroundTask(
            task -> thread("suspension", task), () -> sessions().forEach(ClientSession::suspensionChanged));
    /** Time of the latest report of a loss, by System.nanoTime(); before the first one, the start of the connection. */
    private final AtomicLong lastLoss = new AtomicLong(System.nanoTime());
    /** Why the sessions neither send nor receive, for now or for good; null: they do. */
    private volatile JMSException suspension;

    /**
     * Connects.
     *
     * @param factory opens the connections to the server
     * @param callers whether the factory returns the caller's JDBC connection; then there is one session
     * @param origin names the connection factory: a program can open a connection for each message
     */
    public ClientConnection(StoreFactory factory, PgaqOptions options, boolean callers, String origin)
            throws JMSException {
        this.factory = factory;
        this.options = options;
        this.callers = callers;
        this.origin = origin;
        this.control = new Control(factory, options, new Watcher(), id);
        this.temporaries = new Temporaries(this);
        this.keeper = new LeaseKeeper(control, options, temporaries::discard);
        this.subscriptions = new Subscriptions(control, id, options.plainDurableNames());
        this.messages = new Messages(
                AllowedClasses.parse(options.get(PgaqOption.ALLOWED_CLASSES)),
                address -> temporaries.resolve(PgaqDestination.parse(address)));
        control.open();
        try {
            if (options.clientId() != null) {
                claim(options.clientId());
                administered = true;
            }
        } catch (JMSException e) {
            control.close();
            throw e;
        }
    }

    private final class Watcher implements Link.Watcher {
        /** The exception listener knows that another connection has a claim of this one. */
        private boolean refused;

        @Override
        public void lost(SQLException cause, long worked) {
            described.clear();
            int ended = temporaries.lost();
            reportLoss(
                    cause,
                    ended == 0 ? "" : ", and with it " + ended + " temporary destinations: create them again",
                    worked);
        }

        @Override
        public void restored(Store store) throws SQLException {
            try {
                if (clientId != null) {
                    Subscriptions.claimAgain(
                            store, "client:" + clientId, false, "client identifier \"" + clientId + "\"");
                }
                subscriptions.restore(store);
                refused = false;
                suspend(null);
            } catch (SQLException e) {
                if (Subscriptions.IN_USE.equals(e.getSQLState())) {
                    suspend(Errors.of("could not connect again", e));
                    // with a number of attempts, failed() tells it after the last one
                    if (options.reconnectAttempts() < 0 && !refused) {
                        refused = true;
                        report(suspension);
                    }
                }
                throw e;
            }
        }

        @Override
        public void failed(JMSException reason) {
            suspend(reason);
            reportEnd(reason);
        }

        @Override
        public boolean isClosed() {
            return closed.get();
        }
    }

    PgaqOptions options() {
        return options;
    }

    Control control() {
        return control;
    }

    LeaseKeeper keeper() {
        return keeper;
    }

    Commits commits() {
        return commits;
    }

    Subscriptions subscriptions() {
        return subscriptions;
    }

    Temporaries temporaries() {
        return temporaries;
    }

    Messages messages() {
        return messages;
    }

    String clientId() {
        return clientId;
    }

    /** Names the connection in messages: the client identifier, so that durable subscriptions know it, or an id. */
    String name() {
        String client = clientId;
        return client == null ? id : client;
    }

    /** The affinity of what its sessions send, see {@link io.github.pgaq.jms.store.Outgoing}. */
    String affinity() {
        String client = clientId;
        return options.affinity(client == null ? origin : "jms:" + client);
    }

    /** Makes a thread of this connection; unless the options say so, it does not keep the program running. */
    Thread thread(String role, Runnable task) {
        Thread thread = new Thread(task, "pgaq-jms-" + role + "-" + threads.incrementAndGet());
        thread.setDaemon(options.daemonThreads());
        return thread;
    }

    boolean isClosed() {
        return closed.get();
    }

    void checkOpen() throws JMSException {
        if (closed.get()) {
            throw new IllegalStateException("the connection is closed");
        }
    }

    /**
     * Without its control connection, its client identifier and its subscriptions can be another connection's. So its
     * sessions give back what they have leased ahead, and wait. On a thread of its own, because sessions may wait for
     * the control connection, whose lock the caller holds.
     *
     * @param reason null: it has all of them again
     */
    private void suspend(JMSException reason) {
        boolean changes = (reason == null) != (suspension == null);
        suspension = reason;
        if (changes) {
            suspending.run();
        }
    }

    /** Whether sessions must not send and receive; {@link ClientSession#suspensionChanged} follows each change. */
    boolean isSuspended() {
        return suspension != null;
    }

    /** Fails if the sessions must not send and receive. */
    void checkNotSuspended() throws JMSException {
        JMSException reason = suspension;
        if (reason != null) {
            throw Link.again(reason);
        }
    }

    // Sessions

    @Override
    public ClientSession createSession(boolean transacted, int acknowledgeMode) throws JMSException {
        return createSession(transacted ? Session.SESSION_TRANSACTED : checked(acknowledgeMode));
    }

    @Override
    public ClientSession createSession() throws JMSException {
        return createSession(Session.AUTO_ACKNOWLEDGE);
    }

    @Override
    public ClientSession createSession(int mode) throws JMSException {
        checkMode(mode);
        return add(new ClientSession(this, factory, mode, callers));
    }

    @Override
    public QueueSession createQueueSession(boolean transacted, int acknowledgeMode) throws JMSException {
        int mode = transacted ? Session.SESSION_TRANSACTED : checked(acknowledgeMode);
        checkMode(mode);
        return add(new DomainSessions.OfQueues(this, factory, mode, callers));
    }

    @Override
    public TopicSession createTopicSession(boolean transacted, int acknowledgeMode) throws JMSException {
        int mode = transacted ? Session.SESSION_TRANSACTED : checked(acknowledgeMode);
        checkMode(mode);
        return add(new DomainSessions.OfTopics(this, factory, mode, callers));
    }

    private static int checked(int acknowledgeMode) throws JMSException {
        if (acknowledgeMode == Session.SESSION_TRANSACTED) {
            throw new JMSException("acknowledge mode SESSION_TRANSACTED needs a transacted session");
        }
        return acknowledgeMode;
    }

    private static void checkMode(int mode) throws JMSException {
        if (mode < Session.SESSION_TRANSACTED || mode > Session.DUPS_OK_ACKNOWLEDGE) {
            throw new JMSException("acknowledge mode " + mode + " does not exist");
        }
    }

    /** Opens a session that was made for this connection. */
    protected final <S extends ClientSession> S add(S session) throws JMSException {
        checkOpen();
        locked(() -> {
            used = true;
            if (callers && (opening || !sessions.isEmpty())) {
                throw new IllegalStateException(
                        "a connection on a JDBC connection of the caller has one session at most");
            }
            opening = true;
            keep();
        });
        // not locked: a pool may have no connection until another thread closes a session
        try {
            session.open();
            sessions.add(session);
        } finally {
            locked(() -> opening = false);
        }
        if (closed.get()) {
            // closed meanwhile, maybe before the session was in the list
            session.close();
        }
        checkOpen();
        locked(() -> session.setStarted(started));
        return session;
    }

    /** Starts the control thread, unless the connection is the caller's. */
    private void keep() {
        if (!callers && !keeping) {
            keeping = true;
            thread("control", keeper).start();
        }
    }

    private void locked(Errors.CheckedVoid action) throws JMSException {
        lock.lock();
        try {
            action.run();
        } finally {
            lock.unlock();
        }
    }

    /** Whether it works on the caller's JDBC connection. */
    boolean isCallers() {
        return callers;
    }

    /** The open sessions. */
    List<ClientSession> sessions() {
        return sessions;
    }

    void closed(ClientSession session) {
        sessions.remove(session);
    }

    boolean hasConsumer(PgaqDestination destination) throws JMSException {
        return subscriptions.uses(destination)
                || sessions.stream().anyMatch(s -> s.roster().consumesFrom(destination));
    }

    /**
     * Checks that a destination exists and is what it is said to be. Asks the server once for each name.
     *
     * @param session who uses it
     * @throws InvalidDestinationException if not
     */
    QueueDescription describe(PgaqDestination destination, ClientSession session) throws JMSException {
        checkNotSuspended();
        if (destination.isTemporary()) {
            temporaries.checkNotDeleted(destination);
        }
        QueueDescription description = described.get(destination.serverName());
        if (description == null) {
            description = control.call(
                    "could not use \"" + destination.getName() + "\"",
                    store -> store.describe(destination.serverName()));
            if (described.size() >= MOST_DESCRIBED) {
                // temporary queues of other connections come and go
                described.clear();
            }
            described.put(destination.serverName(), description);
        }
        if (description.topic() != destination.isTopic()) {
            throw new InvalidDestinationException("\"" + destination.getName() + "\" is a "
                    + (description.topic() ? "topic, not a queue" : "queue, not a topic"));
        }
        if (!description.holdsMessages() && !description.holdsBodies()) {
            throw new InvalidDestinationException("payload type of \"" + destination.getName()
                    + "\" must be aq.jms_message, text, jsonb or bytea, not " + description.payloadType());
        }
        return description;
    }

    /**
     * As {@link #describe}, for a send. Without it a transacted session would learn of the missing privilege at the
     * commit, which loses the other messages.
     *
     * @throws JMSSecurityException if the role may not send
     */
    QueueDescription describeToSend(PgaqDestination destination, ClientSession session) throws JMSException {
        QueueDescription description = describe(destination, session);
        if (destination.isTemporary() || description.mayEnqueue()) {
            return description;
        }
        // it may have been granted meanwhile
        described.remove(destination.serverName());
        description = describe(destination, session);
        if (!description.mayEnqueue()) {
            throw new JMSSecurityException(
                    "could not send: permission denied for queue \"" + destination.getName()
                            + "\": ENQUEUE privilege is required",
                    Errors.NO_PRIVILEGE);
        }
        return description;
    }

    // State

    @Override
    public String getClientID() throws JMSException {
        checkOpen();
        return clientId;
    }

    @Override
    public void setClientID(String id) throws JMSException {
        checkOpen();
        locked(() -> name(id));
    }

    private void name(String id) throws JMSException {
        if (administered || clientId != null) {
            throw new IllegalStateException("the connection has a client identifier already");
        }
        if (used) {
            throw new IllegalStateException("setClientID() must be the first call on a connection");
        }
        if (id == null || id.isEmpty()) {
            throw new InvalidClientIDException("client identifier must not be empty");
        }
        claim(id);
    }

    private void claim(String id) throws JMSException {
        if (!control.call(CLAIM_CLIENT, store -> claim(store, id))) {
            throw new InvalidClientIDException("client identifier \"" + id + "\" is in use");
        }
    }

    /** With the lock of control: a connection that is opened instead of this one finds that it has to claim it. */
    private boolean claim(Store store, String id) throws SQLException {
        String claim = "client:" + id;
        // one of the caller's belongs to a transaction, and would end those that work beside it
        boolean takes = options.clientIdTakeover() && !callers;
        if (!store.claim(claim, false) && !(takes && takeOver(store, claim))) {
            return false;
        }
        if (takes) {
            try {
                // also if the identifier was free: sessions can outlive their control connection for a while
                store.endClaimants(sessionClaim(id));
            } catch (SQLException e) {
                store.unclaim(claim, false);
                throw e;
            }
        }
        clientId = id;
        return true;
    }

    /** Ends the control connection that has the claim, so that no session can be added to it; its sessions follow. */
    private static boolean takeOver(Store store, String claim) throws SQLException {
        boolean claimed = false;
        for (int attempt = 0; !claimed && attempt < TAKEOVER_ATTEMPTS; attempt++) {
            store.endClaimants(claim);
            claimed = store.claim(claim, false);
        }
        return claimed;
    }

    private static String sessionClaim(String id) {
        return "session:" + id;
    }

    /** Lets one that takes over the client identifier end this connection of a session; {@link #checkClaim} follows. */
    void registerSession(Store store) throws SQLException {
        String id = clientId;
        if (id != null && !store.claim(sessionClaim(id), true)) {
            // a takeover would not find it
            throw new SQLException(
                    "sessions of client identifier \"" + id + "\" are claimed by another connection",
                    Subscriptions.IN_USE);
        }
    }

    /** Fails if the connection no longer has its client identifier. */
    void checkClaim() throws JMSException {
        if (clientId != null) {
            checkNotSuspended();
            control.check();
        }
    }

    /**
     * Fails if another connection has taken over the client identifier. Asks the server only if the control thread has
     * not done so for long, as when the process was stopped.
     */
    void checkTakeover() throws JMSException {
        if (clientId != null && !callers && control.isStale()) {
            control.check();
        }
    }

    @Override
    public ConnectionMetaData getMetaData() throws JMSException {
        checkOpen();
        return MetaData.INSTANCE;
    }

    @Override
    public ExceptionListener getExceptionListener() throws JMSException {
        checkOpen();
        return exceptionListener;
    }

    /** {@inheritDoc} A pool sets it before its user can set the client identifier. */
    @Override
    public void setExceptionListener(ExceptionListener listener) throws JMSException {
        checkOpen();
        exceptionListener = listener;
        // without a session nothing else finds that the connection is lost
        locked(this::keep);
    }

    /**
     * Tells the exception listener that a connection to the server is lost, once for what ends several of them.
     *
     * @param consequence what else is lost, as the end of a sentence, or empty
     * @param worked when it worked last: before the last report, if it is lost by the same event
     */
    void reportLoss(SQLException cause, String consequence, long worked) {
        long last = lastLoss.getAndSet(System.nanoTime());
        if (worked - last < 0 && consequence.isEmpty()) {
            return;
        }
        report(Errors.of("connection to the server is lost" + consequence, cause));
    }

    /** Tells it that no more attempts to connect follow; without attempts, the report of the loss has said so. */
    void reportEnd(JMSException reason) {
        if (options.reconnectAttempts() > 0) {
            report(reason);
        }
    }

    /** Tells the exception listener, on a thread of its own, because the caller may hold locks; one at a time. */
    void report(JMSException reason) {
        if (exceptionListener == null || !untold.offer(reason)) {
            LOG.warn("connection failed: {}", reason.getMessage());
            return;
        }
        telling.run();
    }

    /** A listener that closes the connection, as pools do, is told no more. */
    private void tell() {
        for (JMSException reason = untold.poll(); reason != null; reason = untold.poll()) {
            ExceptionListener listener = exceptionListener;
            if (listener != null && !closed.get()) {
                try {
                    listener.onException(reason);
                } catch (Throwable e) { // the other reports follow
                    LOG.error("the exception listener failed", e);
                }
            }
        }
    }

    @Override
    public void start() throws JMSException {
        checkOpen();
        setStarted(true);
    }

    private void setStarted(boolean value) throws JMSException {
        locked(() -> {
            used = true;
            started = value;
            sessions.forEach(session -> session.setStarted(value));
        });
    }

    @Override
    public void stop() throws JMSException {
        checkOpen();
        Callbacks.refuseListener(this, "stop()");
        setStarted(false);
        // not locked: listeners may call this connection
        sessions.forEach(ClientSession::awaitListener);
    }

    @Override
    public void close() throws JMSException {
        Callbacks.refuseListener(this, "close()");
        Callbacks.refuseCompletion(this, "close()");
        if (!closed.compareAndSet(false, true)) {
            return;
        }
        JMSException first = null;
        for (ClientSession session : sessions) {
            try {
                session.close();
            } catch (JMSException e) {
                first = first == null ? e : first;
            }
        }
        keeper.close();
        control.close();
        if (first != null) {
            throw first;
        }
    }

    // Connection consumers, which are optional

    @Override
    public ConnectionConsumer createConnectionConsumer(
            Destination destination, String selector, ServerSessionPool pool, int maxMessages) throws JMSException {
        throw unsupported();
    }

    @Override
    public ConnectionConsumer createConnectionConsumer(
            Queue queue, String selector, ServerSessionPool pool, int maxMessages) throws JMSException {
        throw unsupported();
    }

    @Override
    public ConnectionConsumer createConnectionConsumer(
            Topic topic, String selector, ServerSessionPool pool, int maxMessages) throws JMSException {
        throw unsupported();
    }

    @Override
    public ConnectionConsumer createSharedConnectionConsumer(
            Topic topic, String name, String selector, ServerSessionPool pool, int maxMessages) throws JMSException {
        throw refused();
    }

    @Override
    public ConnectionConsumer createDurableConnectionConsumer(
            Topic topic, String name, String selector, ServerSessionPool pool, int maxMessages) throws JMSException {
        throw refused();
    }

    @Override
    public ConnectionConsumer createSharedDurableConnectionConsumer(
            Topic topic, String name, String selector, ServerSessionPool pool, int maxMessages) throws JMSException {
        throw refused();
    }

    /** Those that a QueueConnection refuses anyway. */
    private IllegalStateException refused() throws JMSException {
        return new IllegalStateException(unsupported().getMessage());
    }

    private JMSException unsupported() throws JMSException {
        checkOpen();
        return new JMSException("connection consumers are not supported; use message listeners of consumers");
    }
}
