import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import io.netty.buffer.Unpooled;
import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.BufferedReader;
import java.io.DataInputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.net.SocketAddress;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.Arrays;
import java.util.Map;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.regex.Pattern;
import org.apache.pulsar.client.api.Consumer;
import org.apache.pulsar.client.api.Message;
import org.apache.pulsar.client.api.Producer;
import org.apache.pulsar.client.api.PulsarClient;
import org.apache.pulsar.client.api.Schema;
import org.apache.pulsar.client.impl.ClientCnx;
import org.apache.pulsar.client.impl.ConsumerImpl;
import org.apache.pulsar.client.impl.MultiTopicsConsumerImpl;
import org.apache.pulsar.client.impl.ProducerImpl;
import org.apache.pulsar.client.impl.PulsarClientImpl;
import org.apache.pulsar.common.api.proto.BaseCommand;
import org.apache.pulsar.common.api.proto.CommandLookupTopicResponse;
import org.apache.pulsar.common.naming.TopicName;
import org.apache.pulsar.common.protocol.Commands;

/**
 * Java clients that are steered by commands, one JSON object per line of standard input; each is answered by one line of standard
 * output with the command's {@code id}, and {@code error} if it failed. Commands run side by side. It ends with standard input.
 */
public final class Driver {
    private static final ObjectMapper JSON = new ObjectMapper();

    /** A client with what it opened, by topic. */
    private record Client(PulsarClientImpl pulsar, Map<String, Producer<String>> producers, Map<String, Consumer<String>> consumers) {
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
        if (command.get("do").textValue().equals("burst")) {
            burst(command, answer);
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
            case "subscribe-pattern" -> {
                Map<String, String> properties = texts(command.get("properties"));
                client.consumers.put(topic, client.pulsar.newConsumer(Schema.STRING).topicsPattern(Pattern.compile(topic))
                        .properties(properties).patternAutoDiscoveryPeriod(1, TimeUnit.SECONDS)
                        .subscriptionName(command.get("subscription").textValue()).subscribe());
            }
            case "topics" -> {
                ArrayNode topics = answer.putArray("topics");
                ((MultiTopicsConsumerImpl<String>) client.consumers.get(topic)).getPartitions().stream().sorted().forEach(topics::add);
            }
            case "receive" -> {
                Consumer<String> consumer = client.consumers.get(topic);
                Message<String> message = consumer.receive(command.get("timeout_ms").intValue(), TimeUnit.MILLISECONDS);
                if (message == null) {
                    throw new IllegalStateException("no message within " + command.get("timeout_ms") + " ms");
                }
                consumer.acknowledge(message);
                answer.put("text", message.getValue());
                if (consumer instanceof ConsumerImpl<String> single) {
                    answerWithBroker(answer, single.getClientCnx());
                }
            }
            case "close" -> {
                clients.remove(name);
                client.pulsar.close();
            }
            default -> throw new IllegalArgumentException(
                    "no command " + command.get("do") + "; known: open, lookup, burst, send, subscribe, subscribe-pattern, topics, "
                    + "receive, close");
        }
    }

    private static Map<String, String> texts(JsonNode node) {
        return JSON.convertValue(node, JSON.getTypeFactory().constructMapType(Map.class, String.class, String.class));
    }

    private void open(String name, JsonNode command) throws Exception {
        PulsarClient pulsar = PulsarClient.builder().serviceUrl(command.get("url").textValue())
                .lookupProperties(texts(command.get("properties"))).build();
        clients.put(name, new Client((PulsarClientImpl) pulsar, new ConcurrentHashMap<>(), new ConcurrentHashMap<>()));
    }

    /** One LOOKUP; the client does not go on to the broker that it was given. */
    private void lookUp(Client client, String topic, ObjectNode answer) throws Exception {
        // The address tells this client from others in the log of the broker that was asked.
        SocketAddress local = client.pulsar.getConnectionToServiceUrl().join().ctx().channel().localAddress();
        answer.put("local", text(local));
        answer.put("broker_url", "pulsar://" + text(client.pulsar.getLookup()
                .getBroker(TopicName.get(topic)).join().getLogicalAddress()));
    }

    /**
     * Look topics up at one broker over a socket of its own, each {@code times} times and at most {@code window} at once: the
     * client's own work, and its rule to ask equal questions once, would be most of what is measured.
     */
    private static void burst(JsonNode command, ObjectNode answer) throws Exception {
        Map<String, String> properties = texts(command.get("properties"));
        JsonNode topics = command.get("topics");
        int count = topics.size() * command.get("times").intValue();
        byte[][] frames = new byte[count][];
        for (int i = 0; i < count; i++) {
            frames[i] = bytes(Commands.newLookup(topics.get(i % topics.size()).textValue(), null, false, i, properties));
        }
        long[] sent = new long[count];
        long[] took = new long[count];
        try (Socket socket = new Socket("127.0.0.1", command.get("port").intValue())) {
            socket.setTcpNoDelay(true);
            BufferedOutputStream out = new BufferedOutputStream(socket.getOutputStream());
            DataInputStream in = new DataInputStream(new BufferedInputStream(socket.getInputStream(), 1 << 16));
            out.write(bytes(Commands.newConnect("none", "", "burst")));
            out.flush();
            read(in);
            long began = System.nanoTime();
            for (int asked = 0, answered = 0; answered < count; ) {
                for (; asked < count && asked - answered < command.get("window").intValue(); asked++) {
                    sent[asked] = System.nanoTime();
                    out.write(frames[asked]);
                }
                out.flush();
                do {
                    BaseCommand given = read(in);
                    if (given.hasLookupTopicResponse()) {
                        CommandLookupTopicResponse response = given.getLookupTopicResponse();
                        int number = (int) response.getRequestId();
                        took[number] = System.nanoTime() - sent[number];
                        if (response.getResponse() != CommandLookupTopicResponse.LookupType.Connect) {
                            throw new IllegalStateException(topics.get(number % topics.size()) + " was answered "
                                    + response.getResponse() + (response.hasMessage() ? " " + response.getMessage() : ""));
                        }
                        answered++;
                    }
                } while (in.available() > 0);
            }
            answer.put("seconds", (System.nanoTime() - began) / 1e9);
        }
        ArrayNode micros = answer.putArray("micros");
        Arrays.stream(took).forEach(nanos -> micros.add(nanos / 1e3));
    }

    private static byte[] bytes(ByteBuf frame) {
        try {
            return ByteBufUtil.getBytes(frame);
        } finally {
            frame.release();
        }
    }

    private static BaseCommand read(DataInputStream in) throws IOException {
        byte[] frame = in.readNBytes(in.readInt());
        BaseCommand command = new BaseCommand();
        // Before a command stands its size, which is that of the frame without these four bytes.
        command.parseFrom(Unpooled.wrappedBuffer(frame, 4, frame.length - 4), frame.length - 4);
        return command;
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
