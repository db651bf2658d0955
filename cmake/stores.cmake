# stores.cmake: the stores that are not part of every build. For each there is a list of what it needs,
# its objects, and a module made of them, unless it is built in.

include(cmake/statements.cmake)

# ---- redis ---------------------------------------------------------------------------------------

if("redis" IN_LIST SIMBA_STORES)
    pkg_check_modules(OPENSSL IMPORTED_TARGET openssl)
    pkg_check_modules(HIREDIS IMPORTED_TARGET hiredis)
    if(NOT OPENSSL_FOUND OR NOT HIREDIS_FOUND)
        message(FATAL_ERROR "For redis: Debian's libhiredis-dev and libssl-dev are needed. "
            "scripts/setup installs them; -DSIMBA_STORES= builds without.")
    endif()
    set(redis_needs PkgConfig::HIREDIS PkgConfig::OPENSSL)
    set(redis_flags ${HIREDIS_LDFLAGS} ${OPENSSL_LDFLAGS}) # to link it in
    set(redis_static_flags ${HIREDIS_STATIC_LDFLAGS} ${OPENSSL_STATIC_LDFLAGS}) # and their archives
    set(redis_schemes redis) # up to a +
    set(redis_module_needs PkgConfig::HIREDIS) # of simba-redis.so; rediss: has a module of its own
endif()

# ---- zookeeper -----------------------------------------------------------------------------------

if("zookeeper" IN_LIST SIMBA_STORES)
    find_path(ZOOKEEPER_INCLUDE zookeeper/zookeeper.h)
    find_library(ZOOKEEPER_LIBRARY zookeeper_st) # the one without threads; it has no .pc file
    if(NOT ZOOKEEPER_INCLUDE OR NOT ZOOKEEPER_LIBRARY)
        message(FATAL_ERROR "For zookeeper: Debian's libzookeeper-st-dev is needed. "
            "scripts/setup installs it; -DSIMBA_STORES=redis builds without.")
    endif()
    set(zookeeper_needs ${ZOOKEEPER_LIBRARY})
    set(zookeeper_flags -lzookeeper_st)
    set(zookeeper_static_flags -lzookeeper_st)
    set(zookeeper_schemes zookeeper)
endif()

# ---- mysql, postgres -----------------------------------------------------------------------------

if("mysql" IN_LIST SIMBA_STORES)
    pkg_check_modules(MARIADB IMPORTED_TARGET libmariadb)
    pkg_check_modules(OPENSSL IMPORTED_TARGET openssl)
    if(NOT MARIADB_FOUND OR NOT OPENSSL_FOUND)
        message(FATAL_ERROR "For mysql: Debian's libmariadb-dev and libssl-dev are needed. "
            "scripts/setup installs it; -DSIMBA_STORES= builds without.")
    endif()
    set(mysql_needs PkgConfig::MARIADB PkgConfig::OPENSSL)
    set(mysql_flags ${MARIADB_LDFLAGS} ${OPENSSL_LDFLAGS})
    set(mysql_static_flags ${MARIADB_STATIC_LDFLAGS} ${OPENSSL_STATIC_LDFLAGS})
    set(mysql_schemes mysql mariadb)
    set(mysql_frame sql) # another folder that it is built on
    set(mysql_tables fenced versioned) # kinds of tables that its statements are made for
endif()

if("postgres" IN_LIST SIMBA_STORES)
    pkg_check_modules(POSTGRES IMPORTED_TARGET libpq)
    pkg_check_modules(OPENSSL IMPORTED_TARGET openssl)
    if(NOT POSTGRES_FOUND OR NOT OPENSSL_FOUND)
        message(FATAL_ERROR "For postgres: Debian's libpq-dev and libssl-dev are needed. "
            "scripts/setup installs it; -DSIMBA_STORES= builds without.")
    endif()
    set(postgres_needs PkgConfig::POSTGRES PkgConfig::OPENSSL)
    set(postgres_flags ${POSTGRES_LDFLAGS} ${OPENSSL_LDFLAGS})
    set(postgres_static_flags ${POSTGRES_STATIC_LDFLAGS} ${OPENSSL_STATIC_LDFLAGS})
    set(postgres_schemes postgres postgresql)
    set(postgres_frame sql)
    set(postgres_tables marked fenced versioned)
endif()

# ---- all of them ---------------------------------------------------------------------------------

if(SIMBA_BUILTIN STREQUAL "all")
    set(SIMBA_BUILTIN ${SIMBA_STORES})
endif()
foreach(store IN LISTS SIMBA_BUILTIN)
    if(NOT store IN_LIST SIMBA_STORES)
        message(FATAL_ERROR "SIMBA_BUILTIN: ${store} is not one of SIMBA_STORES (${SIMBA_STORES})")
    endif()
endforeach()

# Compiles the stores, and adds those that are built in to the lists of these names.
macro(store_objects objects_list needs_list)
    set(builtin_list "")
    set(frame_list "")
    foreach(store IN LISTS SIMBA_STORES)
        file(GLOB scripts CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/backend/${store}/lua/*.lua)
        foreach(script IN LISTS scripts)
            cmake_path(GET script STEM stem)
            embed_script(${script} script_${stem} ${generated}/backend/${store}/script_${stem}.h)
            embed(${script} ${stem}_lua ${generated}/backend/${store}/${stem}_lua.h) # for bench/redis_raw.h
        endforeach()
        if("${${store}_frame}" STREQUAL "sql")
            foreach(script schema schema_note upgrade)
                embed(${PROJECT_SOURCE_DIR}/src/backend/${store}/${script}.sql ${script}_sql
                    ${generated}/backend/${store}/${script}_sql.h)
            endforeach()
            embed_statements(${store} ${${store}_tables})
        endif()
        set(frame "${${store}_frame}")
        if(frame AND NOT TARGET simba_${frame}_objects)
            add_library(simba_${frame}_objects OBJECT ${${frame}_sources})
            target_include_directories(simba_${frame}_objects PRIVATE ${internal})
            target_link_libraries(simba_${frame}_objects PRIVATE simba_flags PkgConfig::LIBUV
                Threads::Threads)
            set_target_properties(simba_${frame}_objects PROPERTIES POSITION_INDEPENDENT_CODE ON)
        endif()
        add_library(simba_${store}_objects OBJECT ${${store}_sources})
        target_include_directories(simba_${store}_objects PRIVATE ${internal} ${generated})
        target_link_libraries(simba_${store}_objects PRIVATE simba_flags PkgConfig::LIBUV
            Threads::Threads ${${store}_needs})
        set_target_properties(simba_${store}_objects PROPERTIES POSITION_INDEPENDENT_CODE ON)
        if(store IN_LIST SIMBA_BUILTIN)
            list(APPEND ${objects_list} $<TARGET_OBJECTS:simba_${store}_objects>)
            list(APPEND ${needs_list} ${${store}_needs})
            list(APPEND builtin_flags ${${store}_flags})
            list(APPEND builtin_static_flags ${${store}_static_flags})
            string(APPEND builtin_list " X(${store})")
            if(frame AND NOT frame IN_LIST frame_list)
                list(APPEND frame_list ${frame})
                list(APPEND ${objects_list} $<TARGET_OBJECTS:simba_${frame}_objects>)
            endif()
        else()
            list(APPEND store_test_objects $<TARGET_OBJECTS:simba_${store}_objects>)
            list(APPEND store_test_needs ${${store}_needs})
        endif()
    endforeach()
    foreach(store IN LISTS SIMBA_STORES)
        set(frame "${${store}_frame}")
        if(frame AND NOT frame IN_LIST frame_list)
            list(APPEND frame_list ${frame})
            list(APPEND store_test_objects $<TARGET_OBJECTS:simba_${frame}_objects>)
        endif()
    endforeach()
    file(CONFIGURE OUTPUT ${generated}/runtime/builtin.h
        CONTENT "#define SIMBA_BUILTIN_STORES(X)${builtin_list}\n")
endmacro()

# A module is not linked with libsimba and needs no symbol of it: it would bring a second libsimba into a
# program that has the archive linked in, and it would not find the symbols of a library that is loaded for
# one user only, as Python does. What it calls has no state, and it has copies of that which nobody else
# sees: the base, the kit, and of the core the parts of a URL and durations.
function(store_module name store objects needs)
    set(target simba_${name}_module)
    add_library(${target} MODULE ${PROJECT_SOURCE_DIR}/src/backend/module.c
        $<TARGET_OBJECTS:simba_base> $<TARGET_OBJECTS:simba_kit>
        "$<FILTER:$<TARGET_OBJECTS:simba_core>,INCLUDE,/url[.]|/duration[.]>" ${objects})
    if(${store}_frame)
        target_sources(${target} PRIVATE $<TARGET_OBJECTS:simba_${${store}_frame}_objects>)
    endif()
    target_include_directories(${target} PRIVATE ${internal})
    target_compile_definitions(${target} PRIVATE SIMBA_MODULE_BACKEND=${store}_backend)
    target_link_libraries(${target} PRIVATE simba_flags PkgConfig::LIBUV Threads::Threads ${needs})
    target_link_options(${target} PRIVATE
        LINKER:--version-script=${PROJECT_SOURCE_DIR}/cmake/module.map)
    if(NOT SIMBA_SANITIZE)
        target_link_options(${target} PRIVATE LINKER:-z,defs)
    endif()
    set_target_properties(${target} PROPERTIES
        PREFIX "" OUTPUT_NAME simba-${name} SUFFIX .so LINKER_LANGUAGE C
        LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/modules)
    install(TARGETS ${target} LIBRARY DESTINATION ${module_dir})
endfunction()

macro(store_modules)
    foreach(store IN LISTS SIMBA_STORES)
        if(store IN_LIST SIMBA_BUILTIN)
            continue()
        endif()
        set(own_objects $<TARGET_OBJECTS:simba_${store}_objects>)
        if(store STREQUAL "redis")
            store_module(rediss redis "${own_objects}" "${redis_needs}")
            store_module(redis redis
                "${PROJECT_SOURCE_DIR}/src/backend/redis/tls_none.c;$<FILTER:${own_objects},EXCLUDE,/tls[.]c>"
                "${redis_module_needs}")
        else()
            store_module(${store} ${store} "${own_objects}" "${${store}_needs}")
        endif()
        foreach(scheme IN LISTS ${store}_schemes)
            if(scheme STREQUAL store)
                continue()
            endif()
            add_custom_command(TARGET simba_${store}_module POST_BUILD
                COMMAND ${CMAKE_COMMAND} -E create_symlink simba-${store}.so
                    ${PROJECT_BINARY_DIR}/modules/simba-${scheme}.so)
            install(FILES ${PROJECT_BINARY_DIR}/modules/simba-${scheme}.so DESTINATION ${module_dir})
        endforeach()
    endforeach()
endmacro()
