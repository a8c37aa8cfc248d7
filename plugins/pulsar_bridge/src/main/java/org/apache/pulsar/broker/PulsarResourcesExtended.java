package org.apache.pulsar.broker;

import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import org.apache.pulsar.common.api.proto.CommandGetTopicsOfNamespace;
import org.apache.pulsar.common.naming.NamespaceName;

/**
 * Pulsar's interface as brokers have it from 4.2 on (PIP-452), to compile against: everything else here is compiled against 4.0.
 * It stays out of the jar (see pom.xml), so that a broker of 4.2 uses its own.
 */
public interface PulsarResourcesExtended {
    CompletableFuture<List<String>> listTopicOfNamespace(NamespaceName namespace, CommandGetTopicsOfNamespace.Mode mode,
            Map<String, String> properties);

    void initialize(PulsarService pulsar);

    void close();
}
