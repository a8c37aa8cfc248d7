package lookup.bridge;

import com.google.common.util.concurrent.Uninterruptibles;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Sends lookups to the decision server, in batches and from its own thread; drops and counts what its queue cannot hold. */
final class LookupRecorder {
    private static final Logger LOG = LoggerFactory.getLogger(LookupRecorder.class);
    /** Lookups that wait at most, ten seconds of a thousand each and some 50 MB if all are of the largest size; characters of one, its
     *  topic twice and properties; and lookups of a batch, which stay below the 4 MiB that a server takes, escaped as well. */
    private static final int QUEUE = 10_000, LARGEST = 1_600, BATCH = 400;

    /** A lookup that was answered. It becomes JSON in the recorder's thread: the broker's threads have lookups to answer. */
    record Lookup(long ts, String topic, String bundle, Map<String, String> properties, String result, String answer,
            String listener, boolean readOnly, boolean authoritative, long latencyMicros) { }

    private final String broker;
    private final DecisionServer server;
    private final ArrayBlockingQueue<Lookup> queue = new ArrayBlockingQueue<>(QUEUE);
    /** Lookups that were not recorded, since the broker started. */
    private final AtomicLong dropped = new AtomicLong();
    private final Thread thread = new Thread(this::send, "lookup-recorder");
    private volatile boolean isClosed;

    LookupRecorder(String broker, DecisionServer server) {
        this.broker = broker;
        this.server = server;
        thread.setDaemon(true);
        thread.start();
    }

    /** Take in a lookup for the next batch; return at once. */
    void offer(Lookup lookup) {
        int length = 2 * lookup.topic.length() + String.valueOf(lookup.properties).length();
        if (length > LARGEST || !queue.offer(lookup)) {
            dropped.incrementAndGet();
        }
    }

    /** Send what is in the queue, for at most three seconds. */
    void close() {
        isClosed = true;
        Uninterruptibles.joinUninterruptibly(thread, 3, TimeUnit.SECONDS);
    }

    private void send() {
        List<Lookup> batch = new ArrayList<>();
        while (!isClosed || !queue.isEmpty()) {
            try {
                // Until the server is well, lookups stay in the queue: no batch is lost by trying.
                server.record(new byte[0]);
                while (!isClosed || !queue.isEmpty()) {
                    // A burst of lookups has the processors first. Who waits at the queue itself is woken for every lookup.
                    for (int looks = 0; looks < 10 && queue.size() < QUEUE / 2 && !isClosed; looks++) {
                        Thread.sleep(100);
                    }
                    while (queue.drainTo(batch, BATCH) > 0) {
                        server.record(LookupPolicyLoadManager.JSON.writeValueAsBytes(
                                Map.of("broker", broker, "dropped", dropped.get(), "lookups", batch)));
                        batch.clear();
                    }
                }
            } catch (IOException | InterruptedException | RuntimeException e) {
                LOG.warn("Lookups are not sent until the decision server is well, {} were lost since the start: {}",
                        dropped.addAndGet(batch.size()), e.toString());
                batch.clear();
                Uninterruptibles.sleepUninterruptibly(2, TimeUnit.SECONDS);
            }
        }
    }
}
