#include "base/err.h"

#include <stddef.h>
#include <string.h>

static const struct {
    const char *code;
    const char *sentence;
    int status;
} table[] = {
    {"ok", "OK", 200},
#define X(name, code, sentence, status) {code, sentence, status},
#include "base/errors.def"
#undef X
};

static size_t row_of(int err)
{
    if (err > 0 || err <= -(int)ERR_ORDER_END)
        return ERR_ORDER_INTERNAL;
    return (size_t)-err;
}

const char *err_sentence(int err)
{
    return table[row_of(err)].sentence;
}

const char *err_code(int err)
{
    return table[row_of(err)].code;
}

int err_status(int err)
{
    return table[row_of(err)].status;
}

int err_of_code(const char *code)
{
    for (size_t i = 1; i < sizeof(table) / sizeof(table[0]); i++) {
        if (strcmp(table[i].code, code) == 0)
            return -(int)i;
    }
    return 0;
}
