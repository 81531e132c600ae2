#include "net/certificate.h"

#include "base/buf.h"
#include "net/address.h"

#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <stdlib.h>
#include <string.h>

enum { SERIAL_SIZE = 16, KEY_ID_MAX = 64 };

struct certificate {
    gnutls_x509_privkey_t key;
    gnutls_x509_crt_t crt;
    gnutls_datum_t pem;
    gnutls_datum_t key_pem;
};

void certificate_free(struct certificate *c)
{
    if (!c)
        return;
    gnutls_x509_crt_deinit(c->crt);
    gnutls_x509_privkey_deinit(c->key);
    gnutls_free(c->pem.data);
    if (c->key_pem.data)
        explicit_bzero(c->key_pem.data, c->key_pem.size);
    gnutls_free(c->key_pem.data);
    free(c);
}

static int add_host(gnutls_x509_crt_t crt, const char *host)
{
    union address a;
    if (!address_parse(host, 0, &a))
        return gnutls_x509_crt_set_subject_alt_name(crt, GNUTLS_SAN_DNSNAME, host,
                                                    (unsigned)strlen(host), GNUTLS_FSAN_APPEND);
    bool v4 = a.any.sa_family == AF_INET;
    const void *bytes = v4 ? (const void *)&a.v4.sin_addr : (const void *)&a.v6.sin6_addr;
    return gnutls_x509_crt_set_subject_alt_name(crt, GNUTLS_SAN_IPADDRESS, bytes, v4 ? 4 : 16,
                                                GNUTLS_FSAN_APPEND);
}

static int set_identity(gnutls_x509_crt_t crt, const struct certificate_wish *wish)
{
    uint8_t serial[SERIAL_SIZE];
    int error = gnutls_rnd(GNUTLS_RND_NONCE, serial, sizeof(serial));
    serial[0] &= 0x7F; /* a positive number */
    serial[0] |= 0x40; /* … that does not begin with zeros */
    if (error == 0)
        error = gnutls_x509_crt_set_serial(crt, serial, sizeof(serial));
    if (error == 0)
        error = gnutls_x509_crt_set_version(crt, 3);
    if (error == 0)
        error = gnutls_x509_crt_set_dn_by_oid(crt, GNUTLS_OID_X520_COMMON_NAME, 0, wish->name,
                                              (unsigned)strlen(wish->name));
    if (error == 0)
        error = gnutls_x509_crt_set_activation_time(crt, (time_t)wish->from_s);
    if (error == 0)
        error = gnutls_x509_crt_set_expiration_time(crt, (time_t)wish->until_s);
    for (size_t i = 0; error == 0 && i < wish->n_hosts; i++)
        error = add_host(crt, wish->hosts[i]);
    return error;
}

static int set_use(gnutls_x509_crt_t crt, enum certificate_use use)
{
    bool authority = use == CERTIFICATE_AUTHORITY;
    unsigned usage =
        authority ? GNUTLS_KEY_KEY_CERT_SIGN | GNUTLS_KEY_CRL_SIGN : GNUTLS_KEY_DIGITAL_SIGNATURE;
    const char *purpose =
        use == CERTIFICATE_SERVER ? GNUTLS_KP_TLS_WWW_SERVER : GNUTLS_KP_TLS_WWW_CLIENT;
    int error = gnutls_x509_crt_set_basic_constraints(crt, authority, authority ? 0 : -1);
    if (error == 0)
        error = gnutls_x509_crt_set_key_usage(crt, usage);
    if (error == 0 && !authority)
        error = gnutls_x509_crt_set_key_purpose_oid(crt, purpose, 0);
    return error;
}

/* Clients that hold several authorities find the right one by its key's id. */
static int set_key_ids(gnutls_x509_crt_t crt, gnutls_x509_crt_t signer)
{
    uint8_t id[KEY_ID_MAX];
    size_t size = sizeof(id);
    int error = gnutls_x509_crt_get_key_id(crt, 0, id, &size);
    if (error == 0)
        error = gnutls_x509_crt_set_subject_key_id(crt, id, size);
    size = sizeof(id);
    if (error == 0)
        error = gnutls_x509_crt_get_key_id(signer, 0, id, &size);
    if (error == 0)
        error = gnutls_x509_crt_set_authority_key_id(crt, id, size);
    return error;
}

static int make(struct certificate *c, const struct certificate_wish *wish,
                const struct certificate *signer)
{
    int error = gnutls_x509_privkey_generate(c->key, GNUTLS_PK_ECDSA,
                                             GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1), 0);
    if (error == 0)
        error = gnutls_x509_crt_set_key(c->crt, c->key);
    if (error == 0)
        error = set_identity(c->crt, wish);
    if (error == 0)
        error = set_use(c->crt, wish->use);
    if (error == 0)
        error = set_key_ids(c->crt, signer->crt);
    if (error == 0)
        error = gnutls_x509_crt_sign2(c->crt, signer->crt, signer->key, GNUTLS_DIG_SHA256, 0);
    if (error == 0)
        error = gnutls_x509_crt_export2(c->crt, GNUTLS_X509_FMT_PEM, &c->pem);
    if (error == 0)
        error = gnutls_x509_privkey_export2_pkcs8(c->key, GNUTLS_X509_FMT_PEM, NULL,
                                                  GNUTLS_PKCS_PLAIN, &c->key_pem);
    return error;
}

struct certificate *certificate_make(const struct certificate_wish *wish,
                                     const struct certificate *signer)
{
    struct certificate *c = xcalloc(1, sizeof(*c));
    if (gnutls_x509_privkey_init(&c->key) < 0 || gnutls_x509_crt_init(&c->crt) < 0)
        abort(); /* only for want of memory */
    if (make(c, wish, signer ? signer : c) == 0)
        return c;
    certificate_free(c);
    return NULL;
}

struct str certificate_pem(const struct certificate *c)
{
    return (struct str){(const char *)c->pem.data, c->pem.size};
}

struct str certificate_key_pem(const struct certificate *c)
{
    return (struct str){(const char *)c->key_pem.data, c->key_pem.size};
}
