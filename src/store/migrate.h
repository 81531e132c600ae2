/* Moving: all that a data folder keeps into a cell, and back. What was moved is read again where it
 * is now and compared by a digest before it counts there; then it counts nowhere else: a folder
 * that was moved holds a file that says so and is served no more, a cell that was moved has another
 * name. Nothing is deleted.
 *
 * All of it blocks. Nobody serves either meanwhile: the folder is locked, and the cell's lease is
 * taken. Nothing is owned. */
#pragma once

#include "store/cell.h"
#include "store/moment.h"

struct migrate_report {
    int64_t batch;
    int64_t rows;
    int64_t history; /* batches of the journal that came along */
    int64_t missing; /* deployments whose archive is not in the folder */
    char digest[MOMENT_DIGEST];
    char aside[80]; /* where what was there is now: a folder in the folder, or a schema */
};

/* The folder is locked; its secret is that of c. 0; ERR_FORMAT for what cannot be moved (there is
 * no data, the cell holds some, somebody leads it), ERR_IO; both with a sentence, and both sides
 * are served as before, but for a cell that the sentence names. */
int migrate_to_cell(const char *folder, const struct cell_config *c, int64_t wall_ms,
                    struct migrate_report *ret, struct why *why);
int migrate_to_folder(const struct cell_config *c, const char *folder, int64_t wall_ms,
                      struct migrate_report *ret, struct why *why);

/* The data of this folder was moved into a cell: a sentence that says where to. Of a folder that
 * was not: false. */
bool migrate_is_moved(const char *folder, struct why *why);
void migrate_unmark(const char *folder);
