#!/usr/bin/env bats
# password.bats: ?password_file=FILE means the same on every store that has passwords. Servers are started for the
# test. There the user simba has the password geheim; that of the user long is as long as a file may be.
bats_require_minimum_version 1.5.0
load helper

# One line for each try: what it is about, what simba said, its status. url_of is the server's.
tries='
long=$(head -c 4096 /dev/zero | tr "\0" x)
try() { # what, user, bytes of the file
    local code=0
    printf "$3" >file
    simba -u "$(url_of "$2")password_file=${FILE:-$PWD/file}" lock -w 20s m true >said 2>&1 || code=$?
    echo "$1: $(tr "\n" " " <said)= $code"
}
try_all() {
    try plain simba geheim
    try newline simba "geheim\n"
    try "carriage return" simba "geheim\r\n"
    try "second line" simba "geheim\nfalsch\n"
    try wrong simba falsch
    FILE=/nowhere/file try missing simba ""
    try empty simba ""
    try "empty line" simba "\n"
    try longest long "$long"
    try "other end" long "${long%x}y"
    try longer long "${long}x"
}'

with() { # server preamble
    with_server "$2" "$1" -- "$tries"$'\ntry_all'
    echo "$output"
    expect_all 0 '^plain: = 0$' '^newline: = 0$' '^carriage return: = 0$' '^second line: = 0$' '^wrong: .+= 125$' \
        '^missing: .*option password_file: cannot read .*: No such file or directory.*= 125$' \
        '^empty: .*option password_file: .* is empty.*= 125$' \
        '^empty line: .*option password_file: .* is empty.*= 125$' \
        '^longest: = 0$' '^other end: .+= 125$' \
        '^longer: .*option password_file: .* is longer than 4096 bytes.*= 125$'
    ! grep -E 'falsch|xxxx' <<<"$output" # no message quotes it
}

@test "password_file: redis" {
    with redis 'port=${1#*:*:} port=${port%%/*}
        url_of() { echo "redis://$1@127.0.0.1:$port/0?restart_guard=off&"; }
        give() { redis-cli -p "$port" ACL SETUSER "$1" on ">$2" "~*" "&*" +@all >/dev/null; }
        give simba geheim
        give long "$(head -c 4096 /dev/zero | tr "\0" x)"'
    expect_all 0 '^wrong: .*does not accept user and password' '^other end: .*does not accept user and password'
}

@test "password_file: mariadb" {
    with mariadb 'url_of() { echo "mysql://$1@127.0.0.1:$SIMBA_TEST_PORT/simba?"; }
        mariadb --no-defaults --socket="$SIMBA_TEST_FOLDER/sock" -uroot <<<"
            CREATE USER \`long\` IDENTIFIED BY \"$(head -c 4096 /dev/zero | tr "\0" x)\";
            GRANT SELECT, INSERT, UPDATE, CREATE ON simba.* TO \`long\`"'
    expect_all 0 "^wrong: .*Access denied for user 'simba'" "^other end: .*Access denied for user 'long'"
}

@test "password_file: postgres" {
    with postgres 'url_of() { echo "postgresql://$1@127.0.0.1:$SIMBA_TEST_PORT/simba?"; }
        psql -q -h "$SIMBA_TEST_FOLDER/run" -p "$SIMBA_TEST_PORT" -U postgres <<<"
            CREATE ROLE long LOGIN PASSWORD '"'"'$(head -c 4096 /dev/zero | tr "\0" x)'"'"' IN ROLE simba"'
    expect_all 0 '^wrong: .*password authentication failed for user "simba"' \
        '^other end: .*password authentication failed for user "long"'
}

# A name and a password make a user there, and what one has made another may not touch.
@test "password_file: zookeeper" {
    with zookeeper 'port=${1##*:} port=${port%%/*}
        url_of() { echo "zookeeper://$1@127.0.0.1:$port/$1?"; }'
    expect_all 0 "^wrong: .*access list does not let us in" "^other end: .*access list does not let us in"
}
