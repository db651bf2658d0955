# sources.cmake: which files are compiled, by list and folder. A file that is in none is found by tools/tidy.

# sources(LIST FOLDER NAMES...): adds FOLDER/NAME.c for each name to the list.
function(sources list folder)
    set(all ${${list}})
    foreach(name IN LISTS ARGN)
        list(APPEND all ${PROJECT_SOURCE_DIR}/${folder}/${name}.c)
    endforeach()
    set(${list} ${all} PARENT_SCOPE)
endfunction()

# ---- the library -----------------------------------------------------------------------------

sources(base_sources src/base
    clock errno_text fork futex hash_table rng text thread)
sources(core_sources src/core
    calendar cron date duration handle id lease name owner period schedule status tenure ticks url watchdog zone
    zone_file)
sources(kit_sources src/backend/kit
    findings handles offload options password_file pending probe reconnect resolve worker)
sources(io_sources src/runtime
    actor actor_api callback client contender default_store delivery driver error executor host inquiry interest
    locker log loop metrics observer options process prometheus registry report request scheduler state thread_ref
    ticking timers trace trouble turn zoneinfo)
sources(io_sources src/backend/memory
    memory space)
sources(io_sources src/backend/sqlite
    boot_clock client_lock database database_note database_open database_setup database_transaction files harden
    inspect paths sqlite wakeup watcher)

# ---- stores, each a module -------------------------------------------------------------------

sources(redis_sources src/backend/redis
    config connection errors handshake info inspect list messages redis replies requests resp scripts sentinel
    stream subscriber tls topics votes)
sources(sql_sources src/backend/sql
    answers config connection inspect owner pass poller queue queue_connection queue_owned queue_waiter replies requests sql
    statements)
sources(mysql_sources src/backend/mysql
    config connection inspect mysql perform statements)
sources(postgres_sources src/backend/postgres
    config connection inspect perform postgres statements)
sources(zookeeper_sources src/backend/zookeeper
    config connection ensemble four_letter inspect latch latch_client latch_node latch_queue latch_session note
    note_data path query replies requests session session_deadline zookeeper)

# ---- programs --------------------------------------------------------------------------------

# What all of them begin with, and share.
sources(frame_sources src/cli
    address args cli config data follow frame help help_json lease_policy
    messages metrics_page notify owner_list program shown
    sqlite_path terminal yaml)
sources(frame_sources src/cli/commands
    bench history serve torture version watch)
sources(frame_sources src/cli/run
    outage signals)
sources(frame_sources src/base
    hash_table json rng schemes text thread)
sources(frame_sources src/core
    period)

sources(command_sources src/cli
    main)
sources(command_sources src/cli/commands
    completion doctor elect init leader lock once release schedule status tck)
sources(command_sources src/cli/run
    acquire candidate channel check cmd_lock cmd_watch guard hindrance keeper listen once_record poll_thread
    process_tree progress relay request responder run_options service_watchdog spawn)

sources(serve_sources src/serve
    figures history history_read main model record recorder rows serve show_history)
sources(http_sources src/serve/http
    http request stream)

sources(torture_sources lab/torture
    children endpoint fault judge judge_callbacks judge_lives judge_tenures judge_time network page pair plan proxy
    record report resources run server torture worker worker_contender worker_locker)
sources(torture_sources src/base
    schemes)
sources(bench_sources lab/bench
    bench bench_report)

# ---- tests -----------------------------------------------------------------------------------

sources(sim_sources tests/sim
    check mix names network node store ticker user worker world zookeeper_client zookeeper_server)
sources(sim_sources src/backend/zookeeper
    latch latch_client latch_node latch_queue latch_session path session_deadline)
sources(sim_sources src/backend/kit
    pending)
sources(scenario_sources tests/sim/scenarios
    main script)

sources(contract_sources tests/contract
    async_probe at_least callbacks close embed exclusion executor faults flaky handover input jvm_kit lifecycle
    locker locker_async locker_async_order locker_faults main notes observer options peer peer_main probe processes
    progress read_fork scheduler scheduler_threads scheduler_ticks scheduler_work suite thread_ends tokens trace
    work_probe)
sources(contract_sources tests/contract/sqlite
    damage faults files help refused_paths unreadable waking)
sources(contract_redis_sources tests/contract/redis
    facts faults forgets module queue reserved rights sentinels server)
sources(contract_sql_sources tests/contract/sql
    clock jobs module notes pass push queue safety server table traps)
sources(contract_zookeeper_sources tests/contract/zookeeper
    bad_server doctor ensemble faults server)
