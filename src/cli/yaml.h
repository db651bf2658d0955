/* yaml.h: the scalars of a configuration file. */
#ifndef CLI_YAML_H
#define CLI_YAML_H

#include "cli/step.h"

struct cli;

/* Calls found() for each scalar: its key with dots, its line. found returns NULL, or what is
 * wrong with it. No file is no mistake. */
typedef const char *yaml_fn(void *data, const char *key, const char *value, long line);
struct step yaml_read(struct cli *c, const char *path, yaml_fn *found, void *data);
#endif
