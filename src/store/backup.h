/* A backup: one tar archive with all that a node needs to go on, of one moment.
 *
 *   README       what this is, for whoever finds it
 *   manifest     version, format, batch and time, one "name: value" a line
 *   secret       what credentials are derived from: whoever has it can make any
 *   state.db     all tables as they were at that batch
 *   deployments/ archives that agents fetch, each under its SHA-256
 *   SHA256SUMS   of all before it; an archive without it was cut off
 *
 * Owned by whoever made it. backup_make blocks; the rest is quick. */
#pragma once

#include "base/buf.h"
#include "store/store.h"

#define BACKUP_README "README"
#define BACKUP_MANIFEST "manifest"
#define BACKUP_SECRET "secret"
#define BACKUP_DEPLOYMENTS "deployments"
#define BACKUP_SUMS "SHA256SUMS"
#define BACKUP_FAILED "FAILED" /* the only file when it could not be made: a sentence */

enum { BACKUP_SECRET_SIZE = 32 };

struct backup;

struct backup_wanted {
    const char *folder;  /* the data folder */
    const char *version; /* of Muster */
    int64_t wall_ms;
    bool deployments; /* with their archives */
};

/* Copies what is durable, beside a running store (store_copy). Takes as much room in the folder as
 * its tables do. On failure *ret is an archive that holds the sentence. Never NULL. */
void backup_make(struct store *store, const struct backup_wanted *wanted, const _Atomic bool *stop,
                 struct backup **ret);

/* True when it could not be made; why is the sentence. */
bool backup_failed(const struct backup *b, const char **ret_why);

/* Appends the next bytes of the archive, about max. 1 = more will follow, 0 = that was all, ERR_IO
 * = it cannot be read and is cut off here. */
int backup_read(struct backup *b, struct buf *out, size_t max);

/* Removes its copy. NULL is fine. */
void backup_free(struct backup *b);

/* Removes copies that a killed process has left in the data folder. NULL is fine. */
void backup_sweep(const char *folder);
