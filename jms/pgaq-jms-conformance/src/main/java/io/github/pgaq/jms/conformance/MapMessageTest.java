package io.github.pgaq.jms.conformance;

import jakarta.jms.JMSException;
import jakarta.jms.MapMessage;
import jakarta.jms.MessageFormatException;
import jakarta.jms.MessageNotWriteableException;
import java.util.Collections;
import java.util.Date;
import java.util.Set;
import java.util.TreeSet;
import org.junit.jupiter.api.Test;

/** MapMessage, except for the table of conversions. */
@Spec("3.11")
class MapMessageTest extends ConformanceTest {
    @Override
    boolean sharesConnection() {
        return true;
    }

    private MapMessage map() throws JMSException {
        return session().createMapMessage();
    }

    private MapMessage received() throws JMSException {
        MapMessage message = map();
        message.setInt("i", 1);
        return roundTrip(message);
    }

    private static Set<Object> names(MapMessage message) throws JMSException {
        return new TreeSet<>(Collections.list(message.getMapNames()));
    }

    @Test
    void everyTypeArrives() throws JMSException {
        MapMessage sent = map();
        sent.setBoolean("boolean", true);
        sent.setByte("byte", (byte) -1);
        sent.setShort("short", (short) -2);
        sent.setChar("char", '\u20ac');
        sent.setInt("int", -3);
        sent.setLong("long", Long.MIN_VALUE);
        sent.setFloat("float", -5.5f);
        sent.setDouble("double", -6.5d);
        sent.setString("string", "größe");
        sent.setBytes("bytes", new byte[] {1, -1});
        MapMessage message = roundTrip(sent);
        equal("the boolean", true, message.getBoolean("boolean"));
        equal("the byte", (byte) -1, message.getByte("byte"));
        equal("the short", (short) -2, message.getShort("short"));
        equal("the char", '\u20ac', message.getChar("char"));
        equal("the int", -3, message.getInt("int"));
        equal("the long", Long.MIN_VALUE, message.getLong("long"));
        equal("the float", -5.5f, message.getFloat("float"));
        equal("the double", -6.5d, message.getDouble("double"));
        equal("the String", "größe", message.getString("string"));
        bytes("the bytes", new byte[] {1, -1}, message.getBytes("bytes"));
    }

    @Test
    void objectsKeepTheirTypes() throws JMSException {
        Object[] values = {true, (byte) 1, (short) 2, 'c', 3, 4L, 5.5f, 6.5d, "seven"};
        MapMessage message = map();
        for (int i = 0; i < values.length; i++) {
            message.setObject("f" + i, values[i]);
        }
        MapMessage received = roundTrip(message);
        for (int i = 0; i < values.length; i++) {
            equal("getObject()", values[i], received.getObject("f" + i));
        }
    }

    @Test
    void bytesObjectArrives() throws JMSException {
        MapMessage message = map();
        message.setObject("b", new byte[] {7});
        bytes("getObject() of bytes", new byte[] {7}, (byte[])
                roundTrip(message).getObject("b"));
    }

    @Test
    void emptyBytesArrive() throws JMSException {
        MapMessage message = map();
        message.setBytes("b", new byte[0]);
        bytes("getBytes() of empty bytes", new byte[0], roundTrip(message).getBytes("b"));
    }

    @Test
    void partOfAnArrayIsSet() throws JMSException {
        MapMessage message = map();
        message.setBytes("b", new byte[] {1, 2, 3, 4}, 1, 2);
        bytes("the part that was set", new byte[] {2, 3}, roundTrip(message).getBytes("b"));
    }

    @Test
    @Spec("3.12")
    void nullStringArrives() throws JMSException {
        MapMessage message = map();
        message.setString("n", null);
        MapMessage received = roundTrip(message);
        isNull("the null String", received.getString("n"));
        yes("itemExists() of a null value", received.itemExists("n"));
    }

    @Test
    @Spec("3.12")
    void nullObjectArrives() throws JMSException {
        MapMessage message = map();
        message.setObject("n", null);
        isNull("the null object", roundTrip(message).getObject("n"));
    }

    @Test
    @Spec("3.12")
    void nullBytesArrive() throws JMSException {
        MapMessage message = map();
        message.setBytes("n", null);
        isNull("the null bytes", roundTrip(message).getBytes("n"));
    }

    @Test
    @Spec("3.12")
    void setBytesCopies() throws JMSException {
        byte[] array = {1};
        MapMessage message = map();
        message.setBytes("b", array);
        array[0] = 9;
        bytes("the bytes as they were set", new byte[] {1}, message.getBytes("b"));
    }

    @Test
    @Spec("3.12")
    void setObjectCopiesBytes() throws JMSException {
        byte[] array = {1};
        MapMessage message = map();
        message.setObject("b", array);
        array[0] = 9;
        bytes("the bytes as they were set", new byte[] {1}, message.getBytes("b"));
    }

    @Test
    @Spec("3.12")
    void getBytesReturnsACopy() throws JMSException {
        MapMessage message = map();
        message.setBytes("b", new byte[] {1});
        message.getBytes("b")[0] = 9;
        bytes("the bytes read again", new byte[] {1}, message.getBytes("b"));
    }

    @Test
    @Spec("10.3")
    void unsupportedClassIsRefused() throws JMSException {
        MapMessage message = map();
        fails(MessageFormatException.class, "setObject with a Date", () -> message.setObject("d", new Date()));
    }

    // ---- missing fields ---------------------------------------------------------------------------------------

    @Test
    @Spec("3.11.3")
    void missingStringIsNull() throws JMSException {
        isNull("getString() of a missing field", map().getString("none"));
    }

    @Test
    @Spec("3.11.3")
    void missingObjectIsNull() throws JMSException {
        isNull("getObject() of a missing field", map().getObject("none"));
    }

    @Test
    @Spec("3.11.3")
    void missingBytesAreNull() throws JMSException {
        isNull("getBytes() of a missing field", map().getBytes("none"));
    }

    @Test
    @Spec("3.11.3")
    void missingBooleanIsFalse() throws JMSException {
        no("getBoolean() of a missing field", map().getBoolean("none"));
    }

    @Test
    @Spec("3.11.3")
    void missingNumbersFail() throws JMSException {
        MapMessage message = map();
        fails(NumberFormatException.class, "getByte() of a missing field", () -> message.getByte("none"));
        fails(NumberFormatException.class, "getShort() of a missing field", () -> message.getShort("none"));
        fails(NumberFormatException.class, "getInt() of a missing field", () -> message.getInt("none"));
        fails(NumberFormatException.class, "getLong() of a missing field", () -> message.getLong("none"));
        fails(NullPointerException.class, "getFloat() of a missing field", () -> message.getFloat("none"));
        fails(NullPointerException.class, "getDouble() of a missing field", () -> message.getDouble("none"));
    }

    @Test
    @Spec("3.11.3")
    void missingCharFails() throws JMSException {
        MapMessage message = map();
        fails(NullPointerException.class, "getChar() of a missing field", () -> message.getChar("none"));
    }

    // ---- names ------------------------------------------------------------------------------------------------

    @Test
    @Spec("api:MapMessage")
    void nullAndEmptyNamesAreRefused() throws JMSException {
        MapMessage message = map();
        for (String name : new String[] {null, ""}) {
            String with = name == null ? "null" : "an empty name";
            Class<IllegalArgumentException> error = IllegalArgumentException.class;
            fails(error, "setBoolean with " + with, () -> message.setBoolean(name, true));
            fails(error, "setByte with " + with, () -> message.setByte(name, (byte) 1));
            fails(error, "setShort with " + with, () -> message.setShort(name, (short) 1));
            fails(error, "setChar with " + with, () -> message.setChar(name, 'c'));
            fails(error, "setInt with " + with, () -> message.setInt(name, 1));
            fails(error, "setLong with " + with, () -> message.setLong(name, 1));
            fails(error, "setFloat with " + with, () -> message.setFloat(name, 1));
            fails(error, "setDouble with " + with, () -> message.setDouble(name, 1));
            fails(error, "setString with " + with, () -> message.setString(name, "1"));
            fails(error, "setBytes with " + with, () -> message.setBytes(name, new byte[1]));
            fails(error, "setBytes (part) with " + with, () -> message.setBytes(name, new byte[1], 0, 1));
            fails(error, "setObject with " + with, () -> message.setObject(name, 1));
        }
    }

    @Test
    void namesAreEnumerated() throws JMSException {
        MapMessage message = map();
        message.setInt("a", 1);
        message.setString("b c", "2");
        equal("getMapNames()", Set.of("a", "b c"), names(message));
        equal("getMapNames() of the received message", Set.of("a", "b c"), names(roundTrip(message)));
    }

    @Test
    void anyCharactersAreAllowedInNames() throws JMSException {
        MapMessage message = map();
        message.setInt("größe 'x' \"y\" \\ \u20ac", 1);
        equal("the field with an odd name", 1, roundTrip(message).getInt("größe 'x' \"y\" \\ \u20ac"));
    }

    @Test
    void itemExistsTellsWhatIsSet() throws JMSException {
        MapMessage message = received();
        yes("itemExists() of a field", message.itemExists("i"));
        no("itemExists() of a missing field", message.itemExists("none"));
    }

    @Test
    void settingAFieldAgainReplacesIt() throws JMSException {
        MapMessage message = map();
        message.setInt("f", 1);
        message.setString("f", "two");
        equal("the field", "two", message.getObject("f"));
        equal("the names", Set.of("f"), names(message));
    }

    // ---- modes ------------------------------------------------------------------------------------------------

    @Test
    void newMessageIsReadableAndWritable() throws JMSException {
        MapMessage message = map();
        message.setInt("a", 1);
        equal("a field read from a new message", 1, message.getInt("a"));
        works("setInt() after a read", () -> message.setInt("b", 2));
    }

    @Test
    @Spec("3.11.2")
    void receivedMessageIsReadOnly() throws JMSException {
        MapMessage message = received();
        Class<MessageNotWriteableException> error = MessageNotWriteableException.class;
        fails(error, "setBoolean()", () -> message.setBoolean("f", true));
        fails(error, "setByte()", () -> message.setByte("f", (byte) 1));
        fails(error, "setShort()", () -> message.setShort("f", (short) 1));
        fails(error, "setChar()", () -> message.setChar("f", 'c'));
        fails(error, "setInt()", () -> message.setInt("f", 1));
        fails(error, "setLong()", () -> message.setLong("f", 1));
        fails(error, "setFloat()", () -> message.setFloat("f", 1));
        fails(error, "setDouble()", () -> message.setDouble("f", 1));
        fails(error, "setString()", () -> message.setString("f", "1"));
        fails(error, "setBytes()", () -> message.setBytes("f", new byte[1]));
        fails(error, "setBytes() of a part", () -> message.setBytes("f", new byte[1], 0, 1));
        fails(error, "setObject()", () -> message.setObject("f", 1));
    }

    @Test
    @Spec("3.11.1")
    void clearBodyMakesWritable() throws JMSException {
        MapMessage message = received();
        message.clearBody();
        works("setInt() after clearBody()", () -> message.setInt("j", 2));
        equal("the names after clearBody() and setInt()", Set.of("j"), names(message));
    }

    @Test
    void emptyMapArrives() throws JMSException {
        equal("the names of an empty MapMessage", Set.of(), names(roundTrip(map())));
    }

    @Test
    @Spec("3.11.4")
    void typeIsKept() throws JMSException {
        yes("a MapMessage must arrive as MapMessage", (Object) received() instanceof MapMessage);
    }

    @Test
    @Spec("3.9")
    void changesAfterSendDoNotArrive() throws JMSException {
        jakarta.jms.Queue queue = queue();
        MapMessage message = map();
        message.setInt("i", 1);
        sender().createProducer(queue).send(message);
        message.setInt("i", 2);
        equal("the field as it was sent", 1, ((MapMessage) receive(session().createConsumer(queue))).getInt("i"));
    }

    @Test
    void undefinedAndInfiniteNumbersArrive() throws JMSException {
        MapMessage message = map();
        message.setDouble("nan", Double.NaN);
        message.setFloat("inf", Float.POSITIVE_INFINITY);
        MapMessage received = roundTrip(message);
        yes("NaN must arrive as NaN", Double.isNaN(received.getDouble("nan")));
        equal("the infinite float", Float.POSITIVE_INFINITY, received.getFloat("inf"));
    }

    @Test
    void controlCharactersArrive() throws JMSException {
        MapMessage message = map();
        message.setString("s", "a\u0001\n\t\u001f\uD83D\uDE00z");
        message.setChar("c", '\u0007');
        MapMessage received = roundTrip(message);
        equal("the String with control characters", "a\u0001\n\t\u001f\uD83D\uDE00z", received.getString("s"));
        equal("the control character", '\u0007', received.getChar("c"));
    }
}
