// harness.hpp: cases of a C++ program, each a function. The last line is "N passed, N failed".
#ifndef HARNESS_HPP
#define HARNESS_HPP

#include <simba.hpp>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

struct test_case {
    const char *name;
    void (*function)();
};

inline std::vector<test_case> &cases()
{
    static std::vector<test_case> all;
    return all;
}

struct add_case {
    add_case(const char *name, void (*function)())
    {
        cases().push_back({name, function});
    }
};

inline std::string &store_url()
{
    static std::string url = "memory:";
    return url;
}

inline std::atomic<int> &failures()
{
    static std::atomic<int> count{0};
    return count;
}

inline void expect(bool is_true, const char *what, int line)
{
    if (is_true)
        return;
    failures()++;
    std::printf("    line %d: expected %s (last error: %s)\n", line, what, simba_error_text());
}

#define EXPECT(condition) expect(static_cast<bool>(condition), #condition, __LINE__)
#define TEST(name)                                 \
    static void name();                            \
    static const add_case add_##name(#name, name); \
    static void name()

inline int run_cases(int argc, char **argv)
{
    int passed = 0, failed = 0;
    if (argc > 1)
        store_url() = argv[1];
    const char *only = std::getenv("ONLY");
    for (const test_case &c : cases()) {
        if (only != nullptr && std::strstr(c.name, only) == nullptr)
            continue;
        failures() = 0;
        c.function();
        std::printf("%s %s\n", failures() == 0 ? "ok  " : "FAIL", c.name);
        std::fflush(stdout);
        (failures() == 0 ? passed : failed)++;
    }
    std::printf("%d passed, %d failed\n", passed, failed);
    return failed != 0;
}

#endif
