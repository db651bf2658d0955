// RedissonPeer.java: Redisson's RLock, with its watchdog. See compare.

import org.redisson.Redisson;
import org.redisson.api.RLock;
import org.redisson.config.Config;

public final class RedissonPeer implements Peer.Factory {
    @Override
    public Peer.Lock open(String host, int port) {
        Config config = new Config();
        config.useSingleServer().setAddress("redis://" + host + ":" + port);
        RLock lock = Redisson.create(config).getLock("peer-redisson");
        return new Peer.Lock() {
            @Override
            public void acquire() {
                lock.lock();
            }

            @Override
            public void release() {
                lock.unlock();
            }
        };
    }
}
