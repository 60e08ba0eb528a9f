package io.github.pgaq.jms.conformance;

import java.util.List;
import java.util.ServiceLoader;
import java.util.concurrent.CopyOnWriteArrayList;

/** Finds and starts the provider under test, once for the whole run. */
final class Providers {
    private static final List<Runnable> BEFORE_CLOSE = new CopyOnWriteArrayList<>();
    private static final Provider PROVIDER = find();

    private Providers() {}

    static Provider get() {
        return PROVIDER;
    }

    /** Runs the action at the end, before the provider is closed. */
    static void beforeClose(Runnable action) {
        BEFORE_CLOSE.add(action);
    }

    private static Provider find() {
        Provider found;
        String name = System.getProperty("conformance.provider");
        if (name != null && !name.isEmpty()) {
            try {
                found = (Provider) Class.forName(name).getDeclaredConstructor().newInstance();
            } catch (ReflectiveOperationException e) {
                throw new IllegalStateException("cannot create the provider " + name, e);
            }
        } else {
            found = ServiceLoader.load(Provider.class)
                    .findFirst()
                    .orElseThrow(() -> new IllegalStateException(
                            "no implementation of " + Provider.class + " is on the class path"));
        }
        Provider started = found;
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            BEFORE_CLOSE.forEach(Runnable::run);
            try {
                started.close();
            } catch (Exception e) {
                System.err.println("the provider did not stop: " + e);
            }
        }));
        return found;
    }
}
