/* Match tokens, derived. Visible inside src/core only. */
#pragma once

#include "base/str.h"
#include "core/core.h"

enum { TOKEN_SIZE = 96, TOKEN_GUID_SIZE = 16, TOKEN_GUIDS = 4096 };

/* The part of a token that nobody can guess, of a session that was last asked for. */
struct token_guid {
    int64_t session; /* 0 = none */
    uint8_t guid[TOKEN_GUID_SIZE];
};

/* The match token of a session, derived from the secret; always the same for the same session. */
struct str token_of(struct core *core, const struct row_session *session, char dst[TOKEN_SIZE]);

/* Takes the same time whatever differs. session may be NULL: then false, in the same time. */
bool token_matches(const struct core *core, const struct row_session *session, struct str token);
