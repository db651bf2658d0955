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
    [ "$(get /nosuch -o /dev/null -w '%{http_code}')" = 404 ]
    [ "$(get '/api/history?since=5x' -o /dev/null -w '%{http_code}')" = 400 ]
    answers '/api/history?since=1h&limit=x&before=9.9&mutex=%00%ff' 'j["tenures"] == []'
    run simba serve --listen "${ADDRESS#http://}"
    expect 125 "${ADDRESS#http://}"
    run simba serve --listen nonsense
    expect 64
    run simba serve sqlite:/nonexistent/l.db --listen :0
    expect 125 "/nonexistent"
    run simba serve --keep 1h --listen :0
    expect 64 "needs --history"
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

@test "serve: in a browser" {
    needs_browser
    begin "${SIMBA%/*}/tests/owners" "$SIMBA_URL" 10000 >ready
    await has ready ready
    serve
    "$PYTHON" "$SERVE_TESTS/page_browser.py" "$ADDRESS" "$SIMBA" "$SIMBA_URL"
}
