import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.apache.bookkeeper.conf.ServerConfiguration;
import org.apache.pulsar.PulsarBrokerStarter;
import org.apache.pulsar.PulsarClusterMetadataSetup;
import org.apache.pulsar.zookeeper.LocalBookkeeperEnsemble;

/**
 * One server of a cluster for tests: {@code services FOLDER CLUSTER ZOOKEEPER_PORT BOOKIE_PORT} is ZooKeeper, a bookie and the
 * cluster's metadata, {@code broker FILE} a broker with that configuration. It ends as soon as its standard input does.
 */
public final class Node {
    private Node() {
    }

    public static void main(String[] arguments) throws Exception {
        endWithStandardInput();
        switch (arguments[0]) {
            case "services" -> startServices(Path.of(arguments[1]), arguments[2],
                    Integer.parseInt(arguments[3]), Integer.parseInt(arguments[4]));
            case "broker" -> PulsarBrokerStarter.main(new String[] {"-c", arguments[1]});
            default -> throw new IllegalArgumentException("not a server: " + arguments[0] + "; known: services, broker");
        }
    }

    /** The process that started this one holds the other end: however it ends, the kernel closes the pipe. */
    private static void endWithStandardInput() {
        Thread watch = new Thread(() -> {
            try {
                System.in.transferTo(java.io.OutputStream.nullOutputStream());
            } catch (IOException e) {
                System.err.println("Standard input broke: " + e);
            }
            Runtime.getRuntime().halt(1);
        }, "end-with-standard-input");
        watch.setDaemon(true);
        watch.start();
    }

    private static void startServices(Path folder, String cluster, int zooKeeperPort, int bookiePort) throws Exception {
        ServerConfiguration settings = new ServerConfiguration();
        // Nothing here outlives its tests: writes need not reach the disk before they are acknowledged.
        settings.setJournalSyncData(false);
        settings.setDiskUsageThreshold(0.99f);
        settings.setDiskUsageWarnThreshold(0.98f);
        settings.setProperty("dbStorage_writeCacheMaxSizeMb", 16);
        settings.setProperty("dbStorage_readAheadCacheMaxSizeMb", 8);
        settings.setProperty("dbStorage_rocksDB_blockCacheSize", 8 << 20);
        ensemble(zooKeeperPort, bookiePort, folder.resolve("zookeeper").toString(), folder.resolve("bookie").toString())
                .startStandalone(settings, false);
        String store = "zk:127.0.0.1:" + zooKeeperPort;
        PulsarClusterMetadataSetup.main(new String[] {
            "--cluster", cluster, "--metadata-store", store, "--configuration-metadata-store", store,
            // Brokers find each other in ZooKeeper; these addresses are for other clusters, and there are none.
            "--web-service-url", "http://127.0.0.1:1", "--broker-service-url", "pulsar://127.0.0.1:1"});
        Files.createFile(folder.resolve("ready"));
    }

    private static LocalBookkeeperEnsemble ensemble(int zooKeeperPort, int bookiePort, String zooKeeper, String bookie)
            throws ReflectiveOperationException {
        try {
            // Up to 4.x a port of BookKeeper's streams stands behind the bookie's, and without it the bookie's is always 4181.
            return LocalBookkeeperEnsemble.class.getConstructor(int.class, int.class, int.class, int.class, String.class,
                    String.class, boolean.class, String.class)
                    .newInstance(1, zooKeeperPort, bookiePort, 0, zooKeeper, bookie, true, "127.0.0.1");
        } catch (NoSuchMethodException e) {
            return new LocalBookkeeperEnsemble(1, zooKeeperPort, bookiePort, zooKeeper, bookie, true, "127.0.0.1");
        }
    }
}
