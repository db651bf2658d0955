// SimbaJdbc.java: JVM Simba on MariaDB. ADDRESS is a URL of JDBC.

import java.sql.SQLException;
import java.time.Duration;
import me.ahoo.simba.jdbc.JdbcMutexContendServiceFactory;
import me.ahoo.simba.jdbc.JdbcMutexOwnerRepository;
import org.mariadb.jdbc.MariaDbPoolDataSource;

final class SimbaJdbc {
    static Peer.Factory open(String address, Duration ttl, Duration transition) throws SQLException {
        var owners = new JdbcMutexOwnerRepository(new MariaDbPoolDataSource(address));
        var factory = new JdbcMutexContendServiceFactory(owners, SimbaPeer.CALLBACKS, Duration.ZERO, ttl,
                transition);
        return mutex -> new SimbaPeer(factory, mutex);
    }
}
