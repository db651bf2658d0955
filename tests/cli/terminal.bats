#!/usr/bin/env bats
# terminal.bats: at a terminal: who gets Ctrl-C and Ctrl-Z, who may read, what is shown.
bats_require_minimum_version 1.8.0
# bats file_tags=store
load helper

at_terminal() { # case
    needs_terminal
    timeout 100 python3 "$BATS_TEST_DIRNAME/terminal.py" "$1" 3>&-
}

@test "Ctrl-C reaches CMD once" { at_terminal ctrl_c; }
@test "Ctrl-C ends a shell and its child, and the lock" { at_terminal ctrl_c_kills; }
@test "Ctrl-Z and fg" { at_terminal ctrl_z; }
@test "Ctrl-Z for longer than the lease: CMD is ended (T78)" { at_terminal ctrl_z_too_long; }
@test "kill -STOP of the whole job (T78)" { at_terminal stop_job; }
@test "in a pipeline CMD can read from the terminal" { at_terminal pager; }
@test "simba lock m cmd | less" {
    command -v less >/dev/null || skip "less is not installed"
    at_terminal less
}
@test "in the background" { at_terminal background; }
@test "the line of those who wait; Ctrl-C ends the wait" { at_terminal waiting_line; }
@test "the line of those who wait fits the terminal, 80 columns or others" { at_terminal narrow; }
@test "the terminal hangs up" { at_terminal hang_up; }
