// simba.hpp: simba.h for C++17. Header only: a program links libsimba and nothing else.
//
//     simba::client client("redis://db1");
//     simba::locker lock(client, "night-report");
//     std::unique_lock guard(lock, 10s); // or lock_guard, scoped_lock
//     if (guard)
//         write_report(lock.token());
//
// Names are those of simba.h, except where the standard library has its own: lock, unlock, errc.
// simba::x is simba_x, and what is said there holds here. New is:
//
// Failures: what may fail takes a std::error_code at the end, or nothing (Ec &...ec stands for
//   both), as in <filesystem>. With one it sets that, and simba_error_text() has the words. Without
//   it throws simba::error, whose what() has them. With -fno-exceptions only the first compiles.
// Lifetime: the destructor of a handle stops it in order and returns after its last callback, also
//   if drain or at_least make that late. So callbacks may use all that lives longer than the handle.
//   It does not wait where there are no callbacks, nor inside one of its own, nor with
//   options::no_thread. In the last two cases callbacks come later, in client::poll() or close()
//   too, and must own what they use.
//   The destructor of a client closes it, however long that takes; close() has a timeout. Handles
//   may outlive their client: they are empty then. No thread may be in a call of a handle while
//   another closes the client. What is empty, also moved from, fails with errc::invalid.
// Exceptions: one that leaves a callback goes to options::on_exception; without that function it
//   ends the process, by std::terminate. One that leaves a work goes there, too, or is lost, and the
//   run has failed, as by a result of 1. pthread_exit in either ends the process.
// Threads: all may be called from any thread. Who moves or destroys an object uses it alone.
#ifndef SIMBA_HPP
#define SIMBA_HPP

#include <simba.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

#include <unistd.h>

namespace simba {

using event = ::simba_event;
using level = ::simba_level;
using metrics = ::simba_metrics;
using owner = ::simba_owner;
using note = ::simba_note;
using pace = ::simba_pace;
using reason = ::simba_reason;
using state = ::simba_state;
using status = ::simba_status;
using std::chrono::milliseconds;

inline constexpr milliseconds by_default{SIMBA_DEFAULT}; // as the URL says, else the default
inline constexpr milliseconds forever{SIMBA_FOREVER};

// ---- errors ------------------------------------------------------------------------------------

enum class errc {
    invalid = SIMBA_EINVAL,
    wrong_state = SIMBA_ESTATE,
    timeout = SIMBA_ETIMEOUT,
    held = SIMBA_EHELD,
    lost = SIMBA_ELOST,
    store = SIMBA_ESTORE,
    denied = SIMBA_EDENIED,
    schema = SIMBA_ESCHEMA,
    no_module = SIMBA_EMODULE,
    unsupported = SIMBA_EUNSUPPORTED,
    limit = SIMBA_ELIMIT,
    forked = SIMBA_EFORKED,
    deadlock = SIMBA_EDEADLOCK,
    canceled = SIMBA_ECANCELED,
    not_yet = SIMBA_ENOTYET
};

inline const std::error_category &category() noexcept
{
    struct simba_category final : std::error_category {
        const char *name() const noexcept override { return "simba"; }
        std::string message(int code) const override { return simba_strerror(code); }
    };
    static const simba_category one;
    return one;
}

inline std::error_code make_error_code(errc code) noexcept
{
    return {static_cast<int>(code), category()};
}

#ifdef __cpp_exceptions
class error : public std::system_error {
public:
    explicit error(int code) : std::system_error(code, category(), simba_error_text()) {}
};
#endif

} // namespace simba

template <> struct std::is_error_code_enum<simba::errc> : std::true_type {
};

namespace simba {

// ---- values ------------------------------------------------------------------------------------

struct options {
    milliseconds ttl = by_default, transition = by_default;
    milliseconds connect_timeout = by_default, command_timeout = by_default;
    std::int64_t drift_ppm = SIMBA_DEFAULT;
    bool no_thread = false; // you drive the client with poll()
    std::string labels = {};
    std::function<void(level, std::string_view line)> log = nullptr;
    std::function<void(const event &)> trace = nullptr;
    std::uint64_t trace_kinds = 0; // SIMBA_EVENT_BIT(kind) of each; 0: all
    // Has run(arg) called on another thread, as a simba_executor; false: it cannot.
    std::function<bool(void (*run)(void *arg), void *arg)> executor = nullptr;
    std::function<void(std::exception_ptr)> on_exception = nullptr;
};

// A handle refuses what is not for its kind: errc::invalid.
struct handle_options {
    std::string id = {}; // "": one is made
    milliseconds ttl = by_default, transition = by_default, initial_delay = by_default,
                 renew = by_default, drain = by_default, jitter_early = by_default,
                 jitter_late = by_default, progress = by_default, at_least = by_default;
    std::function<void(const state &)> on_acquired = nullptr; // contender, scheduler
    std::function<void(const state &)> on_released = nullptr; // contender, scheduler
    std::function<void(const state &)> on_lost = nullptr;     // locker, while it was held
    std::function<void(std::string_view mutex, const state &)> on_changed = nullptr; // observer
    std::function<void(milliseconds left)> on_endangered = nullptr; // all but the observer
    std::function<void()> on_stopped = nullptr;                     // contender, scheduler
    std::optional<std::string> note = {}; // all but the observer: published with each tenure
};

struct schedule {
    milliseconds period{0}; // must be set
    milliseconds initial_delay = by_default;
    simba::pace pace = SIMBA_FIXED_RATE;
    std::string cron = {}; // with SIMBA_CRON, and by_default as the period
    std::string zone = {}; // of cron; empty: UTC
    simba_missed missed = SIMBA_MISSED_SKIP;
    unsigned flags = 0; // SIMBA_KEEP_PHASE, SIMBA_AT_LEAST_ONCE
};

struct entry {
    std::string mutex;
    simba::owner owner;
    std::int64_t waiters;
    simba::note note; // all zero: none
};

struct finding {
    simba::level level;
    std::string line;
};

// One run of scheduled work.
class run {
public:
    run(const simba_run *r, simba_contender *c) noexcept : run_(r), contender_(c) {}
    bool should_stop() const noexcept { return simba_run_should_stop(run_); }
    bool wait(milliseconds time) const noexcept { return simba_run_wait(run_, time.count()); }
    std::uint64_t token() const noexcept { return simba_run_token(run_); }
    std::int64_t tick() const noexcept { return simba_run_tick(run_); } // ms since 1970; 0: none
    // False: the tenure is over.
    bool progress() const noexcept { return simba_contender_progress(contender_, token()) == 0; }

private:
    const simba_run *run_;
    simba_contender *contender_;
};

// A text for the call; nullptr where simba.h allows NULL. It is borrowed; a string_view is copied,
// since no NUL need follow it.
class text {
public:
    text(const char *s) noexcept : pointer_(s) {}
    text(const std::string &s) noexcept : pointer_(s.c_str()) {}
    text(std::string_view s) : copy_(s), is_copy_(true) {}
    const char *c_str() const noexcept { return is_copy_ ? copy_.c_str() : pointer_; }

private:
    const char *pointer_ = nullptr;
    std::string copy_;
    bool is_copy_ = false;
};

} // namespace simba

#include <simba/callbacks.hpp> // namespace detail: how results and callbacks come

namespace simba {

// ---- client ------------------------------------------------------------------------------------

class client {
public:
    // url nullptr: $SIMBA_URL, else the default store.
    template <class... Ec> explicit client(text url = nullptr, const options &o = {}, Ec &...ec)
    {
        open(url.c_str(), o, ec...);
    }
    client(client &&from) noexcept { *this = std::move(from); }
    client &operator=(client &&from) noexcept
    {
        if (this != &from) {
            close(forever);
            client_ = std::exchange(from.client_, nullptr);
            state_ = std::move(from.state_);
        }
        return *this;
    }
    // Where it cannot be closed (in a callback of its own, in a child after fork) it stays open to
    // the end of the process.
    ~client() { close(forever); }

    // Stops every handle and hands over in order. errc::timeout: not closed yet, call it again.
    std::error_code close(milliseconds timeout) noexcept
    {
        std::error_code ec;
        if (client_ != nullptr)
            detail::settle(simba_close(client_, timeout.count()), ec);
        if (client_ != nullptr && !ec) {
            client_ = nullptr;
            state_->self = nullptr;
        }
        return ec;
    }

    explicit operator bool() const noexcept { return client_ != nullptr; }
    simba_client *native() const noexcept { return client_; } // for what is not wrapped here
    const char *store_text() const noexcept { return simba_store_text(client_); }

    template <class... Ec> simba::owner read(text mutex, milliseconds timeout, Ec &...ec)
    {
        simba::owner out = {};
        detail::settle(simba_read(client_, mutex.c_str(), timeout.count(), &out), ec...);
        return out;
    }
    // by: not nullptr, who owns the mutex, too, of the same exchange.
    template <class... Ec>
    simba::note read_note(text mutex, milliseconds timeout, simba::owner *by, Ec &...ec)
    {
        simba::note out = {};
        detail::settle(simba_read_note(client_, mutex.c_str(), timeout.count(), &out, by), ec...);
        return out;
    }
    // prefix nullptr: all.
    template <class... Ec> std::vector<entry> list(text prefix, milliseconds timeout, Ec &...ec)
    {
        std::vector<entry> out;
        auto each = [](void *data, const simba_entry *e) noexcept {
            static_cast<std::vector<entry> *>(data)->push_back(
                {e->mutex, e->owner, e->waiters, e->note != nullptr ? *e->note : note{}});
        };
        detail::settle(simba_list(client_, prefix.c_str(), timeout.count(), each, &out), ec...);
        return out;
    }
    // tenure nullptr: whichever is on.
    template <class... Ec>
    void evict(text mutex, const simba::owner *tenure, bool forced, milliseconds timeout, Ec &...ec)
    {
        detail::settle(simba_evict(client_, mutex.c_str(), tenure, forced, timeout.count()), ec...);
    }
    template <class... Ec> std::vector<finding> diagnose(milliseconds timeout, Ec &...ec)
    {
        std::vector<finding> out;
        auto each = [](void *data, simba_level l, const char *line) noexcept {
            static_cast<std::vector<finding> *>(data)->push_back({l, line});
        };
        detail::settle(simba_diagnose(client_, timeout.count(), each, &out), ec...);
        return out;
    }
    template <class... Ec> simba::metrics metrics(Ec &...ec)
    {
        simba::metrics out = SIMBA_METRICS_INIT;
        detail::settle(simba_metrics_read(client_, &out), ec...);
        return out;
    }
    // The page that Prometheus reads; of several clients: simba_metrics_prometheus() with native().
    template <class... Ec> std::string prometheus(bool per_handle, Ec &...ec)
    {
        std::string out(16384, '\0');
        for (;;) {
            auto length = simba_metrics_prometheus(&client_, 1, per_handle ? SIMBA_PER_HANDLE : 0,
                                                   &out[0], out.size());
            detail::settle(length, ec...);
            auto size = static_cast<std::size_t>(length < 0 ? 0 : length);
            bool is_whole = size < out.size();
            out.resize(is_whole ? size : size + size / 4 + 1); // it may grow in the meantime
            if (is_whole)
                return out;
        }
    }

    // For a loop of yours, see simba.h. poll_timeout() below 0: none.
    template <class... Ec> int poll_fd(Ec &...ec)
    {
        int fd = simba_poll_fd(client_);
        detail::settle(fd, ec...);
        return fd;
    }
    milliseconds poll_timeout() noexcept { return milliseconds(simba_poll_timeout(client_)); }
    template <class... Ec> void poll(Ec &...ec) { detail::settle(simba_poll(client_), ec...); }

private:
    template <class Native, auto Create, void (*Destroy)(Native *)> friend class detail::handle;

    template <class... Ec> void open(const char *url, const options &from, Ec &...ec)
    {
        using detail::client_state;
        state_ = std::make_shared<client_state>();
        state_->functions = from;
        simba_executor executor = {state_.get(), client_state::on_submit};
        simba_options o = SIMBA_OPTIONS_INIT;
        o.ttl_ms = from.ttl.count();
        o.transition_ms = from.transition.count();
        o.connect_timeout_ms = from.connect_timeout.count();
        o.command_timeout_ms = from.command_timeout.count();
        o.drift_ppm = from.drift_ppm;
        o.executor = from.executor ? &executor : nullptr;
        o.log = from.log ? client_state::on_log : nullptr;
        o.trace = from.trace ? client_state::on_trace : nullptr;
        o.log_data = o.trace_data = state_.get();
        o.flags = from.no_thread ? SIMBA_NO_THREAD : 0;
        o.trace_kinds = from.trace_kinds;
        o.labels = from.labels.empty() ? nullptr : from.labels.c_str();
        int code = simba_open(url, &o, &client_);
        if (code == 0)
            state_->self = state_;
        detail::settle(code, ec...);
    }

    simba_client *client_ = nullptr;
    std::shared_ptr<detail::client_state> state_;
};

// ---- handles -----------------------------------------------------------------------------------

namespace detail {

template <class Native, auto Create, void (*Destroy)(Native *)> class handle {
public:
    template <class... Ec>
    handle(client &c, text mutex, const handle_options &o = {}, Ec &...ec) : handle(c, o)
    {
        settle(create(c, mutex), ec...);
    }
    handle(handle &&) noexcept = default;
    handle &operator=(handle &&from) noexcept
    {
        if (this != &from) {
            end();
            state_ = std::move(from.state_);
        }
        return *this;
    }
    ~handle() { end(); }

    explicit operator bool() const noexcept { return native() != nullptr; }
    Native *native() const noexcept
    {
        bool is_open = state_ != nullptr && !state_->is_closed;
        return static_cast<Native *>(is_open ? state_->handle : nullptr);
    }

protected:
    handle(client &c, const handle_options &o) : state_(std::make_shared<handle_state>())
    {
        state_->functions = o;
        state_->client = c.state_;
    }
    template <class... More> int create(client &c, const text &mutex, More... more)
    {
        simba_handle_options o = state_->native();
        Native *out = nullptr;
        state_->self = state_;
        int code = Create(c.native(), mutex.c_str(), more..., &o, &out);
        if (code != 0)
            state_->self = nullptr;
        state_->handle = out;
        return code;
    }
    void end() noexcept
    {
        // In a child after fork the handle is not ours, and no callback comes.
        if (state_ == nullptr || state_->handle == nullptr || state_->process != getpid())
            return;
        Destroy(native());
        state_->wait_for_last_callback();
    }

    std::shared_ptr<handle_state> state_;
};

// What contenders and schedulers have in common: they lead, or wait for it.
template <class Native, auto Create, void (*Destroy)(Native *)>
class candidate : public handle<Native, Create, Destroy> {
public:
    using handle<Native, Create, Destroy>::handle;

    template <class... Ec> void start(Ec &...ec) { settle(simba_contender_start(get()), ec...); }
    template <class... Ec> void stop(Ec &...ec) { settle(simba_contender_stop(get()), ec...); }
    template <class... Ec> void fail(std::uint64_t token, simba_reason reason, Ec &...ec)
    {
        settle(simba_contender_fail(get(), token, reason), ec...);
    }
    template <class... Ec> void resign(milliseconds pause, Ec &...ec)
    {
        settle(simba_contender_resign(get(), pause.count()), ec...);
    }
    template <class... Ec> void wait(simba_status until, milliseconds timeout, Ec &...ec)
    {
        settle(simba_contender_wait(get(), until, timeout.count()), ec...);
    }
    // False: that tenure is over.
    bool progress(std::uint64_t token) noexcept
    {
        return simba_contender_progress(get(), token) == 0;
    }
    template <class... Ec>
    void publish(std::uint64_t token, text what, milliseconds timeout, Ec &...ec)
    {
        settle(simba_contender_publish(get(), token, what.c_str(), timeout.count()), ec...);
    }
    simba_status status() const noexcept { return simba_contender_status(get()); }
    bool is_owner() const noexcept { return simba_contender_is_owner(get()); }
    bool owns(std::uint64_t token) const noexcept { return simba_contender_owns(get(), token); }
    std::uint64_t token() const noexcept { return simba_contender_token(get()); }
    milliseconds remaining() const noexcept
    {
        return milliseconds(simba_contender_remaining(get()));
    }
    const char *id() const noexcept { return simba_contender_id(get()); }
    simba_state state() const noexcept
    {
        simba_state out = {};
        simba_contender_state(get(), &out);
        return out;
    }

private:
    simba_contender *get() const noexcept
    {
        if constexpr (std::is_same_v<Native, simba_contender>)
            return this->native();
        else
            return simba_scheduler_contender(this->native());
    }
};

} // namespace detail

class contender
    : public detail::candidate<simba_contender, simba_contender_create, simba_contender_destroy> {
public:
    using candidate::candidate;
};

// The work is called with a simba::run &. It returns void, or an int: other than 0 if it failed.
class scheduler
    : public detail::candidate<simba_scheduler, simba_scheduler_create, simba_scheduler_destroy> {
public:
    template <class Work, class... Ec>
    scheduler(client &c, text mutex, const schedule &when, Work work, const handle_options &o = {},
              Ec &...ec)
        : candidate(c, o)
    {
        if constexpr (std::is_void_v<std::invoke_result_t<Work &, run &>>)
            state_->work = [w = std::move(work)](run &r) mutable { return w(r), 0; };
        else
            state_->work = std::move(work);
        simba_schedule s = SIMBA_SCHEDULE_INIT;
        s.pace = when.pace;
        s.period_ms = when.period.count();
        s.initial_delay_ms = when.initial_delay.count();
        s.cron = when.cron.empty() ? nullptr : when.cron.c_str();
        s.zone = when.zone.empty() ? nullptr : when.zone.c_str();
        s.missed = when.missed;
        s.flags = when.flags;
        int code = create(c, mutex, &s, detail::handle_state::on_work);
        state_->contender = simba_scheduler_contender(native());
        detail::settle(code, ec...);
    }
};

// mutex nullptr: all of the store. on_changed may come before the constructor has returned.
class observer
    : public detail::handle<simba_observer, simba_observer_create, simba_observer_destroy> {
public:
    using handle::handle;
    template <class... Ec> simba::note note(Ec &...ec) const
    {
        simba::note out = {};
        detail::settle(simba_observer_note(native(), &out), ec...);
        return out;
    }
    simba::state state() const noexcept
    {
        simba::state out = {};
        simba_observer_state(native(), &out);
        return out;
    }
};

// A lock as the standard library has them: for std::unique_lock, lock_guard, scoped_lock, std::lock.
// It is not recursive, and for one thread at a time: while one holds or awaits it, lock() fails in
// another with errc::wrong_state. Give each thread a locker of its own.
class locker : public detail::handle<simba_locker, simba_locker_create, simba_locker_destroy> {
public:
    using handle::handle;

    template <class... Ec> void lock(Ec &...ec) { detail::settle(acquire(forever), ec...); }
    // False: held by another, not in time, or canceled. Other failures throw; an ec has them all.
    template <class... Ec> bool try_lock(Ec &...ec)
    {
        return is_acquired(acquire(milliseconds(0)), ec...);
    }
    template <class Rep, class Period, class... Ec>
    bool try_lock_for(const std::chrono::duration<Rep, Period> &time, Ec &...ec)
    {
        using real = std::chrono::duration<double, std::milli>; // no duration overflows it
        auto timeout =
            real(time) >= real(forever) ? forever : std::chrono::ceil<milliseconds>(time);
        return is_acquired(acquire(timeout.count() < 0 ? milliseconds(0) : timeout), ec...);
    }
    template <class Clock, class Duration, class... Ec>
    bool try_lock_until(const std::chrono::time_point<Clock, Duration> &until, Ec &...ec)
    {
        return try_lock_for(until - Clock::now(), ec...);
    }

    // Does not throw, because guards call it in their destructors; unlock_result() has its error.
    void unlock() noexcept { ended(simba_locker_release(native())); }
    // How the last unlock ended; of unlock_async, from the call of done on. errc::lost: the work was
    // not protected to its end.
    std::error_code unlock_result() const noexcept
    {
        return {state_ != nullptr ? state_->unlock_result.load() : SIMBA_EINVAL, category()};
    }

    // Return at once. Then done is called once, unless ec is set, with what lock or unlock would
    // have said. It may be nullptr for unlock.
    template <class... Ec>
    void lock_async(milliseconds timeout, std::function<void(std::error_code)> done, Ec &...ec)
    {
        auto p = prepare(std::move(done));
        begun(simba_locker_acquire_async(native(), timeout.count(), p->on_done, p.get()), p, ec...);
    }
    template <class... Ec> void unlock_async(std::function<void(std::error_code)> done, Ec &...ec)
    {
        auto p = prepare(std::move(done));
        int code = simba_locker_release_async(native(), p->on_unlocked, p.get());
        if (code != 0)
            ended(code);
        begun(code, p, ec...);
    }

    template <class... Ec> void publish(text what, milliseconds timeout, Ec &...ec)
    {
        detail::settle(simba_locker_publish(native(), what.c_str(), timeout.count()), ec...);
    }

    // Ends a wait, from any thread. False: nobody waits.
    bool cancel() noexcept { return simba_locker_cancel(native()) == 0; }
    bool is_held() const noexcept { return simba_locker_is_held(native()); }
    std::uint64_t token() const noexcept { return simba_locker_token(native()); }
    milliseconds remaining() const noexcept
    {
        return milliseconds(simba_locker_remaining(native()));
    }
    const char *id() const noexcept { return simba_locker_id(native()); }

private:
    void ended(int code) noexcept
    {
        if (state_ != nullptr)
            state_->unlock_result = code;
    }
    int acquire(milliseconds timeout) noexcept
    {
        return simba_locker_acquire(native(), timeout.count());
    }
    template <class... Ec> static bool is_acquired(int code, Ec &...ec)
    {
        bool is_usual = code == SIMBA_EHELD || code == SIMBA_ETIMEOUT || code == SIMBA_ECANCELED;
        if (sizeof...(ec) > 0 || !is_usual)
            detail::settle(code, ec...);
        return code == 0;
    }
    std::unique_ptr<detail::pending> prepare(std::function<void(std::error_code)> done)
    {
        if (state_ != nullptr)
            state_->has_callbacks = true;
        return std::unique_ptr<detail::pending>(new detail::pending{state_.get(), std::move(done)});
    }
    template <class... Ec>
    static void begun(int code, std::unique_ptr<detail::pending> &p, Ec &...ec)
    {
        if (code == 0)
            p.release(); // on_done frees it, and may have done so
        detail::settle(code, ec...);
    }
};

} // namespace simba

#endif
