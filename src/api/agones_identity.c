/* A pod finds its API server in the environment and who it is in a folder. The token there is
 * replaced about once an hour, so it is read again when the file changes, once a minute in any case
 * (a mounted secret is a chain of links), and when it was refused. */
#include "api/agones_own.h"

#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SERVICE_ACCOUNT "/var/run/secrets/kubernetes.io/serviceaccount"

enum { LOOK_MS = 1000, READ_MS = 60 * 1000, TOKEN_FILE_MAX = 12 * 1024 };

static char *copy(const char *text)
{
    return text && *text ? xstrdup(text) : NULL;
}

static bool url_of_pod(char ret[512])
{
    const char *host = getenv("KUBERNETES_SERVICE_HOST");
    const char *port = getenv("KUBERNETES_SERVICE_PORT");
    if (!host || !*host)
        return false;
    bool v6 = strchr(host, ':') != NULL;
    int n = snprintf(ret, 512, "https://%s%s%s:%s", v6 ? "[" : "", host, v6 ? "]" : "",
                     port && *port ? port : "443");
    return n < 512;
}

/* Only a pod that says nothing about where and who takes what it finds: another server must not be
 * shown this one's token. */
bool identity_init(struct agones_identity *id, const struct agones_config *config, char why[256])
{
    bool pod = !config->url || !*config->url;
    id->ca_file = copy(config->ca_file);
    id->token_file = copy(config->token_file);
    id->certificate = copy(config->certificate);
    id->key = copy(config->key);
    if (pod && !url_of_pod(id->url)) {
        snprintf(why, 256,
                 "Nothing says where the API server of Kubernetes is: there is no "
                 "kubernetes.url, no kubernetes.kubeconfig, and this is no pod.");
        return false;
    }
    if (!pod && snprintf(id->url, sizeof(id->url), "%s", config->url) >= (int)sizeof(id->url)) {
        snprintf(why, 256, "kubernetes.url is too long.");
        return false;
    }
    for (size_t n = strlen(id->url); n > 0 && id->url[n - 1] == '/'; n--)
        id->url[n - 1] = '\0';
    if (pod && !id->ca_file)
        id->ca_file = xstrdup(SERVICE_ACCOUNT "/ca.crt");
    if (pod && !id->token_file && !id->certificate)
        id->token_file = xstrdup(SERVICE_ACCOUNT "/token");
    return true;
}

void identity_done(struct agones_identity *id)
{
    free(id->ca_file);
    free(id->token_file);
    free(id->certificate);
    free(id->key);
}

static bool read_token(const char *file, char ret[TOKEN_FILE_MAX])
{
    int fd = open(file, O_RDONLY | O_CLOEXEC);
    size_t n = 0;
    ssize_t got = fd < 0 ? -1 : 1;
    while (got > 0 && n < TOKEN_FILE_MAX - 1) {
        got = read(fd, ret + n, TOKEN_FILE_MAX - 1 - n);
        n += got > 0 ? (size_t)got : 0;
    }
    if (fd >= 0)
        close(fd);
    while (n > 0 && strchr(" \r\n\t", ret[n - 1]))
        n--;
    ret[n] = '\0';
    return got == 0 && n > 0 && !strpbrk(ret, "\r\n");
}

static void complain(struct agones_identity *id)
{
    char quoted[LOG_QUOTE_MAX + 8];
    if (!id->complained)
        log_line(LOG_ERROR, "the token for Kubernetes cannot be read; the one before stays",
                 "file=%s", log_quote(quoted, str_of(id->token_file)));
    id->complained = true;
}

static bool is_same(const struct stat *a, const struct stat *b)
{
    return a->st_ino == b->st_ino && a->st_size == b->st_size &&
           a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

void identity_refresh(struct agones *a, bool at_once)
{
    struct agones_identity *id = &a->identity;
    char token[TOKEN_FILE_MAX];
    struct stat file = {0};
    if (!id->token_file || (!at_once && id->looked_ms && a->now_ms < id->looked_ms + LOOK_MS))
        return;
    id->looked_ms = a->now_ms;
    bool there = stat(id->token_file, &file) == 0;
    bool old = id->read_ms == 0 || a->now_ms >= id->read_ms + READ_MS;
    if (there && !at_once && !old && is_same(&file, &id->file))
        return;
    id->read_ms = a->now_ms;
    if (!there || !read_token(id->token_file, token)) {
        complain(id);
        return;
    }
    id->complained = false;
    id->file = file;
    http_client_set_token(a->client, token);
    http_client_set_token(a->watching, token);
    explicit_bzero(token, sizeof(token));
}
