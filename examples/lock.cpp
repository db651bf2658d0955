// lock.cpp: lock.c in C++, with a guard of the standard library.
//
//     ./lock [URL]         memory: by default, a store inside this process only
#include <simba.hpp>

#include <iostream>
#include <mutex>
#include <stdexcept>

int main(int argc, char **argv)
try {
    using namespace std::chrono_literals;
    simba::client client(argc > 1 ? argv[1] : "memory:");
    simba::locker lock(client, "example");
    {
        std::unique_lock guard(lock, 10s); // waits at most ten seconds
        if (!guard)
            throw std::runtime_error("held by another");

        // What is protected takes the token along and refuses one lower than it has seen.
        std::cout << "alone here, token " << lock.token() << "\n";
    }
    if (auto ec = lock.unlock_result()) // simba::errc::lost: we were not alone to the end
        throw std::system_error(ec);
} catch (const std::exception &e) {
    std::cerr << "lock: " << e.what() << "\n";
    return 1;
}
