/* Google's access tokens: what Muster shows to Google's services. Got for a service account, whose
 * key signs a request to Google's token endpoint, or from the metadata server of the machine we run
 * on; kept until shortly before they expire.
 *
 * Owned by whoever made it. On the loop's thread. */
#pragma once

#include "net/http_client.h"

struct google_token;

enum { GOOGLE_WHY_MAX = 256 };

/* What it works with must outlive it. credentials_file "" = the metadata server (the environment's
 * GCE_METADATA_HOST goes before its usual name). `changed` is called, from the loop, when a token
 * came and when none could be got. NULL with a sentence when the file cannot be used. */
struct google_token *google_token_new(struct loop *loop, struct http_client *client,
                                      const char *credentials_file, void (*changed)(void *user),
                                      void *user, char why[GOOGLE_WHY_MAX]);

/* Before its client is freed. NULL is fine. */
void google_token_free(struct google_token *t);

/* The token, until the next call; NULL when there is none yet: then it is being got. */
const char *google_token_get(struct google_token *t);

/* It was refused by a service: forgotten, and another one is got. */
void google_token_refused(struct google_token *t);

/* Why there is none; "" when there is one, or nobody has failed to get it. */
const char *google_token_why(const struct google_token *t);
