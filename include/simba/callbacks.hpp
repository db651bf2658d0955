// simba/callbacks.hpp: a part of simba.hpp, which includes it: how results and callbacks come.
//
// The library knows a client or a handle by a pointer to its state, which does not move when the object
// of the user does. A state holds itself, by `self`, as long as the library may use it.
#ifndef SIMBA_CALLBACKS_HPP
#define SIMBA_CALLBACKS_HPP

#ifndef SIMBA_HPP
#error "include simba.hpp instead"
#endif

namespace simba::detail {

inline void settle(std::int64_t code, std::error_code &ec) noexcept
{
    ec = {code < 0 ? static_cast<int>(code) : 0, category()};
}

#ifdef __cpp_exceptions
inline void settle(std::int64_t code)
{
    if (code < 0)
        throw error(static_cast<int>(code));
}
#endif

// The functions of a client. The library uses them until simba_close has returned 0, which the
// client may not live to see: so they hold themselves until then.
struct client_state {
    options functions;
    std::shared_ptr<client_state> self;

    // noexcept: what leaves it ends in std::terminate.
    template <class F, class... Args> void call(const F &function, Args &&...args) noexcept
    {
#ifdef __cpp_exceptions
        if (functions.on_exception) {
            try {
                return void(function(std::forward<Args>(args)...));
            } catch (...) {
                return functions.on_exception(std::current_exception());
            }
        }
#endif
        function(std::forward<Args>(args)...);
    }

    static client_state *of(void *data) noexcept
    {
        return static_cast<client_state *>(data);
    }
    static void on_log(void *data, simba_level level, const char *line) noexcept
    {
        of(data)->call(of(data)->functions.log, level, line);
    }
    static void on_trace(void *data, const simba_event *event) noexcept
    {
        of(data)->call(of(data)->functions.trace, *event);
    }
    static int on_submit(void *data, void (*run)(void *), void *arg) noexcept
    {
        return of(data)->functions.executor(run, arg) ? 0 : -1;
    }
};

// What the callbacks of a handle use. It holds itself until on_closed, the last of them, has come.
struct handle_state {
    handle_options functions;
    std::function<int(run &)> work;
    std::shared_ptr<client_state> client;
    std::shared_ptr<handle_state> self;
    void *handle = nullptr;
    simba_contender *contender = nullptr; // of a scheduler, for its runs
    const pid_t process = getpid();
    std::atomic<bool> has_callbacks{false};
    std::atomic<bool> is_closed{false}; // on_closed has come: the handle may be gone
    std::atomic<int> unlock_result{0};
    std::mutex lock;
    std::condition_variable closed;

    static const handle_state *&running() noexcept // on this thread
    {
        static thread_local const handle_state *one = nullptr;
        return one;
    }
    template <class F, class... Args> void call(const F &function, Args &&...args) noexcept
    {
        const handle_state *before = std::exchange(running(), this);
        client->call(function, std::forward<Args>(args)...);
        running() = before;
    }

    static handle_state *of(void *data) noexcept { return static_cast<handle_state *>(data); }
    template <auto Function>
    static void on_state(void *data, const char *, const simba_state *s) noexcept
    {
        of(data)->call(of(data)->functions.*Function, *s);
    }
    static void on_changed(void *data, const char *mutex, const simba_state *s) noexcept
    {
        of(data)->call(of(data)->functions.on_changed, mutex, *s);
    }
    static void on_endangered(void *data, const char *, std::int64_t left_ms) noexcept
    {
        of(data)->call(of(data)->functions.on_endangered, milliseconds(left_ms));
    }
    static void on_stopped(void *data) noexcept { of(data)->call(of(data)->functions.on_stopped); }
    static int on_work(void *data, const simba_run *r) noexcept
    {
        run one(r, of(data)->contender);
        int code = 1; // if it throws: the library logs that the run has failed
        auto work = [&] { code = of(data)->work(one); };
#ifdef __cpp_exceptions
        auto work_alone = [&] {
            try {
                work();
            } catch (...) {
            }
        };
        if (!of(data)->client->functions.on_exception)
            return of(data)->call(work_alone), code;
#endif
        return of(data)->call(work), code;
    }
    static void on_closed(void *data) noexcept
    {
        auto h = std::move(of(data)->self); // stays to the end of this function
        std::lock_guard guard(h->lock);
        h->is_closed = true;
        h->closed.notify_all();
    }

    simba_handle_options native() noexcept
    {
        const handle_options &f = functions;
        using h = handle_options;
        has_callbacks = f.on_acquired || f.on_released || f.on_lost || f.on_changed ||
                        f.on_endangered || f.on_stopped || work;
        simba_handle_options o = SIMBA_HANDLE_OPTIONS_INIT;
        o.id = f.id.empty() ? nullptr : f.id.c_str();
        o.ttl_ms = f.ttl.count();
        o.transition_ms = f.transition.count();
        o.initial_delay_ms = f.initial_delay.count();
        o.renew_ms = f.renew.count();
        o.drain_ms = f.drain.count();
        o.jitter_early_ms = f.jitter_early.count();
        o.jitter_late_ms = f.jitter_late.count();
        o.progress_ms = f.progress.count();
        o.at_least_ms = f.at_least.count();
        o.note = f.note ? f.note->c_str() : nullptr;
        o.on_acquired = f.on_acquired ? on_state<&h::on_acquired> : nullptr;
        o.on_released = f.on_released ? on_state<&h::on_released> : nullptr;
        o.on_changed = f.on_changed ? on_changed : nullptr;
        o.on_endangered = f.on_endangered ? on_endangered : nullptr;
        o.on_stopped = f.on_stopped ? on_stopped : nullptr;
        o.on_lost = f.on_lost ? on_state<&h::on_lost> : nullptr;
        o.on_closed = on_closed;
        o.data = this;
        return o;
    }

    void wait_for_last_callback()
    {
        if (!has_callbacks || running() == this || client->functions.no_thread)
            return;
        std::unique_lock guard(lock);
        closed.wait(guard, [this] { return is_closed.load(); });
        guard.unlock();
        functions = {}; // what they own goes now, not on whichever thread comes last
        work = nullptr;
    }
};

// An asynchronous call until its end.
struct pending {
    handle_state *handle;
    std::function<void(std::error_code)> done;

    static void on_done(void *data, int code) noexcept
    {
        std::unique_ptr<pending> p(static_cast<pending *>(data));
        if (p->done)
            p->handle->call(p->done, std::error_code(code, category()));
    }
    static void on_unlocked(void *data, int code) noexcept
    {
        static_cast<pending *>(data)->handle->unlock_result = code;
        on_done(data, code);
    }
};

template <class Native, auto Create, void (*Destroy)(Native *)> class handle;

} // namespace simba::detail

#endif
