package io.github.pgaq.jms.message;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.pgaq.jms.store.Body;
import io.github.pgaq.jms.store.Delivery;
import jakarta.jms.DeliveryMode;
import jakarta.jms.Destination;
import jakarta.jms.InvalidDestinationException;
import jakarta.jms.JMSException;
import jakarta.jms.MapMessage;
import jakarta.jms.Message;
import jakarta.jms.MessageFormatException;
import jakarta.jms.StreamMessage;
import jakarta.jms.TextMessage;
import java.math.BigDecimal;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** What is stored of a message, and what is made of stored ones, also of those that SQL has made. */
class BodyTest {

    private static final Messages MESSAGES = Samples.MESSAGES;

    private static Body body(String kind, String headers, String properties, String types, String text, byte[] bytes) {
        return new Body(kind, headers, properties, types, text, bytes);
    }

    private static PgaqMessage received(Body body) throws JMSException {
        return MESSAGES.toClient(Samples.delivery(body), new Samples.TestQueue("q"), null);
    }

    @Test
    void aMessageIsStoredAsTheReadmeSays() throws JMSException {
        PgaqTextMessage message = MESSAGES.createTextMessage();
        message.setText("hello");
        message.setJMSMessageID("ID:1");
        message.setJMSTimestamp(5);
        message.setJMSCorrelationID("c");
        message.setJMSType("t");
        message.setJMSReplyTo(new Samples.TestTopic("s.r"));
        message.setJMSDestination(new Samples.TestQueue("q"));
        message.setJMSDeliveryMode(DeliveryMode.NON_PERSISTENT);
        message.setJMSExpiration(7);
        message.setJMSDeliveryTime(6);
        message.setConnectionId("k");
        message.setStringProperty("color", "red \"one\"");
        message.setShortProperty("weight", (short) 3);
        message.setDoubleProperty("nan", Double.NaN);
        Body body = MESSAGES.toBody(message);
        assertEquals(
                body(
                        "text",
                        "{\"message_id\": \"ID:1\", \"timestamp\": 5, \"correlation_id\": \"c\", \"type\": \"t\","
                                + " \"reply_to\": \"topic:s.r\", \"destination\": \"queue:q\", \"delivery_mode\": 1,"
                                + " \"connection\": \"k\", \"expiration\": 7, \"delivery_time\": 6}",
                        "{\"color\": \"red \\\"one\\\"\", \"weight\": 3, \"nan\": {\"double\": \"NaN\"}}",
                        "{\"weight\": \"short\"}",
                        "hello",
                        null),
                body);
    }

    @Test
    void whatIsNotSetIsNotStored() throws JMSException {
        assertEquals(
                body("message", "{\"timestamp\": 0}", null, null, null, null),
                MESSAGES.toBody(MESSAGES.createMessage()));
        assertEquals(
                body("text", "{\"timestamp\": 0}", null, null, null, null),
                MESSAGES.toBody(MESSAGES.createTextMessage()));
    }

    @Test
    void mapsAndStreamsAreStoredAsTheReadmeSays() throws JMSException {
        MapMessage map = MESSAGES.createMapMessage();
        map.setInt("a", 5);
        map.setString("b\"", "x");
        map.setBytes("c", new byte[] {1, 2, 3});
        map.setObject("d", null);
        map.setChar("e", 'y');
        assertEquals(
                "{\"a\": {\"int\": 5}, \"b\\\"\": {\"string\": \"x\"}, \"c\": {\"bytes\": \"AQID\"}, \"d\": null,"
                        + " \"e\": {\"char\": \"y\"}}",
                MESSAGES.toBody((PgaqMessage) map).text());
        StreamMessage stream = MESSAGES.createStreamMessage();
        stream.writeBoolean(true);
        stream.writeFloat(-0f);
        assertEquals(
                "[{\"boolean\": true}, {\"float\": \"-0.0\"}]",
                MESSAGES.toBody((PgaqMessage) stream).text());
    }

    @Test
    void headersSurvive() throws JMSException {
        PgaqMessage message = MESSAGES.createMessage();
        message.setJMSMessageID("ID:x");
        message.setJMSTimestamp(5);
        message.setJMSCorrelationID("\u00e9\"");
        message.setJMSType("");
        message.setJMSReplyTo(new Samples.TestQueue("r"));
        message.setJMSDestination(new Samples.TestTopic("t"));
        message.setJMSDeliveryMode(DeliveryMode.NON_PERSISTENT);
        message.setJMSExpiration(9);
        message.setJMSDeliveryTime(8);
        message.setConnectionId("k");
        Delivery delivery = new Delivery(Samples.MSGID, 1, 2, 1, 3, 4, 5, null, MESSAGES.toBody(message));
        PgaqMessage received = MESSAGES.toClient(delivery, new Samples.TestQueue("q"), null);
        assertEquals("ID:x", received.getJMSMessageID());
        assertEquals(5, received.getJMSTimestamp());
        assertEquals("\u00e9\"", received.getJMSCorrelationID());
        assertEquals("", received.getJMSType());
        assertEquals(new Samples.TestQueue("r"), received.getJMSReplyTo());
        assertEquals(new Samples.TestTopic("t"), received.getJMSDestination());
        assertEquals(DeliveryMode.NON_PERSISTENT, received.getJMSDeliveryMode());
        assertEquals(9, received.getJMSExpiration());
        assertEquals(8, received.getJMSDeliveryTime());
        assertEquals("k", received.getConnectionId());
        assertEquals(8, received.getJMSPriority());
        assertTrue(received.getJMSRedelivered());
        assertEquals(3, received.getIntProperty("JMSXDeliveryCount"));
    }

    @Test
    void theDeliveryTimeIsStoredIfItIsNotThatOfTheSend() throws JMSException {
        PgaqMessage message = MESSAGES.createMessage();
        message.setJMSTimestamp(5);
        message.setJMSDestination(new Samples.TestQueue("q"));
        message.setJMSDeliveryTime(5);
        Body body = MESSAGES.toBody(message);
        assertEquals("{\"timestamp\": 5, \"destination\": \"queue:q\"}", body.headers());
        // 4: when it was ready after a retry
        Delivery delivery = new Delivery(Samples.MSGID, 1, 2, 1, 3, 4, 0, null, body);
        assertEquals(
                5, MESSAGES.toClient(delivery, new Samples.TestQueue("q"), null).getJMSDeliveryTime());
    }

    @Test
    void theServerTellsWhatAMessageFromSqlLacks() throws JMSException {
        for (String headers : new String[] {null, "{}", "[]", "{\"timestamp\": \"x\", \"reply_to\": \"x\"}"}) {
            PgaqMessage message = MESSAGES.toClient(
                    new Delivery(
                            Samples.MSGID, 0, 0, 9, 100, 200, 300, null, body("text", headers, null, null, "a", null)),
                    new Samples.TestQueue("q"),
                    null);
            assertEquals("ID:" + Samples.MSGID, message.getJMSMessageID());
            assertEquals(100, message.getJMSTimestamp());
            assertEquals(new Samples.TestQueue("q"), message.getJMSDestination());
            assertNull(message.getJMSReplyTo());
            assertEquals(DeliveryMode.PERSISTENT, message.getJMSDeliveryMode());
            assertEquals(0, message.getJMSPriority());
            assertEquals(300, message.getJMSExpiration());
            assertEquals(200, message.getJMSDeliveryTime());
            assertFalse(message.getJMSRedelivered());
            assertEquals(1, message.getIntProperty("JMSXDeliveryCount"));
            assertEquals(List.of("JMSXDeliveryCount"), Samples.list(message.getPropertyNames()));
        }
        assertEquals(
                Samples.ENQUEUED,
                received(body("text", "{}", null, null, "a", null)).getJMSDeliveryTime());
    }

    @Test
    void propertiesFromSqlHaveTheTypesOfTheirValues() throws JMSException {
        PgaqMessage message = received(body(
                "message",
                "{}",
                "{\"a\": 1, \"b\": 3000000000, \"c\": 1.5, \"d\": \"x\", \"e\": true, \"f\": null, \"g\": [1, \"2\"],"
                        + " \"h\": {\"x\": 1}, \"i\": 99999999999999999999, \"j\": {}, \"k\": 5, \"l\": 300,"
                        + " \"m\": \"s\"}",
                "{\"k\": \"long\", \"l\": \"byte\", \"m\": \"int\", \"a\": 5, \"absent\": \"int\"}",
                null,
                null));
        Map<String, Object> expected = new LinkedHashMap<>();
        expected.put("a", 1);
        expected.put("b", 3_000_000_000L);
        expected.put("c", 1.5);
        expected.put("d", "x");
        expected.put("e", true);
        expected.put("f", null);
        expected.put("g", "[1, \"2\"]");
        expected.put("h", "{\"x\": 1}");
        expected.put("i", 1e20);
        expected.put("j", "{}");
        expected.put("k", 5L);
        expected.put("l", 300);
        expected.put("m", "s");
        for (Map.Entry<String, Object> e : expected.entrySet()) {
            assertEquals(e.getValue(), message.getObjectProperty(e.getKey()), e.getKey());
        }
        assertFalse(message.propertyExists("absent"));
    }

    @Test
    void bodiesFromSqlMayHavePlainValues() throws JMSException {
        MapMessage map =
                (MapMessage) received(body("map", "{}", null, null, "{\"a\": 5, \"b\": \"x\", \"c\": 1.5}", null));
        assertEquals(5, map.getObject("a"));
        assertEquals("x", map.getObject("b"));
        assertEquals(1.5, map.getObject("c"));
        StreamMessage stream =
                (StreamMessage) received(body("stream", "{}", null, null, "[true, {\"long\": 5}]", null));
        assertTrue(stream.readBoolean());
        assertEquals(5L, stream.readObject());
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "",
                "x",
                "[]",
                "5",
                "{\"a\": [1]}",
                "{\"a\": {}}",
                "{\"a\": {\"int\": \"x\"}}",
                "{\"a\": {\"byte\": 128}}",
                "{\"a\": {\"bytes\": \"?\"}}",
                "{\"a\": {\"colour\": 1}}"
            })
    void anInvalidMapFailsOnlyWhenItIsRead(String text) throws JMSException {
        MapMessage map = (MapMessage) received(body("map", "{}", "{\"p\": 1}", null, text, null));
        assertEquals(1, map.getIntProperty("p"));
        assertThrows(MessageFormatException.class, () -> map.getObject("a"));
        assertThrows(MessageFormatException.class, map::getMapNames);
        assertFalse(map.isBodyAssignableTo(Map.class));
        map.clearBody();
        map.setInt("a", 5);
        assertEquals(5, map.getInt("a"));
    }

    @ParameterizedTest
    @ValueSource(strings = {"", "{}", "[[1]]", "[{\"short\": 70000}]", "[1"})
    void anInvalidStreamFailsOnlyWhenItIsRead(String text) throws JMSException {
        StreamMessage stream = (StreamMessage) received(body("stream", "{}", null, null, text, null));
        assertThrows(MessageFormatException.class, stream::readObject);
        stream.clearBody();
        stream.writeInt(5);
        stream.reset();
        assertEquals(5, stream.readInt());
    }

    @Test
    void aKindThatIsNotKnownIsAMessageWithoutBody() throws JMSException {
        assertEquals(
                PgaqMessage.class,
                received(body("adt", "{}", null, null, "x", null)).getClass());
        assertEquals(
                PgaqMessage.class,
                received(body(null, null, null, null, null, null)).getClass());
    }

    /** Jsonb writes numbers without exponent, drops negative zero and keeps the digits of fractions. */
    @Test
    void numbersSurviveJsonb() throws JMSException {
        PgaqMessage message = MESSAGES.createMessage();
        Map<String, Object> values = new LinkedHashMap<>();
        Object[] some = {
            1e300,
            1e7,
            1e-7,
            Double.MIN_VALUE,
            Double.MAX_VALUE,
            -0d,
            0d,
            5d,
            1e10f,
            Float.MAX_VALUE,
            Float.MIN_VALUE,
            -0f,
            16777216f,
            Long.MAX_VALUE,
            Long.MIN_VALUE,
            0L,
            Integer.MIN_VALUE
        };
        Random random = new Random(7);
        for (int i = 0; i < 2000; i++) {
            double d = Double.longBitsToDouble(random.nextLong());
            float f = Float.intBitsToFloat(random.nextInt());
            values.put("d" + i, d);
            values.put("f" + i, f);
            values.put("l" + i, random.nextLong() >> random.nextInt(64));
        }
        for (int i = 0; i < some.length; i++) {
            values.put("s" + i, some[i]);
        }
        for (Map.Entry<String, Object> e : values.entrySet()) {
            message.setObjectProperty(e.getKey(), e.getValue());
        }
        Body body = MESSAGES.toBody(message);
        Map<String, Object> json = Typed.readObject(body.properties());
        json.replaceAll((name, value) ->
                value instanceof Json.Number n ? new Json.Number(new BigDecimal(n.text()).toPlainString()) : value);
        StringBuilder jsonb = new StringBuilder();
        Json.value(jsonb, json);
        Message received =
                received(body(body.type(), body.headers(), jsonb.toString(), body.propertyTypes(), null, null));
        for (Map.Entry<String, Object> e : values.entrySet()) {
            assertEquals(e.getValue(), received.getObjectProperty(e.getKey()), e.getKey());
        }
    }

    @Test
    void theDeliveryCountIsNotSent() throws JMSException {
        PgaqMessage message = MESSAGES.createMessage();
        message.setIntProperty("JMSXDeliveryCount", 7);
        assertNull(MESSAGES.toBody(message).properties());
        assertEquals(1, Samples.delivered(message).getIntProperty("JMSXDeliveryCount"));
    }

    @Test
    void textWithCharactersThatPostgresqlLacksIsCarriedInBytes() throws JMSException {
        for (String text : new String[] {"a\0b", "\0", "\ud800", "x\udc00\ud800y\ud83d\ude00"}) {
            PgaqTextMessage message = MESSAGES.createTextMessage();
            message.setText(text);
            assertNull(MESSAGES.toBody(message).text());
            assertEquals(text.length() * 2, MESSAGES.toBody(message).bytes().length);
            assertEquals(text, Samples.delivered(message).getText());
        }
    }

    @Test
    void headersAndPropertiesRefuseSuchCharacters() throws JMSException {
        for (String text : new String[] {"a\0b", "\ud800", "\udc00"}) {
            PgaqMessage message = MESSAGES.createMessage();
            message.setStringProperty("p", text);
            JMSException e = assertThrows(MessageFormatException.class, () -> MESSAGES.toBody(message));
            assertTrue(e.getMessage().startsWith("property \"p\" contains U+0000"), e.getMessage());
            message.clearProperties();
            message.setJMSCorrelationID(text);
            e = assertThrows(MessageFormatException.class, () -> MESSAGES.toBody(message));
            assertTrue(e.getMessage().startsWith("header correlation_id contains U+0000"), e.getMessage());
            message.setJMSCorrelationID(null);
            message.setJMSType(text);
            assertThrows(MessageFormatException.class, () -> MESSAGES.toBody(message));
        }
    }

    @Test
    void temporaryDestinationsAreTold() throws JMSException {
        PgaqMessage message = MESSAGES.createMessage();
        message.setJMSReplyTo(temporary(jakarta.jms.TemporaryQueue.class));
        message.setJMSDestination(temporary(jakarta.jms.TemporaryTopic.class));
        assertEquals(
                "{\"timestamp\": 0, \"reply_to\": \"temporary-queue:x/1\", \"destination\":"
                        + " \"temporary-topic:x/1\"}",
                MESSAGES.toBody(message).headers());
    }

    private static Destination temporary(Class<? extends Destination> type) {
        return (Destination) java.lang.reflect.Proxy.newProxyInstance(
                type.getClassLoader(), new Class<?>[] {type}, (proxy, method, arguments) -> "x/1");
    }

    @Test
    void aDestinationOfNeitherKindIsRefused() throws JMSException {
        PgaqMessage message = MESSAGES.createMessage();
        message.setJMSReplyTo(new Destination() {});
        assertThrows(InvalidDestinationException.class, () -> MESSAGES.toBody(message));
    }

    @Test
    void emptyBodiesSurvive() throws JMSException {
        assertNull(Samples.delivered(MESSAGES.createTextMessage()).getText());
        PgaqTextMessage text = MESSAGES.createTextMessage();
        text.setText("");
        assertEquals("", Samples.delivered(text).getText());
        assertEquals(0, Samples.delivered(MESSAGES.createBytesMessage()).getBodyLength());
        assertFalse(Samples.delivered(MESSAGES.createMapMessage()).getMapNames().hasMoreElements());
        StreamMessage stream = Samples.delivered(MESSAGES.createStreamMessage());
        assertThrows(jakarta.jms.MessageEOFException.class, stream::readObject);
        assertNull(Samples.delivered(MESSAGES.createObjectMessage()).getObject());
    }

    @Test
    void tenMegabytesSurvive() throws JMSException {
        byte[] bytes = new byte[10 << 20];
        new Random(1).nextBytes(bytes);
        String string = "\u20ac\"x\n\ud83d\ude00".repeat(10 << 20 >> 3);

        TextMessage text = MESSAGES.createTextMessage();
        text.setText(string);
        assertEquals(string, Samples.delivered(text).getText());

        PgaqBytesMessage message = MESSAGES.createBytesMessage();
        message.writeBytes(bytes);
        byte[] read = new byte[bytes.length];
        assertEquals(read.length, Samples.delivered(message).readBytes(read));
        assertArrayEquals(bytes, read);

        MapMessage map = MESSAGES.createMapMessage();
        map.setBytes("b", bytes);
        map.setString("s", string);
        MapMessage receivedMap = Samples.delivered(map);
        assertArrayEquals(bytes, receivedMap.getBytes("b"));
        assertEquals(string, receivedMap.getString("s"));

        StreamMessage stream = MESSAGES.createStreamMessage();
        stream.writeBytes(bytes);
        for (int i = 0; i < 100_000; i++) {
            stream.writeInt(i);
        }
        StreamMessage receivedStream = Samples.delivered(stream);
        assertArrayEquals(bytes, (byte[]) receivedStream.readObject());
        for (int i = 0; i < 100_000; i++) {
            assertEquals(i, receivedStream.readInt());
        }

        PgaqObjectMessage object = MESSAGES.createObjectMessage();
        object.setObject(bytes);
        assertArrayEquals(bytes, (byte[]) Samples.delivered(object).getObject());
    }

    @Test
    void whatIsStoredDoesNotChangeWithTheMessage() throws JMSException {
        PgaqBytesMessage message = MESSAGES.createBytesMessage();
        message.writeInt(1);
        Body body = MESSAGES.toBody(message);
        message.writeInt(2);
        assertEquals(4, body.bytes().length);
        assertEquals(8, MESSAGES.toBody(message).bytes().length);
    }
}
