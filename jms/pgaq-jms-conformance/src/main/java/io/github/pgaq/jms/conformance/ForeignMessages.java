package io.github.pgaq.jms.conformance;

import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageEOFException;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Messages whose implementation is not the provider's: a header field is what its setter was given, and the bodies are
 * a text, an object, a map, a list of values, or bytes.
 */
final class ForeignMessages implements InvocationHandler {
    private final Map<String, Object> headers = new LinkedHashMap<>();
    private final Map<String, Object> properties = new LinkedHashMap<>();
    private final Map<String, Object> map = new LinkedHashMap<>();
    private final List<Object> stream = new ArrayList<>();
    private Object body;
    private int position;

    private ForeignMessages() {}

    static <M extends Message> M create(Class<M> type) {
        return type.cast(Proxy.newProxyInstance(type.getClassLoader(), new Class<?>[] {type}, new ForeignMessages()));
    }

    @Override
    public Object invoke(Object proxy, Method method, Object[] args) throws Throwable {
        String name = method.getName();
        try {
            return answer(proxy, method, name, args);
        } catch (InvocationTargetException e) {
            throw e.getCause();
        }
    }

    private Object answer(Object proxy, Method method, String name, Object[] args) throws Throwable {
        if (name.equals("toString")) {
            return "foreign message";
        } else if (name.equals("hashCode")) {
            return System.identityHashCode(proxy);
        } else if (name.equals("equals")) {
            return proxy == args[0];
        } else if (name.startsWith("setJMS")) {
            headers.put(name.substring(3), args[0]);
            return null;
        } else if (name.startsWith("getJMS")) {
            return orZero(headers.get(name.substring(3)), method.getReturnType());
        } else if (name.endsWith("Property")) {
            return property(name, method, args);
        } else if (name.equals("getPropertyNames")) {
            return Collections.enumeration(new ArrayList<>(properties.keySet()));
        } else if (name.equals("propertyExists")) {
            return properties.containsKey(args[0]);
        } else if (name.equals("reset")) {
            position = 0;
            return null;
        } else if (name.startsWith("write")) {
            stream.add(args[0]);
            return null;
        } else if (name.equals("readBytes")) {
            return readBytes(args);
        } else if (name.startsWith("read")) {
            if (position >= stream.size()) {
                throw new MessageEOFException("end of the foreign message");
            }
            return stream.get(position++);
        } else if (name.equals("getBodyLength")) {
            return (long) ((byte[]) stream.get(0)).length;
        } else if (name.equals("getText") || name.equals("getObject") && args == null) {
            return body;
        } else if (name.equals("setText") || name.equals("setObject") && args.length == 1) {
            body = args[0];
            return null;
        } else if (name.equals("getMapNames")) {
            return Collections.enumeration(new ArrayList<>(map.keySet()));
        } else if (name.startsWith("get") && args != null && args.length == 1) {
            return map.get(args[0]);
        } else if (name.startsWith("set") && args.length == 2) {
            map.put((String) args[0], args[1]);
            return null;
        } else if (name.equals("itemExists")) {
            return map.containsKey(args[0]);
        }
        throw new UnsupportedOperationException("a provider that sends a foreign message needs no " + name);
    }

    private Object property(String name, Method method, Object[] args) throws JMSException {
        if (name.startsWith("set")) {
            properties.put((String) args[0], args[1]);
            return null;
        }
        return orZero(properties.get(args[0]), method.getReturnType());
    }

    /** The one array that a test wrote. */
    private int readBytes(Object[] args) {
        byte[] all = (byte[]) stream.get(0);
        byte[] buffer = (byte[]) args[0];
        int length = args.length > 1 ? (Integer) args[1] : buffer.length;
        int count = Math.min(length, all.length - position);
        if (count <= 0) {
            return -1;
        }
        System.arraycopy(Arrays.copyOfRange(all, position, position + count), 0, buffer, 0, count);
        position += count;
        return count;
    }

    private static Object orZero(Object value, Class<?> type) {
        if (value != null || !type.isPrimitive()) {
            return value;
        }
        if (type == boolean.class) {
            return false;
        }
        return type == long.class ? (Object) 0L : (Object) 0;
    }
}
