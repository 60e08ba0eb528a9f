package io.github.pgaq.jms.conformance;

import jakarta.jms.JMSException;
import jakarta.jms.StreamMessage;
import java.util.Arrays;
import java.util.Map;

/** StreamMessage: the values in its body. */
@Spec("3.11.3")
class StreamConversionTest extends BodyConversions<StreamMessage> {
    private static final Map<String, Getter<StreamMessage>> GETTERS = Map.ofEntries(
            Map.entry("boolean", StreamMessage::readBoolean),
            Map.entry("byte", StreamMessage::readByte),
            Map.entry("short", StreamMessage::readShort),
            Map.entry("char", StreamMessage::readChar),
            Map.entry("int", StreamMessage::readInt),
            Map.entry("long", StreamMessage::readLong),
            Map.entry("float", StreamMessage::readFloat),
            Map.entry("double", StreamMessage::readDouble),
            Map.entry("String", StreamMessage::readString),
            Map.entry("byte[]", StreamConversionTest::readBytes));

    @Override
    StreamMessage with(Object value) throws JMSException {
        StreamMessage message = session().createStreamMessage();
        message.writeObject(value);
        message.reset();
        return message;
    }

    @Override
    Object read(StreamMessage message, String type) throws JMSException {
        message.reset();
        return GETTERS.get(type).get(message);
    }

    private static byte[] readBytes(StreamMessage message) throws JMSException {
        byte[] buffer = new byte[100];
        int count = message.readBytes(buffer);
        return count < 0 ? null : Arrays.copyOf(buffer, count);
    }
}
