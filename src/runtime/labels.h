/* labels.h: the labels that a user wants on every metric of a client. */
#ifndef RUNTIME_LABELS_H
#define RUNTIME_LABELS_H

struct simba_client;

/* Checks them and keeps a copy, in the order of their names: so equal labels are equal texts. 0, or
 * an error with its text. */
int labels_take(struct simba_client *s, const char *text);
#endif
