# restart.sh, for the scripts here: how whoever kills a server starts it again.
#
# A number of a process that has ended is soon another's. So nothing is killed by its number alone: it must be
# our child, or have our folder in its command line or as its working folder.

# Writes $folder/start, which starts the server again and returns when it serves, $folder/signal, which sends it a
# signal, and $folder/pid, which holds the number of its process, then as now. NAME: of one server among several.
restartable() { # pid check command...  [NAME=... in front]
    local pid=$1 check=$2 name=${NAME:+.$NAME} log
    shift 2
    log=$(printf '%q' "$folder/log.again")
    echo "$pid" >"$folder/pid$name"
    cat >"$folder/signal$name" <<END
#!/usr/bin/env bash
read -r pid <$(printf '%q' "$folder/pid$name") || exit 1
if grep -qsF $(printf '%q' "$folder") "/proc/\$pid/cmdline" ||
    [[ "\$(readlink "/proc/\$pid/cwd")" = $(printf '%q' "$folder")* ]]; then
    here=\$(readlink "/proc/\$pid/cwd")
    kill "-\$1" "\$pid" 2>/dev/null
    # Its children work where it does. One may have been born meanwhile.
    for _ in 1 2; do
        [[ "\${2:-}" = all && "\$here" = $(printf '%q' "$folder")/* ]] || break
        for other in /proc/[0-9]*; do
            [ ! "\$other/cwd" -ef "\$here" ] || kill "-\$1" "\${other#/proc/}" 2>/dev/null || :
        done
    done
fi
END
    # A server that was just killed may hold its port or its files for a moment. When all of it ends meanwhile,
    # the script is gone, and so is the server.
    cat >"$folder/start$name" <<END
#!/usr/bin/env bash
for _ in \$(seq 100); do
    $(printf '%q ' "$@") >>$log 2>&1 </dev/null &
    while kill -0 \$! 2>/dev/null; do
        [ -e "\$0" ] || kill -9 \$!
        if $check >/dev/null 2>&1; then
            echo \$! >$(printf '%q' "$folder/pid$name")
            exit 0
        fi
        sleep 0.02
    done
    sleep 0.05
done
echo "the server does not start again:" >&2
tail -n 5 $log >&2
exit 1
END
    chmod 755 "$folder/start$name" "$folder/signal$name"
}

# Those that were started again, too, also if nobody could note the number any more: what works in our folder is ours.
end_restarted() {
    local script place
    for script in "$folder"/signal "$folder"/signal.*; do
        [ ! -e "$script" ] || "$script" KILL all || true
    done
    for place in $(find /proc/[0-9]*/cwd -maxdepth 0 -lname "$folder*" 2>/dev/null); do
        place=${place#/proc/}
        kill -9 "${place%/cwd}" 2>/dev/null || true
    done
}

is_child() { # pid
    grep -qs "^PPid:[[:space:]]*$$\$" "/proc/$1/status"
}
