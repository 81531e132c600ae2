#include "store/cell_link.h"

#include <stdio.h>

const char *cell_schema(const char *cell, char dst[CELL_SCHEMA_SIZE])
{
    snprintf(dst, CELL_SCHEMA_SIZE, "muster_%s", cell);
    return dst;
}

int cell_connect(const struct cell_config *c, const char *what, int64_t connect_ms,
                 int64_t answer_ms, struct pg **ret, struct why *why)
{
    char schema[CELL_SCHEMA_SIZE];
    struct pg_wish wish = {
        .url = c->url,
        .schema = cell_schema(c->cell, schema),
        .name = what,
        .connect_ms = connect_ms,
        .answer_ms = answer_ms,
    };
    return pg_connect(&wish, ret, why);
}

int cell_listen(struct pg *pg, const char *cell, struct why *why)
{
    char schema[CELL_SCHEMA_SIZE];
    char sql[CELL_SCHEMA_SIZE + 16];
    snprintf(sql, sizeof(sql), "LISTEN \"%s\"", cell_schema(cell, schema));
    return pg_script(pg, sql, why);
}
