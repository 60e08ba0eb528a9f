package io.github.pgaq.jms.xa;

import java.sql.SQLException;
import javax.sql.XAConnection;

/** Opens the JDBC connections of XA sessions. */
public interface XaSource {
    /** Opens a connection. */
    XAConnection open() throws SQLException;
}
