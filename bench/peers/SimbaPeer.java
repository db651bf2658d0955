// SimbaPeer.java: the SimbaLocker of JVM Simba, on Redis by Spring. See compare.

import java.time.Duration;
import java.util.concurrent.Executors;
import me.ahoo.simba.core.MutexContendServiceFactory;
import me.ahoo.simba.locker.SimbaLocker;
import me.ahoo.simba.spring.redis.SpringRedisMutexContendServiceFactory;
import org.springframework.data.redis.connection.lettuce.LettuceConnectionFactory;
import org.springframework.data.redis.core.StringRedisTemplate;
import org.springframework.data.redis.listener.RedisMessageListenerContainer;

public final class SimbaPeer implements Peer.Factory {
    @Override
    public Peer.Lock open(String host, int port) {
        LettuceConnectionFactory connections = new LettuceConnectionFactory(host, port);
        connections.afterPropertiesSet();
        connections.start();
        RedisMessageListenerContainer listeners = new RedisMessageListenerContainer();
        listeners.setConnectionFactory(connections);
        listeners.afterPropertiesSet();
        listeners.start();
        MutexContendServiceFactory services = new SpringRedisMutexContendServiceFactory(Duration.ofSeconds(10),
                Duration.ofSeconds(6), new StringRedisTemplate(connections), listeners,
                Executors.newCachedThreadPool(), Executors.newScheduledThreadPool(2));
        return new Peer.Lock() {
            private SimbaLocker held; // one is used once

            @Override
            public void acquire() {
                held = new SimbaLocker("peer-simba-jvm", services);
                held.acquire();
            }

            @Override
            public void release() throws Exception {
                held.close();
            }
        };
    }
}
