package lookup.parts;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.google.common.hash.Hashing;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.pulsar.broker.PulsarService;
import org.apache.pulsar.broker.ServiceConfiguration;
import org.apache.pulsar.broker.loadbalance.LeaderElectionService;
import org.apache.pulsar.broker.loadbalance.LoadManager;
import org.apache.pulsar.broker.namespace.NamespaceService;
import org.apache.pulsar.broker.resources.PulsarResources;
import org.apache.pulsar.broker.service.BrokerService;
import org.apache.pulsar.client.admin.PulsarAdmin;
import org.apache.pulsar.common.naming.NamespaceBundle;
import org.apache.pulsar.common.naming.NamespaceBundleFactory;
import org.apache.pulsar.common.naming.NamespaceName;
import org.apache.pulsar.common.naming.TopicName;
import org.apache.pulsar.metadata.api.MetadataStoreConfig;
import org.apache.pulsar.metadata.api.coordination.CoordinationService;
import org.apache.pulsar.metadata.api.coordination.LockManager;
import org.apache.pulsar.metadata.api.extended.MetadataStoreExtended;
import org.apache.pulsar.policies.data.loadbalancer.NamespaceBundleStats;

/** The broker that leads, as far as a load manager asks for it: no network, and all that is stored is stored in memory. */
public class StandIn extends PulsarService {
    private ServiceConfiguration conf;
    private MetadataStoreExtended store;
    private PulsarResources resources;
    private Namespaces namespaces;
    private Service service;
    private Leader leader;
    private AtomicReference<LoadManager> managers;
    private PulsarAdmin admin;
    private ScheduledExecutorService idle;
    private CoordinationService locks;
    /** What the brokers report, by id: what a real one reads from the metadata store. */
    private Map<String, Object> reports;

    /** Never called: a broker's constructor starts threads and measures. */
    private StandIn(ServiceConfiguration conf) {
        super(conf);
    }

    /** Make one; {@code asked} is what its admin client calls. */
    static StandIn of(ServiceConfiguration conf, Object asked) throws Exception {
        StandIn broker = Hidden.bare(StandIn.class);
        broker.conf = conf;
        broker.reports = new TreeMap<>();
        broker.store = MetadataStoreExtended.create("memory:parts-" + System.identityHashCode(broker),
                MetadataStoreConfig.builder().build());
        broker.resources = resources(broker.store);
        broker.leader = Hidden.bare(Leader.class);
        // Whatever is to be done later or again and again is left undone: requests drive all.
        broker.idle = proxy(ScheduledExecutorService.class, (self, method, given) -> {
            if (method.getName().equals("execute")) {
                ((Runnable) given[0]).run();
            }
            return null;
        });
        broker.admin = proxy(PulsarAdmin.class, (self, method, given) -> asked);
        LockManager<?> lockManager = proxy(LockManager.class, (self, method, given) -> switch (method.getName()) {
            case "listLocks" -> CompletableFuture.completedFuture(List.copyOf(broker.reports.keySet()));
            case "readLock" -> CompletableFuture.completedFuture(Optional.ofNullable(broker.reports.get(
                    ((String) given[0]).replaceFirst(".*/", ""))));
            default -> null;
        });
        broker.locks = proxy(CoordinationService.class, (self, method, given) -> lockManager);
        broker.managers = new AtomicReference<>();
        broker.service = Hidden.bare(Service.class);
        broker.namespaces = Hidden.bare(Namespaces.class);
        broker.namespaces.topics = new ArrayList<>();
        Hidden.set(broker.namespaces, "pulsar", broker);
        Hidden.set(broker.namespaces, "config", conf);
        Hidden.set(broker.namespaces, "bundleFactory", NamespaceBundleFactory.createFactory(broker, Hashing.crc32()));
        return broker;
    }

    private static PulsarResources resources(MetadataStoreExtended store) throws ReflectiveOperationException {
        // The type of the first argument is another in 4.0.
        return Hidden.make(PulsarResources.class, store, store);
    }

    /** Make an object of an interface, all of whose methods are handled by one. */
    static <T> T proxy(Class<T> type, InvocationHandler handler) {
        return type.cast(Proxy.newProxyInstance(type.getClassLoader(), new Class<?>[] {type}, handler));
    }

    /** Store what a request has for the metadata store: policies of namespaces, and whatever else by its path. */
    void store(JsonNode request) throws Exception {
        States.each(request.path("namespaces"), (name, given) -> {
            ObjectNode policies = Main.JSON.createObjectNode();
            if (given.has("boundaries")) {
                policies.putObject("bundles").put("numBundles", given.path("boundaries").size() - 1)
                        .set("boundaries", given.path("boundaries"));
            }
            if (given.has("antiAffinityGroup")) {
                policies.set("namespaceAntiAffinityGroup", given.path("antiAffinityGroup"));
            }
            put("/admin/local-policies/" + name, policies);
            namespaces.getNamespaceBundleFactory().invalidateBundleCache(NamespaceName.get(name));
        });
        States.each(request.path("store"), this::put);
        request.path("topics").forEach(topic -> namespaces.topics.add(TopicName.get(topic.asText())));
    }

    private void put(String path, JsonNode value) throws Exception {
        store.put(path, Main.JSON.writeValueAsBytes(value), Optional.empty()).join();
    }

    /** Return the bundle of a name. */
    NamespaceBundle unit(String bundle) {
        int end = bundle.lastIndexOf('/');
        return namespaces.getNamespaceBundleFactory().getBundle(bundle.substring(0, end), bundle.substring(end + 1));
    }

    /** Have a load manager. */
    void manage(LoadManager manager) {
        managers.set(manager);
    }

    /** Have measured these figures of its bundles. */
    void measure(Map<String, NamespaceBundleStats> stats) {
        service.stats = stats;
    }

    /** Return what the brokers report, by id, to change. */
    Map<String, Object> reports() {
        return reports;
    }

    /** Close what was opened; the broker's own close would end much that was never begun. */
    void end() throws Exception {
        store.close();
    }

    @Override
    public ServiceConfiguration getConfiguration() {
        return conf;
    }

    @Override
    public ServiceConfiguration getConfig() {
        return conf;
    }

    @Override
    public MetadataStoreExtended getLocalMetadataStore() {
        return store;
    }

    @Override
    public PulsarResources getPulsarResources() {
        return resources;
    }

    @Override
    public CoordinationService getCoordinationService() {
        return locks;
    }

    @Override
    public NamespaceService getNamespaceService() {
        return namespaces;
    }

    @Override
    public BrokerService getBrokerService() {
        return service;
    }

    @Override
    public AtomicReference<LoadManager> getLoadManager() {
        return managers;
    }

    @Override
    public LeaderElectionService getLeaderElectionService() {
        return leader;
    }

    @Override
    public PulsarAdmin getAdminClient() {
        return admin;
    }

    @Override
    public ScheduledExecutorService getLoadManagerExecutor() {
        return idle;
    }

    @Override
    public ScheduledExecutorService getExecutor() {
        return idle;
    }

    @Override
    public String getBrokerId() {
        return "leader:8080";
    }

    /** Leads always. */
    static class Leader extends LeaderElectionService {
        private Leader() {
            super(null, null, null, null);
        }

        @Override
        public boolean isLeader() {
            return true;
        }

        @Override
        public void close() {
            // There is no election to leave.
        }
    }

    /** Owns nothing itself, but splits bundles with these topics. */
    static class Namespaces extends NamespaceService {
        private List<TopicName> topics;

        private Namespaces() {
            super(null);
        }

        @Override
        public Set<NamespaceBundle> getOwnedServiceUnits() {
            return Set.of();
        }

        @Override
        public CompletableFuture<List<String>> getOwnedTopicListForNamespaceBundle(NamespaceBundle bundle) {
            return CompletableFuture.completedFuture(topics.stream().filter(bundle::includes).map(TopicName::toString).toList());
        }
    }

    /** Has measured what it is told. */
    static class Service extends BrokerService {
        private Map<String, NamespaceBundleStats> stats;

        private Service() throws Exception {
            super(null, null);
        }

        @Override
        public Map<String, NamespaceBundleStats> getBundleStats() {
            return stats;
        }
    }
}
