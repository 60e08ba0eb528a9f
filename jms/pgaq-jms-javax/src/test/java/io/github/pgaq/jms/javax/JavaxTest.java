package io.github.pgaq.jms.javax;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotNull;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;

import io.github.pgaq.jms.PgaqConnectionFactory;
import io.github.pgaq.jms.ServerTest;
import javax.jms.BytesMessage;
import javax.jms.Connection;
import javax.jms.ConnectionFactory;
import javax.jms.InvalidSelectorException;
import javax.jms.JMSContext;
import javax.jms.MapMessage;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.ObjectMessage;
import javax.jms.Queue;
import javax.jms.Session;
import javax.jms.StreamMessage;
import javax.jms.TextMessage;
import javax.jms.Topic;
import org.junit.jupiter.api.Test;

/** The renamed classes serve a program that is written for javax.jms. */
class JavaxTest extends ServerTest {

    private static final long PATIENCE_MS = 20_000;

    private final ConnectionFactory factory = new PgaqConnectionFactory(url());

    @Test
    void contextsSendAndReceive() throws Exception {
        String queue = newQueue();
        try (JMSContext context = factory.createContext()) {
            context.createProducer().setProperty("color", "red").send(context.createQueue(queue), "a text");
            Message got = context.createConsumer(context.createQueue(queue)).receive(PATIENCE_MS);
            assertEquals("red", got.getStringProperty("color"));
            assertEquals("a text", got.getBody(String.class));
        }
    }

    @Test
    void eachKindOfMessageIsReceived() throws Exception {
        try (Connection connection = factory.createConnection()) {
            connection.start();
            Session session = connection.createSession(true, Session.SESSION_TRANSACTED);
            Queue queue = session.createQueue(newQueue());
            BytesMessage bytes = session.createBytesMessage();
            bytes.writeInt(5);
            MapMessage map = session.createMapMessage();
            map.setLong("n", 6);
            StreamMessage stream = session.createStreamMessage();
            stream.writeDouble(7.5);
            ObjectMessage object = session.createObjectMessage("an object");
            for (Message message : new Message[] {session.createTextMessage("t"), bytes, map, stream, object}) {
                session.createProducer(queue).send(message);
            }
            session.commit();
            MessageConsumer consumer = session.createConsumer(queue);
            assertEquals("t", ((TextMessage) consumer.receive(PATIENCE_MS)).getText());
            assertEquals(5, ((BytesMessage) consumer.receive(PATIENCE_MS)).readInt());
            assertEquals(6, ((MapMessage) consumer.receive(PATIENCE_MS)).getLong("n"));
            assertEquals(7.5, ((StreamMessage) consumer.receive(PATIENCE_MS)).readDouble());
            assertEquals("an object", ((ObjectMessage) consumer.receive(PATIENCE_MS)).getObject());
            session.commit();
            assertNull(consumer.receiveNoWait());
        }
    }

    @Test
    void subscribersReceive() throws Exception {
        try (Connection connection = factory.createConnection()) {
            connection.start();
            Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
            Topic topic = session.createTopic(newTopic());
            MessageConsumer consumer = session.createSharedDurableConsumer(topic, newName("durable"));
            session.createProducer(topic).send(session.createTextMessage("news"));
            assertNotNull(consumer.receive(PATIENCE_MS));
            assertThrows(InvalidSelectorException.class, () -> session.createConsumer(topic, "color = "));
        }
    }
}
