#!/usr/bin/env bats
# listen.bats: --listen: /leader, /healthz, /metrics; addresses; clients that misbehave.
bats_require_minimum_version 1.8.0
# bats file_tags=store
load helper

HTTP=$BATS_TEST_DIRNAME/http.py

ask() { # address path: prints "STATUS BODY"
    python3 "$HTTP" "$@" 2>/dev/null
}
says() { # address path pattern
    ask "$1" "$2" | grep -qE -- "$3"
}
rss() { # pid: kB
    awk '/^VmRSS/ { print $2 }' "/proc/$1/status"
}
token_of() { # address
    ask "$1" /leader | grep -oE '"token":[0-9]+'
}

# ---- /leader ----------------------------------------------------------------------------------

@test "listen: /leader is 200 for the owner, and 503 with the owner for others" {
    begin "$SIMBA" elect -q --id one --listen unix:one "$M" >out
    await says unix:one /leader '^200 '
    token=$(grep -oE 'token [0-9]+' out | cut -d' ' -f2)
    run ask unix:one /leader
    expect 0 "^200 \{\"leader\":true,\"mutex\":\"$M\",\"id\":\"one\",\"token\":$token,\"remaining_ms\":[0-9]+,\"store\":\"$STORE\"\}$"
    begin "$SIMBA" elect -q --id two --listen unix:two "$M" >out2
    await says unix:two /leader "^503 .*\"owner\":\{\"id\":\"one\",\"token\":$token"
    run ask unix:two /leader
    expect 0 "^503 \{\"leader\":false,\"mutex\":\"$M\",\"id\":\"two\",\"owner\":\{\"id\":\"one\",\"token\":$token(,\"held_ms\":[0-9]+)?\},\"store\":\"$STORE\"\}$"
}

# It asks the store by itself; the contender, which has yet to begin, has heard of nobody.
@test "listen: 503 names the owner that was read last, and ids as they are" {
    turned=$'\u202e\t<a "b">'
    SIMBA_INITIAL_DELAY=60s begin "$SIMBA" elect -q --id "$turned" --ttl 1s --transition 4s --listen unix:two "$M" >out
    await says unix:two /leader '^503 .*"owner":null'
    for owner in "one$turned" "other"; do
        begin "$SIMBA" lock --id "$owner" "$M" sleep 60
        export owner turned
        shows() {
            ask unix:two /leader | cut -c5- | python3 -c 'import json, os, sys
read = json.load(sys.stdin)
sys.exit(read["id"] != os.environ["turned"] or read["owner"]["id"] != os.environ["owner"])'
        }
        await shows
        kill -TERM "$PID"
        ends "$PID"
    done
    await says unix:two /leader '^503 .*"owner":null'
}

@test "listen: /leader is 503 from the moment the owner is told to end" {
    begin "$SIMBA" elect -q --id one --listen unix:one "$M" -a 'touch led' -r 'touch ending; while [ -e ending ]; do sleep 0.01; done' >out
    await says unix:one /leader '^200 '
    kill -TERM "$PID"
    await test -e ending
    run ask unix:one /leader
    expect 0 '^503 .*"owner":null'
    rm ending
    ends "$PID"
    [ "$CODE" -eq 0 ]
    [ ! -e one ] # the socket goes with it
}

@test "listen: lock: 503 with the owner while it waits, 200 while CMD runs" {
    hold "$M" first
    begin "$SIMBA" lock -q --listen unix:sock "$M" sh -c 'touch runs; while [ -e runs ]; do sleep 0.01; done'
    lock=$PID
    await says unix:sock /leader '^503 .*"owner":\{"id":"first"'
    kill -TERM "${STARTED[0]}"
    await test -e runs
    says unix:sock /leader '^200 .*"leader":true'
    says unix:sock /healthz '^200 ok'
    rm runs
    ends "$lock"
    [ "$CODE" -eq 0 ]
    [ ! -e sock ]
}

@test "listen: lock without CMD, and schedule" {
    begin "$SIMBA" lock -q --listen unix:sock "$M" >out
    await says unix:sock /leader '^200 '
    kill -TERM "$PID"
    ends "$PID"
    begin "$SIMBA" schedule -q --listen unix:sock "$M" --every 1h touch ran
    await says unix:sock /leader '^200 '
    await test -e ran
    kill -TERM "$PID"
    ends "$PID"
    [ "$CODE" -eq 0 ]
}

@test "listen: an owner that was stopped says 503 at once when it goes on" {
    begin "$SIMBA" elect -q --id one "${SHORT[@]}" --listen unix:one "$M" >out
    one=$PID
    await says unix:one /leader '^200 '
    kill -STOP "$one"
    begin "$SIMBA" elect -q --id two "${SHORT[@]}" --listen unix:two "$M" >out2
    await says unix:two /leader '^200 '
    begin env HTTP_SENT=sent python3 "$HTTP" unix:one /leader >answer
    await test -e sent
    kill -CONT "$one"
    ends "$PID"
    has '^503 .*"leader":false' answer
}

@test "listen: /metrics counts a lease that ran out, also with --on-released" {
    make_store_losable
    begin "$SIMBA" elect -q --listen unix:one "${LOSABLE[@]}" "$M" -a 'exec sleep 60' -r 'echo $SIMBA_REASON >>reasons' >out 2>err
    await says unix:one /leader '^200 '
    lose_store
    await has expired reasons
    await counts_expired
    find_store
    await says unix:one /leader '^200 '
    counts_expired
}
counts_expired() { python3 "$HTTP" unix:one /metrics | grep -E 'simba_losses_total\{.*reason="expired".*\} 1$'; }

@test "listen: /leader turns 503 when the lease cannot be renewed, and CMD's loss says why" {
    make_store_losable
    begin "$SIMBA" elect --log json --id one --listen unix:one "${LOSABLE[@]}" "$M" >out 2>err
    await says unix:one /leader '^200 '
    lose_store
    await says unix:one /healthz '^503 .*(renewals (fail|are late)|mutex)'
    await says unix:one /leader '^503 '
    await has '"reason":"expired"' err
    python3 - <<'P'
import json, os
lines = [json.loads(line) for line in open("err")]
lost = [line for line in lines if line.get("reason")]
assert len(lost) == 1, lines
lost = lost[0]
assert lost["level"] == "error" and lost["mutex"] == os.environ["M"] and lost["token"] > 0, lost
assert lost["store"] and "renewal" in lost["text"] and lost["command"] == "elect", lost
P
    find_store
    await says unix:one /leader '^200 '
    await says unix:one /healthz '^200 ok'
}

# bats test_tags=sqlite
@test "listen: 503 has the note of the owner, and not that of the one before" {
    ! is_sanitized "$SIMBA" || skip "Python cannot load a library with sanitizers"
    export PYTHONPATH=$BATS_TEST_DIRNAME/../../bindings/python SIMBA_LIBRARY=$(dirname "$SIMBA")/libsimba.so.0
    [ -e "$SIMBA_LIBRARY" ] || skip "there is no $SIMBA_LIBRARY"
    begin python3 -c '
import os, simba, time
with simba.open() as s, s.lock(os.environ["M"], timeout=5) as lock:
    lock.publish("http://10.0.0.7:8080")
    open("published", "w").close()
    while not os.path.exists("end"):
        time.sleep(0.01)'
    await test -e published
    begin "$SIMBA" elect -q --id two --ttl 1s --transition 4s --listen unix:two "$M" >out
    await says unix:two /leader '^503 .*"owner":\{"id":"[^"]*","token":[0-9]+(,"held_ms":[0-9]+)?,"note":"http://10.0.0.7:8080"\}'
    begin "$SIMBA" elect -q --id three --ttl 1s --transition 4s --listen unix:three "$M" >out3
    touch end
    both() { ask unix:two /leader; ask unix:three /leader; }
    settled() { both | grep -qE '^503 .*"owner":\{"id":"(two|three)"'; }
    await settled
    ! both | grep -q note
}

# ---- /healthz and /metrics --------------------------------------------------------------------

@test "listen: /healthz of a candidate that waits is 503 while the store does not answer" {
    make_store_losable
    begin "$SIMBA" elect -q --id one "${SHORT[@]}" "$M" >out
    await has acquired out
    begin "$SIMBA" elect -q --id two "${SHORT[@]}" --listen unix:two "$M" >out2
    await says unix:two /healthz "^200 ok: mutex '$M' on $STORE: the store answers$"
    says unix:two /leader '^503 '
    lose_store
    await says unix:two /healthz "^503 mutex '$M' on "
    [ "$(ask unix:two /healthz | grep -o "mutex '$M' on" | wc -l)" = 1 ]
    find_store
    await says unix:two /healthz '^200 ok'
}

@test "listen: /healthz is 503 from the first renewal that fails until the store answers again" {
    make_store_losable
    begin "$SIMBA" elect --log json --listen unix:one "${LOSABLE[@]}" "$M" >out 2>err
    await says unix:one /leader '^200 '
    await says unix:one /healthz '^200 ok'
    lose_store
    await says unix:one /healthz '^503 '
    until has '"reason":"expired"' err; do says unix:one /healthz '^503 '; done
    for _ in {1..40}; do says unix:one /healthz '^503 '; done
    find_store
    await says unix:one /healthz '^200 ok'
}

@test "listen: /metrics is a page for Prometheus" {
    begin "$SIMBA" elect -q --id "$M" --listen unix:one "$M" >out
    await says unix:one /leader '^200 '
    ask unix:one /metrics | sed '1s/^200 //' >page
    # Debian's package is of Debian's Python.
    /usr/bin/python3 -c 'import prometheus_client' 2>/dev/null || skip "python3-prometheus-client is missing"
    /usr/bin/python3 - <<'P'
import os
from prometheus_client.parser import text_string_to_metric_families
found = {(s.name, s.labels.get("mutex")): s.value for family in text_string_to_metric_families(open("page").read())
         for s in family.samples}
assert found["simba_owned", None] == 1, found
assert found["simba_mutex_owned", os.environ["M"]] == 1 and found["simba_acquisitions_total", None] == 1
P
}

# To say who owns the mutex, lock has an observer. It has no id, and no series of its own.
@test "listen: /metrics of lock has the mutex once" {
    begin "$SIMBA" lock -q --id one --listen unix:one "$M" sleep 60
    await says unix:one /leader '^200 '
    ask unix:one /metrics >page
    [ "$(grep -c "^simba_mutex_owned{mutex=\"$M\"" page)" = 1 ]
    has "^simba_mutex_owned\{mutex=\"$M\",id=\"one\"\} 1$" page
}

# ---- addresses --------------------------------------------------------------------------------

@test "listen: a port on loopback, chosen by the system, by an option, a variable or a file" {
    begin "$SIMBA" elect -q --listen :0 "$M" 2>err
    await has "listening on http://127.0.0.1:[0-9]+$" err
    port=$(grep -oE '[0-9]+$' err)
    await says "127.0.0.1:$port" /leader '^200 '
    run simba lock -n --listen "127.0.0.1:$port" "${M}2" true
    expect 125 "cannot listen on 127.0.0.1:$port \(--listen\): Address already in use; another process listens there: choose another port"
    SIMBA_LISTEN=unix:sock begin "$SIMBA" lock "${M}2" sh -c 'echo "[$SIMBA_LISTEN]" >seen; exec sleep 60'
    await says unix:sock /leader '^200 '
    has '^\[\]$' seen
    mkdir -p home/.config/simba
    printf 'simba:\n  listen: unix:other\n' >home/.config/simba/simba.yaml
    chmod 600 home/.config/simba/simba.yaml
    begin "$SIMBA" elect -q "${M}3" >out
    await says unix:other /leader '^200 '
    kill -TERM "$PID"
    ends "$PID"
    simba lock "${M}3" "$SIMBA" lock "${M}4" "$SIMBA" lock "${M}5" true # the address is that of the first
}

# bats test_tags=storeless
@test "listen: what is no address, and what cannot be bound" {
    for wrong in 80 host 1.2.3.4 :99999 :http ::1:80 unix: ''; do
        run simba lock --listen "$wrong" "$M" true
        expect 64 "^simba lock: --listen '$wrong': "
    done
    run simba lock --listen 192.0.2.1:8080 "$M" true
    expect 125 'cannot listen on 192.0.2.1:8080 \(--listen\): Cannot assign requested address; this machine has no such address'
    run simba lock --listen unix:none/sock "$M" true
    expect 125 'cannot listen on unix:none/sock \(--listen\): No such file or directory; make its folder first'
    echo mine >file
    run simba lock --listen unix:file "$M" true
    expect 125 'cannot listen on unix:file \(--listen\): File exists; there is a file that is no socket'
    has mine file
    SIMBA_LISTEN=nonsense run simba lock "$M" true
    expect 125 "SIMBA_LISTEN: cannot listen on 'nonsense': there is no colon"
}

@test "listen: the socket of a process that was killed is taken over, that of one that lives is not" {
    begin "$SIMBA" elect -q --listen unix:sock "$M" >out
    await says unix:sock /leader '^200 '
    run simba lock --listen unix:sock "${M}2" true
    expect 125 'cannot listen on unix:sock \(--listen\): Address already in use; another process listens there'
    kill -KILL "$PID"
    ends "$PID"
    [ -S sock ]
    simba lock --listen unix:sock "${M}2" true
    [ ! -e sock ]
}

# CMD would keep the address, and those who ask would wait.
@test "listen: neither the guard nor CMD has the address when the keeper is killed" {
    begin "$SIMBA" lock -q --listen :0 "$M" sh -c 'trap "" TERM; echo >ready; while :; do sleep 0.05; done' 2>err
    await test -e ready
    port=$(grep -oE 'listening on http://127.0.0.1:[0-9]+$' err | grep -oE '[0-9]+$')
    says "127.0.0.1:$port" /leader '^200 '
    kill -KILL "$PID"
    run python3 "$HTTP" "127.0.0.1:$port" /leader
    expect 7 'refused'
}

# bats test_tags=storeless
@test "listen: needs no library for HTTP" {
    SIMBA_URL=sqlite:$DIR/store/locks.db
    begin "$SIMBA" lock -q --listen unix:sock "$M" sleep 60
    await says unix:sock /leader '^200 '
    run grep -c microhttpd "/proc/$PID/maps"
    expect 1 '^0$'
}

# ---- clients that misbehave -------------------------------------------------------------------

# bats test_tags=sqlite
@test "listen: only GET and HEAD; other paths; headers" {
    begin "$SIMBA" elect -q --listen unix:sock "$M" >out
    await says unix:sock /leader '^200 '
    says unix:sock /none '^404 There is no such path; there are: /leader /healthz /metrics$'
    for method in POST PUT DELETE OPTIONS TRACE CONNECT NONSENSE; do
        run ask unix:sock "$method" /leader
        expect 0 '^405 '
    done
    run ask unix:sock HEAD /leader
    expect 0 '^200 $'
    python3 - "$BATS_TEST_DIRNAME/http.py" <<'P'
import importlib.util, sys
spec = importlib.util.spec_from_file_location("client", sys.argv[1])
client = importlib.util.module_from_spec(spec)
spec.loader.exec_module(client)
status, headers, body = client.ask("unix:sock", "/leader")
assert headers["cache-control"] == "no-store" and headers["x-content-type-options"] == "nosniff", headers
assert headers["content-type"] == "application/json" and "default-src 'none'" in headers["content-security-policy"]
assert client.ask("unix:sock", "/leader", "POST")[1]["allow"] == "GET, HEAD"
with client.connect("unix:sock") as s:  # a body is not waited for
    s.sendall(b"GET /leader HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n")
    assert client.read_all(s).startswith(b"HTTP/1.1 400"), "a body"
with client.connect("unix:sock") as s:  # several requests on one connection
    for _ in range(3):
        s.sendall(b"GET /leader HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert s.recv(65536).startswith(b"HTTP/1.1 200"), "kept alive"
P
}

# A store that has to be reached again needs descriptors, too.
@test "listen: clients do not take the descriptors that the store needs" {
    make_store_losable
    limited() { ulimit -n 64 && exec "$SIMBA" elect -q "${LOSABLE[@]}" --listen unix:sock "$M"; }
    begin limited >out 2>err
    elect=$PID
    await says unix:sock /leader '^200 '
    token=$(token_of unix:sock)
    begin python3 "$HTTP" --keep-opening unix:sock opened
    opener=$PID
    sleep 1
    for _ in {1..50}; do
        [ "$(ls "/proc/$elect/fd" | wc -l)" -le 52 ]
    done
    if [ "$KIND" != sqlite ]; then
        lose_store
        find_store
        sleep 6 # longer than a lease
    fi
    touch opened
    ends "$opener"
    await says unix:sock /leader '^200 '
    [ "$(token_of unix:sock)" = "$token" ]
}

@test "listen: CMD and hooks have the limit of descriptors that simba had" {
    limited() { ulimit -Sn 80 && exec "$SIMBA" "$@"; }
    begin limited lock -q --listen unix:sock "$M" sh -c 'ulimit -n >limit; touch ready; exec sleep 60'
    await test -e ready
    await says unix:sock /leader '^200 '
    [ "$(awk '/^Max open files/ { print $4 }' "/proc/$PID/limits")" -gt 80 ]
    [ "$(cat limit)" = 80 ]
    begin limited elect -q --listen unix:sock2 -a 'ulimit -n >limit1' -r 'ulimit -n >limit2; touch over' "${M}2" >out
    await test -s limit1
    kill -KILL "$(pgrep -P "$PID" -x simba-guard)" # then the keeper itself runs the hook
    await test -e over
    [ "$(cat limit1) $(cat limit2)" = "80 80" ]
}

# bats test_tags=sqlite
@test "listen: slow, silent, endless and senseless clients cost neither the lease nor memory" {
    begin "$SIMBA" elect "${SHORT[@]}" --listen :0 "$M" >out 2>err
    elect=$PID
    await has "listening on" err
    at=127.0.0.1:$(grep -oE '[0-9]+$' err)
    await says "$at" /leader '^200 '
    token=$(token_of "$at")
    before=$(rss "$elect")
    for kind in idle slow header old rubbish unread; do
        run timeout 60 python3 "$HTTP" --abuse "$kind" "$at" "$elect"
        expect 0 'memory [0-9]+$'
        echo "$kind: $output; $(rss "$elect") kB, $before kB before"
        is_sanitized "$SIMBA" || [ "$(grep -oE 'memory [0-9]+' <<<"$output" | cut -d' ' -f2)" -lt $((before + 16384)) ]
        says "$at" /leader '^200 '
        [ "$(token_of "$at")" = "$token" ]
        is_sanitized "$SIMBA" || [ "$(rss "$elect")" -lt $((before + 16384)) ]
    done
    [ "$(wc -l <out)" -eq 1 ] # acquired once, and nothing since
    threads=$(ls "/proc/$elect/task" | wc -l)
    [ "$threads" -lt 12 ]
}

# A page in a browser could ask by a name of its own, which it lets resolve to this machine.
@test "--listen: a name that is not ours is refused, but those of --host" {
    begin "$SIMBA" elect -v --listen 127.0.0.1:0 --host web.example.org,lb.lan "$M" >lines 2>said
    await has "listening on" said
    address=$(grep -oE 'http://[0-9.:]+' said | head -n 1)
    for path in leader healthz metrics; do
        for try in evil.example.org:403 web.example.org:200 LB.lan:200 localhost:200 127.0.0.1:200; do
            code=$(curl -sS --max-time 10 -o /dev/null -w '%{http_code}' -H "Host: ${try%:*}" "$address/$path")
            [ "$code" = "${try#*:}" ] || [ "$path ${try#*:} $code" = "leader 200 503" ] || { echo "$path $try $code"; false; }
        done
    done
}

# What one program takes for our name, another may take for its own.
@test "--listen: each Host counts, and all of it" {
    begin "$SIMBA" elect -v --listen 127.0.0.1:0 "$M" >lines 2>said
    await has "listening on" said
    address=$(grep -oE 'http://[0-9.:]+' said | head -n 1)
    status_of() { curl -sS --max-time 10 -o /dev/null -w '%{http_code}' "$@" "$address/healthz"; }
    is_healthy() { [ "$(status_of)" = 200 ]; }
    await is_healthy # the store has answered
    for host in localhost:1 '[::1]' '[::1]:80' 127.0.0.1:; do
        [ "$(status_of -H "Host: $host")" = 200 ] || { echo "$host"; false; }
    done
    for host in '[::1].evil.example.org' '[::1' '[::1]evil' localhost:80.evil.example.org evil.example.org:80 '[evil]'; do
        [ "$(status_of -H "Host: $host")" = 403 ] || { echo "$host"; false; }
    done
    for hosts in 'localhost evil.example.org' 'evil.example.org localhost'; do # curl sends one
        exec 5<>"/dev/tcp/127.0.0.1/${address##*:}"
        printf 'GET /healthz HTTP/1.1\r\nHost: %s\r\nHost: %s\r\nConnection: close\r\n\r\n' ${hosts% *} ${hosts#* } >&5
        timeout 20 head -n 1 <&5 | grep -q ' 403 ' || { echo "$hosts"; false; }
        exec 5>&-
    done
    [ "$(status_of -H 'Host: evil.example.org' -H 'X-Forwarded-Host: localhost')" = 403 ]
    [ "$(status_of -H 'Host: localhost' -H 'X-Forwarded-Host: evil.example.org')" = 200 ]
    [ "$(status_of --http1.0 -H 'Host:')" = 200 ] # no browser asks so
}
