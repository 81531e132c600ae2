/* Agones: fleets that live in Kubernetes. To core a fleet there is a host (PROVIDER_AGONES) whose
 * servers are GameServers: a spawn is one GameServerAllocation, an order to end is a shutdown, and
 * its heartbeat lists the GameServers that carry our annotation, as the watch shows them. So what
 * holds for agents holds here: what is owed is said again, what is not listed is over, a server
 * that nobody knows is ended.
 *
 * Owned by the service. On the loop's thread. */
#pragma once

#include "api/door.h"
#include "api/metrics.h"
#include "core/effect.h"
#include "net/http_client.h"

struct agones;

enum { AGONES_FLEETS_MAX = 64 };

struct agones_fleet {
    char fleet[64]; /* as Muster calls it */
    char name[254]; /* … and Kubernetes: the label agones.dev/fleet */
    char namespace[64];
    int8_t region;
    char port[64];    /* the name of the port that players use; "" = the first */
    char list[64];    /* of players, kept by Agones; "" = none */
    char counter[64]; /* … a counter; "" = none */
};

/* Where the API server is and who we are. Empty texts mean: as a pod finds it. */
struct agones_config {
    const char *url;         /* "" = from the environment of the pod */
    const char *ca_file;     /* "" = the service account's */
    const char *token_file;  /* read again when it changes; "" = the service account's */
    const char *certificate; /* a client's, with its key; "" = none */
    const char *key;
    const struct agones_fleet *fleets;
    size_t n_fleets;
    const char *instance; /* our mark on what we allocate: the data folder's, so that two of us do
                             not take each other's */
};

/* What it works with must outlive it. NULL with a sentence when the configuration cannot be used.
 */
struct agones *agones_new(struct doors *doors, struct metrics *metrics,
                          const struct agones_config *config, char why[256]);
void agones_free(struct agones *a); /* NULL is fine */

void agones_release(struct agones *a, const struct effect *effects, size_t n);
void agones_before_flush(struct agones *a);

/* False, with a clause, when the API server is away: for /readyz. */
bool agones_is_ready(const struct agones *a, const char **ret_why);

/* Counted since the start, but for the last three. */
struct agones_figures {
    int64_t allocations; /* POSTs */
    int64_t patches;
    int64_t conflicts; /* … that came too late and were made anew */
    int64_t reads;     /* of one GameServer */
    int64_t lists;
    int64_t watches;
    int64_t events;    /* lines of them */
    int64_t bad_lines; /* … that were not understood */
    int64_t gameservers;
    int64_t playing;  /* … for us */
    int64_t unwanted; /* … that are to be shut down */
};
void agones_count(const struct agones *a, struct agones_figures *ret);
