/* The history: core's notes about players, refusals and the installation, as lines of the recorder.
 *
 * One JSON object a line, so that a person can search it without us:
 *
 *   {"at":"…","step":"reserved","player":"alice","fleet":"arena","room":12,"server":31,…}
 *   {"at":"…","step":"refused","player":"bob","reason":"banned","text":"player bob is banned: …"}
 *   {"at":"…","change":"host_silent","host":3,"name":"eu-1"}
 *
 * `step` is something that happened to `player` (or to each of `players`), `change` something that
 * was changed here; a ban is both. Whoever is refused over and over has few lines a minute and then
 * one that counts, so that nobody writes the history full. Credentials are never written, nor are
 * addresses.
 *
 * Owned by the service; on the loop's thread. */
#pragma once

#include "core/core.h"
#include "store/recorder.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct history;

enum {
    HISTORY_REFUSALS_WHOLE = 5, /* of the same player for the same reason in a minute */
    HISTORY_REFUSED_MAX = 1024, /* of which it is known */
};

struct history_config {
    const char *folder;
    int64_t max_mb; /* 0 = none is kept */
    int64_t days;   /* 0 = none is kept */
};

/* NULL when none is kept; everything here takes NULL. */
struct history *history_new(const struct history_config *config);
void history_free(struct history *h);

/* We serve from now on: the first line. */
void history_started(struct history *h, int64_t wall_ms, const char *digest);

/* What was released: notes become lines. digest is of the configuration in use. */
void history_release(struct history *h, const struct core *core, const struct effect *effects,
                     size_t n, int64_t wall_ms, const char *digest);

/* A door refused that account a place before core heard of it. What the client sent may be a token
 * in the wrong place, so nothing of it is kept, nor of a sentence that shows it: only which of the
 * operation's arguments was wrong, or NULL. */
void history_refused(struct history *h, int64_t wall_ms, const char *account, int err,
                     const char *argument);

/* Now and then: lines that count what was not written line by line. */
void history_tick(struct history *h, int64_t wall_ms);

/* The end of a turn: what there is goes to its thread. */
void history_turn(struct history *h);

/* False when none is kept. */
bool history_figures(const struct history *h, struct recorder_figures *ret);

/* For those who look: NULL when none is kept. */
struct recorder *history_recorder(const struct history *h);
const char *history_folder(const struct history *h);
