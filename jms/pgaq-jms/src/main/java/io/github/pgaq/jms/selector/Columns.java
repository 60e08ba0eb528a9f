package io.github.pgaq.jms.selector;

/** Where a message of the server has its headers and properties, in SQL. */
enum Columns {
    /** In a payload of type {@code aq.jms_message}. */
    OF_MESSAGES(
            "(payload).properties",
            "(payload).property_types",
            "(payload).headers -> 'delivery_mode'::text",
            "(payload).headers ->> 'message_id'::text",
            "(payload).headers ->> 'correlation_id'::text",
            "(payload).headers ->> 'type'::text",
            "coalesce(aq_jms.number((payload).headers, '{\"timestamp\": \"long\"}'::jsonb, 'timestamp'::text), "
                    + "aq_jms.number(enqueue_time))"),

    /** In the properties of the server, beside a payload of another type. */
    OF_OTHERS(
            "properties",
            "NULL::jsonb",
            "properties -> 'JMSDeliveryMode'::text",
            "properties ->> 'JMSMessageID'::text",
            "coalesce(correlation, properties ->> 'JMSCorrelationID'::text)",
            "properties ->> 'JMSType'::text",
            "aq_jms.number(enqueue_time)");

    /** The properties; each is a member of the object. */
    final String properties;
    /** The ones whose JSON value does not show their type. */
    final String propertyTypes;

    final String deliveryMode;
    final String messageId;
    final String correlationId;
    final String type;
    final String timestamp;

    Columns(
            String properties,
            String propertyTypes,
            String deliveryMode,
            String messageId,
            String correlationId,
            String type,
            String timestamp) {
        this.properties = properties;
        this.propertyTypes = propertyTypes;
        this.deliveryMode = deliveryMode;
        this.messageId = messageId;
        this.correlationId = correlationId;
        this.type = type;
        this.timestamp = timestamp;
    }
}
