package io.github.pgaq.jms.sql;

import io.github.pgaq.jms.store.Body;
import io.github.pgaq.jms.store.Delivery;
import io.github.pgaq.jms.store.Lease;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;
import java.util.UUID;

/** Reads the binary result of {@code aq_jms.receive} and {@code aq_jms.browse}, see jms/README.md. */
final class Rows {

    private static final int COLUMNS = 9;
    private static final int BODY_FIELDS = 6;
    /** 2000-01-01, where the server's times begin, in milliseconds since 1970. */
    private static final long EPOCH_MS = 946_684_800_000L;
    /** SQLSTATE: protocol violation. */
    private static final String UNEXPECTED = "08P01";

    private final ByteBuffer in;

    Rows(byte[] result) {
        in = ByteBuffer.wrap(result);
    }

    /** First part: the leases of the list that are not acknowledged. */
    Leases.Undone undone(List<Lease> leases) {
        Leases.Undone undone = new Leases.Undone();
        for (int left = in.getInt(); left > 0; left--) {
            undone.add(in.getInt(), leases);
        }
        return undone;
    }

    /** Second part: the index of the source, or -1. */
    int source() {
        return in.getInt();
    }

    /** Last part. */
    List<Delivery> messages() throws SQLException {
        int count = in.getInt();
        List<Delivery> messages = new ArrayList<>(count);
        for (int i = 0; i < count; i++) {
            in.getInt();
            messages.add(message());
        }
        return messages;
    }

    private Delivery message() throws SQLException {
        fields(COLUMNS);
        field();
        UUID msgid = new UUID(in.getLong(), in.getLong());
        field();
        long receipt = in.getLong();
        field();
        int attempts = in.getInt();
        field();
        int priority = in.getInt();
        long enqueued = time();
        long ready = time();
        long expires = time();
        String sender = text();
        Body body = field() < 0 ? null : body();
        return new Delivery(msgid, receipt, attempts, priority, enqueued, ready, expires, sender, body);
    }

    private Body body() throws SQLException {
        fields(BODY_FIELDS);
        String type = text();
        String headers = json();
        return new Body(type, headers == null ? "{}" : headers, json(), json(), text(), bytes());
    }

    private void fields(int expected) throws SQLException {
        int found = in.getInt();
        if (found != expected) {
            throw new SQLException(
                    "unexpected message from the server: " + found + " fields, not " + expected
                            + "; is its extension pgaq of the same version?",
                    UNEXPECTED);
        }
    }

    /** The head of a field; returns its length, -1: null. */
    private int field() {
        in.getInt();
        return in.getInt();
    }

    private long time() {
        return field() < 0 ? 0 : Math.floorDiv(in.getLong(), 1000) + EPOCH_MS;
    }

    private String text() {
        return string(field());
    }

    /** A jsonb is sent as its version, one byte, and text. */
    private String json() {
        int length = field();
        if (length >= 0) {
            in.get();
            length--;
        }
        return string(length);
    }

    private String string(int length) {
        if (length < 0) {
            return null;
        }
        String text = new String(in.array(), in.position(), length, StandardCharsets.UTF_8);
        in.position(in.position() + length);
        return text;
    }

    private byte[] bytes() {
        int length = field();
        if (length < 0) {
            return null;
        }
        byte[] bytes = new byte[length];
        in.get(bytes);
        return bytes;
    }
}
