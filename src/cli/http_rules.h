/* http_rules.h: what the two HTTP servers have in common: the small one of --listen (run/responder.c) and
 * that of simba serve. What they allow, and what they say.
 *
 * Limits: a server has a fixed number of connections, and each a fixed number of bytes. It raises the
 *   limit of descriptors for them; where it may not, it has fewer. Where all connections are taken, a
 *   new one takes the place of that which has said nothing complete for the longest time. What is not
 *   a complete request in time is dropped, and so is a client that does not take its answer in time.
 *   While the answers that clients have yet to take are too much together, there are only small ones. */
#ifndef CLI_HTTP_RULES_H
#define CLI_HTTP_RULES_H

#define HTTP_CONNECTIONS 64
#define HTTP_REQUEST_BYTES \
    8192 /* a request line and its headers may have so many; twice as many: 414, 431 */
#define HTTP_REQUEST_MS 5000 /* a client sends its first request within this … */
#define HTTP_IDLE_MS 30000   /* … every other one within this after the last answer … */
#define HTTP_ANSWER_MS 30000 /* … and takes an answer within this; else it is dropped */
#define HTTP_UNSENT_BYTES \
    ((size_t)32 * 1024 * 1024) /* of answers that clients have yet to take; beyond: 503, … */
#define HTTP_SMALL_BYTES ((size_t)32 * 1024) /* … but for small ones, such as of checks */
#define HTTP_ACCEPTS_PER_TURN 16
#define HTTP_NO_DESCRIPTORS_MS 100 /* then it is tried again */

#define HTTP_TEXT "text/plain; charset=utf-8"
#define HTTP_HTML "text/html; charset=utf-8"
#define HTTP_JSON "application/json"
#define HTTP_EVENTS "text/event-stream"

/* Headers of every answer; a handler may say otherwise where it is a default. */
#define HTTP_EVERY_ANSWER(X)                                                         \
    X("Cache-Control", "no-store", true)                                             \
    X("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'", true) \
    X("X-Content-Type-Options", "nosniff", false)                                    \
    X("X-Frame-Options", "DENY", false)                                              \
    X("Referrer-Policy", "no-referrer", false)

#define HTTP_SAYS_FULL "Too many answers wait for clients; try again later.\n"
#define HTTP_SAYS_NOTHING "There is no answer.\n"
#define HTTP_SAYS_READ_ONLY "This is for reading: GET and HEAD.\n"
#define HTTP_SAYS_NO_BODY "A request has no body here.\n"
#define HTTP_SAYS_NO_PATH "There is no such path; there are:"
#endif
