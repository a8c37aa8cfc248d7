package lookup.bridge;

import com.google.common.util.concurrent.Uninterruptibles;
import java.util.ArrayDeque;
import java.util.ArrayList;
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
     *  server takes. Every fourth look into the queue sends a batch: a busy broker records no more than 1,000 per second for long. */
    private static final int QUEUE = 10_000, LARGEST = 3_000, BATCH = 400, LOOKS_PER_SECOND = 10;

    /** A lookup as the server reads it: {@code ts} in microseconds since 1970, and the broker that was its answer, if any. */
    record Lookup(long ts, String topic, String bundle, Map<String, String> properties, String listener, boolean readOnly,
            boolean authoritative, String result, String answer, long latencyMicros) { }

    private final String broker;
    private final DecisionServer server;
    private final BlockingQueue<Lookup> queue = new LinkedBlockingQueue<>(QUEUE);
    /** Lookups that were not recorded, since the broker started. */
    private final AtomicLong dropped = new AtomicLong();
    private volatile int batched;
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
        return queue.size() + batched < QUEUE || dropped.incrementAndGet() == 0; // which is never so
    }

    /** Take in a lookup; return at once: the thread that brings it has a client who waits. */
    void offer(Lookup lookup) {
        int characters = 0;
        for (var property : lookup.properties == null ? Map.<String, String>of().entrySet() : lookup.properties.entrySet()) {
            characters += property.getKey().length() + property.getValue().length();
        }
        dropped.addAndGet(characters > LARGEST || !queue.offer(lookup) ? 1 : 0);
    }

    /** Send what is in the queue, for at most three seconds. */
    void close() {
        isClosed = true;
        Uninterruptibles.joinUninterruptibly(thread, 3, TimeUnit.SECONDS);
    }

    /** Send lookups in batches, which wait as JSON: the garbage collector of a busy broker would move each lookup by itself. */
    private void send() {
        var batches = new ArrayDeque<Map.Entry<Integer, byte[]>>();
        for (int looks = 1, atRisk = 0, wellUntil = 0; !isClosed || !queue.isEmpty() || !batches.isEmpty(); looks++, atRisk = 0) {
            try {
                Thread.sleep(isClosed ? 0 : 1_000 / LOOKS_PER_SECOND);
                while (queue.size() >= (isClosed || looks % LOOKS_PER_SECOND == 0 ? 1 : BATCH)) {
                    var batch = new ArrayList<Lookup>(BATCH);
                    atRisk = queue.drainTo(batch, BATCH);
                    batches.add(Map.entry(atRisk, LookupPolicyLoadManager.JSON.writeValueAsBytes(
                            Map.of("broker", broker, "dropped", dropped.get(), "lookups", batch))));
                    batched += atRisk;
                    atRisk = 0;
                }
                if (!batches.isEmpty() && (isClosed || looks % 4 == 0)) {
                    // Until the server is well, lookups wait: no batch is lost by trying. It is if it just took one.
                    if (looks >= wellUntil) {
                        server.record(null);
                    }
                    wellUntil = 0;
                    atRisk = batches.element().getKey();
                    batched -= atRisk;
                    server.record(batches.remove().getValue());
                    wellUntil = looks + LOOKS_PER_SECOND;
                }
            } catch (Exception e) {
                LOG.warn("Lookups are not sent until the decision server is well, {} were lost since the start: {}",
                        dropped.addAndGet(atRisk), e.toString());
                // A broker that ends tries once and then waits for no server that is away: upstream's tests give it five seconds.
                if (isClosed) {
                    return;
                }
                for (int tenths = 0; tenths < 20 && !isClosed; tenths++) {
                    Uninterruptibles.sleepUninterruptibly(100, TimeUnit.MILLISECONDS);
                }
            }
        }
    }
}
