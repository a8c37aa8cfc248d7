package lookup.parts;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;
import org.apache.pulsar.broker.loadbalance.extensions.data.BrokerLookupData;
import org.apache.pulsar.broker.loadbalance.extensions.filter.BrokerFilter;
import org.apache.pulsar.broker.loadbalance.extensions.strategy.BrokerSelectionStrategy;
import org.apache.pulsar.broker.loadbalance.extensions.strategy.LeastResourceUsageWithWeight;

/** Single parts of the extensible manager: unloads, placements, top bundles and filters. */
final class ExtensibleParts {
    private ExtensibleParts() { }

    /** Return what is unloaded in each of a row of cycles. */
    static Object transfer(JsonNode request) throws Exception {
        return using(request, manager -> {
            List<Object> cycles = new ArrayList<>();
            for (JsonNode cycle : request.path("cycles")) {
                cycles.add(manager.cycle(cycle));
            }
            return Map.of("cycles", cycles);
        });
    }

    /** Return where a placement puts a bundle. */
    static Object place(JsonNode request) throws Exception {
        return using(request, manager -> {
            manager.load(request.path("brokers"), request.path("available"));
            BrokerSelectionStrategy placement = (BrokerSelectionStrategy) Class.forName(request.path("class").asText(
                    LeastResourceUsageWithWeight.class.getName())).getDeclaredConstructor().newInstance();
            Set<String> candidates = new HashSet<>();
            request.path("candidates").forEach(id -> candidates.add(id.asText()));
            Optional<String> chosen = placement.select(candidates, manager.broker().unit(request.path("bundle").asText()),
                    manager.context());
            return Extensible.answer(chosen, chosen.isEmpty() ? List.of() : Extensible.ties(placement, chosen.get()));
        });
    }

    /** Return the names of the top bundles as a broker publishes them, the least loaded first. */
    static Object topK(JsonNode request) throws Exception {
        return using(request, manager -> Map.of("bundles", Extensible.top(manager.broker(),
                States.stats(request.path("bundles")), request.path("k").asInt())
                .getTopBundlesLoadData().stream().map(bundle -> bundle.bundleName()).toList()));
    }

    /** Return the brokers that one of the manager's filters leaves. */
    static Object filter(JsonNode request) throws Exception {
        return using(request, manager -> {
            manager.load(request.path("brokers"), request.path("available"));
            for (BrokerFilter filter : manager.filters()) {
                if (filter.getClass().getName().equals(request.path("filter").asText())) {
                    Map<String, BrokerLookupData> candidates = new HashMap<>(manager.registered());
                    return Map.of("left", new TreeSet<>(filter.filterAsync(candidates,
                            manager.broker().unit(request.path("bundle").asText()), manager.context()).get().keySet()));
                }
            }
            throw new IllegalArgumentException("filter is " + request.path("filter")
                    + "; it should be the class of one that the manager has");
        });
    }

    /** What is asked of a manager that is open for one request only. */
    interface Use {
        /** Return the answer. */
        Object of(Extensible manager) throws Exception;
    }

    /** Open a manager, ask and close it. */
    static Object using(JsonNode request, Use use) throws Exception {
        Extensible manager = new Extensible(request);
        try {
            return use.of(manager);
        } finally {
            manager.close();
        }
    }
}
