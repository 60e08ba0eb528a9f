package io.github.pgaq.jms;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;

import jakarta.jms.JMSContext;
import jakarta.jms.Queue;
import jakarta.jms.Session;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.Statement;
import org.junit.jupiter.api.Test;

/** The programs in the documentation of the root package. */
class FirstExampleTest extends ServerTest {

    @Test
    void sendAndReceive() throws Exception {
        String name = newName("orders");
        PgaqConnectionFactory factory = new PgaqConnectionFactory(url());
        try (Connection database = DriverManager.getConnection(url())) {
            PgaqAdmin.createQueue(database, name);
        }
        try (JMSContext context = factory.createContext()) {
            Queue orders = context.createQueue(name);
            context.createProducer().setProperty("country", "CH").send(orders, "two pears");
            assertEquals("two pears", context.createConsumer(orders).receiveBody(String.class, 1000));
        }
    }

    @Test
    void messagesAndRowsInOneTransaction() throws Exception {
        String name = newName("orders");
        PgaqConnectionFactory factory = new PgaqConnectionFactory(url());
        try (Connection database = DriverManager.getConnection(url());
                Statement statement = database.createStatement();
                JMSContext receiver = factory.createContext()) {
            PgaqAdmin.createQueue(database, name);
            statement.execute("CREATE TABLE " + name + "_rows (id int)");
            database.setAutoCommit(false);
            for (boolean commit : new boolean[] {false, true}) {
                try (PgaqConnection connection = factory.createConnection(database);
                        Session session = connection.createSession(Session.SESSION_TRANSACTED)) {
                    statement.execute("INSERT INTO " + name + "_rows VALUES (1)");
                    session.createProducer(session.createQueue(name)).send(session.createTextMessage("" + commit));
                    if (commit) {
                        database.commit();
                    } else {
                        database.rollback();
                    }
                }
            }
            var consumer = receiver.createConsumer(receiver.createQueue(name));
            assertEquals("true", consumer.receiveBody(String.class, 1000));
            assertNull(consumer.receiveNoWait());
            assertEquals("1", value("SELECT count(*) FROM " + name + "_rows"));
        }
    }
}
