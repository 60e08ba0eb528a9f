package io.github.pgaq.jms.conformance;

import jakarta.jms.BytesMessage;
import jakarta.jms.JMSException;
import jakarta.jms.MapMessage;
import jakarta.jms.Message;
import jakarta.jms.MessageFormatException;
import jakarta.jms.MessageNotWriteableException;
import jakarta.jms.ObjectMessage;
import jakarta.jms.StreamMessage;
import jakarta.jms.TextMessage;
import java.io.NotSerializableException;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

/** TextMessage, ObjectMessage, messages without body; getBody and isBodyAssignableTo. */
@Spec("api:Message")
class BodyTest extends ConformanceTest {
    @Override
    boolean sharesConnection() {
        return true;
    }

    private BytesMessage bytesMessage() throws JMSException {
        BytesMessage message = session().createBytesMessage();
        message.writeBytes(new byte[] {1, 2});
        return message;
    }

    private MapMessage mapMessage() throws JMSException {
        MapMessage message = session().createMapMessage();
        message.setInt("i", 1);
        return message;
    }

    private static ArrayList<String> list() {
        return new ArrayList<>(List.of("a", "b"));
    }

    // ---- TextMessage ------------------------------------------------------------------------------------------

    @Test
    @Spec("3.11")
    void textArrives() throws JMSException {
        equal(
                "the text",
                "größe \u20ac \uD83D\uDE00",
                roundTrip(session().createTextMessage("größe \u20ac \uD83D\uDE00"))
                        .getText());
    }

    @Test
    @Spec("3.11")
    void emptyTextArrives() throws JMSException {
        equal("the empty text", "", roundTrip(session().createTextMessage("")).getText());
    }

    @Test
    @Spec("3.11")
    void nullTextArrives() throws JMSException {
        isNull(
                "the text that was not set",
                roundTrip(session().createTextMessage()).getText());
    }

    @Test
    @Spec("3.11")
    void textWithControlCharactersArrives() throws JMSException {
        equal(
                "the text",
                "\u0001\t\r\n\u001f",
                roundTrip(session().createTextMessage("\u0001\t\r\n\u001f")).getText());
    }

    @Test
    @Spec("3.11")
    void longTextArrives() throws JMSException {
        String text = "0123456789".repeat(100_000);
        equal(
                "a text of a million characters",
                text,
                roundTrip(session().createTextMessage(text)).getText());
    }

    @Test
    @Spec("3.11")
    void textIsReadableAfterItIsSet() throws JMSException {
        TextMessage message = session().createTextMessage();
        message.setText("a");
        equal("getText() of a new message", "a", message.getText());
    }

    @Test
    @Spec("3.11.2")
    void receivedTextIsReadOnly() throws JMSException {
        TextMessage message = roundTrip(session().createTextMessage("a"));
        fails(MessageNotWriteableException.class, "setText() of a received message", () -> message.setText("b"));
    }

    @Test
    @Spec("3.11.1")
    void clearBodyOfText() throws JMSException {
        TextMessage message = roundTrip(session().createTextMessage("a"));
        message.clearBody();
        isNull("getText() after clearBody()", message.getText());
        works("setText() after clearBody()", () -> message.setText("b"));
    }

    // ---- ObjectMessage ----------------------------------------------------------------------------------------

    @Test
    @Spec("3.11")
    void objectArrives() throws JMSException {
        equal(
                "the object",
                list(),
                roundTrip(session().createObjectMessage(list())).getObject());
    }

    @Test
    @Spec("3.11")
    void nullObjectArrives() throws JMSException {
        isNull(
                "the object that was not set",
                roundTrip(session().createObjectMessage()).getObject());
    }

    @Test
    @Spec("3.11")
    void numbersAndStringsArriveAsObjects() throws JMSException {
        equal("the Long", 5L, roundTrip(session().createObjectMessage(5L)).getObject());
        equal("the String", "s", roundTrip(session().createObjectMessage("s")).getObject());
    }

    @Test
    @Spec({"3.12", "api:ObjectMessage"})
    void setObjectTakesASnapshot() throws JMSException {
        ArrayList<String> list = list();
        ObjectMessage message = session().createObjectMessage();
        message.setObject(list);
        list.add("c");
        equal("the object as it was set", list(), message.getObject());
    }

    @Test
    @Spec("3.12")
    void getObjectReturnsACopy() throws JMSException {
        ObjectMessage message = roundTrip(session().createObjectMessage(list()));
        ((List<?>) message.getObject()).clear();
        equal("the object read again", list(), message.getObject());
    }

    @Test
    @Spec("3.11.2")
    void receivedObjectIsReadOnly() throws JMSException {
        ObjectMessage message = roundTrip(session().createObjectMessage("a"));
        fails(MessageNotWriteableException.class, "setObject() of a received message", () -> message.setObject("b"));
    }

    @Test
    @Spec("3.11.1")
    void clearBodyOfObject() throws JMSException {
        ObjectMessage message = roundTrip(session().createObjectMessage("a"));
        message.clearBody();
        isNull("getObject() after clearBody()", message.getObject());
        works("setObject() after clearBody()", () -> message.setObject("b"));
    }

    private static final class NotReally implements Serializable {
        private void writeObject(java.io.ObjectOutputStream out) throws NotSerializableException {
            throw new NotSerializableException("a class that refuses");
        }
    }

    @Test
    @Spec("api:ObjectMessage")
    void failedSerializationIsAFormatError() throws JMSException {
        ObjectMessage message = session().createObjectMessage();
        fails(
                MessageFormatException.class,
                "setObject() of an object whose serialization fails",
                () -> message.setObject(new NotReally()));
    }

    // ---- Message without body ---------------------------------------------------------------------------------

    @Test
    @Spec({"3.11.4", "6.2.4"})
    void messageWithoutBodyArrives() throws JMSException {
        Message message = session().createMessage();
        message.setStringProperty("p", "v");
        Message received = roundTrip(message);
        equal("the property of a message without body", "v", received.getStringProperty("p"));
        no(
                "a message without body must not arrive as another kind",
                received instanceof TextMessage
                        || received instanceof BytesMessage
                        || received instanceof MapMessage
                        || received instanceof StreamMessage
                        || received instanceof ObjectMessage);
    }

    // ---- getBody ----------------------------------------------------------------------------------------------

    @Test
    void bodyOfText() throws JMSException {
        equal(
                "getBody(String.class)",
                "a",
                roundTrip(session().createTextMessage("a")).getBody(String.class));
    }

    @Test
    void bodyOfTextAsSuperclass() throws JMSException {
        TextMessage message = roundTrip(session().createTextMessage("a"));
        equal("getBody(Object.class)", "a", message.getBody(Object.class));
        equal("getBody(CharSequence.class)", "a", message.getBody(CharSequence.class));
        equal("getBody(Serializable.class)", "a", message.getBody(Serializable.class));
    }

    @Test
    void bodyOfTextAsAnotherClassFails() throws JMSException {
        TextMessage message = roundTrip(session().createTextMessage("a"));
        fails(MessageFormatException.class, "getBody(Integer.class) of a text", () -> message.getBody(Integer.class));
        fails(MessageFormatException.class, "getBody(byte[].class) of a text", () -> message.getBody(byte[].class));
    }

    @Test
    void bodyOfEmptyTextIsNullForAnyClass() throws JMSException {
        TextMessage message = session().createTextMessage();
        isNull("getBody() of a TextMessage without text", message.getBody(Integer.class));
        yes("isBodyAssignableTo() of a TextMessage without text", message.isBodyAssignableTo(Integer.class));
    }

    @Test
    void bodyOfMap() throws JMSException {
        equal("getBody(Map.class)", Map.of("i", 1), roundTrip(mapMessage()).getBody(Map.class));
    }

    @Test
    void bodyOfMapAsObject() throws JMSException {
        equal(
                "getBody(Object.class) of a map",
                Map.of("i", 1),
                roundTrip(mapMessage()).getBody(Object.class));
    }

    @Test
    void bodyOfMapAsAnotherClassFails() throws JMSException {
        MapMessage message = roundTrip(mapMessage());
        fails(MessageFormatException.class, "getBody(String.class) of a map", () -> message.getBody(String.class));
        fails(MessageFormatException.class, "getBody(HashMap.class) of a map", () -> message.getBody(HashMap.class));
    }

    @Test
    void bodyOfEmptyMapIsNullForAnyClass() throws JMSException {
        MapMessage message = session().createMapMessage();
        isNull("getBody() of a MapMessage without entries", message.getBody(Integer.class));
    }

    @Test
    void bodyOfBytes() throws JMSException {
        bytes(
                "getBody(byte[].class)",
                new byte[] {1, 2},
                roundTrip(bytesMessage()).getBody(byte[].class));
    }

    @Test
    void bodyOfBytesAsObject() throws JMSException {
        bytes("getBody(Object.class) of bytes", new byte[] {1, 2}, (byte[])
                roundTrip(bytesMessage()).getBody(Object.class));
    }

    @Test
    void bodyOfBytesAsAnotherClassFails() throws JMSException {
        BytesMessage message = roundTrip(bytesMessage());
        fails(MessageFormatException.class, "getBody(String.class) of bytes", () -> message.getBody(String.class));
    }

    @Test
    void getBodyResetsABytesMessageBefore() throws JMSException {
        BytesMessage message = roundTrip(bytesMessage());
        message.readByte();
        bytes("getBody() after a read", new byte[] {1, 2}, message.getBody(byte[].class));
    }

    @Test
    void getBodyResetsABytesMessageAfter() throws JMSException {
        BytesMessage message = roundTrip(bytesMessage());
        message.getBody(byte[].class);
        equal("the byte read after getBody()", (byte) 1, message.readByte());
    }

    @Test
    void getBodyOfABytesMessageInWriteModeResetsIt() throws JMSException {
        BytesMessage message = bytesMessage();
        bytes("getBody() of a BytesMessage in write-only mode", new byte[] {1, 2}, message.getBody(byte[].class));
    }

    @Test
    void bodyOfEmptyBytesIsNullForAnyClass() throws JMSException {
        isNull(
                "getBody() of a BytesMessage without body",
                roundTrip(session().createBytesMessage()).getBody(String.class));
    }

    @Test
    void bodyOfObject() throws JMSException {
        ObjectMessage message = roundTrip(session().createObjectMessage(list()));
        equal("getBody(Serializable.class)", list(), message.getBody(Serializable.class));
        equal("getBody(List.class)", list(), message.getBody(List.class));
    }

    @Test
    void bodyOfObjectAsAnotherClassFails() throws JMSException {
        ObjectMessage message = roundTrip(session().createObjectMessage(list()));
        fails(MessageFormatException.class, "getBody(String.class) of a list", () -> message.getBody(String.class));
    }

    @Test
    void bodyOfNullObjectIsNullForAnyClass() throws JMSException {
        isNull(
                "getBody() of an ObjectMessage without object",
                roundTrip(session().createObjectMessage()).getBody(String.class));
    }

    @Test
    void bodyOfStreamFails() throws JMSException {
        StreamMessage message = session().createStreamMessage();
        fails(MessageFormatException.class, "getBody() of a StreamMessage", () -> message.getBody(Object.class));
    }

    @Test
    void bodyOfMessageWithoutBodyIsNull() throws JMSException {
        isNull("getBody() of a Message", roundTrip(session().createMessage()).getBody(String.class));
    }

    // ---- isBodyAssignableTo -----------------------------------------------------------------------------------

    @Test
    void textIsAssignable() throws JMSException {
        TextMessage message = roundTrip(session().createTextMessage("a"));
        yes("a text is assignable to String", message.isBodyAssignableTo(String.class));
        yes("a text is assignable to Object", message.isBodyAssignableTo(Object.class));
        no("a text is not assignable to Integer", message.isBodyAssignableTo(Integer.class));
    }

    @Test
    void mapIsAssignable() throws JMSException {
        MapMessage message = roundTrip(mapMessage());
        yes("a map is assignable to Map", message.isBodyAssignableTo(Map.class));
        yes("a map is assignable to Object", message.isBodyAssignableTo(Object.class));
        no("a map is not assignable to String", message.isBodyAssignableTo(String.class));
    }

    @Test
    void bytesAreAssignable() throws JMSException {
        BytesMessage message = roundTrip(bytesMessage());
        yes("bytes are assignable to byte[]", message.isBodyAssignableTo(byte[].class));
        yes("bytes are assignable to Object", message.isBodyAssignableTo(Object.class));
        no("bytes are not assignable to String", message.isBodyAssignableTo(String.class));
    }

    @Test
    void objectIsAssignable() throws JMSException {
        ObjectMessage message = roundTrip(session().createObjectMessage(list()));
        yes("a list is assignable to List", message.isBodyAssignableTo(List.class));
        yes("a list is assignable to Serializable", message.isBodyAssignableTo(Serializable.class));
        no("a list is not assignable to String", message.isBodyAssignableTo(String.class));
    }

    @Test
    void streamIsNeverAssignable() throws JMSException {
        no(
                "a StreamMessage is not assignable to Object",
                session().createStreamMessage().isBodyAssignableTo(Object.class));
    }

    @Test
    void messageWithoutBodyIsAssignableToAll() throws JMSException {
        yes(
                "a Message without body is assignable to any class",
                session().createMessage().isBodyAssignableTo(Integer.class));
    }
}
