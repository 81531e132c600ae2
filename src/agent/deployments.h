/* Deployments on this host: one read-only folder for each, named by the archive's SHA-256, pulled
 * from the control plane when it is first needed and never half there. Owned by the agent; used on
 * the loop's thread. */
#pragma once

#include "store/archive.h"

#include <stddef.h>
#include <stdint.h>

struct deployments;
struct http_client;
struct loop;

enum { DEPLOYMENTS_MAX = 256 };

/* folder is the agent's data folder; what it has unpacked before is found. 0, or ERR_IO with a
 * sentence. client is borrowed; where gives the URL of whoever leads the control plane, without a
 * path. */
typedef const char *deployments_where(void *user);
int deployments_open(struct loop *loop, struct http_client *client, deployments_where *where,
                     void *user, const char *folder, struct deployments **ret,
                     char why[ARCHIVE_WHY_MAX]);

/* Nobody is told of what is under way any more. NULL is fine. */
void deployments_close(struct deployments *d);

/* folder is its path, or NULL: then err and why, a sentence. ERR_NOT_FOUND: there is no such
 * deployment. */
typedef void deployments_done(void *user, const char *folder, int err, const char *why);

/* Makes sure that it is there, from the control plane when it is not. That may be changing its
 * leader just now, so it is asked again for some seconds. done is called from the loop, never at
 * once; several may wait for the same. */
void deployments_get(struct deployments *d, const uint8_t digest[ARCHIVE_DIGEST],
                     deployments_done *done, void *user);

/* Called from the loop's tick. */
void deployments_tick(struct deployments *d, int64_t monotonic_ms);

/* Forgets whoever asked with that user; done is not called for him. */
void deployments_drop(struct deployments *d, const void *user);

/* True when it is there, or on its way. */
bool deployments_is_coming(const struct deployments *d, const uint8_t digest[ARCHIVE_DIGEST]);

/* Those that are there. */
size_t deployments_count(const struct deployments *d);
const uint8_t *deployments_at(const struct deployments *d, size_t i);
