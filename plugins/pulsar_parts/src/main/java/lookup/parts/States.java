package lookup.parts;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.HashMap;
import java.util.Iterator;
import java.util.Map;
import java.util.Properties;
import org.apache.pulsar.broker.ServiceConfiguration;
import org.apache.pulsar.broker.loadbalance.LoadData;
import org.apache.pulsar.broker.loadbalance.impl.ModularLoadManagerImpl;
import org.apache.pulsar.common.configuration.PulsarConfigurationLoader;
import org.apache.pulsar.policies.data.loadbalancer.BrokerData;
import org.apache.pulsar.policies.data.loadbalancer.BundleData;
import org.apache.pulsar.policies.data.loadbalancer.LocalBrokerData;
import org.apache.pulsar.policies.data.loadbalancer.NamespaceBundleStats;
import org.apache.pulsar.policies.data.loadbalancer.ResourceUsage;
import org.apache.pulsar.policies.data.loadbalancer.SystemResourceUsage;
import org.apache.pulsar.policies.data.loadbalancer.TimeAverageBrokerData;
import org.apache.pulsar.policies.data.loadbalancer.TimeAverageMessageData;

/** Pulsar's objects from a request's JSON; what is missing there is 0 or empty. */
final class States {
    static final long MINUTE_MS = 60_000, LATE_MS = 2_000;

    private States() { }

    /** Return a configuration as a broker reads it from a file with these keys. */
    static ServiceConfiguration conf(JsonNode given) throws Exception {
        Properties keys = new Properties();
        each(given, (key, value) -> keys.setProperty(key, value.asText()));
        ServiceConfiguration conf = PulsarConfigurationLoader.create(keys, ServiceConfiguration.class);
        if (conf.getClusterName() == null) {
            conf.setClusterName("cluster");
        }
        return conf;
    }

    /** Return the load data of a modular manager whose memory is this state. */
    static LoadData loadData(JsonNode state) throws Exception {
        LoadData data = new LoadData();
        each(state.path("bundles"), (name, bundle) -> data.getBundleData().put(name, bundle(bundle)));
        each(state.path("brokers"), (id, broker) -> {
            BrokerData held = new BrokerData(report(broker));
            TimeAverageBrokerData means = new TimeAverageBrokerData();
            means.reset(held.getLocalData().getLastStats().keySet(), data.getBundleData(), unseen());
            held.setTimeAverageData(means);
            for (JsonNode name : state.path("preallocated").path(id)) {
                held.getPreallocatedBundleData().put(name.asText(), bundle(data, name.asText()));
            }
            data.getBrokerData().put(id, held);
        });
        long now = System.currentTimeMillis();
        each(state.path("recentlyUnloaded"), (name, age) -> data.getRecentlyUnloadedBundles().put(name,
                stamp(now, age.asDouble())));
        return data;
    }

    /** Return when something happened that is this many minutes old: as an unload takes time, somewhat later. */
    static long stamp(long now, double minutes) {
        return now - (long) (minutes * MINUTE_MS) + LATE_MS;
    }

    /** Return what is known of a bundle; if nothing, what a manager assumes. */
    static BundleData bundle(LoadData data, String name) {
        BundleData known = data.getBundleData().get(name);
        return known != null ? known : new BundleData(ModularLoadManagerImpl.NUM_SHORT_SAMPLES,
                ModularLoadManagerImpl.NUM_LONG_SAMPLES, unseen());
    }

    /** Return the report of a broker; rates that are not given are the sums of its bundles, as a broker reports them. */
    static LocalBrokerData report(JsonNode given) throws Exception {
        return report(given, stats(given.path("bundles")));
    }

    /** Return the report of a broker whose bundles have these figures. */
    static LocalBrokerData report(JsonNode given, Map<String, NamespaceBundleStats> bundles) throws Exception {
        LocalBrokerData report = new LocalBrokerData();
        report.update(usage(given), bundles);
        report.cleanDeltas();
        report.setMsgRateIn(given.path("msgRateIn").asDouble(report.getMsgRateIn()));
        report.setMsgRateOut(given.path("msgRateOut").asDouble(report.getMsgRateOut()));
        report.setMsgThroughputIn(given.path("msgThroughputIn").asDouble(report.getMsgThroughputIn()));
        report.setMsgThroughputOut(given.path("msgThroughputOut").asDouble(report.getMsgThroughputOut()));
        report.setBrokerVersionString(given.path("version").asText(null));
        report.setLoadManagerClassName(given.path("loadManagerClassName").asText(null));
        Hidden.set(report, "startTimestamp", given.path("startTimestamp").asLong());
        report.setLastUpdate(System.currentTimeMillis());
        return report;
    }

    /** Return the usages of a broker's resources. */
    static SystemResourceUsage usage(JsonNode broker) {
        SystemResourceUsage usage = new SystemResourceUsage();
        usage.setCpu(resource(broker.path("cpu")));
        usage.setMemory(resource(broker.path("memory")));
        usage.setDirectMemory(resource(broker.path("directMemory")));
        usage.setBandwidthIn(resource(broker.path("bandwidthIn")));
        usage.setBandwidthOut(resource(broker.path("bandwidthOut")));
        return usage;
    }

    /** Return bundles' figures by name; of a mere list of names all are 0. */
    static Map<String, NamespaceBundleStats> stats(JsonNode bundles) throws Exception {
        Map<String, NamespaceBundleStats> stats = new HashMap<>();
        if (bundles.isArray()) {
            bundles.forEach(name -> stats.put(name.asText(), new NamespaceBundleStats()));
        } else {
            each(bundles, (name, given) -> stats.put(name, stat(given)));
        }
        return stats;
    }

    /** Return one bundle's figures. */
    static NamespaceBundleStats stat(JsonNode given) {
        NamespaceBundleStats stats = new NamespaceBundleStats();
        stats.msgRateIn = given.path("msgRateIn").asDouble();
        stats.msgRateOut = given.path("msgRateOut").asDouble();
        stats.msgThroughputIn = given.path("msgThroughputIn").asDouble();
        stats.msgThroughputOut = given.path("msgThroughputOut").asDouble();
        stats.topics = given.path("topics").asLong();
        stats.producerCount = given.path("producerCount").asInt();
        stats.consumerCount = given.path("consumerCount").asInt();
        stats.cacheSize = given.path("cacheSize").asLong();
        return stats;
    }

    private static ResourceUsage resource(JsonNode pair) {
        return new ResourceUsage(pair.path(0).asDouble(), pair.path(1).asDouble());
    }

    private static BundleData bundle(JsonNode given) {
        BundleData bundle = new BundleData(ModularLoadManagerImpl.NUM_SHORT_SAMPLES, ModularLoadManagerImpl.NUM_LONG_SAMPLES);
        mean(bundle.getShortTermData(), given.path("short"));
        mean(bundle.getLongTermData(), given.path("long"));
        bundle.setTopics(given.path("topics").asInt());
        return bundle;
    }

    private static void mean(TimeAverageMessageData mean, JsonNode four) {
        mean.setMsgRateIn(four.path(0).asDouble());
        mean.setMsgRateOut(four.path(1).asDouble());
        mean.setMsgThroughputIn(four.path(2).asDouble());
        mean.setMsgThroughputOut(four.path(3).asDouble());
        mean.setNumSamples(mean.getMaxSamples());
    }

    private static NamespaceBundleStats unseen() {
        NamespaceBundleStats stats = new NamespaceBundleStats();
        stats.msgRateIn = ModularLoadManagerImpl.DEFAULT_MESSAGE_RATE;
        stats.msgRateOut = ModularLoadManagerImpl.DEFAULT_MESSAGE_RATE;
        stats.msgThroughputIn = ModularLoadManagerImpl.DEFAULT_MESSAGE_THROUGHPUT;
        stats.msgThroughputOut = ModularLoadManagerImpl.DEFAULT_MESSAGE_THROUGHPUT;
        return stats;
    }

    /** What is done with a key and its value. */
    interface Visit {
        /** Do it. */
        void to(String key, JsonNode value) throws Exception;
    }

    /** Visit the keys of an object, in their order. */
    static void each(JsonNode object, Visit visit) throws Exception {
        for (Iterator<Map.Entry<String, JsonNode>> i = object.fields(); i.hasNext();) {
            Map.Entry<String, JsonNode> entry = i.next();
            visit.to(entry.getKey(), entry.getValue());
        }
    }
}
