// CuratorPeer.java: Apache Curator's InterProcessMutex. See compare.

import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.retry.RetryOneTime;

public final class CuratorPeer implements Peer.Factory {
    @Override
    public Peer.Lock open(String host, int port) {
        CuratorFramework client = CuratorFrameworkFactory.newClient(host + ":" + port, new RetryOneTime(100));
        client.start();
        InterProcessMutex mutex = new InterProcessMutex(client, "/peer-curator");
        return new Peer.Lock() {
            @Override
            public void acquire() throws Exception {
                mutex.acquire();
            }

            @Override
            public void release() throws Exception {
                mutex.release();
            }
        };
    }
}
