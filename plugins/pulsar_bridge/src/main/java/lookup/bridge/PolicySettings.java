package lookup.bridge;

import java.io.IOException;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Locale;
import java.util.Properties;
import org.apache.pulsar.broker.PulsarServerException;

/** What an operator sets in {@code broker.conf}; {@code token} may be empty, {@code mode} is null for listings, which have none. */
record PolicySettings(Mode mode, String server, Duration timeout, String token) {
    private static final String TOKEN = "lookupPolicyToken";
    private static final String PRINTABLE = "[\\x21-\\x7e]";

    /** Record lookups; or ask the server as well and log its answer; or make its answer the owner. */
    enum Mode { RECORD, SHADOW, DECIDE }

    /** Read the settings; one that is missing or wrong is an exception with a sentence for the operator. */
    static PolicySettings of(Properties conf) throws PulsarServerException {
        String mode = text(conf, "lookupPolicyMode", "", "record|shadow|decide", "record, shadow or decide");
        return of(Mode.valueOf(mode.toUpperCase(Locale.ROOT)), conf, "lookupPolicyTimeoutMillis", "100");
    }

    /** Read the settings of listings: the same server and token, and a time-out of their own, since no bundle waits for them. */
    static PolicySettings ofListing(Properties conf) throws PulsarServerException {
        return of(null, conf, "lookupListingTimeoutMillis", "5000");
    }

    private static PolicySettings of(Mode mode, Properties conf, String timeout, String absent) throws PulsarServerException {
        String server = text(conf, "lookupPolicyServer", "", "https?://([A-Za-z0-9.-]+|\\[[\\w:]+])(:[0-9]{1,5})?(/[\\w./-]*)?",
                "the URL of a decision server, such as http://127.0.0.1:8900");
        String millis = text(conf, timeout, absent, "[1-9][0-9]{0,3}", "a whole number from 1 to 9999");
        return new PolicySettings(mode, server.replaceFirst("/+$", ""),
                Duration.ofMillis(Integer.parseInt(millis)), token(conf));
    }

    /** Return the token; one in a file, {@code file:///PATH}, is in no log of a broker that writes its settings there. */
    private static String token(Properties conf) throws PulsarServerException {
        String given = text(conf, TOKEN, "", PRINTABLE + "*", "printable ASCII without blanks");
        if (!given.startsWith("file:")) {
            return given;
        }
        String token;
        try {
            token = Files.readString(Path.of(URI.create(given))).strip();
        } catch (IOException | IllegalArgumentException e) {
            throw new PulsarServerException(TOKEN + " is " + given + " in broker.conf, and should be the URL of a file, such as "
                    + "file:///etc/pulsar/lookup-token, that the broker can read: " + e);
        }
        if (!token.matches(PRINTABLE + "+")) {
            throw new PulsarServerException("what " + given + " has, " + TOKEN + " of broker.conf, is no token: it should be "
                    + "printable ASCII without blanks");
        }
        return token;
    }

    private static String text(Properties conf, String key, String absent, String form, String right) throws PulsarServerException {
        // Java keeps blanks at the end of a value, and Pulsar takes an empty value for none.
        String given = conf.getProperty(key, "").strip();
        String value = given.isEmpty() ? absent : given;
        if (!value.matches(form)) {
            // The sentence goes into the broker's log, the token must not.
            String wrong = given.isEmpty() ? "missing" : key.equals(TOKEN) ? "malformed" : "'" + given + "'";
            throw new PulsarServerException(key + " is " + wrong + " in broker.conf, and should be " + right);
        }
        return value;
    }
}
