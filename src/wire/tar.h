/* Tar: the 512-byte heads between the files of a tar archive, as far as our backups have them:
 * plain files with short names. Pure functions over bytes; nothing is owned. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TAR_BLOCK = 512, TAR_NAME_MAX = 100 };

struct tar_entry {
    char name[TAR_NAME_MAX]; /* "" at the archive's end */
    int64_t size;
    int64_t modified_s;
};

/* A head that tar(1) understands: owned by root, mode 0600. The name must not be empty. */
void tar_encode(const struct tar_entry *entry, uint8_t ret[TAR_BLOCK]);

/* False for what is no head, is damaged, or is anything but a plain file: links, folders, long
 * names. A block of zeros is the archive's end. */
bool tar_decode(const uint8_t block[TAR_BLOCK], struct tar_entry *ret);

/* Zeros that follow a file of that size, up to the next block. */
static inline size_t tar_padding(int64_t size)
{
    return (size_t)(-size & (TAR_BLOCK - 1));
}
