#include "api/geo.h"

#include "base/buf.h"
#include "net/address.h"

#include <maxminddb.h>
#include <stdio.h>
#include <stdlib.h>

struct geo {
    MMDB_s file;
};

struct geo *geo_open(const char *file, char why[GEO_WHY_MAX])
{
    struct geo *g = xcalloc(1, sizeof(*g));
    int status = MMDB_open(file, MMDB_MODE_MMAP, &g->file);
    if (status == MMDB_SUCCESS)
        return g;
    snprintf(why, GEO_WHY_MAX, "%s", MMDB_strerror(status));
    free(g);
    return NULL;
}

void geo_close(struct geo *g)
{
    if (!g)
        return;
    MMDB_close(&g->file);
    free(g);
}

/* False when it is not there or no number of degrees. */
static bool degrees(MMDB_entry_s *entry, const char *name, double most, double *ret)
{
    MMDB_entry_data_s data;
    if (MMDB_get_value(entry, &data, "location", name, NULL) != MMDB_SUCCESS || !data.has_data)
        return false;
    double v = data.type == MMDB_DATA_TYPE_DOUBLE  ? data.double_value
               : data.type == MMDB_DATA_TYPE_FLOAT ? (double)data.float_value
                                                   : most + 1;
    if (!(v >= -most && v <= most))
        return false;
    *ret = v;
    return true;
}

bool geo_find(const struct geo *g, struct str ip, double *ret_latitude, double *ret_longitude)
{
    char text[ADDRESS_MAX];
    union address a;
    double latitude, longitude;
    int status = MMDB_SUCCESS;
    if (!g || !str_copy(text, sizeof(text), ip) || !address_parse(text, 0, &a))
        return false;
    MMDB_lookup_result_s found = MMDB_lookup_sockaddr(&g->file, &a.any, &status);
    if (status != MMDB_SUCCESS || !found.found_entry ||
        !degrees(&found.entry, "latitude", 90, &latitude) ||
        !degrees(&found.entry, "longitude", 180, &longitude))
        return false;
    *ret_latitude = latitude;
    *ret_longitude = longitude;
    return true;
}
