/* Match tokens, derived. Visible inside src/core only. */
#pragma once

#include "base/str.h"
#include "core/core.h"

enum { TOKEN_SIZE = 96 };

/* The match token of a session, derived from the secret; always the same for the same session. */
struct str token_of(const struct core *core, const struct row_session *session,
                    char dst[TOKEN_SIZE]);

/* Takes the same time whatever differs. session may be NULL: then false, in the same time. */
bool token_matches(const struct core *core, const struct row_session *session, struct str token);
