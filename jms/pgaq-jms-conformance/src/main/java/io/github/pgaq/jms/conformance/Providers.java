package io.github.pgaq.jms.conformance;

import java.util.ServiceLoader;

/** Finds and starts the provider under test, once for the whole run. */
final class Providers {
    private static final Provider PROVIDER = find();

    private Providers() {
    }

    static Provider get() {
        return PROVIDER;
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
            found = ServiceLoader.load(Provider.class).findFirst().orElseThrow(
                    () -> new IllegalStateException("no implementation of " + Provider.class + " is on the class path"));
        }
        Provider started = found;
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            try {
                started.close();
            } catch (Exception e) {
                System.err.println("the provider did not stop: " + e);
            }
        }));
        return found;
    }
}
