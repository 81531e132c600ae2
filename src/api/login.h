/* The login service: whoever signs the players' access tokens makes, on our request, those that
 * only he can: a player's token with more scopes, and the token a game server gets. docs/login.md
 * is the contract. Each answer is checked before it is handed on, and remembered for half of the
 * time it is still valid, so that a repeat gets the same and a crowd asks once.
 *
 * Owned by the service. Used on the loop's thread. */
#pragma once

#include "api/access.h"
#include "api/door.h"
#include "base/list.h"

struct login;

enum {
    LOGIN_MS = 5000, /* the service's time to answer */
    LOGIN_URL_MAX = 256,
    LOGIN_QUESTIONS_MAX = 1024, /* under way at once; one more is refused */
    LOGIN_REMEMBERED_MAX = 4096,
    LOGIN_WHY_MAX = 240,
};

/* What came of a question. */
struct login_answer {
    int err;          /* 0, or ERR_LOGIN_FAILED */
    struct str token; /* until done returns */
    const char *why;  /* a clause: "it answered 403" */
};

typedef void login_done(void *user, const struct login_answer *answer);

/* What it works with must outlive it. Nobody is asked before login_configure. */
struct login *login_new(struct doors *doors, struct access *access);

/* Whoever still waits is told nothing. NULL is fine. */
void login_free(struct login *l);

/* Whom to ask from now on; "" = nobody. Copied. What was remembered is forgotten. To be called when
 * the keys of `access` change, too. */
void login_configure(struct login *l, const char *url);

bool login_is_set(const struct login *l);

/* Who asks, and what he is told. */
struct login_asker {
    struct list *waiting; /* he stands in it until he is told; see login_forget */
    login_done *done;     /* called once, from the loop, never at once */
    void *user;
};

enum login_begun {
    LOGIN_KNOWN, /* the token was appended; done is not called */
    LOGIN_ASKED, /* done will be called */
    LOGIN_BUSY,  /* nobody can be asked now; done is not called */
};

/* Asks for the player's token with those scopes of the token `by` that `asked` names. account is
 * the player's. */
enum login_begun login_extend(struct login *l, const char *account, struct str token, struct str by,
                              struct str asked, const struct login_asker *asker, struct buf *out);

/* Asks for a token of that account with those scopes, a comma list. */
enum login_begun login_issue(struct login *l, const char *account, const char *scopes,
                             const struct login_asker *asker, struct buf *out);

/* Those who stand in the list are told nothing. */
void login_forget(struct list *waiting);
