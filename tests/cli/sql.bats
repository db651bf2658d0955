#!/usr/bin/env bats
# sql.bats: init and doctor on SQL servers, each started for the test.
bats_require_minimum_version 1.5.0
load helper

# sql runs statements as the administrator, whose URL is in admin.
with() { # server [options] -- script
    with_server --separate-stderr 'if [ $server = mariadb ]; then
    admin="mysql://root@/simba?socket=$SIMBA_TEST_FOLDER/sock"
    sql() { mariadb --no-defaults --socket="$SIMBA_TEST_FOLDER/sock" -uroot -N simba "$@"; }
else
    admin="postgresql://postgres@/simba?host=$SIMBA_TEST_FOLDER/run&port=$SIMBA_TEST_PORT"
    sql() { psql -qAt -v ON_ERROR_STOP=1 -h "$SIMBA_TEST_FOLDER/run" -p "$SIMBA_TEST_PORT" -U postgres simba "$@"; }
fi' "$@"
}

# A table of JVM Simba 2.9, as it comes, with rows of somebody who holds it, of a free one, of one long over.
OLD="create table simba_mutex (mutex varchar(66) not null primary key, acquired_at bigint not null,
    ttl_at bigint not null, transition_at bigint not null, owner_id varchar(32) not null, version int not null);
    insert into simba_mutex values ('held', 1, 9000000000000, 9000000000000, '0:1@jvm', 7000),
    ('free', 0, 0, 0, '', 41), ('over', 1, 2, 3, '0:2@jvm', 2147483647);"

upgrade='
sql <<<"'$OLD'"
simba doctor "-u$admin" | grep "JVM Simba 2.9"
simba init "$admin"
simba init "$admin"
simba init --json "$admin"
test "$(sql <<<"select sum(version) - sum(fencing_token) from simba_mutex")" = 0
simba -u "$admin" status held || true
simba -u "$admin" lock -n held true || echo "held: $?"
simba -u "$admin" lock -n over sh -c "test \$SIMBA_FENCING_TOKEN -gt 2147483647"
simba -u "$admin" lock -n free sh -c "test \$SIMBA_FENCING_TOKEN -gt 41"
simba -u "$admin" lock -n FREE true
simba doctor "-u$admin" | grep "as simba init makes it"
'

@test "init: a table of JVM Simba 2.9 becomes one of ours, on MariaDB" {
    with mariadb -- "$upgrade"
    expect_all 0 "held: 124" "JVM Simba 2.9" '"ready": *true'
    [[ "$output" != *create=* ]]
    [[ "$stderr" == *"table simba_mutex: as simba init makes it"* ]]
}

@test "init: a table of JVM Simba 2.9 becomes one of ours, on PostgreSQL" {
    with postgres -- "$upgrade"
    expect_all 0 "held: 124" "JVM Simba 2.9" '"ready": *true'
}

@test "init --print: what it prints makes the table, and an old one new; it can be repeated" {
    for server in mariadb postgres; do
        with $server -- '
            simba init --print "$1" >made.sql
            sql <made.sql
            sql <made.sql
            simba doctor "-u$admin" | grep -c "as simba init makes it"
            sql <<<"drop table simba_mutex;'"$OLD"'"
            sql <made.sql
            simba doctor "-u$admin" | grep "as simba init makes it"'
        expect 0 "as simba init makes it"
    done
    run simba init --print sqlite:x
    expect 64 "mysql:"
}

@test "init: without the right to change a table it says what to do" {
    with mariadb --jvm3 -- 'simba init "$1"'
    [ "$status" -eq 125 ]
    [[ "$stderr" == *"cannot be upgraded"*"simba init --print"* ]]
    [[ "$stderr" != *geheim* ]]
}

@test "doctor: server, encryption, table, rights, clock, connections, durability, pushes" {
    with mariadb -- 'simba doctor -u "$1"'
    expect_all 0 "MariaDB 1" "not encrypted, on this" "as simba init" "GRANT SELECT, INSERT, UPDATE ON" \
        "time zone" "at most 400" "sql_mode: strict" "cannot push"
    with mariadb --tls -- 'simba doctor -u "$1"'
    expect 0 "encrypted: "
    with postgres --tls -- 'simba doctor -u "$1"'
    expect_all 0 "PostgreSQL 1" "encrypted: TLS" "as simba init" "GRANT SELECT, INSERT, UPDATE ON" \
        "time zone" "at most 400" "fsync is off" "LISTEN is used"
}

@test "doctor: a pooler before PostgreSQL" {
    command -v pgbouncer >/dev/null || skip "pgbouncer is not installed"
    with postgres --pool -- 'simba doctor -u "$1"'
    expect 0 "note .*pooler"
}

@test "doctor: a server that cannot be written to" {
    with mariadb -- 'sql <<<"set global read_only=1"; simba doctor -u "$1"'
    [ "$status" -eq 125 ]
    [[ "$output" == *"read-only"* ]]
}

# For longer than a statement waits for a lock, and a store may take to answer.
@test "lock: a row that is free and that somebody's transaction has is waited for, and -n and -w say so" {
    local server
    for server in mariadb postgres; do
        with $server -- '
            simba -u "$1" lock x true
            mkfifo hold
            { echo "BEGIN; UPDATE simba_mutex SET owner_id=owner_id WHERE mutex='"'x'"';"
                echo "SELECT '"'locked'"';"; read -r _ <hold; echo "ROLLBACK;"; } | sql -n >has.out &
            until grep -q locked has.out; do sleep 0.1; done
            simba -u "$1" lock -n x echo never 2>&1 || echo "at once: $?"
            simba -u "$1" lock -w 1s x echo never 2>&1 || echo "in time: $?"
            simba -u "$1" lock x echo ran 2>waits &
            until grep "the row of .x. is locked by somebody" waits; do sleep 0.1; done
            echo >hold
            wait
            rm hold'
        expect_all 0 "^ran$" "the row of .x. is locked by somebody's transaction" "^at once: 125$" "^in time: 125$"
        [[ "$output" != *never* ]]
    done
}
