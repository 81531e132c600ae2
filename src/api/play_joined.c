/* The token of a player who has joined: opened, perhaps extended, and its scopes read. */
#include "api/access.h"
#include "api/login.h"
#include "api/play.h"
#include "api/rest.h"
#include "base/err.h"

#include <stdio.h>

static int refuse(int err, const char *whose, const char *clause, char why[PLAY_WHY_MAX])
{
    snprintf(why, PLAY_WHY_MAX, "%s: %s.", whose, clause);
    return err;
}

static struct str token_of(const struct play_joined *j)
{
    return (struct str){(const char *)j->token.data, j->token.len};
}

/* Replaces the token by one that has more scopes, unless only its issuer can make that. */
static int extend(struct rest *r, struct str by, struct str asked, struct play_joined *j,
                  char why[PLAY_WHY_MAX])
{
    struct buf extended = {0};
    char clause[ACCESS_WHY_MAX];
    int err =
        access_extend(r->access, token_of(j), by, asked, r->doors->wall_ms, &extended, clause);
    if (err == 0) {
        buf_done(&j->token);
        j->token = extended;
        return 0;
    }
    buf_done(&extended);
    j->elsewhere =
        err == ERR_NO_SIGNING_KEY && login_is_set(r->login) && !access_is_own(token_of(j));
    if (j->elsewhere)
        return 0;
    return refuse(err,
                  err == ERR_NO_SIGNING_KEY ? "No signing key for the access token"
                                            : "The access token cannot be extended",
                  clause, why);
}

static int read_scopes(struct rest *r, struct play_joined *j, char why[PLAY_WHY_MAX])
{
    char clause[ACCESS_WHY_MAX];
    buf_clear(&j->scopes);
    int err = access_words(r->access, token_of(j), &j->scopes, clause);
    return err == 0 ? 0 : refuse(err, "The player's access token is not valid", clause, why);
}

int play_joined(struct rest *r, struct str sealed, struct str extend_token,
                struct str extend_scopes, struct play_joined *ret, char why[PLAY_WHY_MAX])
{
    int err = 0;
    if (sealed.len == 0) /* an allocation placed him, and brought no token */
        return 0;
    if (seal_open(&r->seal, sealed, &ret->token) != 0)
        return refuse(ERR_BAD_ACCESS_TOKEN, "The player's access token cannot be read",
                      "it was sealed with another secret", why);
    if (extend_token.len > 0 && extend_scopes.len > 0)
        err = extend(r, extend_token, extend_scopes, ret, why);
    return err == 0 ? read_scopes(r, ret, why) : err;
}

int play_joined_extended(struct rest *r, struct str token, struct play_joined *j,
                         char why[PLAY_WHY_MAX])
{
    buf_clear(&j->token);
    buf_append(&j->token, token.at, token.len);
    j->elsewhere = false;
    return read_scopes(r, j, why);
}

void play_joined_done(struct play_joined *j)
{
    buf_done(&j->token);
    buf_done(&j->scopes);
}
