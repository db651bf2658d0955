#!/usr/bin/env bats
# ticks.bats: simba schedule --every and --cron: ticks, what is claimed, what was missed.
# bats file_tags=store
load helper

# Milliseconds of the ticks in a file, one on each line.
milliseconds() { # file
    while read -r tick; do date -d "$tick" +%s%3N; done <"$1"
}

has_lines() { # count file
    [ -e "$2" ] && [ "$(wc -l <"$2")" -ge "$1" ]
}

@test "schedule --every: the next leader keeps the phase, and repeats no tick" {
    begin "$SIMBA" schedule -q "${SHORT[@]}" "$M" --every 300ms -c 'echo $SIMBA_TICK >>ticks'
    await has_lines 3 ticks
    kill -KILL "$PID"
    begin "$SIMBA" schedule -q "${SHORT[@]}" "$M" --every 300ms -c 'echo $SIMBA_TICK >>ticks'
    count=$(wc -l <ticks)
    await has_lines $((count + 3)) ticks
    kill -TERM "$PID"
    ends "$PID"
    milliseconds ticks >numbers
    awk 'NR == 1 { first = $1 }
        ($1 - first) % 300 != 0 { print "out of phase: " $1; exit 1 }
        NR > 1 && $1 <= before { print $1 " after " before; exit 1 }
        { before = $1 }' numbers
}

@test "schedule: JSON has the tick of a run, and CMD has it as SIMBA_TICK" {
    SIMBA_TICK=old begin "$SIMBA" schedule --json "$M" --every 100ms -c 'echo $SIMBA_TICK >>ticks' >out 2>err
    await has_lines 2 ticks
    await has '"run":2,' out
    kill -TERM "$PID"
    ends "$PID"
    head -n 2 ticks >expected
    sed -nE 's/.*"event":"run".*"tick":"([^"]*)".*/\1/p' out | head -n 2 | diff expected -
    grep -qE '^2[0-9]{3}-[0-9]{2}-[0-9]{2}T[0-9:]{8}(\.[0-9]{3})?Z$' ticks
    SIMBA_TICK=old run simba schedule -q "$M" --once -c 'echo "${SIMBA_TICK-none}"'
    expect 0 '^none$'
}

# Two runs, then nobody leads for a second, then a leader with --missed $1.
miss() { # once or all
    local name=$M-$1 last
    begin "$SIMBA" schedule -q "$name" --every 300ms -c 'echo $SIMBA_TICK >>'"before-$1"
    await has_lines 2 "before-$1"
    kill -TERM "$PID"
    ends "$PID"
    last=$(date -d "$(tail -n 1 "before-$1")" +%s%3N)
    await test_time $((last + 1500))
    begin "$SIMBA" schedule -q "$name" --every 300ms --missed "$1" -c 'echo $SIMBA_TICK >>'"after-$1"
    await has_lines 2 "after-$1"
    kill -TERM "$PID"
    ends "$PID"
    milliseconds "after-$1" | head -n 1 | awk -v last="$last" '{ print ($1 - last) / 300 }' >"gap-$1"
}

test_time() { # milliseconds
    [ "$(date +%s%3N)" -ge "$1" ]
}

@test "schedule --missed: once and all" {
    miss all
    [ "$(cat gap-all)" -eq 1 ]
    miss once
    [ "$(cat gap-once)" -ge 5 ]
}

# A tick that is older than two leases, here a second, is missed; that is said.
@test "schedule --missed skip: says what is not run, and goes on with the next" {
    [ "$KIND" != zookeeper ] || skip "leases are longer there"
    local when=(--ttl 400ms --transition 100ms "$M" --every 2s) last next
    begin "$SIMBA" schedule -q "${when[@]}" -c 'echo $SIMBA_TICK >>ticks'
    await has_lines 1 ticks
    kill -TERM "$PID"
    ends "$PID"
    last=$(date -d "$(cat ticks)" +%s%3N)
    await test_time $((last + 3200))
    begin "$SIMBA" schedule "${when[@]}" -c 'echo $SIMBA_TICK >>ticks' 2>err
    await has_lines 2 ticks
    kill -TERM "$PID"
    ends "$PID"
    next=$(date -d "$(tail -n 1 ticks)" +%s%3N)
    [ $(((next - last) % 2000)) -eq 0 ]
    [ $((next - last)) -ge 4000 ]
    grep -qE "mutex '$M' on .*: nobody has run the ticks from 2.*Z on, and they are not run any more; the next is 2.*Z" err
}

# CMD kills its keeper in the middle of its second run.
strike() { # options
    begin "$SIMBA" schedule -q "${SHORT[@]}" "$M" --every 500ms "$@" -c '
        echo $SIMBA_TICK >>ticks
        [ -e struck ] || [ "$(wc -l <ticks)" -lt 2 ] || { touch struck; kill -KILL $(cat keeper); exec sleep 60; }'
    echo "$PID" >keeper
    await test -e struck
    begin "$SIMBA" schedule -q "${SHORT[@]}" "$M" --every 500ms "$@" -c 'echo $SIMBA_TICK >>ticks'
    await has_lines 4 ticks
    kill -TERM "$PID"
    ends "$PID"
}

@test "schedule: a run that dies with its leader is not repeated" {
    strike --initial-delay 500ms --missed all
    [ -z "$(uniq -d ticks)" ]
}

@test "schedule --at-least-once: a run that dies with its leader is repeated" {
    strike --initial-delay 500ms --at-least-once --missed all
    [ "$(uniq -d ticks)" = "$(sed -n 2p ticks)" ]
}

@test "schedule --at-least-once: it is repeated, too, where missed ticks are skipped" {
    strike --initial-delay 500ms --at-least-once
    [ "$(uniq -d ticks)" = "$(sed -n 2p ticks)" ]
}

note_of() { # mutex
    simba status --json "$1" | sed -E 's/.*"note":"([^"]*)".*/\1/'
}

note_is() { # mutex word
    [[ "$(note_of "$1")" == "tick 1 "*" $2 "* ]]
}

@test "schedule --at-least-once: what cannot be begun is not done" {
    begin "$SIMBA" schedule "${SHORT[@]}" "$M" --every 1h --at-least-once ./nowhere 2>err
    await has "cannot run ./nowhere: No such file or directory" err
    await has "released" err
    note_is "$M" begun
    kill -TERM "$PID"
    ends "$PID"
    note_is "$M" begun
}

@test "schedule --at-least-once, TERM: a run that ends well meanwhile is done, one that is cut short is not" {
    begin "$SIMBA" schedule -q "$M" --every 1h --at-least-once -c 'trap "" TERM; touch begun; sleep 0.5; exit 0'
    await test -e begun
    kill -TERM "$PID"
    ends "$PID"
    note_is "$M" done
    begin "$SIMBA" schedule -q "$M-2" --every 1h --at-least-once -c 'touch begun-2; sleep 60'
    await test -e begun-2
    kill -TERM "$PID"
    ends "$PID"
    note_is "$M-2" begun
}

# PRELOAD lets the wall clock of who has it and CLOCK_STEP be another.
needs_clock_step() {
    PRELOAD=$(dirname "$SIMBA")/tests/clock_step.so
    [ -e "$PRELOAD" ] || skip "tests/preload/clock_step.c is not built"
    ! grep -qE 'lib[at]san' <<<"$(ldd "$SIMBA")" || skip "a sanitizer must come before all that is preloaded"
}

# bats test_tags=sqlite
@test "schedule: a claim of the future is said as long as nothing runs, and forgotten on demand" {
    needs_clock_step
    local limits=(--ttl 400ms --transition 100ms) # it is said every two seconds
    printf '\x00\xa4\x93\xd6\x00\x00\x00\x00' >clock # an hour ahead, and so is the store: it is a file
    CLOCK_STEP=$PWD/clock LD_PRELOAD=$PRELOAD begin "$SIMBA" schedule "${limits[@]}" -v --listen 127.0.0.1:0 \
        "$M" --every 200ms -c 'echo $SIMBA_TICK >>ticks' 2>err
    await has_lines 1 ticks
    await has 'listening on' err
    local url
    url=$(grep -oE 'http://[0-9.:]+' err | head -n 1)
    run curl -sS -w '%{http_code}' "$url/healthz"
    expect 0 '200$'
    printf '\x00\x00\x00\x00\x00\x00\x00\x00' 1<>clock
    await has "mutex '$M' on $STORE: nothing runs until tick 2.*Z, because it is claimed already; it is 2.*Z now. .*: simba release --note $M$" err
    sleep 4.5
    [ "$(grep -c 'nothing runs until tick' err)" -ge 3 ] || { cat err; return 1; }
    run curl -sS -w '%{http_code}' "$url/healthz"
    expect_all 0 'nothing runs: a tick is claimed that is still long to come' '503$'
    grep -q "^simba_schedules_blocked 1$" <<<"$(curl -sS "$url/metrics")"
    run timeout 20 "$SIMBA" release --yes --note "$M"
    expect 0 "mutex '$M' on $STORE: its note 'tick 1 2.*' is cleared"
    rm ticks
    await has_lines 2 ticks
    grep -q "^simba_schedules_blocked 0$" <<<"$(curl -sS "$url/metrics")"
    run curl -sS -w '%{http_code}' "$url/healthz"
    expect 0 '200$'
    kill -TERM "$PID"
    ends "$PID"
}

# bats test_tags=sqlite
@test "schedule --fail-fast: ends where nothing runs, because a tick of the future is claimed" {
    begin "$SIMBA" elect -q --advertise "tick 1 $(date -u -d '+1 hour' +%FT%TZ) claimed 3f9a2c7e" "$M" >published
    await has acquired published
    kill "$PID"
    ends "$PID"
    run timeout 20 "$SIMBA" schedule --fail-fast "$M" --every 1s ./never
    expect_all 125 'nothing runs until tick' "mutex '$M' on $STORE: nothing runs; giving up \(--fail-fast\)$"
}

# bats test_tags=sqlite
@test "schedule: a user without rights to the notes is told that nothing runs; --fail-fast ends" {
    with_server '' postgres -- '
        simba lock -u "$1" m true
        for right in select insert,update; do
            psql -qc "grant all on simba_note to simba" -c "revoke $right on simba_note from simba" "$1"
            timeout 20 "$SIMBA" schedule -u "$1" --fail-fast m --every 1s ./never 2>&1 || echo "status $?"
        done'
    expect_all 0 "^simba schedule: mutex 'm'.*: which tick is next cannot be read: .*permission denied for table simba_note.*; the contender is stopped" \
        "^simba schedule: mutex 'm'.*: its note 'tick 1 .*' cannot be written: .*permission denied for table simba_note.*; the contender is stopped"
    [ "$(grep -c '^status 125$' <<<"$output")" -eq 2 ] || { echo "$output"; return 1; }
}

# bats test_tags=sqlite
@test "schedule: notes that somebody keeps locked: it is said that nothing runs, without -v" {
    with_server '' postgres -- '
        simba lock -u "$1" m true
        psql -q "$1" -c "begin" -c "lock table simba_note" -c "select pg_sleep(30)" >&2 &
        "$SIMBA" schedule -u "$1" m --every 1s touch ran 2>said &
        for i in $(seq 200); do ! grep -q "trying again" said || break; sleep 0.1; done
        kill $! %1
        cat said'
    expect 0 "^simba schedule: mutex 'm'.*: (which tick is next cannot be read|its note 'tick 1 .*' cannot be written): .*; trying again"
}

# A machine whose clock is an hour ahead leads, and dies; then one leads whose clock is right. On a store that has a
# clock of its own.
lead_an_hour_ahead() { # server
    needs_clock_step
    PRELOAD=$PRELOAD with_server '' "$1" -- '
        one() { exec "$SIMBA" schedule -u "$1" --ttl 1s --transition 1s m --every 200ms -c "echo \$SIMBA_TICK >>$2"; }
        runs() { for i in $(seq 200); do [ "$(cat "$1" 2>&1 | wc -l)" -lt 4 ] || return 0; sleep 0.05; done; }
        printf "\\x00\\xa4\\x93\\xd6\\x00\\x00\\x00\\x00" >clock
        CLOCK_STEP=$PWD/clock LD_PRELOAD=$PRELOAD one "$1" ahead 2>wrong &
        runs ahead
        kill -KILL $!
        one "$1" right 2>err &
        runs right
        kill -TERM $!
        wait $! || true
        cat wrong err
        echo "$(wc -l <right) runs, $(($(date -d "$(tail -n 1 right)" +%s) - $(date -d "$(head -n 1 ahead)" +%s))) s"'
    expect_all 0 '^[1-9][0-9]* runs, [0-9]{1,2} s' \
        "mutex 'm' on .*: the clock of this machine is (0:59:5|1:00:0)[0-9] ahead of the store's: ticks go by the store's clock. Set the one that is wrong"
}

# bats test_tags=sqlite
@test "schedule: a clock that is an hour ahead claims no ticks of the future: Redis" { lead_an_hour_ahead redis; }

# bats test_tags=sqlite
@test "schedule: a clock that is an hour ahead claims no ticks of the future: MariaDB" { lead_an_hour_ahead mariadb; }

# bats test_tags=sqlite
@test "schedule: a clock that is an hour ahead claims no ticks of the future: PostgreSQL" { lead_an_hour_ahead postgres; }

# bats test_tags=sqlite
@test "schedule: a clock that is an hour ahead claims no ticks of the future: ZooKeeper" { lead_an_hour_ahead zookeeper; }

# bats test_tags=storeless
@test "schedule --cron --dry-run: the next ten ticks, in the zone and in UTC" {
    run simba schedule --dry-run "$M" --cron '30 3 * * *' --zone Asia/Kolkata
    expect 0 "next runs of '30 3 \* \* \*', in Asia/Kolkata and in UTC:"
    [ "$(grep -cE '^  [-0-9]+T03:30:00\+05:30  [-0-9]+T22:00:00Z$' <<<"$output")" -eq 10 ]
    run simba schedule --dry-run --json "$M" --cron @hourly
    [ "$(grep -cE '^\{"tick":"[-0-9]+T[0-9]+:00:00Z","local":"[-0-9]+T[0-9]+:00:00\+00:00","zone":"UTC"\}$' <<<"$output")" -eq 10 ]
}

# bats test_tags=storeless
@test "schedule --cron: bad input" {
    run simba schedule "$M" --cron '0 25 * * *' true
    expect 64 "cron expression '0 25 \* \* \*': hour: '25' is not between 0 and 23"
    run simba schedule "$M" --cron '0 0 30 2 *' true
    expect 64 "cron expression '0 0 30 2 \*': it never comes: none of its months has such a day"
    run simba schedule "$M" --cron @daily --zone Europe/Atlantis true
    expect 64 "no time zone 'Europe/Atlantis': /usr/share/zoneinfo/Europe/Atlantis: No such file or directory"
    run simba schedule "$M" --cron @daily --zone Europe true
    expect 64 "no time zone 'Europe': /usr/share/zoneinfo/Europe: Is a directory"
    run simba schedule "$M" --cron @daily --zone ../../etc/passwd true
    expect 64 "'../../etc/passwd' is not the name of a time zone"
    run simba schedule "$M" --cron @daily --every 1h true
    expect 64 "--every, --cron and --delay exclude each other"
    run simba schedule "$M" --cron @daily --once true
    expect 64 "--once excludes --every, --cron and --delay"
    run simba schedule "$M" --every 1h --zone UTC true
    expect 64 "--zone is for --cron"
    run simba schedule "$M" --delay 1h --missed all true
    expect 64 "--missed and --at-least-once are for --every and --cron"
    run simba schedule "$M" --once --at-least-once true
    expect 64 "--missed and --at-least-once are for --every and --cron"
    run simba schedule "$M" --every 1h --missed some true
    expect 64 "--missed is skip, once or all, not 'some'"
}

@test "schedule: five nodes, clocks apart, leaders killed, stopped and evicted: every tick once, in phase" {
    needs_clock_step
    [ "$KIND" != zookeeper ] || skip "leases are longer there: run tests/ticks/rig by hand"
    "$BATS_TEST_DIRNAME/../ticks/rig" --ticks 12 --ahead 3 --strike-every 3 "$SIMBA" "$PRELOAD" "$SIMBA_URL"
}

has_tried_again() { [ "$(grep -c 'is not of a schedule' "$1")" -gt 2 ]; } # file

@test "schedule: a scheduler that stops itself: when it tries again is said once; --fail-fast ends it" {
    begin "$SIMBA" elect -q --advertise http://h:1 "$M" >published
    await has acquired published
    kill "$PID"
    ends "$PID"
    begin "$SIMBA" schedule --ttl 1s --transition 4s "$M" --every 1s ./never 2>said
    await has "mutex '$M' on $STORE: contending has stopped; trying again every 1.0s$" said
    await has_tried_again said
    [ "$(grep -c 'contending has stopped' said)" -eq 1 ]
    kill -TERM "$PID"
    ends "$PID"
    [ "$CODE" -eq 0 ]
    run timeout 20 "$SIMBA" schedule --fail-fast "$M" --every 1s ./never
    expect_all 125 "is not of a schedule" "contending has stopped; giving up \(--fail-fast\)$"
}
