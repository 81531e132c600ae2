#include "agent/zeromq.h"

#include <dlfcn.h>
#include <stdbool.h>

struct zeromq_functions zeromq;

static bool find_functions(void *library)
{
#define X(name)                                                                                    \
    *(void **)&zeromq.name = dlsym(library, "zmq_" #name);                                         \
    if (!zeromq.name)                                                                              \
        return false;
    ZEROMQ_FUNCTIONS(X)
#undef X
    return true;
}

const char *zeromq_load(void)
{
    static bool loaded;
    if (loaded)
        return NULL;
    void *library = dlopen("libzmq.so.5", RTLD_NOW | RTLD_LOCAL);
    loaded = library && find_functions(library);
    return loaded ? NULL : "libzmq.so.5 cannot be loaded; install the package libzmq5";
}
