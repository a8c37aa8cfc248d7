package lookup.bridge;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import org.apache.pulsar.broker.loadbalance.extensions.ExtensibleLoadManagerImpl;
import org.apache.pulsar.broker.loadbalance.extensions.data.BrokerLookupData;
import org.apache.pulsar.broker.namespace.LookupOptions;
import org.apache.pulsar.common.naming.ServiceUnitId;
import sun.misc.Signal;

/**
 * Hands every call on to the bridge's class or to Pulsar's own, as a signal says, so that both are timed in one process:
 * two brokers differ by more than what is measured. For {@code benchmarks/live.py}, which sends the signals.
 */
@SuppressWarnings("removal")
public class Switched extends LookupPolicyLoadManager {
    private static final MethodHandle ASSIGN = stock("assign", Optional.class, ServiceUnitId.class, LookupOptions.class);
    private static final MethodHandle SELECT = stock("selectAsync", ServiceUnitId.class, Set.class, LookupOptions.class);
    private static volatile boolean isStock;

    static {
        Signal.handle(new Signal("URG"), signal -> {
            isStock = true;
            recorder().suspend();
        });
        Signal.handle(new Signal("WINCH"), signal -> {
            recorder().resume();
            isStock = false;
        });
    }

    /** The thread that sends what was recorded: it stands still while Pulsar's class is timed. */
    private static Thread recorder() {
        return Thread.getAllStackTraces().keySet().stream().filter(thread -> thread.getName().equals("lookup-recorder"))
                .findFirst().orElseThrow();
    }

    /** Return a method of Pulsar's class that the bridge's class overrides. */
    private static MethodHandle stock(String name, Class<?>... arguments) {
        try {
            return MethodHandles.privateLookupIn(LookupPolicyLoadManager.class, MethodHandles.lookup()).findSpecial(
                    ExtensibleLoadManagerImpl.class, name, MethodType.methodType(CompletableFuture.class, arguments),
                    LookupPolicyLoadManager.class);
        } catch (ReflectiveOperationException e) {
            throw new ExceptionInInitializerError(e);
        }
    }

    @Override
    @SuppressWarnings("unchecked")
    public CompletableFuture<Optional<BrokerLookupData>> assign(Optional<ServiceUnitId> topic, ServiceUnitId bundle,
            LookupOptions options) {
        LookupPolicyLoadManager self = this; // the exact type, by which the method is found
        try {
            return isStock ? (CompletableFuture) ASSIGN.invokeExact(self, topic, bundle, options)
                    : super.assign(topic, bundle, options);
        } catch (Throwable e) {
            throw new IllegalStateException(e);
        }
    }

    @Override
    @SuppressWarnings("unchecked")
    public CompletableFuture<Optional<String>> selectAsync(ServiceUnitId bundle, Set<String> excluded,
            LookupOptions options) {
        LookupPolicyLoadManager self = this; // the exact type, by which the method is found
        try {
            return isStock ? (CompletableFuture) SELECT.invokeExact(self, bundle, excluded, options)
                    : super.selectAsync(bundle, excluded, options);
        } catch (Throwable e) {
            throw new IllegalStateException(e);
        }
    }
}
