/* From the document to the configuration: each section is judged and copied. All mistakes are
 * reported, not only the first. Nothing here is kept. */
#pragma once

#include "cli/config.h"

struct doc;

/* One reading of one file. */
struct reading {
    const char *name; /* of the file */
    const char *text; /* for finding lines */
    size_t len;
    char folder[CONFIG_PATH_MAX]; /* where relative paths begin; "" = where the process stands */
    struct config *config;
    struct config_mistakes *mistakes;
};

/* Adds a mistake at a place ("tokens, entry 2, role"; "" = the whole file), with the line on which
 * `written` is. */
void reading_refuse(struct reading *r, const char *place, const char *written, const char *format,
                    ...) __attribute__((format(printf, 4, 5)));

/* Puts the document on top of r->config; what is wrong is in r->mistakes. */
void config_take(struct reading *r, const struct doc *doc);
