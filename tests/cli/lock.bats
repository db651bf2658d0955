#!/usr/bin/env bats
# lock.bats: simba lock: exit codes, options, environment, streams.
bats_require_minimum_version 1.8.0
# bats file_tags=store
load helper

# ---- exit codes -------------------------------------------------------------------------------

@test "CMD's status is passed through: 0, 1, 42 (T74)" {
    run simba lock "$M" true
    expect 0 '^$'
    run simba lock "$M" false
    expect 1 '^$'
    run simba lock "$M" sh -c 'exit 42'
    expect 42 '^$'
}

@test "CMD killed by a signal: 128 + signal" {
    run simba lock "$M" sh -c 'kill -9 $$'
    expect 137
    run simba lock "$M" sh -c 'kill -TERM $$'
    expect 143
}

@test "CMD's options are its own, without -- (T76)" {
    run simba lock "$M" sh -c 'exit 3'
    expect 3
    run simba lock -n "$M" sh -e -c 'exit 4'
    expect 4
    run simba lock "$M" -- sh -c 'exit 5'
    expect 5
    run simba lock "$M" printf '%s,' -n --wait -- --json
    expect 0 '^-n,--wait,--,--json,$'
}

@test "124: held by another with -n; after a while with -w; -E changes it" {
    run simba lock "$M" "$SIMBA" lock -n "$M" true
    expect 124 "held by"
    run simba lock "$M" "$SIMBA" lock -w 3s "$M" true # the store has answered by then
    expect 124 "timed out after [0-9.]+s: held by"
    run simba lock "$M" "$SIMBA" lock -w 0 "$M" true
    expect 124
    run simba lock "$M" "$SIMBA" lock -n -E 7 "$M" true
    expect 7
    run simba lock "$M" "$SIMBA" lock -w 0.1 -E 0 "$M" false
    expect 0
    run simba lock "$M" "$SIMBA" lock -qn "$M" true
    expect 124 '^$'
}

@test "of -n and -w the last one counts" {
    run simba lock "$M" "$SIMBA" lock -n -w 1s "$M" true
    expect 124 "timed out after [0-9.]+s: (held by|the store does not answer)"
    run timeout 20 "$SIMBA" lock "$M" "$SIMBA" lock -w 1m -n "$M" true
    expect 124 "held by"
}

@test "-w is enough when the owner lets go in time" {
    begin "$SIMBA" lock "$M" sh -c 'touch held; until [ -e go ]; do sleep 0.01; done'
    await test -e held
    begin "$SIMBA" lock -w 10s "$M" touch second
    touch go
    ends "$PID"
    [ "$CODE" -eq 0 ]
    [ -e second ]
}

@test "126: CMD cannot be run; 127: there is no CMD of that name" {
    touch plain
    run simba lock "$M" ./plain
    expect 126 "cannot run ./plain: Permission denied"
    run -127 simba lock "$M" ./nosuch
    expect 127 "cannot run ./nosuch"
    run -127 simba lock "$M" no-such-command-anywhere
    expect 127
    run simba lock "$M" /
    expect 126
    run simba lock -n "$M" true # nothing is left of it
    expect 0
}

# bats test_tags=sqlite
@test "125: a store that does not work, in words" {
    run simba -u sqlite:/nosuch/folder/x.db lock "$M" true
    expect 125 "/nosuch/folder.*make it first"
    run simba -u nosuch:x lock "$M" true
    expect 125 "no store for URLs with 'nosuch:': there are sqlite:, redis:"
    run simba -u memory:x lock "$M" true
    expect 125 "the store memory:x lives in one process"
    run simba -u 'not a url' lock "$M" true
    expect 125 URL
    echo "this is not a database, and never will be" >store/other.db
    run simba -u "sqlite:$DIR/store/other.db" lock "$M" true
    expect 125 other.db
}

# bats test_tags=sqlite
@test "125: a store that cannot be reached, in words" {
    make_store_losable
    lose_store
    run timeout 20 "$SIMBA" lock "$M" true
    expect 125 "$STORE"
    run timeout 20 "$SIMBA" lock -w 100ms "$M" true
    [ "$status" -eq 125 ] || [ "$status" -eq 124 ] # it is not known who has it
}

@test "125: a folder that cannot be written to" {
    needs_other_users
    mkdir -m 755 others
    run as_user 65534 env -i "SIMBA_URL=sqlite:$DIR/others/x.db" timeout 10 "$SIMBA" lock "$M" true
    expect 125 "others/x.db.*Permission denied"
}

# The kernel passes no descriptor on for a user who has too many of them on their way.
# bats test_tags=sqlite
@test "125: CMD cannot be handed to the guard, and the lock is free again" {
    needs_other_users
    mkdir other
    chown 54322:54322 other
    cat >clog.py <<'P'
import os, socket, time
os.setgid(54322)
os.setuid(54322)
pair = socket.socketpair()
for _ in range(80):
    socket.send_fds(pair[0], [b"x"], [0])
open("other/clogged", "w")
time.sleep(60)
P
    begin python3 clog.py
    await test -e other/clogged
    export SIMBA_URL=sqlite:$DIR/other/x.db HOME=$DIR/other
    for command in "lock m" "schedule m --once" "elect m -r true -a"; do
        run as_user 54322 bash -c "ulimit -n 64 && exec timeout -s KILL 20 $SIMBA $command ./never"
        expect 125 "mutex 'm' on sqlite:$DIR/other/x.db: the process simba-guard, [0-9]+, cannot be reached; killing CMD"
        run as_user 54322 "$SIMBA" lock -n m true
        expect 0
    done
}

# bats test_tags=storeless
@test "64: wrong usage, and how to go on" {
    run simba
    expect 64 "Try: simba --help"
    run simba lock
    expect 64 "missing NAME"
    run simba lok "$M"
    expect 64 "did you mean lock"
    run simba lock --wiat 3 "$M" true
    expect 64 "did you mean --wait"
    run simba lock -Z "$M" true
    expect 64 "unknown option -Z"
    run simba lock -w
    expect 64 "--wait needs a value"
    run simba lock --no-wait=3 "$M" true
    expect 64 "takes no value"
    run simba lock -w abc "$M" true
    expect 64 "not a duration"
    run simba lock --ttl 1w "$M" true
    expect 64 "unit of a duration"
    run simba lock -E 300 "$M" true
    expect 64 "0 to 255"
    run simba lock --signal NOPE "$M" true
    expect 64 "--signal 'NOPE' is not a signal"
    run simba lock -s "$M" true
    expect 64 "no shared locks"
    run simba lock -c true "$M" false
    expect 64 "CMD is given twice"
    run simba lock --ttl 200ms --transition 100ms "$M" true
    expect 64 "shorter than 500ms"
    run simba lock -k 14s "$M" true
    expect 64 "no time to renew"
    run simba lock '' true
    expect 64
    run simba lock --id "$(printf %0200d 0)" "$M" true
    expect 64
}

# ---- options and environment ------------------------------------------------------------------

@test "CMD gets the tenure in its environment" {
    GIVEN=$SIMBA_URL run simba lock --id me "$M" sh -c 'echo "$SIMBA_MUTEX|$SIMBA_CONTENDER_ID|$SIMBA_STORE|$([ "$SIMBA_URL" = "$GIVEN" ] && echo same)"'
    expect 0 "^$M\|me\|$STORE\|same$"
    first=$(simba lock "$M" sh -c 'echo $SIMBA_FENCING_TOKEN')
    second=$(simba lock "$M" sh -c 'echo $SIMBA_FENCING_TOKEN')
    [ "$first" -gt 0 ]
    [ "$second" -gt "$first" ]
}

@test "-v says what happens, on stderr" {
    run --separate-stderr simba lock -v --id me "$M" echo out
    [ "$output" = out ]
    grep -qE "mutex '$M' on $STORE: acquired by me, token [0-9]+$" <<<"$stderr"
}

@test "-c is for the shell; flock's -x, -e, --nb, --timeout are understood" {
    run simba lock "$M" -c 'echo one | tr o 0'
    expect 0 '^0ne$'
    run simba lock -x --nb "$M" true
    expect 0
    run simba lock -e --timeout 3 "$M" true
    expect 0
}

# bats test_tags=sqlite
@test "CMD has the liveness descriptor, with -o it has not" {
    run simba lock "$M" sh -c 'ls -l /proc/self/fd'
    expect 0 '^lr-x.*locks.db-tree'
    [[ "$output" != *locks.db-live* ]]
    run simba lock -o "$M" sh -c 'ls -l /proc/self/fd'
    expect 0
    [[ "$output" != *locks.db* ]]
}

@test "CMD inherits nothing else of ours" {
    # 10 and above are the shell's; 3 is of ls itself
    run simba lock -o "$M" sh -c 'ls -l /proc/self/fd | grep -cE "socket:|timerfd|signalfd|eventfd"' 3>&-
    expect 1 '^0$'
}

@test "CMD's signal mask and dispositions are as they were" {
    before=$(grep -E 'SigBlk|SigIgn' /proc/self/status)
    run simba lock "$M" grep -E 'SigBlk|SigIgn' /proc/self/status
    [ "$output" = "$(grep -E 'SigBlk|SigIgn' /proc/self/status)" ]
    run sh -c "trap '' HUP CHLD; grep SigIgn /proc/self/status; exec $SIMBA lock $M grep SigIgn /proc/self/status"
    [ "${lines[0]}" = "${lines[1]}" ]
    expect 0
}

@test "without CMD: prints the token and holds until a signal" {
    begin "$SIMBA" lock "$M"
    exec {out}< <(exec "$SIMBA" lock "${M}2")
    STARTED+=("$!")
    holder=$!
    read -r token <&"$out"
    [ "$token" -gt 0 ]
    run simba lock -n "${M}2" true
    expect 124
    kill -TERM "$holder"
    ends "$holder"
    [ "$CODE" -eq 0 ]
    run simba lock -n "${M}2" true
    expect 0
}

@test "without CMD, --json" {
    exec {out}< <(exec "$SIMBA" --json lock "$M" --id me)
    STARTED+=("$!")
    read -r line <&"$out"
    grep -qE "^\{\"mutex\":\"$M\",\"token\":[0-9]+,\"id\":\"me\",\"store\":\"$STORE\"\}$" <<<"$line"
}

@test "READY=1 goes to the service manager once the lock is held" {
    python3 - "$DIR/notify" >heard 3>&- <<'P' &
import socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.bind(sys.argv[1])
s.settimeout(60)
print(s.recv(100).decode())
P
    STARTED+=("$!")
    listener=$!
    await test -S notify
    NOTIFY_SOCKET=$DIR/notify simba lock "$M" true
    ends "$listener"
    [ "$CODE" -eq 0 ]
    [ "$(cat heard)" = "READY=1" ]
}

# bats test_tags=storeless
@test "a password in -u is blanked for everybody who looks" {
    run simba -u 'redis://me:s3cret@localhost:1/0' lock "$M" true
    expect 125
    [[ "$output" != *s3cret* ]]
    run simba -u 'redis://me:s3cret@localhost:1/0' lock --dry-run "$M"
    [[ "$output" != *s3cret* ]]
    run simba lock -u 'sqlite:/x?password=s3cret' "$M" true
    expect 125
    [[ "$output" != *s3cret* ]]
    run simba -u "sqlite:$DIR/store/locks.db?command_timeout=2s" lock "$M" sh -c \
        'tr "\0" " " </proc/$(cut -d" " -f4 </proc/$PPID/stat)/cmdline'
    expect 0 "\?\*+ lock $M"
}

# ---- streams ----------------------------------------------------------------------------------

@test "100 MB go through stdin and stdout, and nothing of ours" {
    sum=$(head -c 100M /dev/zero | tr '\0' x | "$SIMBA" lock "$M" cat | md5sum)
    [ "$sum" = "$(head -c 100M /dev/zero | tr '\0' x | md5sum)" ]
}

@test "the reader sees the end when CMD closes stdout" {
    "$SIMBA" lock "$M" sh -c 'echo text; exec >&-; for i in $(seq 3000); do
        [ -e eof ] && exit 0; sleep 0.01; done; exit 9' 3>&- | sh -c 'cat >got; touch eof'
    [ "${PIPESTATUS[0]}" -eq 0 ]
    [ "$(cat got)" = text ]
}

@test "the writer sees the end when CMD closes stdin" {
    # yes ends of SIGPIPE when nobody is left who could read
    sh -c 'yes; touch ended' 2>/dev/null | "$SIMBA" lock "$M" sh -c 'exec <&-; for i in $(seq 3000); do
        [ -e ended ] && exit 0; sleep 0.01; done; exit 9' 3>&-
    [ "${PIPESTATUS[1]}" -eq 0 ]
}

@test "what others call themselves cannot write on the terminal" {
    begin "$SIMBA" lock --id $'evil\033[31m\nid' "$M" sh -c 'touch held; exec sleep 60'
    await test -e held
    run simba lock -n "$M" true
    expect 124 'held by evil\\x1b\[31m\\x0aid( for [0-9.]+s)?$'
    [ "${#lines[@]}" -eq 1 ]
    [ "${output/$'\033'/}" = "$output" ]
}

@test "closed stdin and stdout do no harm" {
    run simba lock "$M" sh -c 'exit 6' <&- >&-
    expect 6
    run simba status "$M" <&-
    expect 1
    run sh -c '"$SIMBA" status "$M" 2>&1 >&-'
    expect 125 "simba status: cannot write to stdout: Bad file descriptor"
}

# ---- many -------------------------------------------------------------------------------------

@test "50 at once count to 50" {
    echo 0 >count
    for _ in $(seq 50); do
        begin "$SIMBA" lock "$M" sh -c 'n=$(cat count); echo $((n + 1)) >count'
    done
    for pid in "${STARTED[@]}"; do
        ends "$pid"
        [ "$CODE" -eq 0 ]
    done
    [ "$(cat count)" -eq 50 ]
}

@test "wrappers are killed at random: never two children at once" {
    cat >job <<'J'
#!/bin/bash
# Whoever finds the mark of another that is alive, was not alone.
set -C
if ! echo $$ 2>/dev/null >mark; then
    read -r other <mark
    state=$(sed 's/.*) //' "/proc/$other/stat" 2>/dev/null | cut -c1)
    [ -z "$state" ] || [ "$state" = Z ] || echo "$$ met $other" >>overlap
    rm -f mark
    echo $$ >mark
fi
echo >>ran
sleep 0.0$((RANDOM % 10))
rm -f mark
J
    chmod +x job
    RANDOM=42
    for _ in $(seq 40); do
        begin "$SIMBA" lock "${SHORT[@]}" -k 50ms "$M" ./job
    done
    pids=("${STARTED[@]}")
    for _ in $(seq 15); do
        kill -KILL "${pids[RANDOM % 40]}" 2>/dev/null || true
        sleep 0.1
    done
    for pid in "${pids[@]}"; do
        ends "$pid"
    done
    [ ! -e overlap ] || { cat overlap; false; }
    [ "$(wc -l <ran)" -ge 20 ]
}

@test "lock: an owner hears of its eviction long before it renews" {
    [ "$KIND" != sqlite ] || LONG_LEASE=(--ttl 1h --transition 30s) # it renews long after CMD has ended
    simba lock "$M" true # so that there is nothing to be set up
    begin "$SIMBA" lock "${LONG_LEASE[@]}" "$M" sh -c 'echo >ready; exec sleep 60' >out 2>err
    await test -e ready
    run simba release --yes "$M"
    expect 0
    ends "$PID"
    [ "$CODE" -eq 123 ]
}

@test "124: held under the same id, by another handle" {
    [ "$KIND" != zookeeper ] || skip "it does not name an owner with the caller's own id"
    begin "$SIMBA" lock --id me "$M" sleep 60
    await simba status "$M"
    run simba lock --id me -n "$M" true
    expect 124 "held by another handle with the same id 'me'$"
    run simba lock --id me -w 300ms "$M" true
    expect 124 "timed out after .*: held by another handle with the same id 'me'$"
    run simba lock --id you -n "$M" true
    expect 124 "held by me"
}
