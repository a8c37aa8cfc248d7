package lookup.parts;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.DoubleBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
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
import org.apache.pulsar.broker.ServiceConfiguration;
import org.apache.pulsar.broker.loadbalance.LoadData;
import org.apache.pulsar.broker.loadbalance.LoadSheddingStrategy;
import org.apache.pulsar.broker.loadbalance.ModularLoadManagerStrategy;
import org.apache.pulsar.broker.loadbalance.extensions.models.UnloadDecision;
import org.apache.pulsar.broker.loadbalance.extensions.scheduler.NamespaceUnloadStrategy;
import org.apache.pulsar.broker.loadbalance.extensions.strategy.BrokerSelectionStrategy;
import org.apache.pulsar.broker.loadbalance.impl.ModularLoadManagerImpl;
import org.apache.pulsar.policies.data.loadbalancer.BrokerData;
import org.apache.pulsar.policies.data.loadbalancer.BundleData;
import org.apache.pulsar.policies.data.loadbalancer.NamespaceBundleStats;
import org.apache.pulsar.policies.data.loadbalancer.TimeAverageBrokerData;
import org.apache.pulsar.policies.data.loadbalancer.TimeAverageMessageData;

/** A shedder or a placement of any class, of either manager's kind, with what such a manager would hand it. */
final class Strategy implements Main.Session {
    private static final List<Class<?>> SHEDDERS = List.of(LoadSheddingStrategy.class, NamespaceUnloadStrategy.class);
    private static final List<Class<?>> PLACEMENTS = List.of(ModularLoadManagerStrategy.class, BrokerSelectionStrategy.class);
    /** What a class file that draws at random names in its constants: classes, and methods with their lengths. */
    private static final List<String> DICE = List.of("java/util/concurrent/ThreadLocalRandom", "java/util/Random",
            "java/util/SplittableRandom", "java/security/SecureRandom", "\1\0\6random", "\1\0\7shuffle", "\1\0\12randomUUID");

    private final ServiceConfiguration conf;
    private final Object made;
    /** What a modular manager knows. */
    private final LoadData data = new LoadData();
    /** The bundles that it was told of last. */
    private final List<String> names = new ArrayList<>();
    /** Stands around a strategy of the extensible manager, null for one of the modular. */
    private final Extensible manager;
    /** When the reports came, in the computer's time: ages are from here. */
    private long clock = System.currentTimeMillis();
    private boolean hasShed;
    /** The bundle of the last question, and the memory of the class before it. */
    private String bundle;
    private Memory before;
    /** The candidates of the choices that the last question made, those first that it only supposed; empty if that is settled. */
    private List<Set<String>> asked = List.of();

    Strategy(JsonNode request) throws Exception {
        String name = request.path("class").asText();
        Class<?> type;
        try {
            type = Class.forName(name);
        } catch (ClassNotFoundException e) {
            throw new IllegalArgumentException("there is no class " + name);
        }
        List<Class<?>> right = request.path("sheds").asBoolean() ? SHEDDERS : PLACEMENTS;
        if (right.stream().noneMatch(each -> each.isAssignableFrom(type))) {
            throw new IllegalArgumentException(name + " is neither a " + right.get(0).getSimpleName() + " nor a "
                    + right.get(1).getSimpleName());
        }
        try {
            made = Hidden.make(type);
        } catch (NoSuchMethodException e) {
            throw new IllegalArgumentException(name + " has no constructor without arguments");
        }
        conf = States.conf(request.path("conf"));
        manager = made instanceof NamespaceUnloadStrategy || made instanceof BrokerSelectionStrategy ? new Extensible(request) : null;
        if (made instanceof NamespaceUnloadStrategy shedder) {
            shedder.initialize(manager.broker());
        }
    }

    /** Return the kind of its manager, and whether it draws at random without saying from which brokers. */
    Object about() throws Exception {
        return Map.of("extensible", manager != null, "dice", !Hidden.has(made, "bestBrokers") && draws(made.getClass()));
    }

    private static boolean draws(Class<?> type) throws IOException {
        for (Class<?> c = type; c != null && c.getClassLoader() == Strategy.class.getClassLoader(); c = c.getSuperclass()) {
            try (InputStream in = c.getResourceAsStream("/" + c.getName().replace('.', '/') + ".class")) {
                String constants = in == null ? "" : new String(in.readAllBytes(), StandardCharsets.ISO_8859_1);
                if (DICE.stream().anyMatch(constants::contains)) {
                    return true;
                }
            }
            for (Class<?> nested : c.getDeclaredClasses()) {
                if (nested != type && draws(nested)) {
                    return true;
                }
            }
        }
        return false;
    }

    /** Leave the class with the memory of the choices that its load manager would have made since the last question. */
    private void settle(List<Set<String>> made) throws Exception {
        if (!asked.isEmpty() && !made.equals(asked)) {
            before.restore();
            for (Set<String> candidates : made) {
                choose(candidates);
            }
        }
        asked = List.of();
    }

    /** Return a set of candidates for each choice. */
    private static List<Set<String>> sets(JsonNode choices) {
        List<Set<String>> sets = new ArrayList<>();
        choices.forEach(choice -> sets.add(ids(choice)));
        return sets;
    }

    private static Set<String> ids(JsonNode ids) {
        Set<String> set = new HashSet<>();
        ids.forEach(id -> set.add(id.asText()));
        return set;
    }

    /** Take the reports of an instant, if a request has any. */
    private void learn(JsonNode request) throws Exception {
        JsonNode brokers = request.path("brokers");
        if (brokers.isMissingNode()) {
            return;
        }
        clock = System.currentTimeMillis();
        if (manager != null) {
            manager.load(brokers, request.path("available"));
            return;
        }
        if (hasShed && Hidden.method(made.getClass(), "onUnloadAttemptCompleted", 0) != null) {
            // From 5.0 on the manager says so after each cycle.
            Hidden.call(made, "onUnloadAttemptCompleted");
        }
        hasShed = false;
        Map<String, BundleData> bundles = data.getBundleData();
        if (request.has("names")) {
            names.clear();
            request.path("names").forEach(name -> names.add(name.asText()));
            bundles.keySet().retainAll(new HashSet<>(names));
        }
        // Of each bundle the messages and bytes per second of its short mean, then of the long one.
        DoubleBuffer sums = ByteBuffer.wrap(request.path("sums").binaryValue()).order(ByteOrder.LITTLE_ENDIAN).asDoubleBuffer();
        for (int i = 0; i < names.size(); i++) {
            // The same objects again: some classes keep them.
            BundleData bundle = bundles.computeIfAbsent(names.get(i), key -> new BundleData(
                    ModularLoadManagerImpl.NUM_SHORT_SAMPLES, ModularLoadManagerImpl.NUM_LONG_SAMPLES));
            mean(bundle.getShortTermData(), sums.get(4 * i), sums.get(4 * i + 1));
            mean(bundle.getLongTermData(), sums.get(4 * i + 2), sums.get(4 * i + 3));
        }
        Set<String> named = new HashSet<>(), before = new HashSet<>(data.getBrokerData().keySet());
        States.each(brokers, (id, given) -> {
            named.add(id);
            Map<String, NamespaceBundleStats> stats = new HashMap<>();
            given.path("bundles").forEach(index -> {
                TimeAverageMessageData mean = bundles.get(names.get(index.asInt())).getShortTermData();
                NamespaceBundleStats own = new NamespaceBundleStats();
                own.msgRateIn = own.msgRateOut = mean.getMsgRateIn();
                own.msgThroughputIn = own.msgThroughputOut = mean.getMsgThroughputIn();
                stats.put(names.get(index.asInt()), own);
            });
            for (int i = 0; i < given.path("unknown").asInt(); i++) {
                stats.put("unknown/idle/" + i, new NamespaceBundleStats());
            }
            BrokerData held = data.getBrokerData().computeIfAbsent(id, key -> new BrokerData(null));
            held.setLocalData(States.report(given, stats));
            held.getPreallocatedBundleData().clear();
            TimeAverageBrokerData means = new TimeAverageBrokerData();
            means.setLongTermMsgRateIn(given.path("longRate").asDouble() / 2);
            means.setLongTermMsgRateOut(given.path("longRate").asDouble() / 2);
            held.setTimeAverageData(means);
        });
        data.getBrokerData().keySet().retainAll(named);
        if (!before.equals(named)) {
            Hidden.call(made, "onActiveBrokersChange", named);
        }
    }

    /** Let a mean be of half a rate of messages and half a throughput each way. */
    private static void mean(TimeAverageMessageData mean, double rate, double throughput) {
        mean.setMsgRateIn(rate / 2);
        mean.setMsgRateOut(mean.getMsgRateIn());
        mean.setMsgThroughputIn(throughput / 2);
        mean.setMsgThroughputOut(mean.getMsgThroughputIn());
        mean.setNumSamples(mean.getMaxSamples());
    }

    /** Return the bundles to unload, and why nothing was if the class counts that; ages are in milliseconds. */
    Object shed(JsonNode request) throws Exception {
        settle(sets(request.path("made")));
        learn(request);
        Map<String, Long> bundles = stamps(request.path("unloaded"));
        hasShed = true;
        if (made instanceof LoadSheddingStrategy shedder) {
            data.getRecentlyUnloadedBundles().clear();
            data.getRecentlyUnloadedBundles().putAll(bundles);
            List<List<String>> unloads = new ArrayList<>();
            shedder.findBundlesForUnloading(data, conf).entries().forEach(e -> unloads.add(List.of(e.getValue(), e.getKey(), "", "")));
            return Map.of("unloads", unloads);
        }
        Map<String, Long> brokers = stamps(request.path("cooling")), before = manager.counts();
        List<List<String>> unloads = new ArrayList<>();
        for (UnloadDecision decision : ((NamespaceUnloadStrategy) made).findBundlesForUnloading(manager.context(), bundles, brokers)) {
            if (decision.getUnload() != null) {
                unloads.add(List.of(decision.getUnload().serviceUnit(), decision.getUnload().sourceBroker(),
                        decision.getUnload().destBroker().orElse(""), decision.getReason().toString()));
            }
        }
        // Their own order is that of a hash set, another in each run.
        unloads.sort(Comparator.comparing(unload -> unload.get(0)));
        Map<String, Long> counts = manager.counts();
        counts.keySet().removeIf(key -> counts.get(key).equals(before.get(key)));
        return Map.of("unloads", unloads, "counts", counts.keySet(), "cooling", new TreeSet<>(brokers.keySet()));
    }

    private Map<String, Long> stamps(JsonNode ages) throws Exception {
        Map<String, Long> stamps = new HashMap<>();
        States.each(ages, (key, age) -> stamps.put(key, clock - age.asLong()));
        return stamps;
    }

    /** Return where a bundle is placed, and the equals that it was drawn from. */
    Object place(JsonNode request) throws Exception {
        settle(sets(request.path("made")));
        learn(request);
        for (JsonNode pair : request.path("given")) {
            BrokerData broker = data.getBrokerData().get(pair.path(1).asText());
            if (broker != null) {
                broker.getPreallocatedBundleData().put(pair.path(0).asText(), States.bundle(data, pair.path(0).asText()));
            }
        }
        bundle = request.path("bundle").asText();
        before = new Memory(made);
        asked = sets(request.path("supposed"));
        for (Set<String> supposed : asked) {
            choose(supposed);
        }
        Set<String> candidates = ids(request.path("candidates"));
        asked.add(candidates);
        Optional<String> chosen = choose(candidates);
        Map<String, Object> answer = new TreeMap<>();
        answer.put("ties", chosen.isEmpty() ? List.of() : ties(chosen.get()));
        return answer;
    }

    private Optional<String> choose(Set<String> among) throws Exception {
        // Not the set itself: a class may change it.
        Set<String> brokers = new HashSet<>(among);
        return made instanceof BrokerSelectionStrategy placement
                ? placement.select(brokers, manager.broker().unit(bundle), manager.context())
                : Parts.choose((ModularLoadManagerStrategy) made, brokers, bundle, States.bundle(data, bundle), data, conf);
    }

    private Collection<?> ties(String chosen) throws ReflectiveOperationException {
        Object best = Hidden.has(made, "bestBrokers") ? Hidden.get(made, "bestBrokers") : List.of();
        Object held = best instanceof ThreadLocal<?> local ? local.get() : best;
        return held instanceof Collection<?> ties && ties.contains(chosen) ? ties : List.of(chosen);
    }

    @Override
    public void close() throws Exception {
        if (manager != null) {
            manager.close();
        }
    }
}
