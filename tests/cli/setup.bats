#!/usr/bin/env bats
# setup.bats: init, doctor, tck, completion: what is done before, and beside, the work.
bats_require_minimum_version 1.8.0
# bats file_tags=storeless
load helper

mode() { stat -c %a "$1"; }

# ---- init -------------------------------------------------------------------------------------

@test "init: makes the folder for its owner only, and the files; again: nothing is wrong" {
    for _ in once again; do
        run --separate-stderr simba -u "sqlite:$DIR/a/b/locks.db" init
        expect 0 "^sqlite:$DIR/a/b/locks.db$"
    done
    [ "$(mode a/b)" = 700 ]
    [ "$(mode a/b/locks.db)" = 600 ]
    [ "$(mode a/b/locks.db-live)" = 600 ]
    run simba -u "sqlite:$DIR/a/b/locks.db" lock -n m true
    expect 0
}

@test "init: the default store" {
    [ "$(id -u)" -ne 0 ] || skip "root's is that of the machine"
    env -u SIMBA_URL "$SIMBA" init
    [ -e home/.local/state/simba/simba.db ]
}

@test "init --shared: for a group, whatever the umask; also what was there before" {
    group=$(id -gn)
    [ "$(id -u)" -ne 0 ] || group=games
    umask 077
    simba -u "sqlite:$DIR/old/locks.db" lock m true 2>/dev/null || true
    simba -u "sqlite:$DIR/old/locks.db" init >/dev/null
    for folder in old new; do
        run --separate-stderr simba -u "sqlite:$DIR/$folder/locks.db" init --shared --group "$group"
        expect 0 "^sqlite:"
        [ "$(mode $folder)" = 2770 ]
        for file in "$folder"/*; do
            [ "$(mode "$file")" = 660 ]
            [ "$(stat -c %G "$file")" = "$group" ]
        done
    done
    begin "$SIMBA" -u "sqlite:$DIR/new/locks.db" lock m sh -c 'touch held; exec sleep 60'
    await test -e held
    for file in new/*; do [ "$(mode "$file")" = 660 ]; done # with -wal and -shm
}

@test "init --shared: another member of the group can use it, others cannot" {
    needs_other_users
    export HOME=/nonexistent SIMBA_URL=sqlite:$DIR/s/locks.db
    games=$(getent group games | cut -d: -f3)
    simba init --shared --group games
    run as_user 2001 -g "$games" "$SIMBA" lock m true
    expect 0
    begin as_user 2001 -g "$games" "$SIMBA" lock m sleep 60
    await simba status m
    run as_user 2002 -g "$games" "$SIMBA" lock -n m true
    expect 124
    run as_user 2003 "$SIMBA" lock -n m true
    expect 125
    kill -TERM "$PID" # another user's: where root has no right to trace, teardown cannot tell that it is ours
    ends "$PID"
}

@test "init --shared: what somebody has put there is not touched" {
    mkdir -m 700 s
    touch precious
    chmod 600 precious
    ln -s "$DIR/precious" s/locks.db-live
    group=$(id -gn)
    run simba -u "sqlite:$DIR/s/locks.db" init --shared --group "$group"
    expect 125 "not a plain file"
    [ "$(mode precious)" = 600 ]
    rm s/locks.db-live
    ln precious s/locks.db-live
    [ "$group" = root ] && group=games
    run simba -u "sqlite:$DIR/s/locks.db" init --shared --group "$group"
    expect 125
    [ "$(mode precious)" = 600 ]
}

@test "init: others need nothing; bad input" {
    run simba -u memory:x init
    expect 0 "nothing has to be made"
    run simba init --shared
    expect 64 "--group G|--shared --group"
    run simba init --shared --group no-such-group
    expect 64 "unknown group .no-such-group"
    run simba -u memory:x init --shared --group "$(id -gn)"
    expect 64 "for sqlite: stores"
    run simba -u sqlite:/proc/nosuch/x.db init
    expect 125 "cannot make the folder"
    run simba init something
    expect 64
}

# ---- doctor -----------------------------------------------------------------------------------

@test "doctor: a healthy store" {
    run simba doctor "$SIMBA_URL"
    expect 0 '^ok +reach +sqlite:'
    grep -q '^ok    exclusion ' <<<"$output"
    grep -q '^ok    fencing     tokens rise' <<<"$output"
    grep -q 'its locks hold' <<<"$output"
    ! grep -q '^BAD' <<<"$output"
    simba doctor --json | python3 -c '
import json, sys
lines = [json.loads(line) for line in sys.stdin]
topics = {l["topic"] for l in lines}
assert {"lease", "reach", "round trip", "rights", "hand-over", "store", "exclusion"} <= topics, topics
assert all(l["result"] in ("ok", "note") for l in lines), lines'
    run simba list
    expect 0 "nobody owns a mutex" # it leaves nothing behind
}

@test "doctor: what is wrong is BAD, what has to be known a note" {
    simba init
    chmod 666 store/locks.db
    run simba doctor
    expect 1 '^BAD +store .*locks.db, mode 0666: everybody can change it'
    grep -q '^BAD   exclusion   not promised' <<<"$output"
    chmod 600 store/locks.db
    chmod 770 store
    run simba doctor
    expect 0 '^note +store .*chmod g\+s'
    run simba --ttl 10s --transition 0 --id me doctor
    expect 0 '^note +lease +transition is 0'
    grep -q '^note  id ' <<<"$output"
}

@test "doctor: no store, bad input" {
    run simba -u sqlite:/nosuch/x.db doctor
    expect 125 "/nosuch"
    printf 'this is no database, and it is long enough to be looked at by SQLite' >store/bad.db
    run simba -u "sqlite:$DIR/store/bad.db" doctor
    expect 125 '^BAD +reach'
    run simba doctor me
    expect 64 "is not a URL"
    run simba doctor "$SIMBA_URL" sqlite:other.db
    expect 64 "two URLs"
}

# ---- tck --------------------------------------------------------------------------------------

@test "tck: finds the suite, hands on what it says" {
    run simba tck --list
    expect 0 '^start$'
    run simba tck --only tokens_rise "sqlite:$DIR/store/tck.db"
    expect 0 '^1 passed, 0 failed'
    run simba tck --only nosuchtest memory:x
    expect 1 "no test matches"
    run simba tck
    expect 64 "missing URL"
    run simba tck memory:a memory:b
    expect 64 "two URLs"
}

@test "tck: a store of one's own, as a module" {
    modules=$(dirname "$SIMBA")/examples
    [ -e "$modules/simba-dir.so" ] || skip "the examples are not built"
    mkdir -m 700 locks
    SIMBA_MODULE_PATH=$modules run simba tck --only 'locker_*' "dir:$DIR/locks"
    expect 0 ' passed, 0 failed'
    # Hints are optional: what needs them is skipped, and why is said.
    SIMBA_MODULE_PATH=$modules run simba tck --only handover_order "dir:$DIR/locks?hints=off"
    expect 0 'handover_order: the store does not push'
    expect 0 '0 passed, 0 failed, 1 skipped'
    SIMBA_MODULE_PATH=$modules run simba -u "dir:$DIR/locks" doctor
    expect 0 '^note +store .*says nothing about itself'
}

@test "tck: no secret in the list of processes" {
    begin "$SIMBA" tck --repeat 1000 --only tokens_rise 'memory:x?ttl=77s' >out
    runs() { grep -q '^ok' out && is_alive "$PID"; }
    await runs
    ! tr '\0' ' ' <"/proc/$PID/cmdline" | grep -q 77s
}

# ---- commands that are programs of their own --------------------------------------------------

@test "programs: what to install where one is missing, and help without it" {
    mkdir bin
    cp "$SIMBA" bin/simba
    for command in serve history 'watch --record h.db'; do
        run bin/simba $command
        expect 125 "^simba ${command%% *}: the viewer is not installed: there is no \.\./libexec/simba/simba-serve beside this program\. On Debian install simba-serve; else build with SIMBA_SERVE$"
    done
    for command in 'tck --list' 'bench sqlite:x.db' 'torture sqlite:x.db'; do
        run bin/simba $command
        expect 125 'the (contract suite|benchmark|torture) is not installed: .*On Debian install simba-tck'
    done
    run bin/simba serve --help
    expect 0 '^simba serve \[URL\]'
    run bin/simba serve --nonsense
    expect 64 '^simba serve: unknown option --nonsense'
}

@test "programs: where they were installed, seen from simba" {
    mkdir -p usr/bin usr/libexec/simba
    cp "$SIMBA" usr/bin/simba
    cp "$(dirname "$SIMBA")/simba-serve" usr/libexec/simba/
    ln -s usr/bin/simba simba
    run ./simba history --from none.db
    expect 125 'none.db'
}

@test "programs: no secret in the list of processes, nor of a program in its environment" {
    simba init
    begin "$SIMBA" -u "$SIMBA_URL?ttl=66s" serve --listen unix:sock -u "$SIMBA_URL?ttl=77s"
    await test -S sock
    ! tr '\0' ' ' <"/proc/$PID/cmdline" | grep -qE '66s|77s'
    tr '\0' ' ' <"/proc/$PID/cmdline" | grep -q ' serve --listen unix:sock -u sqlite:'
    ! tr '\0' ' ' <"/proc/$PID/environ" | grep -qE '66s|77s'
    SIMBA_URL=sqlite:none SIMBA_GIVEN_URL=sqlite:other run simba --dry-run --json serve -u "$SIMBA_URL?ttl=77s"
    expect 0 '"setting":"url",.*"from":"--url"'
    expect 0 '"setting":"ttl","value":"77s","from":"the URL"'
    SIMBA_URL=sqlite:none SIMBA_GIVEN_URL=sqlite:other run simba --dry-run --json serve
    expect 0 '"setting":"url","value":"sqlite:.*none","from":"SIMBA_URL"'
}

# ---- completion -------------------------------------------------------------------------------

# What bash offers at the end of these words.
offers() { # words...
    bash --norc -c 'eval "$("$SIMBA" completion bash)"
        COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
        _simba; printf "%s\n" "${COMPREPLY[@]}"' - "$@" | sort | xargs
}

@test "completion bash: commands, options, and CMD's own words" {
    [ "$(offers simba sch)" = schedule ]
    [ "$(offers simba -u x --ttl 5s lo)" = lock ]
    [ "$(offers simba lock --no)" = --no-wait ]
    [ "$(offers simba elect --on-)" = "--on-acquired --on-released" ]
    [ "$(offers simba lock -w 5s --kill-a)" = --kill-after ]
    [ "$(offers simba lock --wait '')" = "" ]
    [ "$(offers simba completion '')" = "bash fish zsh" ]
    [ "$(offers simba help tc)" = tck ]
    [ "$(offers simba status --js)" = --json ]
    offers simba lock name bas | grep -qw bash
    touch some-file
    [ "$(offers simba lock name cat some-)" = some-file ]
    [ "$(offers simba lock name cat --js)" = "" ]
}

@test "completion bash: names of mutexes, schemes of URLs, signals" {
    PATH=$(dirname "$SIMBA"):$PATH
    hold nightly-a
    [ "$(offers simba lock nigh)" = nightly-a ]
    [ "$(offers simba release '')" = nightly-a ]
    [ "$(offers simba -u sqlite : "$DIR/store/none.db" status '')" = "" ]
    [ "$(offers simba -u sqlite : "$DIR/store/locks.db" status '')" = nightly-a ]
    [ "$(offers simba -u redis)" = "redis+sentinel:// redis+unix:/// redis:// rediss+sentinel:// rediss://" ]
    [ "$(offers simba -u redis :)" = "//" ]
    [ "$(offers simba doctor sq)" = sqlite: ]
    [ "$(offers simba lock --signal US)" = "USR1 USR2" ]
    [ "$(offers simba init --shared --group roo)" = root ]
    SIMBA_URL=redis://127.0.0.1:1/0
    [ "$(offers simba lock nigh 2>&1)" = "" ] # quietly
}

@test "completion bash: what --missed, --log and --zone may be" {
    [ "$(offers simba schedule m --missed '')" = "all once skip" ]
    [ "$(offers simba schedule m --missed o)" = once ]
    [ "$(offers simba --log '')" = "json plain" ]
    [ "$(offers simba lock --log j)" = json ]
    [ "$(offers simba schedule m --zone UT)" = UTC ]
    [ -e /usr/share/zoneinfo/zone.tab ] || skip "there are no time zones (tzdata)"
    [ "$(offers simba schedule m --zone Europe/Berl)" = Europe/Berlin ]
}

@test "completion bash: really, at a terminal" {
    needs_terminal
    run python3 - <<'P'
import os, pty, select, sys, time
pid, fd = pty.fork()
if pid == 0:
    os.environ.update(PS1="ready> ", TERM="dumb", PATH=os.path.dirname(os.environ["SIMBA"]) + ":" + os.environ["PATH"])
    os.execvp("bash", ["bash", "--norc", "--noprofile", "-i"])
seen = ""
def wait(text):
    global seen
    end = time.time() + 60
    while text not in seen:
        assert time.time() < end, (text, seen)
        if select.select([fd], [], [], 0.1)[0]:
            seen += os.read(fd, 4096).decode(errors="replace")
    seen = seen[seen.index(text) + len(text):]
wait("ready> ")
os.write(fd, b'eval "$(simba completion bash)"; echo do""ne\n')
wait("done")
wait("ready> ")
os.write(fd, b"simba sched\t")
wait("simba schedule ")
os.write(fd, b"m --ini\t")
wait("m --initial-delay ")
os.close(fd)
P
    expect 0
}

@test "completion: every option that the help shows, in each shell" {
    for shell in bash zsh fish; do
        simba completion "$shell" >"all.$shell"
        [ -s "all.$shell" ]
        for command in lock elect schedule status release init tck; do
            for option in $(simba help "$command" | sed -nE 's/^  .{4}--([a-z-]+).*/\1/p'); do
                grep -qE -- "(--|-l )$option" "all.$shell" || { echo "$shell: no --$option"; return 1; }
            done
        done
    done
    bash -n all.bash
    run simba completion
    expect 64 "missing SHELL"
    run simba completion csh
    expect 64 "unknown shell .csh"
}

@test "completion zsh: zsh accepts it" {
    command -v zsh >/dev/null || skip "zsh is not installed"
    simba completion zsh >_simba
    zsh -n _simba
    # where zsh looks for it: the first line says what it is for
    run zsh -fc 'fpath=($PWD $fpath); autoload -U compinit; compinit -D -u; echo $_comps[simba]'
    expect 0 '^_simba$'
    grep -q "'1:name:_simba_names'" _simba
    grep -q -e "--signal=.*_simba_signals" _simba
    hold nightly-a
    PATH=$(dirname "$SIMBA"):$PATH
    # what the functions offer, with compadd replaced by what shows it
    run zsh -fc 'compadd() { print -l -- ${(P)@[-1]-} "$@" }; _arguments() { : }; source ./_simba; words=(simba status); _simba_names; _simba_urls; _simba_signals; _simba_missed; _simba_formats; _simba_zones'
    expect_all 0 '^nightly-a$' '^redis://$' '^USR1$' '^skip$' '^json$' '^UTC$'
}

@test "completion fish: fish accepts it, and offers what it says" {
    command -v fish >/dev/null || skip "fish is not installed"
    simba completion fish >simba.fish
    fish -n simba.fish
    PATH=$(dirname "$SIMBA"):$PATH
    run fish --no-config -c 'source simba.fish; complete -C "simba sch"; complete -C "simba lock --no-w"'
    expect 0 '^schedule'
    grep -q '^--no-wait' <<<"$output"
    hold nightly-a
    run fish --no-config -c 'source simba.fish; complete -C "simba status ni"; complete -C "simba -u red"; complete -C "simba lock --signal US"; complete -C "simba schedule m --missed o"; complete -C "simba --log j"; complete -C "simba schedule m --zone UT"'
    expect_all 0 '^nightly-a' '^redis://' '^rediss://' '^USR1' '^once' '^json' '^UTC'
}

@test "every command has help with an example or a hint, and a manual page" {
    for command in $(simba help | sed -nE 's/^  simba ([a-z]+) .*/\1/p' | sort -u); do
        run simba "$command" --help
        expect 0 "^simba $command"
        [ "$command" = version ] || [ -e "$BATS_TEST_DIRNAME/../../man/simba-$command.1.scd" ]
    done
    run simba help nosuch
    expect 64 "unknown command .nosuch"
}

@test "help fits 80 columns, and what belongs below each other stands so" {
    simba --help >help
    for command in $(sed -nE 's/^  simba ([a-z]+) .*/\1/p' help | sort -u); do
        simba "$command" --help >>help
    done
    run python3 - <<'P'
lines = open("help", encoding="utf-8").read().splitlines()
for line, after in zip(lines, lines[1:]):
    assert len(line) <= 80 and line == line.rstrip(), line
    assert line != "Options:" or after.startswith("  "), "no options"
column = {next(l for l in lines if what in l).index(what) for what in ("hold NAME", "run CMD", "make the store")}
assert len(column) == 1, column
P
    expect 0
    grep -q -e '--version' help
}
