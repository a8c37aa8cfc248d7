package lookup.parts;

import com.fasterxml.jackson.databind.JsonNode;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.pulsar.broker.loadbalance.LoadData;
import org.apache.pulsar.broker.loadbalance.ModularLoadManagerStrategy;
import org.apache.pulsar.broker.loadbalance.impl.ModularLoadManagerImpl;
import org.apache.pulsar.client.admin.Namespaces;
import org.apache.pulsar.policies.data.loadbalancer.BundleData;
import org.apache.pulsar.policies.data.loadbalancer.LocalBrokerData;
import org.apache.pulsar.policies.data.loadbalancer.TimeAverageMessageData;

/** A whole modular manager on the broker that leads, driven minute by minute. */
final class Manager implements Main.Session {
    private final StandIn broker;
    private final ModularLoadManagerImpl manager = new ModularLoadManagerImpl();
    private final LoadData data;
    private final ModularLoadManagerStrategy placement;
    /** The minute in which a bundle was last unloaded: the manager's own stamps are rewritten from it. */
    private final Map<String, Integer> unloaded = new HashMap<>();
    private int now;
    private List<List<String>> unloads = new ArrayList<>(), splits = new ArrayList<>();
    /** What the placement drew from for each bundle since the minute began, or the lookup: it may be asked twice. */
    private Map<String, Set<String>> ties = new TreeMap<>();

    Manager(JsonNode request) throws Exception {
        broker = StandIn.of(States.conf(request.path("conf")), StandIn.proxy(Namespaces.class, (self, method, given) -> {
            switch (method.getName()) {
                case "unloadNamespaceBundle" -> unload(given[0] + "/" + given[1], (String) given[2]);
                case "splitNamespaceBundle" -> splits.add(List.of(given[0] + "/" + given[1], owner(given[0] + "/" + given[1])));
                default -> throw new UnsupportedOperationException(method.getName());
            }
            return null;
        }));
        broker.store(request);
        manager.initialize(broker);
        // That of a broker that has no report of its own.
        Hidden.set(manager, "localData", new LocalBrokerData());
        data = part("loadData");
        placement = part("placementStrategy");
        Hidden.set(manager, "placementStrategy", StandIn.proxy(ModularLoadManagerStrategy.class, this::watch));
    }

    /** Let the placement do what it is called for, and note what it draws from. */
    private Object watch(Object self, Method method, Object[] given) throws Throwable {
        boolean chooses = method.getName().startsWith("selectBroker");
        String planned = null;
        Set<String> candidates = new TreeSet<>();
        if (chooses) {
            ((Set<?>) given[0]).forEach(id -> candidates.add((String) id));
            // From 5.0 on the name of the bundle comes before what is known of it.
            planned = Parts.plan(placement, given[1].toString(), (BundleData) given[given.length - 3]);
        }
        Object result;
        try {
            result = method.invoke(placement, given);
        } catch (InvocationTargetException e) {
            throw e.getCause();
        }
        if (chooses && ((Optional<?>) result).isPresent()) {
            String bundle = given.length > 4 ? (String) given[1] : name((BundleData) given[1]);
            ties.computeIfAbsent(bundle, key -> new TreeSet<>())
                    .addAll(Parts.ties(placement, (String) ((Optional<?>) result).get(), planned, candidates));
        }
        return result;
    }

    /** Return the name of the bundle that this is known of: the very object, since others may be equal to it. */
    private String name(BundleData known) {
        return data.getBundleData().entrySet().stream().filter(entry -> entry.getValue() == known).map(Map.Entry::getKey)
                .findFirst().orElse("");
    }

    /** Return the classes of its shedder and its placement. */
    Map<String, String> together() throws Exception {
        return Map.of("shedder", part("loadSheddingStrategy").getClass().getName(), "placement", placement.getClass().getName());
    }

    private <T> T part(String name) throws ReflectiveOperationException {
        return Hidden.get(manager, name);
    }

    /** Take the reports of a minute, shed, and return what the manager asked for. */
    Object minute(JsonNode request) throws Exception {
        now = request.path("now").asInt(now + 1);
        unloads = new ArrayList<>();
        splits = new ArrayList<>();
        ties = new TreeMap<>();
        broker.store(request);
        Map<String, Object> reports = broker.reports();
        reports.clear();
        States.each(request.path("brokers"), (id, given) -> {
            LocalBrokerData report = States.report(given);
            if (report.getLoadManagerClassName() == null) {
                // Or a filter removes every broker, and then all that other filters removed are candidates again.
                report.setLoadManagerClassName(broker.getConfiguration().getLoadManagerClassName());
            }
            reports.put(id, report);
        });
        if (!reports.keySet().containsAll(data.getBrokerData().keySet())) {
            // What the manager does when it is notified of a broker that left.
            Hidden.call(manager, "reapDeadBrokerPreallocations", List.copyOf(reports.keySet()));
        }
        manager.updateAll();
        Map<String, Long> recent = data.getRecentlyUnloadedBundles();
        long clock = System.currentTimeMillis();
        recent.replaceAll((bundle, stamp) -> States.stamp(clock, now - unloaded.get(bundle)));
        manager.doLoadShedding();
        return Map.of("unloads", unloads, "ties", ties, "splits", splits);
    }

    /** Write down an unload, and do what the broker that is asked for it does before it lets go of the bundle. */
    private void unload(String bundle, String to) throws Exception {
        List<String> asked = new ArrayList<>(List.of(bundle, owner(bundle)));
        asked.add(to);
        unloads.add(asked);
        unloaded.put(bundle, now);
        if (to != null) {
            manager.setNamespaceBundleAffinity(bundle, to);
        }
    }

    private String owner(String bundle) {
        for (Map.Entry<String, Object> report : broker.reports().entrySet()) {
            if (((LocalBrokerData) report.getValue()).getBundles().contains(bundle)) {
                return report.getKey();
            }
        }
        return "";
    }

    /** Return the broker that a lookup of a bundle without an owner gets. */
    Object assign(String bundle) throws Exception {
        Map<String, Object> answer = new TreeMap<>();
        String bound = manager.setNamespaceBundleAffinity(bundle, null);
        answer.put("affinity", bound != null);
        ties.clear();
        if (bound == null) {
            bound = manager.selectBrokerForAssignment(broker.unit(bundle)).orElse(null);
        }
        answer.put("broker", bound);
        answer.put("ties", ties.getOrDefault(bundle, bound == null ? Set.of() : Set.of(bound)));
        return answer;
    }

    /** Return what the manager knows. */
    Object memory() throws Exception {
        Map<String, Object> bundles = new TreeMap<>();
        for (Map.Entry<String, BundleData> entry : data.getBundleData().entrySet()) {
            TimeAverageMessageData shorter = entry.getValue().getShortTermData(), longer = entry.getValue().getLongTermData();
            bundles.put(entry.getKey(), Map.of("short", four(shorter), "shortSamples", shorter.getNumSamples(),
                    "long", four(longer), "longSamples", longer.getNumSamples()));
        }
        Map<String, Set<String>> preallocated = new TreeMap<>();
        Map<String, String> owners = part("preallocatedBundleToBroker");
        owners.forEach((bundle, id) -> preallocated.computeIfAbsent(id, key -> new TreeSet<>()).add(bundle));
        Map<String, Integer> recent = new TreeMap<>();
        data.getRecentlyUnloadedBundles().keySet().forEach(bundle -> recent.put(bundle, now - unloaded.get(bundle)));
        return Map.of("bundles", bundles, "preallocated", preallocated, "recentlyUnloaded", recent);
    }

    private static List<Double> four(TimeAverageMessageData mean) {
        return List.of(mean.getMsgRateIn(), mean.getMsgRateOut(), mean.getMsgThroughputIn(), mean.getMsgThroughputOut());
    }

    @Override
    public void close() throws Exception {
        manager.stop();
        broker.end();
    }
}
