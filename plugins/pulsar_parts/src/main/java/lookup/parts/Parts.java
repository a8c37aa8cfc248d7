package lookup.parts;

import com.fasterxml.jackson.databind.JsonNode;
import com.google.common.collect.Multimap;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.pulsar.broker.ServiceConfiguration;
import org.apache.pulsar.broker.loadbalance.LoadData;
import org.apache.pulsar.broker.loadbalance.LoadSheddingStrategy;
import org.apache.pulsar.broker.loadbalance.ModularLoadManagerStrategy;
import org.apache.pulsar.broker.loadbalance.impl.AvgShedder;
import org.apache.pulsar.broker.loadbalance.impl.ModularLoadManagerImpl;
import org.apache.pulsar.policies.data.loadbalancer.BundleData;

/** Single parts of the modular manager: its shedders, its placements, and which of them go together. */
final class Parts {
    private Parts() { }

    /** Return what a shedder unloads in each of a row of cycles. */
    static Object shed(JsonNode request) throws Exception {
        ServiceConfiguration conf = States.conf(request.path("conf"));
        LoadSheddingStrategy shedder = make(LoadSheddingStrategy.class, request);
        List<Object> cycles = new ArrayList<>();
        for (JsonNode state : request.path("cycles")) {
            LoadData data = States.loadData(state);
            Multimap<String, String> unloads = shedder.findBundlesForUnloading(data, conf);
            Map<String, String> planned = new TreeMap<>();
            for (String bundle : unloads.values()) {
                String broker = plan(shedder, bundle, data.getBundleData().get(bundle));
                if (broker != null) {
                    planned.put(bundle, broker);
                }
            }
            Map<String, List<String>> named = new TreeMap<>();
            // Copied: some shedders clear what they returned when they are asked again.
            unloads.asMap().forEach((broker, bundles) -> named.put(broker, List.copyOf(bundles)));
            cycles.add(Map.of("unloads", named, "planned", planned));
            if (Hidden.method(shedder.getClass(), "onUnloadAttemptCompleted", 0) != null) {
                // From 5.0 on the manager says so after each cycle.
                Hidden.call(shedder, "onUnloadAttemptCompleted");
            }
        }
        return Map.of("cycles", cycles);
    }

    /** Return where a placement puts a bundle. */
    static Object place(JsonNode request) throws Exception {
        ModularLoadManagerStrategy placement = make(ModularLoadManagerStrategy.class, request);
        LoadData data = States.loadData(request.path("state"));
        String bundle = request.path("bundle").asText();
        Set<String> candidates = new HashSet<>();
        request.path("candidates").forEach(broker -> candidates.add(broker.asText()));
        String broker = choose(placement, candidates, bundle, States.bundle(data, bundle), data,
                States.conf(request.path("conf"))).orElse(null);
        Map<String, Object> answer = new TreeMap<>();
        answer.put("broker", broker);
        answer.put("ties", ties(placement, broker, null, candidates));
        return answer;
    }

    /** Let a placement choose, by the method that its release has. */
    static Optional<String> choose(ModularLoadManagerStrategy placement, Set<String> candidates, String bundle,
            BundleData known, LoadData data, ServiceConfiguration conf) throws Exception {
        if (Hidden.method(placement.getClass(), "selectBrokerForBundle", 5) != null) {
            return Hidden.call(placement, "selectBrokerForBundle", candidates, bundle, known, data, conf);
        }
        return placement.selectBroker(candidates, known, data, conf);
    }

    /** Return the brokers that a placement just drew from when it chose one; {@code planned} is what it had planned before, or null. */
    static Collection<String> ties(ModularLoadManagerStrategy placement, String chosen, String planned, Set<String> candidates)
            throws Exception {
        if (chosen == null) {
            return List.of();
        }
        if (chosen.equals(planned)) {
            return List.of(chosen);
        }
        if (Hidden.has(placement, "bestBrokers")) {
            Collection<String> best = Hidden.get(placement, "bestBrokers");
            return new TreeSet<>(best);
        }
        return placement instanceof AvgShedder ? new TreeSet<>(candidates) : List.of(chosen);
    }

    /** Return the broker that an AvgShedder has planned for a bundle, or null. */
    static String plan(Object strategy, String bundle, BundleData known) throws Exception {
        if (!(strategy instanceof AvgShedder)) {
            return null;
        }
        if (Hidden.has(strategy, "bundleBrokerMap")) {
            Map<BundleData, String> plans = Hidden.get(strategy, "bundleBrokerMap");
            return known == null ? null : plans.get(known);
        }
        Map<String, Object> plans = Hidden.get(strategy, "pendingBundleToUnload");
        Object pending = plans.get(bundle);
        return pending == null ? null : Hidden.call(pending, "destinationBroker");
    }

    /** Return the shedder and the placement that a modular manager takes. */
    static Object together(JsonNode request) throws Exception {
        if (Hidden.method(ModularLoadManagerImpl.class, "createLoadBalanceStrategies", 1) != null) {
            Object pair = Hidden.call(ModularLoadManagerImpl.class, "createLoadBalanceStrategies", States.conf(request.path("conf")));
            return Map.of("shedder", Hidden.call(pair, "loadSheddingStrategy").getClass().getName(),
                    "placement", Hidden.call(pair, "placementStrategy").getClass().getName());
        }
        // Before 5.0 its start alone decides.
        Manager manager = new Manager(request);
        try {
            return manager.together();
        } finally {
            manager.close();
        }
    }

    /** Return the defaults of keys of the configuration. */
    static Object defaults(JsonNode request) throws Exception {
        ServiceConfiguration conf = new ServiceConfiguration();
        Map<String, String> values = new TreeMap<>();
        for (JsonNode key : request.path("keys")) {
            Object value = Hidden.has(conf, key.asText()) ? Hidden.get(conf, key.asText()) : null;
            values.put(key.asText(), value == null ? null : value.toString());
        }
        return values;
    }

    /** Make an object of the class that a request names. */
    private static <T> T make(Class<T> type, JsonNode request) throws ReflectiveOperationException {
        return type.cast(Class.forName(request.path("class").asText()).getDeclaredConstructor().newInstance());
    }
}
