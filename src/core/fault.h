/* Faults: what a server that did not start says, and about whom. Soft: what is broken fails again
 * after a restart, and what is not should be tried. Visible inside src/core only. */
#pragma once

#include "base/list.h"
#include "base/str.h"
#include "core/event.h"

#include <stdbool.h>
#include <stdint.h>

struct core;
struct host;
struct room;
struct room_failure;
struct version;

enum {
    FAULT_LINE_SIZE = 100, /* of what a server printed last */
    FAULT_SUSPECTS = 4,
    QUARANTINE_HOSTS = 2, /* a version that failed on so many hosts of a region … */
    QUARANTINE_TIMES = 3, /* … or so often, and never worked between, is closed there */
};

/* A pause after a failure: nothing new is tried until it is over. It is doubled by each attempt
 * that begins after it and fails too. */
struct pause {
    int32_t failures;       /* of distinct attempts in a row */
    int64_t since_core_ms;  /* attempts that had begun by then say nothing more */
    int64_t until_awake_ms; /* on DEADLINE_AWAKE's clock */
};

/* An attempt that began then has failed. False when it was under way already as the pause began,
 * or as all was well: then nothing has changed. */
bool pause_failed(const struct core *core, struct pause *pause, int64_t began_core_ms);

/* All is well again. */
void pause_over(const struct core *core, struct pause *pause);

int64_t pause_left_ms(const struct core *core, const struct pause *pause); /* 0 = it is over */

/* A version that failed to start on a host. */
struct fault {
    struct host *host;
    struct version *version;
    struct pause pause;
    struct link on_host;
    struct link of_version;
};

/* The same of a whole region, since the last start that worked there. */
struct fault_region {
    struct version *version;
    int8_t region;
    int32_t times;
    int64_t first_host;
    bool on_others; /* it failed on another host, too */
    char line[FAULT_LINE_SIZE];
    bool quarantined;
    struct pause pause; /* quarantined: until the next trial */
    int64_t trial;      /* the room without players that is being started; 0 = none */
    struct link of_version;
    struct link in_quarantine; /* core->quarantined */
};

/* A start with a player's settings that failed, as hashes. */
struct fault_suspect {
    uint64_t account;
    uint64_t settings;
};

/* A server was not started, or never became ready. */
void fault_failed(struct core *core, struct room *room, const struct room_failure *failure);

/* A server has become ready: its host works, and so does its version. */
void fault_worked(struct core *core, struct room *room);

/* The host's agent is another one, or is back after it could not be heard. */
void fault_host_is_well(struct core *core, struct host *host);

void fault_forget_host(struct host *host);

/* It runs another deployment, or an operator has enabled it: the past counts no more. */
void fault_forget_version(struct core *core, struct version *version);

/* For how long that version is not started on that host; 0 = it may be. */
int64_t fault_left_ms(const struct core *core, const struct host *host,
                      const struct version *version);

/* How it fails in that region; NULL = it does not, or nobody knows. */
struct fault_region *fault_in_region(const struct version *version, int8_t region);

/* What the old core knows of versions the fresh one knows. */
void faults_take_over(struct core *fresh, const struct core *old);

/* On a tick: trials of versions that are quarantined. */
void faults_settle(struct core *core);

/* As much of it as fits, on one line, cut where a character ends. */
void fault_keep_line(char *dst, size_t cap, struct str from);

void fault_version_done(struct version *version);
