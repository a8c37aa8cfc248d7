package lookup.parts;

import com.google.common.hash.Hashing;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Proxy;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ScheduledExecutorService;
import org.apache.pulsar.broker.PulsarService;
import org.apache.pulsar.broker.ServiceConfiguration;
import org.apache.pulsar.broker.loadbalance.LeaderElectionService;
import org.apache.pulsar.broker.namespace.NamespaceService;
import org.apache.pulsar.broker.resources.PulsarResources;
import org.apache.pulsar.client.admin.PulsarAdmin;
import org.apache.pulsar.common.naming.NamespaceBundle;
import org.apache.pulsar.common.naming.NamespaceBundleFactory;
import org.apache.pulsar.common.naming.NamespaceName;
import org.apache.pulsar.common.policies.data.BundlesData;
import org.apache.pulsar.metadata.api.MetadataStoreConfig;
import org.apache.pulsar.metadata.api.coordination.CoordinationService;
import org.apache.pulsar.metadata.api.coordination.LockManager;
import org.apache.pulsar.metadata.api.extended.MetadataStoreExtended;

/** The broker that leads, as far as a load manager asks for it: no network, and all that is stored is stored in memory. */
public class StandIn extends PulsarService {
    private ServiceConfiguration conf;
    private MetadataStoreExtended store;
    private PulsarResources resources;
    private Namespaces namespaces;
    private Leader leader;
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
        broker.namespaces = Hidden.bare(Namespaces.class);
        broker.namespaces.bundles = NamespaceBundleFactory.createFactory(broker, Hashing.crc32());
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

    /** Store a value as Pulsar does, as JSON under its path. */
    void put(String path, Object value) throws Exception {
        store.put(path, Main.JSON.writeValueAsBytes(value), Optional.empty()).join();
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

    /** Owns nothing itself. */
    static class Namespaces extends NamespaceService {
        private NamespaceBundleFactory bundles;

        private Namespaces() {
            super(null);
        }

        @Override
        public NamespaceBundleFactory getNamespaceBundleFactory() {
            return bundles;
        }

        @Override
        public Set<NamespaceBundle> getOwnedServiceUnits() {
            return Set.of();
        }

        @Override
        public int getBundleCount(NamespaceName namespace) throws Exception {
            return bundles.getBundles(namespace).size();
        }
    }
}
