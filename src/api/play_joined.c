/* The token of a player who has joined: opened, perhaps extended, and its scopes read. */
#include "api/access.h"
#include "api/play.h"
#include "api/rest.h"
#include "base/err.h"

#include <stdio.h>

static int refuse(int err, const char *whose, const char *clause, char why[PLAY_WHY_MAX])
{
    snprintf(why, PLAY_WHY_MAX, "%s: %s.", whose, clause);
    return err;
}

/* Replaces the token by one that has more scopes. */
static int extend(struct rest *r, struct str by, struct str asked, struct buf *token,
                  char why[PLAY_WHY_MAX])
{
    struct buf extended = {0};
    char clause[ACCESS_WHY_MAX];
    struct str own = {(const char *)token->data, token->len};
    int err = access_extend(r->access, own, by, asked, r->doors->wall_ms, &extended, clause);
    if (err != 0) {
        buf_done(&extended);
        return refuse(err,
                      err == ERR_NO_SIGNING_KEY ? "No signing key for the access token"
                                                : "The access token cannot be extended",
                      clause, why);
    }
    buf_done(token);
    *token = extended;
    return 0;
}

int play_joined(struct rest *r, struct str sealed, struct str extend_token,
                struct str extend_scopes, struct play_joined *ret, char why[PLAY_WHY_MAX])
{
    char clause[ACCESS_WHY_MAX];
    if (seal_open(&r->seal, sealed, &ret->token) != 0)
        return refuse(ERR_BAD_ACCESS_TOKEN, "The player's access token cannot be read",
                      "it was sealed with another secret", why);
    if (extend_token.len > 0 && extend_scopes.len > 0) {
        int err = extend(r, extend_token, extend_scopes, &ret->token, why);
        if (err != 0)
            return err;
    }
    struct str token = {(const char *)ret->token.data, ret->token.len};
    int err = access_words(r->access, token, &ret->scopes, clause);
    return err == 0 ? 0 : refuse(err, "The player's access token is not valid", clause, why);
}

void play_joined_done(struct play_joined *j)
{
    buf_done(&j->token);
    buf_done(&j->scopes);
}
