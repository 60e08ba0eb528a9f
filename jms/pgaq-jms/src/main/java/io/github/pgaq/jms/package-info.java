/**
 * Jakarta Messaging for pgaq, Advanced Queuing for PostgreSQL: the classes that programs name.
 *
 * <p>A first program. The queue is created once, by {@link io.github.pgaq.jms.PgaqAdmin} or in SQL:
 *
 * <pre>{@code
 * PgaqConnectionFactory factory = new PgaqConnectionFactory("jdbc:postgresql://localhost/shop?user=app");
 * try (java.sql.Connection database = DriverManager.getConnection("jdbc:postgresql://localhost/shop?user=owner")) {
 *     PgaqAdmin.createQueue(database, "orders");
 *     PgaqAdmin.grant(database, "orders", "app");
 * }
 * try (JMSContext context = factory.createContext()) {
 *     Queue orders = context.createQueue("orders");
 *     context.createProducer().setProperty("country", "CH").send(orders, "two pears");
 *     String order = context.createConsumer(orders).receiveBody(String.class, 1000);
 * }
 * }</pre>
 *
 * <p>Messages and rows in one transaction: a session on the caller's JDBC connection sends and receives in its
 * transaction.
 *
 * <pre>{@code
 * database.setAutoCommit(false);
 * try (PgaqConnection connection = factory.createConnection(database);
 *         Session session = connection.createSession(Session.SESSION_TRANSACTED)) {
 *     insertOrder(database);
 *     session.createProducer(session.createQueue("orders")).send(session.createTextMessage("two pears"));
 *     database.commit();
 * }
 * }</pre>
 *
 * <p>{@link io.github.pgaq.jms.PgaqOption} lists the options. A JMSException has the SQLSTATE of the server's error as
 * its error code, and the SQLException as its cause.
 */
package io.github.pgaq.jms;
