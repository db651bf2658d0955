#!/usr/bin/env bats
# serve.bats: simba serve: what it answers, to whom, and what it costs. The page itself is tried in a browser by
# tests/serve/page_browser.py.
bats_require_minimum_version 1.8.0
load helper

SERVE_TESTS=$BATS_TEST_DIRNAME/../serve

serve() { # options...
    begin "$SIMBA" serve --listen 127.0.0.1:0 "$@" >serve.out 2>serve.err
    SERVER=$PID
    await has '^http://127' serve.out
    ADDRESS=$(cat serve.out)
}

get() { # path options...
    curl -sS --max-time 10 "${@:2}" "$ADDRESS$1"
}

answers() { # path, what python is to find true of the answer, as j
    get "$1" | python3 -c "import json, sys
j = json.load(sys.stdin)
sys.exit(not ($2))"
}

# bats test_tags=store
@test "serve: who owns what, and the tenure when it is over" {
    simba lock "$M" true # makes the store, where it is a file
    hold "$M" web@one
    HOLD=$PID
    serve
    await answers /api/mutexes "any(r['mutex'] == '$M' and r['state'] == 'held' and r['holder'] == 'web@one' and r['token'] > 0 for r in j['mutexes'])"
    await answers /api/mutexes "any(r['mutex'] == '$M' and r['until_ms'] and 0 < r['until_ms'] - j['now_ms'] < 17000 for r in j['mutexes'])"
    answers /api/history "all(r['mutex'] != '$M' for r in j['tenures'])"
    kill -TERM "$HOLD"
    ends "$HOLD"
    await answers /api/history "any(r['mutex'] == '$M' and r['holder'] == 'web@one' and r['reason'] == 'released' and r['ended_ms'] >= r['began_ms'] for r in j['tenures'])"
    answers /api/mutexes "all(r['mutex'] != '$M' for r in j['mutexes'])"
    await get /metrics -o metrics
    grep -qE '^simba_store_answers 1$' metrics
    grep -qE '^simba_store_tenures_ended_total\{reason="released"\} [1-9]' metrics
    kill -TERM "$SERVER"
    ends "$SERVER"
    [ "$CODE" -eq 143 ]
}

@test "serve: READY=1 goes to the service manager once it answers" {
    simba lock "$M" true
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
    export NOTIFY_SOCKET=$DIR/notify
    serve
    ends "$listener"
    [ "$(cat heard)" = "READY=1" ]
    get /healthz -o answer
}

# bats test_tags=store
@test "serve: events tell of a change at once" {
    simba lock "$M" true
    serve
    begin curl -sSN --max-time 60 "$ADDRESS/events" >events
    await has '^event: hello' events
    hold_slowly "$M" live@two
    await has "^data: .*\"mutex\":\"$M\",\"state\":\"held\",\"holder\":\"live@two\"" events
    simba release --yes "$M"
    await has "^data: .*\"mutex\":\"$M\",\"state\":\"free\"" events
    await has "\"tenures\":\[.*\"mutex\":\"$M\".*\"reason\":\"evicted\"" events
    grep '^data: ' events | cut -c7- | python3 -c 'import json, sys
for line in sys.stdin: json.loads(line)'
}

@test "serve: it only reads, for this machine, and lets nobody in by a name" {
    "$SIMBA" init >/dev/null 2>&1
    serve
    get / -D head -o page
    grep -qi "^Content-Security-Policy: default-src 'none'; script-src 'sha256-[^']*'; style-src 'sha256-[^']*'; connect-src 'self'.*frame-ancestors 'none'" head
    grep -qi '^X-Content-Type-Options: nosniff' head
    grep -qi '^Referrer-Policy: no-referrer' head
    ! grep -qi '^Access-Control' head
    ! grep -oE '(src|href)="[^"]+"' page | grep -vE '="(/|data:)'
    [ "$(get / -o /dev/null -w '%{http_code}' -X POST)" = 405 ]
    [ "$(get / -o /dev/null -w '%{http_code}' -H 'Host: evil.example.org')" = 403 ]
    [ "$(get / -o /dev/null -w '%{http_code}' -H 'Host: localhost')" = 200 ]
    [ "$(get /healthz -o /dev/null -w '%{http_code}' -H 'Host: evil.example.org')" = 403 ]
    [ "$(get /metrics -o /dev/null -w '%{http_code}' -H 'Host: evil.example.org')" = 403 ]
    [ "$(get /nosuch -o /dev/null -w '%{http_code}')" = 404 ]
    answers '/api/history?since=1h&limit=7&before=9.9&mutex=%00%ff' 'j["tenures"] == []'
    run simba serve --listen "${ADDRESS#http://}"
    expect 125 "${ADDRESS#http://}"
    run simba serve --listen nonsense
    expect 64
    run simba serve sqlite:/nonexistent/l.db --listen :0
    expect 125 "/nonexistent"
    run simba serve --keep 1h --listen :0
    expect 64 "needs --history"
}

@test "serve: names that --host, a variable or a file allow" {
    "$SIMBA" init >/dev/null 2>&1
    code_for() { # name
        get / -o /dev/null -w '%{http_code} ' -H "Host: $1"
    }
    serve --host locks.example.org,simba.lan
    [ "$(code_for locks.example.org:8080; code_for SIMBA.lan; code_for example.org)" = "200 200 403 " ]
    mkdir -p home/.config/simba
    printf 'simba:\n  listen: nonsense\n  serve:\n    host: of.file\n    listen: 127.0.0.1:0\n' >home/.config/simba/simba.yaml
    run simba serve --dry-run
    expect 0 'listen +127.0.0.1:0 +from .*simba.yaml:5'
    expect 0 'serve.host +of.file +from .*simba.yaml:4'
    begin "$SIMBA" serve >file.out 2>&1
    await has '^http://127' file.out
    ADDRESS=$(grep ^http file.out)
    [ "$(code_for of.file)" = "200 " ]
    SIMBA_SERVE_HOST=of.variable SIMBA_LISTEN=127.0.0.1:0 begin "$SIMBA" serve >variable.out 2>&1
    await has '^http://127' variable.out
    ADDRESS=$(grep ^http variable.out)
    [ "$(code_for of.variable; code_for of.file)" = "200 403 " ]
}

@test "serve: behind a web server: on a socket, which the umask opens for a group, every name is right" {
    "$SIMBA" init >/dev/null 2>&1
    for mask in 022 007; do
        behind() { umask "$1" && exec "$SIMBA" serve --listen "unix:sock$1"; }
        begin behind "$mask" >out 2>err
        await test -S "sock$mask"
        await curl -fsS --max-time 10 --unix-socket "sock$mask" http://locks.example.org/ -o /dev/null
    done
    [ "$(stat -c %a sock022 sock007 | tr '\n' ' ')" = "755 770 " ]
}

@test "serve: on every address, of both families; it says one that can be opened" {
    "$SIMBA" init >/dev/null 2>&1
    has_ipv6=$(python3 -c 'import socket; socket.create_server(("::1", 0), family=socket.AF_INET6); print("[::1]")' 2>/dev/null) || true
    for host in '*' '[::]' 0.0.0.0; do
        begin "$SIMBA" serve --listen "$host:0" >every.out 2>every.err
        await has '^http://127\.0\.0\.1:[0-9]+$' every.out
        has 'at http://127.*, and at every other address of this machine' every.err
        ADDRESS=$(cat every.out)
        get / -o /dev/null
        [ -z "$has_ipv6" ] || [ "$host" = 0.0.0.0 ] || curl -sS --max-time 10 -g "http://[::1]:${ADDRESS##*:}/healthz"
        : >every.out
    done
}

@test "serve: a number in a URL that is none is refused, and hangs nothing" {
    simba lock "$M" true
    serve
    for query in history?since=5x history?since=-5s history?before={1.-5,-1.5,1,1.,.1,1.5x,x,} {history,mutexes}?limit={x,-5,1x,}; do
        run get "/api/$query" -o /dev/null -w '%{http_code}'
        expect 0 '^400$'
    done
    for number in 0 99999999999999999999999; do
        answers "/api/history?before=$number.$number&limit=$number" '"tenures" in j'
        answers "/api/mutexes?limit=$number" '"mutexes" in j'
    done
    kill -TERM "$SERVER"
    ends "$SERVER"
    [ "$CODE" -eq 143 ]
}

@test "serve: many mutexes come in pages, or by name" {
    begin "${SIMBA%/*}/tests/owners" "$SIMBA_URL" 25 >ready
    await has ready ready
    serve
    await answers /api/mutexes 'len(j["mutexes"]) == 25 and j["next"] is None'
    await answers /api/mutexes '[r["note"] for r in j["mutexes"]] == ["http://10.0.0.7:8080/<b>"] + [None] * 24'
    answers '/api/mutexes?limit=10' '[r["mutex"] for r in j["mutexes"]] == ["service-%05d" % i for i in range(10)] and j["next"] == "service-00009"'
    answers '/api/mutexes?limit=10&after=service-00019' 'len(j["mutexes"]) == 5 and j["next"] is None'
    answers '/api/mutexes?names=service-00003%0Anobody%0A%0Aservice-00001' '[(r["mutex"], r["state"]) for r in j["mutexes"]] == [("service-00003", "held"), ("nobody", "free"), ("service-00001", "held")]'
}

@test "serve: with a file, tenures outlive it" {
    "$SIMBA" init >/dev/null 2>&1
    serve --history h.db
    for i in 1 2 3; do
        begin "$SIMBA" lock --id "job$i@a" "$M" sleep 60
        await answers /api/mutexes "any(r['holder'] == 'job$i@a' for r in j['mutexes'])"
        kill -TERM "$PID"
        await answers /api/history "any(r['holder'] == 'job$i@a' and r['reason'] == 'released' for r in j['tenures'])"
    done
    run timeout 20 "$SIMBA" watch --record h.db
    expect 125 "process $SERVER records into it already"
    kill -TERM "$SERVER"
    ends "$SERVER"
    serve --history h.db
    answers /api/mutexes 'j["figures"][1]["minutes"] == 60 and [f["ended"] for f in j["figures"]] == [3] * 4'
    answers "/api/history?mutex=$M" '[r["holder"] for r in j["tenures"]] == ["job3@a", "job2@a", "job1@a"] and j["is_recorded"]'
    answers '/api/history?limit=2' 'len(j["tenures"]) == 2 and j["next"]'
    next=$(get '/api/history?limit=2' | python3 -c 'import json, sys; print(json.load(sys.stdin)["next"])')
    answers "/api/history?before=$next" '[r["holder"] for r in j["tenures"]] == ["job1@a"]'
    simba history --from h.db | grep -q job2@a
}

# In the file are a recording of an hour ago, one that ended ten minutes ago, and now this one.
@test "serve: with a file, what was not recorded is said to be unknown" {
    "$SIMBA" init >/dev/null 2>&1
    serve --history h.db
    kill -TERM "$SERVER"
    ends "$SERVER"
    python3 - <<'P'
import sqlite3
db = sqlite3.connect("h.db")
db.execute("UPDATE recording SET began_ms = began_ms - 3600000, last_ms = last_ms - 3000000")
db.commit()
P
    serve --history h.db
    answers '/api/history?since=6h' '3599000 < j["now_ms"] - j["known_since_ms"] < 3700000'
    answers '/api/history?since=6h' '[round((b - a) / 60000) for a, b in j["gaps"]] == [50]'
    rm h.db
    kill -TERM "$SERVER"
    ends "$SERVER"
    serve --history h.db
    answers '/api/history?since=6h' '0 <= j["now_ms"] - j["known_since_ms"] < 60000 and j["gaps"] == []'
}

@test "serve: it says when the history file was moved away" {
    "$SIMBA" init >/dev/null 2>&1
    serve --history h.db
    get /healthz | grep -q '^ok'
    get /metrics | grep -qx 'simba_serve_records 1'
    begin curl -sSN --max-time 60 "$ADDRESS/events" >events
    await has '"unrecorded":null' events
    mv h.db elsewhere.db
    await eval '[ "$(get /healthz -o /dev/null -w "%{http_code}")" = 503 ]'
    get /healthz | grep -q '^the history file h.db was moved or deleted: nothing is recorded any more'
    get /metrics | grep -qx 'simba_serve_records 0'
    await has '"unrecorded":"the history file' events
    answers /api/mutexes '"moved or deleted" in j["store_state"]["unrecorded"] and j["store_state"]["answers"]'
}

cpu_ticks() { # pid: hundredths of a second
    sed 's/.*) //' "/proc/$1/stat" | awk '{ print $12 + $13 }'
}

# If all rows were looked at, that would be 24 million; of the store that was recorded before, 12 million.
@test "serve: with a file of many tenures, questions for one mutex keep nobody waiting" {
    "$SIMBA" init >/dev/null 2>&1
    serve --history h.db
    kill -TERM "$SERVER"
    ends "$SERVER"
    python3 - <<'P'
import sqlite3, time
db, now = sqlite3.connect("h.db"), int(time.time() * 1000)
db.executemany("INSERT INTO tenure(store, mutex, holder, token, began_ms, began_known, ended_ms, reason) "
               "VALUES(1, ?, 'h', ?, ?, 1, ?, 'released')",
               ((f"m{i % 1000}", i, now - 900000 + i, now - 900000 + i) for i in range(400000)))
db.execute("INSERT INTO store(id, name) VALUES(2, 'sqlite:/before.db')")
db.executemany("INSERT INTO tenure(store, mutex, holder, token, began_ms, began_known, ended_ms, reason) "
               "VALUES(2, 'moved', 'h', ?, ?, 1, ?, 'released')",
               ((i, now - 900000 + i, now - 900000 + i) for i in range(200000)))
db.commit()
P
    serve --history h.db
    before=$(cpu_ticks "$SERVER")
    curl -sS --max-time 120 -o /dev/null "$ADDRESS/api/history?since=24h&mutex=nobody[1-60]"
    curl -sS --max-time 120 -o /dev/null "$ADDRESS/api/history?since=24h&mutex=moved&limit=[1-60]"
    took=$(($(cpu_ticks "$SERVER") - before))
    echo "$took ticks"
    [ "$took" -lt 150 ]
    answers "/api/history?since=24h&mutex=m7" 'len(j["tenures"]) == 400'
}

# What is over the limits is deleted in the first seconds. Then the time before is not known.
@test "serve: of too many tenures, and of too many recordings, the oldest are forgotten, and that is said" {
    "$SIMBA" init >/dev/null 2>&1
    serve --history h.db
    kill -TERM "$SERVER"
    ends "$SERVER"
    cp h.db few.db
    python3 - <<'P'
import sqlite3, time
db, now = sqlite3.connect("h.db"), int(time.time() * 1000)
db.execute("UPDATE recording SET began_ms = began_ms - 7200000")
db.execute("WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n LIMIT 1001000) "
           "INSERT INTO tenure(store, mutex, holder, token, began_ms, began_known, ended_ms, reason) "
           "SELECT 1, 'm', 'h', i, ? + i, 1, ? + i, 'released' FROM n", (now - 3600000, now - 3600000))
db.commit()
db = sqlite3.connect("few.db")
db.executemany("INSERT INTO recording(store, began_ms, last_ms, pid) VALUES(1, ?, ?, 1)",
               ((now - 3600000 + 100 * i, now - 3600000 + 100 * i + 50) for i in range(11000)))
db.commit()
P
    serve --history h.db
    await answers '/api/history?since=6h&limit=1' '3590000 < j["now_ms"] - j["known_since_ms"] < 3650000'
    kill -TERM "$SERVER"
    ends "$SERVER"
    serve --history few.db
    await answers '/api/history?since=6h' '3400000 < j["now_ms"] - j["known_since_ms"] < 3550000'
}

@test "serve: in memory, history comes in pages, too" {
    "$SIMBA" init >/dev/null 2>&1
    serve
    for i in 1 2 3; do
        begin "$SIMBA" lock --id "job$i@a" "$M" sleep 60
        await answers /api/mutexes "any(r['holder'] == 'job$i@a' for r in j['mutexes'])"
        kill -TERM "$PID"
        await answers /api/history "any(r['holder'] == 'job$i@a' for r in j['tenures'])"
    done
    next=$(get '/api/history?limit=2' | python3 -c 'import json, sys; print(json.load(sys.stdin)["next"])')
    answers "/api/history?before=$next" '[r["holder"] for r in j["tenures"]] == ["job1@a"] and j["next"] is None'
    answers /api/history '0 <= j["now_ms"] - j["known_since_ms"] < 120000'
}

@test "serve: its figures count what was lost, and its epoch is its own" {
    "$SIMBA" init >/dev/null 2>&1
    serve
    hold_slowly "$M" lost@one
    await answers /api/mutexes "any(r['holder'] == 'lost@one' for r in j['mutexes'])"
    simba release --yes "$M"
    await answers /api/mutexes '[(f["ended"], f["lost"]) for f in j["figures"]] == [(1, 1)] * 4'
    epoch=$(get /api/mutexes | grep -oE '"epoch":"[0-9a-f]{16}"')
    begin curl -sSN --max-time 60 "$ADDRESS/events" >events
    await has "$epoch" events
    await has '^event: alive' events
    kill -TERM "$SERVER"
    ends "$SERVER"
    serve
    ! get /api/mutexes | grep -q "$epoch"
}

@test "serve: what others chose as names and ids is data, whatever is in it" {
    evil='</script><img src=x onerror=alert(1)>"&' turned=$'\u202eabc'
    begin "$SIMBA" lock --id "$turned" "$evil" sleep 60
    await simba status "$evil"
    serve
    await get /api/mutexes -o json
    await answers /api/mutexes 'len(j["mutexes"]) == 1'
    get /api/mutexes >json
    ! grep -qE '[<>&]|'$'\u202e' json
    python3 - "$evil" "$turned" <<'END'
import json, sys
row, = json.load(open("json"))["mutexes"]
assert [row["mutex"], row["holder"]] == sys.argv[1:], row
END
}

@test "serve: it says when the store does not answer" {
    "$SIMBA" init >/dev/null 2>&1
    serve
    get /healthz | grep -q '^ok'
    begin curl -sSN --max-time 60 "$ADDRESS/events" >events
    await has '^event: hello' events
    lose_store
    await eval '[ "$(get /healthz -o /dev/null -w "%{http_code}")" = 503 ]'
    get /healthz | grep -q 'does not answer'
    await has '"answers":false,"since_ms":[0-9]+,"why":".+"' events
    get /metrics | grep -qx 'simba_store_answers 0'
    find_store
    await eval '[ "$(get /healthz -o /dev/null -w "%{http_code}")" = 200 ]'
}

@test "serve: hundreds of idle readers, and some that read nothing, cost a bounded amount of memory" {
    begin "${SIMBA%/*}/tests/owners" "$SIMBA_URL" 2000 100 >ready
    await has ready ready
    serve
    python3 "$SERVE_TESTS/readers.py" "$ADDRESS" "$SERVER" $(! is_sanitized "$SIMBA" || echo --any-memory)
}

@test "serve: when many tenures end at once, events tell of all" {
    begin "${SIMBA%/*}/tests/owners" "$SIMBA_URL" 1500 >ready
    owners=$PID
    await has ready ready
    serve
    await answers /api/mutexes 'len(j["mutexes"]) > 100 and j["is_complete"]'
    begin curl -sSN --max-time 60 "$ADDRESS/events" >events
    await has '^event: hello' events
    kill -KILL "$owners"
    told() { # all of them, each once
        grep '^data: {"now_ms":[0-9]*,"mutexes"' events | cut -c7- | python3 -c 'import json, sys
names = [t["mutex"] for line in sys.stdin for t in json.loads(line)["tenures"]]
print(len(names), len(set(names)))
sys.exit(len(names) != 1500 or len(set(names)) != 1500)' >names
    }
    await told || { cat names && false; }
}

@test "serve: an answer ends at some 256 kB, and those that nobody reads cost a bounded amount of memory" {
    begin "${SIMBA%/*}/tests/owners" "$SIMBA_URL" 300 0 1000 >ready # 2 MB of notes
    await has ready ready
    serve
    await answers '/api/mutexes?after=service-00250' 'len(j["mutexes"]) > 10 and all(len(r["note"]) == 1000 for r in j["mutexes"])'
    python3 - "$ADDRESS" <<'END'
import json, sys, urllib.parse, urllib.request
def get(query):
    with urllib.request.urlopen(f"{sys.argv[1]}/api/mutexes?{urllib.parse.urlencode(query)}") as answer:
        text = answer.read()
    assert len(text) < 300000, len(text)
    read = json.loads(text)
    return [row["mutex"] for row in read["mutexes"]], read["next"]
names, next = get({})
while next is not None:
    assert next == names[-1]
    more, next = get({"after": next})
    names += more
assert names == ["service-%05d" % i for i in range(300)], names
wanted, got = names[::-4], []
while wanted:
    more, next = get({"names": "\n".join(wanted)})
    got += more
    wanted = wanted[len(more):]
    assert (next is None) == (not wanted) and (next is None or next == more[-1])
assert got == names[::-4]
END
    python3 "$SERVE_TESTS/readers.py" "$ADDRESS" "$SERVER" --unread $(! is_sanitized "$SIMBA" || echo --any-memory)
}

@test "serve: in a browser" {
    needs_browser
    begin "${SIMBA%/*}/tests/owners" "$SIMBA_URL" 10000 >ready
    await has ready ready
    serve
    "$PYTHON" "$SERVE_TESTS/page_browser.py" "$ADDRESS" "$SIMBA" "$SIMBA_URL"
}
