"""Mistakes in shipped code that scripts/torture-mistakes plants, one at a time. T1 and so on: docs/traps.md says who
made that one."""
import collections

# changes: (file, its text, the text in its place). unseen: why the torture does not find it; None: it must.
Mistake = collections.namedtuple("Mistake", "name what store faults changes unseen", defaults=[None])

REDIS, SQLITE, MYSQL = "src/backend/redis/", "src/backend/sqlite/", "src/backend/mysql/"
POSTGRES, ZOOKEEPER, RUNTIME = "src/backend/postgres/", "src/backend/zookeeper/", "src/runtime/"

MISTAKES = [
    # ---- redis ------------------------------------------------------------------------------------------------------
    Mistake("redis-release-any", "a release ends whoever's tenure it finds (T13)", "redis", "process", [
        (REDIS + "lua/release.lua",
         "found[2] == ARGV[2] and (found[1] == ARGV[1] or found[1] == EVICTED .. ARGV[1])", "found[1]"),
        (REDIS + "lua/release_many.lua",
         "token ~= '' and now[2 * i] == token and (owner == id or owner == EVICTED .. id) and", "token ~= '' and owner and")]),
    Mistake("redis-release-by-id", "a release compares the id, and not the token (T13)", "redis", "duplicate", [
        (REDIS + "lua/release.lua", "found[2] == ARGV[2] and (", "("),
        (REDIS + "lua/release_many.lua", "now[2 * i] == token and (", "(")]),
    Mistake("redis-ends-soon", "a lease that ends within 200 ms counts as free", "redis", "process", [
        (REDIS + "lua/acquire.lua", "local owner = found[1]\n",
         "local owner = found[1]\nif owner and call('PTTL', KEYS[2]) < 200 then\n"
         "    call('DEL', KEYS[2], KEYS[5])\n    owner = nil\nend\n")]),
    Mistake("redis-evicted-is-free", "an evicted owner counts as gone, not as one whose lease runs out", "redis", "process",
            [(REDIS + "lua/acquire.lua", "local owner = found[1]\n",
              "local owner = found[1]\nif owner and string.byte(owner) == 255 then\n"
              "    call('DEL', KEYS[2], KEYS[5])\n    owner = nil\nend\n")]),
    Mistake("redis-no-restart-guard", "a server that has forgotten its owners grants at once (T37)", "redis", "server-kill", [
        (REDIS + "requests.c", "    if (!s->config.restart_grace)\n", "    if (s != NULL)\n")]),
    Mistake("redis-tokens-begin-anew", "tokens count from 1 in a server that has forgotten them (T37)", "redis", "server",
            [(REDIS + "lua/acquire.lua", "if token < tonumber(ARGV[2]) then", "if token < 1 then"),
             (REDIS + "lua/acquire_many.lua", "if token < first_seen then", "if token < 1 then")]),
    Mistake("redis-renew-any", "a renewal compares neither id nor token", "redis", "all", [
        (REDIS + "lua/renew.lua", "now[key] == args[arg] and now[key + 1] == args[arg + 1] and\n        call(", "call(")],
            "an owner that could be hurt has ended its tenure by its own clock before"),

    # ---- sqlite -----------------------------------------------------------------------------------------------------
    Mistake("sqlite-release-any", "a release ends whoever's tenure it finds (T13)", "sqlite", "process", [
        (SQLITE + "database.c", "row->found && row->token == q->token && strcmp(out->text, q->id) == 0;",
         "row->found;")]),
    Mistake("sqlite-other-column", "the lease is compared with when it was acquired, not with its end", "sqlite", "process", [
        (SQLITE + "database.c", "out->text[0] != '\\0' && until > now;",
         "out->text[0] != '\\0' && sqlite3_column_int64(s, 4) + 300 * NS_PER_MS > now;")]),
    Mistake("sqlite-no-liveness-lock", "the lock that shows that a client lives is not taken (T63)", "sqlite", "process", [
        (SQLITE + "client_lock.c", "if (set_lock(l->fd, F_WRLCK, number) != 0)", "if (number < 0)")]),
    Mistake("sqlite-keeps-descriptor", "closing a client leaves the descriptor of its lock open", "sqlite", "process", [
        (SQLITE + "client_lock.c", "    if (l->turn >= 0)\n        close(l->turn);\n", "")]),
    Mistake("sqlite-begin-deferred", "a transaction takes its lock with the first write, not when it begins", "sqlite",
            "process", [(SQLITE + "database_open.c", '"BEGIN IMMEDIATE"', '"BEGIN"')],
            "writers take turns by the lock in PATH-live as well"),
    Mistake("sqlite-no-turn", "writers do not take turns by the lock in PATH-live (T80)", "sqlite", "process", [
        (SQLITE + "client_lock.c", "return set_lock(l->turn, F_WRLCK, turn_at[turn]) == 0;",
         "return l->turn >= 0 && turn_at[turn] >= 0;")],
            "SQLite's own lock excludes them, as long as nobody replaces its files"),

    Mistake("sqlite-release-not-done", "a release is acknowledged, and not done", "sqlite", "process", [
        (SQLITE + "database.c", "    out->changed = true;\n    return set(d, DATABASE_FREE, q->mutex);\n",
         "    out->changed = true;\n    return d != NULL ? 0 : SIMBA_ELOST;\n")],
            "slow, not wrong: the lease runs out. The histogram of hand-overs shows it"),

    # ---- mariadb ----------------------------------------------------------------------------------------------------
    Mistake("mariadb-ttl-is-the-end", "the mutex is free after the ttl, without the transition", "mariadb", "network", [
        (MYSQL + "statements.c", "SAME_NAME \" AND transition_at<=$n),VALUES(owner_id)",
         "SAME_NAME \" AND ttl_at<=$n),VALUES(owner_id)"),
        (MYSQL + "statements.c", '" AND transition_at<=$n AND 1=$o"', '" AND ttl_at<=$n AND 1=$o"')]),
    Mistake("mariadb-release-by-id", "a release compares the id, and not the token (T13)", "mariadb", "duplicate", [
        (MYSQL + "statements.c", 'SAME_NAME " AND $f=VALUES($f)AND(BINARY', 'SAME_NAME " AND(BINARY'),
        (MYSQL + "statements.c", '" AND $f=$t AND " THIS_OWNER', '" AND " THIS_OWNER')]),
    Mistake("mariadb-token-stays", "the token is not counted up by a new tenure", "mariadb", "process", [
        (MYSQL + "statements.c", "fencing_token=IF(@g,GREATEST(version+1,fencing_token+1,$u),fencing_token),",
         "fencing_token=IF(@g,GREATEST(fencing_token,$u),fencing_token),"),
        (MYSQL + "statements.c", "LAST_INSERT_ID(GREATEST(version+1,fencing_token+1,$u))",
         "LAST_INSERT_ID(GREATEST(fencing_token,$u))")]),

    # ---- postgres ---------------------------------------------------------------------------------------------------
    Mistake("postgres-check-then-act", "who has found it free takes it, without looking again", "postgres", "process", [
        (POSTGRES + "statements.c", "owner_id=EXCLUDED.owner_id,@t WHERE t.transition_at<=@n RETURNING t.*)",
         "owner_id=EXCLUDED.owner_id,@t RETURNING t.*)"),
        (POSTGRES + "statements.c", "owner_id=$2::text,@t WHERE t.transition_at<=@n ", "owner_id=$2::text,@t ")]),
    Mistake("postgres-release-any", "a release ends whoever's tenure it finds (T13)", "postgres", "process", [
        (POSTGRES + "statements.c", "WHERE mutex=$1::text AND @f=$3::bigint AND(\" \\\n"
         "    \"owner_id=$2::text OR(", "WHERE mutex=$1::text AND $3::bigint>0 AND(\" \\\n    \"$2::text<>'' OR("),
        (POSTGRES + "statements.c", "\"t.@f=q.k AND(t.owner_id=q.i OR(", "\"q.k>0 AND(q.i<>'' OR(")]),
    Mistake("postgres-clock-of-the-beginning", "the clock is that of the beginning of the transaction (T26)", "postgres",
            "all", [(POSTGRES + "statements.c", "return \"floor(date_part('epoch',clock_timestamp())*1000)::bigint\";",
                     "return \"floor(date_part('epoch',now())*1000)::bigint\";")],
            "an owner counts from before its request, and never more than the store says is left"),

    # ---- zookeeper --------------------------------------------------------------------------------------------------
    Mistake("zookeeper-second-leads", "the second in the queue takes itself for the first", "zookeeper", "process", [
        (ZOOKEEPER + "latch_queue.c", "if (v.ahead >= 0)\n", "if (v.ahead >= 0 && v.ahead != v.leader)\n")]),
    Mistake("zookeeper-connected-is-standing", "a session counts as standing while it is connected (T57)", "zookeeper",
            "stall", [(ZOOKEEPER + "latch_session.c", "if (PLANTED(LATCH_NO_WRITE))\n        return s->deadline.timeout",
                       "if (s->connected)\n        return s->deadline.timeout"),
                      (ZOOKEEPER + "latch_session.c", "if (PLANTED(LATCH_NO_WRITE))\n        return s->connected;",
                       "if (s != NULL)\n        return s->connected;")]),
    Mistake("zookeeper-no-session-deadline", "a session lasts until the server says that it has expired (T51)", "zookeeper",
            "network", [(ZOOKEEPER + "latch_session.c", "if (PLANTED(LATCH_NO_WRITE))\n        return s->deadline.timeout * 2 / 3",
                         "if (s->established)\n        return s->deadline.timeout"),
                        (ZOOKEEPER + "latch_session.c", "if (PLANTED(LATCH_NO_WRITE))\n        return s->connected;",
                         "if (s != NULL)\n        return s->established;")]),
    Mistake("zookeeper-old-session", "a node that an earlier session of ours made is led with (T51)", "zookeeper", "all", [
        (ZOOKEEPER + "latch.c", "    if (owner != session)\n        l->wanted = false;\n",
         "    (void)owner;\n    (void)session;\n")]),
    Mistake("zookeeper-takes-orphan", "a node of ours that is to be deleted is taken for a tenure (T11)", "zookeeper", "all", [
        (ZOOKEEPER + "latch_queue.c", "strcmp(m->leader_id, m->id) == 0 && !PLANTED(LATCH_TAKES_ORPHAN);",
         "m->leader_id[0] == '\\0';")]),

    # ---- runtime ----------------------------------------------------------------------------------------------------
    Mistake("runtime-no-deadline", "whether one owns does not depend on the clock (T1)", "redis", "freeze", [
        (RUNTIME + "actor_api.c", "        if (left <= 0)\n            return 0;\n", "")]),
    Mistake("runtime-done-before-callback", "on_released counts as done when it begins (T2)", "sqlite", "process", [
        (RUNTIME + "callback.c", "    else\n        post_done(a, c->ran);\n}",
         "    else if (c->began != 0)\n        post_done(a, c->ran);\n}"),
        (RUNTIME + "callback.c", "        c.ran = actor_owns(a, a->job_token);\n    pthread_cleanup_push(",
         "        c.ran = actor_owns(a, a->job_token);\n    if (a->job_callback == CALLBACK_RELEASED) {\n"
         "        post_done(a, c.ran);\n        c.began = 0;\n    }\n    pthread_cleanup_push(")]),
    Mistake("runtime-owner-after-stop", "an owner that has left is told yes until the loop has seen it", "redis", "process", [
        ("src/core/view.h", "if (stopped && !PLANTED(OWNER_AFTER_STOP))", "if (stopped && v == NULL)")]),
    Mistake("runtime-answers-forged", "an answer that failed counts as a renewal", "redis", "network", [
        (RUNTIME + "host.c", "        r->code = answer->code > 0 || answer->code < SIMBA_ECANCELED ? SIMBA_ESTORE : "
         "answer->code;", "        r->code = r->to_store.op == SIMBA_RENEW ? 0 : answer->code;"),
        (RUNTIME + "host.c", "    r->left_ms = bounded_left(answer->left_ms);",
         "    r->left_ms = r->to_store.op == SIMBA_RENEW ? r->to_store.ttl_ms + r->to_store.transition_ms\n"
         "                                               : bounded_left(answer->left_ms);")]),

    # ---- core -------------------------------------------------------------------------------------------------------
    Mistake("core-lease-from-reply", "the lease counts from the answer, not from the request (T6)", "postgres", "network", [
        ("src/core/lease.c", "PLANTED(LEASE_FROM_REPLY) ? now : r->request.sent_at", "now")]),
    Mistake("core-release-before-drain", "the store is told while user code still runs (T2)", "mariadb", "process", [
        ("src/core/handle.c", "!user_code_runs(h) || PLANTED(RELEASE_BEFORE_DRAIN);", "h->drain >= 0;")]),
    Mistake("core-token-kept", "a tenure that has ended here is taken up again (T58)", "redis", "network", [
        ("src/core/lease.c", "(r->token > l->token || (PLANTED(TOKEN_KEPT) && r->token != 0))", "r->token != 0")]),
    Mistake("core-stale-life", "a grant of before a stop begins a tenure after the start (T8)", "zookeeper", "all", [
        ("src/core/lease.c", "current || r->request.seq > l->start_seq || PLANTED(STALE_LIFE);", "r->request.seq > 0;")]),
    Mistake("core-no-next-try", "a failed attempt sets no next one (T9)", "redis", "network", [
        ("src/core/lease.c", "        if (PLANTED(NO_NEXT_TRY))\n            l->wake_at = NEVER;", "        l->wake_at = NEVER;")],
            "others go on, and nobody is promised to be the next; the simulator finds it (C9)"),
]
