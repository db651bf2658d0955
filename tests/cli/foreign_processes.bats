#!/usr/bin/env bats
# foreign_processes.bats: processes that are not CMD's, but below simba: children of whoever exec'd it, and their
# orphans. They are left alone, whatever happens; CMD's tree is ended as ever.
bats_require_minimum_version 1.8.0
# bats file_tags=store
load helper

# A program that has children when it becomes simba: one that stays, and one whose child becomes an
# orphan when `orphan` exists, so that it is adopted later.
write_starter() {
    cat >starter <<'J'
#!/bin/bash
sh -c 'echo $$ >stays.pid; while [ -e starter ]; do sleep 0.02; done' >&- 2>&- 3>&- &
sh -c 'sh -c "echo \$\$ >orphan.pid; while [ -e starter ]; do sleep 0.02; done" &
       while [ -e starter ] && [ ! -e orphan ]; do sleep 0.02; done' >&- 2>&- 3>&- &
until [ -s stays.pid ] && [ -s orphan.pid ]; do sleep 0.01; done
exec "$SIMBA" "$@"
J
    cat >job <<'J'
#!/bin/bash
trap '' TERM
setsid bash -c 'trap "" TERM; echo $$ >deaf.pid; while [ -e starter ]; do sleep 0.02; done' >&- 2>&- 3>&- &
until [ -s deaf.pid ]; do sleep 0.01; done
echo $$ >job.pid
until [ -e done ]; do sleep 0.02; done
J
    chmod +x starter job
}

find_guard() { # of $1; sets GUARD
    local pid
    GUARD=
    for pid in $(cat "/proc/$1/task/$1/children"); do
        case "$(cat "/proc/$pid/comm")" in
        simba-guard) GUARD=$pid && return ;;
        simba) find_guard "$pid" && [ -z "$GUARD" ] || return 0 ;;
        esac
    done
}

start() { # words of simba...
    write_starter
    begin ./starter "$@"
    await test -s job.pid
    find_guard "$PID"
    [ -n "$GUARD" ]
    touch orphan
    sleep 0.1
}

others_live() {
    is_alive "$(cat stays.pid)"
    is_alive "$(cat orphan.pid)"
}

tree_is_dead() {
    await is_dead "$(cat job.pid)"
    await is_dead "$(cat deaf.pid)"
}

@test "lock: the guard is killed: CMD's tree ends, and nobody else does" {
    start lock "$M" ./job
    kill -KILL "$GUARD"
    ends "$PID"
    [ "$CODE" -eq 125 ]
    tree_is_dead
    others_live
}

@test "lock: the guard is stopped and the lease is lost: CMD's tree ends, and nobody else does" {
    make_store_losable
    start lock "${SHORT[@]}" "$M" ./job
    kill -STOP "$GUARD"
    lose_store
    ends "$PID"
    [ "$CODE" -eq 123 ]
    tree_is_dead
    others_live
}

@test "elect and schedule: the guard is killed: the command's tree ends, and nobody else does" {
    start elect "$M" -a ./job -r 'echo released >>log'
    kill -KILL "$GUARD"
    ends "$PID"
    [ "$CODE" -eq 125 ]
    tree_is_dead
    others_live
    [ "$(cat log)" = released ]
    rm -f ./*.pid orphan
    start schedule "$M" --every 1h ./job
    kill -KILL "$GUARD"
    ends "$PID"
    [ "$CODE" -eq 125 ]
    tree_is_dead
    others_live
}

@test "lock: what was started is killed -9: CMD's tree ends, and nobody else does" {
    start lock -k 200ms "$M" ./job
    kill -KILL "$PID"
    ends "$PID"
    tree_is_dead
    others_live
}

@test "lock: it ends when CMD's tree does, with CMD's status, and does not wait for others" {
    write_starter
    run timeout 20 ./starter lock "$M" sh -c 'exit 7'
    expect 7
    others_live
    run timeout 20 ./starter lock "$M" sh -c 'kill -USR1 $$'
    expect 138
    run timeout 20 ./starter lock --kill-rest -k 200ms "$M" sh -c 'trap "" TERM; setsid sleep 60 & exit 3'
    expect 3
    others_live
}

@test "lock: signals reach CMD, streams are CMD's alone, READY comes from what was started" {
    python3 - >heard 3>&- <<'P' &
import os, socket
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
s.bind(os.environ["DIR"] + "/notify")
data, control, _, _ = s.recvmsg(100, 100)
import struct
print(data.decode(), struct.unpack("3i", control[0][2])[0])
P
    STARTED+=("$!")
    listener=$!
    await test -S notify
    write_starter
    NOTIFY_SOCKET=$DIR/notify begin ./starter lock "$M" bash -c \
        'trap "exit 9" USR1; echo $$ >x.pid; while :; do sleep 0.02; done'
    ends "$listener"
    [ "$(cat heard)" = "READY=1 $PID" ]
    await test -s x.pid
    kill -USR1 "$PID"
    ends "$PID"
    [ "$CODE" -eq 9 ]
    sum=$(head -c 1M /dev/zero | timeout 20 ./starter lock "$M" cat | md5sum) # cat sees the end, and so do we
    [ "$sum" = "$(head -c 1M /dev/zero | md5sum)" ]
}

# As sudo does it: CMD becomes a process of another user, of the one who may not signal it.
# bats test_tags=sqlite
@test "lock: a process that may not be signalled is named, and waited for without haste" {
    needs_other_users
    cp "$(command -v setpriv)" sudo
    chmod 4755 sudo
    local become=("$DIR/sudo" --reuid=65534 --regid=65534 --clear-groups)
    [ "$(as_user 54321 "${become[@]}" id -u)" = 65534 ] || skip "setuid has no effect here (nosuid, no_new_privs)"
    mkdir other
    chown 54321:54321 other
    export SIMBA_URL=sqlite:$DIR/other/x.db HOME=$DIR/other
    begin as_user 54321 "$SIMBA" lock --ttl 1s --transition 1s -k 200ms m "${become[@]}" sleep 8 2>err
    await as_user 54321 "$SIMBA" status m >/dev/null
    local keeper guard # below the shell that runs as_user
    keeper=$(child_of "$PID")
    guard=$(child_of "$keeper")
    await pgrep -f -P "$guard" '^sleep 8'
    pgrep -f -P "$guard" '^sleep 8' >pid
    as_user 54321 "$SIMBA" release --yes m 2>/dev/null
    await has "mutex 'm' on sqlite:.*/x.db: process $(cat pid) \(sleep\) runs as user 65534 and may not be signalled: it runs on, and another may own the mutex beside it; waiting for its end\. End it as that user, or as root$" err
    sleep 2.5
    ticks_of "$guard" >before
    sleep 2
    ticks_of "$guard" >after
    cat before after err
    [ $(($(head -n 1 after) - $(cat before))) -le 4 ] # of 200
    ends "$PID"
    [ "$CODE" -eq 123 ]
    ! has 'was it stopped|simba-guard' err
    [ "$(grep -c 'may not be signalled' err)" -eq 1 ]
}

ticks_of() { awk '{ print $14 + $15 }' "/proc/$1/stat"; }

# A connection to the store is worth what the keeper may do there.
# bats test_tags=store
@test "elect: the guard is killed: --on-released inherits no connection to the store" {
    begin "$SIMBA" elect "${SHORT[@]}" --on-acquired 'touch up; sleep 60' \
        --on-released 'ls -l /proc/self/fd >inherited' "$M" >lines 2>said
    await test -e up
    kill -KILL "$(child_of "$PID")"
    await grep -q /proc/ inherited
    ls -l /proc/self/fd >ours # what the tests were started with
    sockets_of() { grep -oE 'socket:\[[0-9]+\]' "$1" | sort; }
    cat inherited
    [ -z "$(comm -23 <(sockets_of inherited) <(sockets_of ours))" ]
}
