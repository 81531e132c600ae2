/* The past: lines of the history read again, and said in sentences. Pure, so that it runs on any
 * thread; what history.c writes is read here. */
#pragma once

#include "api/shape.h"
#include "base/json.h"
#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PAST_SENTENCE_MAX = 640 };

/* One line. Texts are "" where it has none, and live as long as the line. */
struct past_line {
    struct json *json;
    int64_t at_ms;
    const char *step;
    const char *change;
    const char *player;
    const char *fleet;
    const char *reason;
    const char *text;
    const char *who;
    const char *how;
    const char *name;
    const char *action;
    const char *target_kind;
    const char *version;
    const char *digest;
    int64_t room;
    int64_t match;
    int64_t server;
    int64_t ticket;
    int64_t seat;
    int64_t host;
    int64_t target;
    int64_t position;
    int64_t count; /* of a refusal: so often; 1 unless it says otherwise */
    int64_t lines;
    int64_t for_ms;
    int32_t lobby; /* SHAPE_NO_INT32 = none */
    const struct json *players;
    char sentence[PAST_SENTENCE_MAX];
};

/* False when it is no line of ours. */
bool past_read(struct str text, struct past_line *ret);
void past_done(struct past_line *line);

/* True when it is about that player. */
bool past_concerns(const struct past_line *line, struct str account);

/* Fill in line->sentence: of a step in somebody's journey, of a change. */
void past_say_step(struct past_line *line);
void past_say_change(struct past_line *line);

extern const struct shape journey_entry_shape; /* struct past_line */
extern const struct shape change_shape;        /* struct past_line */
