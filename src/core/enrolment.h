/* Enrolment tokens: what game servers and chat servers are let in with. Some stand in the
 * configuration, some are kept here. Visible inside src/core only. */
#pragma once

#include "base/chain.h"
#include "core/core.h"
#include "core/object.h"

enum { ENROLMENT_TOKEN_SIZE = 80 };

/* One that was made by an operator. */
struct enrolment_token {
    struct object object;
    struct row_enrolment row;
    int32_t connections; /* peers that came with it and are here */
    struct chain_link by_hash;
    struct chain_link by_previous;
};

/* Whom a token lets in for that role, or NULL. */
const struct enrolment *enrolment_find(const struct core *core, struct str token,
                                       enum enrolment_role role, struct enrolment *scratch);

/* 0 and the new token, or why there is none. */
int enrolment_make(struct core *core, const struct operate *o, struct enrolment_token **ret);
int enrolment_revoke(struct core *core, int64_t id);
int enrolment_rotate(struct core *core, int64_t id, int64_t grace_ms);

struct enrolment_token *enrolment_get(const struct core *core, int64_t id);

/* The token's text in that generation, derived: the same however often it is asked for. */
struct str enrolment_text(const struct core *core, int64_t id, int32_t generation,
                          char dst[ENROLMENT_TOKEN_SIZE]);

struct enrolment_token *enrolment_load_row(struct core *core, const struct row_enrolment *row);
