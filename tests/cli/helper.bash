# helper.bash: what the tests of the command share. Each test has a folder of its own, with a store
# and a home in it; SIMBA is the command under test. Whatever a test leaves running is ended by pid.
SIMBA=${SIMBA:-$BATS_TEST_DIRNAME/../../build/simba}
SIMBA=$(realpath "$SIMBA")

setup() {
    DIR=$(mktemp -d)
    cd "$DIR"
    mkdir -m 700 home store
    export HOME=$DIR/home SIMBA_URL=sqlite:$DIR/store/locks.db DIR SIMBA
    unset XDG_CONFIG_HOME XDG_STATE_HOME STATE_DIRECTORY NOTIFY_SOCKET
    unset SIMBA_TTL SIMBA_TRANSITION SIMBA_ID SIMBA_INITIAL_DELAY
    STARTED=()
}

teardown() {
    local pid
    for pid in ${STARTED[@]+"${STARTED[@]}"} $(cat ./*.pid 2>/dev/null); do
        kill -CONT "$pid" 2>/dev/null || true
        kill -KILL "$pid" 2>/dev/null || true
    done
    cd /
    rm -rf "$DIR"
}

simba() { "$SIMBA" "$@"; }

# Runs a program in the background, without the descriptor that bats waits for.
begin() { # program...; its pid is in $PID
    "$@" 3>&- &
    PID=$!
    STARTED+=("$PID")
}

# Until the command is true; ten seconds are for ever.
await() { # command...
    local i
    for ((i = 0; i < 1000; i++)); do
        if "$@" >/dev/null 2>&1; then return 0; fi
        sleep 0.01
    done
    echo "in vain: $*" >&2
    return 1
}

# How a background process ends, as the shell has it: in $CODE.
ends() { # pid
    CODE=0
    wait "$1" || CODE=$?
}

child_of() { # pid: its first child
    local children
    read -r children <"/proc/$1/task/$1/children"
    echo "${children%% *}"
}

# Does it run? A process that has ended and waits to be reaped does not.
is_alive() { # pid
    local state
    state=$(sed 's/.*) //' "/proc/$1/stat" 2>/dev/null | cut -c1)
    [ -n "$state" ] && [ "$state" != Z ] && [ "$state" != X ]
}
is_dead() { ! is_alive "$1"; }

expect() { # status, output pattern
    [ "$status" -eq "$1" ] || { echo "status $status, not $1: $output"; return 1; }
    [ $# -lt 2 ] || grep -qE -- "$2" <<<"$output" || { echo "no '$2' in: $output"; return 1; }
}
