/* A tally of refusals: how many for which reason, and who was refused again and again. Pure; owned
 * by whoever counts, on any thread. */
#pragma once

#include "api/past.h"
#include "base/map.h"

enum {
    TALLY_REASONS_MAX = 128,
    TALLY_PLAYERS_MAX = 100 * 1000, /* who is told apart; others are counted all the same */
    TALLY_REPEATED_MAX = 50,        /* shown … */
    TALLY_REPEATED_MIN = 3,         /* … when so often refused for the same reason */
    TALLY_CODE_MAX = 32,
};

struct tally_reason {
    char code[TALLY_CODE_MAX];
    int64_t count;
    int64_t players;
};

struct tally_player {
    char account[65];
    int reason; /* in reasons */
    int64_t count;
    int64_t first_ms;
    int64_t last_ms;
};

struct tally {
    int64_t since_ms;
    int64_t total;
    struct tally_reason reasons[TALLY_REASONS_MAX];
    int n_reasons;
    struct tally_player *players;
    size_t n_players;
    size_t cap_players;
    struct map by_player; /* hash of account and reason → place in players + 1 */
};

/* Embedded: begins zeroed. */
void tally_done(struct tally *t);

/* A refusal; lines come newest first. */
void tally_add(struct tally *t, const struct past_line *line);

/* Sorts; then it may be written. */
void tally_finish(struct tally *t);

/* What is shown of it; texts live as long as the tally. */
struct tally_reason_view {
    const char *reason;
    const char *sentence;
    int64_t count;
    int64_t players;
};
struct tally_repeated_view {
    const char *account;
    const char *reason;
    int64_t count;
    int64_t first_ms;
    int64_t last_ms;
};

/* The reasons, the commonest first; and those who were refused most often. */
void tally_write_reasons(struct json_writer *w, const struct tally *t);
void tally_write_repeated(struct json_writer *w, const struct tally *t);

extern const struct shape refused_reason_shape;   /* struct tally_reason_view */
extern const struct shape refused_repeated_shape; /* struct tally_repeated_view */
