#!/bin/sh
# command.sh: simba lock in a minute, told as a story. Exits with 1 if anything is not as promised.
set -eu
simba=${1:-build/simba}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export SIMBA_URL="sqlite:$folder/locks.db"

tell() { printf '\n\033[1m%s\033[0m\n' "$*"; }
show() { printf '  $ simba %s\n' "$*"; }
broken() { echo "BROKEN PROMISE: $*"; exit 1; }

tell "The command: a lock around a command, no server needed."
show "lock report sh -c 'echo token \$SIMBA_FENCING_TOKEN'"
"$simba" lock report sh -c 'echo "  token $SIMBA_FENCING_TOKEN"'

tell "While one runs, -n does not wait."
"$simba" lock report sh -c "touch $folder/runs; until [ -e $folder/seen ]; do sleep 0.05; done" &
holder=$!
until [ -e "$folder/runs" ]; do sleep 0.05; done
show "lock -n report ./job; echo \$?"
code=0
"$simba" lock -q -n report true || code=$?
echo "  $code"
[ "$code" -eq 124 ] || broken "the lock was not held"
touch "$folder/seen"
wait "$holder"

tell "The wrapper is killed with -9. Its job, which ignores TERM, is gone before the next one begins."
"$simba" lock -k 500ms report sh -c "trap '' TERM; echo \$\$ >$folder/pid; while :; do sleep 0.1; done" &
holder=$!
until [ -s "$folder/pid" ]; do sleep 0.05; done
job=$(cat "$folder/pid")
kill -KILL "$holder"
"$simba" lock report sh -c "if kill -0 $job 2>/dev/null; then exit 9; fi; echo '  the next one runs, alone'" ||
    broken "the old job still runs"
