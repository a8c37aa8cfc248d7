import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.net.InetSocketAddress;
import java.net.SocketAddress;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.Map;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import org.apache.pulsar.client.api.Consumer;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.Schema;
import org.apache.pulsar.client.impl.ClientCnx;
import org.apache.pulsar.client.impl.ConsumerImpl;
import org.apache.pulsar.client.impl.ProducerImpl;
import org.apache.pulsar.client.impl.PulsarClientImpl;
import org.apache.pulsar.common.naming.TopicName;

/**
 * Java clients that are steered by commands, one JSON object per line of standard input; each is answered by one line of standard
 * output with the command's {@code id}, and {@code error} if it failed. Commands run side by side. It ends with standard input.
 */
public final class Driver {
    private static final ObjectMapper JSON = new ObjectMapper();

    /** A client with what it opened, by topic. */
    private record Client(PulsarClientImpl pulsar, Map<String, String> properties,
            Map<String, Producer<String>> producers, Map<String, Consumer<String>> consumers) {
    }

    private final Map<String, Client> clients = new ConcurrentHashMap<>();

    private Driver() {
    }

    public static void main(String[] arguments) throws Exception {
        PrintStream answers = System.out;
        // Whatever a library prints must not be taken for an answer.
        System.setOut(System.err);
        Driver driver = new Driver();
        ExecutorService workers = Executors.newCachedThreadPool();
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = commands.readLine(); line != null; line = commands.readLine()) {
            JsonNode command = JSON.readTree(line);
            workers.execute(() -> {
                String answer = driver.answer(command).toString();
                synchronized (answers) {
                    answers.println(answer);
                }
            });
        }
        // Clients retry until they are closed, for up to half a minute; nobody waits for them any more.
        Runtime.getRuntime().halt(0);
    }

    private ObjectNode answer(JsonNode command) {
        ObjectNode answer = JSON.createObjectNode();
        answer.set("id", command.get("id"));
        Instant began = Instant.now();
        answer.put("ts", ChronoUnit.MICROS.between(Instant.EPOCH, began));
        try {
            carryOut(command, answer);
        } catch (Exception e) {
            Throwable cause = e instanceof CompletionException && e.getCause() != null ? e.getCause() : e;
            answer.put("error", cause.toString());
        }
        return answer.put("took_us", ChronoUnit.MICROS.between(began, Instant.now()));
    }

    private void carryOut(JsonNode command, ObjectNode answer) throws Exception {
        String name = command.get("client").textValue();
        if (command.get("do").textValue().equals("open")) {
            open(name, command);
            return;
        }
        Client client = clients.get(name);
        if (client == null) {
            throw new IllegalArgumentException("no client named " + name);
        }
        String topic = command.path("topic").textValue();
        switch (command.get("do").textValue()) {
            case "lookup" -> lookUp(client, topic, answer);
            case "send" -> {
                Producer<String> producer = producer(client, topic);
                producer.send(command.get("text").textValue());
                answerWithBroker(answer, ((ProducerImpl<String>) producer).getClientCnx());
            }
            case "subscribe" -> {
                Consumer<String> consumer = client.pulsar.newConsumer(Schema.STRING).topic(topic)
                        .subscriptionName(command.get("subscription").textValue()).subscribe();
                client.consumers.put(topic, consumer);
                answerWithBroker(answer, ((ConsumerImpl<String>) consumer).getClientCnx());
            }
            case "receive" -> {
                Consumer<String> consumer = client.consumers.get(topic);
                Message<String> message = consumer.receive(command.get("timeout_ms").intValue(), TimeUnit.MILLISECONDS);
                if (message == null) {
                    throw new IllegalStateException("no message within " + command.get("timeout_ms") + " ms");
                }
                consumer.acknowledge(message);
                answer.put("text", message.getValue());
                answerWithBroker(answer, ((ConsumerImpl<String>) consumer).getClientCnx());
            }
            case "close" -> {
                clients.remove(name);
                client.pulsar.close();
            }
            default -> throw new IllegalArgumentException(
                    "no command " + command.get("do") + "; known: open, lookup, send, subscribe, receive, close");
        }
    }

    private void open(String name, JsonNode command) throws Exception {
        Map<String, String> properties = JSON.convertValue(command.get("properties"),
                JSON.getTypeFactory().constructMapType(Map.class, String.class, String.class));
        PulsarClient pulsar = PulsarClient.builder().serviceUrl(command.get("url").textValue())
                .lookupProperties(properties).build();
        clients.put(name, new Client((PulsarClientImpl) pulsar, properties,
                new ConcurrentHashMap<>(), new ConcurrentHashMap<>()));
    }

    /** One LOOKUP; the client does not go on to the broker that it was given. */
    private void lookUp(Client client, String topic, ObjectNode answer) throws Exception {
        // The address tells this client from others in the log of the broker that was asked.
        SocketAddress local = client.pulsar.getConnectionToServiceUrl().join().ctx().channel().localAddress();
        answer.put("local", text(local));
        answer.put("broker_url", "pulsar://" + text(client.pulsar.getLookup()
                .getBroker(TopicName.get(topic), client.properties).join().getLogicalAddress()));
    }

    private Producer<String> producer(Client client, String topic) throws Exception {
        Producer<String> producer = client.producers.get(topic);
        if (producer == null) {
            producer = client.pulsar.newProducer(Schema.STRING).topic(topic).create();
            client.producers.put(topic, producer);
        }
        return producer;
    }

    private static void answerWithBroker(ObjectNode answer, ClientCnx connection) {
        // A client that lost its broker a moment ago has no connection.
        if (connection != null) {
            answer.put("local", text(connection.ctx().channel().localAddress()));
            answer.put("broker_url", "pulsar://" + text(connection.ctx().channel().remoteAddress()));
        }
    }

    private static String text(SocketAddress address) {
        return ((InetSocketAddress) address).getHostString() + ":" + ((InetSocketAddress) address).getPort();
    }
}
