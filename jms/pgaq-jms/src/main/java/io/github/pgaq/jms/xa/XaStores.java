package io.github.pgaq.jms.xa;

import io.github.pgaq.jms.store.Store;
import java.sql.Connection;
import java.sql.SQLException;

/** Makes stores on connections that others close. */
public interface XaStores {
    /** Makes a store; closing it leaves the connection open. */
    Store on(Connection connection) throws SQLException;
}
