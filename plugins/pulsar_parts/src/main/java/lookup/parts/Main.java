package lookup.parts;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.SerializationFeature;
import java.io.BufferedReader;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.net.URL;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutionException;
import java.util.function.UnaryOperator;
import org.apache.pulsar.PulsarVersion;
import org.apache.pulsar.broker.ServiceConfiguration;
import org.apache.pulsar.broker.loadbalance.LoadData;
import org.apache.pulsar.policies.data.loadbalancer.LocalBrokerData;

/** Answers questions to Pulsar's own classes of load management: a line of JSON in, a line of JSON out. */
public final class Main implements UnaryOperator<String> {
    static final ObjectMapper JSON = new ObjectMapper().enable(SerializationFeature.ORDER_MAP_ENTRIES_BY_KEYS)
            .disable(DeserializationFeature.FAIL_ON_UNKNOWN_PROPERTIES);

    /** How a request is answered. */
    interface Answer {
        /** Return what the answer's line has. */
        Object to(JsonNode request) throws Exception;
    }

    /** What stays open from one request to the next. */
    interface Session {
        /** Let go of what it holds. */
        void close() throws Exception;
    }

    private final Map<String, Answer> answers = new HashMap<>();
    private final Map<Integer, Session> sessions = new HashMap<>();
    private int opened;

    /** Open no session yet. */
    public Main() {
        answers.put("shed", Parts::shed);
        answers.put("place", Parts::place);
        answers.put("together", Parts::together);
        answers.put("defaults", Parts::defaults);
        answers.put("modular.open", request -> open(new Manager(request)));
        answers.put("modular.minute", request -> session(Manager.class, request).minute(request));
        answers.put("modular.assign", request -> session(Manager.class, request).assign(request.path("bundle").asText()));
        answers.put("modular.memory", request -> session(Manager.class, request).memory());
        answers.put("transfer", ExtensibleParts::transfer);
        answers.put("place.extensible", ExtensibleParts::place);
        answers.put("topk", ExtensibleParts::topK);
        answers.put("filters", ExtensibleParts::filter);
        answers.put("split.modular", Bundles::modular);
        answers.put("split.extensible", Bundles::extensible);
        answers.put("bundle", Bundles::of);
        answers.put("extensible.open", request -> open(new Extensible(request)));
        answers.put("extensible.cycle", request -> session(Extensible.class, request).cycle(request));
        answers.put("extensible.assign", request -> session(Extensible.class, request).assign(request.path("bundle").asText()));
        answers.put("close", this::close);
        answers.put("about", request -> about());
        answers.put("strategy.open", request -> {
            Strategy strategy = new Strategy(request);
            sessions.put(request.path("id").asInt(), strategy);
            return strategy.about();
        });
        answers.put("strategy.shed", request -> session(Strategy.class, request).shed(request));
        answers.put("strategy.place", request -> session(Strategy.class, request).place(request));
    }

    /** Answer a line, for {@link Host}. */
    @Override
    public String apply(String line) {
        try {
            return JSON.writeValueAsString(answer(line));
        } catch (JsonProcessingException e) {
            throw new IllegalStateException(e);
        }
    }

    /** Answer the standard input's lines until it ends. */
    public static void main(String[] args) throws Exception {
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        // Whatever else prints must not come between the answers.
        System.setOut(System.err);
        Main main = new Main();
        print(out, main.about());
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            if (!line.isBlank()) {
                print(out, main.answer(line));
            }
        }
        // Pulsar's threads would keep it alive.
        System.exit(0);
    }

    private static void print(PrintStream out, Object answer) throws Exception {
        out.println(JSON.writeValueAsString(answer));
        out.flush();
    }

    private Object answer(String line) {
        try {
            JsonNode request = JSON.readTree(line);
            Answer answer = answers.get(request.path("ask").asText());
            if (answer == null) {
                throw new IllegalArgumentException("ask is " + request.path("ask") + "; it should be one of "
                        + new TreeMap<>(answers).keySet());
            }
            return answer.to(request);
        } catch (Exception | LinkageError | StackOverflowError e) {
            if (Boolean.getBoolean("lookup.parts.trace")) {
                e.printStackTrace();
            }
            Throwable cause = e instanceof ExecutionException || e instanceof CompletionException ? e.getCause() : e;
            return Map.of("error", cause.getClass().getSimpleName() + ": " + cause.getMessage());
        }
    }

    private Object about() throws Exception {
        Map<String, String> jars = new TreeMap<>();
        for (Class<?> type : new Class<?>[] {LoadData.class, ServiceConfiguration.class, LocalBrokerData.class}) {
            URL jar = type.getProtectionDomain().getCodeSource().getLocation();
            try (InputStream in = jar.openStream()) {
                byte[] digest = MessageDigest.getInstance("SHA-256").digest(in.readAllBytes());
                jars.put(jar.getPath().replaceFirst(".*/", "").replaceFirst("-[0-9].*", ""), HexFormat.of().formatHex(digest));
            }
        }
        return Map.of("release", PulsarVersion.getVersion(), "java", Runtime.version().toString(), "jars", jars);
    }

    private Object open(Session session) {
        sessions.put(++opened, session);
        return Map.of("id", opened);
    }

    private <T extends Session> T session(Class<T> type, JsonNode request) {
        Session session = sessions.get(request.path("id").asInt());
        if (!type.isInstance(session)) {
            throw new IllegalArgumentException("id is " + request.path("id") + "; it should be one that an open answered with");
        }
        return type.cast(session);
    }

    private Object close(JsonNode request) throws Exception {
        session(Session.class, request);
        sessions.remove(request.path("id").asInt()).close();
        return Map.of();
    }
}
