/* `muster cert dev`: certificates to try TLS with. An authority is made, signs a server and a
 * client and is forgotten: its key is never written, so nobody can sign anything with it later. */
#include "base/buf.h"
#include "base/clock.h"
#include "base/full.h"
#include "base/str.h"
#include "cli/args.h"
#include "cli/cli.h"
#include "net/address.h"
#include "net/certificate.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { DAY_S = 86400, VALID_DAYS = 90, HOSTS_MAX = 32, HOST_LEN_MAX = 253, EARLIER_S = 3600 };

static struct {
    const char *out;
    const char *hosts;
} set;

const struct arg cert_dev_options[] = {
    {.name = "--out",
     .kind = ARG_TEXT,
     .into = &set.out,
     .value = "DIR",
     .help = "where the five files are written; made when absent"},
    {.name = "--host",
     .kind = ARG_TEXT,
     .into = &set.hosts,
     .value = "NAME,IP,...",
     .help = "whom else the server's certificate is for"},
    {0},
};

/* Hosts of the server's certificate; the texts are in `text`. */
struct hosts {
    const char *at[HOSTS_MAX];
    size_t n;
    char text[HOSTS_MAX * (HOST_LEN_MAX + 1)];
};

/* What is written, in this order. */
struct file {
    const char *name;
    const char *about;
    struct str text;
    mode_t mode;
};

static int refuse(const char *format, ...) __attribute__((format(printf, 1, 2)));

static int refuse(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fputs("muster cert dev: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    return EXIT_REFUSED;
}

static bool is_host(const char *host)
{
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-.";
    union address ip;
    size_t len = strlen(host);
    return address_parse(host, 0, &ip) ||
           (len > 0 && len <= HOST_LEN_MAX && strspn(host, letters) == len);
}

static bool has_host(const struct hosts *h, const char *host)
{
    for (size_t i = 0; i < h->n; i++) {
        if (strcmp(h->at[i], host) == 0)
            return true;
    }
    return false;
}

static bool parse_hosts(const char *verb, struct hosts *ret)
{
    *ret = (struct hosts){.at = {"localhost", "127.0.0.1", "::1"}, .n = 3};
    if (!set.hosts)
        return true;
    if (!str_copy(ret->text, sizeof(ret->text), str_of(set.hosts)))
        return args_refuse(verb, "--host is too long");
    char *rest = NULL;
    for (char *host = strtok_r(ret->text, ",", &rest); host; host = strtok_r(NULL, ",", &rest)) {
        if (!is_host(host))
            return args_refuse(verb, "--host takes names and IP addresses, not '%s'", host);
        if (has_host(ret, host))
            continue;
        if (ret->n == HOSTS_MAX)
            return args_refuse(verb, "--host names too many");
        ret->at[ret->n++] = host;
    }
    return true;
}

/* The folder as an absolute path, made when absent; NULL when it cannot be had. */
static char *open_folder(void)
{
    if (mkdir(set.out, 0755) != 0 && errno != EEXIST)
        return NULL;
    return realpath(set.out, NULL);
}

/* Creates one file, which must not be there. 0 or an errno. */
static int write_file(const char *folder, const struct file *f)
{
    char path[PATH_MAX];
    snprintf(path, sizeof(path), "%s/%s", folder, f->name);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, f->mode);
    if (fd < 0)
        return errno;
    bool written = write(fd, f->text.at, f->text.len) == (ssize_t)f->text.len;
    int error = written ? 0 : errno;
    if (close(fd) != 0 && !error)
        error = errno;
    if (error)
        unlink(path);
    return error;
}

/* All files or none. */
static int write_files(const char *folder, const struct file *files, size_t n)
{
    char path[PATH_MAX];
    for (size_t i = 0; i < n; i++) {
        snprintf(path, sizeof(path), "%s/%s", folder, files[i].name);
        if (access(path, F_OK) == 0)
            return refuse("%s is there already and is not overwritten; choose another --out, or "
                          "remove it",
                          path);
    }
    for (size_t i = 0; i < n; i++) {
        int error = write_file(folder, &files[i]);
        if (error == 0)
            continue;
        while (i-- > 0) {
            snprintf(path, sizeof(path), "%s/%s", folder, files[i].name);
            unlink(path);
        }
        return refuse("cannot write to %s: %s", folder, full_reason(error));
    }
    return EXIT_DONE;
}

/* What was made and how it is used, in lines that can be copied. */
static void print_what_to_do(const char *folder, const struct file *files, size_t n,
                             const struct hosts *hosts, time_t until)
{
    char day[16];
    struct tm utc;
    gmtime_r(&until, &utc);
    strftime(day, sizeof(day), "%Y-%m-%d", &utc);
    printf("Made in %s, for trying things out, valid until %s:\n", folder, day);
    for (size_t i = 0; i < n; i++)
        printf("  %-15s %s\n", files[i].name, files[i].about);
    printf("The server's certificate is for");
    for (size_t i = 0; i < hosts->n; i++)
        printf("%s %s", i > 0 ? "," : "", hosts->at[i]);
    printf(".\n\nIn the configuration file:\n\ntls:\n");
    static const char *const doors[] = {"http", "server", "manager", "client"};
    for (size_t i = 0; i < sizeof(doors) / sizeof(*doors); i++)
        printf("  %s:\n    certificate: %s/server.pem\n    key: %s/server-key.pem\n", doors[i],
               folder, folder);
    printf("\nThen:\n\n"
           "%s game-server --region EU --tls-ca %s/ca.pem\n"
           "%s allocate --lobby 1 --region EU --tls-ca %s/ca.pem\n"
           "curl --cacert %s/ca.pem https://localhost:9508/healthz\n"
           "openssl s_client -connect localhost:11032 -verify_return_error -CAfile %s/ca.pem\n",
           cli_program, folder, cli_program, folder, folder, folder);
    printf("\nA port with this line too wants to see the other side's certificate:\n\n"
           "    client_ca: %s/ca.pem\n\n"
           "The commands then need --tls-cert %s/client.pem --tls-key %s/client-key.pem\n"
           "(curl: --cert and --key, openssl: -cert and -key).\n",
           folder, folder, folder);
}

static struct certificate *make(const struct certificate *signer, enum certificate_use use,
                                const char *name, const struct hosts *hosts, int64_t now_s)
{
    struct certificate_wish wish = {
        .use = use,
        .name = name,
        .hosts = hosts ? hosts->at : NULL,
        .n_hosts = hosts ? hosts->n : 0,
        .from_s = now_s - EARLIER_S, /* another machine's clock may be behind */
        .until_s = now_s + (int64_t)VALID_DAYS * DAY_S,
    };
    return certificate_make(&wish, signer);
}

static int make_all(const char *folder, const struct hosts *hosts)
{
    int64_t now_s = clock_wall_ms() / 1000;
    struct certificate *ca =
        make(NULL, CERTIFICATE_AUTHORITY, "Muster test authority", NULL, now_s);
    struct certificate *server =
        ca ? make(ca, CERTIFICATE_SERVER, "Muster test server", hosts, now_s) : NULL;
    struct certificate *client =
        ca ? make(ca, CERTIFICATE_CLIENT, "Muster test client", NULL, now_s) : NULL;
    int code = EXIT_REFUSED;
    if (server && client) {
        const struct file files[] = {
            {"ca.pem", "the authority, whom clients believe", certificate_pem(ca), 0644},
            {"server.pem", "Muster's certificate", certificate_pem(server), 0644},
            {"server-key.pem", "its key", certificate_key_pem(server), 0600},
            {"client.pem", "a game or chat server's certificate", certificate_pem(client), 0644},
            {"client-key.pem", "its key", certificate_key_pem(client), 0600},
        };
        size_t n = sizeof(files) / sizeof(files[0]);
        code = write_files(folder, files, n);
        if (code == EXIT_DONE)
            print_what_to_do(folder, files, n, hosts,
                             (time_t)(now_s + (int64_t)VALID_DAYS * DAY_S));
    } else {
        refuse("the certificates cannot be made");
    }
    certificate_free(client);
    certificate_free(server);
    certificate_free(ca);
    return code;
}

int cert_dev_run(int argc, char **argv)
{
    struct hosts hosts;
    if (!args_parse(argc, argv, cert_dev_options) || !parse_hosts(argv[0], &hosts))
        return EXIT_USAGE;
    if (!set.out) {
        args_refuse(argv[0], "--out is missing: the folder to write to");
        return EXIT_USAGE;
    }
    char *folder = open_folder();
    if (!folder)
        return refuse("cannot make the folder %s: %s", set.out, strerror(errno));
    int code = make_all(folder, &hosts);
    free(folder);
    return code;
}
