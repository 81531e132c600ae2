/* Every key of the configuration file for those who write one: what `muster config keys` and the
 * manual page muster.yaml(5) say. Made of the settings (setting.h) and of rows for the lists. */
#pragma once

#include <stdbool.h>

/* Texts are as in Markdown: what is meant literally stands between `backticks`. They live as long
 * as the call that hands them out. */
struct config_row {
    const char *name;     /* "timeouts.ack_ms"; of a fleet: "provider" */
    const char *provider; /* of a fleet: whose fleets have it; NULL of others */
    const char *fallback; /* what it is when nothing is said; NULL of a fleet: values says it */
    const char *values;
    const char *meaning;
    bool reloads; /* SIGHUP takes a new value; not said of a fleet, whose list is reloaded */
};

typedef void config_row_take(void *user, const struct config_row *key);

/* The keys of the file, in the order in which they are shown. */
void config_each_row(config_row_take *take, void *user);

/* The keys that an entry of `fleets` may have. */
void config_each_fleet_row(config_row_take *take, void *user);
