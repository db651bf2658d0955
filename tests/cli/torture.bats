#!/usr/bin/env bats
# torture.bats: simba torture: short rounds, a lie that is found, an end that leaves nobody behind.
bats_require_minimum_version 1.8.0
# bats file_tags=store
load helper

ROUND=(--for 2s --ttl 300ms --transition 200ms)

torture() { run --separate-stderr simba torture "$SIMBA_URL" "${ROUND[@]}" "$@"; }

# What was late on a busy machine is no failure, and says so.
@test "torture: never two owners, in the last line" {
    [ "$KIND" != zookeeper ] || ROUND=(--for 3s --ttl 2s --transition 2s)
    torture --seed 7
    expect 0
    expect_all 0 '^faults +.*kill [0-9]' '^tenures +[0-9]+, and [0-9]+ times yes' \
        '^hand-overs +[0-9]+: p50 .*; bound ' '^takeovers ' '^machine '
    [[ "${lines[-1]}" =~ ^simba:\ torture\ .*:\ [23]\ s,\ seed\ 7:\ [0-9]+\ hand-overs\ and\ [0-9]+\ takeovers ]]
    [[ "${lines[-1]}" =~ on\ 3\ mutexes\ by\ 6\ processes,\ [0-9]+\ faults:\ never\ two\ owners ]]
}

# bats test_tags=sqlite
@test "torture: a worker that lies about ownership is found" {
    SIMBA_TORTURE_PLANT=lie torture --seed 7 --faults none
    expect 1 '^WRONG +two owners of mutex [0-9] for [0-9.]+ ms at [0-9.]+ s: worker 0 with token [0-9]+, and worker'
    [[ "${lines[-1]}" =~ [0-9]+\ times\ WRONG ]]
    [[ "$stderr" == *"SIMBA_TORTURE_PLANT is set"* ]]
}

# bats test_tags=sqlite
@test "torture: a seed draws the same faults again, and others draw others" {
    faults() { simba torture "$SIMBA_URL" "${ROUND[@]}" --plan --seed "$1"; }
    faults 7 >first
    faults 7 >again
    faults 8 >other
    [ "$(wc -l <first)" -gt 10 ]
    cmp first again
    ! cmp -s first other
}

# bats test_tags=sqlite
@test "torture: no faults, other numbers, --json" {
    torture --faults none --processes 2 --mutexes 1 --json
    expect 0
    [ "$(jq -r '"\(.processes) \(.mutexes) \(.faults) \(.wrong)"' <<<"${lines[-1]}")" = "2 1 0 0" ]
    # How many there are is the machine's affair; that they were counted, and fit each other, is ours.
    [ "$(jq -r '.tenures > 0 and .handovers < .tenures and .answers > 0' <<<"${lines[-1]}")" = true ]
}

# bats test_tags=sqlite
@test "torture: two with one id, and evictions by force, are counted apart" {
    torture --same-id --limits --faults evict-forced,kill
    expect 0 'never two owners|nothing was wrong but [0-9]+ times by what the guarantees exclude'
    expect 0 '^faults .*evict-forced'
}

# bats test_tags=sqlite
@test "torture: a page for a browser" {
    torture --html page.html
    expect 0
    grep -q '<html' page.html
    torture --html /nonexistent/page.html
    expect 125
    [[ "$stderr" == *"cannot write /nonexistent/page.html: No such file or directory"* ]]
}

has_started() { compgen -G 'tmp/*/worker-5-0'; }

nobody_is_left() {
    local pid
    for pid in $(left_running); do
        [ "$pid" = $$ ] || [ "$(cat "/proc/$pid/comm" 2>/dev/null)" != simba ] || return 1
    done
}

# bats test_tags=sqlite
@test "torture: INT, TERM and KILL leave no process and no folder behind" {
    local how
    mkdir tmp
    for how in INT TERM KILL; do
        TMPDIR=$DIR/tmp begin env --default-signal=INT "$SIMBA" torture "$SIMBA_URL" "${ROUND[@]}" --for 60s >"out-$how" 2>&1
        await has_started
        kill "-$how" "$PID"
        ends "$PID"
        await nobody_is_left
        if [ "$how" = KILL ]; then
            [ "$CODE" -eq 137 ]
        else
            [ "$CODE" -eq $((128 + $(kill -l "$how"))) ]
            has '^simba: torture .* faults: ' "out-$how"
            [ -z "$(ls tmp)" ]
        fi
        rm -rf tmp/*
    done
}

# bats test_tags=sqlite
@test "torture: nothing is left in the store that is owned or waited for" {
    torture
    expect 0
    run simba list
    expect 0
    [[ "$output" != *simba-torture* ]]
}

# bats test_tags=storeless
@test "torture: wrong usage" {
    run simba torture
    expect 64 'missing URL, the store to torture'
    run simba torture memory:x
    expect 64 'memory: is a store within one process'
    run simba torture sqlite:x.db --faults kil
    expect 64 "unknown fault 'kil'; did you mean kill\?"
    run simba torture sqlite:x.db --faults kill,,freeze
    expect 64 "unknown fault ''"
    run simba torture sqlite:x.db --processes 1
    expect 64 '--processes 1: not a number from 2 to 64'
    run simba torture sqlite:x.db --mutexes x
    expect 64 '--mutexes x: not a number from 1 to 32'
    run simba torture sqlite:x.db --seed -1
    expect 64 '--seed -1: not a number'
    run simba torture sqlite:x.db --for 0
    expect 64 '--for 0: not between 1ms and 24h'
    run simba torture sqlite:x.db --server-pid nosuch
    expect 64
    run simba torture -u redis://127.0.0.1:1/0 --for 1s
    expect 125 'redis://127.0.0.1:1/0'
    [ ! -e x.db ]
}
