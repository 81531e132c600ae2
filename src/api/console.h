/* The console: the pages that a browser is given. The files are made from web/ by the build and are
 * part of the binary; this room only hands them out. Nothing in them is secret, so no token is
 * asked for: what the pages show they get from the API, with the token of who looks. */
#pragma once

#include "base/str.h"
#include "net/http.h"

#include <stdbool.h>
#include <stddef.h>

struct console_file {
    const char *path; /* as asked for */
    const char *content_type;
    const char *etag;  /* of what it holds */
    bool kept;         /* its name changes with what it holds: keep it for good */
    struct str plain;  /* what it holds, ... */
    struct str packed; /* ... and the same with gzip */
};

/* Made by the build. */
extern const struct console_file console_files[];
extern const size_t n_console_files;

/* The file that is asked for by path; NULL when there is none. */
const struct console_file *console_find(const char *path);

/* Answers with it: packed where the client takes that, and without it when he has it already. */
void console_answer(const struct console_file *f, struct http_request *http);
