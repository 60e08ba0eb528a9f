package io.github.pgaq.jms.conformance;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.lang.reflect.Method;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileSystem;
import java.nio.file.FileSystems;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.stream.Stream;
import org.junit.jupiter.api.Assertions;
import org.junit.jupiter.api.Test;

/**
 * Coverage of the suite. {@code sections.tsv} lists the tests of each section, made from the annotations; {@code
 * mvn -Dconformance.write=true -Dtest=CoverageTest test} writes it again. {@code musts.tsv} lists each "must".
 */
class CoverageTest {
    private static final String PACKAGE = CoverageTest.class.getPackageName();
    private static final String LIMIT = "limit: ";
    private static final String OWN = "own: ";

    private static List<String[]> read(String resource) throws IOException {
        List<String[]> rows = new ArrayList<>();
        try (InputStream in = CoverageTest.class.getResourceAsStream("/" + resource)) {
            Assertions.assertNotNull(in, "the resource " + resource + " is missing");
            BufferedReader lines = new BufferedReader(new InputStreamReader(in, StandardCharsets.UTF_8));
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                if (!line.isBlank() && !line.startsWith("#")) {
                    rows.add(line.split("\t", -1));
                }
            }
        }
        return rows;
    }

    /** All test methods, as "Class.method", with their annotations. */
    private static Map<String, Spec> tests() throws Exception {
        Map<String, Spec> tests = new TreeMap<>();
        for (String name : classNames()) {
            Class<?> type = Class.forName(PACKAGE + "." + name, false, CoverageTest.class.getClassLoader());
            if (type == CoverageTest.class) {
                continue;
            }
            for (Class<?> owner = type; owner != null; owner = owner.getSuperclass()) {
                for (Method method : owner.getDeclaredMethods()) {
                    if (method.isAnnotationPresent(Test.class)) {
                        Spec spec = method.getAnnotation(Spec.class);
                        tests.put(name + "." + method.getName(), spec != null ? spec : type.getAnnotation(Spec.class));
                    }
                }
            }
        }
        return tests;
    }

    private static Set<String> classNames() throws Exception {
        String folder = PACKAGE.replace('.', '/');
        URI place = CoverageTest.class.getResource("CoverageTest.class").toURI();
        if (!place.getScheme().equals("jar")) {
            return classNames(Path.of(place).getParent());
        }
        try (FileSystem jar = FileSystems.newFileSystem(place, Map.of())) {
            return classNames(jar.getPath(folder));
        }
    }

    private static Set<String> classNames(Path folder) throws IOException {
        Set<String> names = new TreeSet<>();
        try (Stream<Path> files = Files.list(folder)) {
            files.map(file -> file.getFileName().toString())
                    .filter(file -> file.endsWith("Test.class"))
                    .forEach(file -> names.add(file.substring(0, file.length() - ".class".length())));
        }
        return names;
    }

    @Test
    void everyTestNamesItsSections() throws Exception {
        Set<String> sections = new TreeSet<>();
        for (String[] row : read("titles.tsv")) {
            sections.add(row[0]);
        }
        List<String> wrong = new ArrayList<>();
        tests().forEach((test, spec) -> {
            if (spec == null) {
                wrong.add(test + " names no section");
                return;
            }
            for (String section : spec.value()) {
                if (!section.startsWith("api:") && !sections.contains(section)) {
                    wrong.add(test + " names section " + section + ", which does not exist");
                }
            }
        });
        Assertions.assertEquals(List.of(), wrong, "tests without a section of the specification");
    }

    @Test
    void everyMustHasATestOrALimit() throws Exception {
        Map<String, Spec> tests = tests();
        Set<String> sections = new TreeSet<>();
        for (String[] row : read("titles.tsv")) {
            sections.add(row[0]);
        }
        String limits = limits();
        List<String> wrong = new ArrayList<>();
        for (String[] row : read("musts.tsv")) {
            if (row.length != 3 || row[2].isBlank()) {
                wrong.add(row[0] + ": a row has three columns: section, rule, tests");
            } else if (!sections.contains(row[0])) {
                wrong.add(row[0] + ": there is no such section");
            } else if (row[2].startsWith(LIMIT)) {
                if (!limits.contains(row[2].substring(LIMIT.length()))) {
                    wrong.add(row[0] + ": not among the limits in docs/jms.md: " + row[2]);
                }
            } else if (row[2].startsWith(OWN)) {
                for (String test : row[2].substring(OWN.length()).split(" ")) {
                    if (!providerHas(test)) {
                        wrong.add(row[0] + ": the provider has no test " + test);
                    }
                }
            } else if (!row[2].equals("client") && !row[2].startsWith("n/a: ")) {
                for (String test : row[2].split(" ")) {
                    Spec spec = tests.get(test);
                    if (spec == null || !List.of(spec.value()).contains(row[0])) {
                        wrong.add(row[0] + ": no test of this section is named " + test);
                    }
                }
            }
        }
        Assertions.assertEquals(List.of(), wrong, "rows of musts.tsv");
    }

    /** The limits in docs/jms.md, with one space between words. */
    private static String limits() throws IOException {
        String page = Files.readString(Path.of(System.getProperty("basedir"), "../../docs/jms.md"));
        String limits = page.substring(page.indexOf("\n## Limits\n") + 1);
        return limits.substring(0, limits.indexOf("\n## ")).replaceAll("\\s+", " ");
    }

    /** Whether the provider's own tests have one, given as "folder/Class.method". */
    private static boolean providerHas(String test) throws IOException {
        int dot = test.indexOf('.');
        Path source = Path.of(
                System.getProperty("basedir"),
                "../pgaq-jms/src/test/java/io/github/pgaq/jms",
                test.substring(0, dot) + ".java");
        return Files.exists(source) && Files.readString(source).contains("void " + test.substring(dot + 1) + "(");
    }

    @Test
    void thereAreAtLeast500Tests() throws Exception {
        int count = tests().size();
        Assertions.assertTrue(count >= 500, "the suite must have at least 500 tests, but has " + count);
    }

    @Test
    void theTableOfSectionsIsCurrent() throws Exception {
        Map<String, List<String>> table = new LinkedHashMap<>();
        Map<String, String> titles = new LinkedHashMap<>();
        for (String[] row : read("titles.tsv")) {
            titles.put(row[0], row[1]);
            table.put(row[0], new ArrayList<>());
        }
        Map<String, List<String>> api = new TreeMap<>();
        tests().forEach((test, spec) -> {
            for (String section : spec.value()) {
                (section.startsWith("api:") ? api : table)
                        .computeIfAbsent(section, s -> new ArrayList<>())
                        .add(test);
            }
        });
        table.putAll(api);
        StringBuilder text = new StringBuilder(
                "# Made by CoverageTest from the annotations: section, title, number of " + "tests, tests.\n");
        table.forEach((section, tests) -> {
            if (!tests.isEmpty()) {
                String title = section.startsWith("api:") ? "Javadoc of " + section.substring(4) : titles.get(section);
                text.append(section)
                        .append('\t')
                        .append(title)
                        .append('\t')
                        .append(tests.size())
                        .append('\t')
                        .append(String.join(" ", tests))
                        .append('\n');
            }
        });
        if (Boolean.getBoolean("conformance.write")) {
            Files.writeString(Path.of(System.getProperty("basedir"), "src/main/resources/sections.tsv"), text);
            return;
        }
        List<String> actual = new ArrayList<>();
        for (String[] row : read("sections.tsv")) {
            actual.add(String.join("\t", row));
        }
        List<String> expected =
                Arrays.stream(text.toString().split("\n")).skip(1).toList();
        Assertions.assertEquals(
                expected,
                actual,
                "sections.tsv is not current: run mvn -Dconformance.write=true "
                        + "-Dtest=CoverageTest test in jms/pgaq-jms-conformance");
    }
}
