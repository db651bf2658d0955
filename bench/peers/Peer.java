// Peer.java: the figures of a peer that is a Java library; see compare. A lock is made by the class that the
// first argument names, for each of two threads.
//
// Peer CLASS URL SECONDS

import java.util.Arrays;
import java.util.concurrent.Semaphore;

public final class Peer {
    interface Lock {
        void acquire() throws Exception;

        void release() throws Exception;
    }

    interface Factory {
        Lock open(String host, int port) throws Exception;
    }

    private static final int WARM_UP = 2000; // until the compiler has seen enough of it
    private static final int SAMPLES_MAX = 1000000;
    private static volatile long gotAt;

    private static double pairsPerSecond(Lock one, double seconds) throws Exception {
        long end = System.nanoTime() + (long) (seconds * 1e9);
        for (int i = 0; i < WARM_UP && System.nanoTime() < end; i++) {
            one.acquire();
            one.release();
        }
        long began = System.nanoTime();
        long pairs = 0;
        do {
            one.acquire();
            one.release();
            pairs++;
        } while (System.nanoTime() - began < seconds * 1e9);
        return pairs * 1e9 / (System.nanoTime() - began);
    }

    private static double handoverMicros(Lock one, Lock other, double seconds) throws Exception {
        Semaphore go = new Semaphore(0);
        Semaphore done = new Semaphore(0);
        Thread waiter = new Thread(() -> {
            try {
                for (;;) {
                    go.acquire();
                    other.acquire();
                    gotAt = System.nanoTime();
                    other.release();
                    done.release();
                }
            } catch (Exception e) {
                throw new IllegalStateException(e);
            }
        });
        waiter.setDaemon(true);
        waiter.start();
        double[] took = new double[SAMPLES_MAX];
        int samples = 0;
        long end = System.nanoTime() + (long) (seconds * 1e9);
        while ((System.nanoTime() < end || samples == 0) && samples < SAMPLES_MAX) {
            one.acquire();
            go.release();
            Thread.sleep(3);
            long began = System.nanoTime();
            one.release();
            done.acquire();
            took[samples++] = (gotAt - began) / 1e3;
        }
        Arrays.sort(took, 0, samples);
        return took[samples / 2];
    }

    public static void main(String[] args) throws Exception {
        Factory factory = (Factory) Class.forName(args[0]).getDeclaredConstructor().newInstance();
        String[] server = args[1].replaceFirst("^[a-z]+://", "").replaceFirst("[/?].*$", "").split(":");
        double seconds = Double.parseDouble(args[2]);
        Lock one = factory.open(server[0], Integer.parseInt(server[1]));
        one.acquire();
        long first = System.nanoTime();
        one.release();
        double rate = pairsPerSecond(one, seconds);
        double handover = handoverMicros(one, factory.open(server[0], Integer.parseInt(server[1])), seconds);
        System.out.printf("{\"first_ns\": %d, \"pairs_per_s\": %.1f, \"handover_us\": %.1f}%n", first, rate, handover);
        System.out.flush();
        Runtime.getRuntime().halt(0); // clients have threads of their own
    }
}
