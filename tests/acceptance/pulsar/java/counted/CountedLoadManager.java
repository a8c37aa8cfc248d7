import java.io.IOException;
import java.lang.reflect.Field;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import lookup.bridge.LookupPolicyLoadManager;
import org.apache.pulsar.broker.PulsarServerException;
import org.apache.pulsar.broker.loadbalance.extensions.ExtensibleLoadManagerImpl;
import org.apache.pulsar.broker.loadbalance.extensions.data.BrokerLookupData;
import org.apache.pulsar.broker.loadbalance.extensions.reporter.BrokerLoadDataReporter;
import org.apache.pulsar.broker.namespace.LookupOptions;
import org.apache.pulsar.common.naming.ServiceUnitId;

/**
 * The load manager of the bridge, which writes into a file how many lookups it has answered, and reports no load while another
 * file is there: both in the folder {@code countedFolder} of {@code broker.conf}.
 */
public final class CountedLoadManager extends LookupPolicyLoadManager {
    private final AtomicLong answered = new AtomicLong();

    @Override
    public void start() throws PulsarServerException {
        super.start();
        Thread thread = new Thread(this::work, "counted");
        thread.setDaemon(true);
        thread.start();
    }

    @Override
    public CompletableFuture<Optional<BrokerLookupData>> assign(Optional<ServiceUnitId> topic, ServiceUnitId bundle,
            LookupOptions options) {
        return super.assign(topic, bundle, options)
                .whenComplete((owner, failure) -> answered.addAndGet(topic.isPresent() ? 1 : 0));
    }

    private void work() {
        Path folder = Path.of(pulsar.getConfiguration().getProperties().getProperty("countedFolder"));
        boolean isReporting = true;
        try {
            while (true) {
                Thread.sleep(100);
                Path written = Files.writeString(folder.resolve("answered.new"), answered.toString());
                Files.move(written, folder.resolve("answered"), StandardCopyOption.ATOMIC_MOVE);
                if (isReporting == Files.exists(folder.resolve("no-reports"))) {
                    isReporting = !isReporting;
                    report(isReporting);
                }
            }
        } catch (IOException | InterruptedException | ReflectiveOperationException e) {
            throw new IllegalStateException(e);
        }
    }

    /** Stop the task of the stock load manager, or begin it again. */
    private void report(boolean isReporting) throws ReflectiveOperationException {
        Field task = ExtensibleLoadManagerImpl.class.getDeclaredField("brokerLoadDataReportTask");
        Field reporter = ExtensibleLoadManagerImpl.class.getDeclaredField("brokerLoadDataReporter");
        task.setAccessible(true);
        reporter.setAccessible(true);
        if (isReporting) {
            BrokerLoadDataReporter stock = (BrokerLoadDataReporter) reporter.get(this);
            task.set(this, pulsar.getLoadManagerExecutor().scheduleAtFixedRate(() -> stock.reportAsync(false), 0, 2,
                    TimeUnit.SECONDS));
        } else {
            ((Future<?>) task.get(this)).cancel(false);
        }
    }
}
