/* request.h: the head of a request of HTTP/1.1, as much of it as the responder needs. Pure. */
#ifndef CLI_RUN_REQUEST_H
#define CLI_RUN_REQUEST_H

#include <stdbool.h>
#include <stddef.h>

struct request_head {
    bool is_head, keeps, has_body; /* keeps: the connection stays open for another request */
    const char *method, *path,
        *host; /* the path without its query; host NULL: none, "": several, of which
                                         a proxy may have taken another than we would */
};

/* The bytes of the request line and the headers, with the empty line at the end; 0: they are not all
 * there. */
size_t request_length(const char *bytes, size_t count);

/* Of so many bytes, as request_length() said; they are cut to pieces, and q borrows them. 0, or the status
 * to refuse it with. */
int request_parse(char *bytes, size_t length, struct request_head *q);
#endif
