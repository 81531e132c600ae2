/* Archives: deployments as they come (tar.gz or zip) and as they are kept: unpacked once into a
 * folder named by the archive's SHA-256, read-only, complete or not there at all. What an archive
 * holds is not trusted: names that lead out of the folder, links, devices, names given twice and
 * bombs are refused, and nothing of a refused archive stays.
 *
 * Everything here blocks: it is called on a thread of its own. Nothing is owned. */
#pragma once

#include "base/str.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    ARCHIVE_DIGEST = 32,
    ARCHIVE_HEX = 2 * ARCHIVE_DIGEST + 1,
    ARCHIVE_WHY_MAX = 400,
    ARCHIVE_NAME_MAX = 1024, /* of one file, with its folders */
};

struct archive_limits {
    int64_t unpacked_bytes;
    int64_t files;
    int64_t ratio; /* unpacked to packed, where that is more than a few MiB */
};

extern const struct archive_limits archive_limits_default;

/* What reads archives is loaded when it is first needed. NULL, or what is wrong as a clause. */
const char *archive_load(void);

/* The SHA-256 of a whole file. 0, or ERR_IO, also when *stop became true; stop NULL = never. */
int archive_digest(int fd, const _Atomic bool *stop, uint8_t ret[ARCHIVE_DIGEST]);

/* Lower-case hexadecimal with a NUL; returns dst. And back: false when it is not that. */
const char *archive_hex(const uint8_t digest[ARCHIVE_DIGEST], char dst[ARCHIVE_HEX]);
bool archive_from_hex(struct str hex, uint8_t ret[ARCHIVE_DIGEST]);

/* Unpacks the archive at `path` into parent/name, which appears at once and complete. When it is
 * there already nothing is done. 0, ERR_BAD_ARCHIVE with a sentence for whoever made it, or ERR_IO
 * with one for the operator. */
int archive_unpack(const char *path, const char *parent, const char *name,
                   const struct archive_limits *limits, char why[ARCHIVE_WHY_MAX]);

/* Removes a folder with everything in it, also where it is read-only. Missing is fine. */
void archive_remove(const char *parent, const char *name);
