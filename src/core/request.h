/* Requests that carried an Idempotency-Key. Visible inside src/core only. */
#pragma once

#include "base/chain.h"
#include "core/core.h"
#include "core/deadline.h"
#include "core/object.h"

struct request {
    struct object object;
    struct row_request row;
    struct deadline deadline;
    struct chain_link by_key;
};

/* What a key is found by: its scope is (account, operation, key). */
void request_digest(struct str who, uint8_t verb, struct str key, uint8_t ret[OPERATE_DIGEST]);

/* The request of that account, verb and key, or NULL. */
struct request *request_find(const struct core *core, const struct operate *o);

/* True when it was asked with the same arguments. */
bool request_is_same(const struct request *request, const struct operate *o);

/* Remembers what was answered, for as long as tickets are kept. */
void request_keep(struct core *core, const struct operate *o, int64_t object, int32_t generation);

void request_deadline(struct core *core, struct request *request);
struct request *request_load_row(struct core *core, const struct row_request *row);
