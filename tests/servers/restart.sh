# restart.sh, for the scripts here: how whoever kills a server starts it again.

# Writes $folder/start, which starts the server again and returns when it serves, and $folder/pid,
# which holds the number of its process, then as now. NAME: of one server among several.
restartable() { # pid check command...  [NAME=... in front]
    local pid=$1 check=$2 file
    shift 2
    file=$folder/start${NAME:+.$NAME}
    cat >"$file" <<END
#!/usr/bin/env bash
# A server that was just killed may hold its port or its files for a moment.
for _ in \$(seq 100); do
    $(printf '%q ' "$@") >>$(printf '%q' "$folder/log.again") 2>&1 </dev/null &
    while kill -0 \$! 2>/dev/null; do
        if $check >/dev/null 2>&1; then
            echo \$! >$(printf '%q' "$folder/pid${NAME:+.$NAME}")
            exit 0
        fi
        sleep 0.02
    done
    sleep 0.05
done
echo "the server does not start again:" >&2
tail -n 5 $(printf '%q' "$folder/log.again") >&2
exit 1
END
    chmod 755 "$file"
    echo "$pid" >"$folder/pid${NAME:+.$NAME}"
}

# Ends those that were started again.
end_restarted() {
    local file pid
    for file in "$folder"/pid "$folder"/pid.*; do
        [ -e "$file" ] || continue
        read -r pid <"$file" || continue
        kill -CONT "$pid" 2>/dev/null || true
        kill -9 "$pid" 2>/dev/null || true
    done
}
