package lookup.bridge;

import com.fasterxml.jackson.databind.node.ObjectNode;
import com.google.common.cache.CacheBuilder;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import org.apache.pulsar.broker.PulsarResourcesExtended;
import org.apache.pulsar.broker.PulsarServerException;
import org.apache.pulsar.broker.PulsarService;
import org.apache.pulsar.common.api.proto.CommandGetTopicsOfNamespace.Mode;
import org.apache.pulsar.common.naming.NamespaceName;
import org.apache.pulsar.common.util.FutureUtil;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Lists the topics of a namespace: for a client that sends properties the decision server does, for any other the broker itself.
 * A request that the server does not answer with a whole list fails: many clients give up the topics that a list lacks.
 */
public class LookupListing implements PulsarResourcesExtended {
    private static final Logger LOG = LoggerFactory.getLogger(LookupListing.class);
    private static final String WATCHER = "enableBrokerTopicListWatcher";

    private PulsarService pulsar;
    private DecisionServer server;
    /** Namespaces whose last list failed; not more than some, since a client may send any name. */
    private final Set<NamespaceName> failing = Collections.newSetFromMap(
            CacheBuilder.newBuilder().maximumSize(1000).<NamespaceName, Boolean>build().asMap());

    /** Read the settings; one that is missing or wrong keeps the broker from starting, with a sentence in its log. */
    @Override
    public void initialize(PulsarService pulsar) {
        this.pulsar = pulsar;
        Properties conf = pulsar.getConfiguration().getProperties();
        try {
            PolicySettings settings = PolicySettings.ofListing(conf);
            // A watcher knows no properties: it would subscribe a consumer to every topic that its pattern matches.
            if (!conf.getProperty(WATCHER, "true").strip().equalsIgnoreCase("false")) {
                throw new PulsarServerException(WATCHER + " should be false in broker.conf: lists by properties are not watched");
            }
            server = new DecisionServer(settings);
            LOG.info("Lists of topics by properties are those of the decision server {}", settings.server());
        } catch (PulsarServerException e) {
            throw new IllegalArgumentException(e.getMessage(), e);
        }
    }

    @Override
    public CompletableFuture<List<String>> listTopicOfNamespace(NamespaceName namespace, Mode mode, Map<String, String> properties) {
        if (properties == null || properties.isEmpty()) {
            return pulsar.getNamespaceService().getListOfTopics(namespace, mode);
        }
        ObjectNode question = LookupPolicyLoadManager.JSON.createObjectNode().put("broker", pulsar.getBrokerId())
                .put("namespace", namespace.toString()).put("mode", mode.name()).putPOJO("properties", properties);
        String persistent = "persistent://" + namespace + "/", other = "non-" + persistent;
        return server.list(question, switch (mode) {
            case PERSISTENT -> List.of(persistent);
            case NON_PERSISTENT -> List.of(other);
            case ALL -> List.of(persistent, other);
        }).whenComplete((topics, failure) -> {
            // The broker logs that a request failed and not why; clients ask again and again, so only the first is logged.
            if (failure == null ? failing.remove(namespace) : failing.add(namespace)) {
                LOG.warn("Lists of topics by properties of {} {}", namespace, failure == null ? "are answered again"
                        : "fail: " + FutureUtil.unwrapCompletionException(failure).getMessage());
            }
        });
    }

    @Override
    public void close() {
        // Nothing is open: connections to the server end by themselves.
    }
}
