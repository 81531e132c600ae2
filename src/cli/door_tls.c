#include "cli/door_tls.h"

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "cli/config_files.h"
#include "net/tls.h"

#include <time.h>

enum { DOORS = 4, DAY_S = 86400, WARN_DAYS = 14 };

/* One door: its name in the configuration, its files and its TLS. */
struct row {
    const struct config *config;
    const char *name;
    const struct config_tls *files;
    struct tls **tls;
};

static void list_doors(struct door_tls *t, const struct config *config, struct row ret[DOORS])
{
    ret[0] = (struct row){config, "http", &config->tls_http, &t->http};
    ret[1] = (struct row){config, "server", &config->tls_server, &t->server};
    ret[2] = (struct row){config, "manager", &config->tls_manager, &t->manager};
    ret[3] = (struct row){config, "client", &config->tls_client, &t->client};
}

static struct tls_files files_of(const struct config_tls *c)
{
    return (struct tls_files){c->certificate, c->key, c->client_ca};
}

static int refuse(const struct row *row, const char *reason, int err, char why[CONFIG_WHY_MAX])
{
    config_explain_tls(row->config, row->name, row->files, reason, why);
    return err;
}

/* Which certificate a door shows; one that runs out soon is worth a look. */
static void log_door(const struct row *row)
{
    char until[32], quoted[LOG_QUOTE_MAX + 8];
    time_t expires = (time_t)tls_expires_s(*row->tls);
    int64_t days = (tls_expires_s(*row->tls) - clock_wall_ms() / 1000) / DAY_S;
    struct tm utc;
    gmtime_r(&expires, &utc);
    strftime(until, sizeof(until), "%Y-%m-%dT%H:%M:%SZ", &utc);
    log_line(days < WARN_DAYS ? LOG_WARN : LOG_INFO,
             days < WARN_DAYS ? "TLS certificate expires soon" : "TLS",
             "port=%s certificate=%s expires=%s days_left=%lld clients=%s", row->name,
             log_quote(quoted, str_of(row->files->certificate)), until, (long long)days,
             tls_wants_client(*row->tls) ? "certificate" : "any");
}

int door_tls_load(struct door_tls *t, const struct config *config, char why[CONFIG_WHY_MAX])
{
    struct row rows[DOORS];
    *t = (struct door_tls){0};
    list_doors(t, config, rows);
    for (size_t i = 0; i < DOORS; i++) {
        char reason[TLS_WHY_MAX];
        struct tls_files files = files_of(rows[i].files);
        if (!files.certificate[0])
            continue;
        int err = tls_load(&files, rows[i].tls, reason);
        if (err != 0) {
            door_tls_done(t);
            return refuse(&rows[i], reason, err, why);
        }
        log_door(&rows[i]);
    }
    return 0;
}

static int reload_door(const struct row *row, char why[CONFIG_WHY_MAX])
{
    char reason[TLS_WHY_MAX];
    struct tls_files files = files_of(row->files);
    bool wanted = files.certificate[0] != '\0';
    if (wanted != (*row->tls != NULL))
        return refuse(row,
                      wanted ? "it is plain; speaking TLS takes a restart"
                             : "it speaks TLS; ceasing to takes a restart",
                      ERR_INVALID_REQUEST, why);
    if (!wanted)
        return 0;
    int err = tls_reload(*row->tls, &files, reason);
    if (err != 0)
        return refuse(row, reason, err, why);
    log_door(row);
    return 0;
}

int door_tls_reload(struct door_tls *t, const struct config *config, char why[CONFIG_WHY_MAX])
{
    struct row rows[DOORS];
    char other[CONFIG_WHY_MAX];
    int first = 0;
    list_doors(t, config, rows);
    for (size_t i = 0; i < DOORS; i++) {
        int err = reload_door(&rows[i], first == 0 ? why : other);
        if (first == 0)
            first = err;
    }
    return first;
}

void door_tls_done(struct door_tls *t)
{
    tls_free(t->http);
    tls_free(t->server);
    tls_free(t->manager);
    tls_free(t->client);
    *t = (struct door_tls){0};
}
