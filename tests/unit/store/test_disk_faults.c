/* A file system layer under SQLite that misbehaves.
 *
 * The power fails: what was written but not synced is gone. The layer keeps an image of each file
 * as of its last sync; a cut opens a store made of those images alone. Syncs of state.db are held
 * back until many more batches were committed, so every cut falls between two steps of the fold:
 * this is where a mark that runs ahead of its rows, or a journal trimmed before the tables are
 * synced, would lose data.
 *
 * A call fails: the n-th write, sync or truncation from now, and some after it. */
#include "old_format.h"

#include <fcntl.h>
#include <pthread.h>

enum {
    BATCHES = 300,
    FILES = 8,
    HELD_BATCHES = 45, /* more than the journal gathers before it trims */
};

struct image {
    char name[32]; /* of the file within the folder */
    uint8_t *bytes;
    size_t len;
};

static struct {
    pthread_mutex_t lock; /* guards everything here */
    pthread_cond_t changed;
    const char *folder; /* the one that is watched */
    struct image images[FILES];
    int64_t committed;
    bool released; /* no more holding back */
    int holds;
    int calls_until_failure; /* 0: no failure is due */
    int failures_left;
    int failures; /* so far */
} disk = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

struct shim_file {
    sqlite3_file base;
    struct image *image; /* NULL: not watched */
    sqlite3_file *real;
};

static sqlite3_vfs *real_vfs;

#define REAL(file) (((struct shim_file *)(file))->real)

/* With the lock held. Through SQLite's own descriptor: closing another one would drop its locks. */
static void keep_image(struct shim_file *f)
{
    sqlite3_int64 size = 0;
    assert_int_equal(f->real->pMethods->xFileSize(f->real, &size), SQLITE_OK);
    f->image->bytes = xrealloc(f->image->bytes, (size_t)size + 1);
    f->image->len = (size_t)size;
    assert_int_equal(f->real->pMethods->xRead(f->real, f->image->bytes, (int)size, 0), SQLITE_OK);
}

/* With the lock held. */
static void hold_back(void)
{
    int64_t until = disk.committed + HELD_BATCHES;
    disk.holds++;
    while (!disk.released && disk.committed < until)
        pthread_cond_wait(&disk.changed, &disk.lock);
}

/* True when this call is to fail. */
static bool due(sqlite3_file *file)
{
    if (!((struct shim_file *)file)->image)
        return false;
    pthread_mutex_lock(&disk.lock);
    bool fails = false;
    if (disk.calls_until_failure > 1) {
        disk.calls_until_failure--;
    } else if (disk.calls_until_failure == 1) {
        fails = true;
        disk.failures++;
        disk.calls_until_failure = --disk.failures_left > 0;
    }
    pthread_mutex_unlock(&disk.lock);
    return fails;
}

static int shim_sync(sqlite3_file *file, int flags)
{
    struct shim_file *f = (struct shim_file *)file;
    if (due(file))
        return SQLITE_IOERR_FSYNC;
    if (!f->image)
        return f->real->pMethods->xSync(f->real, flags);
    pthread_mutex_lock(&disk.lock);
    if (strncmp(f->image->name, STATE_FILE, strlen(STATE_FILE)) == 0)
        hold_back();
    int rc = f->real->pMethods->xSync(f->real, flags);
    keep_image(f);
    pthread_mutex_unlock(&disk.lock);
    return rc;
}

static int shim_close(sqlite3_file *f)
{
    return REAL(f)->pMethods->xClose(REAL(f));
}
static int shim_read(sqlite3_file *f, void *p, int n, sqlite3_int64 at)
{
    return REAL(f)->pMethods->xRead(REAL(f), p, n, at);
}
static int shim_write(sqlite3_file *f, const void *p, int n, sqlite3_int64 at)
{
    /* Half of it arrives. */
    if (due(f)) {
        REAL(f)->pMethods->xWrite(REAL(f), p, n / 2, at);
        return SQLITE_IOERR_WRITE;
    }
    return REAL(f)->pMethods->xWrite(REAL(f), p, n, at);
}
static int shim_truncate(sqlite3_file *f, sqlite3_int64 n)
{
    return due(f) ? SQLITE_IOERR_TRUNCATE : REAL(f)->pMethods->xTruncate(REAL(f), n);
}
static int shim_size(sqlite3_file *f, sqlite3_int64 *n)
{
    return REAL(f)->pMethods->xFileSize(REAL(f), n);
}
static int shim_lock(sqlite3_file *f, int level)
{
    return REAL(f)->pMethods->xLock(REAL(f), level);
}
static int shim_unlock(sqlite3_file *f, int level)
{
    return REAL(f)->pMethods->xUnlock(REAL(f), level);
}
static int shim_reserved(sqlite3_file *f, int *ret)
{
    return REAL(f)->pMethods->xCheckReservedLock(REAL(f), ret);
}
static int shim_control(sqlite3_file *f, int op, void *arg)
{
    return REAL(f)->pMethods->xFileControl(REAL(f), op, arg);
}
static int shim_sector(sqlite3_file *f)
{
    return REAL(f)->pMethods->xSectorSize(REAL(f));
}
static int shim_traits(sqlite3_file *f)
{
    /* Without the promises of this machine's file system. */
    return REAL(f)->pMethods->xDeviceCharacteristics(REAL(f)) & SQLITE_IOCAP_UNDELETABLE_WHEN_OPEN;
}
static int shim_shm_map(sqlite3_file *f, int page, int size, int extend, void volatile **ret)
{
    return REAL(f)->pMethods->xShmMap(REAL(f), page, size, extend, ret);
}
static int shim_shm_lock(sqlite3_file *f, int at, int n, int flags)
{
    return REAL(f)->pMethods->xShmLock(REAL(f), at, n, flags);
}
static void shim_shm_barrier(sqlite3_file *f)
{
    REAL(f)->pMethods->xShmBarrier(REAL(f));
}
static int shim_shm_unmap(sqlite3_file *f, int delete)
{
    return REAL(f)->pMethods->xShmUnmap(REAL(f), delete);
}

static const sqlite3_io_methods shim_methods = {
    .iVersion = 2,
    .xClose = shim_close,
    .xRead = shim_read,
    .xWrite = shim_write,
    .xTruncate = shim_truncate,
    .xSync = shim_sync,
    .xFileSize = shim_size,
    .xLock = shim_lock,
    .xUnlock = shim_unlock,
    .xCheckReservedLock = shim_reserved,
    .xFileControl = shim_control,
    .xSectorSize = shim_sector,
    .xDeviceCharacteristics = shim_traits,
    .xShmMap = shim_shm_map,
    .xShmLock = shim_shm_lock,
    .xShmBarrier = shim_shm_barrier,
    .xShmUnmap = shim_shm_unmap,
};

/* The image of a watched file; NULL when the path is not in the watched folder. */
static struct image *image_of(const char *path)
{
    size_t n = disk.folder ? strlen(disk.folder) : 0;
    if (n == 0 || !path || strncmp(path, disk.folder, n) != 0 || path[n] != '/')
        return NULL;
    const char *name = path + n + 1;
    struct image *free_one = NULL;
    for (int i = FILES - 1; i >= 0; i--) {
        if (strcmp(disk.images[i].name, name) == 0)
            return &disk.images[i];
        if (disk.images[i].name[0] == '\0')
            free_one = &disk.images[i];
    }
    assert_non_null(free_one);
    snprintf(free_one->name, sizeof(free_one->name), "%s", name);
    return free_one;
}

static int shim_open(sqlite3_vfs *vfs, const char *path, sqlite3_file *file, int flags, int *ret)
{
    (void)vfs;
    struct shim_file *f = (struct shim_file *)file;
    *f = (struct shim_file){.real = (sqlite3_file *)(void *)(f + 1)};
    int rc = real_vfs->xOpen(real_vfs, path, f->real, flags, ret);
    if (rc != SQLITE_OK)
        return rc;
    f->base.pMethods = &shim_methods;
    pthread_mutex_lock(&disk.lock);
    f->image = image_of(path);
    pthread_mutex_unlock(&disk.lock);
    return SQLITE_OK;
}

static int shim_delete(sqlite3_vfs *vfs, const char *path, int sync)
{
    (void)vfs;
    int rc = real_vfs->xDelete(real_vfs, path, sync);
    pthread_mutex_lock(&disk.lock);
    struct image *image = image_of(path);
    if (image) {
        free(image->bytes);
        image->bytes = NULL;
    }
    pthread_mutex_unlock(&disk.lock);
    return rc;
}

static void use_shim(void)
{
    static sqlite3_vfs vfs;
    real_vfs = sqlite3_vfs_find(NULL);
    vfs = *real_vfs;
    vfs.zName = "shim";
    vfs.szOsFile = real_vfs->szOsFile + (int)sizeof(struct shim_file);
    vfs.xOpen = shim_open;
    vfs.xDelete = shim_delete;
    assert_int_equal(sqlite3_vfs_register(&vfs, 1), SQLITE_OK);
}

/* A folder with what the disk holds if the power fails now. */
static char *cut(void)
{
    char *folder = fixture_folder();
    char path[1024];
    pthread_mutex_lock(&disk.lock);
    for (int i = 0; i < FILES; i++) {
        struct image *image = &disk.images[i];
        if (!image->bytes)
            continue;
        snprintf(path, sizeof(path), "%s/%s", folder, image->name);
        int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        assert_int_equal(write(fd, image->bytes, image->len), (ssize_t)image->len);
        close(fd);
    }
    pthread_mutex_unlock(&disk.lock);
    return folder;
}

static void now_committed(int64_t seq, bool released)
{
    pthread_mutex_lock(&disk.lock);
    disk.committed = seq;
    disk.released = released;
    pthread_cond_broadcast(&disk.changed);
    pthread_mutex_unlock(&disk.lock);
}

static char *watched_folder(bool released)
{
    char *folder = fixture_folder();
    disk.folder = folder;
    now_committed(0, released);
    return folder;
}

static void forget_folder(char *folder)
{
    disk.folder = NULL;
    for (int i = 0; i < FILES; i++) {
        free(disk.images[i].bytes);
        disk.images[i] = (struct image){0};
    }
    fixture_remove(folder);
}

static void a_power_cut_loses_nothing_that_was_durable(void **state)
{
    (void)state;
    char *folder = watched_folder(true);
    struct store *store = fixture_open(folder, &fixture_eager);
    now_committed(0, false);
    for (int64_t seq = 1; seq <= BATCHES; seq++) {
        model_commit(store, seq, seq);
        now_committed(seq, false);
        if (seq % 7 != 0)
            continue;
        char *after = cut();
        struct store *survivor = fixture_open(after, &fixture_lazy);
        model_check(survivor, seq);
        store_close(survivor);
        fixture_remove(after);
    }
    now_committed(BATCHES, true);
    struct store_figures figures;
    store_sqlite_figures(store, &figures);
    assert_in_range(figures.journal_rows, 1, BATCHES - 50);
    fixture_wait_folded(store, BATCHES);
    store_close(store);
    assert_true(disk.holds > 3);
    store = fixture_open(folder, &fixture_lazy);
    model_check(store, BATCHES);
    store_close(store);
    forget_folder(folder);
}

static int failures_so_far(void)
{
    pthread_mutex_lock(&disk.lock);
    int n = disk.failures;
    pthread_mutex_unlock(&disk.lock);
    return n;
}

static void fail_from(int calls, int failures)
{
    pthread_mutex_lock(&disk.lock);
    disk.calls_until_failure = calls;
    disk.failures_left = failures;
    pthread_mutex_unlock(&disk.lock);
}

/* Commits one batch as the pipeline does: after a failure it asks what is durable. */
static void commit_at_last(struct store *store, int64_t seq)
{
    struct buf changes = {0};
    model_batch(&changes, seq);
    struct store_tip tip = {0};
    for (int tries = 0; tip.seq < seq; tries++) {
        assert_true(tries < 100);
        if (fixture_commit(store, seq, &changes) == 0)
            tip.seq = seq;
        else if (store_tip(store, &tip) == 0)
            assert_in_range(tip.seq, seq - 1, seq);
    }
    buf_done(&changes);
}

static void a_failing_call_loses_nothing_that_was_durable(void **state)
{
    (void)state;
    char *folder = watched_folder(true);
    struct store *store = fixture_open(folder, &fixture_eager);
    int64_t seq = 0;
    for (int n = 1; n <= 90; n++) {
        int before = failures_so_far();
        fail_from(n % 45 + 1, n <= 45 ? 1 : 9);
        for (int i = 0; i < 12; i++)
            commit_at_last(store, ++seq);
        model_check(store, seq);
        if (n % 10 == 0) {
            store_close(store);
            fail_from(0, 0);
            store = fixture_open(folder, &fixture_eager);
            model_check(store, seq);
            assert_true(failures_so_far() > before);
        }
    }
    fail_from(0, 0);
    commit_at_last(store, ++seq);
    fixture_wait_folded(store, seq);
    store_close(store);
    store = fixture_open(folder, &fixture_lazy);
    model_check(store, seq);
    store_close(store);
    forget_folder(folder);
}

/* Opens with every n-th call failing, until one opening meets no failure. `seq` batches must be
 * there in the end. */
static void open_among_failures(const char *folder, int64_t seq)
{
    int before;
    int n = 0;
    do {
        before = failures_so_far();
        fail_from(++n, 1);
        struct store *store = NULL;
        const char *why = "";
        int err = sqlite_open_tuned(folder, &fixture_lazy, &store, &why);
        fail_from(0, 0);
        if (err != 0) {
            assert_int_equal(err, ERR_IO);
            assert_non_null(strstr(why, folder));
        }
        store_close(store);
    } while (failures_so_far() > before);
    struct store *store = fixture_open(folder, &fixture_eager);
    model_check(store, seq);
    store_close(store);
}

static void a_failing_call_while_opening_spoils_nothing(void **state)
{
    (void)state;
    char *folder = watched_folder(true);
    open_among_failures(folder, 0);
    assert_true(failures_so_far() > 5);
    struct store *store = fixture_open(folder, &fixture_eager);
    model_commit(store, 1, 60);
    store_close(store);
    open_among_failures(folder, 60);
    forget_folder(folder);
}

/* One of the files may have been brought to the new format and the other not. */
static void a_failing_call_during_an_upgrade_spoils_nothing(void **state)
{
    (void)state;
    char *folder = watched_folder(true);
    int before = failures_so_far();
    old_folder(folder, &old_2_rooms, 40, 60);
    open_among_failures(folder, 60);
    assert_true(failures_so_far() > before + 5);
    old_done();
    forget_folder(folder);
}

static int set_up(void **state)
{
    (void)state;
    use_shim();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_power_cut_loses_nothing_that_was_durable),
        cmocka_unit_test(a_failing_call_loses_nothing_that_was_durable),
        cmocka_unit_test(a_failing_call_while_opening_spoils_nothing),
        cmocka_unit_test(a_failing_call_during_an_upgrade_spoils_nothing),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
