package lookup.bridge;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.google.common.hash.Hashing;
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.pulsar.common.util.FutureUtil;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** The decision server as a broker sees it; not asked for a while after a failure, or one that hangs would delay every bundle. */
final class DecisionServer {
    private static final Logger LOG = LoggerFactory.getLogger(DecisionServer.class);
    /** The longest pause, s, and the answers of status 500 before one: a single one may be the fault of its request. */
    private static final int LONGEST_PAUSE_S = 30, DEFECTS = 5;
    /** Answers to a batch that is wrong, or makes the server fail: it would not be taken later either. */
    private static final Set<Integer> NEVER_TAKEN = Set.of(400, 413, 500);
    /** For requests that no lookup waits for: a server that was just started may need seconds. */
    private static final Duration PATIENCE = Duration.ofSeconds(10);

    /** An answer of {@code /decide}: the chosen broker, the id of the decision and the policy that took it. */
    record Decision(String broker, String id, String policy) { }

    /** Failures in a row, and the instant of {@code System.nanoTime()} until which the server is not asked. */
    private record Pause(int failures, long end) { }

    private final PolicySettings settings;
    // With HTTP/2, the default, the first request of every connection asks for an upgrade.
    private final HttpClient client = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();
    private final AtomicReference<Pause> pause = new AtomicReference<>(new Pause(0, System.nanoTime()));
    /** Id of the last view that the server took. */
    private volatile String knownView = "";

    DecisionServer(PolicySettings settings) {
        this.settings = settings;
    }

    /** Return whether the server may be asked for a decision now. */
    boolean isAsked() {
        return System.nanoTime() - pause.get().end >= 0;
    }

    /** Ask for an owner; the result fails if within the time-out no answer names a candidate. */
    CompletableFuture<Decision> decide(ObjectNode question, Set<String> candidates, JsonNode brokers) {
        Pause before = pause.get();
        // The id names the content: the server has an equal view already, unless it was restarted.
        String id = question.path("broker").asText() + "/"
                + Hashing.sha256().hashString(brokers.toString(), StandardCharsets.UTF_8);
        ObjectNode view = question.putObject("view").put("id", id);
        if (!id.equals(knownView)) {
            view.set("brokers", brokers);
        }
        CompletableFuture<HttpResponse<String>> sent = send("/decide", question);
        return sent.thenCompose(answer -> {
            if (answer.statusCode() != 409 || view.has("brokers")) {
                return CompletableFuture.completedFuture(answer);
            }
            view.set("brokers", brokers);
            return send("/decide", question);
            // The client's own time-out ends with the headers of an answer, and begins again with the second request.
        }).orTimeout(settings.timeout().toMillis(), TimeUnit.MILLISECONDS).handle((answer, failure) -> {
            // Frees the connection to a server that hangs; without effect if it has answered.
            sent.cancel(true);
            String reason = failure == null ? sentence(answer) : FutureUtil.unwrapCompletionException(failure).toString();
            switch (failure == null ? answer.statusCode() : 0) {
                case 0 -> rest(before, Math.min(1L << Math.min(before.failures, 5), LONGEST_PAUSE_S), reason);
                case 401, 404 -> rest(before, LONGEST_PAUSE_S, reason);
                case 500 -> rest(before, before.failures + 1 < DEFECTS ? 0 : LONGEST_PAUSE_S, reason);
                case 503 -> rest(before, answer.headers().firstValue("Retry-After").filter(text -> text.matches("[0-9]{1,3}"))
                        .map(Long::valueOf).orElse(1L), reason);
                case 200 -> {
                    knownView = id;
                    pause.set(new Pause(0, System.nanoTime()));
                    return read(answer, candidates);
                }
            } // With any other status this request was wrong, the next need not be.
            throw new IllegalStateException(reason);
        });
    }

    /**
     * Send a batch of lookups, or ask whether they are taken if it is null; wait, as no thread of the broker may.
     *
     * @return false if the server will never take this batch: it is wrong, or it makes the server fail
     * @throws IOException if it may be taken later
     */
    boolean record(byte[] batch) throws IOException, InterruptedException {
        HttpRequest.Builder request = batch == null ? request("/ready/records", PATIENCE)
                : request("/record", PATIENCE).POST(HttpRequest.BodyPublishers.ofByteArray(batch));
        HttpResponse<String> answer = client.send(request.build(), HttpResponse.BodyHandlers.ofString());
        // A server of an earlier release does not say whether it takes them.
        if (answer.statusCode() == 200 || batch == null && answer.statusCode() == 404) {
            return true;
        }
        if (batch == null || !NEVER_TAKEN.contains(answer.statusCode())) {
            throw new IOException(sentence(answer));
        }
        LOG.warn("Lookups are lost: {}", sentence(answer));
        return false;
    }

    /** Ask for topics; the result fails unless within the time-out a whole list comes, each of whose names has one of the prefixes. */
    CompletableFuture<List<String>> list(ObjectNode question, List<String> prefixes) {
        CompletableFuture<HttpResponse<String>> sent = send("/list", question);
        // Of a copy: a time-out that completed the request itself would leave nothing to cancel, and its connection open.
        return sent.copy().orTimeout(settings.timeout().toMillis(), TimeUnit.MILLISECONDS).handle((answer, failure) -> {
            sent.cancel(true);
            if (failure != null || answer.statusCode() != 200) {
                throw new IllegalStateException("The decision server " + settings.server() + " gave no list of topics: "
                        + (failure == null ? sentence(answer) : FutureUtil.unwrapCompletionException(failure)));
            }
            try {
                JsonNode names = LookupPolicyLoadManager.JSON.readTree(answer.body()).path("topics");
                List<String> topics = new ArrayList<>(names.size());
                for (JsonNode name : names) {
                    if (!name.isTextual() || prefixes.stream().noneMatch(name.textValue()::startsWith)) {
                        throw new IllegalStateException(name + " of the decision server is no topic of " + prefixes);
                    }
                    topics.add(name.textValue());
                }
                if (names.isArray()) {
                    return topics;
                }
            } catch (IOException e) {
                // No list either; the sentence shows it.
            }
            throw new IllegalStateException("no list of topics: " + sentence(answer));
        });
    }

    private CompletableFuture<HttpResponse<String>> send(String path, ObjectNode question) {
        return client.sendAsync(request(path, settings.timeout())
                .POST(HttpRequest.BodyPublishers.ofString(question.toString())).build(), HttpResponse.BodyHandlers.ofString());
    }

    private HttpRequest.Builder request(String path, Duration timeout) {
        HttpRequest.Builder request = HttpRequest.newBuilder(URI.create(settings.server() + path)).timeout(timeout)
                .header("Content-Type", "application/json").header("X-Lookup-Protocol", "1");
        return settings.token().isEmpty() ? request : request.header("Authorization", "Bearer " + settings.token());
    }

    private static Decision read(HttpResponse<String> answer, Set<String> candidates) {
        try {
            JsonNode decision = LookupPolicyLoadManager.JSON.readTree(answer.body());
            String broker = decision.path("broker").asText();
            if (candidates.contains(broker)) {
                return new Decision(broker, decision.path("decision").asText(), decision.path("policy").asText());
            }
        } catch (IOException e) {
            // No answer either; the sentence shows it.
        }
        throw new IllegalStateException("no broker out of " + candidates + ": " + sentence(answer));
    }

    private void rest(Pause before, long seconds, String reason) {
        // Requests that were under way side by side fail together: the first of them counts.
        Pause next = new Pause(before.failures + 1, System.nanoTime() + TimeUnit.SECONDS.toNanos(seconds));
        if (pause.compareAndSet(before, next) && seconds > 0) {
            LOG.warn("The decision server {} is not asked for {} s: {}", settings.server(), seconds, reason);
        }
    }

    private static String sentence(HttpResponse<String> answer) {
        String body = answer.body().length() < 300 ? answer.body() : answer.body().substring(0, 300) + "...";
        return answer.uri().getPath() + " was answered " + answer.statusCode() + " " + body;
    }
}
