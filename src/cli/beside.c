#include "cli/beside.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool beside_find(const char *name, char ret[PATH_MAX])
{
    static const char *const places[] = {"", "/../libexec/muster", "/../lib/muster"};
    char self[PATH_MAX], path[2 * PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
    self[n > 0 ? n : 0] = '\0';
    char *slash = strrchr(self, '/');
    if (!slash)
        return false;
    *slash = '\0';
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        (void)snprintf(path, sizeof(path), "%s%s/%s", self, places[i], name);
        if (access(path, X_OK) == 0 && realpath(path, ret))
            return true;
    }
    return false;
}
