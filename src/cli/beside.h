/* Programs of Muster that are not for people: muster-shim, and the example game of the demo. */
#pragma once

#include <limits.h>
#include <stdbool.h>

/* Finds the program of that name beside this one, as a build leaves it, or where a package puts
 * it. False when it is in neither place; then ret holds nothing of use. */
bool beside_find(const char *name, char ret[PATH_MAX]);
