package io.github.pgaq.jms.message;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import jakarta.jms.BytesMessage;
import jakarta.jms.DeliveryMode;
import jakarta.jms.JMSException;
import jakarta.jms.MapMessage;
import jakarta.jms.Message;
import jakarta.jms.MessageFormatException;
import jakarta.jms.MessageNotWriteableException;
import jakarta.jms.StreamMessage;
import jakarta.jms.TextMessage;
import java.io.Serializable;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.NullAndEmptySource;
import org.junit.jupiter.params.provider.ValueSource;

/** Headers, properties and what all bodies have in common. */
class MessageTest {

    private static final Messages MESSAGES = Samples.MESSAGES;

    static Stream<PgaqMessage> kinds() {
        return Stream.of(
                MESSAGES.createMessage(),
                MESSAGES.createTextMessage(),
                MESSAGES.createBytesMessage(),
                MESSAGES.createMapMessage(),
                MESSAGES.createStreamMessage(),
                MESSAGES.createObjectMessage());
    }

    // Headers

    @Test
    void aNewMessageHasTheDefaults() throws JMSException {
        Message message = MESSAGES.createMessage();
        assertNull(message.getJMSMessageID());
        assertEquals(0, message.getJMSTimestamp());
        assertNull(message.getJMSCorrelationID());
        assertNull(message.getJMSCorrelationIDAsBytes());
        assertNull(message.getJMSReplyTo());
        assertNull(message.getJMSDestination());
        assertEquals(DeliveryMode.PERSISTENT, message.getJMSDeliveryMode());
        assertFalse(message.getJMSRedelivered());
        assertNull(message.getJMSType());
        assertEquals(0, message.getJMSExpiration());
        assertEquals(0, message.getJMSDeliveryTime());
        assertEquals(4, message.getJMSPriority());
        assertFalse(message.getPropertyNames().hasMoreElements());
        assertFalse(message.propertyExists("JMSXDeliveryCount"));
    }

    @Test
    void correlationIdsAreStringsAndBytes() throws JMSException {
        Message message = MESSAGES.createMessage();
        message.setJMSCorrelationID("\u00e9");
        assertArrayEquals("\u00e9".getBytes(StandardCharsets.UTF_8), message.getJMSCorrelationIDAsBytes());
        byte[][] values = {{}, {'a'}, {-1, -2}, {0}, {'a', 0}, "base64:eA==".getBytes(StandardCharsets.UTF_8)};
        for (byte[] value : values) {
            message.setJMSCorrelationIDAsBytes(value);
            assertArrayEquals(value, message.getJMSCorrelationIDAsBytes());
            assertArrayEquals(value, Samples.delivered(message).getJMSCorrelationIDAsBytes());
        }
        message.setJMSCorrelationIDAsBytes(new byte[] {'a', 'b'});
        assertEquals("ab", message.getJMSCorrelationID());
        message.setJMSCorrelationIDAsBytes(null);
        assertNull(message.getJMSCorrelationID());
        message.setJMSCorrelationID("base64:?");
        assertEquals("base64:?", new String(message.getJMSCorrelationIDAsBytes(), StandardCharsets.UTF_8));
    }

    @Test
    void headersOfAReceivedMessageCanBeSet() throws JMSException {
        Message message = Samples.delivered(MESSAGES.createMessage());
        message.setJMSCorrelationID("x");
        message.setJMSType("y");
        message.setJMSReplyTo(new Samples.TestQueue("q"));
        message.setJMSPriority(9);
        assertEquals("x", message.getJMSCorrelationID());
    }

    @Test
    void acknowledgeCallsTheSession() throws JMSException {
        PgaqMessage message = MESSAGES.createMessage();
        message.acknowledge();
        int[] calls = {0};
        message.setAcknowledger(() -> calls[0]++);
        message.acknowledge();
        assertEquals(1, calls[0]);
    }

    // Properties

    @ParameterizedTest
    @ValueSource(
            strings = {
                "a",
                "A1",
                "_a",
                "$a",
                "\u00e9t\u00e9",
                "nullx",
                "JMSXGroupSeq",
                "JMS_IBM_Format",
                "JMS_PGAQ_x",
                "jms",
                "JMSXDeliveryCount"
            })
    void namesThatAreAllowed(String name) throws JMSException {
        Message message = MESSAGES.createMessage();
        message.setIntProperty(name, 5);
        assertEquals(5, message.getIntProperty(name));
        assertTrue(message.propertyExists(name));
        assertEquals(List.of(name), Samples.list(message.getPropertyNames()));
    }

    @ParameterizedTest
    @NullAndEmptySource
    @ValueSource(
            strings = {
                "1a",
                "a b",
                "a.b",
                "a-b",
                " a",
                "a\0",
                "\ud800",
                "NULL",
                "null",
                "True",
                "FALSE",
                "NOT",
                "and",
                "OR",
                "Between",
                "LIKE",
                "IN",
                "IS",
                "ESCAPE",
                "JMSPriority",
                "JMSXUnknown",
                "JMSx",
                "JMS"
            })
    void namesThatAreRefused(String name) throws JMSException {
        Message message = MESSAGES.createMessage();
        assertThrows(IllegalArgumentException.class, () -> message.setIntProperty(name, 5));
        assertThrows(IllegalArgumentException.class, () -> message.setStringProperty(name, null));
        assertThrows(IllegalArgumentException.class, () -> message.setObjectProperty(name, "x"));
        assertFalse(message.getPropertyNames().hasMoreElements());
    }

    @Test
    void jmsxPropertiesHaveTheirTypes() throws JMSException {
        Message message = MESSAGES.createMessage();
        message.setStringProperty("JMSXGroupID", "g");
        message.setIntProperty("JMSXGroupSeq", 1);
        message.setStringProperty("JMSXUserID", "u");
        message.setStringProperty("JMSXAppID", "a");
        message.setLongProperty("JMSXRcvTimestamp", 5);
        assertThrows(MessageFormatException.class, () -> message.setIntProperty("JMSXGroupID", 1));
        assertThrows(MessageFormatException.class, () -> message.setStringProperty("JMSXGroupSeq", "1"));
        assertThrows(MessageFormatException.class, () -> message.setLongProperty("JMSXGroupSeq", 1));
        Message received = Samples.delivered(message);
        assertEquals("g", received.getStringProperty("JMSXGroupID"));
        assertEquals(1, received.getIntProperty("JMSXGroupSeq"));
        assertEquals(6, Samples.list(received.getPropertyNames()).size(), "with JMSXDeliveryCount");
    }

    @Test
    void otherTypesOfPropertiesAreRefused() {
        Message message = MESSAGES.createMessage();
        for (Object value : new Object[] {'c', new byte[0], new Object(), List.of(), new java.math.BigDecimal(1)}) {
            assertThrows(MessageFormatException.class, () -> message.setObjectProperty("p", value));
        }
    }

    @Test
    void aPropertyCanBeNull() throws JMSException {
        Message message = MESSAGES.createMessage();
        message.setStringProperty("s", null);
        message.setObjectProperty("o", null);
        for (Message each : List.of(message, Samples.delivered(message))) {
            assertTrue(each.propertyExists("s"));
            assertTrue(each.propertyExists("o"));
            assertNull(each.getStringProperty("s"));
            assertNull(each.getObjectProperty("o"));
        }
    }

    @Test
    void propertiesOfAReceivedMessageAreReadOnlyUntilTheyAreCleared() throws JMSException {
        PgaqTextMessage sent = MESSAGES.createTextMessage();
        sent.setText("body");
        sent.setStringProperty("p", "x");
        TextMessage message = Samples.delivered(sent);
        assertThrows(MessageNotWriteableException.class, () -> message.setBooleanProperty("p", true));
        assertThrows(MessageNotWriteableException.class, () -> message.setByteProperty("p", (byte) 1));
        assertThrows(MessageNotWriteableException.class, () -> message.setShortProperty("p", (short) 1));
        assertThrows(MessageNotWriteableException.class, () -> message.setIntProperty("p", 1));
        assertThrows(MessageNotWriteableException.class, () -> message.setLongProperty("p", 1));
        assertThrows(MessageNotWriteableException.class, () -> message.setFloatProperty("p", 1));
        assertThrows(MessageNotWriteableException.class, () -> message.setDoubleProperty("p", 1));
        assertThrows(MessageNotWriteableException.class, () -> message.setStringProperty("p", "y"));
        assertThrows(MessageNotWriteableException.class, () -> message.setObjectProperty("p", 1));
        assertEquals("x", message.getStringProperty("p"));
        message.clearProperties();
        assertFalse(message.getPropertyNames().hasMoreElements());
        assertEquals("body", message.getText());
        assertThrows(MessageNotWriteableException.class, () -> message.setText("y"));
        message.setIntProperty("p", 1);
        assertEquals(1, message.getIntProperty("p"));
    }

    // Bodies

    @Test
    void theBodyOfAReceivedMessageIsReadOnlyUntilItIsCleared() throws JMSException {
        TextMessage text = Samples.delivered(MESSAGES.createTextMessage());
        assertThrows(MessageNotWriteableException.class, () -> text.setText("x"));
        MapMessage map = Samples.delivered(MESSAGES.createMapMessage());
        assertThrows(MessageNotWriteableException.class, () -> map.setInt("a", 1));
        assertThrows(MessageNotWriteableException.class, () -> map.setBytes("a", new byte[1], 0, 1));
        assertThrows(MessageNotWriteableException.class, () -> map.setObject("a", null));
        BytesMessage bytes = Samples.delivered(MESSAGES.createBytesMessage());
        assertThrows(MessageNotWriteableException.class, () -> bytes.writeInt(1));
        assertThrows(MessageNotWriteableException.class, () -> bytes.writeObject(1));
        StreamMessage stream = Samples.delivered(MESSAGES.createStreamMessage());
        assertThrows(MessageNotWriteableException.class, () -> stream.writeInt(1));
        PgaqObjectMessage object = Samples.delivered(MESSAGES.createObjectMessage());
        assertThrows(MessageNotWriteableException.class, () -> object.setObject(1));

        text.setJMSType("kept");
        text.clearBody();
        text.setText("x");
        assertEquals("x", text.getText());
        assertEquals("kept", text.getJMSType());
        map.clearBody();
        map.setInt("a", 1);
        assertEquals(1, map.getInt("a"));
        bytes.clearBody();
        bytes.writeInt(1);
        stream.clearBody();
        stream.writeInt(1);
        object.clearBody();
        object.setObject(1);
        assertEquals(1, object.getObject());
        assertThrows(
                MessageNotWriteableException.class, () -> text.setIntProperty("p", 1), "properties stay read-only");
    }

    @ParameterizedTest
    @MethodSource("kinds")
    void aMessageWithoutBodyIsAssignableToAnything(PgaqMessage message) throws JMSException {
        if (message instanceof StreamMessage) {
            assertFalse(message.isBodyAssignableTo(Object.class));
            assertThrows(MessageFormatException.class, () -> message.getBody(Object.class));
            return;
        }
        for (PgaqMessage each : List.of(message, Samples.delivered(message))) {
            for (Class<?> type : List.of(String.class, Map.class, byte[].class, Thread.class)) {
                assertTrue(each.isBodyAssignableTo(type));
                assertNull(each.getBody(type));
            }
        }
    }

    @Test
    void bodiesAreAssignableToTheirTypes() throws JMSException {
        PgaqTextMessage text = MESSAGES.createTextMessage();
        text.setText("x");
        check(
                text,
                List.of(String.class, Object.class, CharSequence.class, Comparable.class, Serializable.class),
                List.of(Integer.class, Map.class, byte[].class));
        assertEquals("x", text.getBody(CharSequence.class));
        PgaqMapMessage map = MESSAGES.createMapMessage();
        map.setInt("a", 1);
        check(map, List.of(Map.class, Object.class), List.of(HashMap.class, String.class, Cloneable.class));
        assertEquals(Map.of("a", 1), map.getBody(Map.class));
        PgaqBytesMessage bytes = MESSAGES.createBytesMessage();
        bytes.writeByte((byte) 5);
        check(bytes, List.of(byte[].class, Object.class), List.of(String.class, Serializable.class, int[].class));
        PgaqObjectMessage object = MESSAGES.createObjectMessage();
        object.setObject(new ArrayList<>(List.of(1)));
        check(
                object,
                List.of(ArrayList.class, List.class, Serializable.class, Object.class),
                List.of(String.class, Map.class));
    }

    private static void check(PgaqMessage message, List<Class<?>> good, List<Class<?>> bad) throws JMSException {
        for (PgaqMessage each : List.of(message, Samples.delivered(message))) {
            for (Class<?> type : good) {
                assertTrue(each.isBodyAssignableTo(type), type.toString());
                assertTrue(type.isInstance(each.getBody(type)));
            }
            for (Class<?> type : bad) {
                assertFalse(each.isBodyAssignableTo(type), type.toString());
                assertThrows(MessageFormatException.class, () -> each.getBody(type));
            }
        }
    }

    @Test
    void mapsKeepTheirByteArraysToThemselves() throws JMSException {
        MapMessage map = MESSAGES.createMapMessage();
        byte[] bytes = {1, 2, 3};
        map.setBytes("a", bytes);
        map.setBytes("b", bytes, 1, 2);
        map.setObject("c", bytes);
        bytes[0] = 9;
        map.getBytes("a")[1] = 9;
        ((byte[]) map.getObject("c"))[1] = 9;
        ((byte[]) map.getBody(Map.class).get("a"))[2] = 9;
        assertArrayEquals(new byte[] {1, 2, 3}, map.getBytes("a"));
        assertArrayEquals(new byte[] {2, 3}, map.getBytes("b"));
        assertArrayEquals(new byte[] {1, 2, 3}, map.getBytes("c"));
        assertThrows(IndexOutOfBoundsException.class, () -> map.setBytes("d", bytes, 2, 2));
    }

    @Test
    void mapEntriesHaveNamesAndTypes() throws JMSException {
        MapMessage map = MESSAGES.createMapMessage();
        assertThrows(IllegalArgumentException.class, () -> map.setInt(null, 1));
        assertThrows(IllegalArgumentException.class, () -> map.setInt("", 1));
        assertThrows(MessageFormatException.class, () -> map.setObject("a", List.of()));
        map.setString("any name at all: \u00e9\0", null);
        MapMessage received = Samples.delivered(map);
        assertTrue(received.itemExists("any name at all: \u00e9\0"));
        assertFalse(received.itemExists("a"));
        assertNull(received.getObject("a"));
        assertEquals(List.of("any name at all: \u00e9\0"), Samples.list(received.getMapNames()));
    }
}
