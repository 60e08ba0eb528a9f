package io.github.pgaq.jms.store;

import java.sql.SQLException;

/** Opens stores, each on a JDBC connection of its own, with one set of credentials. */
public interface StoreFactory {
    /** Opens a store. */
    Store open() throws SQLException;
}
