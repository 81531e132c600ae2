/* A real PostgreSQL for the tests of a program: Debian's, in a temporary folder, on a port of its
 * own, with fsync on. It ends with the program, however that ends. One per program; each test takes
 * a cell of its own. Belongs to the group's setup and teardown. */
#pragma once

#include "base/buf.h"
#include "store/libpq.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <fcntl.h>
#include <ftw.h>
#include <glob.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define POSTGRES_PASSWORD "open/sesame" /* %2F in a URL */

struct postgres {
    char folder[64];
    char bin[128];
    int port;
    char url[160];
    pid_t pid;
    int ready_fd; /* the server says here that it takes connections */
};

static struct postgres postgres;

/* PostgreSQL refuses to run as root. */
static inline void postgres_become_nobody(void)
{
    if (geteuid() == 0) {
        const struct passwd *user = getpwnam("nobody");
        if (!user || setgid(user->pw_gid) != 0 || setuid(user->pw_uid) != 0)
            _exit(126);
    }
    (void)prctl(PR_SET_PDEATHSIG, SIGQUIT); /* after the change of user, which clears it */
}

static inline pid_t postgres_spawn(const char *program, const char *const args[])
{
    char path[192];
    char log[96];
    snprintf(path, sizeof(path), "%s/%s", postgres.bin, program);
    snprintf(log, sizeof(log), "%s/log", postgres.folder);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid > 0)
        return pid;
    postgres_become_nobody();
    int fd = open(log, O_WRONLY | O_CREAT | O_APPEND, 0600);
    if (fd < 0 || chdir(postgres.folder) != 0)
        _exit(126);
    (void)dup2(fd, STDOUT_FILENO);
    (void)dup2(fd, STDERR_FILENO);
    /* LeakSanitizer and the like are the test's. */
    unsetenv("LD_PRELOAD");
    setenv("LC_ALL", "C.UTF-8", 1);
    execv(path, (char *const *)args);
    _exit(127);
}

static inline void postgres_start(void)
{
    char notify[96];
    char port[16];
    snprintf(notify, sizeof(notify), "%s/notify", postgres.folder);
    snprintf(port, sizeof(port), "%d", postgres.port);
    setenv("NOTIFY_SOCKET", notify, 1);
    char data[96];
    snprintf(data, sizeof(data), "%s/data", postgres.folder);
    postgres.pid = postgres_spawn(
        "postgres", (const char *const[]){"postgres", "-D", data, "-p", port, "-k", postgres.folder,
                                          "-h", "127.0.0.1", "-c", "max_connections=60", NULL});
    unsetenv("NOTIFY_SOCKET");
    char said[256];
    do {
        ssize_t n = recv(postgres.ready_fd, said, sizeof(said) - 1, 0);
        assert_true(n > 0); /* the program's own time limit ends a server that never says it */
        said[n] = '\0';
    } while (!strstr(said, "READY=1"));
}

/* SIGINT lets nobody finish, SIGQUIT is a crash. */
static inline void postgres_stop(int signal)
{
    int status = 0;
    assert_int_equal(kill(postgres.pid, signal), 0);
    assert_int_equal(waitpid(postgres.pid, &status, 0), postgres.pid);
    postgres.pid = 0;
}

static inline int postgres_free_port(void)
{
    struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(any);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&any, sizeof(any)), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&any, &len), 0);
    close(fd);
    return ntohs(any.sin_port);
}

static inline void postgres_listen_for_ready(void)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    snprintf(at.sun_path, sizeof(at.sun_path), "%s/notify", postgres.folder);
    postgres.ready_fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(postgres.ready_fd, (struct sockaddr *)&at, sizeof(at)), 0);
    assert_int_equal(chmod(at.sun_path, 0777), 0);
}

static inline void postgres_init_data(void)
{
    char data[96];
    char secret[96];
    snprintf(data, sizeof(data), "%s/data", postgres.folder);
    snprintf(secret, sizeof(secret), "%s/password", postgres.folder);
    FILE *f = fopen(secret, "w");
    assert_non_null(f);
    fputs(POSTGRES_PASSWORD "\n", f);
    fclose(f);
    assert_int_equal(chmod(secret, 0644), 0);
    char pwfile[128];
    snprintf(pwfile, sizeof(pwfile), "--pwfile=%s", secret);
    int status = 0;
    pid_t pid = postgres_spawn("initdb", (const char *const[]){"initdb", "-D", data, "-U", "muster",
                                                               "-A", "scram-sha-256", pwfile, "-E",
                                                               "UTF8", "--no-sync", NULL});
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

/* Of user muster, who may do everything. */
static inline const char *postgres_url(void)
{
    return postgres.url;
}

static inline int postgres_setup(void **state)
{
    (void)state;
    glob_t found;
    assert_int_equal(glob("/usr/lib/postgresql/*/bin", 0, NULL, &found), 0);
    snprintf(postgres.bin, sizeof(postgres.bin), "%s", found.gl_pathv[found.gl_pathc - 1]);
    globfree(&found);
    snprintf(postgres.folder, sizeof(postgres.folder), "/tmp/muster-postgres-XXXXXX");
    assert_non_null(mkdtemp(postgres.folder));
    assert_int_equal(chmod(postgres.folder, 0777), 0);
    postgres_listen_for_ready();
    postgres_init_data();
    postgres.port = postgres_free_port();
    snprintf(postgres.url, sizeof(postgres.url),
             "postgres://muster:open%%2Fsesame@127.0.0.1:%d/postgres", postgres.port);
    postgres_start();
    return 0;
}

static inline int postgres_remove_one(const char *path, const struct stat *st, int type,
                                      struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

static inline int postgres_teardown(void **state)
{
    (void)state;
    if (postgres.pid > 0)
        postgres_stop(SIGQUIT);
    close(postgres.ready_fd);
    return nftw(postgres.folder, postgres_remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* A connection of the test's own. schema may be NULL. */
static inline struct pg *postgres_connect(const char *schema)
{
    struct pg_wish wish = {.url = postgres_url(),
                           .schema = schema,
                           .name = "test",
                           .connect_ms = 10000,
                           .answer_ms = 10000};
    struct pg *pg = NULL;
    struct why why = {""};
    int err = pg_connect(&wish, &pg, &why);
    if (err != 0)
        print_error("%s\n", why.text);
    assert_int_equal(err, 0);
    return pg;
}

/* Runs statements on a connection of their own. */
__attribute__((unused)) static inline void postgres_do(const char *schema, const char *sql)
{
    struct pg *pg = postgres_connect(schema);
    struct why why = {""};
    int err = pg_script(pg, sql, &why);
    if (err != 0)
        print_error("%s\n", why.text);
    assert_int_equal(err, 0);
    pg_close(pg);
}

/* The first number that a query gives. */
__attribute__((unused)) static inline int64_t postgres_ask(const char *schema, const char *sql)
{
    struct pg *pg = postgres_connect(schema);
    struct why why = {""};
    struct pg_result *r = NULL;
    int err = pg_query(pg, sql, NULL, &r, &why);
    if (err != 0)
        print_error("%s\n", why.text);
    assert_int_equal(err, 0);
    int64_t v = pg_rows(r) > 0 ? pg_get_int(r, 0, 0) : -1;
    pg_free(r);
    pg_close(pg);
    return v;
}
