package io.github.pgaq.jms.message;

import io.github.pgaq.jms.store.Content;
import jakarta.jms.DeliveryMode;
import jakarta.jms.Destination;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageFormatException;
import jakarta.jms.MessageNotWriteableException;
import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Collections;
import java.util.Enumeration;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * A message: headers and properties, and what all kinds of bodies have in common. {@link Messages} makes them.
 *
 * <p>A message is used by one thread at a time.
 */
public class PgaqMessage implements Message {

    private static final String BINARY_ID = "base64:";

    private String messageId;
    private long timestamp;
    private String correlationId;
    private Destination replyTo;
    private Destination destination;
    private int deliveryMode = DeliveryMode.PERSISTENT;
    private boolean redelivered;
    private String type;
    private long expiration;
    private long deliveryTime;
    private int priority = DEFAULT_PRIORITY;
    private int deliveryCount;
    private Map<String, Object> properties = new LinkedHashMap<>();
    private boolean propertiesReadOnly;
    private boolean bodyReadOnly;
    private String connectionId;
    private Acknowledger acknowledger;

    PgaqMessage() {}

    // What sessions use

    /** Sets what {@link #acknowledge} calls; null: nothing. */
    public void setAcknowledger(Acknowledger acknowledger) {
        this.acknowledger = acknowledger;
    }

    /** The connection that sent the message, as {@link #setConnectionId} set it; null if that is not known. */
    public String getConnectionId() {
        return connectionId;
    }

    /** Names the connection that sends the message, so that consumers with {@code noLocal} can tell; null: none. */
    public void setConnectionId(String connectionId) {
        this.connectionId = connectionId;
    }

    /** How often the message was delivered, this time included; 0 for a message that was not received. */
    public int getDeliveryCount() {
        return deliveryCount;
    }

    void setDeliveryCount(int deliveryCount) {
        this.deliveryCount = deliveryCount;
        this.redelivered = deliveryCount > 1;
    }

    /** Makes properties and body read-only, as those of a received message are. */
    void setReadOnly() throws JMSException {
        propertiesReadOnly = true;
        bodyReadOnly = true;
    }

    /** The properties that are sent. */
    final Map<String, Object> properties() {
        return properties;
    }

    // What the kinds of messages have of their own

    /** The kind of the message as {@code aq.jms_message} names it. */
    String kind() {
        return "message";
    }

    /** The body's {@code text} in the database; null: none. */
    String storedText() throws JMSException {
        return null;
    }

    /** The body's {@code bytes} in the database; null: none. */
    byte[] storedBytes() throws JMSException {
        return null;
    }

    /** Takes the body as it lies in the database. Errors are raised when the body is used. */
    void load(String text, byte[] bytes) {}

    /** The body if it is large, then {@link #storedText} and {@link #storedBytes} are null; null: it is not. */
    Content content() {
        return null;
    }

    /** The length of {@link #content}. */
    long contentLength() {
        return 0;
    }

    /** The message's body is a large one of this length, which {@link #fetch} reads. */
    void loadContent(long length) {}

    /**
     * Reads the body from the server if it is a large one. Does not fail if it is gone: reading the body then does.
     * To be called before the message is given to the client and acknowledged.
     */
    public void fetch(ContentReader reader) throws JMSException {}

    /** The body as one object for {@link #getBody}; null: no body. */
    Object wholeBody() throws JMSException {
        return null;
    }

    /** Whether its properties are those that came with it. */
    public final boolean isReceived() {
        return propertiesReadOnly;
    }

    final void checkBodyWritable() throws MessageNotWriteableException {
        if (bodyReadOnly) {
            throw new MessageNotWriteableException(
                    "the body of the message is read-only; clearBody() makes it empty and writable");
        }
    }

    final boolean isBodyReadOnly() {
        return bodyReadOnly;
    }

    final void setBodyReadOnly(boolean readOnly) {
        bodyReadOnly = readOnly;
    }

    // Body

    @Override
    public void clearBody() throws JMSException {
        bodyReadOnly = false;
    }

    @Override
    public <T> T getBody(Class<T> c) throws JMSException {
        Object body = wholeBody();
        if (body == null) {
            return null;
        }
        if (!isAssignable(c, body)) {
            throw new MessageFormatException("the body of a " + kind() + " message, a "
                    + body.getClass().getTypeName() + ", cannot be assigned to " + c.getTypeName());
        }
        return c.cast(body);
    }

    @Override
    @SuppressWarnings("rawtypes")
    public boolean isBodyAssignableTo(Class c) throws JMSException {
        Object body;
        try {
            body = wholeBody();
        } catch (MessageFormatException unreadable) {
            return false;
        }
        return body == null || isAssignable(c, body);
    }

    /** Whether the body can be assigned to the type. */
    boolean isAssignable(Class<?> c, Object body) {
        return c.isInstance(body);
    }

    @Override
    public void acknowledge() throws JMSException {
        if (acknowledger != null) {
            acknowledger.acknowledge();
        }
    }

    // Headers

    @Override
    public String getJMSMessageID() {
        return messageId;
    }

    @Override
    public void setJMSMessageID(String id) {
        messageId = id;
    }

    @Override
    public long getJMSTimestamp() {
        return timestamp;
    }

    @Override
    public void setJMSTimestamp(long timestamp) {
        this.timestamp = timestamp;
    }

    /**
     * The correlation ID as bytes: the UTF-8 form of the string, or what {@link #setJMSCorrelationIDAsBytes} was given.
     */
    @Override
    public byte[] getJMSCorrelationIDAsBytes() {
        if (correlationId == null) {
            return null;
        }
        if (correlationId.startsWith(BINARY_ID)) {
            try {
                return Base64.getDecoder().decode(correlationId.substring(BINARY_ID.length()));
            } catch (IllegalArgumentException notBase64) {
                return correlationId.getBytes(StandardCharsets.UTF_8);
            }
        }
        return correlationId.getBytes(StandardCharsets.UTF_8);
    }

    /**
     * Sets the correlation ID from bytes. As a string it is the text that they are in UTF-8, or, if they are none,
     * {@code base64:} and the bytes in base 64.
     */
    @Override
    public void setJMSCorrelationIDAsBytes(byte[] correlationId) {
        if (correlationId == null) {
            this.correlationId = null;
            return;
        }
        try {
            String text = StandardCharsets.UTF_8
                    .newDecoder()
                    .decode(ByteBuffer.wrap(correlationId))
                    .toString();
            if (text.indexOf(0) < 0 && !text.startsWith(BINARY_ID)) {
                this.correlationId = text;
                return;
            }
        } catch (CharacterCodingException notText) {
            // kept as base 64
        }
        this.correlationId = BINARY_ID + Base64.getEncoder().encodeToString(correlationId);
    }

    @Override
    public void setJMSCorrelationID(String correlationId) {
        this.correlationId = correlationId;
    }

    @Override
    public String getJMSCorrelationID() {
        return correlationId;
    }

    @Override
    public Destination getJMSReplyTo() {
        return replyTo;
    }

    @Override
    public void setJMSReplyTo(Destination replyTo) {
        this.replyTo = replyTo;
    }

    @Override
    public Destination getJMSDestination() {
        return destination;
    }

    @Override
    public void setJMSDestination(Destination destination) {
        this.destination = destination;
    }

    @Override
    public int getJMSDeliveryMode() {
        return deliveryMode;
    }

    @Override
    public void setJMSDeliveryMode(int deliveryMode) {
        this.deliveryMode = deliveryMode;
    }

    @Override
    public boolean getJMSRedelivered() {
        return redelivered;
    }

    @Override
    public void setJMSRedelivered(boolean redelivered) {
        this.redelivered = redelivered;
    }

    @Override
    public String getJMSType() {
        return type;
    }

    @Override
    public void setJMSType(String type) {
        this.type = type;
    }

    @Override
    public long getJMSExpiration() {
        return expiration;
    }

    @Override
    public void setJMSExpiration(long expiration) {
        this.expiration = expiration;
    }

    @Override
    public long getJMSDeliveryTime() {
        return deliveryTime;
    }

    @Override
    public void setJMSDeliveryTime(long deliveryTime) {
        this.deliveryTime = deliveryTime;
    }

    @Override
    public int getJMSPriority() {
        return priority;
    }

    @Override
    public void setJMSPriority(int priority) {
        this.priority = priority;
    }

    // Properties

    @Override
    public void clearProperties() {
        properties = new LinkedHashMap<>();
        deliveryCount = 0;
        propertiesReadOnly = false;
    }

    @Override
    public boolean propertyExists(String name) {
        return properties.containsKey(name) || deliveryCount > 0 && PropertyNames.DELIVERY_COUNT.equals(name);
    }

    @Override
    public Object getObjectProperty(String name) {
        if (deliveryCount > 0 && PropertyNames.DELIVERY_COUNT.equals(name)) {
            return deliveryCount;
        }
        return properties.get(name);
    }

    @Override
    public Enumeration<String> getPropertyNames() {
        List<String> names = new ArrayList<>(properties.keySet());
        if (deliveryCount > 0 && !names.contains(PropertyNames.DELIVERY_COUNT)) {
            names.add(PropertyNames.DELIVERY_COUNT);
        }
        return Collections.enumeration(names);
    }

    @Override
    public boolean getBooleanProperty(String name) throws JMSException {
        return Conversions.toBoolean(Conversions.Place.PROPERTY, name, getObjectProperty(name));
    }

    @Override
    public byte getByteProperty(String name) throws JMSException {
        return Conversions.toByte(Conversions.Place.PROPERTY, name, getObjectProperty(name));
    }

    @Override
    public short getShortProperty(String name) throws JMSException {
        return Conversions.toShort(Conversions.Place.PROPERTY, name, getObjectProperty(name));
    }

    @Override
    public int getIntProperty(String name) throws JMSException {
        return Conversions.toInt(Conversions.Place.PROPERTY, name, getObjectProperty(name));
    }

    @Override
    public long getLongProperty(String name) throws JMSException {
        return Conversions.toLong(Conversions.Place.PROPERTY, name, getObjectProperty(name));
    }

    @Override
    public float getFloatProperty(String name) throws JMSException {
        return Conversions.toFloat(Conversions.Place.PROPERTY, name, getObjectProperty(name));
    }

    @Override
    public double getDoubleProperty(String name) throws JMSException {
        return Conversions.toDouble(Conversions.Place.PROPERTY, name, getObjectProperty(name));
    }

    @Override
    public String getStringProperty(String name) throws JMSException {
        return Conversions.toText(Conversions.Place.PROPERTY, name, getObjectProperty(name));
    }

    @Override
    public void setBooleanProperty(String name, boolean value) throws JMSException {
        setProperty(name, value);
    }

    @Override
    public void setByteProperty(String name, byte value) throws JMSException {
        setProperty(name, value);
    }

    @Override
    public void setShortProperty(String name, short value) throws JMSException {
        setProperty(name, value);
    }

    @Override
    public void setIntProperty(String name, int value) throws JMSException {
        setProperty(name, value);
    }

    @Override
    public void setLongProperty(String name, long value) throws JMSException {
        setProperty(name, value);
    }

    @Override
    public void setFloatProperty(String name, float value) throws JMSException {
        setProperty(name, value);
    }

    @Override
    public void setDoubleProperty(String name, double value) throws JMSException {
        setProperty(name, value);
    }

    @Override
    public void setStringProperty(String name, String value) throws JMSException {
        setProperty(name, value);
    }

    @Override
    public void setObjectProperty(String name, Object value) throws JMSException {
        setProperty(name, value);
    }

    private void setProperty(String name, Object value) throws JMSException {
        if (propertiesReadOnly) {
            throw new MessageNotWriteableException(
                    "the properties of the message are read-only; clearProperties() removes them and allows new ones");
        }
        PropertyNames.check(name);
        if (!Conversions.isPropertyValue(value)) {
            throw new MessageFormatException("property \"" + name + "\" cannot be of class "
                    + value.getClass().getName() + "; allowed are Boolean, Byte, Short, Integer, Long, Float, Double"
                    + " and String");
        }
        PropertyNames.checkType(name, value);
        properties.put(name, value);
    }

    @Override
    public String toString() {
        return getClass().getSimpleName() + "[" + messageId + "]";
    }
}
