// callbacks.cpp: contenders, schedulers and observers; when callbacks come, how long they may use what
// they have, and where their exceptions go.
#include "harness.hpp"

#include <future>
#include <optional>
#include <stdexcept>
#include <thread>

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace std::chrono_literals;
using simba::errc;

namespace
{

// Waits for what a callback says.
class event_count
{
  public:
    void give()
    {
        std::lock_guard guard(lock_);
        count_++;
        changed_.notify_all();
    }
    bool wait(int count = 1)
    {
        std::unique_lock guard(lock_);
        return changed_.wait_for(guard, 30s, [&] { return count_ >= count; });
    }

  private:
    std::mutex lock_;
    std::condition_variable changed_;
    int count_ = 0;
};

// What the function ends with in a child; 42: by std::terminate.
int status_in_child(const std::function<void()> &function)
{
    std::fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        std::set_terminate([] { std::_Exit(42); });
        alarm(60);
        function();
        std::_Exit(0);
    }
    int status = -1;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

} // namespace

TEST(contender_leads)
{
    simba::client client(store_url());
    event_count acquired, released, stopped;
    std::atomic<std::uint64_t> token{0};
    simba::handle_options o;
    o.id = "cpp-1";
    o.on_acquired = [&](const simba::state &s) {
        token = s.after.token;
        acquired.give();
    };
    o.on_released = [&](const simba::state &s) {
        EXPECT(s.reason == SIMBA_RELEASED);
        released.give();
    };
    o.on_stopped = [&] { stopped.give(); };
    simba::contender contender(client, "leads", o);
    std::error_code ec;
    contender.stop(ec);
    EXPECT(ec == errc::wrong_state);
    EXPECT(contender.status() == SIMBA_INITIAL && !contender.is_owner());
    contender.start();
    EXPECT(acquired.wait() && contender.is_owner() && contender.owns(token));
    EXPECT(contender.token() == token && contender.remaining() > 0ms);
    EXPECT(contender.state().after.token == token && !std::strcmp(contender.id(), "cpp-1"));
    contender.wait(SIMBA_RUNNING, 10s);
    contender.resign(10ms);
    EXPECT(released.wait() && acquired.wait(2));
    EXPECT(token == contender.token());
    contender.stop();
    EXPECT(stopped.wait() && contender.status() == SIMBA_INITIAL);
    contender.resign(1s, ec);
    EXPECT(ec == errc::wrong_state);
}

TEST(destructor_waits_for_callbacks)
{
    simba::client client(store_url());
    bool has_released = false;
    event_count acquired;
    {
        std::vector<int> used(1000, 7); // lives longer than the contender
        simba::handle_options o;
        o.on_acquired = [&](auto &) { acquired.give(); };
        o.on_released = [&](auto &) {
            std::this_thread::sleep_for(100ms);
            has_released = used.at(999) == 7;
        };
        simba::contender contender(client, "waits", o);
        contender.start();
        EXPECT(acquired.wait());
    }
    EXPECT(has_released);
}

TEST(callbacks_let_go_with_the_handle)
{
    simba::client client(store_url());
    auto owned = std::make_shared<int>(1);
    std::weak_ptr<int> seen = owned;
    simba::handle_options o;
    o.on_acquired = [owned](auto &) {};
    {
        simba::contender contender(client, "lets-go", std::exchange(o, {}));
        owned.reset();
        EXPECT(!seen.expired());
    }
    EXPECT(seen.expired());
}

TEST(destroyed_in_its_own_callback)
{
    simba::client client(store_url());
    std::optional<simba::contender> contender;
    event_count destroyed;
    auto owned = std::make_shared<int>(1);
    std::weak_ptr<int> seen = owned;
    simba::handle_options o;
    o.on_acquired = [&, owned](auto &) {
        contender.reset();
        destroyed.give();
    };
    owned.reset();
    contender.emplace(client, "own-callback", std::exchange(o, {}));
    contender->start();
    EXPECT(destroyed.wait() && !contender);
    EXPECT(!client.close(20s));
    EXPECT(seen.expired());
}

TEST(scheduler_works)
{
    simba::client client(store_url());
    event_count run, counted;
    std::atomic<bool> has_ended{false};
    {
        std::atomic<int> runs{0};
        simba::scheduler scheduler(client, "works", {20ms}, [&](simba::run &r) {
            EXPECT(r.token() > 0 && !r.should_stop());
            if (++runs >= 3)
                run.give();
        });
        scheduler.start();
        EXPECT(run.wait() && scheduler.is_owner());
    }
    {
        simba::schedule when;
        when.period = 1h;
        when.pace = SIMBA_FIXED_DELAY;
        simba::scheduler scheduler(client, "works", when, [&](simba::run &r) {
            counted.give();
            EXPECT(r.wait(1h)); // until it should stop
            has_ended = true;
            return 0;
        });
        scheduler.start();
        EXPECT(counted.wait());
    }
    EXPECT(has_ended);
    std::error_code ec;
    simba::scheduler never(
        client, "works", {0ms}, [](simba::run &) {}, {}, ec);
    EXPECT(ec == errc::invalid && !never);
}

TEST(work_reports_progress)
{
    simba::client client(store_url());
    event_count run;
    simba::handle_options o;
    o.progress = 10s;
    simba::scheduler scheduler(
        client, "progress", {1h},
        [&](simba::run &r) {
            EXPECT(r.progress());
            run.give();
        },
        o);
    scheduler.start();
    EXPECT(run.wait() && scheduler.progress(scheduler.token()));
    EXPECT(!scheduler.progress(scheduler.token() + 1));
}

TEST(callbacks_of_a_scheduler)
{
    simba::client client(store_url());
    event_count acquired, endangered, released, stopped;
    std::optional<simba::scheduler> scheduler;
    simba::handle_options o;
    o.progress = 500ms;
    o.on_acquired = [&](auto &) { acquired.give(); };
    o.on_endangered = [&](simba::milliseconds left) {
        EXPECT(left >= 0ms && left <= 500ms);
        endangered.give();
    };
    o.on_released = [&](const simba::state &s) {
        EXPECT(s.reason == simba::reason::SIMBA_STALLED);
        released.give();
    };
    o.on_stopped = [&] {
        EXPECT(scheduler->status() == SIMBA_INITIAL);
        stopped.give();
    };
    auto hang = [](simba::run &r) { r.wait(1h); };
    scheduler.emplace(client, "scheduler-callbacks", simba::schedule{1h}, hang, o);
    scheduler->start();
    EXPECT(acquired.wait() && endangered.wait() && released.wait());
    scheduler->stop();
    EXPECT(stopped.wait());
}

TEST(options_of_other_handles)
{
    simba::client client(store_url());
    auto is_refused = [&](auto *kind, auto set) {
        using handle = std::remove_pointer_t<decltype(kind)>;
        simba::handle_options o;
        if constexpr (std::is_same_v<handle, simba::observer>)
            o.on_changed = [](auto, auto &) {};
        set(o);
        std::error_code ec;
        if constexpr (std::is_same_v<handle, simba::scheduler>)
            handle(
                client, "refused", {1h}, [](simba::run &) {}, o, ec);
        else
            handle(client, "refused", o, ec);
        return ec == errc::invalid && std::strstr(simba_error_text(), "not an option") != nullptr;
    };
    simba::contender *contender = nullptr;
    simba::scheduler *scheduler = nullptr;
    simba::locker *locker = nullptr;
    simba::observer *observer = nullptr;
    auto set_acquired = [](auto &o) { o.on_acquired = [](auto &) {}; };
    auto set_released = [](auto &o) { o.on_released = [](auto &) {}; };
    auto set_lost = [](auto &o) { o.on_lost = [](auto &) {}; };
    auto set_both = [&](auto &o) { set_released(o), set_lost(o); };
    auto set_changed = [](auto &o) { o.on_changed = [](auto, auto &) {}; };
    auto set_endangered = [](auto &o) { o.on_endangered = [](auto) {}; };
    auto set_stopped = [](auto &o) { o.on_stopped = [] {}; };
    auto set_progress = [](auto &o) { o.progress = 1s; };
    auto set_at_least = [](auto &o) { o.at_least = 1s; };
    EXPECT(is_refused(contender, set_lost) && is_refused(contender, set_both));
    EXPECT(is_refused(contender, set_changed) && !is_refused(contender, set_released));
    EXPECT(is_refused(scheduler, set_both) && is_refused(scheduler, set_changed));
    EXPECT(is_refused(locker, set_acquired) && is_refused(locker, set_both));
    EXPECT(is_refused(locker, set_changed) && is_refused(locker, set_stopped));
    EXPECT(is_refused(locker, set_progress) && !is_refused(locker, set_at_least));
    EXPECT(is_refused(observer, set_acquired) && is_refused(observer, set_both));
    EXPECT(is_refused(observer, set_endangered) && is_refused(observer, set_stopped));
    EXPECT(is_refused(observer, set_progress) && is_refused(observer, set_at_least));
}

TEST(observer_sees)
{
    simba::client client(store_url()), other(store_url());
    simba::locker lock(other, "observed");
    event_count held, all;
    std::atomic<std::uint64_t> token{0};
    simba::handle_options o;
    o.on_changed = [&](std::string_view mutex, const simba::state &s) {
        EXPECT(mutex == "observed");
        token = s.after.token;
        if (s.after.token != 0)
            held.give();
    };
    simba::observer observer(client, "observed", o);
    o.on_changed = [&](std::string_view mutex, const simba::state &s) {
        if (mutex == "observed" && s.after.token != 0)
            all.give();
    };
    simba::observer everything(client, nullptr, o);
    lock.lock();
    EXPECT(held.wait() && all.wait());
    EXPECT(observer.state().after.token == lock.token() && token == lock.token());
}

// ---- exceptions ----

TEST(exception_of_work)
{
    event_count threw, logged, returned;
    simba::options options;
    options.trace = [&](const simba::event &e) {
        if (e.kind == SIMBA_EVENT_RUN && e.code == 1)
            returned.give();
    };
    options.log = [&](simba::level level, std::string_view line) {
        if (level <= SIMBA_LOG_WARN && line.find("throws") != line.npos)
            logged.give();
    };
    {
        simba::client client(store_url(), options);
        simba::scheduler scheduler(client, "throws", {1ms}, [&](simba::run &) {
            threw.give();
            throw std::runtime_error("out of work");
        });
        scheduler.start();
        EXPECT(threw.wait(3) && logged.wait(3) && returned.wait(3));
        EXPECT(scheduler.is_owner());
    }
    event_count notified;
    options.on_exception = [&](std::exception_ptr e) {
        try {
            std::rethrow_exception(e);
        } catch (const std::runtime_error &r) {
            EXPECT(!std::strcmp(r.what(), "out of work"));
            notified.give();
        }
    };
    simba::client client(store_url(), options);
    simba::scheduler scheduler(client, "throws", {1ms}, [&](simba::run &) -> int {
        throw std::runtime_error("out of work");
    });
    scheduler.start();
    EXPECT(notified.wait(2) && logged.wait(5) && returned.wait(5));
}

TEST(exception_of_callback)
{
    event_count notified;
    simba::options options;
    options.on_exception = [&](std::exception_ptr) { notified.give(); };
    simba::handle_options o;
    o.on_acquired = [](auto &) { throw 1; };
    {
        simba::client client(store_url(), options);
        simba::contender contender(client, "throws-too", o);
        contender.start();
        EXPECT(notified.wait() && contender.is_owner());
    }
    EXPECT(status_in_child([&] {
               simba::client client(store_url());
               simba::contender contender(client, "terminates", o);
               contender.start();
               sleep(60);
           }) == 42);
    EXPECT(status_in_child([&] { // on a thread of ours
               simba::options polled;
               polled.no_thread = true;
               simba::client client(store_url(), polled);
               simba::contender contender(client, "terminates", o);
               contender.start();
               try {
                   contender.wait(SIMBA_STOPPING, 60s);
               } catch (...) { // it must not come so far
               }
           }) == 42);
}

// ---- threads ----

TEST(loop_of_ones_own)
{
    simba::options options;
    options.no_thread = true;
    bool is_acquired = false, is_released = false;
    {
        simba::client client(store_url(), options);
        simba::handle_options o;
        o.on_acquired = [&](auto &) { is_acquired = true; };
        o.on_released = [&](auto &) { is_released = true; };
        simba::contender contender(client, "polled", o);
        contender.start();
        for (auto until = simba_now() + 30000; !is_acquired && simba_now() < until;) {
            pollfd p = {client.poll_fd(), POLLIN, 0};
            auto timeout = client.poll_timeout();
            poll(&p, 1, timeout < 0ms || timeout > 100ms ? 100 : static_cast<int>(timeout.count()));
            client.poll();
        }
        EXPECT(is_acquired && contender.is_owner());
    } // the contender does not wait for a poll that nobody would do; the client closes it
    EXPECT(is_released);
}

TEST(executor)
{
    std::atomic<int> jobs{0};
    std::vector<std::thread> threads;
    std::mutex lock;
    simba::options options;
    options.executor = [&](void (*run)(void *), void *arg) {
        std::lock_guard guard(lock);
        threads.emplace_back([=, &jobs] {
            jobs++;
            run(arg);
        });
        return true;
    };
    event_count acquired;
    {
        simba::client client(store_url(), options);
        simba::handle_options o;
        o.on_acquired = [&](auto &) { acquired.give(); };
        simba::contender contender(client, "executor", o);
        contender.start();
        EXPECT(acquired.wait());
    }
    EXPECT(jobs > 0);
    for (auto &t : threads)
        t.join();
}

TEST(fork_leaves_handles_to_the_parent)
{
    std::optional<simba::client> client(std::in_place, store_url());
    simba::handle_options o;
    event_count acquired;
    o.on_acquired = [&](auto &) { acquired.give(); };
    std::optional<simba::contender> contender(std::in_place, *client, "forked", o);
    contender->start();
    EXPECT(acquired.wait());
    EXPECT(status_in_child([&] {
               std::error_code ec;
               contender->stop(ec);
               if (ec != errc::forked || contender->is_owner())
                   std::_Exit(1);
               contender.reset();
               client.reset();
           }) == 0);
    EXPECT(contender->is_owner());
}

int main(int argc, char **argv)
{
    return run_cases(argc, argv);
}
