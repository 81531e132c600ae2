/* The administrator's access token: a file in the data folder that allows everything, so that
 * whoever may read the folder can use the API at once. */
#pragma once

#include "api/access.h"

#include <stdbool.h>
#include <stdint.h>

enum { ADMIN_TOKEN_WHY_MAX = 256 };

/* Writes folder/admin.token (0600) when it is not there, or is not good for at least 30 more days
 * as access would judge it; *ret_written says whether. Call only with the folder locked. On failure
 * returns ERR_IO and why is a sentence for the operator. */
int admin_token_keep(const char *folder, struct access *access, int64_t wall_ms, bool *ret_written,
                     char why[ADMIN_TOKEN_WHY_MAX]);
