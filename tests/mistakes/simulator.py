"""Mistakes that systems of this kind have made, which scripts/mutants plants one at a time: the simulator must catch
each. Most are in the core and in the pure part of ZooKeeper's store; those of a store or of a user's program are in
the simulator's own. docs/traps.md names them."""
import collections

# changes: (file, its text, the text in its place).
Mistake = collections.namedtuple("Mistake", "name what changes")

HANDLE, LEASE, PERIOD = "src/core/handle.c", "src/core/lease.c", "src/core/period.c"
TICKS, VIEW, WATCHDOG = "src/core/ticks.c", "src/core/view.h", "src/core/watchdog.c"
LATCH, QUEUE, SESSION = (f"src/backend/zookeeper/latch{part}.c" for part in ("", "_queue", "_session"))
NODE, STORE, TICKER, USER = (f"tests/sim/{name}.c" for name in ("node", "store", "ticker", "user"))

MISTAKES = [
    # ---- the lease ---------------------------------------------------------------------------------------------------
    Mistake("LEASE_FROM_REPLY", "the lease counts from the answer, not from the request", [
        (LEASE,
         "static int64_t right_until(const struct lease *l, const struct lease_reply *r)\n"
         "{\n"
         "    return period_hold_until(l->period, r->request.sent_at, r->left);\n"
         "}\n",
         "#define right_until(l, r) period_hold_until((l)->period, now, (r)->left)\n"),
    ]),
    Mistake("NO_SELF_FENCING", "nothing ends a tenure when its deadline passes", [
        (LEASE,
         "    if (l->state == LEASE_HOLDING && now >= l->hold_until)\n"
         "        return lose(l, SIMBA_EXPIRED);\n",
         ""),
        (LEASE,
         "    if (l->state == LEASE_HOLDING && l->hold_until < l->wake_at)\n"
         "        return l->hold_until;\n",
         ""),
    ]),
    Mistake("CLOCK_FIRST", "is_owner reads the clock before the deadline", [
        (NODE,
         "    if (e->kind == EVENT_READ_CLOCK) {\n",
         "    if (e->kind == EVENT_READ_CLOCK) {\n"
         "        view_begin(&n->view, &n->reader); /* only now, long after the clock */\n"
         "        world_post(w, w->now, EVENT_READ_END, n, NULL);\n"
         "    } else if (e->kind == EVENT_READ_CLOCK) {\n"),
        (USER,
         "    if (!view_begin(&n->view, &n->reader)) {\n"
         "        node_answer(w, n, false);\n"
         "        return;\n"
         "    }\n",
         "    view_begin(&n->view, &n->reader);\n"),
    ]),
    Mistake("NO_SECOND_READING", "is_owner does not read the deadline again after the clock", [
        (VIEW,
         "return view_deadline(v) == r->deadline;",
         "return true;"),
    ]),
    Mistake("RELEASE_BEFORE_DRAIN", "the store is told while user code still runs", [
        (HANDLE,
         "if (lease_is_over(&h->lease) && !user_code_runs(h) && !is_kept(h)) {",
         "if (lease_is_over(&h->lease) && !is_kept(h)) {"),
    ]),
    Mistake("DRAIN_RELEASES", "at the drain limit the lease is released, not left to expire", [
        (HANDLE,
         "        if (h->lease.state == LEASE_HOLDING)\n"
         "            lease_abandon(&h->lease);\n",
         "        lease_user_code_done(&h->lease, now);\n"),
    ]),
    Mistake("ADOPT_LATE", "a grant that comes after its deadline is taken", [
        (LEASE,
         "bool in_time = now < right_until(l, r);",
         "bool in_time = true;"),
    ]),
    Mistake("TRUST_PUSH", "a push makes the owner", [
        (LEASE,
         "    if (l->state != LEASE_CONTENDING && l->state != LEASE_HOLDING)\n"
         "        return;\n"
         "    if (l->seq == l->start_seq)\n",
         "    if (l->state == LEASE_CONTENDING && l->wanted) {\n"
         "        enter(l, LEASE_HOLDING, now);\n"
         "        l->token++;\n"
         "        l->hold_until = period_hold_until(l->period, now, l->period->lease);\n"
         "    }\n"
         "    if (l->state != LEASE_CONTENDING && l->state != LEASE_HOLDING)\n"
         "        return;\n"
         "    if (l->seq == l->start_seq)\n"),
    ]),
    Mistake("ONE_ATTEMPT", "one failed renewal costs the tenure", [
        (LEASE,
         "        assert(l->state == LEASE_HOLDING);\n"
         "        l->wake_at = now + period_pause(l->period, l->failures, &l->random);\n",
         "        assert(l->state == LEASE_HOLDING);\n"
         "        l->wake_at = now + period_pause(l->period, l->failures, &l->random);\n"
         "        l->wake_at = l->hold_until;\n"),
    ]),
    Mistake("TOKEN_KEPT", "a tenure that ended here is taken up again", [
        (LEASE,
         "if (own && r->token > l->token)",
         "if (own && r->token != 0)"),
    ]),
    Mistake("STALE_LIFE", "a late answer from before a stop begins a tenure after the start", [
        (LEASE,
         "bool fresh = current || r->request.seq > l->start_seq;",
         "bool fresh = true;"),
    ]),
    Mistake("ANY_ANSWER", "any answer is taken for the one that is awaited", [
        (LEASE,  # but for an owner: there an assert would catch it
         "bool current = l->in_flight && r->request.seq == l->seq;",
         "bool current = l->in_flight && (r->request.seq == l->seq || l->state != LEASE_HOLDING);"),
    ]),
    Mistake("DRIFT_IGNORED", "clocks are thought to run alike", [
        (PERIOD,
         "return length - (length / 1000 * p->drift_ppm) / 1000 - SLACK;",
         "return length - SLACK;"),
    ]),
    Mistake("ADOPT_FOREIGN", "a tenure under my chosen id is mine", [
        (LEASE,
         "bool own = l->unique && strcmp(r->owner, l->id) == 0;",
         "bool own = strcmp(r->owner, l->id) == 0;"),
    ]),
    Mistake("ADOPT_WHOLE", "an adopted tenure counts as a whole lease", [
        (LEASE,
         "return period_hold_until(l->period, r->request.sent_at, r->left);",
         "return period_hold_until(l->period, r->request.sent_at, l->period->lease);"),
    ]),
    Mistake("NO_NEXT_TRY", "a failed attempt sets no next one", [
        (LEASE,
         "        l->wake_at = now + period_backoff(l->period, l->failures, &l->random);\n"
         "        if (!l->wanted)\n",
         "        l->wake_at = now + period_backoff(l->period, l->failures, &l->random);\n"
         "        l->wake_at = NEVER;\n"
         "        if (!l->wanted)\n"),
    ]),
    Mistake("OWNER_WHILE_STOPPING", "is_owner stays true while on_released runs", [
        (LEASE,
         "return l->state == LEASE_HOLDING && l->wanted ? l->hold_until : 0;",
         "return l->state == LEASE_HOLDING ? l->hold_until : 0;"),
    ]),
    Mistake("OWNER_AFTER_STOP", "is_owner stays true after stop until the loop has seen it", [
        (VIEW,
         "    if (atomic_load_explicit(&v->stopped, memory_order_acquire))\n"
         "        return 0;\n",
         ""),
    ]),

    # ---- what follows for a handle -----------------------------------------------------------------------------------
    Mistake("STALE_CALLBACK", "on_acquired runs though the tenure has ended in the queue", [
        (USER,
         "n->skipped = n->callback == CALLBACK_ACQUIRED &&\n"
         "                 !(node_owns(w, n) && n->view.token == n->callback_token);\n",
         "n->skipped = false;\n"),
    ]),
    Mistake("UNPAIRED_RELEASE", "on_released runs though on_acquired did not", [
        (HANDLE,
         "h->acquired_ran = ran;",
         "h->acquired_ran = true;"),
    ]),
    Mistake("ABANDONED_IS_KEPT", "what a caller that has gone was granted is kept", [
        (HANDLE,
         "        h->extra->postponed = false;\n"
         "    end_tenure(h, now);\n"
         "}\n"
         "\n"
         "static void close_handle(",
         "        h->extra->postponed = false;\n"
         "    if (h->lease.state != LEASE_HOLDING)\n"
         "        end_tenure(h, now);\n"
         "}\n"
         "\n"
         "static void close_handle("),
    ]),
    Mistake("NO_STALL", "an owner that reports no progress keeps its tenure", [
        (WATCHDOG,
         "w->check_at = w->limit > 0 ? now + w->limit / 2 : NEVER;",
         "w->check_at = NEVER;"),
        (WATCHDOG,
         "    if (w->limit == 0 || w->began_at == NEVER)\n"
         "        return WATCHDOG_FINE;\n",
         "    return WATCHDOG_FINE;\n"),
    ]),
    Mistake("STALE_REPORT", "a report of progress counts whatever tenure it is from", [
        (VIEW,
         "return r->token == token;",
         "return true;"),
    ]),
    Mistake("NO_PAUSE", "who has resigned or stalled contends at once", [
        (HANDLE,
         "    h->pause = pause;\n",
         "    h->pause = 0;\n"),
    ]),
    Mistake("NOT_KEPT", "at_least does not hold back what is given back early", [
        (HANDLE,
         "    if (h->extra->at_least > 0)\n"
         "        h->extra->keep_until = now + h->extra->at_least;\n",
         ""),
    ]),
    Mistake("NO_WARNING", "on_endangered is not told that renewals fail", [
        (HANDLE,
         "    h->extra->failing = true;\n"
         "    endanger(h, DANGER_RENEWALS);\n",
         ""),
    ]),
    Mistake("WARNING_BESIDE", "on_released does not wait for on_endangered", [
        (HANDLE,
         "if (h->acquired_ran && over && may_end(h))",
         "if (h->acquired_ran && over)"),
    ]),
    Mistake("STOPPED_EARLY", "on_stopped comes with the stop, not with its end", [
        (HANDLE,
         "h->extra->stopped = next == SIMBA_INITIAL;",
         "h->extra->stopped = next == SIMBA_INITIAL || event == STATUS_STOP;"),
    ]),
    Mistake("NOTE_AFTER", "on_acquired does not wait for the note", [
        (HANDLE,
         "x->holds_back = x->has_note;",
         "x->holds_back = false;"),
    ]),

    # ---- a store of the simulator ------------------------------------------------------------------------------------
    Mistake("RELEASE_ANY", "the store releases without comparing the token", [
        (STORE,
         "bool ours = r->token == m->request.token && strcmp(",
         "bool ours = (r->token == m->request.token || m->request.op == SIMBA_RELEASE) && strcmp("),
    ]),
    Mistake("PUBLISH_ANY", "the store publishes without comparing the token", [
        (STORE,
         "bool ours = r->token == m->request.token && strcmp(",
         "bool ours = (r->token == m->request.token || m->request.op == SIMBA_PUBLISH) && strcmp("),
    ]),

    # ---- ZooKeeper ---------------------------------------------------------------------------------------------------
    Mistake("LATCH_FORGETS_CREATE", "a node whose creation was not answered is forgotten", [
        (LATCH,
         "l->state = reply == LATCH_UNKNOWN ? LATCH_LOST : LATCH_OUT;",
         "l->state = LATCH_OUT;"),
    ]),
    Mistake("LATCH_FORGETS_DELETE", "a deletion that was not answered counts as done", [
        (LATCH,
         "l->state = gone ? LATCH_GONE : LATCH_IN;",
         "l->state = LATCH_GONE;"),
    ]),
    Mistake("LATCH_PLAIN_ORDER", "sequences are compared as numbers, and run over", [
        (LATCH,
         "return (int32_t)((uint32_t)a - (uint32_t)b) < 0;",
         "return a < b;"),
    ]),
    Mistake("LATCH_ANY_CHILD", "every child of the mutex's node is a member", [
        (LATCH,
         "    if (at == NULL || strlen(name) >= LATCH_NAME_SIZE)\n"
         "        return false;\n",
         "    if (at == NULL || strlen(name) >= LATCH_NAME_SIZE)\n"
         "        return true;\n"),
    ]),
    Mistake("LATCH_KEEPS_UNWANTED", "a node that nobody wants any more stays", [
        (LATCH,
         "return l->wanted ? LATCH_REST : LATCH_DELETE;",
         "return LATCH_REST;"),
    ]),
    Mistake("LATCH_TAKES_ORPHAN", "an own node that is to be deleted is taken for a tenure", [
        (QUEUE,
         "bool left_over = strcmp(m->leader_id, m->id) == 0;",
         "bool left_over = false;"),
    ]),
    Mistake("LATCH_NO_WATCH", "who waits leaves no watch on the member in front", [
        (QUEUE,
         "bool watched = strcmp(m->watched, ahead) == 0;",
         "bool watched = true;"),
    ]),
    Mistake("LATCH_NO_WRITE", "a session counts as standing while it is connected", [
        (SESSION,
         "    /* now was rounded down */\n"
         "    int64_t left = zk_session_deadline_until(&s->deadline) - s->client->now - 1;\n",
         "    int64_t left = s->deadline.timeout * 2 / 3;\n"),
        (SESSION,
         "return s->connected && s->client->now - s->deadline.written <= s->deadline.timeout / PART_FRESH;",
         "return s->connected;"),
    ]),
    Mistake("LATCH_NO_WORTH", "a tenure begins although hardly anything of it is left", [
        (SESSION,
         "return zk_latch_session_is_fresh(s) &&\n"
         "           zk_latch_session_left(s) >= s->deadline.timeout / PART_BEGIN;",
         "return zk_latch_session_is_fresh(s);"),
    ]),
    Mistake("LATCH_REMOVES_OTHERS", "a node in front that we do not know is deleted, whoever made it", [
        (LATCH,
         "    return strncmp(name, PREFIX, strlen(PREFIX)) == 0 &&\n"
         "           strncmp(name + strlen(PREFIX), l->uuid, CLIENT_DIGITS) == 0;",
         "    return true;"),
    ]),

    # ---- ticks -------------------------------------------------------------------------------------------------------
    Mistake("TICK_CLAIMED_LATE", "a tick is claimed after its run, though it may run only once", [
        (TICKS,
         "if (!t->at_least_once && has_run)",
         "if (!t->at_least_once && !has_run)"),
    ]),
    Mistake("TICK_OLD_TOKEN", "the store takes a tick of a tenure that is over", [
        (TICKER,
         "bool ours = held && l->token == m->request.token;",
         "bool ours = true;"),
    ]),
    Mistake("TICK_OVERTAKEN", "the store lets an older tick of a tenure overtake a newer one", [
        (TICKER,
         "return ours && !overtaken;",
         "return ours;"),
    ]),
    Mistake("TICK_NOT_READ", "a new leader does not read what is claimed", [
        (TICKS,
         "    if (note[0] == '\\0')\n"
         "        return 0;\n"
         "    if (!read_note(",
         "    return 0;\n"
         "    if (!read_note("),
    ]),
    Mistake("TICK_NOT_REPEATED", "a tick that was begun and not done is left as it is", [
        (TICKS,
         "t->is_to_repeat = stage == BEGUN && t->at_least_once;",
         "t->is_to_repeat = false;"),
    ]),
    Mistake("TICK_BY_CLOCK", "a leader goes by its clock, whatever is claimed", [
        (TICKS,
         "    if (t->claimed == 0 || t->is_changed) {\n"
         "        t->planned = plan_anew(t, now);\n",
         "    if (now >= 0) {\n"
         "        t->planned = now;\n"
         "    } else if (t->claimed == 0 || t->is_changed) {\n"
         "        t->planned = plan_anew(t, now);\n"),
        (TICKS,
         "    assert(t->planned >= t->claimed);\n",
         ""),
    ]),
    Mistake("TICK_OWN_CLOCK", "a leader goes by its own clock, however wrong it is", [
        (TICKS,
         "return store == 0 || !is_apart ? own : store;",
         "return own;"),
    ]),
]


def changes_of(name):
    """Of the same mistake elsewhere: tests/mistakes/torture.py."""
    return next(m.changes for m in MISTAKES if m.name == name)
