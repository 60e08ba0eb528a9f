package io.github.pgaq.jms.session;

import io.github.pgaq.jms.message.PgaqMessage;
import jakarta.jms.BytesMessage;
import jakarta.jms.CompletionListener;
import jakarta.jms.Destination;
import jakarta.jms.JMSProducer;
import jakarta.jms.MapMessage;
import jakarta.jms.Message;
import jakarta.jms.MessageFormatRuntimeException;
import java.io.Serializable;
import java.util.Collections;
import java.util.Enumeration;
import java.util.LinkedHashSet;
import java.util.Map;
import java.util.Set;

/** A producer of a context: headers and properties that it sets in each message it sends. */
final class ContextProducer implements JMSProducer {
    private final ClientSession session;
    private final Producer producer;
    /** Has the properties and headers, so that they follow the rules of messages. */
    private final PgaqMessage template;

    private boolean correlated;
    private boolean typed;
    private boolean replied;
    private CompletionListener listener;

    ContextProducer(ClientSession session, Producer producer) {
        this.session = session;
        this.producer = producer;
        this.template = session.connection().messages().createMessage();
    }

    @Override
    public JMSProducer send(Destination destination, Message message) {
        if (message == null) {
            throw new MessageFormatRuntimeException("message must not be null");
        }
        return set(() -> {
            Enumeration<?> names = template.getPropertyNames();
            while (names.hasMoreElements()) {
                String name = (String) names.nextElement();
                message.setObjectProperty(name, template.getObjectProperty(name));
            }
            if (correlated) {
                message.setJMSCorrelationID(template.getJMSCorrelationID());
            }
            if (typed) {
                message.setJMSType(template.getJMSType());
            }
            if (replied) {
                message.setJMSReplyTo(template.getJMSReplyTo());
            }
            if (listener == null) {
                producer.send(destination, message);
            } else {
                producer.send(destination, message, listener);
            }
        });
    }

    @Override
    public JMSProducer send(Destination destination, String body) {
        return send(destination, Errors.unchecked(() -> session.createTextMessage(body)));
    }

    @Override
    public JMSProducer send(Destination destination, Map<String, Object> body) {
        return send(destination, Errors.unchecked(() -> {
            MapMessage message = session.createMapMessage();
            if (body != null) {
                for (Map.Entry<String, Object> entry : body.entrySet()) {
                    message.setObject(entry.getKey(), entry.getValue());
                }
            }
            return message;
        }));
    }

    @Override
    public JMSProducer send(Destination destination, byte[] body) {
        return send(destination, Errors.unchecked(() -> {
            BytesMessage message = session.createBytesMessage();
            if (body != null) {
                message.writeBytes(body);
            }
            return message;
        }));
    }

    @Override
    public JMSProducer send(Destination destination, Serializable body) {
        return send(destination, Errors.unchecked(() -> session.createObjectMessage(body)));
    }

    private JMSProducer set(Errors.CheckedVoid action) {
        Errors.unchecked(action);
        return this;
    }

    private <T> T get(Errors.Checked<T> action) {
        return Errors.unchecked(action);
    }

    @Override
    public JMSProducer setAsync(CompletionListener completionListener) {
        listener = completionListener;
        return this;
    }

    @Override
    public CompletionListener getAsync() {
        return listener;
    }

    @Override
    public JMSProducer setDisableMessageID(boolean value) {
        return set(() -> producer.setDisableMessageID(value));
    }

    @Override
    public boolean getDisableMessageID() {
        return get(producer::getDisableMessageID);
    }

    @Override
    public JMSProducer setDisableMessageTimestamp(boolean value) {
        return set(() -> producer.setDisableMessageTimestamp(value));
    }

    @Override
    public boolean getDisableMessageTimestamp() {
        return get(producer::getDisableMessageTimestamp);
    }

    @Override
    public JMSProducer setDeliveryMode(int deliveryMode) {
        return set(() -> producer.setDeliveryMode(deliveryMode));
    }

    @Override
    public int getDeliveryMode() {
        return get(producer::getDeliveryMode);
    }

    @Override
    public JMSProducer setPriority(int priority) {
        return set(() -> producer.setPriority(priority));
    }

    @Override
    public int getPriority() {
        return get(producer::getPriority);
    }

    @Override
    public JMSProducer setTimeToLive(long timeToLive) {
        return set(() -> producer.setTimeToLive(timeToLive));
    }

    @Override
    public long getTimeToLive() {
        return get(producer::getTimeToLive);
    }

    @Override
    public JMSProducer setDeliveryDelay(long deliveryDelay) {
        return set(() -> producer.setDeliveryDelay(deliveryDelay));
    }

    @Override
    public long getDeliveryDelay() {
        return get(producer::getDeliveryDelay);
    }

    @Override
    public JMSProducer setProperty(String name, boolean value) {
        return set(() -> template.setBooleanProperty(name, value));
    }

    @Override
    public boolean getBooleanProperty(String name) {
        return get(() -> template.getBooleanProperty(name));
    }

    @Override
    public JMSProducer setProperty(String name, byte value) {
        return set(() -> template.setByteProperty(name, value));
    }

    @Override
    public byte getByteProperty(String name) {
        return get(() -> template.getByteProperty(name));
    }

    @Override
    public JMSProducer setProperty(String name, short value) {
        return set(() -> template.setShortProperty(name, value));
    }

    @Override
    public short getShortProperty(String name) {
        return get(() -> template.getShortProperty(name));
    }

    @Override
    public JMSProducer setProperty(String name, int value) {
        return set(() -> template.setIntProperty(name, value));
    }

    @Override
    public int getIntProperty(String name) {
        return get(() -> template.getIntProperty(name));
    }

    @Override
    public JMSProducer setProperty(String name, long value) {
        return set(() -> template.setLongProperty(name, value));
    }

    @Override
    public long getLongProperty(String name) {
        return get(() -> template.getLongProperty(name));
    }

    @Override
    public JMSProducer setProperty(String name, float value) {
        return set(() -> template.setFloatProperty(name, value));
    }

    @Override
    public float getFloatProperty(String name) {
        return get(() -> template.getFloatProperty(name));
    }

    @Override
    public JMSProducer setProperty(String name, double value) {
        return set(() -> template.setDoubleProperty(name, value));
    }

    @Override
    public double getDoubleProperty(String name) {
        return get(() -> template.getDoubleProperty(name));
    }

    @Override
    public JMSProducer setProperty(String name, String value) {
        return set(() -> template.setStringProperty(name, value));
    }

    @Override
    public String getStringProperty(String name) {
        return get(() -> template.getStringProperty(name));
    }

    @Override
    public JMSProducer setProperty(String name, Object value) {
        return set(() -> template.setObjectProperty(name, value));
    }

    @Override
    public Object getObjectProperty(String name) {
        return get(() -> template.getObjectProperty(name));
    }

    @Override
    public JMSProducer clearProperties() {
        return set(template::clearProperties);
    }

    @Override
    public boolean propertyExists(String name) {
        return get(() -> template.propertyExists(name));
    }

    @Override
    public Set<String> getPropertyNames() {
        return get(() -> {
            Set<String> names = new LinkedHashSet<>();
            Collections.list((Enumeration<?>) template.getPropertyNames()).forEach(name -> names.add((String) name));
            return Collections.unmodifiableSet(names);
        });
    }

    @Override
    public JMSProducer setJMSCorrelationIDAsBytes(byte[] correlationID) {
        return set(() -> {
            template.setJMSCorrelationIDAsBytes(correlationID);
            correlated = correlationID != null;
        });
    }

    @Override
    public byte[] getJMSCorrelationIDAsBytes() {
        return get(template::getJMSCorrelationIDAsBytes);
    }

    @Override
    public JMSProducer setJMSCorrelationID(String correlationID) {
        return set(() -> {
            template.setJMSCorrelationID(correlationID);
            correlated = correlationID != null;
        });
    }

    @Override
    public String getJMSCorrelationID() {
        return get(template::getJMSCorrelationID);
    }

    @Override
    public JMSProducer setJMSType(String type) {
        return set(() -> {
            template.setJMSType(type);
            typed = type != null;
        });
    }

    @Override
    public String getJMSType() {
        return get(template::getJMSType);
    }

    @Override
    public JMSProducer setJMSReplyTo(Destination replyTo) {
        return set(() -> {
            template.setJMSReplyTo(replyTo);
            replied = replyTo != null;
        });
    }

    @Override
    public Destination getJMSReplyTo() {
        return get(template::getJMSReplyTo);
    }
}
