import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import org.apache.hadoop.yarn.conf.YarnConfiguration;
import org.apache.hadoop.yarn.server.MiniYARNCluster;

/** A resource manager and one node manager in this process, until its stdin ends; the folder gets `yarn-site.xml`. */
public final class YarnCluster {
    private YarnCluster() {}

    public static void main(String[] arguments) throws Exception {
        Path folder = Path.of(arguments[0]);
        System.setProperty("test.build.data", folder.resolve("work").toString());
        YarnConfiguration settings = new YarnConfiguration();
        settings.set("yarn.scheduler.capacity.root.queues", "default");
        settings.set("yarn.scheduler.capacity.root.default.capacity", "100");
        // One application master of 1 GiB is more than a tenth of this cluster, the default for all of them.
        settings.set("yarn.scheduler.capacity.maximum-am-resource-percent", "1");
        settings.setInt(YarnConfiguration.YARN_MINICLUSTER_NM_PMEM_MB, 8192);
        settings.setBoolean(YarnConfiguration.NM_VMEM_CHECK_ENABLED, false);
        // A disk that is nine tenths full makes a node unhealthy.
        settings.setFloat(YarnConfiguration.NM_MAX_PER_DISK_UTILIZATION_PERCENTAGE, 100);
        MiniYARNCluster cluster = new MiniYARNCluster("lookup", 1, 1, 1);
        cluster.init(settings);
        cluster.start();
        if (!cluster.waitForNodeManagersToConnect(60_000)) {
            throw new IllegalStateException("no node manager has connected");
        }
        try (OutputStream site = Files.newOutputStream(folder.resolve("yarn-site.xml"))) {
            cluster.getConfig().writeXml(site);
        }
        System.out.println("ready");
        System.in.read();
        // At once: the test that started it has ended, also where it was killed.
        Runtime.getRuntime().halt(0);
    }
}
