package lookup.bridge;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.google.common.collect.MapMaker;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import lookup.bridge.DecisionServer.Decision;
import lookup.bridge.LookupRecorder.Lookup;
import lookup.bridge.PolicySettings.Mode;
import org.apache.commons.lang3.StringUtils;
import org.apache.pulsar.broker.PulsarServerException;
import org.apache.pulsar.broker.loadbalance.extensions.ExtensibleLoadManagerImpl;
import org.apache.pulsar.broker.loadbalance.extensions.data.BrokerLookupData;
import org.apache.pulsar.broker.namespace.LookupOptions;
import org.apache.pulsar.common.naming.ServiceUnitId;
import org.apache.pulsar.common.util.FutureUtil;
import org.apache.pulsar.common.util.ObjectMapperFactory;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Pulsar's extensible load manager, which records every lookup; a decision server may choose owners, else the stock one does. */
public class LookupPolicyLoadManager extends ExtensibleLoadManagerImpl {
    private static final Logger LOG = LoggerFactory.getLogger(LookupPolicyLoadManager.class);
    static final ObjectMapper JSON = ObjectMapperFactory.getMapper().getObjectMapper();

    /** Topics of lookups under way, since a selection gets the options alone; by identity, as weak keys are: many are equal. */
    private final Map<LookupOptions, ServiceUnitId> topics = new MapMaker().weakKeys().makeMap();
    private PolicySettings settings;
    private DecisionServer server;
    private LookupRecorder recorder;

    @Override
    public void start() throws PulsarServerException {
        settings = PolicySettings.of(pulsar.getConfiguration().getProperties());
        LOG.info("Lookup policies are in mode {}, the decision server is {}", settings.mode(), settings.server());
        server = new DecisionServer(settings);
        recorder = new LookupRecorder(pulsar.getBrokerId(), server);
        super.start();
    }

    @Override
    public void close() throws PulsarServerException {
        super.close();
        recorder.close();
    }

    /** Answer a lookup as the stock load manager does, and record it. */
    @Override
    public CompletableFuture<Optional<BrokerLookupData>> assign(Optional<ServiceUnitId> topic, ServiceUnitId bundle,
            LookupOptions options) {
        boolean isRecorded = topic.isPresent() && recorder.hasRoom();
        if (topic.isEmpty() || !isRecorded && settings.mode() == Mode.RECORD) {
            return super.assign(topic, bundle, options);
        }
        long asked = ChronoUnit.MICROS.between(Instant.EPOCH, Instant.now());
        long began = System.nanoTime();
        if (settings.mode() != Mode.RECORD) {
            topics.put(options, topic.get());
        }
        CompletableFuture<Optional<BrokerLookupData>> assigned = super.assign(topic, bundle, options);
        assigned.whenComplete((owner, failure) -> {
            topics.remove(options);
            // A broker's id is its address for HTTP, or HTTPS if that is all it has.
            String answer = failure == null ? owner.map(data -> StringUtils.substringAfter(
                    Objects.toString(data.webServiceUrl(), data.webServiceUrlTls()), "://")).orElse(null) : null;
            if (isRecorded) {
                long micros = (System.nanoTime() - began) / 1_000;
                recorder.offer(options.getProperties(), number -> new Lookup(number, asked, topic.get().toString(),
                        bundle.toString(), options.getProperties(),
                        StringUtils.trimToNull(options.getAdvertisedListenerName()), options.isReadOnly(),
                        options.isAuthoritative(), answer == null ? "failed" : "connect", answer, micros));
            }
        });
        return assigned;
    }

    /** Choose the owner of a bundle that has none: it was never looked up, was unloaded, or lost its broker. */
    @Override
    public CompletableFuture<Optional<String>> selectAsync(ServiceUnitId bundle, Set<String> excluded, LookupOptions options) {
        if (settings.mode() == Mode.RECORD || options.isReadOnly() || !server.isAsked()) {
            return super.selectAsync(bundle, excluded, options);
        }
        CompletableFuture<Decision> asked = ask(bundle, excluded, options);
        if (settings.mode() == Mode.SHADOW) {
            asked.whenComplete((decision, failure) -> log("would choose", bundle, decision, failure));
            return super.selectAsync(bundle, excluded, options);
        }
        // On another thread than the one that brought the answer: what follows is work of the broker.
        return asked.handleAsync((decision, failure) -> {
            log("chose", bundle, decision, failure);
            return failure == null ? CompletableFuture.completedFuture(Optional.of(decision.broker()))
                    : super.selectAsync(bundle, excluded, options);
        }).thenCompose(owner -> owner);
    }

    /** Ask the server to choose among the brokers that Pulsar's own filters leave. */
    private CompletableFuture<Decision> ask(ServiceUnitId bundle, Set<String> excluded, LookupOptions options) {
        ServiceUnitId topic = topics.get(options); // before anything waits: in shadow the lookup may end meanwhile
        return getBrokerRegistry().getAvailableBrokerLookupDataAsync().thenComposeAsync(available -> {
            Map<String, BrokerLookupData> candidates = new ConcurrentHashMap<>(available);
            candidates.keySet().removeAll(excluded);
            // As the stock load manager runs them: side by side, all of them on one map.
            return FutureUtil.waitForAll(getBrokerFilterPipeline().stream()
                    .map(filter -> filter.filterAsync(candidates, bundle, getContext())).toList()).thenCompose(done -> {
                if (candidates.isEmpty()) {
                    throw new IllegalStateException("the filters leave no broker");
                }
                ObjectNode question = JSON.createObjectNode().put("broker", pulsar.getBrokerId())
                        .put("ts", ChronoUnit.MICROS.between(Instant.EPOCH, Instant.now())).put("bundle", bundle.toString())
                        .put("topic", topic == null ? null : topic.toString()).putPOJO("properties", options.getProperties())
                        .put("listener", StringUtils.trimToNull(options.getAdvertisedListenerName()))
                        .put("shadow", settings.mode() == Mode.SHADOW).put("timeoutMillis", settings.timeout().toMillis());
                question.set("candidates", JSON.valueToTree(candidates.keySet()));
                ObjectNode view = JSON.createObjectNode();
                // Sorted, so that an equal view has equal content.
                new TreeMap<>(available).forEach((broker, data) -> view.putObject(broker)
                        .<ObjectNode>set("lookupData", JSON.valueToTree(data))
                        .set("load", JSON.valueToTree(getBrokerLoadDataStore().get(broker).orElse(null))));
                return server.decide(question, candidates.keySet(), view);
            });
        });
    }

    private static void log(String verb, ServiceUnitId bundle, Decision chosen, Throwable failure) {
        if (failure == null) {
            LOG.info("Policy {} {} broker {} for bundle {}: {}", chosen.policy(), verb, chosen.broker(), bundle, chosen.id());
        } else {
            LOG.warn("No policy {} for bundle: {}: {}", verb, bundle, FutureUtil.unwrapCompletionException(failure).toString());
        }
    }
}
