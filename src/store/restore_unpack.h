/* Unpacking a backup: reads the archive once, from its beginning, and believes nothing in it. Only
 * the files that backup.h names are taken, each once, and only when the sums at its end are those
 * of what came. Nothing is owned. */
#pragma once

#include "store/restore.h"

#include <sys/types.h>

/* Into the folder, which is empty; NULL: only looks whether it is whole. 0; ERR_FORMAT or ERR_IO
 * with a sentence, and pieces may be there.
 */
int restore_unpack(int fd, const char *folder, struct restore_report *ret, struct why *why);

/* Gives the folder and all in it to a user. */
int restore_give(const char *folder, uid_t user, gid_t group);
