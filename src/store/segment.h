/* Segments of the recorder: their names, and finding them. Visible inside src/store only; owns
 * nothing. */
#pragma once

#include "base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    SEGMENT_NAME_SIZE = 48,
    SEGMENT_BLOCK = 4096,
    SEGMENT_DIGITS_MAX = 9, /* one a second lasts thirty years, and 30 bits hold it */
};

struct segment {
    int64_t number;
    int64_t from_ms;  /* of its first line */
    int64_t until_ms; /* it was written to last */
    int64_t size;
    char name[SEGMENT_NAME_SIZE];
};

/* "00000042-20261116T031204Z.jsonl". Returns dst. */
const char *segment_name(int64_t number, int64_t from_ms, char dst[SEGMENT_NAME_SIZE]);

/* False when it is no such name. */
bool segment_name_parse(const char *name, int64_t *ret_number, int64_t *ret_from_ms);

/* All segments of a folder, by number; *ret is the caller's to free. 0 when there is no folder. */
size_t segments_list(const char *folder, struct segment **ret);

/* What it takes of the disk at least: so that a thousand starts in a row are bounded too. */
int64_t segment_weight(const struct segment *s);
