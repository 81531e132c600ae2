#include "net/curl.h"

#include <dlfcn.h>
#include <stdbool.h>

struct curl_functions curl;

static bool find_functions(void *library)
{
#define X(name)                                                                                    \
    *(void **)&curl.name = dlsym(library, "curl_" #name);                                          \
    if (!curl.name)                                                                                \
        return false;
    CURL_FUNCTIONS(X)
#undef X
    return true;
}

const char *curl_load(void)
{
    static bool loaded;
    if (loaded)
        return NULL;
    void *library = dlopen("libcurl-gnutls.so.4", RTLD_NOW | RTLD_LOCAL);
    if (!library || !find_functions(library))
        return "libcurl-gnutls.so.4 cannot be loaded; install the package libcurl3-gnutls";
    loaded = curl.global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK;
    return loaded ? NULL : "libcurl does not start";
}
