/* The recorder: lines of what happened, kept in files for who asks later. Each line is a JSON
 * object that begins with its time:
 *
 *   {"at":"2026-11-16T03:12:04.123Z", ... }
 *
 * The loop adds lines, a thread of its own writes them. When they cannot be written they are lost
 * and counted, and nothing else comes of it: who needs to be sure looks at the journal. The files
 * are bounded together, in bytes and in days; what is oldest goes first. Nothing is synced: lines
 * outlive the process, but the last seconds not the machine.
 *
 *   history/00000042-20261116T031204Z.jsonl
 *
 * A segment is named by its number, which only grows, and by the time of its first line. A process
 * begins a new one, so that a line which was torn is the last of its file.
 *
 * Owned by the service. All but recorder_settle and recorder_search belong to one thread. */
#pragma once

#include "base/buf.h"
#include "base/str.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct recorder;

enum {
    RECORDER_LINE_MAX = 16 * 1024,
    RECORDER_WAITING_MAX = 8 * 1024 * 1024, /* bytes for a thread that does not keep up */
    RECORDER_AT_SIZE = 25,                  /* "2026-11-16T03:12:04.123Z" and its end */
};

struct recorder_limits {
    int64_t bytes_max; /* of all segments */
    int64_t age_max_ms;
    int64_t reserve_bytes; /* nothing is written when the disk has less left: it is the store's */
    int64_t retry_ms;      /* what failed is tried again after this; until then lines are lost */
};

/* Cannot fail: what is wrong with the folder shows when a line is written. The folder is made
 * then. */
struct recorder *recorder_start(const char *folder, const struct recorder_limits *limits);

/* Writes what was added, unless the disk hangs. NULL is fine. */
void recorder_stop(struct recorder *r);

/* The next line: `members` of its object after "at", as "\"step\":\"left\"", of at most
 * RECORDER_LINE_MAX bytes. Copied. */
void recorder_add(struct recorder *r, int64_t wall_ms, struct str members);

/* Hands to the thread what was added. Often. */
void recorder_turn(struct recorder *r);

struct recorder_figures {
    int64_t written; /* lines since the start */
    int64_t lost;
    int64_t bytes; /* of all segments, as of the last look */
    int64_t segments;
    bool failing; /* the last lines could not be written */
};
void recorder_figures(struct recorder *r, struct recorder_figures *ret);

/* Waits until what was handed over before is written, at most wait_ms. Any thread. */
void recorder_settle(struct recorder *r, int64_t wait_ms);

/* ── looking ───────────────────────────────────────────────────────────────────────────────── */

struct recorder_query {
    int64_t from_ms;         /* lines from then on … */
    int64_t to_ms;           /* … and before this */
    int64_t place;           /* `place` of the search that this one goes on with; 0 = the newest */
    struct str needle;       /* lines that have it somewhere; they may still be others */
    int64_t patience_ms;     /* how long to look */
    const atomic_bool *stop; /* set by another thread: nobody waits for it any more; may be NULL */

    /* Each line that fits, the newest first, without its end. False = enough: this one was not
     * taken. */
    bool (*line)(void *user, struct str line);
    void *user;
};

struct recorder_reach {
    int64_t since_ms; /* everything from then on was seen; 0 = there is nothing */
    bool cut;         /* there may be older ones in the asked time … */
    int64_t place;    /* … and to go on with them begins here, however many have one time */
};

/* Reads the segments of a folder; on a thread that may wait for the disk. Lines that were torn and
 * files that are none of ours are passed over. Unless it is stopped it gets on by a block at least,
 * so that who goes on again and again comes to the end. */
void recorder_search(const char *folder, const struct recorder_query *query,
                     struct recorder_reach *ret);

/* Unix time as the text lines begin with. Returns dst. */
const char *recorder_at(int64_t wall_ms, char dst[RECORDER_AT_SIZE]);
