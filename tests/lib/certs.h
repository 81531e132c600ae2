/* Certificates for tests, good and bad, written as files into a folder of their own. */
#pragma once

#include "base/clock.h"
#include "lib/unit.h"
#include "net/certificate.h"
#include "net/tls.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CERTS_DAY = 86400, CERTS_PATH = 96 };

struct certs {
    char folder[32];
    struct certificate *ca;
    const char *ca_path;
    size_t n; /* files written */
    char *paths[32];
};

/* Writes text as a file of that name; the path is valid as long as the certs. */
static inline const char *certs_write(struct certs *c, const char *name, struct str text)
{
    assert_true(c->n < sizeof(c->paths) / sizeof(c->paths[0]));
    char *path = malloc(CERTS_PATH);
    c->paths[c->n++] = path;
    snprintf(path, CERTS_PATH, "%s/%s", c->folder, name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(text.at, 1, text.len, f), text.len);
    assert_int_equal(fclose(f), 0);
    return path;
}

/* Valid from `from` to `until` days from now. The caller frees it. */
static inline struct certificate *certs_make(const struct certificate *signer,
                                             enum certificate_use use, const char *name, int from,
                                             int until)
{
    static const char *const hosts[] = {"localhost", "127.0.0.1", "::1"};
    int64_t now_s = clock_wall_ms() / 1000;
    struct certificate_wish wish = {
        .use = use,
        .name = name,
        .hosts = use == CERTIFICATE_SERVER ? hosts : NULL,
        .n_hosts = use == CERTIFICATE_SERVER ? 3 : 0,
        .from_s = now_s + (int64_t)from * CERTS_DAY,
        .until_s = now_s + (int64_t)until * CERTS_DAY,
    };
    struct certificate *made = certificate_make(&wish, signer);
    assert_non_null(made);
    return made;
}

/* Paths of a certificate signed by the authority and of its key. */
struct certs_pair {
    const char *certificate;
    const char *key;
};

static inline struct certs_pair certs_pair(struct certs *c, const struct certificate *signer,
                                           enum certificate_use use, const char *name, int from,
                                           int until)
{
    struct certificate *made = certs_make(signer, use, name, from, until);
    char key_name[64];
    char certificate_name[64];
    snprintf(certificate_name, sizeof(certificate_name), "%s.pem", name);
    snprintf(key_name, sizeof(key_name), "%s-key.pem", name);
    struct certs_pair pair = {
        .certificate = certs_write(c, certificate_name, certificate_pem(made)),
        .key = certs_write(c, key_name, certificate_key_pem(made)),
    };
    certificate_free(made);
    return pair;
}

/* An authority, whose certificate is at ca_path. */
static inline void certs_init(struct certs *c)
{
    *c = (struct certs){.folder = "/tmp/muster-certs-XXXXXX"};
    assert_non_null(mkdtemp(c->folder));
    c->ca = certs_make(NULL, CERTIFICATE_AUTHORITY, "authority", -1, 30);
    c->ca_path = certs_write(c, "ca.pem", certificate_pem(c->ca));
}

static inline void certs_done(struct certs *c)
{
    for (size_t i = 0; i < c->n; i++) {
        unlink(c->paths[i]);
        free(c->paths[i]);
    }
    rmdir(c->folder);
    certificate_free(c->ca);
}

static inline struct tls *certs_load(struct certs_pair pair, const char *client_ca)
{
    struct tls_files files = {pair.certificate, pair.key, client_ca};
    struct tls *tls = NULL;
    char why[TLS_WHY_MAX] = "";
    int err = tls_load(&files, &tls, why);
    if (err != 0)
        print_error("%s\n", why);
    assert_int_equal(err, 0);
    return tls;
}
