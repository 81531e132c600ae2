/* libcurl's functions, loaded when somebody first asks for them, not linked: with the twenty
 * libraries it brings it would cost every `muster serve` 4 ms of its start and 3 MB of its memory.
 * One table for the process; it stays. */
#pragma once

#define CURL_DISABLE_TYPECHECK /* its macros would name functions that are not linked */
#include <curl/curl.h>

#define CURL_FUNCTIONS(X)                                                                          \
    X(global_init)                                                                                 \
    X(easy_init)                                                                                   \
    X(easy_cleanup)                                                                                \
    X(easy_setopt)                                                                                 \
    X(easy_perform)                                                                                \
    X(easy_getinfo)                                                                                \
    X(easy_strerror)                                                                               \
    X(slist_append)                                                                                \
    X(slist_free_all)                                                                              \
    X(multi_init)                                                                                  \
    X(multi_cleanup)                                                                               \
    X(multi_setopt)                                                                                \
    X(multi_assign)                                                                                \
    X(multi_add_handle) X(multi_remove_handle) X(multi_socket_action) X(multi_info_read)

struct curl_functions {
#define X(name) __typeof__(curl_##name) *name;
    CURL_FUNCTIONS(X)
#undef X
};

/* Empty until curl_load has returned NULL. */
extern struct curl_functions curl;

/* Loads and starts libcurl; does nothing when it was. Not from two threads at once. NULL, or what
 * is wrong as a clause. */
const char *curl_load(void);
