package io.github.pgaq.jms.conformance;

import jakarta.jms.JMSException;
import jakarta.jms.MapMessage;
import java.util.Map;

/** MapMessage: the values in its body. */
@Spec("3.11.3")
class MapConversionTest extends BodyConversions<MapMessage> {
    private static final Map<String, Getter<MapMessage>> GETTERS = Map.ofEntries(
            Map.entry("boolean", message -> message.getBoolean("f")),
            Map.entry("byte", message -> message.getByte("f")),
            Map.entry("short", message -> message.getShort("f")),
            Map.entry("char", message -> message.getChar("f")),
            Map.entry("int", message -> message.getInt("f")),
            Map.entry("long", message -> message.getLong("f")),
            Map.entry("float", message -> message.getFloat("f")),
            Map.entry("double", message -> message.getDouble("f")),
            Map.entry("String", message -> message.getString("f")),
            Map.entry("byte[]", message -> message.getBytes("f")));

    @Override
    MapMessage with(Object value) throws JMSException {
        MapMessage message = session().createMapMessage();
        message.setObject("f", value);
        return message;
    }

    @Override
    Object read(MapMessage message, String type) throws JMSException {
        return GETTERS.get(type).get(message);
    }
}
