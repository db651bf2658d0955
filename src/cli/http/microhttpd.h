/* microhttpd.h: libmicrohttpd, loaded when it is needed. It brings a library for TLS along, which
 * takes longer to load than a whole simba lock. */
#ifndef CLI_HTTP_MICROHTTPD_H
#define CLI_HTTP_MICROHTTPD_H

#include <microhttpd.h>

#define MICROHTTPD_FUNCTIONS(X)          \
    X(MHD_start_daemon)                  \
    X(MHD_stop_daemon)                   \
    X(MHD_run)                           \
    X(MHD_get_timeout)                   \
    X(MHD_get_daemon_info)               \
    X(MHD_get_connection_info)           \
    X(MHD_add_connection)                \
    X(MHD_get_connection_values)         \
    X(MHD_lookup_connection_value)       \
    X(MHD_create_response_from_buffer)   \
    X(MHD_create_response_from_callback) \
    X(MHD_add_response_header)           \
    X(MHD_queue_response)                \
    X(MHD_destroy_response)              \
    X(MHD_suspend_connection)            \
    X(MHD_resume_connection)

struct microhttpd {
#define X(name) __typeof__(&name) name;
    MICROHTTPD_FUNCTIONS(X)
#undef X
};

/* NULL: it cannot be loaded; *why says why, until the next call of dlerror(). */
const struct microhttpd *microhttpd_load(const char **why);
#endif
