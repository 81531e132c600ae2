#include "cli/kubeconfig.h"

#include "base/err.h"
#include "lib/unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct fixture {
    char folder[64];
    char file[96];
    struct agones_config config;
    struct kubeconfig *k;
    char why[256];
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    snprintf(f->folder, sizeof(f->folder), "/tmp/kubeconfig-XXXXXX");
    assert_non_null(mkdtemp(f->folder));
    snprintf(f->file, sizeof(f->file), "%s/config", f->folder);
    f->config = (struct agones_config){
        .url = "", .ca_file = "", .token_file = "", .certificate = "", .key = ""};
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    kubeconfig_done(f->k);
    unlink(f->file);
    rmdir(f->folder);
    free(f);
    return 0;
}

static int open_text(struct fixture *f, const char *text)
{
    FILE *out = fopen(f->file, "w");
    assert_non_null(out);
    fputs(text, out);
    fclose(out);
    return kubeconfig_open(f->file, &f->config, &f->k, f->why);
}

static void assert_content(const char *path, const char *content)
{
    char bytes[64] = "";
    int fd = open(path, O_RDONLY);
    assert_true(fd >= 0);
    assert_true(read(fd, bytes, sizeof(bytes) - 1) >= 0);
    close(fd);
    assert_string_equal(bytes, content);
}

#define HEAD                                                                                       \
    "current-context: c\ncontexts:\n- {name: x, context: {cluster: y, user: z}}\n"                 \
    "- {name: c, context: {cluster: k, user: u}}\n"

static void test_files_are_relative_to_the_file(void **state)
{
    struct fixture *f = *state;
    char path[128];
    assert_int_equal(open_text(f, HEAD "clusters:\n- {name: k, cluster: {server: 'https://k:6443', "
                                       "certificate-authority: ca.pem}}\n"
                                       "users:\n- {name: u, user: {tokenFile: sub/token}}\n"),
                     0);
    assert_string_equal(f->config.url, "https://k:6443");
    snprintf(path, sizeof(path), "%s/ca.pem", f->folder);
    assert_string_equal(f->config.ca_file, path);
    snprintf(path, sizeof(path), "%s/sub/token", f->folder);
    assert_string_equal(f->config.token_file, path);
    assert_string_equal(f->config.certificate, "");
}

static void test_content_in_the_file_opens_like_a_file(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(open_text(f, HEAD "clusters:\n- {name: k, cluster: {server: 'https://k', "
                                       "certificate-authority-data: Q0E=}}\n"
                                       "users:\n- name: u\n  user: {token: secret, "
                                       "client-certificate-data: Q0VSVA==, client-key-data: "
                                       "S0VZ}\n"),
                     0);
    assert_content(f->config.ca_file, "CA");
    assert_content(f->config.ca_file, "CA"); /* and again */
    assert_content(f->config.token_file, "secret");
    assert_content(f->config.certificate, "CERT");
    assert_content(f->config.key, "KEY");
}

static void test_what_is_set_elsewhere_stays(void **state)
{
    struct fixture *f = *state;
    f->config.url = "https://mine";
    assert_int_equal(open_text(f, HEAD "clusters:\n- {name: k, cluster: {server: 'https://k'}}\n"
                                       "users:\n- {name: u, user: {token: secret}}\n"),
                     0);
    assert_string_equal(f->config.url, "https://mine");
    assert_content(f->config.token_file, "secret");
}

static void test_refusals_are_sentences(void **state)
{
    struct fixture *f = *state;
#define CLUSTER "clusters:\n- {name: k, cluster: {server: 'https://k'}}\n"
    static const struct {
        const char *text;
        const char *sentence;
    } rows[] = {
        {"", "the context '' is not there."},
        {"current-context: q\n", "the context 'q' is not there."},
        {HEAD, "the cluster 'k' is not there."},
        {HEAD CLUSTER, "the user 'u' is not there."},
        {HEAD "clusters:\n- {name: k, cluster: {}}\nusers:\n- {name: u, user: {token: t}}\n",
         "of the cluster 'server' is not there."},
        {HEAD CLUSTER "users:\n- {name: u, user: {exec: {command: aws}}}\n",
         "its user has no token, tokenFile or client-certificate; other ways to log in are not "
         "supported."},
        {HEAD CLUSTER "users:\n- {name: u, user: {client-certificate-data: '*'}}\n",
         "client-certificate-data is no base64."},
        {HEAD "clusters:\n- {name: k, cluster: {server: 'https://k', insecure-skip-tls-verify: "
              "true}}\nusers:\n- {name: u, user: {token: t}}\n",
         "insecure-skip-tls-verify is not supported: name the certificate-authority."},
        {"a: [\n", "line 2: "},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_int_equal(open_text(f, rows[i].text), ERR_FORMAT);
        assert_non_null(strstr(f->why, rows[i].sentence));
        assert_non_null(strstr(f->why, f->file));
        assert_string_equal(f->config.url, "");
    }
}

static void test_no_file_is_a_sentence(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(kubeconfig_open("/nowhere/config", &f->config, &f->k, f->why), ERR_IO);
    assert_string_equal(f->why, "Cannot read /nowhere/config: No such file or directory.");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_files_are_relative_to_the_file), TEST(test_content_in_the_file_opens_like_a_file),
        TEST(test_what_is_set_elsewhere_stays),    TEST(test_refusals_are_sentences),
        TEST(test_no_file_is_a_sentence),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
