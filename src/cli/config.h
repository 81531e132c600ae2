/* The configuration of `muster serve`: defaults, then what a YAML file says. The command line is
 * put on top by serve.c. Owned by whoever declares it; it is large, so on the heap. */
#pragma once

#include "core/core.h"

#include <stddef.h>
#include <stdint.h>

enum { CONFIG_WHY_MAX = 512, CONFIG_FILE_MAX = 1024 * 1024 };

struct config {
    struct core_config core;
    char bind_ip[46];
    uint16_t server_port;
    uint16_t manager_port;
    int64_t connections; /* at most so many, over all ports */
    int64_t connections_per_address;
};

void config_default(struct config *ret);

/* Puts the file's settings on top of *ret. On failure returns ERR_IO or ERR_INVALID_REQUEST, why is
 * a sentence naming file, place and mistake (never a token), and *ret must not be used. */
int config_load(const char *path, struct config *ret, char why[CONFIG_WHY_MAX]);

/* The same for text already in memory; name stands for the file in sentences. */
int config_parse(const char *name, const char *text, size_t len, struct config *ret,
                 char why[CONFIG_WHY_MAX]);
