/* Google's public keys, and who Google says is asking: a push of Pub/Sub carries an OpenID Connect
 * token that Google signed for a service account. The keys are fetched (a JWKS) when it begins,
 * once an hour, and when a token names one that is not known.
 *
 * Owned by whoever made it. On the loop's thread. */
#pragma once

#include "base/str.h"
#include "net/http_client.h"

#include <stdint.h>

struct google_keys;

enum { GOOGLE_KEYS_MAX = 16, GOOGLE_KEYS_WHY_MAX = 160 };

/* What it works with must outlive it. Fetches them at once. url is copied. */
struct google_keys *google_keys_new(struct loop *loop, struct http_client *client, const char *url);

/* Before its client is freed. NULL is fine. */
void google_keys_free(struct google_keys *k);

enum google_verdict {
    GOOGLE_GOOD,
    GOOGLE_BAD,   /* why: a clause, "it has expired" */
    GOOGLE_LATER, /* its key is being fetched: let it come again */
};

/* Whether the token was made by Google for that audience and is that account's (an e-mail address).
 */
enum google_verdict google_keys_check(struct google_keys *k, struct str token, const char *audience,
                                      const char *email, int64_t wall_ms,
                                      char why[GOOGLE_KEYS_WHY_MAX]);
