// SimbaRedis.java: JVM Simba on Redis. ADDRESS is HOST:PORT.

import java.time.Duration;
import java.util.concurrent.Executors;
import me.ahoo.simba.spring.redis.SpringRedisMutexContendServiceFactory;
import org.springframework.data.redis.connection.RedisStandaloneConfiguration;
import org.springframework.data.redis.connection.lettuce.LettuceConnectionFactory;
import org.springframework.data.redis.core.StringRedisTemplate;
import org.springframework.data.redis.listener.ChannelTopic;
import org.springframework.data.redis.listener.RedisMessageListenerContainer;

final class SimbaRedis {
    static Peer.Factory open(String address, Duration ttl, Duration transition) {
        String[] at = address.split(":");
        LettuceConnectionFactory connections = new LettuceConnectionFactory(
                new RedisStandaloneConfiguration(at[0], Integer.parseInt(at[1])));
        connections.afterPropertiesSet();
        RedisMessageListenerContainer listeners = new RedisMessageListenerContainer();
        listeners.setConnectionFactory(connections);
        listeners.afterPropertiesSet();
        listeners.start();
        // Spring fails where one listener comes while the last one leaves: this one stays.
        listeners.addMessageListener((message, pattern) -> { }, new ChannelTopic("interop"));
        var factory = new SpringRedisMutexContendServiceFactory(ttl, transition,
                new StringRedisTemplate(connections), listeners, SimbaPeer.CALLBACKS,
                Executors.newScheduledThreadPool(1));
        return mutex -> new SimbaPeer(factory, mutex);
    }
}
