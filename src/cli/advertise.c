#include "cli/advertise.h"

#include "base/str.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* "host:port" taken apart: the host with its brackets. */
static bool split(const char *text, struct str *ret_host, const char **ret_port)
{
    const char *bracket = text[0] == '[' ? strchr(text, ']') : NULL;
    const char *colon = bracket ? bracket + 1 : strchr(text, ':');
    if ((text[0] == '[' && !bracket) || !colon || *colon != ':')
        return false;
    *ret_host = (struct str){text, (size_t)(colon - text)};
    *ret_port = colon + 1;
    return true;
}

bool advertise_is_address(const char *text)
{
    struct str host;
    const char *port = NULL;
    if (!split(text, &host, &port) || host.len == 0 || strpbrk(text, " /@"))
        return false;
    size_t digits = strspn(port, "0123456789");
    long number = strtol(port, NULL, 10);
    return digits > 0 && digits <= 5 && port[digits] == '\0' && number > 0 && number < 65536;
}

bool advertise_is_name(const char *text)
{
    size_t len = strlen(text);
    return len > 0 && len < sizeof(((struct cell_node *)0)->name) &&
           strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-") == len;
}

static bool is_every(struct str host)
{
    return str_eq(host, STR("0.0.0.0")) || str_eq(host, STR("[::]"));
}

/* Of a URL. */
static struct str host_of_url(const char *url)
{
    const char *at = strstr(url, "://");
    struct str host = {"", 0};
    const char *port = NULL;
    if (!at)
        return host;
    at += 3;
    if (split(at, &host, &port))
        return host;
    return (struct str){at, strcspn(at, "/")};
}

/* The host of one that listens on a single address; empty when there is none. */
static struct str host_of_another(const struct service_ports *bound)
{
    const char *const all[] = {bound->http, bound->server, bound->manager, bound->client};
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        struct str host;
        const char *port = NULL;
        if (split(all[i], &host, &port) && !is_every(host))
            return host;
    }
    return (struct str){"", 0};
}

/* `fallback` is the host for a port that listens on every address. */
static bool settle(const char *said, const char *prefix, const char *bound, struct str fallback,
                   char *dst, size_t cap)
{
    struct str host;
    const char *port = NULL;
    if (said[0])
        return str_copy(dst, cap, str_of(said));
    if (!split(bound, &host, &port))
        return false;
    if (is_every(host))
        host = fallback;
    int n = snprintf(dst, cap, "%s%.*s:%s", prefix, (int)host.len, host.at, port);
    return host.len > 0 && n > 0 && (size_t)n < cap;
}

bool advertise_find(const struct config *config, const struct service_ports *bound,
                    struct cell_node *ret, struct why *why)
{
    const struct config_cluster *c = &config->cluster;
    struct str host = c->http[0] ? host_of_url(c->http) : host_of_another(bound);
    const char *scheme = config->tls_http.certificate[0] ? "https://" : "http://";
    if (settle(c->http, scheme, bound->http, host, ret->http, sizeof(ret->http)) &&
        settle(c->server, "", bound->server, host, ret->server, sizeof(ret->server)) &&
        settle(c->manager, "", bound->manager, host, ret->manager, sizeof(ret->manager)) &&
        settle(c->client, "", bound->client, host, ret->client, sizeof(ret->client)))
        return true;
    why_set(why, "This node listens on every address, and others must know one of them: set "
                 "advertise_http in the section cluster, as http://10.0.0.1:9508, or listen on one "
                 "address with --bind.");
    return false;
}
