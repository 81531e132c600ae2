/* Certificates are loaded or refused with a sentence, and sessions shake hands with a real client
 * over memory, byte by byte where that matters. */
#include "base/err.h"
#include "lib/certs.h"
#include "lib/tls_client.h"
#include "net/tls_session.h"

#include <gnutls/crypto.h>

static struct certs certs;
static struct certs_pair server;

static int make_certs(void **state)
{
    (void)state;
    certs_init(&certs);
    server = certs_pair(&certs, certs.ca, CERTIFICATE_SERVER, "server", -1, 7);
    return 0;
}

static int remove_certs(void **state)
{
    (void)state;
    certs_done(&certs);
    return 0;
}

static void check_refused(struct tls_files files, int err, const char *words)
{
    struct tls *tls = NULL;
    char why[TLS_WHY_MAX] = "";
    assert_int_equal(tls_load(&files, &tls, why), err);
    assert_null(tls);
    if (!strstr(why, words))
        fail_msg("\"%s\" does not say \"%s\"", why, words);
    assert_non_null(strstr(why, certs.folder)); /* which file */
}

static void test_a_good_pair_is_loaded(void **state)
{
    (void)state;
    struct tls *tls = certs_load(server, NULL);
    int64_t left_s = tls_expires_s(tls) - clock_wall_ms() / 1000;
    assert_in_range(left_s, 7 * CERTS_DAY - 60, 7 * CERTS_DAY + 1);
    assert_false(tls_wants_client(tls));
    assert_non_null(strstr(tls_certificate_pem(tls), "BEGIN CERTIFICATE"));
    assert_non_null(strstr(tls_key_pem(tls), "PRIVATE KEY"));
    tls_free(tls);

    tls = certs_load(server, certs.ca_path);
    assert_true(tls_wants_client(tls));
    tls_free(tls);
    tls_free(NULL);
}

static void test_a_file_that_cannot_be_read(void **state)
{
    (void)state;
    char absent[CERTS_PATH + 8];
    snprintf(absent, sizeof(absent), "%s/absent", certs.folder);
    check_refused((struct tls_files){absent, server.key, NULL}, ERR_IO,
                  "certificate /tmp/muster-certs-");
    check_refused((struct tls_files){absent, server.key, NULL}, ERR_IO,
                  "cannot be read: No such file or directory");
    check_refused((struct tls_files){server.certificate, absent, NULL}, ERR_IO, "key /tmp/");
    check_refused((struct tls_files){server.certificate, server.key, absent}, ERR_IO,
                  "client_ca /tmp/");
    check_refused((struct tls_files){certs.folder, server.key, NULL}, ERR_IO,
                  "cannot be read: Is a directory");
}

static void test_a_file_that_is_no_pem(void **state)
{
    (void)state;
    const char *text = certs_write(&certs, "text", STR("listen:\n  bind: 0.0.0.0\n"));
    const char *empty = certs_write(&certs, "empty", STR(""));
    check_refused((struct tls_files){text, server.key, NULL}, ERR_FORMAT,
                  "holds no certificate in PEM");
    check_refused((struct tls_files){empty, server.key, NULL}, ERR_FORMAT,
                  "holds no certificate in PEM");
    check_refused((struct tls_files){server.certificate, text, NULL}, ERR_FORMAT,
                  "holds no private key in PEM");
    check_refused((struct tls_files){server.certificate, server.key, text}, ERR_FORMAT,
                  "client_ca");
}

static void test_files_in_each_others_place(void **state)
{
    (void)state;
    check_refused((struct tls_files){server.key, server.certificate, NULL}, ERR_FORMAT,
                  "holds no certificate in PEM");
    check_refused((struct tls_files){server.certificate, server.certificate, NULL}, ERR_FORMAT,
                  "holds no private key in PEM");
}

static void test_a_damaged_certificate(void **state)
{
    (void)state;
    const char *torn = certs_write(
        &certs, "torn.pem", STR("-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n"));
    check_refused((struct tls_files){torn, server.key, NULL}, ERR_FORMAT, "is no certificate: ");
}

static void test_a_file_without_end(void **state)
{
    (void)state;
    struct tls_files files = {"/dev/zero", server.key, NULL};
    struct tls *tls = NULL;
    char why[TLS_WHY_MAX] = "";
    assert_int_equal(tls_load(&files, &tls, why), ERR_FORMAT);
    assert_string_equal(why, "certificate /dev/zero is larger than 1 MiB; is it the right file?");
}

static void test_the_key_of_another_certificate(void **state)
{
    (void)state;
    struct certs_pair other = certs_pair(&certs, certs.ca, CERTIFICATE_SERVER, "other", -1, 7);
    check_refused((struct tls_files){server.certificate, other.key, NULL}, ERR_FORMAT,
                  "other-key.pem does not belong to certificate");
}

static void test_a_key_with_a_passphrase(void **state)
{
    (void)state;
    struct certificate *made = certs_make(certs.ca, CERTIFICATE_SERVER, "locked", -1, 7);
    gnutls_x509_privkey_t key;
    gnutls_datum_t plain = {(unsigned char *)certificate_key_pem(made).at,
                            (unsigned)certificate_key_pem(made).len};
    gnutls_datum_t locked = {0};
    assert_int_equal(gnutls_x509_privkey_init(&key), 0);
    assert_int_equal(gnutls_x509_privkey_import2(key, &plain, GNUTLS_X509_FMT_PEM, NULL, 0), 0);
    assert_int_equal(gnutls_x509_privkey_export2_pkcs8(key, GNUTLS_X509_FMT_PEM, "secret",
                                                       GNUTLS_PKCS_PBES2_AES_256, &locked),
                     0);
    const char *path =
        certs_write(&certs, "locked-key.pem", (struct str){(char *)locked.data, locked.size});
    check_refused((struct tls_files){server.certificate, path, NULL}, ERR_FORMAT,
                  "is protected by a passphrase");
    gnutls_free(locked.data);
    gnutls_x509_privkey_deinit(key);
    certificate_free(made);
}

static void test_a_certificate_out_of_its_time(void **state)
{
    (void)state;
    struct certs_pair old = certs_pair(&certs, certs.ca, CERTIFICATE_SERVER, "old", -20, -10);
    struct certs_pair new = certs_pair(&certs, certs.ca, CERTIFICATE_SERVER, "new", 10, 20);
    check_refused((struct tls_files){old.certificate, old.key, NULL}, ERR_FORMAT,
                  "old.pem expired on 20");
    check_refused((struct tls_files){new.certificate, new.key, NULL}, ERR_FORMAT,
                  "new.pem is not valid before 20");
}

static void test_authorities_out_of_their_time(void **state)
{
    (void)state;
    struct certificate *old = certs_make(NULL, CERTIFICATE_AUTHORITY, "old-ca", -20, -10);
    char both[8192];
    int len = snprintf(both, sizeof(both), "%.*s%.*s", (int)certificate_pem(old).len,
                       certificate_pem(old).at, (int)certificate_pem(certs.ca).len,
                       certificate_pem(certs.ca).at);
    const char *one = certs_write(&certs, "old-ca.pem", certificate_pem(old));
    const char *two = certs_write(&certs, "both-ca.pem", (struct str){both, (size_t)len});
    check_refused((struct tls_files){server.certificate, server.key, one}, ERR_FORMAT,
                  "old-ca.pem expired on 20");
    tls_free(certs_load(server, two)); /* one of the two can still sign clients */
    certificate_free(old);
}

static void test_a_chain_must_be_in_order(void **state)
{
    (void)state;
    struct certificate *leaf = certs_make(certs.ca, CERTIFICATE_SERVER, "leaf", -1, 7);
    struct str a = certificate_pem(leaf), b = certificate_pem(certs.ca);
    char text[8192];
    int len = snprintf(text, sizeof(text), "%.*s%.*s", (int)a.len, a.at, (int)b.len, b.at);
    struct certs_pair chain = {
        .certificate = certs_write(&certs, "chain.pem", (struct str){text, (size_t)len}),
        .key = certs_write(&certs, "chain-key.pem", certificate_key_pem(leaf)),
    };
    tls_free(certs_load(chain, NULL));
    len = snprintf(text, sizeof(text), "%.*s%.*s", (int)b.len, b.at, (int)a.len, a.at);
    chain.certificate = certs_write(&certs, "reversed.pem", (struct str){text, (size_t)len});
    check_refused((struct tls_files){chain.certificate, chain.key, NULL}, ERR_FORMAT,
                  "is out of order: the server's own certificate comes first");
    certificate_free(leaf);
}

/* A session and a client whose bytes cross each other in memory. */
struct talk {
    struct tls_session *session;
    struct tls_client client;
    enum tls_result result;
    uint8_t heard[64 * 1024 + TLS_RECORD_MAX]; /* by the session */
    size_t n_heard;
};

static void talk_init(struct talk *t, struct tls *tls, const struct tls_client_wish *wish)
{
    t->session = tls_session_new(tls);
    t->result = TLS_GOES_ON;
    t->n_heard = 0;
    tls_client_init(&t->client, -1, wish);
}

static void talk_done(struct talk *t)
{
    tls_session_free(t->session);
    tls_client_done(&t->client);
}

/* Everything the client wrote, in pieces of at most `piece` bytes; then everything it gets. */
static void talk_turn(struct talk *t, size_t piece)
{
    while (t->client.out.len > 0) {
        size_t n = t->client.out.len < piece ? t->client.out.len : piece;
        size_t len = 0;
        if (t->result == TLS_GOES_ON) {
            t->result =
                tls_session_open(t->session, t->client.out.data, n, t->heard + t->n_heard, &len);
            t->n_heard += len;
        }
        buf_consume(&t->client.out, n);
    }
    tls_session_seal(t->session, NULL, 0, false, &t->client.in);
}

static void talk_shake(struct talk *t, size_t piece)
{
    for (int i = 0; i < 10 && !tls_client_shake(&t->client); i++)
        talk_turn(t, piece);
    talk_turn(t, piece);
}

static void check_understood(struct talk *t)
{
    char text[16] = "";
    assert_true(t->client.done);
    assert_true(tls_session_established(t->session));
    t->n_heard = 0;
    tls_client_say(&t->client, "hello", 5);
    talk_turn(t, SIZE_MAX);
    assert_int_equal(t->result, TLS_GOES_ON);
    assert_int_equal(t->n_heard, 5);
    assert_memory_equal(t->heard, "hello", 5);
    assert_true(tls_session_seal(t->session, (const uint8_t *)"world", 5, false, &t->client.in));
    assert_int_equal(tls_client_hear(&t->client, text, sizeof(text)), 5);
    assert_string_equal(text, "world");
    assert_int_equal(tls_session_unsent(t->session), 0);
}

static void test_bytes_of_any_size(void **state)
{
    (void)state;
    static const size_t pieces[] = {1, 2, 5, 100, SIZE_MAX};
    static const char *const versions[] = {"NORMAL:-VERS-ALL:+VERS-TLS1.2",
                                           "NORMAL:-VERS-ALL:+VERS-TLS1.3"};
    struct tls *tls = certs_load(server, NULL);
    for (size_t i = 0; i < 10; i++) {
        static struct talk t;
        struct tls_client_wish wish = {.ca = certs.ca_path, .priorities = versions[i % 2]};
        talk_init(&t, tls, &wish);
        talk_shake(&t, pieces[i / 2]);
        check_understood(&t);
        talk_done(&t);
    }
    tls_free(tls);
}

static void test_long_output_and_input(void **state)
{
    (void)state;
    static struct talk t;
    static uint8_t bytes[40000], back[40000];
    struct tls *tls = certs_load(server, NULL);
    talk_init(&t, tls, &(struct tls_client_wish){.ca = certs.ca_path});
    talk_shake(&t, SIZE_MAX);
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (uint8_t)(i * 31);
    assert_true(tls_session_seal(t.session, bytes, sizeof(bytes), false, &t.client.in));
    size_t got = 0, n;
    while ((n = tls_client_hear(&t.client, back + got, sizeof(back) - got)) > 0)
        got += n;
    assert_int_equal(got, sizeof(bytes));
    assert_memory_equal(back, bytes, sizeof(bytes));

    for (size_t at = 0; at < sizeof(bytes); at += n)
        n = (size_t)gnutls_record_send(t.client.session, bytes + at, sizeof(bytes) - at);
    talk_turn(&t, 1000); /* no piece holds a whole record */
    assert_int_equal(t.n_heard, sizeof(bytes));
    assert_memory_equal(t.heard, bytes, sizeof(bytes));
    talk_done(&t);
    tls_free(tls);
}

static void test_both_say_goodbye(void **state)
{
    (void)state;
    static struct talk t;
    char text[16] = "";
    struct tls *tls = certs_load(server, NULL);
    talk_init(&t, tls, &(struct tls_client_wish){.ca = certs.ca_path});
    talk_shake(&t, SIZE_MAX);
    assert_true(tls_session_seal(t.session, (const uint8_t *)"bye", 3, true, &t.client.in));
    size_t all = t.client.in.len;
    assert_true(tls_session_seal(t.session, NULL, 0, true, &t.client.in));
    assert_int_equal(t.client.in.len, all); /* goodbye is said once */
    assert_int_equal(tls_client_hear(&t.client, text, sizeof(text)), 3);
    assert_int_equal(tls_client_hear(&t.client, text, sizeof(text)), 0);
    assert_true(t.client.ended);
    gnutls_bye(t.client.session, GNUTLS_SHUT_WR);
    talk_turn(&t, SIZE_MAX);
    assert_int_equal(t.result, TLS_ENDED);
    talk_done(&t);
    tls_free(tls);
}

static void check_why(const struct talk *t, const char *words)
{
    assert_int_equal(t->result, TLS_FAILED);
    assert_false(tls_session_established(t->session));
    if (!strstr(tls_session_why(t->session), words))
        fail_msg("\"%s\" does not say \"%s\"", tls_session_why(t->session), words);
}

static void test_a_peer_without_tls(void **state)
{
    (void)state;
    static const char *const texts[] = {"GET / HTTP/1.1\r\n\r\n", "\x20", "\x16\x04\x00\x10"};
    struct tls *tls = certs_load(server, NULL);
    for (size_t i = 0; i < 3; i++) {
        static struct talk t;
        talk_init(&t, tls, &(struct tls_client_wish){0});
        buf_append(&t.client.out, texts[i], strlen(texts[i]));
        talk_turn(&t, 1);
        check_why(&t, "the peer does not speak TLS");
        assert_in_range(t.client.in.len, 1, 100);
        assert_int_equal(t.client.in.data[0], 21); /* an alert */
        talk_done(&t);
    }
    tls_free(tls);
}

static void test_garbage_after_the_handshake(void **state)
{
    (void)state;
    static struct talk t;
    struct tls *tls = certs_load(server, NULL);
    talk_init(&t, tls, &(struct tls_client_wish){.ca = certs.ca_path});
    talk_shake(&t, SIZE_MAX);
    uint8_t record[25] = {23, 3, 3, 0, 20};
    buf_append(&t.client.out, record, sizeof(record));
    talk_turn(&t, SIZE_MAX);
    assert_int_equal(t.result, TLS_FAILED);
    assert_non_null(tls_session_why(t.session));
    assert_false(tls_session_seal(t.session, (const uint8_t *)"x", 1, false, &t.client.in));
    talk_done(&t);
    tls_free(tls);
}

/* GnuTLS deals with the update and says "again", though there are words behind it. */
static void test_words_behind_a_key_update(void **state)
{
    (void)state;
    struct tls *tls = certs_load(server, NULL);
    for (unsigned ask_us_too = 0; ask_us_too < 2; ask_us_too++) {
        static struct talk t;
        talk_init(&t, tls,
                  &(struct tls_client_wish){.priorities = "NORMAL:-VERS-ALL:+VERS-TLS1.3"});
        talk_shake(&t, SIZE_MAX);
        for (int i = 0; i < 3; i++) {
            assert_int_equal(
                gnutls_session_key_update(t.client.session, ask_us_too ? GNUTLS_KU_PEER : 0), 0);
            tls_client_say(&t.client, "words", 5);
        }
        talk_turn(&t, SIZE_MAX);
        assert_int_equal(t.result, TLS_GOES_ON);
        assert_int_equal(t.n_heard, 15);
        assert_memory_equal(t.heard, "wordswordswords", 15);
        check_understood(&t);
        talk_done(&t);
    }
    tls_free(tls);
}

static void test_another_handshake_is_refused(void **state)
{
    (void)state;
    static struct talk t;
    struct tls *tls = certs_load(server, NULL);
    talk_init(&t, tls, &(struct tls_client_wish){.priorities = "NORMAL:-VERS-ALL:+VERS-TLS1.2"});
    talk_shake(&t, SIZE_MAX);
    gnutls_handshake(t.client.session);
    talk_turn(&t, SIZE_MAX);
    check_why(&t, "the peer wants another handshake");
    talk_done(&t);
    tls_free(tls);
}

/* A handshake record of TLS 1.3, sealed with the client's own key as its number `seq` from now. */
static void append_sealed_handshake(struct tls_client *c, uint64_t seq, const uint8_t *data,
                                    size_t len)
{
    enum { TAG = 16, NONCE = 12, HANDSHAKE = 22 };
    gnutls_datum_t mac, iv, key;
    uint8_t number[8], nonce[NONCE], inner[2048], sealed[2048 + TAG];
    gnutls_aead_cipher_hd_t cipher;
    assert_int_equal(gnutls_record_get_state(c->session, 0, &mac, &iv, &key, number), 0);
    for (size_t i = 0; i < sizeof(number); i++)
        seq += (uint64_t)number[i] << 8 * (7 - i);
    memcpy(nonce, iv.data, NONCE);
    for (size_t i = 0; i < 8; i++)
        nonce[NONCE - 1 - i] ^= (uint8_t)(seq >> 8 * i);
    memcpy(inner, data, len);
    inner[len] = HANDSHAKE;
    size_t size = sizeof(sealed), whole = len + 1 + TAG;
    uint8_t header[5] = {23, 3, 3, (uint8_t)(whole >> 8), (uint8_t)whole};
    assert_int_equal(gnutls_aead_cipher_init(&cipher, gnutls_cipher_get(c->session), &key), 0);
    assert_int_equal(gnutls_aead_cipher_encrypt(cipher, nonce, NONCE, header, sizeof(header), TAG,
                                                inner, len + 1, sealed, &size),
                     0);
    gnutls_aead_cipher_deinit(cipher);
    buf_append(&c->out, header, sizeof(header));
    buf_append(&c->out, sealed, size);
}

/* GnuTLS would gather 16 MiB of it, before the handshake and after. */
static void test_a_message_without_end(void **state)
{
    (void)state;
    struct tls *tls = certs_load(server, NULL);
    for (int shaken = 0; shaken < 2; shaken++) {
        static struct talk t;
        size_t fed = 0;
        uint8_t piece[1000] = {[0] = shaken ? GNUTLS_HANDSHAKE_KEY_UPDATE : 1, 0xFF, 0xFF, 0xFF};
        talk_init(&t, tls,
                  &(struct tls_client_wish){.priorities = "NORMAL:-VERS-ALL:+VERS-TLS1.3"});
        if (shaken)
            talk_shake(&t, SIZE_MAX);
        for (uint64_t i = 0; t.result == TLS_GOES_ON; i += 2) {
            static const uint8_t header[] = {22, 3, 1, sizeof(piece) >> 8, sizeof(piece) & 0xFF};
            for (uint64_t record = i; record < i + 2; record++) { /* two in one read */
                if (shaken) {
                    append_sealed_handshake(&t.client, record, piece, sizeof(piece));
                } else {
                    buf_append(&t.client.out, header, sizeof(header));
                    buf_append(&t.client.out, piece, sizeof(piece));
                }
                memset(piece, 0, 4); /* only the first begins the message */
            }
            fed += t.client.out.len;
            talk_turn(&t, SIZE_MAX);
            assert_in_range(fed, 0, 2 * TLS_SWALLOW_MAX);
        }
        assert_string_equal(tls_session_why(t.session), "the peer sends a handshake without end");
        talk_done(&t);
    }
    tls_free(tls);
}

/* It counts what comes without a word, not what comes in all. */
static void test_much_is_not_without_end(void **state)
{
    (void)state;
    static struct talk t;
    static const char words[1000];
    struct tls *tls = certs_load(server, NULL);
    talk_init(&t, tls, &(struct tls_client_wish){0});
    talk_shake(&t, SIZE_MAX);
    for (size_t i = 0; i < 4 * TLS_SWALLOW_MAX / sizeof(words); i++) {
        t.n_heard = 0;
        tls_client_say(&t.client, words, sizeof(words));
        talk_turn(&t, 100);
        assert_int_equal(t.n_heard, sizeof(words));
        assert_int_equal(t.result, TLS_GOES_ON);
    }
    talk_done(&t);
    tls_free(tls);
}

/* One of the client's bytes is changed, lost or doubled on its way, or some noise comes between. */
static void spoil(struct dice *d, struct buf *b)
{
    size_t at = (size_t)dice_below(d, b->len);
    size_t rest = b->len - at;
    uint8_t noise[64];
    switch (dice_below(d, 4)) {
    case 0:
        b->data[at] ^= (uint8_t)(1 + dice_below(d, 255));
        break;
    case 1:
        b->len = at;
        break;
    case 2:
        (void)buf_extend(b, rest);
        memcpy(b->data + at + rest, b->data + at, rest);
        break;
    default:
        for (size_t i = 0; i < sizeof(noise); i++)
            noise[i] = (uint8_t)dice_roll(d);
        buf_append(b, noise, sizeof(noise));
        break;
    }
}

/* Whatever comes, the session fails or goes on; when it goes on it has taken everything. */
static void test_spoilt_bytes(void **state)
{
    (void)state;
    struct tls *tls = certs_load(server, NULL);
    struct dice d = {42};
    int failed = 0;
    for (int round = 0; round < 600; round++) {
        static struct talk t;
        talk_init(&t, tls, &(struct tls_client_wish){0});
        size_t piece = 1 + (size_t)dice_below(&d, 2000);
        uint64_t spoilt = dice_below(&d, 4); /* which of the client's flights */
        for (uint64_t flight = 0; flight < 4 && t.result == TLS_GOES_ON; flight++) {
            tls_client_shake(&t.client);
            if (t.client.done)
                gnutls_record_send(t.client.session, "hello", 5);
            if (flight == spoilt && t.client.out.len > 0)
                spoil(&d, &t.client.out);
            talk_turn(&t, piece);
        }
        failed += t.result == TLS_FAILED;
        assert_true(t.result != TLS_FAILED || tls_session_why(t.session));
        talk_done(&t);
    }
    assert_in_range(failed, 100,
                    599); /* it was noticed, and not everything was spoilt beyond use */
    tls_free(tls);
}

static void test_an_old_version(void **state)
{
    (void)state;
    static struct talk t;
    struct tls *tls = certs_load(server, NULL);
    struct tls_client_wish wish = {.priorities = "NORMAL:-VERS-ALL:+VERS-TLS1.1:+VERS-TLS1.0"};
    talk_init(&t, tls, &wish);
    talk_shake(&t, SIZE_MAX);
    assert_int_equal(t.client.error, GNUTLS_E_FATAL_ALERT_RECEIVED);
    check_why(&t, "the peer speaks no TLS 1.2 or later");
    talk_done(&t);
    tls_free(tls);
}

static void test_a_client_that_trusts_somebody_else(void **state)
{
    (void)state;
    static struct talk t;
    struct certificate *stranger = certs_make(NULL, CERTIFICATE_AUTHORITY, "stranger", -1, 7);
    const char *path = certs_write(&certs, "stranger.pem", certificate_pem(stranger));
    struct tls *tls = certs_load(server, NULL);
    talk_init(&t, tls, &(struct tls_client_wish){.ca = path});
    talk_shake(&t, SIZE_MAX);
    assert_int_equal(t.client.error, GNUTLS_E_CERTIFICATE_VERIFICATION_ERROR);
    check_why(&t, "the peer does not accept our certificate: ");
    talk_done(&t);
    tls_free(tls);
    certificate_free(stranger);
}

/* OpenSSL's clients say so in the clear, with or without a "change cipher spec" before it. */
static void test_a_refusal_in_the_clear(void **state)
{
    (void)state;
    static const uint8_t bytes[] = {20, 3, 3, 0, 1, 1, 21, 3, 3, 0, 2, 2, 48};
    struct tls *tls = certs_load(server, NULL);
    for (size_t skip = 0; skip <= 6; skip += 6) {
        static struct talk t;
        talk_init(&t, tls, &(struct tls_client_wish){0});
        assert_false(tls_client_shake(&t.client));
        talk_turn(&t, SIZE_MAX);
        buf_append(&t.client.out, bytes + skip, sizeof(bytes) - skip);
        talk_turn(&t, SIZE_MAX);
        check_why(&t, "the peer does not accept our certificate: CA is unknown");
        talk_done(&t);
    }
    tls_free(tls);
}

/* The handshake of a client with this certificate, where the authority is asked for. */
static void check_client(const struct certs_pair *pair, const char *refusal)
{
    static struct talk t;
    static const char *const versions[] = {"NORMAL:-VERS-ALL:+VERS-TLS1.2",
                                           "NORMAL:-VERS-ALL:+VERS-TLS1.3"};
    struct tls *tls = certs_load(server, certs.ca_path);
    for (size_t i = 0; i < 2; i++) {
        struct tls_client_wish wish = {certs.ca_path, pair ? pair->certificate : NULL,
                                       pair ? pair->key : NULL, versions[i]};
        talk_init(&t, tls, &wish);
        talk_shake(&t, SIZE_MAX);
        if (refusal)
            check_why(&t, refusal);
        else
            check_understood(&t);
        talk_done(&t);
    }
    tls_free(tls);
}

static void test_clients_with_and_without_a_certificate(void **state)
{
    (void)state;
    struct certificate *stranger = certs_make(NULL, CERTIFICATE_AUTHORITY, "stranger", -1, 7);
    struct certs_pair good = certs_pair(&certs, certs.ca, CERTIFICATE_CLIENT, "client", -1, 7);
    struct certs_pair wrong = certs_pair(&certs, stranger, CERTIFICATE_CLIENT, "wrong", -1, 7);
    struct certs_pair past = certs_pair(&certs, certs.ca, CERTIFICATE_CLIENT, "past", -9, -2);
    check_client(&good, NULL);
    check_client(NULL, "the peer shows no certificate");
    check_client(&wrong, "not acceptable: The certificate is NOT trusted. The certificate issuer "
                         "is unknown");
    check_client(&past, "The certificate chain uses expired certificate");
    check_client(&server, "not acceptable"); /* it is for servers */
    certificate_free(stranger);
}

static void test_reload_is_for_new_sessions(void **state)
{
    (void)state;
    static struct talk before, after;
    char name[64];
    char why[TLS_WHY_MAX] = "";
    struct certs_pair renewed = certs_pair(&certs, certs.ca, CERTIFICATE_SERVER, "renewed", -1, 20);
    struct tls *tls = certs_load(server, NULL);
    talk_init(&before, tls, &(struct tls_client_wish){.ca = certs.ca_path});
    struct tls_files files = {renewed.certificate, renewed.key, NULL};
    assert_int_equal(tls_reload(tls, &files, why), 0);
    talk_shake(&before, SIZE_MAX); /* its handshake goes on with what it began with */
    tls_client_server_name(&before.client, name);
    assert_string_equal(name, "server");

    talk_init(&after, tls, &(struct tls_client_wish){.ca = certs.ca_path});
    talk_shake(&after, SIZE_MAX);
    tls_client_server_name(&after.client, name);
    assert_string_equal(name, "renewed");
    check_understood(&before);
    tls_free(tls);
    check_understood(&before); /* also when nobody holds the certificate but the session */
    check_understood(&after);
    talk_done(&before);
    talk_done(&after);
}

static void test_a_failed_reload_changes_nothing(void **state)
{
    (void)state;
    static struct talk t;
    char name[64];
    char why[TLS_WHY_MAX] = "";
    struct tls *tls = certs_load(server, NULL);
    int64_t expires_s = tls_expires_s(tls);
    struct tls_files files = {certs.ca_path, server.key, NULL};
    assert_int_equal(tls_reload(tls, &files, why), ERR_FORMAT);
    assert_non_null(strstr(why, "does not belong to certificate"));
    assert_int_equal(tls_expires_s(tls), expires_s);
    talk_init(&t, tls, &(struct tls_client_wish){.ca = certs.ca_path});
    talk_shake(&t, SIZE_MAX);
    tls_client_server_name(&t.client, name);
    assert_string_equal(name, "server");
    talk_done(&t);
    tls_free(tls);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_good_pair_is_loaded),
        cmocka_unit_test(test_a_file_that_cannot_be_read),
        cmocka_unit_test(test_a_file_that_is_no_pem),
        cmocka_unit_test(test_files_in_each_others_place),
        cmocka_unit_test(test_a_damaged_certificate),
        cmocka_unit_test(test_a_file_without_end),
        cmocka_unit_test(test_the_key_of_another_certificate),
        cmocka_unit_test(test_a_key_with_a_passphrase),
        cmocka_unit_test(test_a_certificate_out_of_its_time),
        cmocka_unit_test(test_authorities_out_of_their_time),
        cmocka_unit_test(test_a_chain_must_be_in_order),
        cmocka_unit_test(test_bytes_of_any_size),
        cmocka_unit_test(test_long_output_and_input),
        cmocka_unit_test(test_both_say_goodbye),
        cmocka_unit_test(test_a_peer_without_tls),
        cmocka_unit_test(test_garbage_after_the_handshake),
        cmocka_unit_test(test_words_behind_a_key_update),
        cmocka_unit_test(test_another_handshake_is_refused),
        cmocka_unit_test(test_a_message_without_end),
        cmocka_unit_test(test_much_is_not_without_end),
        cmocka_unit_test(test_spoilt_bytes),
        cmocka_unit_test(test_an_old_version),
        cmocka_unit_test(test_a_client_that_trusts_somebody_else),
        cmocka_unit_test(test_a_refusal_in_the_clear),
        cmocka_unit_test(test_clients_with_and_without_a_certificate),
        cmocka_unit_test(test_reload_is_for_new_sessions),
        cmocka_unit_test(test_a_failed_reload_changes_nothing),
    };
    return cmocka_run_group_tests(tests, make_certs, remove_certs);
}
