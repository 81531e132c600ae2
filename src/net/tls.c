#include "net/tls.h"

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"

#include <assert.h>
#include <errno.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { FILE_SIZE_MAX = 1024 * 1024 }; /* the certificates of every public authority fit twice */

static const char priorities[] = "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2";

struct tls_credentials {
    size_t users;
    gnutls_certificate_credentials_t x509;
    gnutls_priority_t priority;
    bool wants_client;
    int64_t expires_s;
    struct buf certificate; /* the files, each with a NUL */
    struct buf key;
};

struct tls {
    struct tls_credentials *now;
};

/* A file as the operator knows it: "certificate /etc/muster/server.pem". */
struct pem {
    const char *what;
    const char *path;
    struct buf text; /* with a NUL */
};

static int refuse(char *why, int err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static int refuse(char *why, int err, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(why, TLS_WHY_MAX, format, args);
    va_end(args);
    return err;
}

static void pem_done(struct pem *p)
{
    if (p->text.data)
        explicit_bzero(p->text.data, p->text.len);
    buf_done(&p->text);
}

static gnutls_datum_t pem_datum(const struct pem *p)
{
    return (gnutls_datum_t){.data = p->text.data, .size = (unsigned)p->text.len - 1};
}

/* Reads it in one piece: a buffer that grew would leave parts of a key behind in freed memory. */
static int pem_read(struct pem *p, char *why)
{
    FILE *f = fopen(p->path, "re");
    if (!f)
        return refuse(why, ERR_IO, "%s %.150s cannot be read: %s", p->what, p->path,
                      strerror(errno));
    setvbuf(f, NULL, _IONBF, 0);
    uint8_t *whole = xmalloc(FILE_SIZE_MAX + 1);
    errno = 0;
    size_t len = fread(whole, 1, FILE_SIZE_MAX + 1, f);
    int error = ferror(f) ? errno : 0;
    fclose(f);
    p->text = (struct buf){.data = xcalloc(len + 1, 1), .len = len + 1, .cap = len + 1};
    memcpy(p->text.data, whole, len);
    explicit_bzero(whole, len);
    free(whole);
    if (error)
        return refuse(why, ERR_IO, "%s %.150s cannot be read: %s", p->what, p->path,
                      strerror(error));
    if (len > FILE_SIZE_MAX)
        return refuse(why, ERR_FORMAT, "%s %.150s is larger than 1 MiB; is it the right file?",
                      p->what, p->path);
    return 0;
}

static const char *print_time(time_t t, char dst[32])
{
    struct tm utc;
    gmtime_r(&t, &utc);
    strftime(dst, 32, "%Y-%m-%d %H:%M:%S UTC", &utc);
    return dst;
}

static time_t wall_s(void)
{
    return (time_t)(clock_wall_ms() / 1000);
}

static int check_dates(const struct pem *p, gnutls_x509_crt_t crt, char *why)
{
    char text[32];
    time_t from = gnutls_x509_crt_get_activation_time(crt);
    time_t until = gnutls_x509_crt_get_expiration_time(crt);
    if (wall_s() >= until)
        return refuse(why, ERR_FORMAT, "%s %.150s expired on %s", p->what, p->path,
                      print_time(until, text));
    if (wall_s() < from)
        return refuse(why, ERR_FORMAT,
                      "%s %.130s is not valid before %s; is this machine's clock right?", p->what,
                      p->path, print_time(from, text));
    return 0;
}

static int no_certificates(const struct pem *p, int error, char *why)
{
    if (error == GNUTLS_E_CERTIFICATE_LIST_UNSORTED)
        return refuse(why, ERR_FORMAT,
                      "%s %.100s is out of order: the server's own certificate comes first, then "
                      "the one that signed it, and so on",
                      p->what, p->path);
    if (error == GNUTLS_E_NO_CERTIFICATE_FOUND || error == GNUTLS_E_BASE64_UNEXPECTED_HEADER_ERROR)
        return refuse(why, ERR_FORMAT,
                      "%s %.130s holds no certificate in PEM (-----BEGIN CERTIFICATE-----)",
                      p->what, p->path);
    return refuse(why, ERR_FORMAT, "%s %.130s is no certificate: %s", p->what, p->path,
                  gnutls_strerror(error));
}

/* Certificates as GnuTLS hands them out. */
struct chain {
    gnutls_x509_crt_t *at;
    unsigned n;
};

static void chain_done(struct chain *c)
{
    for (unsigned i = 0; i < c->n; i++)
        gnutls_x509_crt_deinit(c->at[i]);
    gnutls_free(c->at);
}

static int chain_import(struct chain *c, const struct pem *p, unsigned flags, char *why)
{
    gnutls_datum_t text = pem_datum(p);
    int error = gnutls_x509_crt_list_import2(&c->at, &c->n, &text, GNUTLS_X509_FMT_PEM, flags);
    if (error >= 0)
        return 0;
    *c = (struct chain){0};
    return no_certificates(p, error, why);
}

static int key_import(gnutls_x509_privkey_t key, const struct pem *p, char *why)
{
    gnutls_datum_t text = pem_datum(p);
    int error = gnutls_x509_privkey_import2(key, &text, GNUTLS_X509_FMT_PEM, NULL, 0);
    if (error >= 0)
        return 0;
    if (error == GNUTLS_E_DECRYPTION_FAILED)
        return refuse(why, ERR_FORMAT,
                      "%s %.150s is protected by a passphrase; Muster needs one without", p->what,
                      p->path);
    return refuse(why, ERR_FORMAT, "%s %.130s holds no private key in PEM", p->what, p->path);
}

static int take_pair(struct tls_credentials *c, const struct pem *certificate,
                     const struct pem *key_file, struct chain *chain, gnutls_x509_privkey_t key,
                     char *why)
{
    int err = chain_import(chain, certificate, GNUTLS_X509_CRT_LIST_FAIL_IF_UNSORTED, why);
    for (unsigned i = 0; err == 0 && i < chain->n; i++)
        err = check_dates(certificate, chain->at[i], why);
    if (err == 0)
        err = key_import(key, key_file, why);
    if (err != 0)
        return err;
    int error = gnutls_certificate_set_x509_key(c->x509, chain->at, (int)chain->n, key);
    if (error == GNUTLS_E_CERTIFICATE_KEY_MISMATCH)
        return refuse(why, ERR_FORMAT, "key %.90s does not belong to certificate %.90s",
                      key_file->path, certificate->path);
    if (error < 0)
        return refuse(why, ERR_FORMAT, "certificate %.130s cannot be used: %s", certificate->path,
                      gnutls_strerror(error));
    assert(chain->n > 0); /* else it would not have been imported */
    c->expires_s = (int64_t)gnutls_x509_crt_get_expiration_time(chain->at[0]);
    return 0;
}

static int load_pair(struct tls_credentials *c, struct pem *certificate, struct pem *key_file,
                     char *why)
{
    struct chain chain = {0};
    gnutls_x509_privkey_t key;
    int err = pem_read(certificate, why);
    if (err == 0)
        err = pem_read(key_file, why);
    if (err != 0)
        return err;
    if (gnutls_x509_privkey_init(&key) < 0)
        abort();
    err = take_pair(c, certificate, key_file, &chain, key, why);
    gnutls_x509_privkey_deinit(key);
    chain_done(&chain);
    return err;
}

/* Of several authorities one may have run out; only when no other is left nobody could connect. */
static int check_authorities(const struct pem *p, const struct chain *chain, char *why)
{
    int err = 0;
    for (unsigned i = 0; i < chain->n; i++) {
        err = check_dates(p, chain->at[i], why);
        if (err == 0)
            return 0;
    }
    return err;
}

static int load_client_ca(struct tls_credentials *c, struct pem *p, char *why)
{
    struct chain chain = {0};
    int err = pem_read(p, why);
    if (err == 0)
        err = chain_import(&chain, p, 0, why);
    if (err == 0)
        err = check_authorities(p, &chain, why);
    if (err == 0 && gnutls_certificate_set_x509_trust(c->x509, chain.at, (int)chain.n) < 0)
        err = refuse(why, ERR_FORMAT, "%s %.150s cannot be used", p->what, p->path);
    chain_done(&chain);
    c->wants_client = true;
    return err;
}

void tls_release(struct tls_credentials *c)
{
    if (!c || --c->users > 0)
        return;
    gnutls_certificate_free_credentials(c->x509);
    gnutls_priority_deinit(c->priority);
    buf_done(&c->certificate);
    if (c->key.data)
        explicit_bzero(c->key.data, c->key.len);
    buf_done(&c->key);
    free(c);
}

static int credentials_load(const struct tls_files *files, struct tls_credentials **ret, char *why)
{
    struct tls_credentials *c = xcalloc(1, sizeof(*c));
    c->users = 1;
    /* These fail only for want of memory. */
    if (gnutls_certificate_allocate_credentials(&c->x509) < 0 ||
        gnutls_priority_init(&c->priority, priorities, NULL) < 0)
        abort();
    struct pem certificate = {.what = "certificate", .path = files->certificate};
    struct pem key = {.what = "key", .path = files->key};
    struct pem client_ca = {.what = "client_ca", .path = files->client_ca};
    int err = load_pair(c, &certificate, &key, why);
    if (err == 0 && files->client_ca && files->client_ca[0])
        err = load_client_ca(c, &client_ca, why);
    if (err != 0) {
        pem_done(&certificate);
        pem_done(&key);
        pem_done(&client_ca);
        tls_release(c);
        return err;
    }
    pem_done(&client_ca);
    c->certificate = certificate.text;
    c->key = key.text;
    *ret = c;
    return 0;
}

int tls_load(const struct tls_files *files, struct tls **ret, char why[TLS_WHY_MAX])
{
    struct tls_credentials *c = NULL;
    int err = credentials_load(files, &c, why);
    if (err != 0)
        return err;
    *ret = xcalloc(1, sizeof(**ret));
    (*ret)->now = c;
    return 0;
}

int tls_reload(struct tls *tls, const struct tls_files *files, char why[TLS_WHY_MAX])
{
    struct tls_credentials *c = NULL;
    int err = credentials_load(files, &c, why);
    if (err != 0)
        return err;
    tls_release(tls->now);
    tls->now = c;
    return 0;
}

void tls_free(struct tls *tls)
{
    if (!tls)
        return;
    tls_release(tls->now);
    free(tls);
}

int64_t tls_expires_s(const struct tls *tls)
{
    return tls->now->expires_s;
}

bool tls_wants_client(const struct tls *tls)
{
    return tls->now->wants_client;
}

const char *tls_certificate_pem(const struct tls *tls)
{
    return (const char *)tls->now->certificate.data;
}

const char *tls_key_pem(const struct tls *tls)
{
    return (const char *)tls->now->key.data;
}

struct tls_credentials *tls_attach(struct tls *tls, gnutls_session_t session)
{
    static gnutls_typed_vdata_st client_purpose = {
        .type = GNUTLS_DT_KEY_PURPOSE_OID,
        .data = (unsigned char *)GNUTLS_KP_TLS_WWW_CLIENT,
    };
    struct tls_credentials *c = tls->now;
    c->users++;
    gnutls_priority_set(session, c->priority);
    gnutls_credentials_set(session, GNUTLS_CRD_CERTIFICATE, c->x509);
    gnutls_handshake_set_max_packet_length(session, TLS_SWALLOW_MAX);
    if (c->wants_client) {
        gnutls_certificate_server_set_request(session, GNUTLS_CERT_REQUIRE);
        gnutls_session_set_verify_cert2(session, &client_purpose, 1, 0);
    } else {
        gnutls_certificate_server_set_request(session, GNUTLS_CERT_IGNORE);
    }
    return c;
}
