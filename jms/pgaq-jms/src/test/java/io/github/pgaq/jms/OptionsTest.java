package io.github.pgaq.jms;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.ObjectInputStream;
import java.io.ObjectOutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import javax.naming.NamingException;
import javax.naming.Reference;
import javax.naming.StringRefAddr;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;

/** Options of connection factories, from all the places that they are set at, and what JNDI keeps. */
class OptionsTest {

    private static final String URL = "jdbc:postgresql://h:5433/d";

    @Test
    void aUrlOfABrokerIsRefused() {
        String message = refused(() -> new PgaqConnectionFactory("tcp://app:secret@localhost:61616"))
                .getMessage();
        assertEquals("URL must be a JDBC URL, such as jdbc:postgresql://localhost/shop, not tcp:...", message);
        assertTrue(refused(() -> new PgaqConnectionFactory("localhost"))
                .getMessage()
                .endsWith("not localhost"));
    }

    private static IllegalArgumentException refused(org.junit.jupiter.api.function.Executable call) {
        return assertThrows(IllegalArgumentException.class, call);
    }

    @ParameterizedTest
    @EnumSource(PgaqOption.class)
    void theDefaultsAreValid(PgaqOption option) {
        PgaqOptions options = PgaqOptions.DEFAULTS.with(option, option.initial());
        assertEquals(PgaqOptions.DEFAULTS.get(option), options.get(option));
        assertEquals(
                option.initial(),
                PgaqOptions.DEFAULTS.with(option.key(), option.initial()).get(option));
    }

    @ParameterizedTest
    @EnumSource(PgaqOption.class)
    void theManualHasThem(PgaqOption option) throws IOException {
        String row = Files.readString(Path.of("../../docs/jms.md"))
                .lines()
                .filter(line -> line.startsWith("| `" + option.key() + "` |"))
                .findFirst()
                .orElse("no row");
        assertEquals(option.initial(), row.split("\\|")[3].trim(), row);
    }

    @Test
    void theUrlSetsOptionsAndPassesOnTheRest() {
        PgaqConnectionFactory factory = new PgaqConnectionFactory(
                URL + "?user=u&pgaq.prefetch=7&ssl=true&pgaq.allowedClasses=a.b.%2A%2Cx.Y&pgaq.ackMode=group");
        assertEquals(URL + "?ssl=true", factory.getUrl(), "the user is a property");
        assertEquals(7, factory.getOptions().prefetch());
        assertEquals("a.b.*,x.Y", factory.getOptions().get(PgaqOption.ALLOWED_CLASSES));
        assertEquals(true, factory.getOptions().groupAcknowledgements());
        assertEquals(URL, new PgaqConnectionFactory(URL + "?pgaq.prefetch=7").getUrl());
        assertEquals(URL, new PgaqConnectionFactory(URL + "?").getUrl());
    }

    @Test
    void propertiesAndSettersSetOptions() {
        Properties properties = new Properties();
        properties.setProperty("user", "u");
        properties.setProperty("pgaq.lease", "5000");
        PgaqConnectionFactory factory = new PgaqConnectionFactory(URL, properties);
        assertEquals(Duration.ofSeconds(5), factory.getOptions().lease());
        factory.setPrefetch(0);
        factory.setPrefetchBytes(9);
        factory.setLease(Duration.ofMinutes(1));
        factory.setClientId("c");
        factory.setAllowedClasses("a.*");
        factory.setOptions(Map.of("reconnectAttempts", "-1", "pgaq.reconnectDelay", "50"));
        PgaqOptions options = factory.getOptions();
        assertEquals(0, options.prefetch());
        assertEquals(9, options.prefetchBytes());
        assertEquals(Duration.ofMinutes(1), options.lease());
        assertEquals("c", options.clientId());
        assertEquals("a.*", options.get(PgaqOption.ALLOWED_CLASSES));
        assertEquals(-1, options.reconnectAttempts());
        assertEquals(Duration.ofMillis(50), options.reconnectDelay());
        factory.setClientId(null);
        assertNull(factory.getOptions().clientId());
    }

    @ParameterizedTest
    @CsvSource({
        "prefech, prefetch",
        "Prefetch, prefetch",
        "PREFETCH, prefetch",
        "ackmode, ackMode",
        "leas, lease",
        "clientID, clientId",
        "allowedClass, allowedClasses"
    })
    void anUnknownOptionIsAnErrorWithTheNearestName(String wrong, String nearest) {
        String message = "option \"" + wrong + "\" does not exist; did you mean \"" + nearest + "\"?";
        assertEquals(
                message,
                refused(() -> new PgaqConnectionFactory(URL + "?pgaq." + wrong + "=1"))
                        .getMessage());
        assertEquals(
                message, refused(() -> PgaqOptions.DEFAULTS.with(wrong, "1")).getMessage());
    }

    @Test
    void anUnknownOptionThatIsNearNoneIsAnErrorWithAllNames() {
        assertEquals(
                "option \"xyz\" does not exist; there are "
                        + String.join(
                                ", ",
                                java.util.Arrays.stream(PgaqOption.values())
                                        .map(PgaqOption::key)
                                        .toList()),
                refused(() -> PgaqOptions.DEFAULTS.with("xyz", "1")).getMessage());
    }

    @Test
    void anOptionWithoutPrefixIsNotPassedOnSilently() {
        String message = "option \"prefetch\" must be written \"pgaq.prefetch\" here";
        assertEquals(
                message,
                refused(() -> new PgaqConnectionFactory(URL + "?prefetch=1")).getMessage());
        Properties properties = new Properties();
        properties.setProperty("prefetch", "1");
        assertEquals(
                message,
                refused(() -> new PgaqConnectionFactory(URL, properties)).getMessage());
    }

    @ParameterizedTest
    @CsvSource({
        "prefetch, -1, a number from 0 to 10000",
        "prefetch, 10001, a number from 0 to 10000",
        "prefetch, x, a number from 0 to 10000",
        "prefetch, '', a number from 0 to 10000",
        "lease, 999, a number from 1000 to 2147483647",
        "ackMode, all, each or group",
        "ackMode, Each, each or group",
        "ackInterval, 0, a number from 1 to 60000",
        "reconnectAttempts, -2, a number from -1 to 2147483647",
        "redeliveryDelay, 1.5, a number from -1 to 2147483647"
    })
    void aValueThatIsNotAllowedIsAnError(String key, String value, String allowed) {
        assertEquals(
                "option \"" + key + "\" must be " + allowed + ", not \"" + value + "\"",
                refused(() -> new PgaqConnectionFactory(URL + "?pgaq." + key + "=" + value))
                        .getMessage());
    }

    @Test
    void factoriesComeBackFromJndi() throws Exception {
        PgaqConnectionFactory factory = new PgaqConnectionFactory(URL + "?ssl=true&pgaq.prefetch=7");
        factory.setUser("u");
        factory.setPassword("p");
        Reference reference = factory.getReference();
        PgaqConnectionFactory back =
                (PgaqConnectionFactory) new PgaqObjectFactory().getObjectInstance(reference, null, null, null);
        assertEquals(factory.getUrl(), back.getUrl());
        assertEquals(factory.getOptions(), back.getOptions());
        assertEquals(reference, back.getReference());
        assertThrows(NamingException.class, () -> new PgaqConnectionFactory().getReference());
    }

    @ParameterizedTest
    @CsvSource({
        "jakarta.jms.ConnectionFactory, io.github.pgaq.jms.PgaqConnectionFactory",
        "jakarta.jms.QueueConnectionFactory, io.github.pgaq.jms.PgaqConnectionFactory",
        "jakarta.jms.XAConnectionFactory, io.github.pgaq.jms.PgaqXAConnectionFactory"
    })
    void aResourceOfAServerCanNameTheInterface(String type, Class<?> made) throws Exception {
        Reference resource = new Reference(type, PgaqObjectFactory.class.getName(), null);
        for (String attribute : List.of("scope", "auth", "singleton", "factory", "description")) {
            resource.add(new StringRefAddr(attribute, "of the server"));
        }
        Map.of("url", URL, "user", "u", "password", "p", "pgaq.prefetch", "7")
                .forEach((name, value) -> resource.add(new StringRefAddr(name, value)));
        PgaqConnectionFactory factory =
                (PgaqConnectionFactory) new PgaqObjectFactory().getObjectInstance(resource, null, null, null);
        assertEquals(made, factory.getClass());
        assertEquals(7, factory.getOptions().prefetch());
        assertEquals(4, factory.getReference().size());
    }

    @Test
    void factoriesForDistributedTransactionsComeBackAsSuch() throws Exception {
        PgaqXAConnectionFactory factory = new PgaqXAConnectionFactory(URL + "?ssl=true&pgaq.prefetch=7");
        Object back = new PgaqObjectFactory().getObjectInstance(factory.getReference(), null, null, null);
        assertEquals(PgaqXAConnectionFactory.class, back.getClass());
        assertEquals(factory.getReference(), ((PgaqXAConnectionFactory) back).getReference());
        assertEquals(factory.getReference(), copy(factory).getReference());
    }

    /** A program can look a factory up for each message that it sends. */
    @Test
    void factoriesThatAreLookedUpKeepOneOrder() throws Exception {
        PgaqConnectionFactory factory = new PgaqConnectionFactory(URL + "?pgaq.prefetch=7");
        assertEquals(lookedUp(factory).origin(), lookedUp(factory).origin());
        assertNotEquals(
                lookedUp(factory).origin(),
                lookedUp(new PgaqConnectionFactory(URL + "?pgaq.prefetch=8")).origin());
        assertNotEquals(factory.origin(), new PgaqConnectionFactory(URL + "?pgaq.prefetch=7").origin());
    }

    private static PgaqConnectionFactory lookedUp(PgaqConnectionFactory factory) throws Exception {
        return (PgaqConnectionFactory)
                new PgaqObjectFactory().getObjectInstance(factory.getReference(), null, null, null);
    }

    @Test
    void destinationsComeBackFromJndi() throws Exception {
        PgaqObjectFactory objects = new PgaqObjectFactory();
        PgaqQueue queue = new PgaqQueue("s.q");
        PgaqTopic topic = new PgaqTopic("s.q");
        assertEquals(queue, objects.getObjectInstance(queue.getReference(), null, null, null));
        assertEquals(topic, objects.getObjectInstance(topic.getReference(), null, null, null));
        assertNotEquals((Object) queue, topic);
        Reference resource = new Reference("jakarta.jms.Queue", new StringRefAddr("physicalName", "s.q"));
        assertEquals(queue, objects.getObjectInstance(resource, null, null, null));
        assertNull(objects.getObjectInstance(new Reference("java.lang.String"), null, null, null));
        assertNull(objects.getObjectInstance("s.q", null, null, null));
    }

    @Test
    void factoriesAndDestinationsAreSerializable() throws Exception {
        PgaqConnectionFactory factory = new PgaqConnectionFactory(URL + "?ssl=true&pgaq.prefetch=7");
        factory.setUser("u");
        assertEquals(factory.getReference(), copy(factory).getReference());
        assertEquals(new PgaqQueue("q"), copy(new PgaqQueue("q")));
        assertEquals(new PgaqTopic("q"), copy(new PgaqTopic("q")));
    }

    @SuppressWarnings("unchecked")
    private static <T> T copy(T object) throws Exception {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        try (ObjectOutputStream out = new ObjectOutputStream(bytes)) {
            out.writeObject(object);
        }
        try (ObjectInputStream in = new ObjectInputStream(new ByteArrayInputStream(bytes.toByteArray()))) {
            return (T) in.readObject();
        }
    }
}
