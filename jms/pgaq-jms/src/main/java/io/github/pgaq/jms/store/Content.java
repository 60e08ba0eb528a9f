package io.github.pgaq.jms.store;

import java.io.IOException;
import java.io.InputStream;

/** The body of a large message, which is sent and received in chunks. It does not change. */
public interface Content {

    /** Bytes in a chunk, but for the last one. */
    int CHUNK = 1 << 20;

    /** Its bytes; each call begins at the first one. */
    InputStream open() throws IOException;
}
