import static net.bytebuddy.matcher.ElementMatchers.named;
import static net.bytebuddy.matcher.ElementMatchers.takesArguments;

import java.lang.instrument.Instrumentation;
import java.util.Properties;
import net.bytebuddy.agent.builder.AgentBuilder;
import net.bytebuddy.asm.Advice;

/**
 * An agent that puts our load manager where a test asks for the stock one, with what `broker.conf` says of it: the test itself is
 * left as upstream has built it. Settings are system properties that begin with {@code lookupPolicy}.
 */
public final class OurClass {
    private OurClass() {
    }

    public static void premain(String none, Instrumentation jvm) {
        new AgentBuilder.Default().with(AgentBuilder.Listener.StreamWriting.toSystemError().withErrorsOnly())
                .type(named("org.apache.pulsar.broker.ServiceConfiguration"))
                .transform((type, description, loader, module, domain) -> type
                        .visit(Advice.to(Named.class).on(named("getLoadManagerClassName")))
                        .visit(Advice.to(Configured.class).on(named("getProperties"))))
                .type(named("org.apache.commons.lang3.reflect.FieldUtils"))
                .transform((type, description, loader, module, domain) -> type
                        .visit(Advice.to(Looked.class).on(named("getDeclaredField").and(takesArguments(3)))))
                .installOn(jvm);
    }

    // The bodies below are copied into the methods that they advise, so they call nothing of this class.

    static final class Named {
        @Advice.OnMethodExit
        static void exit(@Advice.Return(readOnly = false) String answer) {
            if ("org.apache.pulsar.broker.loadbalance.extensions.ExtensibleLoadManagerImpl".equals(answer)) {
                answer = "lookup.bridge.LookupPolicyLoadManager";
            }
        }
    }

    static final class Configured {
        @Advice.OnMethodExit
        static void exit(@Advice.Return Properties answer) {
            for (String key : System.getProperties().stringPropertyNames()) {
                if (key.startsWith("lookupPolicy")) {
                    answer.setProperty(key, System.getProperty(key));
                }
            }
        }
    }

    /** A test reads and writes private fields of the stock class, and looks for them in the class of the object alone. */
    static final class Looked {
        @Advice.OnMethodEnter
        static void enter(@Advice.Argument(value = 0, readOnly = false) Class<?> owner) {
            if (owner.getName().equals("lookup.bridge.LookupPolicyLoadManager")) {
                owner = owner.getSuperclass();
            }
        }
    }
}
