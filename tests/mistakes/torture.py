"""Mistakes in shipped code that scripts/torture-mistakes plants, one at a time. T1 and so on: docs/traps.md says who
made that one."""
import collections

from mistakes.simulator import changes_of

# changes: (file, its text, the text in its place). unseen: why the torture does not find it; None: it must.
Mistake = collections.namedtuple("Mistake", "name store faults what changes unseen", defaults=[None])

RUNTIME = "src/runtime/"
REDIS, SQLITE, MYSQL = "src/backend/redis/", "src/backend/sqlite/", "src/backend/mysql/"
POSTGRES, ZOOKEEPER = "src/backend/postgres/", "src/backend/zookeeper/"

FRESH = "return s->connected && s->client->now - s->deadline.written <= s->deadline.timeout / PART_FRESH;"

MISTAKES = [
    # ---- redis -------------------------------------------------------------------------------------------------------
    Mistake("redis-release-any", "redis", "process",
            "a release ends whoever's tenure it finds (T13)", [
                (REDIS + "lua/release.lua",
                 "found[2] == ARGV[2] and (found[1] == ARGV[1] or found[1] == EVICTED .. ARGV[1])",
                 "found[1]"),
                (REDIS + "lua/release_many.lua",
                 "token ~= '' and now[2 * i] == token and (owner == id or owner == EVICTED .. id) and",
                 "token ~= '' and owner and"),
            ]),
    Mistake("redis-release-by-id", "redis", "duplicate",
            "a release compares the id, and not the token (T13)", [
                (REDIS + "lua/release.lua",
                 "found[2] == ARGV[2] and (",
                 "("),
                (REDIS + "lua/release_many.lua",
                 "now[2 * i] == token and (",
                 "("),
            ]),
    Mistake("redis-ends-soon", "redis", "process",
            "a lease that ends within 200 ms counts as free", [
                (REDIS + "lua/acquire.lua",
                 "local left = 0\n",
                 "local left = 0\n"
                 "if owner and call('PTTL', KEYS[2]) < 200 then\n"
                 "    call('DEL', KEYS[2], KEYS[5])\n"
                 "    owner = nil\n"
                 "end\n"),
            ]),
    Mistake("redis-evicted-is-free", "redis", "process",
            "an evicted owner counts as gone, not as one whose lease runs out", [
                (REDIS + "lua/acquire.lua",
                 "local left = 0\n",
                 "local left = 0\n"
                 "if owner and string.byte(owner) == 255 then\n"
                 "    call('DEL', KEYS[2], KEYS[5])\n"
                 "    owner = nil\n"
                 "end\n"),
            ]),
    Mistake("redis-no-restart-guard", "redis", "server-kill",
            "a server that has forgotten its owners grants at once (T37)", [
                (REDIS + "requests.c",
                 "    if (!s->config.restart_grace)\n",
                 "    if (s != NULL)\n"),
            ]),
    Mistake("redis-tokens-begin-anew", "redis", "server",
            "tokens count from 1 in a server that has forgotten them (T37)", [
                (REDIS + "lua/token.lua",
                 "    number = math.max(number, time[1] * 1000000 + time[2])\n",
                 ""),
            ]),
    Mistake("redis-tokens-of-an-old-database", "redis-swap", "swap,kill,stop",
            "a token is the next one of its database, however old that is (T126)", [
                (REDIS + "lua/token.lua",
                 "    number = math.max(number, time[1] * 1000000 + time[2])\n",
                 "    if not last then\n"
                 "        number = time[1] * 1000000 + time[2]\n"
                 "    end\n"),
            ]),
    Mistake("redis-old-database", "redis-swap", "swap,kill,stop",
            "a database that comes back is in the epoch in which it went (T126)", [
                (REDIS + "lua/epoch.lua",
                 "if its_home == number then",
                 "if its_home == KEYS[1] then"),
            ]),
    Mistake("redis-other-database", "redis-swap", "swap,kill,stop",
            "an epoch of another database counts where that one has come in the place of ours (T126)", [
                (REDIS + "handshake.c",
                 "term >= c->net->term && db == c->net->config->db &&",
                 "term >= c->net->term && db >= 0 &&"),
            ]),
    Mistake("redis-renews-anywhere", "redis-swap", "swap,kill,stop",
            "a renewal does not ask in which epoch the database is (T126)", [
                (REDIS + "lua/renew.lua",
                 "if now[1] ~= args[1] then",
                 "if false then"),
            ],
            "too rare: a database must go and come between two renewals, and go again much later; redis_swapped_thrice "
            "finds it"),
    Mistake("redis-reset-hides", "redis-swap", "empty,kill,restart,stop",
            "a server that was emptied counts as whole when its counts were reset (T111)", [
                (REDIS + "lua/epoch.lua",
                 "'debug', 'config', 'config|resetstat'}",
                 "'debug'}"),
            ]),
    Mistake("redis-sentinel-by-address", "redis-sentinel-forgets", "partition,kill,close",
            "a sentinel has a vote for each address in the URL (T108)", [
                (REDIS + "sentinel.c",
                 "other != s && other->is_identified",
                 "other == s && other->is_identified"),
            ],
            "a worker must begin anew while no other sentinel answers; redis_sentinel_named_twice finds it"),
    Mistake("redis-sentinel-forgetful", "redis-sentinel-forgets", "forget,kill,close",
            "a sentinel has a vote as soon as it names this master (T109)", [
                (REDIS + "votes.c",
                 "age_ms(s, simba_now()) >= vouched_ms;",
                 "vouched_ms >= 0;"),
            ]),
    Mistake("redis-sentinel-earlier-term", "redis-sentinel-forgets", "forget,kill,close",
            "a majority that names an earlier term counts (T109)", [
                (REDIS + "votes.c",
                 "i < a->count && term >= a->latest; i++)",
                 "i < a->count && term >= 0; i++)"),
                (REDIS + "sentinel.c",
                 "bool is_over = c->net->term < a->latest;",
                 "bool is_over = c->net->term < 0;"),
            ],
            "what is free is granted only when a majority has named this master for one lease"),
    Mistake("redis-renew-any", "redis", "all",
            "a renewal compares neither id nor token", [
                (REDIS + "lua/renew.lua",
                 "now[key] == args[arg] and now[key + 1] == args[arg + 1] and\n"
                 "        call(",
                 "call("),
            ],
            "an owner that could be hurt has ended its tenure by its own clock before"),

    # ---- sqlite ------------------------------------------------------------------------------------------------------
    Mistake("sqlite-release-any", "sqlite", "process",
            "a release ends whoever's tenure it finds (T13)", [
                (SQLITE + "database.c",
                 "row->found && row->token == q->token && strcmp(out->text, q->id) == 0;",
                 "row->found;"),
            ]),
    Mistake("sqlite-other-column", "sqlite", "process",
            "the lease is compared with when it was acquired, not with its end", [
                (SQLITE + "database.c",
                 "out->text[0] != '\\0' && until > now;",
                 "out->text[0] != '\\0' && sqlite3_column_int64(s, 4) + 300 * NS_PER_MS > now;"),
            ]),
    Mistake("sqlite-no-liveness-lock", "sqlite", "process",
            "the lock that shows that a client lives is not taken (T63)", [
                (SQLITE + "client_lock.c",
                 "bool live = set_lock(l->fd, F_WRLCK, number) == 0;\n"
                 "    if (live && set_lock(l->tree, F_RDLCK, number) == 0 &&",
                 "bool live = number > 0;\n"
                 "    if (live &&"),
            ]),
    Mistake("sqlite-keeps-descriptor", "sqlite", "process",
            "closing a client leaves the descriptor of its lock open", [
                (SQLITE + "client_lock.c",
                 "    if (l->turn >= 0)\n"
                 "        close(l->turn);\n",
                 ""),
            ]),
    Mistake("sqlite-begin-deferred", "sqlite", "process",
            "a transaction takes its lock with the first write, not when it begins", [
                (SQLITE + "database_open.c",
                 '"BEGIN IMMEDIATE"',
                 '"BEGIN"'),
            ],
            "writers take turns by the lock in PATH-live as well"),
    Mistake("sqlite-no-turn", "sqlite", "process",
            "writers do not take turns by the lock in PATH-live (T80)", [
                (SQLITE + "client_lock.c",
                 "return set_lock(l->turn, F_WRLCK, turn_at[turn]) == 0;",
                 "return l->turn >= 0 && turn_at[turn] >= 0;"),
            ],
            "SQLite's own lock excludes them, as long as nobody replaces its files"),
    Mistake("sqlite-release-not-done", "sqlite", "process",
            "a release is acknowledged, and not done", [
                (SQLITE + "database.c",
                 "    out->changed = true;\n"
                 "    return set(d, DATABASE_FREE, q->mutex);\n",
                 "    out->changed = true;\n"
                 "    return d != NULL ? 0 : SIMBA_ELOST;\n"),
            ],
            "slow, not wrong: the lease runs out. The histogram of hand-overs shows it"),

    # ---- mariadb -----------------------------------------------------------------------------------------------------
    Mistake("mariadb-ttl-is-the-end", "mariadb", "network",
            "the mutex is free after the ttl, without the transition", [
                (MYSQL + "statements.sql",
                 "{same_name}\n            AND transition_at <= {now}",
                 "{same_name}\n            AND ttl_at <= {now}"),
                (MYSQL + "statements.sql",
                 "AND transition_at <= {now}\n    AND 1 = {still_without_tokens}",
                 "AND ttl_at <= {now}\n    AND 1 = {still_without_tokens}"),
            ]),
    Mistake("mariadb-token-stays", "mariadb", "process",
            "the token is not counted up by a new tenure", [
                (MYSQL + "statements.sql",
                 "@g, GREATEST(version + 1, fencing_token + 1, {least_token}),\n    fencing_token),",
                 "@g, GREATEST(fencing_token, {least_token}),\n    fencing_token),"),
                (MYSQL + "statements.sql",
                 "    GREATEST(version + 1, fencing_token + 1, {least_token})),",
                 "    GREATEST(fencing_token, {least_token})),"),
            ]),

    # ---- postgres ----------------------------------------------------------------------------------------------------
    Mistake("postgres-check-then-act", "postgres", "process",
            "who has found it free takes it, without looking again", [
                (POSTGRES + "statements.sql",
                 "{set_next_token}\n    WHERE t.transition_at <= {now}\n",
                 "{set_next_token}\n"),
                (POSTGRES + "statements.sql",
                 "{set_next_token}\nWHERE t.transition_at <= {now}\n",
                 "{set_next_token}\n"),
            ]),
    Mistake("postgres-release-any", "postgres", "process",
            "a release ends whoever's tenure it finds (T13)", [
                (POSTGRES + "statements.sql",
                 "AND {token_column} = $3::bigint\n    AND (owner_id = $2::text OR (",
                 "AND $3::bigint > 0\n    AND ($2::text <> '' OR ("),
                (POSTGRES + "statements.sql",
                 "AND t.{token_column} = asked.token\n        AND (t.owner_id = asked.id OR (",
                 "AND asked.token > 0\n        AND (asked.id <> '' OR ("),
            ]),
    Mistake("postgres-clock-of-the-beginning", "postgres", "all",
            "the clock is that of the beginning of the transaction (T26)", [
                (POSTGRES + "statements.sql",
                 "floor(date_part('epoch', clock_timestamp()) * 1000)::bigint",
                 "floor(date_part('epoch', now()) * 1000)::bigint"),
            ],
            "an owner counts from before its request, and never more than the store says is left"),

    # ---- zookeeper ---------------------------------------------------------------------------------------------------
    Mistake("zookeeper-second-leads", "zookeeper", "process",
            "the second in the queue takes itself for the first", [
                (ZOOKEEPER + "latch_queue.c",
                 "if (v.ahead >= 0)\n",
                 "if (v.ahead >= 0 && v.ahead != v.leader)\n"),
            ]),
    Mistake("zookeeper-connected-is-standing", "zookeeper", "stall",
            "a session counts as standing while it is connected (T57)", [
                (ZOOKEEPER + "latch_session.c",
                 "    /* now was rounded down */\n",
                 "    if (s->connected)\n"
                 "        return s->deadline.timeout * 2 / 3;\n"
                 "    /* now was rounded down */\n"),
                (ZOOKEEPER + "latch_session.c",
                 FRESH,
                 "return s->connected;"),
            ]),
    Mistake("zookeeper-no-session-deadline", "zookeeper", "stall",
            "a session lasts until the server says that it has expired (T51)", [
                (ZOOKEEPER + "latch_session.c",
                 "    /* now was rounded down */\n",
                 "    if (s->established)\n"
                 "        return s->deadline.timeout;\n"
                 "    /* now was rounded down */\n"),
                (ZOOKEEPER + "latch_session.c",
                 FRESH,
                 "return s->established;"),
            ]),
    Mistake("zookeeper-old-session", "zookeeper", "all",
            "a node that an earlier session of ours made is led with (T51)", [
                (ZOOKEEPER + "latch.c",
                 "    if (owner != session)\n"
                 "        l->wanted = false;\n",
                 "    (void)owner;\n"
                 "    (void)session;\n"),
            ],
            "a member ends with its session, and the next one has a node of another name"),
    Mistake("zookeeper-takes-orphan", "zookeeper", "all",
            "a node of ours that is to be deleted is taken for a tenure (T11)", changes_of("LATCH_TAKES_ORPHAN"),
            "too rare: a stop, a lost answer and a start must meet; the simulator finds it"),

    # ---- runtime -----------------------------------------------------------------------------------------------------
    Mistake("runtime-no-deadline", "redis", "freeze",
            "whether one owns does not depend on the clock (T1)", [
                (RUNTIME + "actor_api.c",
                 "        if (left <= 0)\n"
                 "            return 0;\n",
                 ""),
            ]),
    Mistake("runtime-done-before-callback", "sqlite", "process",
            "on_released counts as done when it begins (T2)", [
                (RUNTIME + "callback.c",
                 "    else\n"
                 "        post_done(a, c->ran);\n"
                 "}",
                 "    else if (c->began != 0)\n"
                 "        post_done(a, c->ran);\n"
                 "}"),
                (RUNTIME + "callback.c",
                 "        c.ran = actor_owns(a, a->job_token);\n"
                 "    pthread_cleanup_push(",
                 "        c.ran = actor_owns(a, a->job_token);\n"
                 "    if (a->job_callback == CALLBACK_RELEASED) {\n"
                 "        post_done(a, c.ran);\n"
                 "        c.began = 0;\n"
                 "    }\n"
                 "    pthread_cleanup_push("),
            ]),
    Mistake("runtime-stop-not-shown", "redis", "process",
            "an owner that has left is told yes until the loop has seen it", [
                (RUNTIME + "contender.c",
                 "        if (event == STATUS_STOP)\n"
                 "            view_stop(&a->view);\n"
                 "        else\n",
                 "        if (event != STATUS_STOP)\n"),
                (RUNTIME + "contender.c",
                 "        view_stop(&a->view);\n"
                 "        a->resign_pause",
                 "        a->resign_pause"),
            ]),
    Mistake("runtime-answers-forged", "redis", "network",
            "an answer that failed counts as a renewal", [
                (RUNTIME + "host.c",
                 "        r->code = outcome_of(answer->code);",
                 "        r->code = r->to_store.op == SIMBA_RENEW ? 0 : outcome_of(answer->code);"),
                (RUNTIME + "host.c",
                 "    r->left_ms = bounded_left(answer->left_ms);",
                 "    r->left_ms = r->to_store.op == SIMBA_RENEW ? r->to_store.ttl_ms + r->to_store.transition_ms\n"
                 "                                               : bounded_left(answer->left_ms);"),
            ]),

    # ---- core --------------------------------------------------------------------------------------------------------
    Mistake("core-lease-from-reply", "postgres", "network",
            "the lease counts from the answer, not from the request (T6)", changes_of("LEASE_FROM_REPLY")),
    Mistake("core-release-before-drain", "mariadb", "process",
            "the store is told while user code still runs (T2)", changes_of("RELEASE_BEFORE_DRAIN")),
    Mistake("core-token-kept", "redis", "network",
            "a tenure that has ended here is taken up again (T58)", changes_of("TOKEN_KEPT"),
            "it is given back before the mutex is asked for again; the simulator finds it where that fails"),
    Mistake("core-stale-life", "zookeeper", "all",
            "a grant of before a stop begins a tenure after the start (T8)", changes_of("STALE_LIFE"),
            "too rare: a grant must be late by a stop and a start; the simulator finds it"),
    Mistake("core-no-next-try", "redis", "network",
            "a failed attempt sets no next one (T9)", changes_of("NO_NEXT_TRY"),
            "others go on, and nobody is promised to be the next; the simulator finds it (C9)"),
]
