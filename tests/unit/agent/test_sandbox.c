/* Where game servers live, and what keeps them in. The cgroup is a folder with the files that a
 * kernel has there: what is written to them is what the kernel would be told. */
#include "agent/sandbox.h"

#include "base/err.h"
#include "lib/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SERVER = 12, SLOT = 1, UID_FIRST = 231000 };

struct bench {
    char folder[32]; /* of all */
    char data[64];
    char cgroup[64];
    struct process_limits limits;
    struct sandbox sandbox;
    struct sandbox_place place;
    char why[PROCESS_WHY_MAX];
};

static int bench_new(void **state)
{
    struct bench *b = calloc(1, sizeof(*b));
    snprintf(b->folder, sizeof(b->folder), "/tmp/muster-sandbox-XXXXXX");
    assert_non_null(mkdtemp(b->folder));
    assert_int_equal(chmod(b->folder, 0711), 0);
    snprintf(b->data, sizeof(b->data), "%s/data", b->folder);
    assert_int_equal(mkdir(b->data, 0700), 0);
    snprintf(b->cgroup, sizeof(b->cgroup), "%s/cgroup", b->folder);
    *state = b;
    return 0;
}

static int bench_free(void **state)
{
    struct bench *b = *state;
    char command[80];
    snprintf(command, sizeof(command), "rm -rf %s", b->folder);
    assert_int_equal(system(command), 0);
    free(b);
    return 0;
}

static void opens(struct bench *b)
{
    assert_int_equal(sandbox_open(&b->sandbox, b->data, &b->limits, b->why), 0);
}

static void enters(struct bench *b)
{
    assert_int_equal(sandbox_enter(&b->sandbox, SERVER, SLOT, &b->place, b->why), 0);
}

static const char *path_in(const char *folder, const char *name)
{
    static char path[160];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    return path;
}

static void put_file(const char *folder, const char *name)
{
    int fd = open(path_in(folder, name), O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    assert_true(fd >= 0);
    close(fd);
}

/* What was written there; "" when nothing was. */
static const char *told(const char *folder, const char *name)
{
    static char text[64];
    int fd = open(path_in(folder, name), O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    ssize_t n = read(fd, text, sizeof(text) - 1);
    close(fd);
    text[n > 0 ? n : 0] = '\0';
    return text;
}

/* The folder of the server is there before it: what is written in it can be seen. */
static void make_cgroup(struct bench *b)
{
    char server[96];
    snprintf(server, sizeof(server), "%s/server-%d", b->cgroup, SERVER);
    assert_int_equal(mkdir(b->cgroup, 0755), 0);
    assert_int_equal(mkdir(server, 0755), 0);
    put_file(b->cgroup, "cgroup.procs");
    put_file(b->cgroup, "cgroup.subtree_control");
    put_file(server, "memory.max");
    put_file(server, "pids.max");
    b->limits.cgroup = b->cgroup;
}

static mode_t mode_of(const char *path)
{
    struct stat st;
    assert_int_equal(stat(path, &st), 0);
    return st.st_mode & 07777;
}

/* ── what this host allows ─────────────────────────────────────────────────────────────────── */

static void what_is_there_is_not_missed(void **state)
{
    struct bench *b = *state;
    make_cgroup(b);
    b->limits.memory_bytes = 1 << 20;
    b->limits.uid_first = UID_FIRST;
    opens(b);
    if (geteuid() == 0)
        assert_string_equal(b->sandbox.missing, "");
    else
        assert_null(strstr(b->sandbox.missing, "; "));
    assert_int_equal(b->sandbox.uid_first, geteuid() == 0 ? UID_FIRST : 0);
}

static void what_is_missing_is_named(void **state)
{
    struct bench *b = *state;
    opens(b);
    const char *first = geteuid() == 0 ? "game servers run as root" : "game servers share";
    assert_true(strncmp(b->sandbox.missing, first, strlen(first)) == 0);
    assert_non_null(strstr(b->sandbox.missing, "; memory is not limited, because no cgroup was"));
}

static void a_cgroup_that_is_none_is_named_and_not_used(void **state)
{
    struct bench *b = *state;
    b->limits.cgroup = b->cgroup; /* it is made, and has nothing in it */
    opens(b);
    assert_non_null(strstr(b->sandbox.missing, "the cgroup is not ours"));
    assert_string_equal(b->sandbox.cgroup, "");
    enters(b);
    assert_string_equal(b->place.cgroup, "");
}

static void a_cgroup_without_controllers_is_named_as_far_as_that_matters(void **state)
{
    struct bench *b = *state;
    make_cgroup(b);
    assert_int_equal(unlink(path_in(b->cgroup, "cgroup.subtree_control")), 0);
    opens(b);
    assert_null(strstr(b->sandbox.missing, "controller"));
    struct sandbox limited;
    b->limits.memory_bytes = 1 << 20;
    b->limits.processes = 5;
    assert_int_equal(sandbox_open(&limited, b->data, &b->limits, b->why), 0);
    assert_non_null(strstr(limited.missing, "no memory controller"));
    assert_non_null(strstr(limited.missing, "no pids controller"));
}

static void a_folder_that_is_closed_to_others_is_refused(void **state)
{
    struct bench *b = *state;
    if (geteuid() != 0)
        return; /* only root has users to give */
    b->limits.uid_first = UID_FIRST;
    assert_int_equal(chmod(b->folder, 0700), 0);
    assert_int_equal(sandbox_open(&b->sandbox, b->data, &b->limits, b->why), ERR_IO);
    assert_non_null(strstr(b->why, "is closed to others"));
    assert_non_null(strstr(b->why, b->folder));
}

static void a_data_folder_that_cannot_be_made_is_refused(void **state)
{
    struct bench *b = *state;
    snprintf(b->data, sizeof(b->data), "%s/file", b->folder);
    put_file(b->folder, "file");
    assert_int_equal(sandbox_open(&b->sandbox, b->data, &b->limits, b->why), ERR_IO);
    assert_non_null(strstr(b->why, "cannot make the folder"));
}

/* An address has 107 bytes. */
static void a_long_path_has_a_short_one_for_its_sockets(void **state)
{
    struct bench *b = *state;
    char deep[160];
    struct stat st;
    snprintf(deep, sizeof(deep), "%s/%0100d", b->folder, 7);
    assert_int_equal(mkdir(deep, 0700), 0);
    assert_int_equal(sandbox_open(&b->sandbox, deep, &b->limits, b->why), 0);
    assert_true(strncmp(b->sandbox.sockets, "/tmp/muster-", strlen("/tmp/muster-")) == 0);
    struct sandbox another;
    assert_int_equal(sandbox_open(&another, deep, &b->limits, b->why), 0);
    assert_string_equal(another.sockets, b->sandbox.sockets);
    enters(b);
    assert_true(strlen(b->place.endpoint) < SANDBOX_SOCKET_MAX);
    assert_int_equal(stat(b->sandbox.sockets, &st), 0);
    char command[SANDBOX_SOCKET_MAX + 16];
    snprintf(command, sizeof(command), "rm -rf %s", b->sandbox.sockets);
    assert_int_equal(system(command), 0);
}

/* ── one game server ───────────────────────────────────────────────────────────────────────── */

static void each_has_its_own_place(void **state)
{
    struct bench *b = *state;
    struct sandbox_place again;
    opens(b);
    enters(b);
    assert_int_equal(b->place.uid, (uid_t)-1);
    assert_string_equal(b->place.scratch, path_in(b->data, "scratch/1"));
    assert_int_equal(mode_of(b->place.scratch), 0700);
    assert_true(strncmp(b->place.endpoint, b->sandbox.sockets, strlen(b->sandbox.sockets)) == 0);
    assert_non_null(strstr(b->place.endpoint, "/12-"));
    assert_int_equal(sandbox_enter(&b->sandbox, SERVER, SLOT, &again, b->why), 0);
    assert_string_not_equal(again.endpoint, b->place.endpoint);
    assert_string_equal(again.scratch, b->place.scratch);
}

static void each_has_a_user_of_its_own(void **state)
{
    struct bench *b = *state;
    struct stat st;
    if (geteuid() != 0)
        return;
    b->limits.uid_first = UID_FIRST;
    opens(b);
    sandbox_prepare(&b->sandbox, SLOT);
    assert_int_equal(stat(path_in(b->data, "scratch/1"), &st), 0);
    assert_int_equal(st.st_uid, UID_FIRST + SLOT);
    enters(b);
    assert_int_equal(b->place.uid, UID_FIRST + SLOT);
    assert_int_equal(stat(b->place.scratch, &st), 0);
    assert_int_equal(st.st_uid, UID_FIRST + SLOT);
    assert_int_equal(st.st_gid, UID_FIRST + SLOT);
    *strrchr(b->place.endpoint, '/') = '\0';
    assert_int_equal(stat(b->place.endpoint, &st), 0);
    assert_int_equal(st.st_uid, 0);
    assert_int_equal(st.st_gid, UID_FIRST + SLOT);
    assert_int_equal(st.st_mode & 07777, 0710);
}

static void its_endpoint_opens_to_its_user_alone(void **state)
{
    struct bench *b = *state;
    struct stat st;
    if (geteuid() != 0)
        return;
    b->limits.uid_first = UID_FIRST;
    opens(b);
    enters(b);
    int fd = open(b->place.endpoint, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    close(fd);
    sandbox_let_in(b->place.endpoint);
    assert_int_equal(stat(b->place.endpoint, &st), 0);
    assert_int_equal(st.st_uid, 0);
    assert_int_equal(st.st_gid, UID_FIRST + SLOT);
    assert_int_equal(st.st_mode & 07777, 0660);
    sandbox_let_in("/no/such/endpoint"); /* harmless */
}

static void limits_are_told_to_its_cgroup(void **state)
{
    struct bench *b = *state;
    char server[96];
    make_cgroup(b);
    snprintf(server, sizeof(server), "%s/server-%d", b->cgroup, SERVER);
    b->limits.memory_bytes = 4096;
    b->limits.processes = 5;
    opens(b);
    assert_string_equal(told(b->cgroup, "cgroup.subtree_control"), "+pidsry"); /* two writes */
    enters(b);
    assert_string_equal(told(server, "memory.max"), "4096");
    assert_string_equal(told(server, "pids.max"), "5");
    assert_string_equal(b->place.cgroup, path_in(server, "cgroup.procs"));
}

/* 0 is no limit, and not a limit of 0. */
static void what_is_not_limited_is_not_told(void **state)
{
    struct bench *b = *state;
    char server[96];
    make_cgroup(b);
    snprintf(server, sizeof(server), "%s/server-%d", b->cgroup, SERVER);
    opens(b);
    enters(b);
    assert_string_equal(told(server, "memory.max"), "");
    assert_string_equal(told(server, "pids.max"), "");
}

static void what_it_left_is_moved_away(void **state)
{
    struct bench *b = *state;
    char away[64];
    snprintf(away, sizeof(away), "%s/away", b->folder);
    opens(b);
    enters(b);
    put_file(b->place.scratch, "saved");
    assert_int_equal(access(b->place.scratch, F_OK), 0);
    assert_true(sandbox_leave(&b->sandbox, SERVER, SLOT, "", away));
    assert_int_equal(access(path_in(away, "saved"), F_OK), 0);
    assert_int_equal(access(b->place.scratch, F_OK), -1);
}

static void an_empty_place_stays_and_its_endpoint_goes(void **state)
{
    struct bench *b = *state;
    char server[96];
    char away[64];
    snprintf(server, sizeof(server), "%s/server-%d", b->cgroup, SERVER);
    snprintf(away, sizeof(away), "%s/away", b->folder);
    assert_int_equal(mkdir(b->cgroup, 0755), 0);
    put_file(b->cgroup, "cgroup.procs");
    b->limits.cgroup = b->cgroup;
    opens(b);
    enters(b);
    assert_int_equal(access(server, F_OK), 0);
    int fd = open(b->place.endpoint, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    close(fd);
    assert_false(sandbox_leave(&b->sandbox, SERVER, SLOT, b->place.endpoint, away));
    assert_int_equal(access(b->place.endpoint, F_OK), -1);
    assert_int_equal(access(b->place.scratch, F_OK), 0);
    assert_int_equal(access(away, F_OK), -1);
    assert_int_equal(access(server, F_OK), -1);
    put_file(b->place.scratch, "saved");
    assert_false(sandbox_leave(&b->sandbox, SERVER, -1, NULL, away)); /* it had no slot */
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, bench_new, bench_free)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_is_there_is_not_missed),
        TEST(what_is_missing_is_named),
        TEST(a_cgroup_that_is_none_is_named_and_not_used),
        TEST(a_cgroup_without_controllers_is_named_as_far_as_that_matters),
        TEST(a_folder_that_is_closed_to_others_is_refused),
        TEST(a_data_folder_that_cannot_be_made_is_refused),
        TEST(a_long_path_has_a_short_one_for_its_sockets),
        TEST(each_has_its_own_place),
        TEST(each_has_a_user_of_its_own),
        TEST(its_endpoint_opens_to_its_user_alone),
        TEST(limits_are_told_to_its_cgroup),
        TEST(what_is_not_limited_is_not_told),
        TEST(what_it_left_is_moved_away),
        TEST(an_empty_place_stays_and_its_endpoint_goes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
