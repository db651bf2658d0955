/* prometheus.h: the labels that a user wants on every metric of a client; the page is for users. */
#ifndef RUNTIME_PROMETHEUS_H
#define RUNTIME_PROMETHEUS_H

struct simba_client;

/* Checks them and keeps a copy, in the order of their names: so equal labels are equal texts. 0, or
 * an error with its text. */
int prometheus_take_labels(struct simba_client *s, const char *text);
#endif
