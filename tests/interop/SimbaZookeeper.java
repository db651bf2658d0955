// SimbaZookeeper.java: JVM Simba on ZooKeeper, which is Curator's LeaderLatch. ADDRESS as in CuratorLatch.java.

import java.time.Duration;
import me.ahoo.simba.zookeeper.ZookeeperMutexContendServiceFactory;

final class SimbaZookeeper {
    static Peer.Factory open(String address, Duration ttl, Duration transition) throws Exception {
        var factory = new ZookeeperMutexContendServiceFactory(SimbaPeer.CALLBACKS,
                CuratorLatch.connect(address, ttl.plus(transition)));
        return mutex -> new SimbaPeer(factory, mutex);
    }
}
