package io.github.pgaq.jms.message;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.github.pgaq.jms.store.Body;
import jakarta.jms.JMSException;
import jakarta.jms.MessageFormatException;
import java.io.Serializable;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.math.BigDecimal;
import java.time.Instant;
import java.time.ZonedDateTime;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.Calendar;
import java.util.Collections;
import java.util.Date;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import java.util.UUID;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

class ObjectMessageTest {

    /** A class of the application. */
    static final class Order implements Serializable {
        private static final long serialVersionUID = 1;
        static int read;

        final ArrayList<Item> items = new ArrayList<>();

        private void readObject(java.io.ObjectInputStream in) throws java.io.IOException, ClassNotFoundException {
            read++;
            in.defaultReadObject();
        }
    }

    /** A class that only lies inside another. */
    static final class Item implements Serializable {
        private static final long serialVersionUID = 1;
    }

    /** A handler of proxies that does nothing. */
    static final class Handler implements InvocationHandler, Serializable {
        private static final long serialVersionUID = 1;

        @Override
        public Object invoke(Object proxy, Method method, Object[] arguments) {
            return null;
        }
    }

    private static PgaqObjectMessage message(Serializable object) throws JMSException {
        PgaqObjectMessage message = Samples.MESSAGES.createObjectMessage();
        message.setObject(object);
        return message;
    }

    private static PgaqObjectMessage received(Serializable object, String allowed) throws JMSException {
        Body body = Samples.MESSAGES.toBody(message(object));
        Messages receiver = new Messages(AllowedClasses.parse(allowed), Samples::destination);
        return (PgaqObjectMessage) receiver.toClient(Samples.delivery(body), null, null);
    }

    static Stream<Serializable> values() {
        ArrayList<Object> list = new ArrayList<>(List.of(1, "a", 2L, 'c', true, (byte) 1, (short) 2, 1f, 2d));
        list.add(null);
        return Stream.of(
                "a",
                1,
                list,
                new HashMap<>(Map.of("a", List.of(1))),
                new TreeMap<>(Map.of(1, 2)),
                new HashSet<>(List.of(1)),
                (Serializable) List.of(1, 2, 3),
                (Serializable) Map.of(1, 2),
                (Serializable) Arrays.asList(1, 2),
                (Serializable) Collections.unmodifiableList(new ArrayList<>(list)),
                (Serializable) Collections.emptyMap(),
                new Date(5),
                UUID.randomUUID(),
                Locale.GERMANY,
                BitSet.valueOf(new long[] {5}),
                Calendar.getInstance(),
                new BigDecimal("1.50"),
                Instant.now(),
                ZonedDateTime.now(),
                new java.sql.Timestamp(5),
                java.time.DayOfWeek.FRIDAY);
    }

    @ParameterizedTest
    @MethodSource("values")
    void valuesOfJavaAreAlwaysRead(Serializable value) throws JMSException {
        assertEquals(value, received(value, null).getObject());
        assertEquals(value, received(value, "").getBody(Object.class));
    }

    @Test
    void arraysAreReadIfTheirElementsAre() throws JMSException {
        assertEquals(3, ((int[][]) received(new int[][] {{1}, {2}, {3}}, "").getObject()).length);
        assertEquals("a", ((String[][]) received(new String[][] {{"a"}}, "").getObject())[0][0]);
        assertThrows(
                MessageFormatException.class, () -> received(new Item[1][1], "").getObject());
        assertEquals(
                1, ((Item[][]) received(new Item[1][1], Item.class.getName()).getObject()).length);
    }

    @Test
    void otherClassesAreNamedWithTheOption() throws JMSException {
        PgaqObjectMessage message = received(new Order(), "java.lang.*");
        Order.read = 0;
        JMSException e = assertThrows(MessageFormatException.class, message::getObject);
        assertEquals(
                "objects of class " + Order.class.getName() + " are not read from messages; add the class to the"
                        + " option \"allowedClasses\" of the connection factory if you trust the senders",
                e.getMessage());
        assertThrows(MessageFormatException.class, () -> message.getBody(Serializable.class));
        assertFalse(message.isBodyAssignableTo(Serializable.class));
        assertEquals(0, Order.read, "nothing of the class ran");
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "*",
                "io.github.pgaq.jms.message.ObjectMessageTest",
                "io.github.pgaq.jms.message.*",
                "io.github.*",
                "x.Y, io.github.pgaq.jms.message.ObjectMessageTest$Order ,"
                        + "io.github.pgaq.jms.message.ObjectMessageTest$Item"
            })
    void allowedClassesAreRead(String allowed) throws JMSException {
        Order order = new Order();
        order.items.add(new Item());
        assertEquals(1, ((Order) received(order, allowed).getObject()).items.size());
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "",
                "io.github",
                "io.github.pgaq.jms.messages.*",
                "java.*",
                "x.*",
                "io.github.pgaq.jms.message.ObjectMessageTest$Order",
                "io.github.pgaq.jms.message.ObjectMessage"
            })
    void classesInsideMustBeAllowedToo(String allowed) throws JMSException {
        Order order = new Order();
        order.items.add(new Item());
        assertThrows(MessageFormatException.class, received(order, allowed)::getObject);
        ArrayList<Object> list = new ArrayList<>(List.of(new Item()));
        assertThrows(MessageFormatException.class, received(list, allowed)::getObject);
    }

    @Test
    void enumerationsAndProxiesMustBeAllowed() throws JMSException {
        assertThrows(MessageFormatException.class, received(TimeUnit.DAYS, "")::getObject);
        assertEquals(
                TimeUnit.DAYS, received(TimeUnit.DAYS, "java.util.concurrent.*").getObject());
        Serializable proxy = (Serializable) Proxy.newProxyInstance(
                getClass().getClassLoader(), new Class<?>[] {Comparable.class, Serializable.class}, new Handler());
        assertThrows(MessageFormatException.class, received(proxy, "")::getObject);
        assertThrows(MessageFormatException.class, received(proxy, Handler.class.getName())::getObject);
        assertTrue(Proxy.isProxyClass(received(proxy, "*").getObject().getClass()));
    }

    @Test
    void theMessageHoldsTheObjectAsItWas() throws JMSException {
        ArrayList<Integer> list = new ArrayList<>(List.of(1));
        PgaqObjectMessage message = message(list);
        list.add(2);
        assertEquals(List.of(1), message.getObject());
        message.setObject(null);
        assertNull(message.getObject());
        assertNull(received(null, "").getObject());
    }

    @Test
    void theSenderMayReadWhatItHasSet() throws JMSException {
        assertEquals(Order.class, message(new Order()).getObject().getClass());
        PgaqObjectMessage received = received(new Order(), "");
        received.clearBody();
        received.setObject(new Order());
        assertEquals(Order.class, received.getObject().getClass());
    }

    @Test
    void objectsThatCannotBeSerializedAreRefused() {
        ArrayList<Object> list = new ArrayList<>();
        list.add(new Object());
        JMSException e = assertThrows(MessageFormatException.class, () -> message(list));
        assertTrue(e.getMessage().contains("java.io.NotSerializableException: java.lang.Object"), e.getMessage());
        assertTrue(e.getCause() instanceof java.io.NotSerializableException);
    }

    @Test
    void invalidBytesAreAnError() throws JMSException {
        for (byte[] bytes : new byte[][] {
            {}, {1, 2, 3}, {(byte) 0xac, (byte) 0xed, 0, 5}, {(byte) 0xac, (byte) 0xed, 0, 5, 's', 'r', 0, 1}
        }) {
            PgaqObjectMessage message = (PgaqObjectMessage) Samples.MESSAGES.toClient(
                    Samples.delivery(new Body("object", "{}", null, null, null, bytes)), null, null);
            assertThrows(MessageFormatException.class, message::getObject);
            assertFalse(message.isBodyAssignableTo(String.class));
        }
    }

    @Test
    void aSmallMessageCannotClaimMuchMemory() throws JMSException {
        Body body = Samples.MESSAGES.toBody(message(new long[] {1}));
        byte[] bytes = body.bytes();
        int length = bytes.length - 12;
        bytes[length] = 0x7f;
        PgaqObjectMessage message = (PgaqObjectMessage) Samples.MESSAGES.toClient(
                Samples.delivery(new Body("object", "{}", null, null, null, bytes)), null, null);
        JMSException e = assertThrows(MessageFormatException.class, message::getObject);
        assertTrue(e.getMessage().contains("REJECTED"), e.getMessage());
    }

    /** Sets that have the two of the next level, the innermost first, so that none is read deep inside another. */
    private static ArrayList<Object> sets(int levels) {
        ArrayList<Object> all = new ArrayList<>();
        HashSet<Object> a = new HashSet<>();
        HashSet<Object> b = new HashSet<>();
        all.add(a);
        for (int i = 0; i < levels; i++) {
            HashSet<Object> x = new HashSet<>(List.of("x"));
            HashSet<Object> y = new HashSet<>();
            a.add(x);
            a.add(y);
            b.add(x);
            b.add(y);
            a = x;
            b = y;
            all.add(0, y);
            all.add(0, x);
        }
        return all;
    }

    /** Sets with a list, which is read before its end, where they are. */
    private static Serializable selfHolding() {
        LinkedList<Object> list = new LinkedList<>(Collections.nCopies(4000, null));
        Object[] sets = new Object[2000];
        for (int i = 0; i < sets.length; i++) {
            sets[i] = new HashSet<>(List.of(list));
        }
        list.add(sets);
        return list;
    }

    private static Serializable bomb(String kind) {
        ArrayList<Object> list = new ArrayList<>();
        HashMap<Object, Object> map = new HashMap<>();
        for (int i = 0; i < 60; i++) {
            list = new ArrayList<>(Arrays.asList(list, list));
            map = new HashMap<>(Map.of("a", map, "b", map));
        }
        switch (kind) {
            case "nested sets":
                return (Serializable) sets(60).get(120);
            case "a list of sets":
                return sets(60);
            case "lists":
                return list;
            case "a list that holds itself":
                return selfHolding();
            default:
                return map;
        }
    }

    // not the objects are the parameters: to name a test by its object would take too long
    @ParameterizedTest
    @ValueSource(strings = {"nested sets", "a list of sets", "lists", "maps", "a list that holds itself"})
    @Timeout(60)
    void aSmallMessageCannotClaimMuchTime(String kind) throws JMSException {
        PgaqObjectMessage message = received(bomb(kind), "");
        JMSException e = assertThrows(MessageFormatException.class, message::getObject);
        assertTrue(e.getMessage().contains("collections hold each other too often"), e.getMessage());
    }

    @Test
    void collectionsOfCollectionsAreRead() throws JMSException {
        ArrayList<Object> list = new ArrayList<>();
        HashMap<String, Object> shared = new HashMap<>(Map.of("a", new HashSet<>(List.of(1, 2, 3))));
        for (int i = 0; i < 1000; i++) {
            list.add(new HashMap<>(Map.of("shared", shared, "own", new ArrayList<>(List.of(i)))));
        }
        assertEquals(list, received(list, "").getObject());
        HashSet<Object> deep = new HashSet<>();
        for (int i = 0; i < 100; i++) {
            deep = new HashSet<>(List.of(deep));
        }
        assertEquals(deep, received(deep, "").getObject());
    }
}
