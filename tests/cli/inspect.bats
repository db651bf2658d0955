#!/usr/bin/env bats
# inspect.bats: status, list, watch, release: what operators see and do.
bats_require_minimum_version 1.8.0
# bats file_tags=store
load helper

# With UNTIL in the environment it is told to end when it has written that.
with_terminal() { # columns, command...: its output, as a terminal of that width shows it
    python3 - "$@" <<'P'
import fcntl, os, pty, signal, struct, sys, termios
until = os.environ.get("UNTIL", "").encode()
pid, fd = pty.fork()
if pid == 0:
    fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 24, int(sys.argv[1]), 0, 0))
    os.execvp(sys.argv[2], sys.argv[2:])
out = b""
while True:
    try:
        part = os.read(fd, 65536)
    except OSError:
        break
    if not part:
        break
    out += part
    if until and until in out:
        os.kill(pid, signal.SIGTERM)
        until = b""
_, status = os.waitpid(pid, 0)
sys.stdout.write(out.decode().replace("\r\n", "\n"))
code = os.waitstatus_to_exitcode(status)
sys.exit(code if code >= 0 else 128 - code)
P
}

# ---- status and list --------------------------------------------------------------------------

@test "nothing is owned: list says so, status of a name is 1" {
    simba init
    run --separate-stderr simba list "$PREFIX"
    expect 0 '^$'
    grep -qE "nobody owns a mutex whose name begins with '$PREFIX' on $STORE$" <<<"$stderr"
    run simba list -q "$PREFIX"
    expect 0 '^$'
    run simba list --json "$PREFIX"
    [ "$status" -eq 0 ]
    run simba status "$M"
    expect 1 "^$M +free +- +- "
}

@test "status: 0 all held, 1 any free, 125 no store" {
    hold "$M"
    run simba status "$M"
    expect 0 "^$M +held +1[0-9]s +[0-9]+ +$KNOWS_HELD +$KNOWS_WAITERS +holder-of-$M$"
    run simba status "$M" "${M}2"
    expect 1 "^${M}2 +free"
    run simba status
    [ "$status" -le 1 ] # others use this store, too
    grep -q "^$M  *held" <<<"$output"
    run simba -u sqlite:/nosuch/x.db status "$M"
    expect 125 "/nosuch"
    run simba status ''
    expect 64 "empty"
    run simba status --nosuch
    expect 64 "unknown option --nosuch"
    run simba list a b
    expect 64 "one PREFIX"
}

@test "status and list: JSON" {
    hold "$M"
    simba status --json "$M" "${M}2" >out || true
    simba list --json "$PREFIX" >>out
    python3 - <<'P'
import json, os, re
m, knows = os.environ["M"], {"[0-9.]+s": int, "-": type(None), "0": int}
a, b, l = [json.loads(line) for line in open("out")]
assert a["mutex"] == m and a["state"] == "held" and a["holder"] == "holder-of-" + m
assert a["token"] > 0 and 0 < a["remaining_ms"] <= 16000
assert isinstance(a["held_ms"], knows[os.environ["KNOWS_HELD"]]), a
assert isinstance(a["waiters"], knows[os.environ["KNOWS_WAITERS"]]), a
assert re.fullmatch(os.environ["STORE"], a["store"]), a
assert b["state"] == "free" and b["holder"] is None and b["token"] is None
assert l["mutex"] == m and l["token"] == a["token"]
P
}

@test "status and list: evicted, whose it is, until its owner lets go" {
    begin "$SIMBA" lock "${LONG_LEASE[@]}" --id "holder-of-$M" "$M" sh -c 'echo $$ >cmd.pid; exec sleep 60' 2>said
    owner=$PID
    await test -s cmd.pid
    guard=$(child_of "$owner")
    STARTED+=("$guard")
    simba status --json "$M" >out
    kill -STOP "$owner" "$guard" # it hears nothing
    run simba release --yes "$M"
    expect 0 "evicted holder-of-$M \\(token [0-9]+\\)"
    local row="^$M +evicted +[0-9ms]+ +[0-9]+ +$KNOWS_HELD +$KNOWS_WAITERS +holder-of-$M$"
    run simba status "$M"
    expect 0 "$row"
    run simba list "$PREFIX"
    expect 0 "$row"
    simba status --json "$M" >>out
    simba list --json "$PREFIX" >>out
    python3 - <<'P'
import json, os
held, status, listed = [json.loads(line) for line in open("out")]
assert held["state"] == "held", held
for row in status, listed:
    assert row["state"] == "evicted" and row["holder"] == "holder-of-" + os.environ["M"], row
    assert row["token"] == held["token"] and row["remaining_ms"] > 0, row
P
    kill -CONT "$guard" "$owner"
    ends "$owner"
    [ "$CODE" -eq 123 ] || { cat said; return 1; }
    run simba status "$M"
    expect 1 "^$M +free"
}

@test "list: by prefix, in order" {
    hold "${M}job-2"; hold "${M}job-1"; hold "${M}other"
    run simba list "${M}job-"
    [ "$status" -eq 0 ]
    [ "$(sed 's/ .*//' <<<"$output" | xargs)" = "NAME ${M}job-1 ${M}job-2" ]
    run simba list "${M}nosuch"
    expect 0 "nobody owns a mutex whose name begins with '${M}nosuch'"
}

# bats test_tags=sqlite
@test "list: 10,000 mutexes" {
    simba init >/dev/null
    python3 - <<'P'
import os, sqlite3
db = sqlite3.connect(os.environ["DIR"] + "/store/locks.db")
now = int(float(open("/proc/uptime").read().split()[0]) * 1e9)
columns = [row[1] for row in db.execute("PRAGMA table_info(mutex)")]
assert len(columns) == 10, columns
for n in range(10000):
    db.execute("REPLACE INTO mutex VALUES (?, 'somebody', ?, 0, 0, ?, ?, 60000000000, 0, 0)",
               ("m%05d" % n, 1000 + n, now, now + 60 * 10**9))
db.commit()
P
    run simba list
    [ "$status" -eq 0 ]
    [ "$(wc -l <<<"$output")" -eq 10001 ]
    [ "$(sed -n 2p <<<"$output" | cut -d' ' -f1)" = m00000 ]
    [ "$(tail -n 1 <<<"$output" | cut -d' ' -f1)" = m09999 ]
    [ "$(simba list --json | wc -l)" -eq 10000 ]
    # a reader that goes away: quietly
    simba list 2>err | head -n 1 >/dev/null
    [ ! -s err ]
    bash -c 'trap "" PIPE; "$SIMBA" list --json 2>>err | head -n 1 >/dev/null; [ "${PIPESTATUS[0]}" -eq 141 ]'
    [ ! -s err ]
}

# bats test_tags=storeless
@test "a narrow terminal: nothing is wider than it; a wide one: nothing is cut" {
    needs_terminal
    hold a-name-that-is-rather-long-for-a-mutex an-id-of-a-holder-that-is-rather-long-as-well
    for width in 20 40 60 80; do
        run with_terminal "$width" env NO_COLOR=1 "$SIMBA" status a-name-that-is-rather-long-for-a-mutex
        [ "$status" -eq 0 ]
        sed 's/…/./g' <<<"$output" | awk -v w="$width" 'length($0) > w { print "too wide: " $0; exit 1 }'
        grep -q '^a-na' <<<"$output"
    done
    run with_terminal 200 env NO_COLOR=1 "$SIMBA" status a-name-that-is-rather-long-for-a-mutex
    expect 0 'a-name-that-is-rather-long-for-a-mutex .* an-id-of-a-holder-that-is-rather-long-as-well$'
    run simba status a-name-that-is-rather-long-for-a-mutex
    expect 0 'an-id-of-a-holder-that-is-rather-long-as-well$'
}

# bats test_tags=storeless
@test "colours on a terminal only, and not with NO_COLOR" {
    needs_terminal
    simba init
    run with_terminal 80 env TERM=xterm "$SIMBA" status "$M"
    [ "$status" -eq 1 ]
    grep -q $'\033' <<<"$output"
    run with_terminal 80 env TERM=xterm NO_COLOR=1 "$SIMBA" status "$M"
    ! grep -q $'\033' <<<"$output"
    run env TERM=xterm "$SIMBA" status "$M"
    ! grep -q $'\033' <<<"$output"
}

@test "names that would move the cursor are shown harmlessly" {
    name=$PREFIX$'ab\033[2Jc'
    begin "$SIMBA" lock "$name" sh -c 'touch held; exec sleep 60'
    await test -e held
    run simba list "$PREFIX"
    expect 0 "^${PREFIX}ab\?\[2Jc +held"
}

@test "--watch: again and again" {
    simba init
    begin "$SIMBA" list --json --watch --every 100ms "$PREFIX" >out
    hold "$M"
    await has "\"mutex\":\"$M\"" out
    kill -TERM "$PID" "${STARTED[0]}"
    ends "${STARTED[0]}"
    run simba list --watch --every 1ms
    expect 64 "shorter than 100ms"
}

@test "--watch: a terminal shows the latest only" {
    needs_terminal
    simba init
    UNTIL=free run with_terminal 80 timeout 20 "$SIMBA" status --watch "$M"
    [ "$status" -eq 143 ]
    grep -q $'\033\\[H' <<<"$output"
}

# ---- watch ------------------------------------------------------------------------------------

@test "watch: how it is, and every change" {
    hold "$M"
    begin "$SIMBA" watch "$M" "${M}2" >out
    await has " (held|acquired) +$M +holder-of-$M +token [0-9]+$" out
    await has " free +${M}2$" out
    begin "$SIMBA" lock "${M}2" sh -c 'until [ -e go ]; do sleep 0.02; done'
    await has " acquired +${M}2 " out
    touch go
    await has " released +${M}2 " out
    simba release --yes --force "$M" 2>/dev/null
    await has " (released|evicted|expired) +$M +holder-of-$M" out
}

@test "watch: all of them, as JSON" {
    hold "${M}first"
    begin "$SIMBA" watch --json >out
    await has "\"mutex\":\"${M}first\"" out
    hold "$M"
    await has "\"event\":\"acquired\".*\"mutex\":\"$M\"" out
    python3 -c 'import json; [json.loads(line) for line in open("out").read().split("\n")[:-1]]' # whole ones
}

# bats test_tags=sqlite
@test "list --json: a name that is no UTF-8 has its key, too" {
    with_server '' redis -- 'port=$(grep -oE "[0-9]{5}" <<<"$1" | head -n 1)
        printf "SET \"simba:{n\\\\xff}\" id PX 60000\\n" | redis-cli -p "$port" >/dev/null
        simba list -u "$1" --json'
    expect 0 '"mutex":"n\?","state":"held"'
}

@test "release --wait: whoever has it since is named" {
    is_named() { # another waits, and mostly has it when the end is seen
        hold "$M" first@a
        begin "$SIMBA" lock --id next@b "$M" sleep 60
        sleep 0.5
        run simba release --yes --wait "$M"
        kill -TERM "$PID"
        ends "$PID"
        rm -f "held-$M"
        expect 0 'over after .*; now held by next@b \(token [0-9]+\)$'
    }
    await is_named
}

@test "watch: what ended while nobody could look is not shown as expired" {
    simba lock "$M" true # so that there is a store
    begin "$SIMBA" watch --json "$M" >out
    await test -s out # it looks: what begins later is seen to begin
    watch=$PID
    begin "$SIMBA" lock --ttl 1s --transition 1s "$M" sh -c 'until [ -e go ]; do sleep 0.02; done'
    await has '"event":"acquired"' out
    kill -STOP "$watch"
    sleep 2.2 # the lease that it knows of is over, and was renewed
    touch go
    ends "$PID"
    kill -CONT "$watch"
    await has '"event":"(unseen|released)"' out # ZooKeeper shows the session of who looks
    ! has expired out
}

# bats test_tags=sqlite
@test "watch: a store that does not know since when: acquired is acquired, and no time is made up" {
    with_server '' redis -- '
        "$SIMBA" lock -u "$1" old sh -c "echo >old; exec sleep 20" &
        until [ -e old ]; do sleep 0.02; done
        "$SIMBA" watch -u "$1" --json >out &
        until grep -q old out; do sleep 0.02; done
        sleep 2
        until grep -q n1 out; do simba lock -u "$1" --ttl 2s --transition 1s n1 sleep 0.5; done
        kill $(jobs -p)
        cat out'
    expect_all 0 '"event":"held".*"mutex":"old"' '"event":"acquired".*"mutex":"n1"'
    ! grep '"event":"held".*"mutex":"n1"' <<<"$output"
    ! grep -E '"held_ms":[0-9]' <<<"$output"
}

@test "watch: a reader that goes away, no store, bad input" {
    hold "$M"
    begin bash -c '"$SIMBA" watch "$M" 2>err | head -n 1 >first; [ "${PIPESTATUS[0]}" -eq 141 ]'
    await test -s first
    ends "$PID"
    [ "$CODE" -eq 0 ]
    [ ! -s err ]
    run simba -u sqlite:/nosuch/x.db watch
    expect 125 "/nosuch"
    run simba watch ''
    expect 64 "empty"
}

# ---- release ----------------------------------------------------------------------------------

@test "release: the owner lets go in order" {
    begin "$SIMBA" lock "$M" sh -c 'trap "echo bye >log; exit 0" TERM; touch held; while :; do sleep 0.02; done' 2>err
    await test -e held
    run simba release "$M" </dev/null
    expect 64 "mutex '$M' on .* is held by .*, token [0-9]+: say --yes to end its tenure without being asked$"
    simba status "$M"
    run simba release --yes "$M"
    expect 0 "evicted .* \\(token [0-9]+\\)"
    ends "$PID"
    [ "$CODE" -eq 123 ]
    [ "$(cat log)" = bye ]
    run simba status "$M"
    expect 1
}

@test "release --force: free at once, also if the owner hangs" {
    hold "$M"
    kill -STOP "$PID"
    run simba release --yes --force --json "$M"
    expect 0 '"event":"freed".*"holder":"holder-of-'"$M"'"'
    run simba lock -n "$M" true
    expect 0
    kill -CONT "$PID"
}

@test "release --wait: until the owner has ended its work" {
    begin "$SIMBA" lock --id worker "$M" sh -c 'trap "sleep 1; echo bye >log; exit 0" TERM; touch held; while :; do sleep 0.02; done' 2>err
    await test -e held
    run simba release --yes --wait "$M"
    expect_all 0 "evicted worker \\(token [0-9]+\\)" "'$M' on $STORE: over after [0-9.]+s: worker \\(token [0-9]+\\) has released it, or has died$"
    [ "$(cat log)" = bye ]
    run simba status "$M"
    expect 1
}

@test "release --wait=D: not in time, and by JSON" {
    hold "$M"
    kill -STOP "$PID" "$(child_of "$PID")"
    run simba release --yes --wait=0.3s "$M"
    expect_all 124 "evicted holder-of-$M" "not over after 0\\.[3-9]s: holder-of-$M \\(token [0-9]+\\) has not released it; its lease ends in [0-9.]+s"
    kill -CONT "$PID" "$(child_of "$PID")"
    run simba release --yes --wait=20s --json "$M"
    [ "$status" -eq 1 ] || expect 0 '"event":"(released|expired)","at_ms":[0-9]+,"mutex":"'"$M"'","holder":"holder-of-'
}

@test "release --wait: who is dead is waited for until the lease ends" {
    begin "$SIMBA" lock --id dead $SHORT_LEASE "$M" sh -c 'touch held; exec sleep 60'
    await test -e held
    guard=$(child_of "$PID")
    kill -STOP "$PID" "$guard" "$(child_of "$guard")"
    run simba release --yes --wait=20s "$M"
    local how="the lease of dead \\(token [0-9]+\\) has ended"
    [ "$KIND" != zookeeper ] || how="dead \\(token [0-9]+\\) has released it, or has died" # others do not know its session
    expect 0 "over after [0-9.]+s: $how$"
    kill -KILL "$(child_of "$guard")" "$guard" "$PID"
}

# bats test_tags=storeless
@test "release --wait: wrong usage" {
    run simba release --wait --force "$M"
    expect 64 '--wait and --force exclude each other'
    run simba release --wait=x "$M"
    expect 64 "--wait: 'x' is not a duration"
    run simba release --wait 5s "$M"
    expect 64 "unexpected argument '$M': a duration is given as --wait=5s"
    run simba release --help
    expect 0 '--wait\[=D\] +wait until the tenure is over'
}

@test "release --note: what once and schedule have recorded is forgotten" {
    run simba release --yes --note "$M"
    expect 1 "mutex '$M' on $STORE: nothing to clear, it has no note$"
    simba once "$M" --per 1h touch ran
    run simba release --note "$M" </dev/null
    expect 64 "has the note 'once/1 ended 0 after .*': say --yes to clear it without being asked"
    run simba release --yes --note --json "$M"
    expect 0 "^\{\"event\":\"cleared\",\"mutex\":\"$M\",\"note\":\"once/1 ended 0 after .*\",\"token\":[0-9]+,\"store\":\""
    rm ran
    simba once "$M" --per 1h touch ran
    [ -e ran ]
    run simba release --yes --note --force "$M"
    expect 64 '--note excludes --force and --token'
}

has_run() { ls ran? >/dev/null 2>&1; }

@test "release --note: whoever owns it, and waits for it, makes room" {
    for i in 1 2 3; do
        begin "$SIMBA" schedule -q "${LOSABLE[@]}" "$M" --every 1h touch "ran$i"
    done
    await has_run
    rm ran?
    run simba release --yes --note "$M"
    expect 0 "its note 'tick 1 .* claimed .*' is cleared"
    await has_run
}

@test "release: by token, nobody, no store, bad input" {
    hold "$M"
    token=$(simba status --json "$M" | sed 's/.*"token":\([0-9]*\).*/\1/')
    run simba release --token $((token + 1)) "$M"
    expect 1 "not released: it is held by .* with token $token"
    run simba release --yes --token "$token" "$M"
    expect 0
    run simba release "${M}2"
    expect 1 "nobody owns it"
    run simba -u sqlite:/nosuch/x.db release "$M"
    expect 125
    run simba release
    expect 64 "missing NAME"
    run simba release a b
    expect 64 "one NAME"
    run simba release --token x "$M"
    expect 64 "--token .* is not a token"
    run simba release --token -1 "$M"
    expect 64 "--token .* is not a token"
}

@test "release: asks on a terminal" {
    needs_terminal
    hold "$M"
    run python3 - <<'P'
import os, pty, sys
def ask(answer):
    pid, fd = pty.fork()
    if pid == 0:
        os.execvp(os.environ["SIMBA"], ["simba", "release", os.environ["M"]])
    out = b""
    while b"[y/N]" not in out:
        try:
            out += os.read(fd, 4096)
        except OSError:
            sys.exit("ended without asking: " + out.decode())
    os.write(fd, answer)
    try:
        while os.read(fd, 4096):
            pass
    except OSError:
        pass
    assert b"is held by holder-of-" + os.environ["M"].encode() + b", token" in out, out
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
assert ask(b"n\n") == 1
assert ask(b"\n") == 1
assert ask(b"\x04") == 1
os.system(os.environ["SIMBA"] + " status -q $M >/dev/null || exit 9") == 0 or sys.exit("gone without a yes")
assert ask(b"y\n") == 0
P
    expect 0
}
