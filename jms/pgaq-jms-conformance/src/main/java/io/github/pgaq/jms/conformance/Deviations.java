package io.github.pgaq.jms.conformance;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import org.junit.jupiter.api.Assertions;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.jupiter.api.extension.InvocationInterceptor;
import org.junit.jupiter.api.extension.ReflectiveInvocationContext;
import org.opentest4j.TestAbortedException;

/**
 * The known deviations of a provider: the resource {@code deviations/NAME.tsv} with a line "Class.method TAB reason"
 * for each test that the provider is known to fail. Such a test is run and reported as skipped, with the reason. A
 * test in the list that passes fails the run, so that the list stays true; a reason that begins with "sometimes: "
 * lets it pass.
 */
final class Deviations implements InvocationInterceptor {
    private static final Map<String, String> KNOWN = read();

    private static Map<String, String> read() {
        Map<String, String> known = new HashMap<>();
        String resource = "/deviations/" + Providers.get().name() + ".tsv";
        try (InputStream in = Deviations.class.getResourceAsStream(resource)) {
            if (in == null) {
                return known;
            }
            BufferedReader lines = new BufferedReader(new InputStreamReader(in, StandardCharsets.UTF_8));
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                if (!line.isBlank() && !line.startsWith("#")) {
                    String[] cells = line.split("\t", 2);
                    known.put(cells[0], cells[1]);
                }
            }
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
        return known;
    }

    @Override
    public void interceptTestMethod(
            Invocation<Void> invocation, ReflectiveInvocationContext<Method> method, ExtensionContext context)
            throws Throwable {
        String test = method.getTargetClass().getSimpleName() + "."
                + method.getExecutable().getName();
        String reason = KNOWN.get(test);
        if (reason == null) {
            invocation.proceed();
            return;
        }
        try {
            invocation.proceed();
        } catch (TestAbortedException e) {
            throw e;
        } catch (Throwable e) {
            throw new TestAbortedException("known deviation: " + reason, e);
        }
        if (!reason.startsWith("sometimes: ")) {
            Assertions.fail(test + " passes: take it out of the list of known deviations");
        }
    }
}
