package lookup.parts;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.pulsar.broker.loadbalance.extensions.models.SplitCounter;
import org.apache.pulsar.broker.loadbalance.extensions.models.SplitDecision;
import org.apache.pulsar.broker.loadbalance.extensions.strategy.DefaultNamespaceBundleSplitStrategyImpl;
import org.apache.pulsar.broker.loadbalance.impl.BundleSplitterTask;
import org.apache.pulsar.common.naming.NamespaceBundles;
import org.apache.pulsar.common.naming.NamespaceName;
import org.apache.pulsar.common.naming.TopicName;
import org.apache.pulsar.common.policies.data.BundlesData;

/** Which bundles are split, and which topics lie in which bundle. */
final class Bundles {
    private Bundles() { }

    /** Return the bundles that a modular manager splits in each of a row of cycles, with their owners; {@code split} is of the last. */
    static Object modular(JsonNode request) throws Exception {
        StandIn broker = StandIn.of(States.conf(request.path("conf")), null);
        try {
            broker.store(request);
            BundleSplitterTask splitter = new BundleSplitterTask();
            List<Map<String, String>> cycles = new ArrayList<>();
            for (JsonNode state : request.has("cycles") ? request.path("cycles") : List.of(request.path("state"))) {
                cycles.add(new TreeMap<>(splitter.findBundlesToSplit(States.loadData(state), broker)));
            }
            return Map.of("cycles", cycles, "split", cycles.isEmpty() ? Map.of() : cycles.get(cycles.size() - 1));
        } finally {
            broker.end();
        }
    }

    /** Return the bundles that a broker under the extensible manager splits in each of a row of cycles, why and into what. */
    static Object extensible(JsonNode request) throws Exception {
        return ExtensibleParts.using(request, manager -> {
            DefaultNamespaceBundleSplitStrategyImpl strategy = new DefaultNamespaceBundleSplitStrategyImpl(new SplitCounter());
            List<Object> cycles = new ArrayList<>();
            for (JsonNode cycle : request.path("cycles")) {
                manager.broker().store(cycle);
                manager.broker().measure(States.stats(cycle.path("bundles")));
                Map<String, Object> splits = new TreeMap<>();
                for (SplitDecision decision : strategy.findBundlesToSplit(manager.context(), manager.broker())) {
                    splits.put(decision.getSplit().serviceUnit(), Map.of("reason", decision.getReason().toString(),
                            "into", new TreeSet<>(decision.getSplit().splitServiceUnitToDestBroker().keySet())));
                }
                cycles.add(Map.of("splits", splits));
            }
            return Map.of("cycles", cycles);
        });
    }

    /** Return the bundle of each topic. */
    static Object of(JsonNode request) throws Exception {
        StandIn broker = StandIn.of(States.conf(request.path("conf")), null);
        try {
            List<String> boundaries = new ArrayList<>();
            request.path("boundaries").forEach(boundary -> boundaries.add(boundary.asText()));
            NamespaceBundles bundles = broker.getNamespaceService().getNamespaceBundleFactory().getBundles(
                    NamespaceName.get(request.path("namespace").asText()),
                    BundlesData.builder().boundaries(boundaries).numBundles(boundaries.size() - 1).build());
            Map<String, String> found = new TreeMap<>();
            for (JsonNode topic : request.path("topics")) {
                found.put(topic.asText(), bundles.findBundle(TopicName.get(topic.asText())).toString());
            }
            return found;
        } finally {
            broker.end();
        }
    }
}
