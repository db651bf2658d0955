# helper.bash: what the tests of the command share. SIMBA is the command under test, SIMBA_URL the store:
# that of SIMBA_TEST_URL if it is set, else a file in the test's own folder. Many tests use one store at the
# same time, so the names of mutexes begin with PREFIX, which is the test's own; M is one of them.
# Whatever a test leaves running in its folder is ended by pid.
#
# What a test is good for stands above it, or in file_tags for all of a file:
#     store       about lock and store: run on every store
#     sqlite      looks into the file, or at what only a file can have
#     storeless   asks no store
# All run on sqlite:, those tagged `store` and neither of the others elsewhere. See run.
SIMBA=${SIMBA:-$BATS_TEST_DIRNAME/../../build/simba}
SIMBA=$(realpath "$SIMBA")
export LC_ALL=C.UTF-8 # so that \u202e in a test is that letter; a bare Debian has no locale

setup() {
    DIR=$(mktemp -d)
    cd "$DIR"
    mkdir -m 700 home store
    PREFIX=${DIR##*.}- M=${PREFIX}m
    SIMBA_URL=${SIMBA_TEST_URL:-sqlite:$DIR/store/locks.db}
    export HOME=$DIR/home SIMBA_URL DIR SIMBA PREFIX M
    unset XDG_CONFIG_HOME XDG_STATE_HOME STATE_DIRECTORY NOTIFY_SOCKET
    unset SIMBA_TTL SIMBA_TRANSITION SIMBA_ID SIMBA_INITIAL_DELAY SIMBA_LISTEN SIMBA_LOG JOURNAL_STREAM
    STARTED=()
    know_store
}

# What differs from store to store: KIND is the scheme, STORE how it is shown, as a pattern.
know_store() {
    KIND=${SIMBA_URL%%:*}
    STORE=$(sed -E -e 's|(//[^:@/]*):[^@/]*@|\1:***@|' -e 's|[^A-Za-z0-9:/]|.|g' <<<"$SIMBA_URL")
    # A lease to be waited for, and how many seconds are more. It is long enough not to be lost on a machine
    # that stands still for two seconds; and who has to end before another may own it has a second for that.
    SHORT_LEASE="--ttl 1s --transition 4s -k 500ms" OUTLIVES_SHORT=7
    LOSABLE=(--ttl 1s --transition 5s -k 2s) # who is told to end has time for it, on a busy machine, too
    LONG_LEASE=(--ttl 60s --transition 30s) # an owner hears of its eviction long before it renews …
    KNOWS_HELD='[0-9.]+s' # since when it is held …
    KNOWS_WAITERS=-       # … and how many wait; - where it does not know
    case "$KIND" in
    redis* | zookeeper) KNOWS_HELD=- KNOWS_WAITERS=0 ;;
    esac
    case "$KIND" in redis*) LONG_LEASE=(--ttl 6s --transition 30s) ;; esac # … except there
    # Down to half of it is what a renewal gives there, and less than that to kill.
    [ "$KIND" != zookeeper ] || SHORT_LEASE="--ttl 2s --transition 4s -k 500ms" OUTLIVES_SHORT=8
    read -ra SHORT <<<"$SHORT_LEASE"
    export SHORT_LEASE KIND STORE KNOWS_HELD KNOWS_WAITERS
}

# A proxy to the store that can be killed and started again, for all who use SIMBA_URL from now on.
make_store_losable() {
    [ "$KIND" != sqlite ] || return 0
    PROXIED_ADDRESS=$(grep -oE '(@|//)[^@/?]+:[0-9]+' <<<"$SIMBA_URL" | sed -E 's/^(@|\/\/)//') || true
    [ -n "$PROXIED_ADDRESS" ] && [[ "$KIND" != *+sentinel ]] || skip "there is no proxy for this store"
    find_store
    SIMBA_URL=${SIMBA_URL/"$PROXIED_ADDRESS"/"${PROXIED_ADDRESS%%:*}:$(cat proxy.port)"}
    know_store
}

lose_store() {
    if [ "$KIND" = sqlite ]; then # by names alone: who looks in between finds no folder, never an empty one
        mkdir -m 700 no-store
        printf 'this is no database, and it is long enough to be looked at by SQLite' >no-store/locks.db
        mv store lost-store
        mv no-store store
        rm -rf lost-store
    else
        kill -KILL "$PROXY"
        wait "$PROXY" || true
    fi
}

find_store() {
    if [ "$KIND" = sqlite ]; then
        rm store/locks.db
    else
        local server=${PROXIED_ADDRESS%%,*} # one of several will do
        begin python3 "$BATS_TEST_DIRNAME/proxy.py" "${server%:*}" "${server##*:}" proxy.port "$M"
        PROXY=$PID
        await test -s proxy.port
    fi
}

# Is that process one of this test's? All of them work in its folder; a number may be somebody else's by now.
is_ours() { # pid
    case "$(readlink "/proc/$1/cwd" 2>/dev/null)" in "$DIR" | "$DIR"/*) return 0 ;; esac
    return 1
}

left_running() {
    find /proc/[0-9]*/cwd -maxdepth 0 \( -lname "$DIR" -o -lname "$DIR/*" \) 2>/dev/null | cut -d / -f 3
}

# A wrapper that is killed leaves a guard, and that has yet to end CMD: until nobody is left.
teardown() {
    local end=$((SECONDS + 20)) left
    cd /
    while left=$(left_running) && [ -n "$left" ] && [ $SECONDS -lt $end ]; do
        # shellcheck disable=SC2086 # numbers
        kill -KILL $left 2>/dev/null || true
    done
    until rm -rf "$DIR" || [ $SECONDS -ge $end ]; do :; done # who was just being forked may still write there
}

# ---- what may not be had here -----------------------------------------------------------------
# Each of these skips the test, and says why, where a chroot, a container or an ordinary user has it not. Call
# them in the test itself: in what `run` runs they skip nothing.

needs_terminal() {
    python3 -c 'import os; os.openpty()' 2>/dev/null || skip "no terminal can be opened here: /dev/pts is missing"
}

needs_namespaces() { # options of unshare...
    unshare "$@" true 2>/dev/null || skip "'unshare $*' is not allowed here"
}

# The Python of Debian's package may not be the first one.
needs_browser() {
    for PYTHON in python3 /usr/bin/python3; do
        ! "$PYTHON" -c 'import selenium' 2>/dev/null || break
    done
    "$PYTHON" -c 'import selenium' 2>/dev/null && command -v chromium chromedriver >/dev/null ||
        skip "no python3-selenium, chromium or chromedriver: scripts/setup all-tests installs them"
}

# Runs something as another user, who is in no group but, perhaps, this one.
as_user() { # uid [-g group] command...
    local uid=$1 group=(--clear-groups)
    shift
    [ "$1" != -g ] || { group=(--groups "$2") && shift 2; }
    setpriv --reuid="$uid" --regid="$uid" "${group[@]}" "$@"
}

# Another user may not look into a folder such as /root: from here on SIMBA is a copy, with library and
# modules, in a place that everybody can reach.
needs_other_users() {
    local build
    build=$(dirname "$SIMBA")
    as_user 65534 true 2>/dev/null || skip "only root can run something as another user"
    mkdir public public/real
    cp -d "$SIMBA" "$build"/libsimba.so* public/real
    cp "$build"/simba-* public/real 2>/dev/null || : # the programs that it starts
    [ ! -d "$build/modules" ] || cp -r "$build/modules" public
    printf '#!/bin/sh\nexport LD_LIBRARY_PATH=%s SIMBA_MODULE_PATH=%s\nexec %s "$@"\n' \
        "$DIR/public/real" "$DIR/public/modules" "$DIR/public/real/simba" >public/simba
    chmod -R a+rX public
    chmod 755 "$DIR" public/simba
    SIMBA=$DIR/public/simba
    as_user 65534 test -x "$SIMBA" || skip "other users cannot reach $(dirname "$DIR") (TMPDIR)"
}

# A program that was built with a sanitizer keeps what it has freed: its memory says nothing.
is_sanitized() { # program
    grep -qaE '__(asan|tsan)_init' "$1"
}

# ---- running the command ----------------------------------------------------------------------

simba() { "$SIMBA" "$@"; }

# Runs a program in the background, without the descriptor that bats waits for.
begin() { # program...; its pid is in $PID
    "$@" 3>&- &
    PID=$!
    STARTED+=("$PID")
}

# A pause without a process of its own: nothing ever comes through that pipe.
pause() { # seconds
    [ -p "$DIR/.pause" ] || mkfifo "$DIR/.pause"
    read -rt "$1" <>"$DIR/.pause" || true
}

# Waits until the command is true, for twenty seconds at most.
await() { # command...
    local end=$((SECONDS + 20))
    until "$@" >/dev/null 2>&1; do
        if [ $SECONDS -ge $end ]; then
            echo "in vain: $*" >&2
            return 1
        fi
        pause 0.02
    done
}

has() { grep -qE -- "$1" "$2"; } # pattern file

# Another's hold on a mutex: until the test ends, or it is told to.
hold() { # name [id]
    begin "$SIMBA" lock --id "${2:-holder-of-$1}" "$1" sh -c "touch 'held-$1'; exec sleep 60"
    await test -e "held-$1"
}

# The same, but who is told to end takes two seconds for it: observers see an eviction, and not only the release after it.
hold_slowly() { # name id
    begin "$SIMBA" lock --id "$2" "$1" sh -c "touch 'held-$1'; trap 'sleep 2; exit' TERM; while :; do sleep 0.1; done"
    await test -e "held-$1"
}

# How a background process ends, as the shell has it: in $CODE.
ends() { # pid
    CODE=0
    wait "$1" || CODE=$?
}

child_of() { # pid: its first child; fails if it has none
    local children
    read -r children <"/proc/$1/task/$1/children" || [ -n "${children:-}" ] || return 1
    echo "${children%% *}"
}

# Does it run? A process that has ended and waits to be reaped does not.
is_alive() { # pid
    local state
    state=$(sed 's/.*) //' "/proc/$1/stat" 2>/dev/null | cut -c1)
    [ -n "$state" ] && [ "$state" != Z ] && [ "$state" != X ] && is_ours "$1"
}
is_dead() { ! is_alive "$1"; }

expect() { # status, output pattern
    [ "$status" -eq "$1" ] || { echo "status $status, not $1: $output"; return 1; }
    [ $# -lt 2 ] || grep -qE -- "$2" <<<"$output" || { echo "no '$2' in: $output"; return 1; }
}

# The status, and all of the patterns.
expect_all() { # status, pattern...
    local status_=$1 pattern
    shift
    for pattern; do expect "$status_" "$pattern" || return 1; done
}

# simba in such a script: a server that has just begun may need longer than the usual two seconds to answer.
patient_simba='simba() {
    local word words=()
    for word; do
        case "$word" in *://*\?*) word+="&command_timeout=8s" ;; *://*) word+="?command_timeout=8s" ;; esac
        words+=("$word")
    done
    "$SIMBA" "${words[@]}"
}'

# A script with a server of its own: $1 is its URL, $server its kind. What the preamble does comes first.
with_server() { # [option of run] preamble server [options] -- script
    local how=() options=() preamble server
    while [[ "$1" == --* ]]; do how+=("$1") && shift; done
    preamble=$1 server=$2
    shift 2
    while [ "$1" != -- ]; do options+=("$1") && shift; done
    printf '%s\n' 'set -eu' "$patient_simba" "server=$server" "$preamble" "$2" >script
    SIMBA_MODULE_PATH=$(dirname "$SIMBA")/modules run ${how[@]+"${how[@]}"} \
        "$BATS_TEST_DIRNAME/../servers/$server" ${options[@]+"${options[@]}"} bash script @URL@
    [ "$status" -ne 77 ] || skip "$server is not installed"
}
