/* Restoring: a backup (backup.h) becomes a data folder. In steps, each of which leaves a folder
 * that a Muster can start from:
 *
 *   unpack   into restore.tmp in the folder; everything is checked, nothing else is touched
 *   set back its rows are made ready to be served again (core_restore). Rows that are there are
 *            read, so that no number of theirs is given again
 *   commit   restore.tmp is renamed to restored-TIME: from here on it counts
 *   finish   what was there goes to before-restore-TIME, what is new into its place. A process that
 *            dies on the way leaves the rest to the next that opens the folder
 *
 * All of it blocks, with the folder's lock held. Nothing is owned. */
#pragma once

#include "store/store.h"

#include <limits.h>

struct restore_report {
    char version[64]; /* of the Muster that made the backup */
    int64_t batch;
    int64_t made_wall_ms;
    int64_t wall_ms;     /* of its newest change */
    int64_t epoch;       /* that begins */
    int64_t deployments; /* archives that came along */
    bool with_deployments;
    char unread[512]; /* why the rows that were there could not be read, wholly; "" = they could, or
                         there were none */
    char aside[64];   /* where what was there is now, in the folder; "" = there was nothing */
};

/* Whether something is there that a restore would move aside. */
bool restore_finds_data(const char *folder);

/* Unpacks from fd, checks, sets back, commits and finishes. 0; ERR_FORMAT for a backup that is not
 * whole or not ours, ERR_IO; both with a sentence, and the folder is as it was. */
int restore_run(const char *folder, int fd, struct str who, int64_t wall_ms,
                struct restore_report *ret, struct why *why);

/* For whoever fills a data folder in another way, in the same steps: an empty restore.tmp, and then
 * commit and finish what was put into it; aside as in the report. */
int restore_make_draft(const char *folder, char ret[PATH_MAX], struct why *why);
int restore_keep_draft(const char *folder, int64_t wall_ms, char aside[64], struct why *why);

/* Ends what a restore has begun. Harmless when there is nothing to end. */
int restore_finish(const char *folder, char aside[64], struct why *why);
