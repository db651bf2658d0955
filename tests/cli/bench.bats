#!/usr/bin/env bats
# bench.bats: simba bench measures, says so in a table or as JSON, and leaves nothing held.
bats_require_minimum_version 1.5.0
load helper

# bats file_tags=store

# Other tests may measure in the same store, but for seconds. What has leaked stays for a lease of a minute.
expect_nothing_held() {
    await lists_none
}

lists_none() {
    run -0 --separate-stderr simba list --json simba-bench-
    [ -z "$output" ]
}

lists_some() {
    simba list --json simba-bench- | grep -q mutex
}

# The names of all that it can measure with: a listing would have to meet one while it is held.
watch_pairs() {
    local names
    names=$(printf 'simba-bench-%d.one ' {0..15})
    # shellcheck disable=SC2086 # names
    begin "$SIMBA" watch --json $names >watched
    await has_lines 16 watched # one for how each is
}

has_lines() { # so many, file
    [ "$(wc -l <"$2")" -ge "$1" ]
}

watched_tenures() { # so many have begun
    [ "$(grep -c '"event": *"acquired"' watched)" -ge "$1" ]
}

@test "bench: a table, an estimate and one sentence; nothing stays held" {
    run -0 simba bench --ttl 60s --for 1s
    expect_all 0 '^acquire \+ release +[0-9.]+ (us|ms|s) +[0-9.]+ (us|ms|s) +[0-9.]+ (us|ms|s) +[0-9,]+$' \
        '^hand-over +[0-9.]+ ' '^renewal +[0-9.]+ ' 'at most 1,000 operations per second' \
        '^From here, acquire and release take .* hand-over takes .*\.$'
    expect_nothing_held
}

@test "bench: --json is one object whose figures are in order, and no faster than --rate" {
    run -0 --separate-stderr simba bench --json --for 3s --rate 500
    [ -z "$stderr" ]
    python3 - "$output" <<'END'
import json, sys
o = json.loads(sys.argv[1])
assert o["rate"] == 500 and o["interrupted"] is False and o["measured_ms"] >= 2900, o
for kind in ("pairs", "handovers", "renewals"):
    s = o[kind]
    assert s["count"] > 0 and 0 <= s["p50_us"] <= s["p99_us"] <= s["max_us"], (kind, s)
# For a second, two operations each, and one before the first pause.
assert o["pairs"]["count"] <= 500 / 2 + 2, o["pairs"]
if not o["store"].startswith("zookeeper:"):
    counts = [m["count"] for m in o["mutexes"]]
    assert counts == sorted(counts) and counts[0] > 0, counts
END
}

@test "bench: a signal ends it in order: shows what there is, gives all back, dies of it" {
    local bench
    begin "$SIMBA" bench --ttl 60s --for 1h >out # a shell's children in the background ignore SIGINT
    bench=$PID
    await lists_some # so there is a store
    watch_pairs
    await watched_tenures 2 # so a first pair is over
    kill -TERM "$bench"
    ends "$bench"
    [ "$CODE" -eq 143 ]
    has ', then interrupted' out
    has '^From here, acquire and release take [0-9.]+ ' out
    expect_nothing_held
}

@test "bench: two at once measure with mutexes of their own" {
    begin "$SIMBA" bench --ttl 60s --for 3s >one
    await lists_some
    run -0 simba bench --ttl 60s --for 1s
    ends "$PID"
    [ "$CODE" -eq 0 ]
    has '^From here' one
    expect_nothing_held
}

# bats test_tags=storeless
@test "bench: wrong durations and rates are refused" {
    for wrong in '--for 10ms' '--for 2h' '--for x' '--rate x' '--rate -1' '--rate 1e9' '--rate' 'a b'; do
        # shellcheck disable=SC2086
        run -64 simba bench $wrong
    done
}

# bats test_tags=storeless
@test "bench: a store that does not answer: 125, and why" {
    run -125 simba bench --for 1s redis://127.0.0.1:1/0
    [[ $output == *refused* ]]
}
