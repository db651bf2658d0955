// Worker.java: contends for mutexes with a client of the JVM, and writes down every time that it was the
// owner, for judge.py, as worker.c does:
//     NAME MUTEX NUMBER BEFORE_NS AFTER_NS
// There are no fencing tokens; NUMBER counts this process's tenures of the mutex. What a client is asked
// is what its users ask: isOwner, between the callbacks of acquisition and loss. A thread that has called
// stop() does not ask again until the client says that it is over. Lines of a second kind tell when the machine
// did not let the process run:
//     NAME - 0 BEGIN_NS END_NS
//
// Worker CLIENT ADDRESS TTL_MS TRANSITION_MS NAME FILE SEED HOLD_MS PAUSE_MS MUTEX...     until it is killed
// CLIENT is the class that has the method `Peer.Factory open(address, ttl, transition)`.

import java.io.FileOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Random;
import java.util.concurrent.atomic.AtomicLong;

/** One contender of one mutex. */
abstract class Peer {
    interface Factory {
        Peer create(String mutex) throws Exception;
    }

    /** Odd while it owns, by its callbacks. */
    private final AtomicLong changes = new AtomicLong();

    final void acquired() {
        changes.updateAndGet(n -> n | 1);
    }

    final void released() {
        changes.updateAndGet(n -> n + (n & 1));
    }

    /** The number of the present tenure, or 0. */
    final long tenure() {
        long n = changes.get();
        return (n & 1) == 1 && isOwner() && changes.get() == n ? n / 2 + 1 : 0;
    }

    abstract void start() throws Exception;

    /** Returns when no callback of this tenure is to come. */
    abstract void stop() throws Exception;

    abstract boolean isOwner();
}

public final class Worker {
    private static final long STALL_NS = 100_000_000;

    private final String name;
    private final FileOutputStream record;
    private final int holdMs, pauseMs;

    private Worker(String name, String file, int holdMs, int pauseMs) throws IOException {
        this.name = name;
        this.record = new FileOutputStream(file, true);
        this.holdMs = holdMs;
        this.pauseMs = pauseMs;
    }

    /** One write for each line, so that a kill -9 loses none. */
    private void write(String mutex, long tenure, long before, long after) throws IOException {
        String line = name + " " + mutex + " " + tenure + " " + before + " " + after + "\n";
        record.write(line.getBytes(StandardCharsets.US_ASCII));
    }

    /** A millisecond. */
    private void nap() throws Exception {
        long begin = System.nanoTime();
        Thread.sleep(1);
        long end = System.nanoTime();
        if (end - begin > STALL_NS) {
            write("-", 0, begin, end);
        }
    }

    /** Asks every millisecond until the tenure is over, or has lasted for long enough. */
    private void hold(Peer peer, String mutex, long tenure, int ms) throws Exception {
        long end = System.nanoTime() + ms * 1_000_000L;
        for (;;) {
            long before = System.nanoTime();
            boolean isOwner = peer.tenure() == tenure;
            long after = System.nanoTime();
            if (!isOwner) {
                return;
            }
            write(mutex, tenure, before, after);
            if (after > end) {
                return;
            }
            nap();
        }
    }

    private void contend(Peer peer, String mutex, Random random) {
        try {
            for (;;) {
                peer.start();
                long tenure;
                while ((tenure = peer.tenure()) == 0) {
                    nap();
                }
                hold(peer, mutex, tenure, random.nextInt(holdMs));
                peer.stop();
                Thread.sleep(random.nextInt(pauseMs));
            }
        } catch (Throwable e) {
            System.err.print(name + ": ");
            e.printStackTrace();
            Runtime.getRuntime().halt(1);
        }
    }

    public static void main(String[] args) throws Exception {
        Worker worker =
                new Worker(args[4], args[5], Integer.parseInt(args[7]), Integer.parseInt(args[8]));
        Peer.Factory factory = (Peer.Factory) Class.forName(args[0])
                .getDeclaredMethod("open", String.class, Duration.class, Duration.class)
                .invoke(null, args[1], Duration.ofMillis(Long.parseLong(args[2])),
                        Duration.ofMillis(Long.parseLong(args[3])));
        for (int i = 9; i < args.length; i++) {
            String mutex = args[i];
            Peer peer = factory.create(mutex);
            Random random = new Random(Long.parseLong(args[6]) + mutex.charAt(0));
            new Thread(() -> worker.contend(peer, mutex, random)).start();
        }
    }
}
