/* What the game server prints, in files that rotate: a few of a fixed size, never more. Whoever
 * prints faster than an eighth of a file each second, for longer than all files but one last, is
 * cut: the rest is counted and dropped, so that neither the game server nor the disk waits for
 * anybody. A disk that is full drops as well. A line in the log says how much is missing there.
 * Owned by the shim, which embeds it; names are relative to its working folder. */
#pragma once

#include "shim/shim.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct output {
    int fd; /* -1 = the file could not be opened (yet) */
    int files;
    int64_t file_bytes;
    int64_t size;      /* of the newest file */
    int64_t budget;    /* bytes that may be written now */
    int64_t budget_ms; /* when it was last filled up */
    int64_t again_ms;  /* after an error: not before */
    uint64_t gap;      /* dropped since something was last written */
    uint64_t gap_lines;
    uint64_t dropped;
    bool mid_line;
    bool failed; /* the last write did not succeed */
    size_t tail_len;
    char tail[SHIM_TAIL_MAX]; /* the last output, written or not */
};

/* Nothing is written before output_open, which is for when the working folder is the right one. */
void output_init(struct output *o, int64_t file_bytes, int files, int64_t now_ms);
void output_open(struct output *o);
void output_put(struct output *o, const char *data, size_t n, int64_t now_ms);

/* It is over: the files now end with the last output, whatever was dropped before it. */
void output_end(struct output *o, int64_t now_ms);
