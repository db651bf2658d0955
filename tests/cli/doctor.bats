#!/usr/bin/env bats
# doctor.bats: what doctor says of stores that are well, young, busy or not there. Servers are started for the
# test. What the SQL stores say of themselves is in sql.bats.
bats_require_minimum_version 1.5.0
load helper

with() { # server [options] -- script; port is the server's
    with_server 'port=${1#*:*:}; port=${port##*:} port=${port%%/*}' "$@"
}

expect_none() { # pattern
    ! grep -E -- "$1" <<<"$output"
}

MUTEX=simba.doctor.$(id -u)

@test "doctor: a Redis that has just started grants nothing yet, and nothing is wrong with it" {
    with redis --guard -- 'simba doctor "$1"'
    expect_all 0 '^note  rights      not tried: nobody owns .*, but the store grants nothing yet' \
        '^note  store       .*has just started.* not granted for another [0-9.]+ s; ask again then' \
        '^ok    exclusion ' '^note  fencing     not tried: no mutex could be taken' \
        '^note  liveness    not promised: no mutex could be taken'
    expect_none '^BAD'
    with redis --guard -- 'simba doctor --ttl 1s --transition 3s "$1"' # it waits for so short a time
    [ "$status" -le 1 ] # an answer that takes longer than an eighth of the ttl is BAD
    expect_all "$status" '^ok    rights ' '^ok    fencing     tokens rise' '^ok    liveness '
    expect_none 'not granted for another'
}

@test "doctor: a mutex that cannot be taken for a real reason is BAD" {
    with redis -- 'redis-cli -p "$port" ACL SETUSER poor on ">pw" "~*" "&*" "+@all" -set >&2
        simba doctor "redis://poor:pw@127.0.0.1:$port?restart_guard=off"'
    expect_all 1 '^BAD +rights .*permission' '^BAD +store +the user lacks rights: \+set$' \
        '^BAD   fencing     not tried: no mutex could be taken' \
        '^BAD   liveness    not promised: no mutex could be taken'
}

@test "doctor: names the right of Redis that is missing" {
    with redis -- 'redis-cli -p "$port" ACL SETUSER poor on ">pw" "~other:*" "&*" "+@all" >&2
        simba doctor "redis://poor:pw@127.0.0.1:$port?restart_guard=off"'
    expect 125 '^BAD +store +the user lacks rights: ~simba:\*$'
}

@test "doctor: a replica of Redis is no lack of rights" {
    with redis -- 'redis-cli -p "$port" replicaof 127.0.0.1 1 >&2; simba doctor "$1"'
    expect_all 1 '^BAD +use +.*: this server is a read-only replica of 127\.0\.0\.1:1: to contend, give the address of the master' \
        '^BAD +store +Redis .* replica of 127\.0\.0\.1:1' '^ok +store +the user has all rights' \
        '^BAD   exclusion   not promised'
    expect_none 'lacks|^BAD +rights|has just started'
    with redis -- 'redis-cli -p "$port" ACL SETUSER poor on ">pw" "~*" "&*" "+@all" -set >&2
        redis-cli -p "$port" replicaof 127.0.0.1 1 >&2
        simba doctor "redis://poor:pw@127.0.0.1:$port?restart_guard=off"'
    expect_all 1 '^BAD +store +the user lacks rights: \+set$' 'replica of 127'
}

@test "doctor: leaves one name behind, however often it runs" {
    for _ in 1 2 3; do simba doctor >/dev/null; done
    [ "$(python3 -c 'import sqlite3
for row in sqlite3.connect("store/locks.db").execute("select name from mutex where length(name) > 0"): print(*row)')" = "$MUTEX" ]
    with postgres -- 'simba doctor "$1" >&2; simba doctor "$1" >&2
        psql "$1" -qAtc "select mutex from simba_mutex"'
    [ "$(grep -c '^simba.doctor' <<<"$output")" -eq 1 ]
    with redis -- 'simba doctor "$1" >&2; simba doctor "$1" >&2
        redis-cli -p "$port" --scan --pattern "*doctor*"'
    expect 0 "^simba:.$MUTEX.:fence$"
    [ "$(grep -c '^simba:.*doctor' <<<"$output")" -eq 1 ]
}

@test "doctor: several at once wait for each other" {
    local pids=()
    for n in 1 2; do # each waits five seconds at most
        begin "$SIMBA" doctor >"out.$n"
        pids+=("$PID")
    done
    for n in 1 2; do
        ends "${pids[n - 1]}"
        output=$(cat "out.$n") status=$CODE
        expect 0 '^ok +fencing +tokens rise'
        expect_none '^BAD'
    done
}

@test "doctor: another that does not end is no fault of the store" {
    hold "$MUTEX" other
    run simba doctor
    expect_all 0 "^note  rights      not tried: $MUTEX is held by other, perhaps another doctor" \
        '^note  fencing     not tried: no mutex could be taken'
    expect_none '^BAD'
}

@test "doctor: its figures are those of docs/guarantees.md" {
    # figure ROW UP: of the table, in tenths of a second; UP 1: not less, 0: not more
    figure() {
        sed -nE "s/^\| $1 \|.*\| [^0-9|]*([0-9.]+) s \|$/\1/p" "$BATS_TEST_DIRNAME/../../docs/guarantees.md" |
            awk -v up="$2" '{ t = int($1 * 10 + 1e-6); if (up && t < $1 * 10 - 1e-6) t++; printf "%.1f", t / 10 }'
    }
    takeover=$(figure 'takeover after a crash' 1)
    outage=$(figure 'outage that costs no tenure' 0)
    unnoticed=$(figure 'outage that CMD of simba lock, elect and schedule does not notice' 0)
    [ -n "$takeover" ] && [ -n "$outage" ] && [ -n "$unnoticed" ]
    run simba doctor
    expect_all 0 "^ok +liveness +after a crash another owns within $takeover s of" \
        "^ok +blips +a store that is away for less than $outage s costs.*elect and schedule it is $unnoticed s,.* 3.0 s \\(--kill-after\\)"
    run simba doctor --ttl 600ms --transition 0
    [ "$status" -le 1 ] # an answer after 75 ms is BAD
    expect "$status" '^ok +blips .* less than [1-9][0-9]* ms costs'
}

@test "doctor: a server without the table was reached all the same" {
    local do='; make it: simba init URL, or have its statements printed: simba init --print URL'
    for server in mariadb postgres; do
        with $server -- 'simba doctor "$1?create=off"'
        expect_all 125 "^BAD +reach .*no table simba_mutex.*$do$" \
            "^note +store +connected to the server, but its table is no use: there is no table"
        expect_none 'no connection|geheim'
    done
}

@test "doctor: why there is no connection, and no password" {
    for server in mariadb postgres; do
        with $server -- 'simba doctor "${1/geheim/falsch}"'
        expect_all 125 '^BAD +reach ' '^note +store +not connected to the server: .*[Pp]assword'
        expect_none 'falsch|at present'
    done
}

@test "doctor: exclusion is not promised without what is noted" {
    with postgres -- 'simba doctor "$1"'
    expect_all 0 '^note +store .*fsync is off' \
        '^note  exclusion   at most one owner at a time, but for what is noted above$'
    with redis -- 'simba doctor "$1"'
    expect_all 0 '^note +store .*two may own' '^note  exclusion '
    SIMBA_TEST_DURABLE=1 with postgres -- 'simba doctor "$1"'
    expect 0 '^ok    exclusion   at most one owner at a time: '
}

# bats test_tags=storeless
@test "doctor: decides by kind, level and figures of what a store says, whatever the words are" {
    modules=$(dirname "$SIMBA")/tests
    [ -e "$modules/simba-finds.so" ] || skip "the module of the tests is not built"
    mkdir -m 700 locks
    says() { SIMBA_MODULE_PATH=$modules run simba doctor "finds:$DIR/locks?$1&text=$text"; }
    for text in 'two%20may%20own' 'table%20of%20contents' 'nothing%20at%20all'; do
        says 'kind=0&level=2'
        expect_all 0 "^ok    store       ${text//%20/ }$" '^ok    exclusion   at most one owner at a time: '
        says 'kind=0&level=1'
        expect_all 0 '^note  store ' '^ok    exclusion '
        says 'kind=1&level=1'
        expect_all 0 '^note  store ' '^note  exclusion   at most one owner at a time, but for what is noted above$'
        says 'kind=1&level=0'
        expect_all 1 '^BAD   store ' '^BAD   exclusion   not promised'
        says 'kind=3&level=1&lease_ms=40000&outage_ms=4000'
        expect_all 0 '^ok    exclusion .* its lease of 16000 ms ends' '^ok    liveness .* within 41\.4 s of' \
            '^ok    blips .* less than 4\.0 s costs .* it is 1\.0 s,'
        says 'kind=3&level=2&lease_ms=16000&outage_ms=16000' # no more than the lease's own
        expect_all 0 '^ok    liveness .* within 17\.2 s of' '^ok    blips .* less than 7\.5 s costs '
    done
}

# bats test_tags=storeless
@test "doctor: answers that leave a renewal little time are noted" {
    modules=$(dirname "$SIMBA")/tests
    [ -e "$modules/simba-finds.so" ] || skip "the module of the tests is not built"
    mkdir -m 700 locks
    answers() { SIMBA_MODULE_PATH=$modules run simba doctor --ttl 6400ms "finds:$DIR/locks?level=2&text=well&$1"; }
    answers 'delay_ms=1' # of 800 ms
    expect_all 0 '^ok    round trip  .* a renewal has 800 ms for each attempt$'
    answers 'delay_ms=210'
    expect_all 0 '^note  round trip  2.* 800 ms for each attempt, .* [2-9][0-9] % of it.* longer ttl' '^ok    exclusion '
    answers 'delay_ms=1&peak_ms=420'
    expect_all 0 '^note  round trip  [0-9]{1,2}\..* 800 ms for each attempt, .* [5-9][0-9] % of it.* longer ttl'
    answers 'delay_ms=1&peak_ms=900'
    expect_all 1 '^BAD   round trip  .* 800 ms for each attempt, .* [1-9][0-9]{2,} % of it'
}

# bats test_tags=storeless
@test "doctor: memory: is for one process" {
    run simba doctor memory:x
    expect_all 1 '^BAD   store       memory: serves this process only; use sqlite:PATH for the processes of one machine$' \
        '^BAD   exclusion   not promised'
}
