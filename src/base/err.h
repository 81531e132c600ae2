/* Error codes: 0 is success, everything else a negative number from errors.def. */
#pragma once

enum err_order {
    ERR_ORDER_NONE,
#define X(name, code, sentence, status) ERR_ORDER_##name,
#include "base/errors.def"
#undef X
    ERR_ORDER_END
};

enum err {
    ERR_NONE = 0,
#define X(name, code, sentence, status) ERR_##name = -ERR_ORDER_##name,
#include "base/errors.def"
#undef X
};

/* The sentence a person reads. Never NULL; an unknown number reads "Internal error". */
const char *err_sentence(int err);

/* The stable word for logs and machines. Never NULL. */
const char *err_code(int err);

/* The HTTP status of the same refusal; 200 for 0. */
int err_status(int err);

/* The error of a code; 0 when there is none. */
int err_of_code(const char *code);
