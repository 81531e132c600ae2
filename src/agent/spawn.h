/* A spawn request, read: how a game server is to be started. Owned by whoever read it. */
#pragma once

#include "agent/process.h"
#include "base/str.h"
#include "store/archive.h"

#include <stdbool.h>
#include <stdint.h>

enum { SPAWN_WHY_MAX = 256, SPAWN_ARGUMENTS_MAX = 64, SPAWN_ENV_MAX = 64 };

struct json;

struct spawn {
    struct process_spec spec; /* folder is to be put in by whoever has it */
    bool has_deployment;
    uint8_t deployment[ARCHIVE_DIGEST];

    /* What spec points to. */
    struct json *root;
    const char *arguments[SPAWN_ARGUMENTS_MAX + 1];
    char *env[SPAWN_ENV_MAX + 8];
    size_t n_env;
};

/* 0, or ERR_BAD_ARGUMENT with a sentence. */
int spawn_read(struct str body, struct spawn **ret, char why[SPAWN_WHY_MAX]);
void spawn_free(struct spawn *s); /* NULL is fine */
