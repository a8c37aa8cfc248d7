package lookup.bridge;

import com.google.common.util.concurrent.Uninterruptibles;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Sends lookups to the decision server, in batches and from its own thread; drops and counts what its queue cannot hold. */
final class LookupRecorder {
    private static final Logger LOG = LoggerFactory.getLogger(LookupRecorder.class);
    /** Lookups that wait at most, characters of the properties of one, and lookups of a batch, which stay below the 4 MiB that a
     *  server takes. There is a pause before each: no more than 2,000 lookups per second cost a busy broker time for long. */
    private static final int QUEUE = 10_000, LARGEST = 3_000, BATCH = 400, PAUSE_MILLIS = 200;

    /** A lookup as the server reads it: {@code ts} in microseconds since 1970, and the broker that was its answer, if any. */
    record Lookup(long ts, String topic, String bundle, Map<String, String> properties, String listener, boolean readOnly,
            boolean authoritative, String result, String answer, long latencyMicros) { }

    private final String broker;
    private final DecisionServer server;
    private final BlockingQueue<Lookup> queue = new LinkedBlockingQueue<>(QUEUE);
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

    /** Return whether there is room for a lookup; if not, it counts as dropped. */
    boolean hasRoom() {
        boolean hasRoom = queue.remainingCapacity() > 0;
        if (!hasRoom) {
            dropped.incrementAndGet();
        }
        return hasRoom;
    }

    /** Take in a lookup; return at once: the thread that brings it has a client who waits. */
    void offer(Lookup lookup) {
        int characters = 0;
        for (var property : lookup.properties == null ? Map.<String, String>of().entrySet() : lookup.properties.entrySet()) {
            characters += property.getKey().length() + property.getValue().length();
        }
        if (characters > LARGEST || !queue.offer(lookup)) {
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
                server.record(null);
                for (int pauses = 1; !isClosed || !queue.isEmpty(); pauses++) {
                    Thread.sleep(isClosed ? 0 : PAUSE_MILLIS);
                    if ((queue.size() >= BATCH || pauses % 5 == 0 || isClosed) && queue.drainTo(batch, BATCH) > 0) {
                        server.record(LookupPolicyLoadManager.JSON.writeValueAsBytes(
                                Map.of("broker", broker, "dropped", dropped.get(), "lookups", batch)));
                        batch.clear();
                    }
                }
            } catch (Exception e) {
                LOG.warn("Lookups are not sent until the decision server is well, {} were lost since the start: {}",
                        dropped.addAndGet(batch.size()), e.toString());
                batch.clear();
                Uninterruptibles.sleepUninterruptibly(2, TimeUnit.SECONDS);
            }
        }
    }
}
