// no_exceptions.cpp: compiled with -fno-exceptions -fno-rtti. Failures come by std::error_code, and
// what would throw does not compile.
#include "harness.hpp"

#include <future>
#include <mutex>

using namespace std::chrono_literals;
using simba::errc;

TEST(locks)
{
    std::error_code ec;
    simba::client none("nowhere://x", {}, ec);
    EXPECT(ec == errc::no_module && std::strstr(simba_error_text(), "nowhere") != nullptr);
    simba::client client(store_url(), {}, ec);
    EXPECT(!ec);
    simba::locker lock(client, "no-exceptions", {}, ec);
    EXPECT(!ec && lock.try_lock_for(10s, ec) && !ec);
    {
        std::unique_lock guard(lock, std::adopt_lock);
        EXPECT(client.read("no-exceptions", 10s, ec).token == lock.token() && !ec);
    }
    EXPECT(!lock.is_held() && !lock.unlock_result());
    EXPECT(!client.close(10s));
}

TEST(callbacks)
{
    std::error_code ec;
    simba::client client(store_url(), {}, ec);
    std::promise<void> acquired, run;
    simba::handle_options o;
    o.on_acquired = [&](auto &) { acquired.set_value(); };
    simba::scheduler scheduler(
        client, "no-exceptions", {1h}, [&](simba::run &) { run.set_value(); }, o, ec);
    EXPECT(!ec);
    scheduler.start(ec);
    EXPECT(!ec);
    acquired.get_future().wait();
    run.get_future().wait();
    scheduler.start(ec);
    EXPECT(ec == errc::wrong_state);
}

int main(int argc, char **argv)
{
    return run_cases(argc, argv);
}
