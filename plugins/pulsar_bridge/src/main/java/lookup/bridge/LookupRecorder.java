package lookup.bridge;

import com.google.common.util.concurrent.Uninterruptibles;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.TimeUnit;
import java.util.function.LongFunction;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Numbers lookups and sends them to the decision server, in batches and from its own thread, until they are taken. What has no
 *  room, or is not taken, is left out: the server sees the gap between the numbers. */
final class LookupRecorder {
    private static final Logger LOG = LoggerFactory.getLogger(LookupRecorder.class);
    /** Lookups that wait at most, characters of the properties of one, and lookups of a batch, which stay below the 4 MiB that a
     *  server takes. Every fourth look into the queue sends a batch: a busy broker records no more than 1,000 per second for long. */
    private static final int QUEUE = 10_000, LARGEST = 3_000, BATCH = 400, LOOKS_PER_SECOND = 10;

    /** A lookup as the server reads it: {@code ts} in microseconds since 1970, and the broker that was its answer, if any. */
    record Lookup(long number, long ts, String topic, String bundle, Map<String, String> properties, String listener,
            boolean readOnly, boolean authoritative, String result, String answer, long latencyMicros) { }

    /** Lookups in the form in which the server reads them. */
    private record Batch(String broker, String start, long upTo, long dropped, List<Lookup> lookups) { }

    private final String broker;
    private final DecisionServer server;
    /** Of this start of the broker, to which the numbers belong. */
    private final String start = UUID.randomUUID().toString();
    // Guarded by this object, so that lookups are in the queue in the order of their numbers.
    private final ArrayDeque<Lookup> queue = new ArrayDeque<>();
    /** The latest number, the one up to which there are batches, and how many lookups are or were in these. */
    private long numbered, told, kept;
    /** Lookups of batches that wait. */
    private int batched;
    private final Thread thread = new Thread(this::send, "lookup-recorder");
    private volatile boolean isClosed;

    LookupRecorder(String broker, DecisionServer server) {
        this.broker = broker;
        this.server = server;
        thread.setDaemon(true);
        thread.start();
    }

    /** Return whether there is room for a lookup; if not, its number is left out. */
    synchronized boolean hasRoom() {
        boolean hasRoom = queue.size() + batched < QUEUE;
        numbered += hasRoom ? 0 : 1;
        return hasRoom;
    }

    /** Take in the lookup that is made with its number; return at once: the thread that brings it has a client who waits. */
    synchronized void offer(Map<String, String> properties, LongFunction<Lookup> lookup) {
        int characters = 0;
        for (var property : properties == null ? Map.<String, String>of().entrySet() : properties.entrySet()) {
            characters += property.getKey().length() + property.getValue().length();
        }
        numbered++;
        if (characters <= LARGEST && queue.size() + batched < QUEUE) {
            queue.add(lookup.apply(numbered));
        }
    }

    /** Send what is in the queue, for at most three seconds. */
    void close() {
        isClosed = true;
        Uninterruptibles.joinUninterruptibly(thread, 3, TimeUnit.SECONDS);
    }

    /** Send batches, which wait as JSON: the garbage collector of a busy broker would move each lookup by itself. */
    private void send() {
        var batches = new ArrayDeque<Map.Entry<Integer, byte[]>>();
        boolean hasFailed = false;
        for (int looks = 1;; looks++) {
            try {
                Thread.sleep(isClosed ? 0 : 1_000 / LOOKS_PER_SECOND);
                boolean isClosing = isClosed;
                for (Batch batch; (batch = next(batches.isEmpty() && (isClosing || looks % LOOKS_PER_SECOND == 0))) != null;) {
                    batches.add(Map.entry(batch.lookups.size(), LookupPolicyLoadManager.JSON.writeValueAsBytes(batch)));
                }
                if (isClosing && batches.isEmpty()) {
                    return;
                }
                if (!batches.isEmpty() && (isClosing || looks % 4 == 0)) {
                    if (hasFailed) {
                        server.record(null);
                    }
                    boolean isTaken = server.record(batches.element().getValue());
                    remove(batches.remove().getKey(), isTaken);
                    hasFailed = false;
                }
            } catch (Exception e) {
                hasFailed = true;
                LOG.warn("Lookups wait until the decision server takes them, {} were lost since the start: {}", lost(), e.toString());
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

    /** Take a batch out of the queue, null if there is not enough for one; it has no lookup if all that is new was left out. */
    private synchronized Batch next(boolean isAnyEnough) {
        if (queue.size() < BATCH && !(isAnyEnough && told < numbered)) {
            return null;
        }
        var lookups = new ArrayList<Lookup>(BATCH);
        while (lookups.size() < BATCH && !queue.isEmpty()) {
            lookups.add(queue.remove());
        }
        told = queue.isEmpty() ? numbered : lookups.get(lookups.size() - 1).number;
        kept += lookups.size();
        batched += lookups.size();
        return new Batch(broker, start, told, told - kept, lookups);
    }

    private synchronized void remove(int size, boolean isTaken) {
        batched -= size;
        kept -= isTaken ? 0 : size;
    }

    private synchronized long lost() {
        return numbered - kept - queue.size();
    }
}
