package io.github.pgaq.jms.message;

import io.github.pgaq.jms.PgaqDestination;
import io.github.pgaq.jms.store.Body;
import io.github.pgaq.jms.store.Content;
import io.github.pgaq.jms.store.Delivery;
import jakarta.jms.BytesMessage;
import jakarta.jms.DeliveryMode;
import jakarta.jms.Destination;
import jakarta.jms.InvalidDestinationException;
import jakarta.jms.JMSException;
import jakarta.jms.MapMessage;
import jakarta.jms.Message;
import jakarta.jms.MessageEOFException;
import jakarta.jms.MessageFormatException;
import jakarta.jms.ObjectMessage;
import jakarta.jms.Queue;
import jakarta.jms.StreamMessage;
import jakarta.jms.TemporaryQueue;
import jakarta.jms.TemporaryTopic;
import jakarta.jms.TextMessage;
import jakarta.jms.Topic;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * Makes messages: new ones, those that were received, and copies of other providers' ones. Also makes of a message what
 * is stored. Threads can share it.
 */
public final class Messages {

    private static final String CONTENT_LENGTH = "content_length";

    private final AllowedClasses allowed;
    private final DestinationResolver destinations;

    /**
     * Makes messages with these options.
     *
     * @param allowed the classes that object messages can have
     * @param destinations makes the destinations of received messages
     */
    public Messages(AllowedClasses allowed, DestinationResolver destinations) {
        this.allowed = allowed;
        this.destinations = destinations;
    }

    // New messages

    /** Makes a message without body. */
    public PgaqMessage createMessage() {
        return new PgaqMessage();
    }

    /** Makes a text message. */
    public PgaqTextMessage createTextMessage() {
        return new PgaqTextMessage();
    }

    /** Makes a bytes message. */
    public PgaqBytesMessage createBytesMessage() {
        return new PgaqBytesMessage();
    }

    /** Makes a map message. */
    public PgaqMapMessage createMapMessage() {
        return new PgaqMapMessage();
    }

    /** Makes a stream message. */
    public PgaqStreamMessage createStreamMessage() {
        return new PgaqStreamMessage();
    }

    /** Makes an object message. */
    public PgaqObjectMessage createObjectMessage() {
        return new PgaqObjectMessage(allowed);
    }

    // From and to the database

    /**
     * Makes the message that a client receives. Does not fail because of its contents: an invalid body raises
     * MessageFormatException when the client reads it.
     *
     * @param delivery what the server delivered
     * @param source the destination of the consumer, for messages that do not tell theirs
     * @param acknowledger what {@link Message#acknowledge()} calls; null: nothing
     */
    public PgaqMessage toClient(Delivery delivery, Destination source, Acknowledger acknowledger) throws JMSException {
        Body body = delivery.body();
        PgaqMessage message = ofKind(body.type());
        Map<String, Object> headers = object(body.headers());
        Map<String, Object> properties = object(body.properties());
        readHeaders(message, withPlainHeaders(headers, properties), delivery, source);
        Map<String, Object> types = object(body.propertyTypes());
        properties.forEach((name, json) -> message.properties().put(name, Typed.readProperty(json, types.get(name))));
        message.properties().remove(PropertyNames.DELIVERY_COUNT);
        message.properties().keySet().removeAll(PlainBodies.HEADERS.keySet());
        message.load(body.text(), body.bytes());
        loadContent(message, headers);
        message.setAcknowledger(acknowledger);
        message.setReadOnly();
        return message;
    }

    /** Headers that a message without {@code aq.jms_message} has among its properties, by their names there. */
    private static Map<String, Object> withPlainHeaders(Map<String, Object> headers, Map<String, Object> properties) {
        Map<String, Object> all = headers;
        for (Map.Entry<String, String> header : PlainBodies.HEADERS.entrySet()) {
            Object value = properties.get(header.getKey());
            if (value != null && !all.containsKey(header.getValue())) {
                all = new HashMap<>(all);
                all.put(header.getValue(), value);
            }
        }
        return all;
    }

    private static void loadContent(PgaqMessage message, Map<String, Object> headers) {
        long length = number(headers, CONTENT_LENGTH, 0);
        if (length > 0) {
            message.loadContent(length);
        }
    }

    private PgaqMessage ofKind(String kind) {
        return switch (kind == null ? "" : kind) {
            case "text" -> createTextMessage();
            case "bytes" -> createBytesMessage();
            case "map" -> createMapMessage();
            case "stream" -> createStreamMessage();
            case "object" -> createObjectMessage();
            default -> createMessage();
        };
    }

    private static Map<String, Object> object(String json) {
        try {
            return json == null ? Map.of() : Typed.readObject(json);
        } catch (IllegalArgumentException notAnObject) {
            return Map.of();
        }
    }

    private void readHeaders(PgaqMessage message, Map<String, Object> headers, Delivery delivery, Destination source) {
        String id = text(headers, "message_id");
        message.setJMSMessageID(id == null ? "ID:" + delivery.msgid() : id);
        message.setJMSTimestamp(number(headers, "timestamp", delivery.enqueueTime()));
        message.setJMSCorrelationID(text(headers, "correlation_id"));
        message.setJMSType(text(headers, "type"));
        message.setJMSReplyTo(destination(headers, "reply_to"));
        Destination destination = destination(headers, "destination");
        message.setJMSDestination(destination == null ? source : destination);
        boolean persistent = number(headers, "delivery_mode", DeliveryMode.PERSISTENT) != DeliveryMode.NON_PERSISTENT;
        message.setJMSDeliveryMode(persistent ? DeliveryMode.PERSISTENT : DeliveryMode.NON_PERSISTENT);
        message.setConnectionId(text(headers, "connection"));
        message.setJMSExpiration(number(headers, "expiration", delivery.expireTime()));
        // the server's time is that of the retry if the provider has sent the message, and of the delay if SQL has
        boolean sent = destination != null || delivery.readyTime() == 0;
        long ready = sent ? message.getJMSTimestamp() : delivery.readyTime();
        message.setJMSDeliveryTime(number(headers, "delivery_time", ready));
        message.setJMSPriority(9 - Math.min(Math.max(delivery.priority(), 0), 9));
        message.setDeliveryCount(delivery.attempts() + 1);
    }

    private Destination destination(Map<String, Object> headers, String name) {
        String value = text(headers, name);
        return value == null ? null : destinations.resolve(value);
    }

    private static String text(Map<String, Object> headers, String name) {
        Object value = Typed.plain(headers.get(name));
        return value == null ? null : value.toString();
    }

    private static long number(Map<String, Object> headers, String name, long otherwise) {
        return Typed.plain(headers.get(name)) instanceof Number n ? n.longValue() : otherwise;
    }

    /**
     * Makes what is stored of a message, whose headers the producer has set. The message itself does not change.
     *
     * @throws MessageFormatException if headers or properties contain characters that PostgreSQL cannot store
     * @throws InvalidDestinationException if {@code JMSReplyTo} is neither a queue nor a topic
     */
    public Body toBody(PgaqMessage message) throws JMSException {
        Headers headers = new Headers();
        headers.add("message_id", message.getJMSMessageID());
        headers.add("timestamp", message.getJMSTimestamp());
        headers.add("correlation_id", message.getJMSCorrelationID());
        headers.add("type", message.getJMSType());
        headers.add("reply_to", nameOf(message.getJMSReplyTo()));
        headers.add("destination", nameOf(message.getJMSDestination()));
        if (message.getJMSDeliveryMode() != DeliveryMode.PERSISTENT) {
            headers.add("delivery_mode", message.getJMSDeliveryMode());
        }
        headers.add("connection", message.getConnectionId());
        if (message.getJMSExpiration() != 0) {
            headers.add("expiration", message.getJMSExpiration());
        }
        if (message.getJMSDeliveryTime() != 0 && message.getJMSDeliveryTime() != message.getJMSTimestamp()) {
            headers.add("delivery_time", message.getJMSDeliveryTime());
        }
        Content content = message.content();
        if (content != null) {
            headers.add(CONTENT_LENGTH, message.contentLength());
        }
        StringBuilder properties = new StringBuilder();
        StringBuilder types = new StringBuilder();
        for (Map.Entry<String, Object> property : message.properties().entrySet()) {
            String name = property.getKey();
            if (!name.equals(PropertyNames.DELIVERY_COUNT)) {
                checkStorable("property \"" + name + "\"", property.getValue());
                member(properties, name);
                Typed.property(properties, property.getValue());
                String type = Typed.propertyType(property.getValue());
                if (type != null) {
                    member(types, name);
                    Json.string(types, type);
                }
            }
        }
        return new Body(
                message.kind(),
                headers.end(),
                end(properties),
                end(types),
                message.storedText(),
                message.storedBytes(),
                content);
    }

    /**
     * Makes what is sent of a message to a queue whose payload type is text, jsonb or bytea.
     *
     * @param correlated whether the server's property {@code correlation} has the correlation ID
     * @throws MessageFormatException if the message is of another kind, or its body not a value of the type
     * @throws InvalidDestinationException if {@code JMSReplyTo} is neither a queue nor a topic
     */
    public Body toPlainBody(PgaqMessage message, String payloadType, boolean correlated) throws JMSException {
        return PlainBodies.of(message, payloadType, correlated);
    }

    /** Builds the JSON object of the headers. */
    static final class Headers {
        private final StringBuilder out = new StringBuilder();

        void add(String name, String value) throws MessageFormatException {
            if (value != null) {
                checkStorable("header " + name, value);
                member(out, name);
                Json.string(out, value);
            }
        }

        void add(String name, long value) {
            member(out, name);
            out.append(value);
        }

        void addProperty(String name, Object value) throws MessageFormatException {
            checkStorable("property \"" + name + "\"", value);
            member(out, name);
            Typed.property(out, value);
        }

        String end() {
            return out.length() == 0 ? "{}" : out.append('}').toString();
        }
    }

    static void member(StringBuilder out, String name) {
        out.append(out.length() == 0 ? "{" : ", ");
        Json.string(out, name);
        out.append(": ");
    }

    private static String end(StringBuilder out) {
        return out.length() == 0 ? null : out.append('}').toString();
    }

    static void checkStorable(String where, Object value) throws MessageFormatException {
        if (value instanceof String s && !Typed.isStorable(s)) {
            throw new MessageFormatException(where + " contains U+0000 or half of a surrogate pair, which only the body"
                    + " of a message can contain");
        }
    }

    /**
     * The form of a destination in the database.
     *
     * @return {@code queue:NAME}, {@code topic:NAME}, {@code temporary-queue:NAME} or {@code temporary-topic:NAME};
     *     null for null
     */
    public static String nameOf(Destination destination) throws JMSException {
        if (destination == null) {
            return null;
        }
        if (destination instanceof PgaqDestination own) {
            return own.address();
        }
        if (destination instanceof Queue queue) {
            return (queue instanceof TemporaryQueue ? "temporary-queue:" : "queue:") + queue.getQueueName();
        }
        if (destination instanceof Topic topic) {
            return (topic instanceof TemporaryTopic ? "temporary-topic:" : "topic:") + topic.getTopicName();
        }
        throw new InvalidDestinationException(
                "a destination of class " + destination.getClass().getName() + " is neither a queue nor a topic");
    }

    // Messages of other providers

    /** The message itself if it is one of this provider, otherwise a copy that can be sent. */
    public PgaqMessage own(Message message) throws JMSException {
        return message instanceof PgaqMessage own ? own : copyOf(message);
    }

    /**
     * Copies a message of any provider: body, properties, {@code JMSCorrelationID}, {@code JMSReplyTo} and
     * {@code JMSType}. Properties that this provider does not support are left out. A bytes or stream message is reset.
     */
    public PgaqMessage copyOf(Message message) throws JMSException {
        PgaqMessage copy;
        if (message instanceof TextMessage text) {
            PgaqTextMessage result = createTextMessage();
            result.setText(text.getText());
            copy = result;
        } else if (message instanceof BytesMessage bytes) {
            copy = copyBytes(bytes);
        } else if (message instanceof MapMessage map) {
            PgaqMapMessage result = createMapMessage();
            for (Object name : Collections.list((java.util.Enumeration<?>) map.getMapNames())) {
                result.setObject((String) name, map.getObject((String) name));
            }
            copy = result;
        } else if (message instanceof StreamMessage stream) {
            copy = copyStream(stream);
        } else if (message instanceof ObjectMessage object) {
            PgaqObjectMessage result = createObjectMessage();
            result.setObject(object.getObject());
            copy = result;
        } else {
            copy = createMessage();
        }
        copy.setJMSCorrelationID(message.getJMSCorrelationID());
        copy.setJMSReplyTo(message.getJMSReplyTo());
        copy.setJMSType(message.getJMSType());
        List<?> names = Collections.list((java.util.Enumeration<?>) message.getPropertyNames());
        for (Object each : names) {
            String name = (String) each;
            Object value = message.getObjectProperty(name);
            if (PropertyNames.isValid(name) && Conversions.isPropertyValue(value)) {
                copy.properties().put(name, value);
            }
        }
        return copy;
    }

    private PgaqMessage copyBytes(BytesMessage message) throws JMSException {
        PgaqBytesMessage copy = createBytesMessage();
        message.reset();
        byte[] buffer = new byte[(int) Math.max(1, Math.min(message.getBodyLength(), 1 << 16))];
        for (int count = message.readBytes(buffer); count > 0; count = message.readBytes(buffer)) {
            copy.writeBytes(buffer, 0, count);
        }
        message.reset();
        return copy;
    }

    private PgaqMessage copyStream(StreamMessage message) throws JMSException {
        PgaqStreamMessage copy = createStreamMessage();
        message.reset();
        try {
            while (true) {
                copy.writeObject(message.readObject());
            }
        } catch (MessageEOFException end) {
            message.reset();
            return copy;
        }
    }

    /** Sets the headers of a foreign message as sending its copy has set them (specification 3.4.11). */
    public static void copySendHeaders(PgaqMessage sent, Message foreign) throws JMSException {
        foreign.setJMSDestination(sent.getJMSDestination());
        foreign.setJMSDeliveryMode(sent.getJMSDeliveryMode());
        foreign.setJMSExpiration(sent.getJMSExpiration());
        foreign.setJMSDeliveryTime(sent.getJMSDeliveryTime());
        foreign.setJMSPriority(sent.getJMSPriority());
        foreign.setJMSMessageID(sent.getJMSMessageID());
        foreign.setJMSTimestamp(sent.getJMSTimestamp());
    }
}
