package lookup.parts;

import java.io.BufferedReader;
import java.io.File;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.UnaryOperator;

/**
 * One JVM for the jars of several releases: each line has the number of a class path, a tab, and a request to {@link Main} with the
 * jars there; the first with a number has the path in place of the request, which is on the next line.
 */
public final class Host {
    private Host() { }

    /** Answer the standard input's lines until it ends, or the process that started this one does. */
    public static void main(String[] args) throws IOException {
        PrintStream out = new PrintStream(new FileOutputStream(FileDescriptor.out), false, StandardCharsets.UTF_8);
        System.setOut(System.err);
        // Whatever a request is doing then.
        ProcessHandle.current().parent().ifPresent(parent -> parent.onExit().thenRun(() -> Runtime.getRuntime().halt(0)));
        Map<String, UnaryOperator<String>> mains = new HashMap<>();
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8), 1 << 16);
        Map<String, String> paths = new HashMap<>();
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            int tab = line.indexOf('\t');
            String number = line.substring(0, tab), question = line.substring(tab + 1);
            if (!paths.containsKey(number)) {
                paths.put(number, question);
                question = in.readLine();
            }
            try {
                UnaryOperator<String> main = mains.get(number);
                if (main == null) {
                    main = load(paths.get(number));
                    mains.put(number, main);
                }
                Thread.currentThread().setContextClassLoader(main.getClass().getClassLoader());
                out.println(main.apply(question));
            } catch (Exception | LinkageError e) {
                Throwable cause = e.getCause() == null ? e : e.getCause();
                out.println("{\"fatal\":true,\"error\":\"" + cause.toString().replaceAll("[\"\\\\\\p{Cntrl}]", " ") + "\"}");
            }
            out.flush();
        }
        Runtime.getRuntime().halt(0);
    }

    /** Make a {@link Main} whose classes come from this program's jar and a class path, folders standing for the jars in them. */
    private static UnaryOperator<String> load(String path) throws Exception {
        List<URL> urls = new ArrayList<>(List.of(Host.class.getProtectionDomain().getCodeSource().getLocation()));
        for (String entry : path.split(File.pathSeparator)) {
            File[] jars = new File(entry).listFiles((folder, name) -> name.endsWith(".jar"));
            urls.add(new File(entry).toURI().toURL());
            for (File jar : jars == null ? new File[0] : Arrays.stream(jars).sorted().toArray(File[]::new)) {
                urls.add(jar.toURI().toURL());
            }
        }
        // Kept open as long as the program runs.
        ClassLoader loader = new URLClassLoader(urls.toArray(URL[]::new), ClassLoader.getPlatformClassLoader());
        Thread.currentThread().setContextClassLoader(loader);
        @SuppressWarnings("unchecked")
        UnaryOperator<String> main = (UnaryOperator<String>) loader.loadClass("lookup.parts.Main").getDeclaredConstructor().newInstance();
        return main;
    }
}
