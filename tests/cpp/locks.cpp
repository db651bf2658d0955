// locks.cpp: simba::locker and simba::client, as a user of the standard library expects them.
#include "harness.hpp"

#include <future>
#include <mutex>
#include <optional>
#include <thread>

using namespace std::chrono_literals;
using simba::errc;

TEST(guards)
{
    simba::client client(store_url());
    simba::locker a(client, "guards-a"), b(client, "guards-b");
    {
        std::lock_guard guard(a);
        EXPECT(a.is_held() && a.token() > 0 && a.remaining() > 0ms);
        EXPECT(!b.is_held());
    }
    EXPECT(!a.is_held() && a.token() == 0 && !a.unlock_result());
    {
        std::scoped_lock guard(a, b);
        EXPECT(a.is_held() && b.is_held());
    }
    EXPECT(!a.is_held() && !b.is_held());
    std::unique_lock guard(a, 10s);
    EXPECT(guard.owns_lock() && a.is_held());
    guard.unlock();
    EXPECT(!a.is_held());
    EXPECT(!client.close(10s));
}

TEST(two_pairs_in_opposite_order)
{
    std::vector<std::thread> threads;
    std::atomic<int> inside{0}, rounds{0}, overlaps{0};
    for (int n = 0; n < 2; n++)
        threads.emplace_back([&, n] {
            simba::client client(store_url());
            simba::locker a(client, n == 0 ? "pair-a" : "pair-b");
            simba::locker b(client, n == 0 ? "pair-b" : "pair-a");
            for (int i = 0; i < 5; i++) {
                std::scoped_lock guard(a, b);
                overlaps += inside++ != 0;
                rounds++;
                inside--;
            }
        });
    for (auto &t : threads)
        t.join();
    EXPECT(rounds == 10 && overlaps == 0);
}

TEST(held_by_another)
{
    simba::client client(store_url()), other(store_url());
    simba::locker mine(client, "held"), theirs(other, "held");
    std::error_code ec;
    theirs.lock();
    EXPECT(!mine.try_lock());
    EXPECT(!mine.try_lock(ec) && ec == errc::held);
    EXPECT(!mine.try_lock_for(1s)); /* time enough for the store to say that it is held */
    EXPECT(!mine.try_lock_for(1s, ec) && ec == errc::timeout);
    EXPECT(!mine.try_lock_for(-1h, ec) && ec == errc::held);
    EXPECT(!mine.try_lock_until(std::chrono::steady_clock::now() + 50us, ec));
    EXPECT(ec == errc::timeout || ec == errc::store); /* it may have had no time to answer */
    std::unique_lock guard(mine, std::try_to_lock);
    EXPECT(!guard);
    std::thread thread([&] {
        std::this_thread::sleep_for(100ms);
        theirs.unlock();
    });
    EXPECT(mine.try_lock_for(std::chrono::hours::max(), ec) && !ec);
    thread.join();
    EXPECT(mine.is_held());
}

TEST(locked_twice)
{
    simba::client client(store_url());
    simba::locker lock(client, "twice");
    std::lock_guard guard(lock);
    try {
        lock.lock();
        expect(false, "an exception: locked twice", __LINE__);
    } catch (const simba::error &e) {
        EXPECT(e.code() == errc::wrong_state);
        EXPECT(std::strstr(e.what(), "twice") != nullptr);
    }
}

TEST(lost)
{
    simba::client client(store_url());
    std::promise<std::uint64_t> lost;
    simba::handle_options o;
    o.on_lost = [&](const simba::state &s) { lost.set_value(s.before.token); };
    o.ttl = 1s;
    o.transition = 1s;
    simba::locker lock(client, "lost", o);
    lock.lock();
    auto token = lock.token();
    client.evict("lost", nullptr, true, 10s);
    auto notified = lost.get_future();
    EXPECT(notified.wait_for(20s) == std::future_status::ready && notified.get() == token);
    lock.unlock();
    EXPECT(lock.unlock_result() == errc::lost);
    lock.lock();
    std::promise<std::error_code> unlocked;
    lock.unlock_async([&](std::error_code) { unlocked.set_value(lock.unlock_result()); });
    EXPECT(!unlocked.get_future().get()); // the result of before is gone
}

TEST(notes)
{
    simba::client client(store_url());
    simba::handle_options o;
    o.note = "http://me";
    simba::locker lock(client, "notes", o);
    EXPECT(client.read_note("notes", 10s, nullptr).token == 0);
    lock.lock();
    simba::owner owner;
    auto note = client.read_note("notes", 10s, &owner);
    EXPECT(!std::strcmp(note.text, "http://me") && note.token == lock.token());
    EXPECT(!std::strcmp(owner.id, lock.id()));
    lock.publish("more", 10s);
    auto listed = client.list("notes", 10s);
    EXPECT(listed.size() == 1 && !std::strcmp(listed[0].note.text, "more"));
    simba::handle_options watches;
    watches.on_changed = [](std::string_view, const simba::state &) {};
    simba::observer observer(client, "notes", watches);
    while (observer.state().after.token == 0)
        std::this_thread::yield();
    EXPECT(!std::strcmp(observer.note().text, "more"));
    lock.unlock();
    std::error_code ec;
    lock.publish("x", 10s, ec);
    EXPECT(ec == errc::wrong_state);
    simba::contender contender(client, "notes");
    contender.publish(7, "x", 10s, ec);
    EXPECT(ec == errc::lost);
}

TEST(canceled)
{
    simba::client client(store_url()), other(store_url());
    simba::locker mine(client, "canceled"), theirs(other, "canceled");
    EXPECT(!mine.cancel());
    theirs.lock();
    std::error_code ec;
    std::thread thread([&] { mine.lock(ec); });
    while (!mine.cancel())
        std::this_thread::yield();
    thread.join();
    EXPECT(ec == errc::canceled);
    theirs.unlock();
}

TEST(moved)
{
    simba::client client(store_url());
    std::optional<simba::locker> from(std::in_place, client, "moved");
    from->lock();
    simba::locker lock(std::move(*from));
    EXPECT(!*from && !from->is_held() && from->token() == 0);
    std::error_code ec;
    from->lock(ec);
    EXPECT(ec == errc::invalid);
    from->lock_async(
        0ms, [](std::error_code) {}, ec);
    EXPECT(ec == errc::invalid);
    from->unlock();
    EXPECT(from->unlock_result() == errc::invalid);
    from.reset();
    EXPECT(lock.is_held());
    lock = simba::locker(client, "moved-2"); // and destroys the first, which is released behind it
    EXPECT(!lock.is_held());
    simba::client second(std::move(client));
    EXPECT(!client && second && lock.try_lock());
    second = simba::client(store_url()); // closes, and lock is empty
    EXPECT(!lock && !lock.is_held());
}

TEST(handles_outlive_their_client)
{
    std::optional<simba::client> client(std::in_place, store_url());
    simba::locker lock(*client, "outlives");
    bool is_released = false;
    simba::handle_options o;
    std::promise<void> acquired;
    o.on_acquired = [&](auto &) { acquired.set_value(); };
    o.on_released = [&](auto &) { is_released = true; };
    simba::contender contender(*client, "outlives-2", o);
    contender.start();
    acquired.get_future().wait();
    lock.lock();
    client.reset();
    EXPECT(is_released && !contender && !contender.is_owner());
    EXPECT(!lock && !lock.is_held() && lock.remaining() == 0ms && lock.id()[0] == '\0');
    std::error_code ec;
    contender.start(ec);
    EXPECT(ec == errc::invalid);
}

TEST(close_has_a_timeout)
{
    simba::client client(store_url());
    simba::locker lock(client, "close");
    std::promise<void> locked, may_unlock;
    std::thread thread([&] {
        std::lock_guard guard(lock);
        locked.set_value();
        may_unlock.get_future().wait();
    });
    locked.get_future().wait();
    EXPECT(client.close(10ms) == errc::timeout);
    EXPECT(client && lock.is_held());
    may_unlock.set_value();
    EXPECT(!client.close(20s));
    EXPECT(!client && !client.close(0ms));
    thread.join();
}

TEST(async)
{
    simba::client client(store_url()), other(store_url());
    simba::locker mine(client, "async"), theirs(other, "async");
    std::promise<std::error_code> locked, unlocked;
    theirs.lock();
    mine.lock_async(20s, [&](std::error_code ec) { locked.set_value(ec); });
    theirs.unlock();
    EXPECT(!locked.get_future().get());
    EXPECT(mine.is_held());
    mine.unlock_async([&](std::error_code ec) { unlocked.set_value(ec); });
    EXPECT(!mine.is_held());
    EXPECT(!unlocked.get_future().get());
    std::error_code ec;
    EXPECT(!mine.unlock_result());
    mine.unlock_async(nullptr, ec);
    EXPECT(ec == errc::wrong_state && mine.unlock_result() == errc::wrong_state);
}

TEST(async_ends_with_its_locker)
{
    simba::client client(store_url()), other(store_url());
    simba::locker theirs(other, "async-ends");
    std::error_code result;
    theirs.lock();
    {
        simba::locker mine(client, "async-ends");
        mine.lock_async(simba::forever, [&](std::error_code ec) {
            std::this_thread::sleep_for(100ms);
            result = ec;
        });
    }
    EXPECT(result == errc::canceled);
}

TEST(asked_as_an_operator)
{
    simba::client client(store_url());
    simba::locker lock(client, std::string_view("operator-1234").substr(0, 10));
    std::error_code ec;
    EXPECT(client.read("operator-1", 10s).token == 0);
    lock.lock();
    auto owner = client.read("operator-1", 10s);
    EXPECT(owner.token == lock.token() && simba_owner_is(&owner, lock.id()));
    auto found = client.list("operator-", 10s);
    EXPECT(found.size() == 1 && found[0].mutex == "operator-1");
    EXPECT(found[0].owner.token == lock.token());
    owner.token++;
    client.evict("operator-1", &owner, true, 10s, ec);
    EXPECT(ec == errc::lost);
    EXPECT(client.metrics().acquisitions == 1 && client.metrics(ec).owned == 1 && !ec);
    EXPECT(client.prometheus(true).find("operator-1") != std::string::npos);
    auto findings = client.diagnose(10s, ec);
    EXPECT(ec == errc::unsupported || (!ec && !findings.empty()));
    EXPECT(store_url().compare(0, 5, client.store_text(), 5) == 0);
}

TEST(default_store)
{
    setenv("SIMBA_URL", store_url().c_str(), 1);
    simba::client client, other(store_url());
    EXPECT(!std::strcmp(client.store_text(), other.store_text()));
    unsetenv("SIMBA_URL");
}

TEST(prometheus_page_of_many_handles)
{
    simba::client client(store_url());
    std::vector<simba::locker> locks;
    for (int n = 0; n < 100; n++)
        locks.emplace_back(client, "page-" + std::to_string(n));
    auto page = client.prometheus(true);
    EXPECT(page.size() > 16384 && page.find("page-99") != std::string::npos);
    EXPECT(page.back() == '\n');
}

TEST(errors)
{
    std::error_code ec;
    simba::client none("nowhere://x", {}, ec);
    EXPECT(ec == errc::no_module && !none);
    EXPECT(ec.category() == simba::category() && !std::strcmp(simba::category().name(), "simba"));
    EXPECT(ec.message() == simba_strerror(SIMBA_EMODULE));
    simba::locker empty(none, "x", {}, ec);
    EXPECT(ec == errc::invalid && !empty);
    try {
        simba::client thrown("nowhere://x");
        expect(false, "an exception: no such store", __LINE__);
    } catch (const std::system_error &e) {
        EXPECT(e.code() == errc::no_module && std::strstr(e.what(), "nowhere") != nullptr);
    }
    simba::client client(store_url());
    try {
        simba::locker thrown(client, "");
        expect(false, "an exception: no name", __LINE__);
    } catch (const simba::error &e) {
        EXPECT(e.code() == errc::invalid);
    }
    client.poll_fd(ec);
    EXPECT(ec == errc::wrong_state || ec == errc::unsupported || ec == errc::invalid);
}

int main(int argc, char **argv)
{
    return run_cases(argc, argv);
}
