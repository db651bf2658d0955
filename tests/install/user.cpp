// user.cpp: the headers are C++, too: everything that has an INIT macro, a callback, a handle.
// `user URL throw`: an exception leaves a callback; it must reach std::terminate.
#include <simba.h>
#include <simba/backend.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <stdexcept>

static void changed(void *, const char *mutex, const simba_state *state)
{
    std::printf("%s: %s\n", mutex, state->after.id);
}

static void throws(void *, const char *, const simba_state *)
{
    throw std::runtime_error("out of a callback");
}

static int throw_in_callback(const char *url)
{
    simba_handle_options handle = SIMBA_HANDLE_OPTIONS_INIT;
    simba_client *client = nullptr;
    simba_contender *contender = nullptr;
    std::set_terminate([] { std::_Exit(42); });
    handle.on_acquired = throws;
    if (simba_open(url, nullptr, &client) != 0 ||
        simba_contender_create(client, "throws", &handle, &contender) != 0 ||
        simba_contender_start(contender) != 0)
        return 1;
    simba_contender_wait(contender, SIMBA_STOPPING, 10000);
    return 2; // it should not have come back
}

int main(int argc, char **argv)
{
    if (argc > 2)
        return throw_in_callback(argv[1]);
    simba_options options = SIMBA_OPTIONS_INIT;
    simba_handle_options handle = SIMBA_HANDLE_OPTIONS_INIT;
    simba_schedule schedule = SIMBA_SCHEDULE_INIT;
    simba_memory_faults faults = SIMBA_MEMORY_FAULTS_INIT;
    simba_metrics metrics = SIMBA_METRICS_INIT;
    handle.on_changed = changed;
    schedule.period_ms = 1000;
    simba_client *client = nullptr;
    simba_locker *locker = nullptr;
    simba_observer *observer = nullptr;
    if (faults.hang || schedule.period_ms != 1000 ||
        simba_open(argc > 1 ? argv[1] : "memory:", &options, &client) != 0 ||
        simba_observer_create(client, "from-c++", &handle, &observer) != 0 ||
        simba_locker_create(client, "from-c++", nullptr, &locker) != 0 ||
        simba_locker_acquire(locker, 10000) != 0 || simba_metrics_read(client, &metrics) != 0 ||
        metrics.owned != 1 || simba_locker_release(locker) != 0 ||
        simba_close(client, 10000) != 0) {
        std::fprintf(stderr, "user: %s\n", simba_error_text());
        return 1;
    }
    return 0;
}
