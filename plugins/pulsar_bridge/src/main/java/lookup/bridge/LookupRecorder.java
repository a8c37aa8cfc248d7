package lookup.bridge;

import static org.apache.commons.lang3.StringUtils.trimToNull;

import com.google.common.util.concurrent.Uninterruptibles;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.pulsar.broker.namespace.LookupOptions;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Sends lookups to the decision server, in batches and from its own thread; drops and counts what its queue cannot hold. */
final class LookupRecorder {
    private static final Logger LOG = LoggerFactory.getLogger(LookupRecorder.class);
    /** Lookups that wait at most, characters of one, and lookups of a batch, which stay below the 4 MiB that a server takes. There
     *  is a pause between batches, so that a busy broker spends time on no more than 4,000 lookups per second for long. */
    private static final int QUEUE = 10_000, LARGEST = 3_000, BATCH = 400, PAUSE_MILLIS = 100;

    private final String broker;
    private final DecisionServer server;
    /** As JSON: with all that a lookup refers to, to keep it costs the garbage collector more than to write it. */
    private final ArrayBlockingQueue<String> queue = new ArrayBlockingQueue<>(QUEUE);
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

    /** Take in a lookup, and the broker that was its answer if there was one; return at once. */
    void offer(long ts, String topic, String bundle, LookupOptions options, String answer, long latencyMicros) {
        String json = LookupPolicyLoadManager.JSON.createObjectNode().put("ts", ts).put("topic", topic).put("bundle", bundle)
                .put("result", answer == null ? "failed" : "connect").put("answer", answer).putPOJO("properties", options.getProperties())
                .put("listener", trimToNull(options.getAdvertisedListenerName())).put("readOnly", options.isReadOnly())
                .put("authoritative", options.isAuthoritative()).put("latencyMicros", latencyMicros).toString();
        if (json.length() > LARGEST || !queue.offer(json)) {
            dropped.incrementAndGet();
        }
    }

    /** Send what is in the queue, for at most three seconds. */
    void close() {
        isClosed = true;
        Uninterruptibles.joinUninterruptibly(thread, 3, TimeUnit.SECONDS);
    }

    private void send() {
        List<String> batch = new ArrayList<>();
        while (!isClosed || !queue.isEmpty()) {
            try {
                // Until the server is well, lookups stay in the queue: no batch is lost by trying.
                server.record("");
                for (int pauses = 1; !isClosed || !queue.isEmpty(); pauses++) {
                    Thread.sleep(isClosed ? 0 : PAUSE_MILLIS);
                    if ((queue.size() >= BATCH || pauses % 10 == 0 || isClosed) && queue.drainTo(batch, BATCH) > 0) {
                        server.record("{\"broker\":\"" + broker + "\",\"dropped\":" + dropped + ",\"lookups\":" + batch + "}");
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
