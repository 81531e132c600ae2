/* Archives of every hostile kind, made by hand: a tar is blocks of 512 bytes, a head before each
 * file and two empty ones behind the last. */
#include "fixture.h"

#include "store/archive.h"

#include <fcntl.h>
#include <sys/stat.h>

enum { BLOCK = 512 };

struct tar {
    struct buf bytes;
};

struct entry {
    const char *name;
    const char *text; /* of a file */
    char type;        /* '0' file, '5' folder, '1' hard link, '2' symbolic link, '3' device … */
    const char *target;
    unsigned mode;
};

static void octal(char *at, int digits, unsigned long v)
{
    for (int i = digits - 1; i >= 0; i--, v /= 8)
        at[i] = (char)('0' + v % 8);
}

static void tar_add(struct tar *t, const struct entry *e)
{
    char head[BLOCK] = {0};
    size_t len = e->text ? strlen(e->text) : 0;
    unsigned sum = 0;
    snprintf(head, 100, "%s", e->name);
    octal(head + 100, 7, e->mode ? e->mode : 0644);
    octal(head + 124, 11, len);
    memset(head + 148, ' ', 8);
    head[156] = e->type ? e->type : '0';
    if (e->target)
        snprintf(head + 157, 100, "%s", e->target);
    memcpy(head + 257, "ustar\00000", 8);
    for (int i = 0; i < BLOCK; i++)
        sum += (unsigned char)head[i];
    octal(head + 148, 6, sum);
    head[154] = 0;
    buf_append(&t->bytes, head, sizeof(head));
    buf_append(&t->bytes, e->text ? e->text : "", len);
    static const char zeros[BLOCK];
    buf_append(&t->bytes, zeros, (BLOCK - len % BLOCK) % BLOCK);
}

static void write_file(const char *path, const void *data, size_t n)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0 && write(fd, data, n) == (ssize_t)n);
    close(fd);
}

/* A folder with "in.tar" of those entries; "out" is where it would be unpacked. */
struct spot {
    char *folder;
    char path[256];
    char why[ARCHIVE_WHY_MAX];
};

static void spot_make(struct spot *p, const struct entry *entries, size_t n)
{
    struct tar t = {0};
    p->folder = fixture_folder();
    snprintf(p->path, sizeof(p->path), "%s/in.tar", p->folder);
    for (size_t i = 0; i < n; i++)
        tar_add(&t, &entries[i]);
    static const char end[2 * BLOCK];
    buf_append(&t.bytes, end, sizeof(end));
    write_file(p->path, t.bytes.data, t.bytes.len);
    buf_done(&t.bytes);
}

static int unpack(struct spot *p, const struct archive_limits *limits)
{
    return archive_unpack(p->path, p->folder, "out", limits, p->why);
}

static const char *inside(const struct spot *p, const char *name)
{
    static char path[512];
    snprintf(path, sizeof(path), "%s/%s", p->folder, name);
    return path;
}

/* Nothing but the archive is in the folder: no half of it, no temporary one. */
static void assert_nothing_stays(const struct spot *p)
{
    char command[400];
    snprintf(command, sizeof(command), "test \"$(ls -A %s)\" = in.tar", p->folder);
    assert_int_equal(system(command), 0);
}

static void spot_done(struct spot *p)
{
    archive_remove(p->folder, "out");
    fixture_remove(p->folder);
}

static void unpacks_files_and_folders_read_only(void **state)
{
    (void)state;
    static const struct entry entries[] = {
        {.name = "./", .type = '5', .mode = 0755},
        {.name = "bin/", .type = '5', .mode = 0755},
        {.name = "bin/server", .text = "#!/bin/sh\n", .mode = 0755},
        {.name = "./data/maps/dust.txt", .text = "dust"}, /* its folders are not listed */
        {.name = "bin/", .type = '5', .mode = 0755},
    };
    struct spot p;
    struct stat st;
    spot_make(&p, entries, 5);
    assert_int_equal(unpack(&p, &archive_limits_default), 0);
    assert_int_equal(stat(inside(&p, "out/bin/server"), &st), 0);
    assert_int_equal(st.st_mode & 07777, 0555);
    assert_int_equal(st.st_size, 10);
    assert_int_equal(stat(inside(&p, "out/data/maps/dust.txt"), &st), 0);
    assert_int_equal(st.st_mode & 07777, 0444);
    assert_int_equal(stat(inside(&p, "out/data"), &st), 0);
    assert_int_equal(st.st_mode & 07777, 0555);
    assert_int_equal(stat(inside(&p, "out"), &st), 0);
    assert_int_equal(st.st_mode & 07777, 0555);

    /* Again: it is there, so it is not even looked at. */
    write_file(p.path, "x", 1);
    assert_int_equal(unpack(&p, &archive_limits_default), 0);
    archive_remove(p.folder, "out");
    assert_nothing_stays(&p);
    spot_done(&p);
}

static void refuses_what_is_hostile_and_leaves_nothing(void **state)
{
    (void)state;
    static const struct {
        struct entry entry;
        const char *says;
    } cases[] = {
        {{.name = "../evil", .text = "x"}, "leads out"},
        {{.name = "a/../../evil", .text = "x"}, "leads out"},
        {{.name = "a/..", .type = '5'}, "leads out"},
        {{.name = "/etc/evil", .text = "x"}, "absolute"},
        {{.name = "a\\..\\evil", .text = "x"}, "backslash"},
        {{.name = "a\nb", .text = "x"}, "control character"},
        {{.name = "link", .type = '2', .target = "/etc/passwd"}, "is a link or a device"},
        {{.name = "hard", .type = '1', .target = "good"}, "is a link or a device"},
        {{.name = "tty", .type = '3'}, "is a link or a device"},
        {{.name = "disk", .type = '4'}, "is a link or a device"},
        {{.name = "fifo", .type = '6'}, "is a link or a device"},
        {{.name = "good", .text = "again"}, "twice"},
        {{.name = "good/inside", .text = "x"}, ""},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct entry entries[] = {{.name = "good", .text = "good"}, cases[i].entry};
        struct spot p;
        spot_make(&p, entries, 2);
        assert_int_equal(unpack(&p, &archive_limits_default), ERR_BAD_ARCHIVE);
        if (!strstr(p.why, cases[i].says))
            fail_msg("\"%s\": \"%s\" does not say \"%s\"", entries[1].name, p.why, cases[i].says);
        assert_nothing_stays(&p);
        spot_done(&p);
    }
}

/* A link to the outside, then a file through it: the second must not be written there, whatever
 * became of the first. */
static void never_writes_through_a_link(void **state)
{
    (void)state;
    struct spot p;
    char outside[300];
    static const struct entry entries[] = {{.name = "way", .type = '2', .target = ".."},
                                           {.name = "way/evil", .text = "x"}};
    spot_make(&p, entries, 2);
    assert_int_equal(unpack(&p, &archive_limits_default), ERR_BAD_ARCHIVE);
    snprintf(outside, sizeof(outside), "%s/evil", p.folder);
    assert_int_not_equal(access(outside, F_OK), 0);
    spot_done(&p);
}

static void keeps_to_its_limits(void **state)
{
    (void)state;
    static const struct entry entries[] = {{.name = "a", .text = "12345678"},
                                           {.name = "b", .text = "12345678"}};
    struct archive_limits bytes = archive_limits_default;
    struct archive_limits files = archive_limits_default;
    struct spot p;
    bytes.unpacked_bytes = 15;
    files.files = 1;
    spot_make(&p, entries, 2);
    assert_int_equal(unpack(&p, &bytes), ERR_BAD_ARCHIVE);
    assert_non_null(strstr(p.why, "more than 15 bytes"));
    assert_int_equal(unpack(&p, &files), ERR_BAD_ARCHIVE);
    assert_non_null(strstr(p.why, "more than 1 files"));
    assert_nothing_stays(&p);
    spot_done(&p);
}

static void refuses_what_is_no_archive(void **state)
{
    (void)state;
    struct spot p;
    spot_make(&p, NULL, 0);
    assert_int_equal(unpack(&p, &archive_limits_default), ERR_BAD_ARCHIVE);
    assert_string_equal(p.why, "The archive is empty.");
    write_file(p.path, "not an archive at all", 21);
    assert_int_equal(unpack(&p, &archive_limits_default), ERR_BAD_ARCHIVE);
    static const struct entry whole = {.name = "a", .text = "12345678"};
    struct tar t = {0};
    tar_add(&t, &whole);
    write_file(p.path, t.bytes.data, BLOCK + 4); /* cut inside the file */
    buf_done(&t.bytes);
    assert_int_equal(unpack(&p, &archive_limits_default), ERR_BAD_ARCHIVE);
    assert_nothing_stays(&p);
    spot_done(&p);
}

static void digests_are_sha256_in_hex(void **state)
{
    (void)state;
    static const char *const abc =
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    uint8_t digest[ARCHIVE_DIGEST];
    uint8_t back[ARCHIVE_DIGEST];
    char hex[ARCHIVE_HEX];
    struct spot p;
    spot_make(&p, NULL, 0);
    write_file(p.path, "abc", 3);
    int fd = open(p.path, O_RDONLY);
    assert_int_equal(archive_digest(fd, NULL, digest), 0);
    static _Atomic bool stop = true;
    assert_int_equal(archive_digest(fd, &stop, back), ERR_IO);
    close(fd);
    assert_string_equal(archive_hex(digest, hex), abc);
    assert_true(archive_from_hex(str_of(abc), back));
    assert_memory_equal(digest, back, sizeof(digest));
    assert_false(archive_from_hex(STR("ba78"), back));
    assert_false(
        archive_from_hex((struct str){"BA7816BF8f01cfea414140de5dae2223b00361a396177a9cb410"
                                      "ff61f20015ad",
                                      64},
                         back));
    spot_done(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unpacks_files_and_folders_read_only),
        cmocka_unit_test(refuses_what_is_hostile_and_leaves_nothing),
        cmocka_unit_test(never_writes_through_a_link),
        cmocka_unit_test(keeps_to_its_limits),
        cmocka_unit_test(refuses_what_is_no_archive),
        cmocka_unit_test(digests_are_sha256_in_hex),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
