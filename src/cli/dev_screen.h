/* The live screen of `muster dev`: what GET /v1/status says, the last lines of all processes, and
 * commands to try. It asks over HTTP like any client. Embedded in dev.c. */
#pragma once

#include "cli/client.h"
#include "cli/demo.h"
#include "cli/term.h"

enum { DEV_SCREEN_LINES = 256, DEV_SCREEN_LINE_MAX = 200 };

struct dev_screen {
    const struct demo *demo;
    struct term term;
    struct client *client; /* NULL until Muster has said where it is */
    struct client_answer status;
    bool asked;  /* status holds an answer, or why there is none */
    bool dirty;  /* something has changed since it was drawn */
    bool ending; /* the status is not asked for any more */
    char lines[DEV_SCREEN_LINES][DEV_SCREEN_LINE_MAX]; /* a ring */
    size_t n_lines;                                    /* ever */
    int64_t next_ask_ms;
    int64_t next_draw_ms;
};

/* Takes the terminal. */
void dev_screen_open(struct dev_screen *s, const struct demo *demo);

/* Gives the terminal back; with `lines` the last ones are printed there, so that what went wrong
 * can be read. */
void dev_screen_close(struct dev_screen *s, bool lines);

/* A line of one of the processes; cut when it is long. */
void dev_screen_line(struct dev_screen *s, const char *prefix, const char *line);

/* Asks and draws what is due; returns when to call it again (clock_monotonic_ms). */
int64_t dev_screen_turn(struct dev_screen *s);

/* Everything is being stopped: says so, and asks no more. */
void dev_screen_end(struct dev_screen *s);
