package io.github.pgaq.spring;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.jayway.jsonpath.JsonPath;
import java.io.InputStream;
import java.lang.reflect.Executable;
import java.lang.reflect.Proxy;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Stream;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * The metadata for native images of GraalVM has the form of its schema (reachability-metadata-schema-v1.0.0.json), as
 * far as it is used here, and names what exists.
 */
class NativeImageTest {

    @ParameterizedTest
    @ValueSource(strings = {"pgaq-jms", "pgaq-spring-boot-starter"})
    void metadataNamesWhatExists(String artifact) throws Exception {
        String path = "/META-INF/native-image/io.github.pgaq/" + artifact + "/reachability-metadata.json";
        Map<String, Object> metadata;
        try (InputStream in = getClass().getResourceAsStream(path)) {
            metadata = JsonPath.parse(in).json();
        }
        assertEquals(Set.of("reflection"), metadata.keySet());
        for (Object entry : (List<?>) metadata.get("reflection")) {
            Map<?, ?> element = assertInstanceOf(Map.class, entry);
            assertTrue(
                    Set.of("condition", "type", "methods", "allPublicMethods").containsAll(element.keySet()),
                    element::toString);
            if (element.get("condition") instanceof Map<?, ?> condition) {
                assertEquals(Set.of("typeReached"), condition.keySet());
                Class.forName((String) condition.get("typeReached"));
            }
            if (element.get("type") instanceof Map<?, ?> type) {
                assertEquals(Set.of("proxy"), type.keySet());
                List<?> names = assertInstanceOf(List.class, type.get("proxy"));
                Class<?>[] interfaces = new Class<?>[names.size()];
                for (int i = 0; i < interfaces.length; i++) {
                    interfaces[i] = Class.forName((String) names.get(i));
                }
                Proxy.newProxyInstance(getClass().getClassLoader(), interfaces, (self, method, arguments) -> null);
            } else {
                checkMethods(Class.forName((String) element.get("type")), element.get("methods"));
            }
        }
    }

    private static void checkMethods(Class<?> type, Object methods) {
        for (Object entry : methods == null ? List.of() : (List<?>) methods) {
            Map<?, ?> method = assertInstanceOf(Map.class, entry);
            assertEquals(Set.of("name", "parameterTypes"), method.keySet());
            Object wanted = method.get("name");
            assertTrue(
                    Stream.<Executable>concat(
                                    Arrays.stream(type.getDeclaredMethods()),
                                    Arrays.stream(type.getDeclaredConstructors()))
                            .anyMatch(found ->
                                    wanted.equals(found.getName().equals(type.getName()) ? "<init>" : found.getName())
                                            && Arrays.stream(found.getParameterTypes())
                                                    .map(Class::getTypeName)
                                                    .toList()
                                                    .equals(method.get("parameterTypes"))),
                    method::toString);
        }
    }
}
