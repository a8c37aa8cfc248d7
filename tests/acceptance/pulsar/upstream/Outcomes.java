import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Arrays;
import org.testng.ITestListener;
import org.testng.ITestResult;

/** Writes a line for each test into the file that the system property {@code outcomes} names: how it ended, a blank, and the test. */
public final class Outcomes implements ITestListener {
    private final Path file = Path.of(System.getProperty("outcomes"));

    @Override
    public void onTestSuccess(ITestResult test) {
        write("passed", test);
    }

    @Override
    public void onTestFailure(ITestResult test) {
        write("failed", test);
    }

    @Override
    public void onTestSkipped(ITestResult test) {
        write("skipped", test);
    }

    private synchronized void write(String outcome, ITestResult test) {
        // With what its class was built with and what it was called with, less the addresses of objects.
        String line = outcome + " " + test.getMethod().getMethodName() + Arrays.deepToString(test.getFactoryParameters())
                + Arrays.deepToString(test.getParameters());
        try {
            Files.writeString(file, line.replaceAll("@[0-9a-f]+", "").replaceAll("\\R", " ") + "\n",
                    StandardOpenOption.CREATE, StandardOpenOption.APPEND);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
