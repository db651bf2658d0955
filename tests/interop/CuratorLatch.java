// CuratorLatch.java: Apache Curator's LeaderLatch. ADDRESS is HOST:PORT,.../ROOT; the session lasts as long as a
// lease of ours does.

import java.time.Duration;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.leader.LeaderLatch;
import org.apache.curator.framework.recipes.leader.LeaderLatchListener;
import org.apache.curator.retry.RetryForever;

final class CuratorLatch extends Peer implements LeaderLatchListener {
    private final CuratorFramework client;
    private final String path;
    private LeaderLatch latch;

    private CuratorLatch(CuratorFramework client, String path) {
        this.client = client;
        this.path = path;
    }

    static CuratorFramework connect(String address, Duration session) throws Exception {
        int root = address.indexOf('/');
        CuratorFramework client = CuratorFrameworkFactory.builder()
                .connectString(address.substring(0, root)).namespace(address.substring(root + 1))
                .sessionTimeoutMs((int) session.toMillis()).connectionTimeoutMs(10000)
                .retryPolicy(new RetryForever(100)).build();
        client.start();
        client.blockUntilConnected();
        return client;
    }

    static Peer.Factory open(String address, Duration ttl, Duration transition) throws Exception {
        CuratorFramework client = connect(address, ttl.plus(transition));
        return mutex -> new CuratorLatch(client, "/simba/" + mutex);
    }

    @Override
    public void isLeader() {
        acquired();
    }

    @Override
    public void notLeader() {
        released();
    }

    @Override
    void start() throws Exception {
        latch = new LeaderLatch(client, path);
        latch.addListener(this);
        latch.start();
    }

    @Override
    void stop() throws Exception {
        latch.close(LeaderLatch.CloseMode.NOTIFY_LEADER);
    }

    @Override
    boolean isOwner() {
        return latch.hasLeadership();
    }
}
