/* words.h: a question of four letters (srvr, conf, …) to one server, outside of any session. On the
 * loop; for the operator's eyes only. */
#ifndef BACKEND_ZOOKEEPER_WORDS_H
#define BACKEND_ZOOKEEPER_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <uv.h>

#define WORD_TEXT_MAX 4096

struct word {
    uv_tcp_t tcp;
    uv_connect_t connect;
    uv_write_t write;
    const char *word;
    bool open, ended;
    int error; /* libuv's; 0: none */
    size_t length;
    char text[WORD_TEXT_MAX]; /* the answer so far */
    void (*closed)(struct word *w);
    void *data;
};

/* closed(): after the end, when the word can be freed. False: it never began, and error says why. */
bool zk_word_ask(struct word *w, uv_loop_t *loop, const char *word, const struct sockaddr *to,
                 void (*closed)(struct word *w), void *data);
void zk_word_give_up(struct word *w); /* no answer any more */
#endif
