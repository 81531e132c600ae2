/* Geography: where on the map an address is, by a file in MaxMind's format. Owned by the service;
 * the file may be replaced (by rename) while it is in use, and is read again at a reload. */
#pragma once

#include "base/str.h"

#include <stdbool.h>

struct geo;

enum { GEO_WHY_MAX = 160 };

/* NULL with a clause when the file cannot be used. */
struct geo *geo_open(const char *file, char why[GEO_WHY_MAX]);
void geo_close(struct geo *g); /* NULL is fine */

/* False, and *ret_* untouched, when g is NULL or the file knows no place for that address. */
bool geo_find(const struct geo *g, struct str ip, double *ret_latitude, double *ret_longitude);
