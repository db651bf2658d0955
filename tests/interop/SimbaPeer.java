// SimbaPeer.java: a contender of JVM Simba, whatever its store is.

import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import me.ahoo.simba.core.AbstractMutexContender;
import me.ahoo.simba.core.ContenderIdGenerator;
import me.ahoo.simba.core.MutexContendService;
import me.ahoo.simba.core.MutexContendServiceFactory;
import me.ahoo.simba.core.MutexState;

final class SimbaPeer extends Peer {
    /** Callbacks come one after another; on a pool, as is the default, a late one may overtake. */
    static final ExecutorService CALLBACKS = Executors.newSingleThreadExecutor();

    private final MutexContendService service;

    SimbaPeer(MutexContendServiceFactory factory, String mutex) {
        service = factory.createMutexContendService(
                new AbstractMutexContender(mutex, ContenderIdGenerator.HOST.generate()) {
                    @Override
                    public void onAcquired(MutexState state) {
                        acquired();
                    }

                    @Override
                    public void onReleased(MutexState state) {
                        released();
                    }
                });
    }

    @Override
    void start() {
        service.start();
    }

    @Override
    void stop() throws Exception {
        service.stop();
        CALLBACKS.submit(() -> { }).get();
    }

    @Override
    boolean isOwner() {
        return service.isOwner();
    }
}
