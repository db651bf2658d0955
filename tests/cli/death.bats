#!/usr/bin/env bats
# death.bats: whatever dies, hangs or is stopped: nothing of the old job is left when the next begins.
# Leases are short here, so that those that must run out do.
bats_require_minimum_version 1.8.0
# bats file_tags=store
load helper

# A job with a grandchild that has left session and group and is deaf to what can be ignored.
write_job() {
    cat >deaf <<'J'
#!/bin/bash
trap '' TERM INT HUP QUIT USR1
echo $$ >deaf.pid.new
mv deaf.pid.new deaf.pid
while :; do sleep 0.02; done
J
    cat >job <<'J'
#!/bin/bash
echo $$ >job.pid
setsid ./deaf </dev/null >/dev/null 2>&1 &
wait
J
    # The next one in the lock: is anything of the job alive?
    cat >next <<'J'
#!/bin/bash
for pid in $(cat job.pid deaf.pid); do
    state=$(sed 's/.*) //' "/proc/$pid/stat" 2>/dev/null | cut -c1)
    [ -z "$state" ] || [ "$state" = Z ] || echo "$pid is alive" >>overlap
done
touch next.ran
J
    chmod +x deaf job next
}

# Starts the job as the leader of a session of its own, and the next one, which waits.
start_both() { # options of simba lock...
    write_job
    begin setsid "$SIMBA" lock "${SHORT[@]}" "$@" "$M" ./job
    KEEPER=$PID
    await test -e deaf.pid
    GUARD=$(child_of "$KEEPER")
    begin "$SIMBA" lock "$M" ./next
    NEXT=$PID
}

next_was_alone() {
    ends "$NEXT"
    [ "$CODE" -eq 0 ]
    [ -e next.ran ]
    [ ! -e overlap ] || { cat overlap; return 1; }
    await is_dead "$GUARD"
}

@test "the keeper is killed -9 (T77, T65, T70)" {
    start_both
    kill -KILL "$KEEPER"
    next_was_alone
}

@test "the keeper is stopped (T77, T73)" {
    start_both
    kill -STOP "$KEEPER"
    next_was_alone
    kill -CONT "$KEEPER"
    ends "$KEEPER"
    [ "$CODE" -eq 123 ]
}

@test "the guard is killed -9" {
    start_both
    kill -KILL "$GUARD"
    next_was_alone
    ends "$KEEPER"
    [ "$CODE" -eq 125 ]
}

@test "the guard is stopped, then the keeper is killed" {
    start_both
    kill -STOP "$GUARD"
    kill -KILL "$KEEPER"
    next_was_alone
}

@test "the whole job is stopped (T78)" {
    start_both
    kill -STOP -- "-$KEEPER" "-$(cat job.pid)" "-$(cat deaf.pid)"
    next_was_alone
    kill -CONT "$KEEPER"
    ends "$KEEPER"
    [ "$CODE" -eq 123 ]
}

@test "the guard is stopped: the keeper renews, and ends the tree when the lease is lost" {
    make_store_losable
    start_both
    kill -STOP "$GUARD"
    sleep "$OUTLIVES_SHORT"
    [ ! -e next.ran ]
    is_alive "$(cat deaf.pid)"
    lose_store # the lease cannot be renewed any more
    await is_dead "$(cat deaf.pid)"
    ends "$KEEPER"
    [ "$CODE" -eq 123 ]
    is_dead "$GUARD"
}

# A message is no reason to wait for whoever reads it.
fill_stderr() { # until there is no room for a byte: descriptor 9, which nobody reads
    mkfifo full
    exec 9<>full
    dd if=/dev/zero of=full bs=4096 oflag=nonblock 2>/dev/null || true
}

@test "the keeper is stopped, and stderr is full" {
    fill_stderr
    start_both 2>&9
    kill -STOP "$KEEPER"
    next_was_alone
    kill -CONT "$KEEPER"
    ends "$KEEPER"
    [ "$CODE" -eq 123 ]
}

@test "the guard is stopped, the lease is lost, and stderr is full" {
    make_store_losable
    fill_stderr
    start_both 2>&9
    kill -STOP "$GUARD"
    lose_store
    await is_dead "$(cat deaf.pid)"
    ends "$KEEPER"
    [ "$CODE" -eq 123 ]
}

@test "the store is lost: TERM in time, then KILL, exit 123 (T75)" {
    cat >polite <<'J'
#!/bin/bash
trap 'echo told >told; sleep 60' TERM
echo $$ >polite.pid
while :; do sleep 0.02; done
J
    chmod +x polite
    make_store_losable
    begin "$SIMBA" lock "${LOSABLE[@]}" "$M" ./polite
    await test -s polite.pid
    lose_store
    ends "$PID"
    [ "$CODE" -eq 123 ]
    [ -e told ]
    is_dead "$(cat polite.pid)"
}

@test "--signal: how CMD is told" {
    make_store_losable
    begin "$SIMBA" lock "${LOSABLE[@]}" --signal USR1 "$M" \
        bash -c 'trap "echo told >told; exit 5" USR1; echo $$ >x.pid; while :; do sleep 0.02; done'
    await test -s x.pid
    lose_store
    ends "$PID"
    [ "$CODE" -eq 123 ] # and not 5: the lease was lost
    [ -e told ]
}

@test "a long job outlives its first lease" {
    run simba lock "${SHORT[@]}" "$M" sleep "$OUTLIVES_SHORT"
    expect 0
    # on a machine that stands still a renewal may be late, and then that is said
    [ -z "$(grep -vE ': (cannot renew: |renewed again )' <<<"$output")" ]
}

# ---- signals ----------------------------------------------------------------------------------

# It takes signals before it forks its guard.
has_guard() { # pid
    [ "$(cat "/proc/$1/comm")" = simba ] && [ -n "$(child_of "$1")" ]
}

@test "TERM, INT, HUP, QUIT while waiting: simba dies of it, and leaves nothing (T72)" {
    begin "$SIMBA" lock "$M" sh -c 'touch held; exec sleep 60'
    holder=$PID
    await test -e held
    for name in TERM INT HUP QUIT; do
        # INT and QUIT are ignored in the background of a script, unless somebody says otherwise
        begin python3 -c 'import os, signal, sys
for s in (signal.SIGINT, signal.SIGQUIT): signal.signal(s, signal.SIG_DFL)
os.execv(sys.argv[1], sys.argv[1:])' "$SIMBA" lock "$M" touch never
        waiter=$PID
        await has_guard "$waiter"
        kill -"$name" "$waiter"
        ends "$waiter"
        [ "$CODE" -eq $((128 + $(kill -l "$name"))) ]
    done
    [ ! -e never ]
    kill -TERM "$holder"
    ends "$holder"
    [ "$CODE" -eq 143 ]
    run simba lock -n "$M" true
    expect 0
}

@test "TERM while running goes to the shell and its child alike (T70, T71)" {
    begin "$SIMBA" lock "$M" sh -c 'sleep 60 & echo $! >sleeper.pid; wait; echo not reached'
    keeper=$PID
    await test -s sleeper.pid
    kill -TERM "$keeper"
    ends "$keeper"
    [ "$CODE" -eq 143 ]
    is_dead "$(cat sleeper.pid)"
}

@test "TERM while running reaches all of a big tree, though their parent dies of it first (T70)" {
    begin "$SIMBA" lock "$M" sh -c 'for i in $(seq 200); do sleep 60 & done; touch all; wait'
    keeper=$PID
    await test -e all
    kill -TERM "$keeper"
    await is_dead "$keeper" # and not only when the last sleeper has slept
    ends "$keeper"
    [ "$CODE" -eq 143 ]
}

@test "INT while running; CMD may handle it, and its status counts" {
    begin python3 -c 'import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)
os.execv(sys.argv[1], sys.argv[1:])' "$SIMBA" lock "$M" \
        bash -c 'trap "exit 9" INT; echo $$ >x.pid; while :; do sleep 0.02; done'
    await test -s x.pid
    kill -INT "$PID"
    ends "$PID"
    [ "$CODE" -eq 9 ]
}

@test "USR1 and USR2 are passed on to CMD" {
    begin "$SIMBA" lock "$M" bash -c 'trap "echo one >>got" USR1; trap "echo two >>got; exit 0" USR2
        echo $$ >x.pid; while :; do sleep 0.02; done'
    await test -s x.pid
    kill -USR1 "$PID"
    await test -s got
    kill -USR2 "$PID"
    ends "$PID"
    [ "$CODE" -eq 0 ]
    [ "$(tr '\n' ' ' <got)" = "one two " ]
}

@test "what is ignored stays ignored: nohup" {
    begin nohup "$SIMBA" lock "$M" sh -c 'echo $$ >x.pid; until [ -e go ]; do sleep 0.02; done'
    await test -s x.pid
    kill -HUP "$PID"
    kill -HUP "$(cat x.pid)"
    sleep 0.2
    is_alive "$PID"
    touch go
    ends "$PID"
    [ "$CODE" -eq 0 ]
}

# ---- what CMD leaves behind (T79) -------------------------------------------------------------

leaver='setsid sh -c "echo \$\$ >left.pid; until [ -e go ]; do sleep 0.02; done" >&- 2>&- & until [ -s left.pid ]; do sleep 0.01; done; exit 4'

@test "the lock is held until the last of the tree ends, and that is said" {
    "$SIMBA" lock "$M" sh -c "$leaver" 2>said 3>&- &
    keeper=$!
    STARTED+=("$keeper")
    await grep -q -E 'left [0-9]+ process.*held until' said
    run simba lock -n "$M" true
    expect 124
    touch go
    ends "$keeper"
    [ "$CODE" -eq 4 ]
    run simba lock -n "$M" true
    expect 0
}

@test "--kill-rest ends them" {
    run timeout 60 "$SIMBA" lock --kill-rest -k 300ms "$M" sh -c "$leaver"
    expect 4
    is_dead "$(cat left.pid)"
}

@test "--leave-rest leaves them, and lets go" {
    run timeout 60 "$SIMBA" lock --leave-rest "$M" sh -c "$leaver"
    expect 4
    is_alive "$(cat left.pid)"
    run simba lock -n "$M" true
    expect 0
}

# ---- PID 1 ------------------------------------------------------------------------------------

@test "as PID 1 of a process namespace, with its own /proc and with the other's" {
    needs_namespaces -pf --mount-proc
    for mount in --mount-proc ""; do
        # shellcheck disable=SC2086
        run timeout 20 unshare -pf $mount "$SIMBA" lock "$M" sh -c 'echo pid $PPID; exit 42'
        expect 42 '^pid 3$' # PID 1 relays to the keeper, whose guard is its parent
        # shellcheck disable=SC2086
        run timeout 20 unshare -pf $mount "$SIMBA" lock --kill-rest -k 200ms "$M" \
            sh -c 'trap "" TERM; setsid sleep 60 & exit 7'
        expect 7
    done
}

@test "as PID 1, TERM ends it" {
    needs_namespaces -pf --mount-proc
    begin unshare -pf --mount-proc "$SIMBA" lock "$M" sh -c 'touch up; exec sleep 60'
    await test -e up
    kill -TERM "$(child_of "$PID")"
    ends "$PID"
    [ "$CODE" -eq 143 ]
}
