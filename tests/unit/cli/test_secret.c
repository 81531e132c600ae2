/* The secret file: made once, kept, refused when it is not what it should be. */
#include "base/err.h"
#include "cli/secret.h"
#include "lib/unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct folder {
    char path[64];
    char file[80];
    char why[SECRET_WHY_MAX];
    uint8_t secret[CORE_SECRET_SIZE];
};

static int setup(void **state)
{
    struct folder *f = calloc(1, sizeof(*f));
    strcpy(f->path, "/tmp/muster-secret-XXXXXX");
    assert_non_null(mkdtemp(f->path));
    snprintf(f->file, sizeof(f->file), "%s/secret", f->path);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct folder *f = *state;
    unlink(f->file);
    assert_int_equal(rmdir(f->path), 0); /* nothing else was left behind */
    free(f);
    return 0;
}

static int load(struct folder *f)
{
    return secret_load(f->path, true, f->secret, f->why);
}

static void write_file(const struct folder *f, size_t len, mode_t mode)
{
    char bytes[64] = {7};
    int fd = open(f->file, O_CREAT | O_TRUNC | O_WRONLY, 0600);
    assert_int_equal(write(fd, bytes, len), (ssize_t)len);
    fchmod(fd, mode);
    close(fd);
}

static void test_made_once_and_kept(void **state)
{
    struct folder *f = *state;
    uint8_t first[CORE_SECRET_SIZE];
    struct stat st;
    assert_int_equal(load(f), 0);
    memcpy(first, f->secret, sizeof(first));
    assert_int_equal(stat(f->file, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    assert_int_equal(st.st_size, CORE_SECRET_SIZE);

    memset(f->secret, 0, sizeof(f->secret));
    assert_int_equal(load(f), 0);
    assert_memory_equal(f->secret, first, sizeof(first));
}

static void test_two_folders_have_two_secrets(void **state)
{
    struct folder *f = *state;
    uint8_t first[CORE_SECRET_SIZE];
    assert_int_equal(load(f), 0);
    memcpy(first, f->secret, sizeof(first));
    unlink(f->file);
    assert_int_equal(load(f), 0);
    assert_memory_not_equal(f->secret, first, sizeof(first));
}

static void test_missing_beside_data_is_not_replaced(void **state)
{
    struct folder *f = *state;
    assert_int_equal(secret_load(f->path, false, f->secret, f->why), ERR_FORMAT);
    assert_non_null(strstr(f->why, "is missing"));
    assert_int_equal(access(f->file, F_OK), -1);
    assert_int_equal(load(f), 0);
    assert_int_equal(secret_load(f->path, false, f->secret, f->why), 0);
}

static void test_wrong_size(void **state)
{
    struct folder *f = *state;
    const size_t sizes[] = {0, CORE_SECRET_SIZE - 1, CORE_SECRET_SIZE + 1};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        write_file(f, sizes[i], 0600);
        assert_int_equal(load(f), ERR_FORMAT);
        assert_non_null(strstr(f->why, "is not a file of 32 bytes"));
    }
}

static void test_readable_by_others(void **state)
{
    struct folder *f = *state;
    const mode_t modes[] = {0640, 0604, 0620, 0660};
    for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
        write_file(f, CORE_SECRET_SIZE, modes[i]);
        assert_int_equal(load(f), ERR_FORMAT);
        assert_non_null(strstr(f->why, "chmod 600"));
    }
    write_file(f, CORE_SECRET_SIZE, 0400);
    assert_int_equal(load(f), 0);
}

static void test_a_link_is_not_followed(void **state)
{
    struct folder *f = *state;
    assert_int_equal(symlink("/etc/hostname", f->file), 0);
    assert_int_equal(load(f), ERR_IO);
}

static void test_a_draft_left_by_a_crash_is_replaced(void **state)
{
    struct folder *f = *state;
    char draft[96];
    snprintf(draft, sizeof(draft), "%s.new", f->file);
    int fd = open(draft, O_CREAT | O_WRONLY, 0644);
    assert_int_equal(write(fd, "x", 1), 1);
    close(fd);
    assert_int_equal(load(f), 0);
    struct stat st;
    assert_int_equal(stat(f->file, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0600);
    assert_int_equal(st.st_size, CORE_SECRET_SIZE);
}

static void test_no_folder(void **state)
{
    struct folder *f = *state;
    assert_int_equal(secret_load("/tmp/muster-no-such-folder", true, f->secret, f->why), ERR_IO);
    assert_non_null(strstr(f->why, "No such file or directory"));
}

static void test_a_node_stays_the_same(void **state)
{
    struct folder *f = *state;
    int64_t first = 0, again = 0;
    assert_int_equal(secret_node_id(f->path, &first, f->why), 0);
    assert_int_equal(secret_node_id(f->path, &again, f->why), 0);
    assert_true(first > 0);
    assert_true(again == first);
    snprintf(f->file, sizeof(f->file), "%s/node", f->path);
    write_file(f, 7, 0600);
    assert_int_equal(secret_node_id(f->path, &again, f->why), ERR_FORMAT);
    assert_non_null(strstr(f->why, "not a file of 8 bytes"));
    unlink(f->file);
    assert_int_equal(secret_node_id(f->path, &again, f->why), 0);
    assert_true(again != first);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(test_made_once_and_kept),
        T(test_two_folders_have_two_secrets),
        T(test_missing_beside_data_is_not_replaced),
        T(test_wrong_size),
        T(test_readable_by_others),
        T(test_a_link_is_not_followed),
        T(test_a_draft_left_by_a_crash_is_replaced),
        T(test_no_folder),
        T(test_a_node_stays_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
