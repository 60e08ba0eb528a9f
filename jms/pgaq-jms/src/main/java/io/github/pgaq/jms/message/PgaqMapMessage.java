package io.github.pgaq.jms.message;

import io.github.pgaq.jms.message.Conversions.Place;
import jakarta.jms.JMSException;
import jakarta.jms.MapMessage;
import jakarta.jms.MessageFormatException;
import java.util.Arrays;
import java.util.Collections;
import java.util.Enumeration;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;

/** A map message. */
public final class PgaqMapMessage extends PgaqMessage implements MapMessage {

    private Map<String, Object> map = new LinkedHashMap<>();
    /** The map's JSON text, until it is read. */
    private String unread;

    PgaqMapMessage() {}

    private Map<String, Object> map() throws JMSException {
        if (unread != null) {
            try {
                Map<String, Object> values = Typed.readObject(unread);
                values.replaceAll((name, json) -> Typed.readValue(json));
                map = values;
                unread = null;
            } catch (IllegalArgumentException e) {
                throw Errors.with(new MessageFormatException("invalid body of a map message: " + e.getMessage()), e);
            }
        }
        return map;
    }

    @Override
    public boolean getBoolean(String name) throws JMSException {
        return Conversions.toBoolean(Place.ENTRY, name, map().get(name));
    }

    @Override
    public byte getByte(String name) throws JMSException {
        return Conversions.toByte(Place.ENTRY, name, map().get(name));
    }

    @Override
    public short getShort(String name) throws JMSException {
        return Conversions.toShort(Place.ENTRY, name, map().get(name));
    }

    @Override
    public char getChar(String name) throws JMSException {
        return Conversions.toChar(Place.ENTRY, name, map().get(name));
    }

    @Override
    public int getInt(String name) throws JMSException {
        return Conversions.toInt(Place.ENTRY, name, map().get(name));
    }

    @Override
    public long getLong(String name) throws JMSException {
        return Conversions.toLong(Place.ENTRY, name, map().get(name));
    }

    @Override
    public float getFloat(String name) throws JMSException {
        return Conversions.toFloat(Place.ENTRY, name, map().get(name));
    }

    @Override
    public double getDouble(String name) throws JMSException {
        return Conversions.toDouble(Place.ENTRY, name, map().get(name));
    }

    @Override
    public String getString(String name) throws JMSException {
        return Conversions.toText(Place.ENTRY, name, map().get(name));
    }

    @Override
    public byte[] getBytes(String name) throws JMSException {
        return Conversions.toBytes(Place.ENTRY, name, map().get(name));
    }

    @Override
    public Object getObject(String name) throws JMSException {
        return Conversions.bodyValue(map().get(name));
    }

    @Override
    public Enumeration<String> getMapNames() throws JMSException {
        return Collections.enumeration(List.copyOf(map().keySet()));
    }

    @Override
    public boolean itemExists(String name) throws JMSException {
        return map().containsKey(name);
    }

    @Override
    public void setBoolean(String name, boolean value) throws JMSException {
        set(name, value);
    }

    @Override
    public void setByte(String name, byte value) throws JMSException {
        set(name, value);
    }

    @Override
    public void setShort(String name, short value) throws JMSException {
        set(name, value);
    }

    @Override
    public void setChar(String name, char value) throws JMSException {
        set(name, value);
    }

    @Override
    public void setInt(String name, int value) throws JMSException {
        set(name, value);
    }

    @Override
    public void setLong(String name, long value) throws JMSException {
        set(name, value);
    }

    @Override
    public void setFloat(String name, float value) throws JMSException {
        set(name, value);
    }

    @Override
    public void setDouble(String name, double value) throws JMSException {
        set(name, value);
    }

    @Override
    public void setString(String name, String value) throws JMSException {
        set(name, value);
    }

    @Override
    public void setBytes(String name, byte[] value) throws JMSException {
        set(name, value);
    }

    @Override
    public void setBytes(String name, byte[] value, int offset, int length) throws JMSException {
        Objects.checkFromIndexSize(offset, length, value.length);
        set(name, Arrays.copyOfRange(value, offset, offset + length));
    }

    @Override
    public void setObject(String name, Object value) throws JMSException {
        set(name, value);
    }

    private void set(String name, Object value) throws JMSException {
        checkBodyWritable();
        if (name == null || name.isEmpty()) {
            throw new IllegalArgumentException("the name of a map entry cannot be null or empty");
        }
        map().put(name, Conversions.bodyValue(value));
    }

    @Override
    public void clearBody() throws JMSException {
        super.clearBody();
        map = new LinkedHashMap<>();
        unread = null;
    }

    @Override
    String kind() {
        return "map";
    }

    @Override
    String storedText() {
        return unread != null ? unread : Typed.write(map);
    }

    @Override
    void load(String text, byte[] bytes) {
        unread = text;
    }

    @Override
    Object wholeBody() throws JMSException {
        if (map().isEmpty()) {
            return null;
        }
        Map<String, Object> copy = new LinkedHashMap<>(map);
        copy.replaceAll((name, value) -> value instanceof byte[] bytes ? bytes.clone() : value);
        return copy;
    }

    @Override
    boolean isAssignable(Class<?> c, Object body) {
        return c == Map.class || c == Object.class;
    }
}
