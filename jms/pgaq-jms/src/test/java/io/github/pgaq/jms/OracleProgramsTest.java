package io.github.pgaq.jms;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import jakarta.jms.BytesMessage;
import jakarta.jms.Connection;
import jakarta.jms.IllegalStateException;
import jakarta.jms.JMSException;
import jakarta.jms.MapMessage;
import jakarta.jms.MessageConsumer;
import jakarta.jms.Queue;
import jakarta.jms.Session;
import jakarta.jms.StreamMessage;
import jakarta.jms.TemporaryQueue;
import jakarta.jms.TextMessage;
import jakarta.jms.Topic;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Programs in PL/pgSQL with Oracle's JMS types, and subscribers that they make, beside programs in Java. */
class OracleProgramsTest extends ServerTest {

    private static final long WAIT_MS = 20_000;
    private static final long NO_WAIT_MS = 200;

    private Connection connection;
    private Session session;

    @BeforeAll
    static void createPackages() throws SQLException {
        execute("CREATE EXTENSION IF NOT EXISTS pgaq_oracle");
    }

    @BeforeEach
    void open() throws JMSException {
        connection = new PgaqConnectionFactory(url()).createConnection();
        connection.start();
        session = connection.createSession();
    }

    @AfterEach
    void close() throws JMSException {
        connection.close();
    }

    private static String text(String sql) throws SQLException {
        try (java.sql.Connection jdbc = connect();
                Statement statement = jdbc.createStatement();
                ResultSet row = statement.executeQuery(sql)) {
            return row.next() ? row.getString(1) : null;
        }
    }

    private static String made(String what, boolean topic) throws SQLException {
        String name = "public." + newName(what);
        execute("CALL dbms_aqadm.create_transactional_event_queue('" + name + "', multiple_consumers => " + topic
                + "); CALL dbms_aqadm.start_queue('" + name + "')");
        return name;
    }

    /** Runs a block with variables for a message of each kind, its parts and options. */
    private static void block(String statements) throws SQLException {
        execute("DO $$ DECLARE m sys.aq$_jms_text_message := sys.aq$_jms_text_message(); any_kind sys.aq$_jms_message;"
                + " map sys.aq$_jms_map_message := sys.aq$_jms_map_message();"
                + " bytes sys.aq$_jms_bytes_message := sys.aq$_jms_bytes_message();"
                + " stream sys.aq$_jms_stream_message := sys.aq$_jms_stream_message();"
                + " properties dbms_aq.message_properties_t; op integer; id uuid; text_value text; raw_value bytea;"
                + " BEGIN " + statements + " END $$");
    }

    private static String enqueue(String queue, String variable) {
        return "CALL dbms_aq.enqueue('" + queue + "', NULL, NULL, " + variable + ", id); ";
    }

    private static String dequeue(String queue, String variable) {
        return "CALL dbms_aq.dequeue('" + queue + "', dbms_aq.dequeue_options_t(wait => 20), properties, " + variable
                + ", id); ";
    }

    private static String check(String condition) {
        return "ASSERT " + condition + ", '" + condition.replace("'", "''") + "'; ";
    }

    private <T> T receive(String queue, Class<T> type) throws JMSException {
        try (MessageConsumer consumer = session.createConsumer(session.createQueue(queue))) {
            return assertInstanceOf(type, consumer.receive(WAIT_MS));
        }
    }

    @Test
    void aTextMessageOfPlSqlIsReceivedAndAnswered() throws Exception {
        String requests = made("requests", false);
        String answers = made("answers", false);
        block("CALL sys.set_text(m, 'hello'); CALL sys.set_type(m, 'greeting'); CALL sys.set_userid(m, 'ann');"
                + " CALL sys.set_groupid(m, 'g'); CALL sys.set_groupseq(m, 2);"
                + " CALL sys.set_replyto(m, sys.aq$_agent(NULL, '" + answers + "', NULL));"
                + " CALL sys.set_string_property(m, 'color', 'red'); CALL sys.set_int_property(m, 'year', 1999);"
                + " CALL sys.set_long_property(m, 'mileage', 300000); CALL sys.set_short_property(m, 'doors', 5);"
                + " CALL sys.set_byte_property(m, 'small', -127); CALL sys.set_float_property(m, 'price', 16999.99);"
                + " CALL sys.set_double_property(m, 'weight', 0.1); CALL sys.set_boolean_property(m, 'import', true); "
                + enqueue(requests, "m"));
        TextMessage message = receive(requests, TextMessage.class);
        assertEquals("hello", message.getText());
        assertEquals("greeting", message.getJMSType());
        assertEquals("ann", message.getStringProperty("JMSXUserID"));
        assertEquals("g", message.getStringProperty("JMSXGroupID"));
        assertEquals(2, message.getObjectProperty("JMSXGroupSeq"));
        assertEquals("red", message.getObjectProperty("color"));
        assertEquals(1999, message.getObjectProperty("year"));
        assertEquals(300000L, message.getObjectProperty("mileage"));
        assertEquals((short) 5, message.getObjectProperty("doors"));
        assertEquals((byte) -127, message.getObjectProperty("small"));
        assertEquals(16999.99f, message.getObjectProperty("price"));
        assertEquals(0.1, message.getObjectProperty("weight"));
        assertEquals(true, message.getObjectProperty("import"));

        session.createProducer(message.getJMSReplyTo()).send(session.createTextMessage("hello, PL/SQL"));
        block(dequeue(answers, "m") + check("sys.get_text(m) = 'hello, PL/SQL'"));
    }

    @Test
    void bodiesOfPlSqlAreReceived() throws Exception {
        String queue = made("bodies", false);
        block("op := sys.clear_body(bytes, -1); CALL sys.write_int(bytes, op, 7);"
                + " CALL sys.write_utf(bytes, op, 'h\u00e9\ud83d\ude00');"
                + " CALL sys.write_double(bytes, op, 2.5); CALL sys.write_bytes(bytes, op, '\\x0102');"
                + " CALL sys.flush(bytes, op); CALL sys.clean(bytes, op); " + enqueue(queue, "bytes")
                + "op := sys.clear_body(map, -1); CALL sys.set_string(map, op, 'city', 'Berne');"
                + " CALL sys.set_short(map, op, 'pears', 2); CALL sys.set_bytes(map, op, 'raw', '\\x0304');"
                + " CALL sys.set_char(map, op, 'char', 'x'); CALL sys.set_double(map, op, 'nan', 'NaN');"
                + " CALL sys.flush(map, op); CALL sys.clean(map, op); " + enqueue(queue, "map")
                + "op := sys.clear_body(stream, -1); CALL sys.write_long(stream, op, 5); CALL sys.write_string(stream,"
                + " op, NULL); CALL sys.write_boolean(stream, op, true); CALL sys.flush(stream, op);"
                + " CALL sys.clean(stream, op); " + enqueue(queue, "stream"));
        BytesMessage bytes = receive(queue, BytesMessage.class);
        assertEquals(7, bytes.readInt());
        assertEquals("h\u00e9\ud83d\ude00", bytes.readUTF());
        assertEquals(2.5, bytes.readDouble());
        byte[] two = new byte[3];
        assertEquals(2, bytes.readBytes(two));
        assertArrayEquals(new byte[] {1, 2, 0}, two);
        MapMessage map = receive(queue, MapMessage.class);
        assertEquals("Berne", map.getObject("city"));
        assertEquals((short) 2, map.getObject("pears"));
        assertArrayEquals(new byte[] {3, 4}, map.getBytes("raw"));
        assertEquals('x', map.getObject("char"));
        assertEquals(Double.NaN, map.getObject("nan"));
        StreamMessage stream = receive(queue, StreamMessage.class);
        assertEquals(5L, stream.readObject());
        assertNull(stream.readObject());
        assertEquals(true, stream.readObject());
    }

    @Test
    void messagesOfJavaAreReadByPlSql() throws Exception {
        String name = made("queue", false);
        Queue queue = session.createQueue(name);
        TextMessage text = session.createTextMessage("hello");
        text.setJMSType("greeting");
        text.setJMSReplyTo(queue);
        text.setStringProperty("color", "red");
        text.setFloatProperty("price", 1.5f);
        text.setByteProperty("small", (byte) 3);
        text.setLongProperty("long", 1L << 40);
        session.createProducer(queue).send(text);
        BytesMessage bytes = session.createBytesMessage();
        bytes.writeUTF("h\u00e9\ud83d\ude00");
        bytes.writeShort((short) -2);
        bytes.writeChar('\u20ac');
        bytes.writeFloat(0.1f);
        session.createProducer(queue).send(bytes);
        MapMessage map = session.createMapMessage();
        map.setString("city", "Berne");
        map.setInt("pears", 2);
        map.setBytes("raw", new byte[] {3, 4});
        session.createProducer(queue).send(map);
        StreamMessage stream = session.createStreamMessage();
        stream.writeString("12");
        stream.writeDouble(Double.NEGATIVE_INFINITY);
        session.createProducer(queue).send(stream);

        block(dequeue(name, "any_kind") + check("any_kind.type = 'text'") + "m := sys.cast_to_text_msg(any_kind); "
                + check("sys.get_text(m) = 'hello' AND sys.get_type(m) = 'greeting'")
                + check("(sys.get_replyto(m)).address = '" + name.toUpperCase(java.util.Locale.ROOT) + "'")
                + check("sys.get_string_property(m, 'color') = 'red' AND sys.get_float_property(m, 'price') = 1.5")
                + check("sys.get_byte_property(m, 'small') = 3 AND sys.get_long_property(m, 'long') = 1099511627776")
                + check("sys.get_int_property(m, 'small') IS NULL")
                + dequeue(name, "bytes") + "op := sys.prepare(bytes, -1); CALL sys.read_utf(bytes, op, text_value); "
                + check("text_value = 'h\u00e9\ud83d\ude00' AND sys.read_short(bytes, op) = -2")
                + check("sys.read_char(bytes, op) = '\u20ac' AND sys.read_float(bytes, op)::real = 0.1::real")
                + check("sys.read_byte(bytes, op) IS NULL")
                + dequeue(name, "map") + "op := sys.prepare(map, -1); CALL sys.get_string(map, op, 'city', text_value);"
                + " CALL sys.get_bytes(map, op, 'raw', raw_value); "
                + check("text_value = 'Berne' AND raw_value = '\\x0304' AND sys.get_long(map, op, 'pears') = 2")
                + check("sys.get_names(map, op) = '{city,pears,raw}'::text[]")
                + dequeue(name, "stream") + "op := sys.prepare(stream, -1); "
                + check("sys.read_int(stream, op) = 12 AND sys.read_double(stream, op) = '-Infinity'")
                + "CALL sys.clean_all();");
    }

    @Test
    void aTemporaryQueueIsAnsweredByPlSql() throws Exception {
        String requests = made("requests", false);
        TemporaryQueue other = session.createTemporaryQueue();
        TemporaryQueue mine = session.createTemporaryQueue();
        TextMessage request = session.createTextMessage("two pears?");
        request.setJMSReplyTo(mine);
        session.createProducer(session.createQueue(requests)).send(request);
        block(dequeue(requests, "m") + "text_value := (sys.get_replyto(m)).address;"
                + " m := aq_jms.set_header(aq_jms.text(upper(sys.get_text(m))), 'destination',"
                + " aq_jms.get_header(m, 'reply_to')); CALL dbms_aq.enqueue(text_value, NULL, NULL, m, id);");
        try (MessageConsumer consumer = session.createConsumer(mine);
                MessageConsumer another = session.createConsumer(other)) {
            assertEquals("TWO PEARS?", consumer.receive(WAIT_MS).getBody(String.class));
            assertNull(another.receive(NO_WAIT_MS));
        }
    }

    private static void addSubscriber(String topic, String name, String rule) throws SQLException {
        execute("CALL dbms_aqadm.add_subscriber('" + topic + "', sys.aq$_agent('" + name + "', NULL, NULL), rule => "
                + (rule == null ? "NULL" : "'" + rule.replace("'", "''") + "'") + ")");
    }

    private static Connection plain() throws JMSException {
        Connection made = new PgaqConnectionFactory(
                        url() + (url().contains("?") ? "&" : "?") + "pgaq.durableNames=plain")
                .createConnection();
        made.start();
        return made;
    }

    private static void send(String topic, String color) throws SQLException {
        block("CALL sys.set_text(m, '" + color + "'); CALL sys.set_string_property(m, 'color', '" + color + "'); "
                + enqueue(topic, "m"));
    }

    private static String subscribers(String topic) throws SQLException {
        return text("SELECT string_agg(consumer, ' ' ORDER BY consumer) FROM aq.subscribers WHERE queue_name = '"
                + topic + "'");
    }

    @Test
    void aSubscriberOfThePackageIsADurableSubscription() throws Exception {
        String topic = made("news", true);
        addSubscriber(topic, "RED", "tab.user_data.get_string_property('color') = 'red'");
        addSubscriber(topic, "REST", null);
        send(topic, "red");
        send(topic, "blue");
        try (Connection first = plain();
                Connection second = plain()) {
            Session own = first.createSession();
            Topic news = own.createTopic(topic);
            try (MessageConsumer consumer = own.createDurableSubscriber(news, "RED")) {
                assertEquals("red", consumer.receive(WAIT_MS).getBody(String.class));
                assertNull(consumer.receive(NO_WAIT_MS), "its rule is as it was");
                JMSException used = assertThrows(
                        JMSException.class, () -> second.createSession().createDurableSubscriber(news, "red"));
                assertTrue(used.getMessage().contains("has consumers already"), used.getMessage());
            }
            assertEquals("red rest", subscribers(topic));
            second.createSession().createSharedDurableConsumer(news, "RED").close();
            // another one is made under the name that dbms_aq reads
            own.createDurableConsumer(news, "BLUE", "color = 'blue'", false).close();
            assertEquals("blue red rest", subscribers(topic));
            send(topic, "blue");
            block("CALL dbms_aq.dequeue('" + topic + "',"
                    + " dbms_aq.dequeue_options_t(consumer_name => 'BLUE', wait => 20), properties, m, id); "
                    + check("sys.get_text(m) = 'blue'"));
            own.unsubscribe("BLUE");
            own.unsubscribe("RED");
            assertEquals("rest", subscribers(topic));
        }
    }

    @Test
    void aPlainNameIsThatOfOneTopic() throws Exception {
        String one = made("one", true);
        String other = made("other", true);
        addSubscriber(one, "RED", null);
        addSubscriber(other, "RED", null);
        addSubscriber(other, "\"Red\"", null);
        send(one, "one");
        send(other, "other");
        try (Connection plain = plain()) {
            Session own = plain.createSession();
            try (MessageConsumer first = own.createDurableConsumer(own.createTopic(one), "RED");
                    MessageConsumer second = own.createDurableConsumer(own.createTopic(other), "RED");
                    MessageConsumer third = own.createDurableConsumer(own.createTopic(other), "Red")) {
                assertEquals("one", first.receive(WAIT_MS).getBody(String.class));
                assertEquals("other", second.receive(WAIT_MS).getBody(String.class));
                assertEquals("other", third.receive(WAIT_MS).getBody(String.class));
            }
            JMSException both = assertThrows(JMSException.class, () -> own.unsubscribe("RED"));
            assertTrue(both.getMessage().contains("is not unique"), both.getMessage());
            own.unsubscribe("Red");
            assertEquals("red", subscribers(other));
        }
    }

    @Test
    void byDefaultNamesBelongToTheClient() throws Exception {
        String topic = made("news", true);
        addSubscriber(topic, "RED", null);
        assertThrows(
                IllegalStateException.class, () -> session.createDurableConsumer(session.createTopic(topic), "RED"));
        try (Connection client = new PgaqConnectionFactory(url()).createConnection()) {
            client.setClientID("RED");
            Session own = client.createSession();
            own.createDurableConsumer(own.createTopic(topic), "RED").close();
            assertEquals("RED.RED red", subscribers(topic));
            own.unsubscribe("RED");
            assertEquals("red", subscribers(topic));
        }
    }
}
