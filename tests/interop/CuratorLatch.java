// CuratorLatch.java: contenders of Apache Curator's LeaderLatch, some threads of them on one path. Who
// leads enters the place: the file "held", which must not be there. See tests/interop/curator.
//
// CuratorLatch HOSTS PATH FOLDER THREADS SECONDS

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.leader.LeaderLatch;
import org.apache.curator.retry.RetryOneTime;

public final class CuratorLatch {
    private static void enter(Path folder, String who, LeaderLatch latch) throws Exception {
        Path held = folder.resolve("held");
        try {
            Files.createFile(held);
        } catch (FileAlreadyExistsException e) {
            append(folder.resolve("overlaps"), who);
            return;
        }
        append(folder.resolve("turns"), who);
        Thread.sleep(1);
        if (!latch.hasLeadership()) {
            append(folder.resolve("overlaps"), who + " lost it");
        }
        Files.delete(held);
    }

    private static void append(Path file, String line) throws IOException {
        Files.write(file, (line + "\n").getBytes(StandardCharsets.UTF_8), StandardOpenOption.CREATE,
                StandardOpenOption.APPEND);
    }

    private static void contend(CuratorFramework client, String path, Path folder, String who,
            long until) {
        try {
            while (System.nanoTime() < until) {
                try (LeaderLatch latch = new LeaderLatch(client, path, who)) {
                    latch.start();
                    if (latch.await(20, TimeUnit.SECONDS)) {
                        enter(folder, who, latch);
                    }
                }
            }
        } catch (Exception e) {
            e.printStackTrace();
            System.exit(1);
        }
    }

    public static void main(String[] args) throws Exception {
        Path folder = Path.of(args[2]);
        long until = System.nanoTime() + TimeUnit.SECONDS.toNanos(Long.parseLong(args[4]));
        CuratorFramework client =
                CuratorFrameworkFactory.newClient(args[0], 16000, 10000, new RetryOneTime(100));
        client.start();
        client.blockUntilConnected();
        List<Thread> threads = new ArrayList<>();
        for (int i = 0; i < Integer.parseInt(args[3]); i++) {
            String who = "java " + ProcessHandle.current().pid() + "-" + i;
            Thread t = new Thread(() -> contend(client, args[1], folder, who, until));
            t.start();
            threads.add(t);
        }
        for (Thread t : threads) {
            t.join();
        }
        client.close();
    }
}
