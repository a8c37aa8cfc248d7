package lookup.parts;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.BiConsumer;
import org.apache.pulsar.broker.ServiceConfiguration;
import org.apache.pulsar.broker.loadbalance.extensions.BrokerRegistry;
import org.apache.pulsar.broker.loadbalance.extensions.ExtensibleLoadManagerImpl;
import org.apache.pulsar.broker.loadbalance.extensions.ExtensibleLoadManagerWrapper;
import org.apache.pulsar.broker.loadbalance.extensions.LoadManagerContext;
import org.apache.pulsar.broker.loadbalance.extensions.channel.ServiceUnitState;
import org.apache.pulsar.broker.loadbalance.extensions.channel.ServiceUnitStateChannel;
import org.apache.pulsar.broker.loadbalance.extensions.channel.ServiceUnitStateData;
import org.apache.pulsar.broker.loadbalance.extensions.data.BrokerLoadData;
import org.apache.pulsar.broker.loadbalance.extensions.data.BrokerLookupData;
import org.apache.pulsar.broker.loadbalance.extensions.data.TopBundlesLoadData;
import org.apache.pulsar.broker.loadbalance.extensions.filter.AntiAffinityGroupPolicyFilter;
import org.apache.pulsar.broker.loadbalance.extensions.filter.BrokerFilter;
import org.apache.pulsar.broker.loadbalance.extensions.filter.BrokerIsolationPoliciesFilter;
import org.apache.pulsar.broker.loadbalance.extensions.manager.UnloadManager;
import org.apache.pulsar.broker.loadbalance.extensions.models.TopKBundles;
import org.apache.pulsar.broker.loadbalance.extensions.models.Unload;
import org.apache.pulsar.broker.loadbalance.extensions.models.UnloadCounter;
import org.apache.pulsar.broker.loadbalance.extensions.models.UnloadDecision;
import org.apache.pulsar.broker.loadbalance.extensions.policies.AntiAffinityGroupPolicyHelper;
import org.apache.pulsar.broker.loadbalance.extensions.policies.IsolationPoliciesHelper;
import org.apache.pulsar.broker.loadbalance.extensions.scheduler.NamespaceUnloadStrategy;
import org.apache.pulsar.broker.loadbalance.extensions.scheduler.UnloadScheduler;
import org.apache.pulsar.broker.loadbalance.extensions.store.LoadDataStore;
import org.apache.pulsar.broker.loadbalance.extensions.strategy.BrokerSelectionStrategy;
import org.apache.pulsar.broker.loadbalance.impl.SimpleResourceAllocationPolicies;
import org.apache.pulsar.broker.namespace.LookupOptions;
import org.apache.pulsar.common.util.FieldParser;
import org.apache.pulsar.policies.data.loadbalancer.NamespaceBundleStats;

/** An extensible manager on the broker that leads: its filters, its placement, and its unloads, driven cycle by cycle. */
final class Extensible implements Main.Session {
    private final ServiceConfiguration conf;
    private final StandIn broker;
    private final ExtensibleLoadManagerImpl manager = new ExtensibleLoadManagerImpl();
    private final LoadManagerContext context;
    private final UnloadScheduler scheduler;
    // As those of a broker, whose order decides among equals.
    private final Map<String, BrokerLoadData> loads = new ConcurrentHashMap<>();
    private final Map<String, TopBundlesLoadData> tops = new ConcurrentHashMap<>();
    private final Map<String, BrokerLookupData> lookups = new ConcurrentHashMap<>();
    private final Map<String, ServiceUnitStateData> owners = new ConcurrentHashMap<>();
    /** The minute in which a bundle or a broker was last unloaded: the scheduler's own stamps are rewritten from it. */
    private final Map<String, Integer> unloaded = new HashMap<>();
    private int now;
    private final List<UnloadDecision> decisions = new ArrayList<>();
    private Throwable failure;
    /** What the placement drew from when it last chose. */
    private volatile Collection<String> drawn = List.of();

    Extensible(JsonNode request) throws Exception {
        conf = States.conf(request.path("conf"));
        if (!request.path("conf").has("loadManagerClassName")) {
            conf.setLoadManagerClassName(ExtensibleLoadManagerImpl.class.getName());
        }
        broker = StandIn.of(conf, null);
        broker.manage(new ExtensibleLoadManagerWrapper(manager));
        broker.store(request);
        manager.initialize(broker);
        ServiceUnitStateChannel channel = StandIn.proxy(ServiceUnitStateChannel.class, (self, method, given) ->
                switch (method.getName()) {
                    case "isChannelOwnerAsync" -> CompletableFuture.completedFuture(true);
                    case "isOwner" -> given.length == 1 || owns((String) given[1], (String) given[0]);
                    case "getOwnershipEntrySet" -> owners.entrySet();
                    case "publishUnloadEventAsync" -> CompletableFuture.completedFuture(null);
                    default -> throw new UnsupportedOperationException(method.getName());
                });
        BrokerRegistry registry = StandIn.proxy(BrokerRegistry.class, (self, method, given) -> switch (method.getName()) {
            case "getBrokerId" -> broker.getBrokerId();
            case "getAvailableBrokersAsync" -> CompletableFuture.completedFuture(List.copyOf(lookups.keySet()));
            case "getAvailableBrokerLookupDataAsync" -> CompletableFuture.completedFuture(new ConcurrentHashMap<>(lookups));
            case "lookupAsync" -> CompletableFuture.completedFuture(Optional.ofNullable(lookups.get(given[0])));
            default -> throw new UnsupportedOperationException(method.getName());
        });
        LoadDataStore<?> loadStore = store(loads), topStore = store(tops);
        context = StandIn.proxy(LoadManagerContext.class, (self, method, given) -> switch (method.getName()) {
            case "brokerConfiguration" -> conf;
            case "brokerLoadDataStore" -> loadStore;
            case "topBundleLoadDataStore" -> topStore;
            case "brokerRegistry" -> registry;
            default -> throw new UnsupportedOperationException(method.getName());
        });
        // What the manager's start does, without its topics and threads.
        IsolationPoliciesHelper isolation = new IsolationPoliciesHelper(new SimpleResourceAllocationPolicies(broker));
        AntiAffinityGroupPolicyHelper groups = new AntiAffinityGroupPolicyHelper(broker, channel);
        Hidden.set(manager, "brokerRegistry", registry);
        Hidden.set(manager, "serviceUnitStateChannel", channel);
        Hidden.set(manager, "context", context);
        Hidden.set(manager, "isolationPoliciesHelper", isolation);
        Hidden.set(manager, "antiAffinityGroupPolicyHelper", groups);
        groups.listenFailureDomainUpdate();
        manager.getBrokerFilterPipeline().add(new AntiAffinityGroupPolicyFilter(groups));
        manager.getBrokerFilterPipeline().add(new BrokerIsolationPoliciesFilter(isolation));
        BrokerSelectionStrategy placement = Hidden.get(manager, "brokerSelectionStrategy");
        Hidden.set(manager, "brokerSelectionStrategy", StandIn.proxy(BrokerSelectionStrategy.class,
                (self, method, given) -> watch(placement, method, given)));
        scheduler = new UnloadScheduler(broker, broker.getExecutor(), Hidden.bare(AtOnce.class), context, channel,
                manager.getUnloadCounter(), new AtomicReference<>());
        NamespaceUnloadStrategy shedder = Hidden.get(scheduler, "namespaceUnloadStrategy");
        Hidden.set(scheduler, "namespaceUnloadStrategy", StandIn.proxy(NamespaceUnloadStrategy.class,
                (self, method, given) -> shed(shedder, method, given)));
    }

    /** Let the shedder find what to unload, and note it; of an exception the scheduler would only write a log. */
    private Object shed(NamespaceUnloadStrategy shedder, Method method, Object[] given) throws Throwable {
        try {
            Object found = method.invoke(shedder, given);
            ((Collection<?>) found).forEach(decision -> decisions.add((UnloadDecision) decision));
            return found;
        } catch (InvocationTargetException e) {
            failure = e.getCause();
            throw failure;
        }
    }

    /** Does not wait until a bundle is unloaded, since it is at once. */
    static class AtOnce extends UnloadManager {
        private AtOnce() {
            super(null, null);
        }

        @Override
        public CompletableFuture<Void> waitAsync(CompletableFuture<Void> published, String bundle, UnloadDecision decision,
                long timeout, TimeUnit unit) {
            return published;
        }
    }

    private static <T> LoadDataStore<?> store(Map<String, T> held) {
        return StandIn.proxy(LoadDataStore.class, (self, method, given) -> {
            switch (method.getName()) {
                case "get":
                    return Optional.ofNullable(held.get(given[0]));
                case "entrySet":
                    return held.entrySet();
                case "size":
                    return held.size();
                case "forEach":
                    @SuppressWarnings("unchecked")
                    BiConsumer<String, T> visit = (BiConsumer<String, T>) given[0];
                    held.forEach(visit);
                    return null;
                default:
                    throw new UnsupportedOperationException(method.getName());
            }
        });
    }

    private boolean owns(String id, String bundle) {
        return owners.containsKey(bundle) && owners.get(bundle).dstBroker().equals(id);
    }

    /** Return the broker around the manager. */
    StandIn broker() {
        return broker;
    }

    /** Return what the manager's parts are given. */
    LoadManagerContext context() {
        return context;
    }

    /** Return the manager's filters, in their order. */
    List<BrokerFilter> filters() {
        return manager.getBrokerFilterPipeline();
    }

    /** Return what the brokers that are registered say of themselves, by id. */
    Map<String, BrokerLookupData> registered() {
        return lookups;
    }

    /** Take what brokers publish; {@code available} are those that are registered, all if it is missing. */
    Extensible load(JsonNode brokers, JsonNode available) throws Exception {
        Set<String> given = new HashSet<>(), listed = new HashSet<>();
        brokers.fieldNames().forEachRemaining(given::add);
        available.forEach(id -> listed.add(id.asText()));
        loads.keySet().retainAll(given);
        tops.keySet().retainAll(given);
        lookups.clear();
        owners.clear();
        States.each(brokers, (id, node) -> {
            publish(id, node);
            lookups.put(id, lookup(id, node));
        });
        if (available.isArray()) {
            for (String id : listed) {
                lookups.putIfAbsent(id, lookup(id, Main.JSON.createObjectNode()));
            }
            lookups.keySet().retainAll(listed);
        }
        return this;
    }

    private void publish(String id, JsonNode node) throws Exception {
        TopBundlesLoadData top = new TopBundlesLoadData();
        Map<String, NamespaceBundleStats> all = new HashMap<>();
        JsonNode bundles = node.path("bundles");
        if (bundles.isArray()) {
            // What a broker published: the least loaded of its top bundles first.
            for (JsonNode pair : bundles) {
                all.put(pair.path(0).asText(), States.stat(pair.path(1)));
                top.getTopBundlesLoadData().add(new TopBundlesLoadData.BundleLoadData(pair.path(0).asText(),
                        all.get(pair.path(0).asText())));
            }
        } else {
            all = States.stats(bundles);
            top = top(broker, all, conf.getLoadBalancerMaxNumberOfBundlesInBundleLoadReport());
        }
        tops.put(id, top);
        if (bundles.isNull()) {
            // It has not published any yet.
            tops.remove(id);
        }
        for (String bundle : all.keySet()) {
            owners.put(bundle, new ServiceUnitStateData(ServiceUnitState.Owned, id, 1));
        }
        double[] sums = new double[4];
        long topics = 0;
        for (NamespaceBundleStats stats : all.values()) {
            sums[0] += stats.msgThroughputIn;
            sums[1] += stats.msgThroughputOut;
            sums[2] += stats.msgRateIn;
            sums[3] += stats.msgRateOut;
            topics += stats.topics;
        }
        // The same object again: its means are of all the cycles.
        BrokerLoadData load = loads.computeIfAbsent(id, key -> new BrokerLoadData());
        load.update(States.usage(node), node.path("msgThroughputIn").asDouble(sums[0]),
                node.path("msgThroughputOut").asDouble(sums[1]), node.path("msgRateIn").asDouble(sums[2]),
                node.path("msgRateOut").asDouble(sums[3]), node.path("bundleCount").asLong(all.size()),
                node.path("topics").asLong(topics), conf);
        for (String name : List.of("maxResourceUsage", "weightedMaxEMA", "msgThroughputEMA")) {
            if (node.has(name)) {
                Hidden.set(load, name, node.path(name).asDouble());
            }
        }
        long updated = System.currentTimeMillis() - (long) (node.path("updatedAt").asDouble() * 1000);
        Hidden.set(load, "updatedAt", updated);
        load.setReportedAt(updated);
    }

    private BrokerLookupData lookup(String id, JsonNode node) throws Exception {
        ObjectNode lookup = Main.JSON.createObjectNode().put("brokerId", id).put("webServiceUrl", "http://" + id)
                .put("loadManagerClassName", conf.getLoadManagerClassName()).put("persistentTopicsEnabled", true)
                .put("nonPersistentTopicsEnabled", true);
        for (String name : List.of("loadManagerClassName", "startTimestamp", "brokerVersion", "properties", "protocols",
                "persistentTopicsEnabled", "nonPersistentTopicsEnabled", "webServiceUrl", "pulsarServiceUrl")) {
            if (node.has(name)) {
                lookup.set(name, node.get(name));
            }
        }
        return Main.JSON.treeToValue(lookup, BrokerLookupData.class);
    }

    /** Return the top bundles as a broker publishes them, the least loaded first. */
    static TopBundlesLoadData top(StandIn broker, Map<String, NamespaceBundleStats> bundles, int k) {
        TopKBundles top = new TopKBundles(broker);
        top.update(bundles, k);
        return top.getLoadData();
    }

    private Object watch(BrokerSelectionStrategy placement, Method method, Object[] given) throws Throwable {
        Object result;
        try {
            result = method.invoke(placement, given);
        } catch (InvocationTargetException e) {
            throw e.getCause();
        }
        if (result instanceof Optional<?> chosen && chosen.isPresent()) {
            drawn = ties(placement, (String) chosen.get());
        }
        return result;
    }

    /** Return the brokers that a placement just drew from on this thread when it chose one. */
    static Collection<String> ties(BrokerSelectionStrategy placement, String chosen) throws Exception {
        if (!Hidden.has(placement, "bestBrokers")) {
            return List.of(chosen);
        }
        ThreadLocal<List<String>> best = Hidden.get(placement, "bestBrokers");
        return new TreeSet<>(best.get());
    }

    /** Take what brokers publish, run the scheduler of unloads once, and return what it unloads. */
    Object cycle(JsonNode request) throws Exception {
        now = request.path("now").asInt(now + 1);
        broker.store(request);
        if (request.has("conf")) {
            Map<String, String> keys = new HashMap<>();
            States.each(request.path("conf"), (key, value) -> keys.put(key, value.asText()));
            FieldParser.update(keys, conf);
        }
        load(request.path("brokers"), request.path("available"));
        long clock = System.currentTimeMillis();
        for (String name : List.of("recentlyUnloadedBundles", "recentlyUnloadedBrokers")) {
            Map<String, Long> recent = Hidden.get(scheduler, name);
            recent.replaceAll((key, stamp) -> States.stamp(clock, now - unloaded.get(key)));
        }
        decisions.clear();
        failure = null;
        Map<String, Long> before = counts();
        scheduler.execute();
        if (failure != null) {
            throw new ExecutionException(failure);
        }
        List<List<String>> unloads = new ArrayList<>();
        for (UnloadDecision decision : decisions) {
            Unload unload = decision.getUnload();
            unloaded.put(unload.serviceUnit(), now);
            unloaded.put(unload.sourceBroker(), now);
            unloads.add(Arrays.asList(unload.serviceUnit(), unload.sourceBroker(), unload.destBroker().orElse(null),
                    decision.getReason().toString()));
        }
        // Their own order is that of a hash set, another in each run.
        unloads.sort(Comparator.comparing(unload -> unload.get(0)));
        Map<String, Long> counts = counts();
        before.forEach((key, count) -> counts.merge(key, -count, Long::sum));
        counts.values().removeIf(count -> count == 0);
        return Map.of("unloads", unloads, "counts", counts);
    }

    /** Return how often what was unloaded or skipped, and why, so far. */
    Map<String, Long> counts() {
        Map<String, Long> counts = new TreeMap<>();
        UnloadCounter counter = manager.getUnloadCounter();
        counter.getBreakdownCounters().forEach((label, reasons) ->
                reasons.forEach((reason, count) -> counts.put(label + " " + reason, count.get())));
        return counts;
    }

    /** Return the broker that a lookup of a bundle without an owner gets. */
    Object assign(String bundle) throws Exception {
        drawn = List.of();
        Optional<String> chosen = manager.selectAsync(broker.unit(bundle), Set.of(), LookupOptions.builder().build()).get();
        return answer(chosen, drawn);
    }

    /** Return the answer of a placement. */
    static Object answer(Optional<String> chosen, Collection<String> ties) {
        Map<String, Object> answer = new TreeMap<>();
        answer.put("broker", chosen.orElse(null));
        answer.put("ties", ties);
        return answer;
    }

    @Override
    public void close() throws Exception {
        broker.end();
    }
}
